/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what lint knows of programs: which take code and from where, which only start another program
 * and so what is really run, and what their options mean. The tables are in lint_runners.def.
 */
#include "policy/lint_code.h"

#include <string.h>
#include "base/attr.h"
#include "policy/template.h"

static const struct tci_runner runners[] = {
#define RUNNER(names, code, code_words, value, value_words, how)                                   \
    { names, { code, code_words, value, value_words }, how },
#define WRAPPER(name, value, value_words, arguments)
#include "policy/lint_runners.def"
#undef RUNNER
#undef WRAPPER
};

static const struct wrapper {
    const char *name;
    struct tci_program_options options;
    unsigned arguments;
} wrappers[] = {
#define RUNNER(names, code, code_words, value, value_words, how)
#define WRAPPER(name, value, value_words, arguments)                                               \
    { name, { "", "", value, value_words }, arguments },
#include "policy/lint_runners.def"
#undef RUNNER
#undef WRAPPER
};

const char *tci_lint_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool tci_lint_has_placeholder(const char *element)
{
    struct tci_template_part part;
    while (tci_template_next(&element, &part) > 0)
        if (part.is_placeholder)
            return true;
    return false;
}

size_t tci_lint_next_placeholder(const struct tci_strings *command, size_t from)
{
    while (from < command->count && !tci_lint_has_placeholder(command->items[from].text))
        from++;
    return from < command->count ? from : command->count;
}

bool tci_lint_is_word(const char *words, const char *text, size_t length)
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

bool tci_lint_is_program(const char *words, const char *program)
{
    program = tci_lint_base_name(program);
    return tci_lint_is_word(words, program, strlen(program));
}

/* ---- options of known programs -------------------------------------------------------------- */

/* "-lc", "-Ic", "-pe": letters run together, up to one that takes the rest. */
static unsigned letters_of(const struct tci_program_options *options, unsigned how,
                           const char *letters)
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

unsigned tci_lint_option_kind(const struct tci_program_options *options, unsigned how,
                              const char *option)
{
    size_t length = strcspn(option, "=");
    bool attached = option[length] == '=';
    if (tci_lint_is_word(options->code_words, option, length))
        return attached ? OPTION_HERE : OPTION_CODE;
    if (tci_lint_is_word(options->value_words, option, length))
        return attached ? 0 : OPTION_VALUE;
    if (option[0] == '-' && option[1] == '-')
        return 0;
    return letters_of(options, how, option + 1);
}

bool tci_lint_is_option(const struct tci_program_options *options, const char *element)
{
    return ((element[0] == '-' || element[0] == '+') && element[1]) ||
           tci_lint_is_word(options->code_words, element, strlen(element));
}

bool tci_lint_names_file(const char *option)
{
    return strncmp(option, "-f", 2) == 0 || strncmp(option, "--file", 6) == 0;
}

bool tci_lint_is_stdin_option(const char *option)
{
    return option[0] == '-' && option[1] != '-' && strchr(option, 's') && !strchr(option, 'c');
}

/* ---- programs --------------------------------------------------------------------------------- */

/* Also with a version behind the name: python3.11. */
const struct tci_runner *tci_lint_find_runner(const char *element)
{
    const char *program;
    size_t length, plain;
    /* No program is called so; most elements are options or placeholders. */
    if (element[0] == '-' || element[0] == '{')
        return NULL;
    program = tci_lint_base_name(element);
    plain = length = strlen(program);
    if (length > 4 && strcmp(program + length - 4, "-dbg") == 0)
        plain -= 4;
    while (plain > 0 && strchr("0123456789.", program[plain - 1]))
        plain--;
    for (size_t i = 0; i < tci_array_size(runners); i++)
        if (tci_lint_is_word(runners[i].names, program, length) ||
            (plain > 0 && plain < length && tci_lint_is_word(runners[i].names, program, plain)))
            return &runners[i];
    return NULL;
}

static const struct wrapper *find_wrapper(const char *element)
{
    const char *program = tci_lint_base_name(element);
    for (size_t i = 0; i < tci_array_size(wrappers); i++)
        if (strcmp(wrappers[i].name, program) == 0)
            return &wrappers[i];
    return NULL;
}

bool tci_lint_is_assignment(const char *element)
{
    size_t name = strspn(element,
                         "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
    return name > 0 && element[name] == '=';
}

bool tci_lint_is_wrapper(const char *element)
{
    return find_wrapper(element) != NULL;
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
        else if (!dashes && tci_lint_is_option(&wrapper->options, element))
            at += (tci_lint_option_kind(&wrapper->options, 0, element) & OPTION_VALUE) != 0;
        else if (arguments > 0)
            arguments--;
        else if (!tci_lint_is_assignment(element))
            break;
    }
    return at;
}

