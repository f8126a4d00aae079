/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: which element of a command is code; and, where the call's arguments arrive as JSON on
 * standard input, whether that is: {"a":"$(id)"} is a program for a shell.
 */
#include "policy/lint_code.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- placeholders --------------------------------------------------------------------------- */

/* The argument at `at`, the first that is no option. True: the search is over. */
static bool plain_argument(const struct tci_strings *command, size_t at,
                           const struct tci_runner *runner, bool given, struct tci_code *ret)
{
    const char *text = command->items[at].text;
    bool code = tci_lint_has_placeholder(text);
    /* The call chooses what is run: "python3 -- {file}". */
    if ((runner->how & SCRIPT) && !given && code && text[0] == '{' && text[1] != '{') {
        ret->element = at;
        return true;
    }
    if (runner->how & LATE) {
        if (given && (code || ((runner->how & SEALED) && tci_lint_runs_arguments(command, at))))
            ret->element = at;
        if (given && (runner->how & SEALED))
            ret->data_from = at + 1;
        return true;
    }
    if ((runner->how & FIRST) && !given) {
        ret->element = code ? at : command->count;
        return true;
    }
    if (runner->how & (ALL | AFTER)) {
        ret->element = tci_lint_next_placeholder(command, runner->how & ALL ? at : at + 1);
        return true;
    }
    return !(runner->how & ANYWHERE);
}

/* What the program at `at` takes for code. */
static struct tci_code code_of(const struct tci_strings *command, size_t at,
                               const struct tci_runner *runner)
{
    struct tci_code ret = { command->count, command->count };
    bool dashes = false, given = false;
    for (at++; at < command->count; at++) {
        const char *element = command->items[at].text;
        unsigned kind;
        if (!dashes && strcmp(element, "--") == 0) {
            dashes = true;
            continue;
        }
        if (dashes || !tci_lint_is_option(&runner->options, element)) {
            if (plain_argument(command, at, runner, given, &ret))
                break;
            continue;
        }
        if ((runner->how & LATE) && tci_lint_is_stdin_option(element)) {
            ret.data_from = at + 1;
            break;
        }
        kind = tci_lint_option_kind(&runner->options, runner->how, element);
        if ((kind & (OPTION_CODE | OPTION_HERE)) ||
            ((runner->how & FIRST) && tci_lint_names_file(element)))
            given = true;
        if ((kind & OPTION_HERE) && tci_lint_has_placeholder(element)) {
            ret.element = at;
            break;
        }
        if ((kind & OPTION_CODE) && !(runner->how & LATE) && at + 1 < command->count) {
            at++;
            if (tci_lint_has_placeholder(command->items[at].text))
                ret.element = at;
            if (runner->how & SEALED)
                ret.data_from = at + 1;
            if (ret.element < command->count || (runner->how & SEALED))
                break;
        }
        at += (kind & OPTION_VALUE) != 0;
    }
    return ret;
}

/* Looks at every element that could be a program: there are more wrappers than a list can hold.
 * `sed` and `awk`, whose code needs no option, must be what is run; and so must a program that runs
 * a file, since "python" may also be a word to look for. */
struct tci_code tci_lint_find_code(const struct tci_strings *command, size_t program,
                                   const char **ret_name)
{
    struct tci_code found = { command->count, command->count };
    for (size_t at = 0; at < command->count; at++) {
        const struct tci_runner *known_runner = tci_lint_find_runner(command->items[at].text);
        struct tci_runner runner;
        struct tci_code code;
        if (!known_runner || ((known_runner->how & (FIRST | ALL | AFTER)) && at != program))
            continue;
        runner = *known_runner;
        if (at != program)
            runner.how &= ~(unsigned)SCRIPT;
        code = code_of(command, at, &runner);
        if (code.element < command->count) {
            *ret_name = tci_lint_base_name(command->items[at].text);
            return (struct tci_code){ code.element, found.data_from };
        }
        if (code.data_from >= command->count)
            continue;
        found.data_from = code.data_from;
        /* What follows is data; unless the code may run it as a command: behind $0. */
        if (!strstr(command->items[code.data_from - 1].text, "$@"))
            break;
        at = code.data_from;
    }
    return found;
}

/* ---- standard input ------------------------------------------------------------------------- */

/* How many programs are looked at where each may read all arguments behind it. */
enum { runners_max = 16 };

