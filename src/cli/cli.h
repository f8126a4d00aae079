/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the verbs of the command share. Only src/cli prints. Output is built whole before it
 * is written, so that a failing verb leaves stdout empty.
 */
#ifndef TCI_CLI_CLI_H
#define TCI_CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "base/buf.h"
#include "policy/explain.h"
#include "policy/load.h"

enum {
    CLI_EXIT_OK = 0,
    CLI_EXIT_FINDINGS = 1, /* lint found errors; a question was answered with no */
    CLI_EXIT_REFUSED = 125,
};

enum cli_option_id {
#define X(id, name, letter, argument, completes, help) CLI_##id,
#include "cli/options.def"
#undef X
    CLI_OPTION_COUNT
};

/* What an argument can be completed with. */
enum cli_completes {
    CLI_COMPLETES_NOTHING,
    CLI_COMPLETES_FILE,
    CLI_COMPLETES_TOOL,
    CLI_COMPLETES_AGENT,
    CLI_COMPLETES_FORMAT,
    CLI_COMPLETES_SHELL,
    CLI_COMPLETES_VERB,
    CLI_COMPLETES_COMMAND,
    CLI_COMPLETES_CLIENT,
    CLI_COMPLETES_MODE,
    CLI_COMPLETES_ENGINE,
    CLI_COMPLETES_SOURCE,
    CLI_COMPLETES_VERDICT,
    CLI_COMPLETES_BACKEND,
    CLI_COMPLETES_PART, /* the first of the verb's ARGUMENTS, which lists them as a|b|c */
};

struct cli_option {
    const char *name;
    char letter;
    const char *argument; /* NULL: a flag */
    enum cli_completes completes;
    const char *help;
};

struct cli_call;

enum { CLI_WORDS_MAX = 4 };

struct cli_verb {
    const char *name, *arguments; /* as many words as it may take */
    enum cli_completes completes;
    uint64_t options; /* bit per cli_option_id */
    const char *summary, *text;
    int (*run)(const struct cli_call *call);
};

/* One invocation: options and arguments, checked against the tables. */
struct cli_call {
    const struct cli_verb *verb;
    const char *values[CLI_OPTION_COUNT]; /* NULL: not given; "" for a flag */
    const char *argument;                 /* the first word; NULL: not given */
    const char *more[CLI_WORDS_MAX - 1];  /* those behind it; NULL: not given */
    char *const *command; /* of a verb that takes one: its words, at least one; NULL: none */
};

_Static_assert(CLI_OPTION_COUNT <= 64, "a verb has one bit for each option");

extern const struct cli_option cli_options[CLI_OPTION_COUNT];
extern const struct cli_verb cli_verbs[]; /* ends with a NULL name */

/* Every verb: an exit status. */
#define X(name, arguments, completes, options, summary, text)                                      \
    int cli_run_##name(const struct cli_call *call);
#include "cli/verbs.def"
#undef X

const struct cli_verb *cli_find_verb(const char *name);
/* What an option means to a verb, in one line. */
const char *cli_option_help(const struct cli_verb *verb, int id);
#define cli_option_bit(id) ((uint64_t)1 << (id))
static inline bool cli_takes(const struct cli_verb *verb, int id)
{
    return verb->options & cli_option_bit(id);
}
/* Does it take a whole command? Then options end at its first word, and what follows is not ours. */
static inline bool cli_takes_command(const struct cli_verb *verb)
{
    return verb->completes == CLI_COMPLETES_COMMAND;
}
/* Do its options end at its first word? What a model writes comes behind it, and is never an option. */
static inline bool cli_ends_options(const struct cli_verb *verb)
{
    return verb->run == cli_run_call;
}
/* Does it take words of its own and a whole command behind "--"? */
static inline bool cli_takes_command_behind(const struct cli_verb *verb)
{
    return verb->run == cli_run_mcp;
}
static inline bool cli_given(const struct cli_call *call, enum cli_option_id id)
{
    return call->values[id] != NULL;
}

/* print.c */

/* Text with terminal controls, bidirectional overrides and bad UTF-8 made visible. */
void cli_print_safe(FILE *stream, const char *text, size_t length);
/* The same for a part of a line: a line break in it could forge the next message. */
void cli_print_line(FILE *stream, const char *text);
/* "error: ..." on stderr in the one form that every message has; returns CLI_EXIT_REFUSED. */
int cli_fail(const struct tc_error *error);
/* The same for a wrong invocation. */
int cli_usage(const char *remedy, const char *format, ...) tci_printf_like(2, 3);
/* Writes the buffer to stdout and frees it; `safe` for text that holds strings of the policy. */
int cli_output(struct tci_buf *out, bool safe, int status);
/* May this stream have colours? */
bool cli_colours(FILE *stream);
/* "file:line:column: error: message [id]" and the remedy, for each. */
void cli_print_findings(FILE *stream, const struct tci_findings *findings);

/* policy.c */

/* The policy of --policy, the verb's FILE argument (when `from_argument`) or $TOOLCAGE_POLICY.
 * On failure everything has been reported: the result is the exit status. 0: *ret is loaded. */
int cli_load_policy(const struct cli_call *call, bool from_argument, struct tc_policy **ret);
/* Which file that is; NULL after a usage error has been reported. */
const char *cli_policy_path(const struct cli_call *call, bool from_argument);
/* $TOOLCAGE_POLICY; NULL when it is unset or empty. */
const char *cli_policy_variable(void);

/* backend_name.c */

/* Under which name the backend of these settings is judged (backend/ready.h): containers by who makes
 * them here. NULL: nobody can, and *reterr says why. */
const char *cli_ready_name(const struct tci_settings *settings, struct tc_error *reterr);
/* Is there the image that a container of these settings starts from? 0 also where toolcage does not keep
 * it: an engine has images of its own. */
int cli_find_image(const struct tci_settings *settings, struct tc_error *reterr);
/* For explain: who makes containers here, and from what. */
void cli_explain_maker(const struct tci_settings *settings, struct tci_explain_maker *ret);

/* help.c, completion.c */
void cli_help(struct tci_buf *out, const struct cli_verb *verb);
void cli_completion(struct tci_buf *out, const char *shell);

#endif
