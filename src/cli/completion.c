/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: completion scripts for bash, zsh and fish, from the same tables as --help.
 * The attack: a shell expands the words that it completes with. Only what looks like the name of a
 * tool is taken from a policy; a description that looks like a command must never get there.
 */
#include "cli/cli.h"

#include <string.h>
#include "base/attr.h"
#include "base/quote.h"

static const char formats[] = "human json sarif";
static const char tool_formats[] = "human json openai anthropic mcp";
static const char verdicts[] = "ok failed signaled timeout memory cpu pids disk output denied "
                               "invalid_input invalid_output error";

/* The words that can stand there, where they are always the same; NULL: they are not. */
static const char *fixed_words(enum cli_completes completes)
{
    static const char *const words[] = {
        [CLI_COMPLETES_SHELL] = "bash zsh fish",
        [CLI_COMPLETES_CLIENT] = "claude-desktop claude-code cursor vscode zed openclaw",
        [CLI_COMPLETES_MODE] = "live replay",
        [CLI_COMPLETES_ENGINE] = "podman docker podman,docker",
        [CLI_COMPLETES_SOURCE] = "host debootstrap",
        [CLI_COMPLETES_VERDICT] = verdicts,
        [CLI_COMPLETES_BACKEND] = "process jail oci oci/crun oci/runc oci/podman oci/docker gvisor",
    };
    return completes < tci_array_size(words) ? words[completes] : NULL;
}

/* Which forms --format has depends on the verb. */
static const char *formats_of(const struct cli_verb *verb)
{
    return strcmp(verb->name, "tools") == 0 ? tool_formats : formats;
}

static void write_verbs(struct tci_buf *out)
{
    for (const struct cli_verb *verb = cli_verbs; verb->name; verb++)
        tci_buf_printf(out, "%s%s", verb == cli_verbs ? "" : " ", verb->name);
}

/* The parts of a verb: "a|b|c", or "[a|b|c]", in its ARGUMENTS as "a b c". */
static void write_parts(struct tci_buf *out, const struct cli_verb *verb)
{
    for (const char *p = verb->arguments + (*verb->arguments == '['); *p && !strchr(" ]", *p); p++)
        tci_buf_char(out, *p == '|' ? ' ' : *p);
}

/* What follows the part of a verb: files, where one of its ARGUMENTS is a file or a command. */
static enum cli_completes behind_part(const struct cli_verb *verb)
{
    return strstr(verb->arguments, "FILE") || strstr(verb->arguments, "COMMAND")
               ? CLI_COMPLETES_FILE
               : CLI_COMPLETES_NOTHING;
}

/* ---- bash --------------------------------------------------------------------------------- */

static void bash_words(struct tci_buf *out, enum cli_completes completes)
{
    switch (completes) {
    case CLI_COMPLETES_FILE:
        tci_buf_string(out,
                       "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")");
        return;
    case CLI_COMPLETES_TOOL:
        tci_buf_string(out, "COMPREPLY=($(compgen -W \"$(_toolcage_tools)\" -- \"$cur\"))");
        return;
    case CLI_COMPLETES_FORMAT:
        tci_buf_printf(out,
                       "if [[ ${COMP_WORDS[1]} == tools ]]; then "
                       "COMPREPLY=($(compgen -W \"%s\" -- \"$cur\")); else "
                       "COMPREPLY=($(compgen -W \"%s\" -- \"$cur\")); fi",
                       tool_formats, formats);
        return;
    case CLI_COMPLETES_VERB:
        tci_buf_string(out, "COMPREPLY=($(compgen -W \"");
        write_verbs(out);
        tci_buf_string(out, "\" -- \"$cur\"))");
        return;
    case CLI_COMPLETES_COMMAND:
        tci_buf_string(out, "mapfile -t COMPREPLY < <(compgen -A command -A file -- \"$cur\")");
        return;
    default:
        if (fixed_words(completes))
            tci_buf_printf(out, "COMPREPLY=($(compgen -W \"%s\" -- \"$cur\"))",
                           fixed_words(completes));
        else
            tci_buf_string(out, "COMPREPLY=()");
    }
}

