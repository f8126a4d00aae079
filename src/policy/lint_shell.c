/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the small reader of literal shell code, which finds code that runs what it is given.
 *
 * Arguments behind the code of a shell are data only as long as the code keeps them so: "$1" in
 * double quotes, as an operand of a literal command. Otherwise they are split and expanded, or they
 * are the command. Standard input is data unless the code runs it: through a shell without a
 * script, or as "$(cat)" where a command or code stands. This reads shell code just well enough to
 * tell the two apart; where it cannot, it takes the side of caution.
 *
 * `now` is the simple command being read, and `outer` those around it, outside of "$(...)".
 */
#include "policy/lint_code.h"

#include <string.h>

/* What the simple command at hand does with its operands. */
enum head { HEAD_NONE, HEAD_PLAIN, HEAD_WRAPPER, HEAD_RUNNER, HEAD_EVAL };

enum { shell_depth_max = 8, shell_word_max = 250, shell_lookups_max = 100 };

struct simple_command {
    enum head head;
    unsigned operands;
    bool stdin_is_code, option, parameter; /* of a runner: was there an option? an argument used? */
    bool fed;                              /* text of the call is on its standard input */
    char quote;
    /* Only for what happens to standard input: */
    const struct tci_runner *runner;
    struct tci_program_source source; /* of the runner's program */
    bool keeps;                       /* it is known not to hand its input on */
    bool hands_on;                    /* a command before it, in the same "$(...)", does */
    bool sets, xargs, replaces,
        skip; /* sets variables; is behind xargs, with -I; a value follows */
    bool assigned, inside, backquote; /* "$(" came behind "x="; inside of a word; it was a '`' */
    char redirect;                    /* the next word is a file for '<' or '>' */
};

struct shell {
    const char *text;
    const struct tci_strings *command; /* NULL: it is about standard input, not arguments */
    size_t code;                       /* its element; $0 is the one behind it */
    struct simple_command now, outer[shell_depth_max];
    unsigned depth;
    unsigned lookups;  /* of variables: each reads the whole text */
    bool unclosed;     /* there is no "))" any more */
    bool holds, reads; /* standard input is in variables: by "x=$(cat)", by "read" */
    char word[shell_word_max + 1];
    size_t length;
};

static bool is_head_word(const char *words, const struct shell *shell)
{
    return tci_lint_is_word(words, shell->word, shell->length);
}

static bool is_about_stdin(const struct shell *shell)
{
    return !shell->command;
}

static void set_head(struct shell *shell)
{
    struct simple_command *now = &shell->now;
    const struct tci_runner *runner = tci_lint_find_runner(shell->word);
    if (is_head_word("if then else elif do while until ! time exec command builtin { {{", shell))
        return;
    now->head = HEAD_PLAIN;
    if (is_head_word("eval . source trap", shell))
        now->head = HEAD_EVAL;
    else if (tci_lint_is_wrapper(shell->word))
        now->head = HEAD_WRAPPER;
    else if (runner && (runner->how & (SCRIPT | LATE)))
        now->head = HEAD_RUNNER;
    now->stdin_is_code = runner && (runner->how & STDIN);
    now->runner = now->head == HEAD_WRAPPER ? NULL : runner;
    now->xargs |= tci_lint_is_program("xargs", shell->word);
    now->sets = is_head_word("for set", shell);
    now->keeps = tci_lint_is_program(
        ": [ basename brew cd conda curl date direnv dircolors dirname echo exit export false find "
        "getconf git hostname id ls mktemp nproc printf pwd pyenv rbenv readlink realpath set "
        "ssh-agent stat test true uname wget which whoami",
        shell->word);
    shell->reads |= now->fed && is_head_word("read mapfile readarray", shell);
}

/* One more operand of a command whose standard input may be code. True: it runs it. */
static bool runs_operand(struct shell *shell)
{
    struct simple_command *now = &shell->now;
    now->skip = now->head == HEAD_WRAPPER && now->xargs && is_head_word("-I -d -a -E", shell);
    now->replaces |= now->head == HEAD_WRAPPER && now->xargs &&
                     (strncmp(shell->word, "-I", 2) == 0 || strncmp(shell->word, "-i", 2) == 0 ||
                      strncmp(shell->word, "--replace", 9) == 0);
    if (now->head == HEAD_EVAL)
        return now->fed && tci_lint_names_stdin(shell->word);
    if (!now->runner)
        return false;
    tci_lint_read_argument(now->runner, shell->word, &now->source);
    return now->fed && now->source.is_code && (now->runner->how & SEALED) &&
           (now->runner->how & LATE) && tci_lint_runs_stdin(shell->word);
}

/* The file of "<" or ">"; or a value of xargs. */
static bool is_no_operand(struct shell *shell)
{
    struct simple_command *now = &shell->now;
    bool is_file = now->redirect != 0, is_value = now->skip;
    if (now->redirect == '<' && !tci_lint_names_stdin(shell->word))
        now->fed = false;
    now->redirect = 0;
    now->skip = now->skip && is_file;
    return is_file || is_value;
}