/* Does the runner at `at` take its program from standard input? */
static bool runs_stdin(const struct tci_strings *command, size_t at,
                       const struct tci_runner *runner)
{
    bool takes_shell_code = (runner->how & (LATE | SEALED)) == (LATE | SEALED) ||
                            tci_lint_is_program("su runuser script flock env",
                                                command->items[at].text);
    struct tci_program_source source = { 0 };
    for (size_t i = at + 1; i < command->count && !source.settled; i++) {
        const char *argument = command->items[i].text;
        tci_lint_read_argument(runner, argument, &source);
        if (source.is_code && takes_shell_code && tci_lint_runs_stdin(argument))
            return true;
    }
    /* Without code a user's shell is started; and parallel runs lines. */
    if (tci_lint_is_program("su", command->items[at].text))
        return !source.given && !source.settled;
    if (tci_lint_is_program("parallel", command->items[at].text))
        return !source.settled;
    return tci_lint_is_from_stdin(runner, &source);
}

static bool has_element(const struct tci_strings *command, const char *words)
{
    for (size_t i = 0; i < command->count; i++)
        if (tci_lint_is_word(words, command->items[i].text, strlen(command->items[i].text)))
            return true;
    return false;
}

/* A wrapper, with nothing behind it to run: some start a shell then. */
static bool starts_shell(const struct tci_strings *command, size_t program)
{
    const char *name = command->items[program].text;
    return tci_lint_is_program("chroot nsenter unshare", name) ||
           (tci_lint_is_program("sudo doas", name) &&
            has_element(command, "-s -i --shell --login"));
}

/* The same command, as xargs completes it: what it reads stands in place of the text of -I, or
 * behind the last element. The caller frees the items. */
static int complete_xargs(const struct tci_strings *command, size_t xargs, size_t program,
                          struct tci_strings *ret)
{
    struct tci_string *items = calloc(command->count + 1, sizeof *items);
    const char *replace = NULL;
    if (!items)
        return -1;
    for (size_t i = xargs + 1; i < program; i++)
        if (strncmp(command->items[i].text, "-I", 2) == 0)
            replace = command->items[i].text[2] ? command->items[i].text + 2
                                                : command->items[i + 1].text;
        else if (tci_lint_is_word("-i --replace", command->items[i].text,
                                  strlen(command->items[i].text)))
            replace = "{{}}";
    memcpy(items, command->items, command->count * sizeof *items);
    for (size_t i = program; i < command->count && replace; i++)
        if (strstr(items[i].text, replace))
            items[i].text = "{x}";
    items[command->count].text = "{x...}";
    *ret = (struct tci_strings){ items, command->count + !replace };
    return 0;
}

/* Does xargs make code of its standard input? As tci_lint_find_stdin_code(). */
static size_t find_behind_xargs(const struct tci_strings *command, size_t xargs, size_t program)
{
    struct tci_strings whole;
    struct tci_code code;
    const char *name;
    bool runs;
    if (complete_xargs(command, xargs, program, &whole) < 0)
        return SIZE_MAX;
    code = tci_lint_find_code(&whole, program, &name);
    runs = code.element < whole.count ||
           tci_lint_has_placeholder(whole.items[tci_lint_real_program(&whole)].text);
    free(whole.items);
    return runs ? program : command->count;
}

/* Some hand their input to a program that stands anywhere behind them. */
static size_t find_elsewhere(const struct tci_strings *command, size_t program)
{
    const char *name = command->items[program].text;
    unsigned runners = 0;
    if (!tci_lint_is_program("ssh", name) &&
        !(tci_lint_is_program("docker podman nerdctl kubectl oc", name) &&
          has_element(command, "exec run")))
        return command->count;
    for (size_t i = program + 1; i < command->count && runners < runners_max; i++) {
        const struct tci_runner *runner = tci_lint_find_runner(command->items[i].text);
        if (runner && (runner->how & SCRIPT) && runs_stdin(command, i, runner))
            return i;
        runners += runner != NULL;
    }
    return command->count;
}

size_t tci_lint_find_stdin_code(const struct tci_strings *command, size_t program)
{
    const struct tci_runner *runner = tci_lint_find_runner(command->items[program].text);
    if ((runner && runs_stdin(command, program, runner)) || starts_shell(command, program))
        return program;
    for (size_t i = 0; i < program; i++)
        if (tci_lint_is_program("xargs", command->items[i].text))
            return find_behind_xargs(command, i, program);
    return find_elsewhere(command, program);
}