static void bash_option_values(struct tci_buf *out)
{
    tci_buf_string(out, "    case \"$prev\" in\n");
    for (int id = 0; id < CLI_OPTION_COUNT; id++) {
        const struct cli_option *option = &cli_options[id];
        if (!option->argument)
            continue;
        tci_buf_printf(out, "    --%s", option->name);
        if (option->letter)
            tci_buf_printf(out, " | -%c", option->letter);
        tci_buf_string(out, ") ");
        bash_words(out, option->completes);
        tci_buf_string(out, "; return ;;\n");
    }
    tci_buf_string(out, "    esac\n");
}

static void bash_verb(struct tci_buf *out, const struct cli_verb *verb)
{
    tci_buf_printf(out,
                   "    %s)\n        if [[ $cur == -* ]]; then\n"
                   "            COMPREPLY=($(compgen -W \"",
                   verb->name);
    for (int id = 0; id < CLI_OPTION_COUNT; id++)
        if (cli_takes(verb, id))
            tci_buf_printf(out, "--%s ", cli_options[id].name);
    if (verb->completes == CLI_COMPLETES_PART) {
        tci_buf_string(out, "\" -- \"$cur\"))\n        elif ((COMP_CWORD == 2)); then\n"
                            "            COMPREPLY=($(compgen -W \"");
        write_parts(out, verb);
    }
    tci_buf_string(out, "\" -- \"$cur\"))\n        else\n            ");
    bash_words(out, verb->completes == CLI_COMPLETES_PART ? behind_part(verb) : verb->completes);
    tci_buf_string(out, "\n        fi ;;\n");
}

static void write_bash(struct tci_buf *out)
{
    tci_buf_string(out,
                   "# bash completion for toolcage; made by \"toolcage completion bash\"\n"
                   "_toolcage_tools() {\n"
                   "    local i policy=()\n"
                   "    for ((i = 1; i < ${#COMP_WORDS[@]} - 1; i++)); do\n"
                   "        case \"${COMP_WORDS[i]}\" in\n"
                   "        --policy | -p) policy=(--policy \"${COMP_WORDS[i + 1]}\") ;;\n"
                   "        esac\n"
                   "    done\n"
                   "    toolcage tools \"${policy[@]}\" 2>/dev/null |"
                   " grep -xE '[A-Za-z0-9_][A-Za-z0-9_.-]*'\n"
                   "}\n"
                   "_toolcage() {\n"
                   "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
                   "    COMPREPLY=()\n"
                   "    if ((COMP_CWORD == 1)); then\n"
                   "        COMPREPLY=($(compgen -W \"");
    write_verbs(out);
    tci_buf_string(out, " --help --version\" -- \"$cur\"))\n        return\n    fi\n");
    bash_option_values(out);
    tci_buf_string(out, "    case \"${COMP_WORDS[1]}\" in\n");
    for (const struct cli_verb *verb = cli_verbs; verb->name; verb++)
        bash_verb(out, verb);
    tci_buf_string(out, "    esac\n}\ncomplete -F _toolcage toolcage\n");
}

/* ---- zsh ---------------------------------------------------------------------------------- */

/* Text inside single quotes and _arguments' brackets. */
static void zsh_text(struct tci_buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            tci_buf_string(out, "'\\''");
        else if (strchr("[]:\\", *text))
            tci_buf_append(out, (char[]){ '\\', *text }, 2);
        else
            tci_buf_char(out, *text);
    }
}

static void zsh_action(struct tci_buf *out, enum cli_completes completes)
{
    const char *words = fixed_words(completes);
    if (words)
        tci_buf_printf(out, "(%s)", words);
    else
        tci_buf_string(out, completes == CLI_COMPLETES_FILE      ? "_files"
                            : completes == CLI_COMPLETES_TOOL    ? "_toolcage_tools"
                            : completes == CLI_COMPLETES_VERB    ? "_toolcage_verbs"
                            : completes == CLI_COMPLETES_COMMAND ? "_normal"
                                                                 : " ");
}

