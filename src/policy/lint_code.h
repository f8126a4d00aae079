/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the files that lint commands share, and nobody else may include. Each uses only those
 * before it: lint_programs.c, lint_shell.c, lint_code.c, lint_command.c.
 */
#ifndef TCI_POLICY_LINT_CODE_H
#define TCI_POLICY_LINT_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include "policy/model.h"

/* ---- lint_programs.c: what is known of programs --------------------------------------------- */

/* How a program takes code; see lint_runners.def. */
enum {
    LATE = 1,
    FIRST = 2,
    ALL = 4,
    AFTER = 8,
    ANYWHERE = 16,
    SEALED = 32,
    SCRIPT = 64,
    STDIN = 128,
};

struct tci_program_options {
    const char *code, *code_words, *value, *value_words;
};

struct tci_runner {
    const char *names;
    struct tci_program_options options;
    unsigned how;
};

/* What an option does. */
enum {
    OPTION_CODE = 1,  /* code follows in the next element */
    OPTION_HERE = 2,  /* the code is in this very element */
    OPTION_VALUE = 4, /* the next element is its value */
};

/* Where a runner has its program from, as far as its arguments were read. Starts as all zeros. */
struct tci_program_source {
    bool dashes, value, file, code; /* "--" was there; what the next argument is */
    bool given;                     /* an option brings the program */
    bool settled, is_stdin;         /* no later argument changes it; it is standard input */
    bool is_code;                   /* the last argument that was read is code */
};

/* Is the text one of the words, which are separated by spaces? */
bool tci_lint_is_word(const char *words, const char *text, size_t length);
/* Is the file name of the program one of the words? */
bool tci_lint_is_program(const char *words, const char *program);
const char *tci_lint_base_name(const char *path);
bool tci_lint_has_placeholder(const char *element);
/* The first element from `from` on that has a placeholder; the count when there is none. */
size_t tci_lint_next_placeholder(const struct tci_strings *command, size_t from);
/* NAME=value, which env takes before the program. */
bool tci_lint_is_assignment(const char *element);

unsigned tci_lint_option_kind(const struct tci_program_options *options, unsigned how,
                              const char *option);
bool tci_lint_is_option(const struct tci_program_options *options, const char *element);
/* awk -f, sed --file: the code is in a file. */
bool tci_lint_names_file(const char *option);
/* "-", /dev/stdin and the like. */
bool tci_lint_names_stdin(const char *file);
/* sh -s: the code is on standard input, and what follows are its arguments. */
bool tci_lint_is_stdin_option(const char *option);

/* NULL when the program is not known to run code. */
const struct tci_runner *tci_lint_find_runner(const char *element);
bool tci_lint_is_wrapper(const char *element);
/* The index of what is really run, behind any wrappers. */
size_t tci_lint_real_program(const struct tci_strings *command);

/* One more argument of the runner. */
void tci_lint_read_argument(const struct tci_runner *runner, const char *argument,
                            struct tci_program_source *source);
/* After the last argument: is the program read from standard input? */
bool tci_lint_is_from_stdin(const struct tci_runner *runner,
                            const struct tci_program_source *source);

/* ---- lint_shell.c: literal shell code ------------------------------------------------------- */

/* Does the shell code in element `code` run what the call puts behind it? */
bool tci_lint_runs_arguments(const struct tci_strings *command, size_t code);
/* Does the shell code run what it has on standard input? */
bool tci_lint_runs_stdin(const char *code);

/* ---- lint_code.c: the code of a command ----------------------------------------------------- */

struct tci_code {
    size_t element;   /* that holds the call's text as code; the count when there is none */
    size_t data_from; /* from here on nothing is an option any more; the count when unknown */
};

/* For a command with placeholders, whose real program is the element `program`. *ret_name is set
 * when code was found: the program that runs it. */
struct tci_code tci_lint_find_code(const struct tci_strings *command, size_t program,
                                   const char **ret_name);
/* For a command without any: the element of a program that runs its standard input; the count when
 * there is none. Without memory: SIZE_MAX. */
size_t tci_lint_find_stdin_code(const struct tci_strings *command, size_t program);

#endif