/* True: the word makes the command run its standard input. */
static bool end_word(struct shell *shell)
{
    struct simple_command *now = &shell->now;
    bool skipped = shell->word[0] == '-' || (shell->word[0] >= '0' && shell->word[0] <= '9');
    bool runs = false;
    shell->word[shell->length] = '\0';
    if (shell->length == 0)
        return false;
    if (is_no_operand(shell)) {
        /* Nothing to learn from it. */
    } else if (now->head == HEAD_NONE || (now->head == HEAD_WRAPPER && !skipped)) {
        if (!tci_lint_is_assignment(shell->word))
            set_head(shell);
    } else {
        now->option |= shell->word[0] == '-';
        now->operands++;
        runs = is_about_stdin(shell) && runs_operand(shell);
    }
    shell->length = 0;
    return runs;
}

/* Does the command run what it has on standard input? */
static bool runs_input(const struct simple_command *now)
{
    if (!now->fed || !now->runner)
        return false;
    if (now->xargs && (now->runner->how & (SCRIPT | LATE)))
        return !now->source.settled || now->replaces;
    return tci_lint_is_from_stdin(now->runner, &now->source);
}

/* True: what was piped into a shell holds an argument; or it runs standard input. */
static bool end_command(struct shell *shell, bool pipe)
{
    bool about_stdin = is_about_stdin(shell), runs = end_word(shell);
    struct simple_command *now = &shell->now, next = { .quote = now->quote };
    bool hands_on = now->parameter || (now->fed && !(about_stdin && now->keeps));
    runs |= about_stdin ? runs_input(now) : now->fed && now->stdin_is_code;
    next.backquote = now->backquote;
    next.hands_on = now->hands_on || (!pipe && hands_on);
    next.fed = pipe ? hands_on : about_stdin;
    *now = next;
    return runs;
}

/* Can the parameter hold text of the call? */
static bool is_from_call(const struct shell *shell, char parameter, bool whole_command)
{
    const struct tci_strings *command = shell->command;
    size_t element = shell->code + 2;
    if (parameter >= '0' && parameter <= '9')
        element = shell->code + 1 + (size_t)(parameter - '0');
    else if (!whole_command)
        return tci_lint_next_placeholder(command, shell->code + 1) < command->count;
    return element < command->count && tci_lint_has_placeholder(command->items[element].text);
}

/* Does the code set this variable itself? Then it may hold an argument: `x=$1; $x`. */
static bool is_set_here(struct shell *shell, const char *name)
{
    const char *code = shell->text;
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    if (shell->lookups++ >= shell_lookups_max)
        return true;
    for (const char *p = strchr(code, '='); p; p = strchr(p + 1, '='))
        if (length > 0 && (size_t)(p - code) >= length && memcmp(p - length, name, length) == 0)
            return true;
    return false;
}

/* Text from standard input stands in the command; `first` in its word. True: the shell runs it. */
static bool runs_text(struct shell *shell, bool first, bool assigned)
{
    struct simple_command *now = &shell->now;
    if (now->redirect == '>')
        return false;
    if (now->head == HEAD_EVAL)
        return true;
    if (assigned) {
        shell->holds = true;
        return false;
    }
    now->parameter = true;
    shell->reads |= now->sets;
    if (now->head == HEAD_RUNNER)
        return !now->source.settled;
    return now->head != HEAD_PLAIN && first;
}

/* The variable behind a '$', when standard input may be in it. True: the shell runs it. */
static bool runs_variable(struct shell *shell, const char *name)
{
    bool first = shell->length == 0;
    shell->word[shell->length] = '\0';
    if (strchr("?#$!-", *name))
        return false;
    return (shell->reads || (shell->holds && is_set_here(shell, name))) &&
           runs_text(shell, first, tci_lint_is_assignment(shell->word));
}

/* "$1" and the like at `*text`, behind the '$'. True: the shell runs it. */
static bool runs_parameter(struct shell *shell, const char *text)
{
    struct simple_command *now = &shell->now;
    char parameter = text[strspn(text, "{")];
    bool first = shell->length == 0, assigned, whole;
    bool positional = (parameter >= '0' && parameter <= '9') || parameter == '@' ||
                      parameter == '*';

    if (is_about_stdin(shell))
        return runs_variable(shell, text + strspn(text, "{"));
    shell->word[shell->length] = '\0';
    assigned = now->head == HEAD_NONE && tci_lint_is_assignment(shell->word);
    whole = first && (now->head == HEAD_NONE || now->head == HEAD_WRAPPER);
    if (!positional)
        return whole && now->quote == 0 && is_set_here(shell, text + strspn(text, "{")) &&
               is_from_call(shell, '*', false);
    if (now->head == HEAD_EVAL)
        parameter = '*';
    if (!is_from_call(shell, parameter, whole))
        return false;
    now->parameter = true;
    if (whole || now->head == HEAD_EVAL || (now->quote == 0 && !assigned))
        return true;
    return now->head == HEAD_RUNNER && (now->option || (first && now->operands == 0));
}