static void zsh_option(struct tci_buf *out, const struct cli_verb *verb, int id)
{
    const struct cli_option *option = &cli_options[id];
    tci_buf_printf(out, " \\\n            '--%s[", option->name);
    zsh_text(out, cli_option_help(verb, id));
    tci_buf_char(out, ']');
    if (option->argument) {
        tci_buf_char(out, ':');
        zsh_text(out, option->argument);
        tci_buf_char(out, ':');
        if (option->completes == CLI_COMPLETES_FORMAT)
            tci_buf_printf(out, "(%s)", formats_of(verb));
        else
            zsh_action(out, option->completes);
    }
    tci_buf_char(out, '\'');
}

static void zsh_verb(struct tci_buf *out, const struct cli_verb *verb)
{
    tci_buf_printf(out, "    %s)\n        _arguments", verb->name);
    for (int id = 0; id < CLI_OPTION_COUNT; id++)
        if (cli_takes(verb, id))
            zsh_option(out, verb, id);
    if (verb->completes == CLI_COMPLETES_PART) {
        tci_buf_string(out, " \\\n            '1:part:(");
        write_parts(out, verb);
        tci_buf_string(out, ")' \\\n            '2:argument:");
        zsh_action(out, behind_part(verb));
        tci_buf_char(out, '\'');
    } else if (*verb->arguments) {
        tci_buf_printf(out, " \\\n            '%s:argument:", cli_takes_command(verb) ? "*:" : "1");
        zsh_action(out, verb->completes);
        tci_buf_char(out, '\'');
    }
    tci_buf_string(out, " ;;\n");
}

static void write_zsh(struct tci_buf *out)
{
    tci_buf_string(out, "#compdef toolcage\n"
                        "# zsh completion for toolcage; made by \"toolcage completion zsh\"\n"
                        "_toolcage_tools() {\n"
                        "    local -a policy tools\n"
                        "    local i=${words[(I)--policy]}\n"
                        "    ((i)) && policy=(--policy ${words[i + 1]})\n"
                        "    tools=(${(f)\"$(toolcage tools $policy 2>/dev/null"
                        " | grep -xE '[A-Za-z0-9_][A-Za-z0-9_.-]*')\"})\n"
                        "    compadd -a tools\n"
                        "}\n"
                        "_toolcage_verbs() {\n    local -a verbs=(\n");
    for (const struct cli_verb *verb = cli_verbs; verb->name; verb++) {
        tci_buf_printf(out, "        '%s:", verb->name);
        zsh_text(out, verb->summary);
        tci_buf_string(out, "'\n");
    }
    tci_buf_string(out, "    )\n    _describe verb verbs\n}\n_toolcage() {\n"
                        "    if ((CURRENT == 2)); then\n        _toolcage_verbs\n"
                        "        return\n    fi\n    local verb=${words[2]}\n"
                        "    shift words\n    ((CURRENT--))\n    case $verb in\n");
    for (const struct cli_verb *verb = cli_verbs; verb->name; verb++)
        zsh_verb(out, verb);
    tci_buf_string(out, "    esac\n}\n"
                        "if [ \"$funcstack[1]\" = \"_toolcage\" ]; then\n    _toolcage \"$@\"\n"
                        "else\n    compdef _toolcage toolcage\nfi\n");
}

/* ---- fish --------------------------------------------------------------------------------- */

static void fish_text(struct tci_buf *out, const char *text)
{
    tci_buf_char(out, '\'');
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            tci_buf_char(out, '\\');
        tci_buf_char(out, *text);
    }
    tci_buf_char(out, '\'');
}

