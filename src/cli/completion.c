/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: completion scripts for bash, zsh and fish, from the same tables as --help.
 * The attack: a shell expands the words that it completes with. Only what looks like the name of a
 * tool is taken from a policy; a description that looks like a command must never get there.
 */
#include "cli/cli.h"

#include <string.h>

static const char formats[] = "human json sarif";
static const char tool_formats[] = "human json openai anthropic mcp";
static const char shells[] = "bash zsh fish";

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

/* The parts of a verb: "a|b|c" in its ARGUMENTS as "a b c". */
static void write_parts(struct tci_buf *out, const struct cli_verb *verb)
{
    for (const char *p = verb->arguments; *p && *p != ' '; p++)
        tci_buf_char(out, *p == '|' ? ' ' : *p);
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
    case CLI_COMPLETES_SHELL:
        tci_buf_printf(out, "COMPREPLY=($(compgen -W \"%s\" -- \"$cur\"))", shells);
        return;
    case CLI_COMPLETES_VERB:
        tci_buf_string(out, "COMPREPLY=($(compgen -W \"");
        write_verbs(out);
        tci_buf_string(out, "\" -- \"$cur\"))");
        return;
    case CLI_COMPLETES_COMMAND:
        tci_buf_string(out, "mapfile -t COMPREPLY < <(compgen -A command -A file -- \"$cur\")");
        return;
    case CLI_COMPLETES_AGENT:
    case CLI_COMPLETES_NOTHING:
    case CLI_COMPLETES_PART:
        break;
    }
    tci_buf_string(out, "COMPREPLY=()");
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
    bash_words(out, verb->completes == CLI_COMPLETES_PART ? CLI_COMPLETES_FILE : verb->completes);
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

static const char *zsh_action(enum cli_completes completes)
{
    switch (completes) {
    case CLI_COMPLETES_FILE:
        return "_files";
    case CLI_COMPLETES_TOOL:
        return "_toolcage_tools";
    case CLI_COMPLETES_SHELL:
        return "(bash zsh fish)";
    case CLI_COMPLETES_VERB:
        return "_toolcage_verbs";
    case CLI_COMPLETES_COMMAND:
        return "_normal";
    case CLI_COMPLETES_FORMAT:
    case CLI_COMPLETES_AGENT:
    case CLI_COMPLETES_NOTHING:
    case CLI_COMPLETES_PART:
        break;
    }
    return " ";
}

static void zsh_option(struct tci_buf *out, const struct cli_verb *verb,
                       const struct cli_option *option)
{
    tci_buf_printf(out, " \\\n            '--%s[", option->name);
    zsh_text(out, option->help);
    tci_buf_char(out, ']');
    if (option->argument) {
        tci_buf_char(out, ':');
        zsh_text(out, option->argument);
        if (option->completes == CLI_COMPLETES_FORMAT)
            tci_buf_printf(out, ":(%s)", formats_of(verb));
        else
            tci_buf_printf(out, ":%s", zsh_action(option->completes));
    }
    tci_buf_char(out, '\'');
}

static void zsh_verb(struct tci_buf *out, const struct cli_verb *verb)
{
    tci_buf_printf(out, "    %s)\n        _arguments", verb->name);
    for (int id = 0; id < CLI_OPTION_COUNT; id++)
        if (cli_takes(verb, id))
            zsh_option(out, verb, &cli_options[id]);
    if (verb->completes == CLI_COMPLETES_PART) {
        tci_buf_string(out, " \\\n            '1:part:(");
        write_parts(out, verb);
        tci_buf_string(out, ")' \\\n            '2:argument:_files'");
    } else if (*verb->arguments)
        tci_buf_printf(out, " \\\n            '%s:argument:%s'",
                       cli_takes_command(verb) ? "*:" : "1", zsh_action(verb->completes));
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

static const char *fish_values(enum cli_completes completes)
{
    switch (completes) {
    case CLI_COMPLETES_VERB:
        return " -a '(__toolcage_verbs)'";
    case CLI_COMPLETES_TOOL:
        return " -a '(__toolcage_tools)'";
    case CLI_COMPLETES_SHELL:
        return " -a 'bash zsh fish'";
    case CLI_COMPLETES_FILE:
        return " -F";
    case CLI_COMPLETES_COMMAND:
        return " -F -a '(__fish_complete_subcommand)'";
    case CLI_COMPLETES_FORMAT:
    case CLI_COMPLETES_AGENT:
    case CLI_COMPLETES_NOTHING:
    case CLI_COMPLETES_PART:
        break;
    }
    return "";
}

static void fish_verb(struct tci_buf *out, const struct cli_verb *verb)
{
    tci_buf_printf(out, "complete -c toolcage -n __fish_use_subcommand -a %s -d ", verb->name);
    fish_text(out, verb->summary);
    tci_buf_char(out, '\n');
    if (*fish_values(verb->completes))
        tci_buf_printf(out, "complete -c toolcage -n '__fish_seen_subcommand_from %s'%s\n",
                       verb->name, fish_values(verb->completes));
    if (verb->completes == CLI_COMPLETES_PART) {
        tci_buf_printf(out, "complete -c toolcage -n '__fish_seen_subcommand_from %s' -F -a '",
                       verb->name);
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
        else if (option->argument)
            tci_buf_printf(out, option->completes == CLI_COMPLETES_FILE ? " -r%s" : " -x%s",
                           fish_values(option->completes));
        tci_buf_string(out, " -d ");
        fish_text(out, option->help);
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
    if (call->argument)
        cli_completion(&out, call->argument);
    if (out.length == 0)
        return cli_usage("write toolcage completion bash, zsh or fish",
                         call->argument ? "there is no completion for this shell"
                                        : "a shell is missing");
    return cli_output(&out, false, CLI_EXIT_OK);
}