size_t tci_lint_real_program(const struct tci_strings *command)
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

/* ---- where a runner has its program from ---------------------------------------------------- */

bool tci_lint_names_stdin(const char *file)
{
    return tci_lint_is_word("- /dev/stdin /dev/fd/0 /proc/self/fd/0", file, strlen(file));
}

static bool is_python(const struct tci_runner *runner)
{
    return (runner->how & (SEALED | LATE)) == SEALED;
}

/* Is the code of this option the program, and not only loaded before it? perl -e, not perl -M. */
static bool brings_program(const struct tci_program_options *options, const char *option)
{
    size_t length = strcspn(option, "=");
    if (tci_lint_is_word(options->code_words, option, length))
        return !tci_lint_is_word("--require --import --loader --experimental-loader --preload "
                                 "--define --init-command",
                                 option, length);
    while (*++option && !strchr(options->value, *option))
        if (strchr(options->code, *option))
            return strchr("ceEpBRS", *option) ||
                   (*option == 'r' && tci_lint_is_word(options->code_words, "--run", 5));
    return false;
}

/* Prints something and ends; or, of python, "-mjson.tool": a module is the program. */
static bool needs_no_program(const struct tci_runner *runner, const char *option)
{
    if (strcmp(option, "--version") == 0 || strcmp(option, "--help") == 0)
        return true;
    if (is_python(runner))
        return option[1] != '-' && strchr("mVh", option[strcspn(option, "mVhWXc")]) &&
               option[strcspn(option, "mVhWXc")];
    return !(runner->how & LATE) && tci_lint_is_word("-v -V -h", option, strlen(option));
}

static void read_file_option(const char *option, struct tci_program_source *source)
{
    const char *value = option[1] == '-' ? strchr(option, '=') : option + 2;
    if (value && *value == '=')
        value++;
    source->given = true;
    source->file = !value || !*value;
    source->settled = source->is_stdin = !source->file && tci_lint_names_stdin(value);
}

static void read_option(const struct tci_runner *runner, const char *option,
                        struct tci_program_source *source)
{
    bool takes_file = (runner->how & FIRST) || tci_lint_is_word(runner->names, "make", 4);
    unsigned kind;
    if (needs_no_program(runner, option)) {
        source->settled = true;
        return;
    }
    if ((runner->how & LATE) && (runner->how & STDIN) && tci_lint_is_stdin_option(option)) {
        source->settled = source->is_stdin = true;
        return;
    }
    if (takes_file && tci_lint_names_file(option)) {
        read_file_option(option, source);
        return;
    }
    kind = tci_lint_option_kind(&runner->options, runner->how, option);
    if (kind & (OPTION_CODE | OPTION_HERE)) {
        bool program = brings_program(&runner->options, option);
        source->given |= program;
        source->settled = program && (kind & OPTION_HERE);
        source->code = program && (kind & OPTION_CODE) && !(runner->how & LATE);
        source->value = !program && (kind & OPTION_CODE);
    }
    source->value |= (kind & OPTION_VALUE) != 0;
}

void tci_lint_read_argument(const struct tci_runner *runner, const char *argument,
                            struct tci_program_source *source)
{
    bool is_value = source->value, is_file = source->file, is_code = source->code;
    source->is_code = false;
    if (source->settled)
        return;
    source->value = source->file = source->code = false;
    if (is_value)
        return;
    if (is_file || is_code) {
        /* The code may go on: awk -f a -f b. And pwsh takes "-Command -". */
        source->settled = source->is_stdin = is_file ? tci_lint_names_stdin(argument)
                                                     : strcmp(argument, "-") == 0;
        source->is_code = is_code;
    } else if (!source->dashes && (strcmp(argument, "--") == 0 ||
                                   ((runner->how & LATE) && strcmp(argument, "-") == 0))) {
        source->dashes = true;
    } else if (!source->dashes && tci_lint_is_option(&runner->options, argument)) {
        read_option(runner, argument, source);
    } else if (!(runner->how & ANYWHERE) || (runner->how & FIRST)) {
        source->settled = true;
        source->is_stdin = !source->given && (runner->how & SCRIPT) &&
                           tci_lint_names_stdin(argument);
        source->is_code = source->given && (runner->how & LATE);
    }
}

bool tci_lint_is_from_stdin(const struct tci_runner *runner,
                            const struct tci_program_source *source)
{
    return source->settled ? source->is_stdin : !source->given && (runner->how & STDIN);
}