static void fish_values(struct tci_buf *out, enum cli_completes completes)
{
    const char *words = fixed_words(completes);
    if (words)
        tci_buf_printf(out, " -a '%s'", words);
    else
        tci_buf_string(out, completes == CLI_COMPLETES_VERB   ? " -a '(__toolcage_verbs)'"
                            : completes == CLI_COMPLETES_TOOL ? " -a '(__toolcage_tools)'"
                            : completes == CLI_COMPLETES_FILE ? " -F"
                            : completes == CLI_COMPLETES_COMMAND
                                ? " -F -a '(__fish_complete_subcommand)'"
                                : "");
}

static void fish_verb(struct tci_buf *out, const struct cli_verb *verb)
{
    tci_buf_printf(out, "complete -c toolcage -n __fish_use_subcommand -a %s -d ", verb->name);
    fish_text(out, verb->summary);
    tci_buf_char(out, '\n');
    if (verb->completes != CLI_COMPLETES_NOTHING && verb->completes != CLI_COMPLETES_PART) {
        tci_buf_printf(out, "complete -c toolcage -n '__fish_seen_subcommand_from %s'", verb->name);
        fish_values(out, verb->completes);
        tci_buf_char(out, '\n');
    }
    if (verb->completes == CLI_COMPLETES_PART) {
        tci_buf_printf(out, "complete -c toolcage -n '__fish_seen_subcommand_from %s'", verb->name);
        fish_values(out, behind_part(verb));
        tci_buf_string(out, " -a '");
        write_parts(out, verb);
        tci_buf_string(out, "'\n");
    }
    for (int id = 0; id < CLI_OPTION_COUNT; id++) {
        const struct cli_option *option = &cli_options[id];
        if (!cli_takes(verb, id))
            continue;
        tci_buf_printf(out, "complete -c toolcage -n '__fish_seen_subcommand_from %s' -l %s",
                       verb->name, option->name);
        if (option->letter)
            tci_buf_printf(out, " -s %c", option->letter);
        if (option->completes == CLI_COMPLETES_FORMAT)
            tci_buf_printf(out, " -x -a '%s'", formats_of(verb));
        else if (option->argument) {
            tci_buf_string(out, option->completes == CLI_COMPLETES_FILE ? " -r" : " -x");
            fish_values(out, option->completes);
        }
        tci_buf_string(out, " -d ");
        fish_text(out, cli_option_help(verb, id));
        tci_buf_char(out, '\n');
    }
}

static void write_fish(struct tci_buf *out)
{
    tci_buf_string(out, "# fish completion for toolcage; made by \"toolcage completion fish\"\n"
                        "function __toolcage_tools\n"
                        "    set -l words (commandline -opc)\n"
                        "    set -l i (contains -i -- --policy $words)\n"
                        "    and set -l policy --policy $words[(math $i + 1)]\n"
                        "    toolcage tools $policy 2>/dev/null |"
                        " string match -r '^[A-Za-z0-9_][A-Za-z0-9_.-]*$'\n"
                        "end\n"
                        "function __toolcage_verbs\n    string split ' ' '");
    write_verbs(out);
    tci_buf_string(out, "'\nend\ncomplete -c toolcage -f\n");
    for (const struct cli_verb *verb = cli_verbs; verb->name; verb++)
        fish_verb(out, verb);
}

void cli_completion(struct tci_buf *out, const char *shell)
{
    if (strcmp(shell, "bash") == 0)
        write_bash(out);
    else if (strcmp(shell, "zsh") == 0)
        write_zsh(out);
    else if (strcmp(shell, "fish") == 0)
        write_fish(out);
}

int cli_run_completion(const struct cli_call *call)
{
    struct tci_buf out = TCI_BUF_INIT(262144);
    char quoted[TCI_QUOTE_MAX];
    if (!call->argument)
        return cli_usage("write toolcage completion bash, zsh or fish", "a shell is missing");
    cli_completion(&out, call->argument);
    if (out.length == 0)
        return cli_usage("write toolcage completion bash, zsh or fish",
                         "there is no completion for the shell %s",
                         tci_quote(call->argument, strlen(call->argument), quoted));
    return cli_output(&out, false, CLI_EXIT_OK);
}