static void add_to_word(struct shell *shell, char c)
{
    if (shell->length < shell_word_max)
        shell->word[shell->length++] = c;
}

static void open_command(struct shell *shell)
{
    bool fed = shell->now.fed;
    shell->word[shell->length] = '\0';
    shell->now.assigned = tci_lint_is_assignment(shell->word);
    shell->now.inside = shell->length > 0;
    if (shell->depth < shell_depth_max)
        shell->outer[shell->depth++] = shell->now;
    shell->now = (struct simple_command){ .fed = fed };
    shell->length = 0;
}

static bool close_command(struct shell *shell)
{
    bool runs = end_command(shell, false), hands_on = shell->now.hands_on;
    if (shell->depth == 0)
        return runs;
    shell->now = shell->outer[--shell->depth];
    if (is_about_stdin(shell)) {
        runs |= hands_on && runs_text(shell, !shell->now.inside, shell->now.assigned);
        /* What stood there is part of the word, and so is what was before it. */
        add_to_word(shell, shell->now.assigned ? 'x' : '$');
        if (shell->now.assigned)
            add_to_word(shell, '=');
    }
    return runs;
}

/* What matters only to standard input; returns how many characters were taken. */
static size_t stdin_character(struct shell *shell, const char *text, bool *ret_runs)
{
    if (!shell->unclosed && strncmp(text, "$((", 3) == 0) {
        const char *end = strstr(text, "))");
        shell->unclosed = !end;
        add_to_word(shell, '$');
        return end ? (size_t)(end + 2 - text) : 1;
    }
    if (text[0] == '`') {
        if (shell->now.backquote) {
            *ret_runs = close_command(shell);
        } else {
            open_command(shell);
            shell->now.backquote = true;
        }
        return 1;
    }
    if (shell->now.quote || (!strchr("<>", text[0]) && strncmp(text, "&>", 2) != 0))
        return 0;
    if (text[1] == '(') {
        open_command(shell);
        return 2;
    }
    shell->word[shell->length] = '\0';
    if (strspn(shell->word, "0123456789") == shell->length)
        shell->length = 0; /* "2>": no word */
    *ret_runs = end_word(shell);
    shell->now.redirect = text[1] == '&' ? '&' : text[0];
    return text[1] == '&' || text[0] == '&' ? 2 : 1;
}

/* One character outside of single quotes that means something; returns how many were taken. */
static size_t shell_character(struct shell *shell, const char *text, bool *ret_runs)
{
    struct simple_command *now = &shell->now;
    size_t taken;
    if (text[0] == '\\') {
        add_to_word(shell, text[1] ? text[1] : ' ');
        return text[1] ? 2 : 1;
    }
    if (is_about_stdin(shell) && (taken = stdin_character(shell, text, ret_runs)) > 0)
        return taken;
    if (text[0] == '"' || (text[0] == '\'' && now->quote == 0)) {
        now->quote = now->quote ? 0 : text[0];
        return 1;
    }
    if (text[0] == '$' && text[1] == '(') {
        open_command(shell);
        return 2;
    }
    if (text[0] == '$') {
        *ret_runs = runs_parameter(shell, text + 1);
        add_to_word(shell, '$');
        return 1;
    }
    if (now->quote == 0 && strchr(" \t<>", text[0]))
        *ret_runs = end_word(shell);
    else if (now->quote == 0 && text[0] == ')')
        *ret_runs = close_command(shell);
    else if ((now->quote == 0 && strchr(";&|(\n", text[0])) || text[0] == '`')
        *ret_runs = end_command(shell, text[0] == '|' && text[1] != '|');
    else
        add_to_word(shell, text[0]);
    return 1;
}

static bool runs_given(struct shell *shell)
{
    const char *text = shell->text;
    bool runs = false;
    while (*text && !runs) {
        if (shell->now.quote == '\'') {
            size_t length = strcspn(text, "'");
            for (size_t i = 0; i < length; i++)
                add_to_word(shell, text[i]);
            shell->now.quote = text[length] ? 0 : '\'';
            text += length + (text[length] == '\'');
        } else {
            text += shell_character(shell, text, &runs);
        }
    }
    return runs || end_command(shell, false);
}

bool tci_lint_runs_arguments(const struct tci_strings *command, size_t code)
{
    struct shell shell = { .text = command->items[code].text, .command = command, .code = code };
    return runs_given(&shell);
}

bool tci_lint_runs_stdin(const char *code)
{
    struct shell shell = { .text = code, .now = { .fed = true } };
    return runs_given(&shell);
}
