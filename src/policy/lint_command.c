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
#include "policy/lint_code.h"
#include "policy/template.h"

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
    if (tci_lint_is_word("find ffmpeg ffprobe convert magick openssl", program, strlen(program)))
        return SIZE_MAX;
    return tci_lint_is_word("kubectl cargo npm pnpm yarn dotnet", program, strlen(program)) ? 2 : 1;
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

static bool is_required(const json_t *schema, const struct tci_template_part *part)
{
    size_t i;
    json_t *name;
    json_array_foreach(json_object_get(schema, "required"), i, name)
    {
        if (json_string_length(name) == part->length &&
            memcmp(json_string_value(name), part->text, part->length) == 0)
            return true;
    }
    return false;
}

/* Without its argument an element is left out, and an option before it would take what follows: calls
 * refuse that, so the argument is not as optional as `parameters` says. */
static void lint_left_out(struct tci_lint *lint, const struct tci_strings *command,
                          const json_t *schema)
{
    const json_t *properties = json_object_get(schema, "properties");
    const char *before = "";
    for (size_t i = 0; i + 1 < command->count; i++) {
        const char *element = command->items[i].text, *cursor = element;
        struct tci_template_part part;
        bool optional = false;
        while (tci_template_next(&cursor, &part) > 0) {
            if (!part.is_placeholder || is_required(schema, &part))
                continue;
            optional = true;
            if (!tci_template_is_option(element) && tci_template_wants_value(before) &&
                json_object_getn(properties, part.text, part.length))
                tci_lint_add(lint, TCI_FINDING_OPTIONAL_VALUE, command->items[i].pos,
                             "make it \"required\", or write both as one element, as in "
                             "\"-C{dir}\" or \"--include={glob}\", which is left out whole",
                             "{%.*s} can be left out, and \"%.60s\" before it would take what "
                             "follows",
                             (int)part.length, part.text, before);
        }
        if (!optional || !tci_template_is_option(element))
            before = element;
    }
}

/* An element that begins with a placeholder can begin with '-', unless "--" came before it. */
static void lint_elements(struct tci_lint *lint, const struct tci_strings *command,
                          const struct tci_code *code, size_t program, json_t *properties)
{
    size_t dashes = 0, needed = dashes_needed(tci_lint_base_name(command->items[program].text));
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

/* Tools often share a schema, and a file can give thousands of tools a large one: the last that was
 * read is kept. */
const json_t *tci_lint_read_parameters(struct tci_lint *lint)
{
    const char *text = lint->tool->settings.parameters.json;
    struct tc_error error = { 0 };
    if (lint->schema && strcmp(lint->schema_text, text) == 0)
        return lint->schema;
    json_decref(lint->schema);
    lint->schema_text = text;
    lint->schema = tci_json_read_canonical(lint->findings->arena, text, &error);
    if (!lint->schema)
        lint->findings->no_memory = true;
    return lint->schema;
}

static void lint_parameters(struct tci_lint *lint, const struct tci_strings *command,
                            const struct tci_code *code, size_t program)
{
    const json_t *schema = tci_lint_read_parameters(lint);
    json_t *properties = json_object_get(schema, "properties");
    if (!schema)
        return;
    lint_elements(lint, command, code, program, properties);
    lint_left_out(lint, command, schema);
    lint_unused(lint, command, properties);
}

void tci_lint_command_end(struct tci_lint *lint)
{
    json_decref(lint->schema);
    lint->schema = NULL;
}

/* ---- the whole ------------------------------------------------------------------------------ */

/* There is no shell that would expand them; where there is one, "$HOME" is its business. */
static void lint_unexpanded(struct tci_lint *lint, const struct tci_strings *command)
{
    bool shell = false;
    for (size_t i = 0; i < command->count; i++)
        shell |= tci_lint_find_runner(command->items[i].text) != NULL;
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
    if (program->text[0] != '/' || tci_lint_has_placeholder(program->text))
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
    const struct tci_runner *runner = tci_lint_find_runner(command->items[program].text);
    lint_rewritable(lint, &command->items[program]);
    if (runner && (runner->how & SCRIPT) && program + 1 < command->count)
        lint_rewritable(lint, &command->items[program + 1]);
    for (size_t i = 0; i < list->count && tci_lint_wants(lint, TCI_KEY_COMMANDS); i++)
        lint_rewritable(lint, &list->items[i]);
}

/* Without a placeholder the arguments of the call are JSON on standard input. */
static void lint_stdin(struct tci_lint *lint, const struct tci_strings *command, size_t program)
{
    size_t element = tci_lint_find_stdin_code(command, program);
    if (element == SIZE_MAX)
        lint->findings->no_memory = true;
    else if (element < command->count)
        tci_lint_add(
            lint, TCI_FINDING_SHELL_TEMPLATE, command->items[element].pos,
            "name a script, and pass the text as an argument of its own behind the code or "
            "script",
            "the arguments of the call, JSON on stdin, become code for \"%.60s\"",
            tci_lint_base_name(command->items[element].text));
}

void tci_lint_command(struct tci_lint *lint)
{
    const struct tci_strings *command = &lint->tool->settings.command;
    const char *name = "";
    struct tci_code code;
    size_t program;

    /* A built-in tool's command is not the policy author's, and known. */
    if (command->count == 0 || lint->tool->settings.builtin)
        return;
    lint_unexpanded(lint, command);
    program = tci_lint_real_program(command);
    lint_programs(lint, command, program);
    if (tci_lint_next_placeholder(command, 0) == command->count) {
        lint_stdin(lint, command, program);
        return;
    }
    code = tci_lint_find_code(command, program, &name);
    if (tci_lint_has_placeholder(command->items[program].text)) {
        /* Behind a wrapper: "timeout 5 {program}". */
        code.element = program;
        name = tci_lint_base_name(command->items[0].text);
    }
    if (code.element < command->count)
        tci_lint_add(lint, TCI_FINDING_SHELL_TEMPLATE, command->items[code.element].pos,
                     "pass the text as an argument of its own behind the code or script",
                     "an argument of the call becomes code for \"%.60s\"", name);
    lint_parameters(lint, command, &code, program);
}
