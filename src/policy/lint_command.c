/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: lint of command templates. The attacks: a model's text becomes code for a shell or an
 * interpreter; a model's text becomes an option of the program.
 */
#include "policy/lint_internal.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "json/canonical.h"
#include "policy/template.h"

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

struct options {
    const char *code, *code_words, *value, *value_words;
};

static const struct runner {
    const char *names;
    struct options options;
    unsigned how;
} runners[] = {
#define RUNNER(names, code, code_words, value, value_words, how)                                   \
    { names, { code, code_words, value, value_words }, how },
#define WRAPPER(name, value, value_words, arguments)
#include "policy/lint_runners.def"
#undef RUNNER
#undef WRAPPER
};

static const struct wrapper {
    const char *name;
    struct options options;
    unsigned arguments;
} wrappers[] = {
#define RUNNER(names, code, code_words, value, value_words, how)
#define WRAPPER(name, value, value_words, arguments)                                               \
    { name, { "", "", value, value_words }, arguments },
#include "policy/lint_runners.def"
#undef RUNNER
#undef WRAPPER
};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool has_placeholder(const char *element)
{
    struct tci_template_part part;
    while (tci_template_next(&element, &part) > 0)
        if (part.is_placeholder)
            return true;
    return false;
}

/* The first element from `from` on that has a placeholder; the count when there is none. */
static size_t next_placeholder(const struct tci_strings *command, size_t from)
{
    while (from < command->count && !has_placeholder(command->items[from].text))
        from++;
    return from < command->count ? from : command->count;
}

/* Is the text one of the words, which are separated by spaces? */
static bool is_word(const char *words, const char *text, size_t length)
{
    while (*words) {
        size_t same = 0;
        while (same < length && words[same] == text[same])
            same++;
        if (same == length && (words[same] == '\0' || words[same] == ' '))
            return true;
        while (*words && *words != ' ')
            words++;
        words += *words == ' ';
    }
    return false;
}

/* ---- options of known programs -------------------------------------------------------------- */

enum {
    OPTION_CODE = 1,  /* code follows in the next element */
    OPTION_HERE = 2,  /* the code is in this very element */
    OPTION_VALUE = 4, /* the next element is its value */
};

/* "-lc", "-Ic", "-pe": letters run together, up to one that takes the rest. */
static unsigned letters_of(const struct options *options, unsigned how, const char *letters)
{
    const char *attached = strchr(options->value, '/');
    unsigned found = 0;
    for (; *letters && *letters != '{'; letters++) {
        const char *value = strchr(options->value, *letters), *rest = letters + 1;
        if (strchr(options->code, *letters)) {
            found |= OPTION_CODE;
            if (!(how & LATE) && rest[strspn(rest, options->code)])
                return OPTION_HERE;
        } else if (value && *letters != '/') {
            bool separate = !*rest && (!attached || value < attached);
            return found | (separate ? OPTION_VALUE : 0U);
        }
    }
    /* The model chooses letters itself. */
    return *letters && found ? (unsigned)OPTION_HERE : found;
}

static unsigned option_kind(const struct options *options, unsigned how, const char *option)
{
    size_t length = strcspn(option, "=");
    bool attached = option[length] == '=';
    if (is_word(options->code_words, option, length))
        return attached ? OPTION_HERE : OPTION_CODE;
    if (is_word(options->value_words, option, length))
        return attached ? 0 : OPTION_VALUE;
    if (option[0] == '-' && option[1] == '-')
        return 0;
    return letters_of(options, how, option + 1);
}

static bool is_option(const struct options *options, const char *element)
{
    return ((element[0] == '-' || element[0] == '+') && element[1]) ||
           is_word(options->code_words, element, strlen(element));
}

/* ---- programs --------------------------------------------------------------------------------- */

/* Also with a version behind the name: python3.11. */
static const struct runner *find_runner(const char *element)
{
    /* No program is called so; most elements are options or placeholders. */
    if (element[0] == '-' || element[0] == '{')
        return NULL;
    const char *program = base_name(element);
    size_t length = strlen(program), plain = length;
    if (length > 4 && strcmp(program + length - 4, "-dbg") == 0)
        plain -= 4;
    while (plain > 0 && strchr("0123456789.", program[plain - 1]))
        plain--;
    for (size_t i = 0; i < tci_array_size(runners); i++)
        if (is_word(runners[i].names, program, length) ||
            (plain > 0 && plain < length && is_word(runners[i].names, program, plain)))
            return &runners[i];
    return NULL;
}

