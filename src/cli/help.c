/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: --help, from the tables of verbs and options. */
#include "cli/cli.h"

#include <string.h>
#include "base/attr.h"

enum { line_width = 78 };

/* Words wrapped to the width of a terminal. */
static void write_wrapped(struct tci_buf *out, const char *text)
{
    size_t column = 0;
    while (*text) {
        size_t length = strcspn(text, " ");
        if (column && column + 1 + length > line_width) {
            tci_buf_char(out, '\n');
            column = 0;
        }
        if (column) {
            tci_buf_char(out, ' ');
            column++;
        }
        tci_buf_append(out, text, length);
        column += length;
        text += length + strspn(text + length, " ");
    }
    tci_buf_char(out, '\n');
}

/* Where an option means something else to a verb than to the others. */
static const struct {
    const char *verb;
    enum cli_option_id id;
    const char *help;
} other_words[] = {
    { "journal", CLI_TOOL, "only calls of this tool" },
    { "journal", CLI_AGENT, "only calls of this agent" },
    { "journal", CLI_SESSION, "only calls of this session" },
    { "tools", CLI_AGENT, "only what this agent may call; with --json or another --format" },
    { "mcp", CLI_POLICY, "the policy, a file; without it, $TOOLCAGE_POLICY" },
    { "mcp", CLI_TOOL, "wrap, pin, config: the tool whose cage the server gets" },
    { "mcp", CLI_EXPLAIN_DENIALS, "wrap: trace the server, slowly, and list what it was refused" },
    { "mcp", CLI_NO_JOURNAL, "do not record calls" },
    { "mcp", CLI_SESSION,
      "record calls in this session; without it, in a new one for each client" },
};

const char *cli_option_help(const struct cli_verb *verb, int id)
{
    for (size_t i = 0; i < tci_array_size(other_words); i++)
        if ((int)other_words[i].id == id && strcmp(other_words[i].verb, verb->name) == 0)
            return other_words[i].help;
    return cli_options[id].help;
}

static void write_option(struct tci_buf *out, const struct cli_verb *verb, int id)
{
    const struct cli_option *option = &cli_options[id];
    char name[64];
    (void)snprintf(name, sizeof name, "--%s%s%s", option->name, option->argument ? " " : "",
                   option->argument ? option->argument : "");
    if (option->letter)
        tci_buf_printf(out, "  -%c, %-20s %s\n", option->letter, name, cli_option_help(verb, id));
    else
        tci_buf_printf(out, "      %-20s %s\n", name, cli_option_help(verb, id));
}

static void verb_help(struct tci_buf *out, const struct cli_verb *verb)
{
    tci_buf_printf(out, "usage: toolcage %s [options]%s%s\n\n", verb->name,
                   *verb->arguments ? " " : "", verb->arguments);
    write_wrapped(out, verb->text);
    tci_buf_string(out, "\noptions:\n");
    for (int id = 0; id < CLI_OPTION_COUNT; id++)
        if (cli_takes(verb, id))
            write_option(out, verb, id);
}

void cli_help(struct tci_buf *out, const struct cli_verb *verb)
{
    if (verb) {
        verb_help(out, verb);
        return;
    }
    tci_buf_string(out, "usage: toolcage VERB [options] [arguments]\n\n"
                        "Decides what each tool call of a language model may do, under a policy\n"
                        "that a person can read.\n\nverbs:\n");
    for (verb = cli_verbs; verb->name; verb++)
        tci_buf_printf(out, "  %-12s %s\n", verb->name, verb->summary);
    tci_buf_string(out, "\n\"toolcage VERB --help\" tells more. Manual pages: toolcage(1), "
                        "toolcage-policy(5).\n");
}