static const struct wrapper *find_wrapper(const char *element)
{
    const char *program = base_name(element);
    for (size_t i = 0; i < tci_array_size(wrappers); i++)
        if (strcmp(wrappers[i].name, program) == 0)
            return &wrappers[i];
    return NULL;
}

/* NAME=value, which env takes before the program. */
static bool is_assignment(const char *element)
{
    size_t name = strspn(element,
                         "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
    return name > 0 && element[name] == '=';
}

/* The program behind one wrapper: past its options, variables and arguments. */
static size_t behind_wrapper(const struct tci_strings *command, size_t at,
                             const struct wrapper *wrapper)
{
    unsigned arguments = wrapper->arguments;
    bool dashes = false;
    for (at++; at < command->count; at++) {
        const char *element = command->items[at].text;
        if (!dashes && strcmp(element, "--") == 0)
            dashes = true;
        else if (!dashes && is_option(&wrapper->options, element))
            at += (option_kind(&wrapper->options, 0, element) & OPTION_VALUE) != 0;
        else if (arguments > 0)
            arguments--;
        else if (!is_assignment(element))
            break;
    }
    return at;
}

/* The index of what is really run, behind any wrappers. */
static size_t real_program(const struct tci_strings *command)
{
    const struct wrapper *wrapper;
    size_t at = 0;
    while ((wrapper = find_wrapper(command->items[at].text)) != NULL) {
        size_t next = behind_wrapper(command, at, wrapper);
        if (next >= command->count)
            break;
        at = next;
    }
    return at;
}

/* ---- literal shell code ---------------------------------------------------------------------- */

/*
 * Arguments behind the code of a shell are data only as long as the code keeps them so: "$1" in
 * double quotes, as an operand of a literal command. Otherwise they are split and expanded, or they
 * are the command. This reads shell code just well enough to tell the two apart; where it cannot, it
 * takes the side of caution.
 */

/* What the simple command at hand does with its operands. */
enum head { HEAD_NONE, HEAD_PLAIN, HEAD_WRAPPER, HEAD_RUNNER, HEAD_EVAL };

enum { shell_depth_max = 8, shell_word_max = 64 };

struct simple_command {
    enum head head;
    unsigned operands;
    bool stdin_is_code, option, parameter; /* of a runner: was there an option? an argument used? */
    char quote;
};

struct shell {
    const struct tci_strings *command;
    size_t code; /* its element; $0 is the one behind it */
    struct simple_command now, outer[shell_depth_max];
    unsigned depth;
    bool piped; /* an argument goes into the pipe to this command */
    char word[shell_word_max + 1];
    size_t length;
};

static bool is_head_word(const char *words, const struct shell *shell)
{
    return is_word(words, shell->word, shell->length);
}

static void set_head(struct shell *shell)
{
    struct simple_command *now = &shell->now;
    const struct runner *runner = find_runner(shell->word);
    if (is_head_word("if then else elif do while until ! time exec command builtin", shell))
        return;
    now->head = HEAD_PLAIN;
    if (is_head_word("eval . source trap", shell))
        now->head = HEAD_EVAL;
    else if (find_wrapper(shell->word))
        now->head = HEAD_WRAPPER;
    else if (runner && (runner->how & (SCRIPT | LATE)))
        now->head = HEAD_RUNNER;
    now->stdin_is_code = runner && (runner->how & STDIN);
}

static void end_word(struct shell *shell)
{
    struct simple_command *now = &shell->now;
    bool skipped = shell->word[0] == '-' || (shell->word[0] >= '0' && shell->word[0] <= '9');
    shell->word[shell->length] = '\0';
    if (shell->length == 0)
        return;
    if (now->head == HEAD_NONE || (now->head == HEAD_WRAPPER && !skipped)) {
        if (!is_assignment(shell->word))
            set_head(shell);
    } else {
        now->option |= shell->word[0] == '-';
        now->operands++;
    }
    shell->length = 0;
}

/* True: what was piped into a shell holds an argument. */
static bool end_command(struct shell *shell, bool pipe)
{
    bool runs;
    end_word(shell);
    runs = shell->piped && shell->now.stdin_is_code;
    shell->piped = pipe && (shell->now.parameter || shell->piped);
    shell->now = (struct simple_command){ .quote = shell->now.quote };
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
        return next_placeholder(command, shell->code + 1) < command->count;
    return element < command->count && has_placeholder(command->items[element].text);
}

/* Does the code set this variable itself? Then it may hold an argument: `x=$1; $x`. */
static bool is_set_here(const struct shell *shell, const char *name)
{
    const char *code = shell->command->items[shell->code].text;
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    for (const char *p = strchr(code, '='); p; p = strchr(p + 1, '='))
        if (length > 0 && (size_t)(p - code) >= length && memcmp(p - length, name, length) == 0)
            return true;
    return false;
}

/* "$1" and the like at `*text`, behind the '$'. True: the shell runs it. */
static bool runs_parameter(struct shell *shell, const char *text)
{
    struct simple_command *now = &shell->now;
    char parameter = text[strspn(text, "{")];
    bool first = shell->length == 0, assigned, whole;
    bool positional = (parameter >= '0' && parameter <= '9') || parameter == '@' ||
                      parameter == '*';

    shell->word[shell->length] = '\0';
    assigned = now->head == HEAD_NONE && is_assignment(shell->word);
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

static void open_command(struct shell *shell)
{
    if (shell->depth < shell_depth_max)
        shell->outer[shell->depth++] = shell->now;
    shell->now = (struct simple_command){ .head = HEAD_NONE };
    shell->length = 0;
}

static bool close_command(struct shell *shell)
{
    bool runs = end_command(shell, false);
    if (shell->depth > 0)
        shell->now = shell->outer[--shell->depth];
    return runs;
}

static void add_to_word(struct shell *shell, char c)
{
    if (shell->length < shell_word_max)
        shell->word[shell->length++] = c;
}

/* One character outside of single quotes that means something; returns how many were taken. */
static size_t shell_character(struct shell *shell, const char *text, bool *ret_runs)
{
    struct simple_command *now = &shell->now;
    if (text[0] == '\\') {
        add_to_word(shell, text[1] ? text[1] : ' ');
        return text[1] ? 2 : 1;
    }
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
        end_word(shell);
    else if (now->quote == 0 && text[0] == ')')
        *ret_runs = close_command(shell);
    else if ((now->quote == 0 && strchr(";&|(\n", text[0])) || text[0] == '`')
        *ret_runs = end_command(shell, text[0] == '|' && text[1] != '|');
    else
        add_to_word(shell, text[0]);
    return 1;
}

static bool runs_arguments(const struct tci_strings *command, size_t code)
{
    struct shell shell = { .command = command, .code = code };
    const char *text = command->items[code].text;
    bool runs = false;
    while (*text && !runs) {
        if (shell.now.quote == '\'') {
            size_t length = strcspn(text, "'");
            for (size_t i = 0; i < length; i++)
                add_to_word(&shell, text[i]);
            shell.now.quote = text[length] ? 0 : '\'';
            text += length + (text[length] == '\'');
        } else {
            text += shell_character(&shell, text, &runs);
        }
    }
    return runs || end_command(&shell, false);
}

/* ---- code ----------------------------------------------------------------------------------- */

struct code {
    size_t element;   /* that holds the call's text as code; the count when there is none */
    size_t data_from; /* from here on nothing is an option any more; the count when unknown */
};

/* The argument at `at`, the first that is no option. True: the search is over. */
static bool plain_argument(const struct tci_strings *command, size_t at,
                           const struct runner *runner, bool given, struct code *ret)
{
    const char *text = command->items[at].text;
    bool code = has_placeholder(text);
    /* The call chooses what is run: "python3 -- {file}". */
    if ((runner->how & SCRIPT) && !given && code && text[0] == '{' && text[1] != '{') {
        ret->element = at;
        return true;
    }
    if (runner->how & LATE) {
        if (given && (code || ((runner->how & SEALED) && runs_arguments(command, at))))
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
        ret->element = next_placeholder(command, runner->how & ALL ? at : at + 1);
        return true;
    }
    return !(runner->how & ANYWHERE);
}

/* awk -f, sed --file: the code is in a file. */
static bool names_file(const char *option)
{
    return strncmp(option, "-f", 2) == 0 || strncmp(option, "--file", 6) == 0;
}

/* sh -s: the code is on standard input, and what follows are its arguments. */
static bool is_stdin_option(const char *option)
{
    return option[0] == '-' && option[1] != '-' && strchr(option, 's') && !strchr(option, 'c');
}

/* What the program at `at` takes for code. */
static struct code code_of(const struct tci_strings *command, size_t at,
                           const struct runner *runner)
{
    struct code ret = { command->count, command->count };
    bool dashes = false, given = false;
    for (at++; at < command->count; at++) {
        const char *element = command->items[at].text;
        unsigned kind;
        if (!dashes && strcmp(element, "--") == 0) {
            dashes = true;
            continue;
        }
        if (dashes || !is_option(&runner->options, element)) {
            if (plain_argument(command, at, runner, given, &ret))
                break;
            continue;
        }
        if ((runner->how & LATE) && is_stdin_option(element)) {
            ret.data_from = at + 1;
            break;
        }
        kind = option_kind(&runner->options, runner->how, element);
        if ((kind & (OPTION_CODE | OPTION_HERE)) || ((runner->how & FIRST) && names_file(element)))
            given = true;
        if ((kind & OPTION_HERE) && has_placeholder(element)) {
            ret.element = at;
            break;
        }
        if ((kind & OPTION_CODE) && !(runner->how & LATE) && at + 1 < command->count) {
            at++;
            if (has_placeholder(command->items[at].text))
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
static struct code find_code(const struct tci_strings *command, size_t program,
                             const char **ret_name)
{
    struct code found = { command->count, command->count };
    for (size_t at = 0; at < command->count; at++) {
        const struct runner *known_runner = find_runner(command->items[at].text);
        struct runner runner;
        struct code code;
        if (!known_runner || ((known_runner->how & (FIRST | ALL | AFTER)) && at != program))
            continue;
        runner = *known_runner;
        if (at != program)
            runner.how &= ~(unsigned)SCRIPT;
        code = code_of(command, at, &runner);
        if (code.element < command->count) {
            *ret_name = base_name(command->items[at].text);
            return (struct code){ code.element, found.data_from };
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

/* ---- parameters ----------------------------------------------------------------------------- */

/* Does the class behind a '[' match '-'? *ret_end is behind its ']'. When in doubt: yes. */
static bool class_has_dash(const char *class, const char **ret_end)
{
    bool negated = *class == '^', listed = false, doubt = false;
    class += negated;
    for (bool first = true; *class && (*class != ']' || first); first = false) {
        if (*class == '\\') {
            listed |= class[1] == '-';
            doubt |= !class[1] || !strchr("-wds./+_", class[1]);
            class += class[1] ? 2 : 1;
        } else if (class[1] == '-' && class[2] && class[2] != ']') {
            listed |= *class <= '-' && class[2] >= '-';
            doubt |= class[2] == '\\';
            class += 3;
        } else {
            listed |= *class ++ == '-';
        }
    }
    *ret_end = class + (*class == ']');
    return !*class || (negated ? !listed : listed) || doubt;
}

/* Does every text that matches the pattern begin with something else than '-'? Understands the
 * plain cases, "^[a-z]" and "^https://", and says no to all others. */
static bool pattern_excludes_dash(const char *pattern)
{
    const char *p = pattern + 1;
    if (pattern[0] != '^' || strchr(pattern, '|'))
        return false;
    if (*p == '[') {
        if (class_has_dash(p + 1, &p))
            return false;
    } else if (*p == '\\') {
        if (!p[1] || !strchr("wd./+", p[1]))
            return false;
        p += 2;
    } else if (!*p || strchr("-.$()*+?{", *p)) {
        return false;
    } else {
        p++;
    }
    return !*p || !strchr("*?{", *p) || (*p == '{' && p[1] >= '1' && p[1] <= '9');
}

static bool is_plain_type(const char *type)
{
    return type && (strcmp(type, "integer") == 0 || strcmp(type, "number") == 0 ||
                    strcmp(type, "boolean") == 0);
}

static bool all_items(json_t *list, bool is_good(json_t *item))
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item) if (!is_good(item)) return false;
    return json_array_size(list) > 0;
}

static bool item_is_plain_type(json_t *item)
{
    return is_plain_type(json_string_value(item));
}

static bool item_has_no_dash(json_t *item)
{
    const char *text = json_string_value(item);
    return text && text[0] != '-';
}

/* Can a value that this schema accepts not begin with '-'? (A negative number can, and is let
 * through: no program has options that are harmful numbers.) */
static bool is_never_option(json_t *schema, bool is_list)
{
    json_t *type, *constant;
    const char *pattern;
    if (is_list)
        schema = json_object_get(schema, "items");
    type = json_object_get(schema, "type");
    constant = json_object_get(schema, "const");
    pattern = json_string_value(json_object_get(schema, "pattern"));
    return is_plain_type(json_string_value(type)) || all_items(type, item_is_plain_type) ||
           all_items(json_object_get(schema, "enum"), item_has_no_dash) ||
           (constant && item_has_no_dash(constant)) || (pattern && pattern_excludes_dash(pattern));
}

/* How many "--" must come first: some programs hand what follows the first to another program, and
 * for some it means nothing (SIZE_MAX). */
static size_t dashes_needed(const char *program)
{
    if (is_word("find ffmpeg ffprobe convert magick openssl", program, strlen(program)))
        return SIZE_MAX;
    return is_word("kubectl cargo npm pnpm yarn dotnet", program, strlen(program)) ? 2 : 1;
}

static void report_option(struct tci_lint *lint, const struct tci_string *element,
                          const struct tci_template_part *part, size_t needed)
{
    tci_lint_add(lint, TCI_FINDING_OPTION_INJECTION, element->pos,
                 needed == SIZE_MAX
                     ? "attach it (\"./{name}\"), or give the parameter a pattern such as "
                       "\"^[a-z]\"; this program does not know \"--\""
                     : "put \"--\" before it, attach it (\"--name={name}\"), or give the parameter "
                       "a pattern such as \"^[a-z]\"",
                 "{%.*s} can be taken for an option", (int)part->length, part->text);
}

/* An element that begins with a placeholder can begin with '-', unless "--" came before it. */
static void lint_elements(struct tci_lint *lint, const struct tci_strings *command,
                          const struct code *code, size_t program, json_t *properties)
{
    size_t dashes = 0, needed = dashes_needed(base_name(command->items[program].text));
    for (size_t i = 0; i < command->count; i++) {
        const struct tci_string *element = &command->items[i];
        const char *cursor = element->text;
        struct tci_template_part part;
        bool first = i != code->element && i < code->data_from;
        dashes += i > program && strcmp(cursor, "--") == 0;
        for (; tci_template_next(&cursor, &part) > 0; first = false) {
            json_t *property;
            if (!part.is_placeholder)
                continue;
            property = json_object_getn(properties, part.text, part.length);
            if (first && dashes < needed && !is_never_option(property, part.is_list))
                report_option(lint, element, &part, needed);
            if (!property)
                tci_lint_add(lint, TCI_FINDING_UNDECLARED_PLACEHOLDER, element->pos,
                             "add it to the properties of \"parameters\"",
                             "{%.*s} is not among the parameters", (int)part.length, part.text);
        }
    }
}

static bool is_used(const struct tci_strings *command, const char *name)
{
    for (size_t i = 0; i < command->count; i++) {
        const char *cursor = command->items[i].text;
        struct tci_template_part part;
        while (tci_template_next(&cursor, &part) > 0)
            if (part.is_placeholder && strlen(name) == part.length &&
                memcmp(name, part.text, part.length) == 0)
                return true;
    }
    return false;
}

static void lint_unused(struct tci_lint *lint, const struct tci_strings *command,
                        json_t *properties)
{
    const struct tci_settings *s = &lint->tool->settings;
    for (void *i = json_object_iter(properties); i; i = json_object_iter_next(properties, i))
        if (!is_used(command, json_object_iter_key(i)))
            tci_lint_add(lint, TCI_FINDING_UNUSED_PARAMETER, s->pos[TCI_KEY_PARAMETERS],
                         "use it in \"command\", or remove it",
                         "the parameter \"%.60s\" is in no placeholder of \"command\"",
                         json_object_iter_key(i));
}

static void lint_parameters(struct tci_lint *lint, const struct tci_strings *command,
                            const struct code *code, size_t program)
{
    const char *text = lint->tool->settings.parameters.json;
    struct tc_error error = { 0 };
    json_t *schema = tci_json_read(text, strlen(text), &error);
    json_t *properties = json_object_get(schema, "properties");
    if (!schema) {
        lint->findings->no_memory = true; /* it was valid when it was read */
        return;
    }
    lint_elements(lint, command, code, program, properties);
    lint_unused(lint, command, properties);
    json_decref(schema);
}

/* ---- the whole ------------------------------------------------------------------------------ */

/* There is no shell that would expand them; where there is one, "$HOME" is its business. */
static void lint_unexpanded(struct tci_lint *lint, const struct tci_strings *command)
{
    bool shell = false;
    for (size_t i = 0; i < command->count; i++)
        shell |= find_runner(command->items[i].text) != NULL;
    for (size_t i = 0; i < command->count; i++) {
        const char *text = command->items[i].text;
        if (strncmp(text, "~/", 2) == 0 ||
            (!shell && text[0] == '$' && text[1] >= 'A' && text[1] <= 'Z'))
            tci_lint_add(lint, TCI_FINDING_NOT_EXPANDED, command->items[i].pos,
                         "write the path out, as the cage sees it",
                         "\"%.300s\" is taken as it stands: there is no shell to expand it", text);
    }
}

static void lint_rewritable(struct tci_lint *lint, const struct tci_string *program)
{
    struct tc_decision decision;
    if (program->text[0] != '/' || has_placeholder(program->text))
        return;
    tc_decide_path(lint->policy, NULL, lint->tool->name, program->text, TC_ACCESS_WRITE, &decision);
    if (decision.allowed)
        tci_lint_add(lint, TCI_FINDING_POLICY_WRITABLE, program->pos,
                     "keep programs where the tool cannot write",
                     "the tool can rewrite \"%.300s\", which the policy lets it run",
                     program->text);
}

/* What the policy names as a program stays what it was when somebody approved it. */
static void lint_programs(struct tci_lint *lint, const struct tci_strings *command, size_t program)
{
    const struct tci_strings *list = &lint->tool->settings.commands.list;
    const struct runner *runner = find_runner(command->items[program].text);
    lint_rewritable(lint, &command->items[program]);
    if (runner && (runner->how & SCRIPT) && program + 1 < command->count)
        lint_rewritable(lint, &command->items[program + 1]);
    for (size_t i = 0; i < list->count && tci_lint_wants(lint, TCI_KEY_COMMANDS); i++)
        lint_rewritable(lint, &list->items[i]);
}

void tci_lint_command(struct tci_lint *lint)
{
    const struct tci_strings *command = &lint->tool->settings.command;
    const char *name = "";
    struct code code;
    size_t program;

    lint_unexpanded(lint, command);
    if (command->count == 0)
        return;
    program = real_program(command);
    lint_programs(lint, command, program);
    if (next_placeholder(command, 0) == command->count)
        return;
    code = find_code(command, program, &name);
    if (has_placeholder(command->items[program].text)) {
        /* Behind a wrapper: "timeout 5 {program}". */
        code.element = program;
        name = base_name(command->items[0].text);
    }
    if (code.element < command->count)
        tci_lint_add(lint, TCI_FINDING_SHELL_TEMPLATE, command->items[code.element].pos,
                     "pass the text as an argument of its own behind the code, or on stdin",
                     "an argument of the call becomes code for \"%.60s\"", name);
    lint_parameters(lint, command, &code, program);
}
