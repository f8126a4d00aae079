/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: from a tool's `command` and the arguments of a call to argv. The attack: an argument that
 * becomes something else than one argument. There is no shell and no splitting: whatever is in a
 * string, it is one element, or a part of the one element that names it; a NUL, which would cut it
 * short, is refused, and so is a number that would not arrive as it was sent.
 */
#include "core/call.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/quote.h"
#include "json/canonical.h"
#include "json/number.h"
#include "policy/template.h"

enum { argv_max = 64 * 1024, argv_bytes_max = 8 * 1024 * 1024 };

struct builder {
    struct tci_result *result;
    json_t *arguments;
    const char **argv;
    size_t count, capacity;
    struct tc_error *reterr;
};

static void decref(json_t **value)
{
    json_decref(*value);
}

/* 1, for the caller to return. */
static int invalid(struct tci_result *result, const char *fix, const char *reason, const char *name)
{
    char quoted[TCI_QUOTE_MAX];
    tci_result_verdict(result, TC_VERDICT_INVALID_INPUT, fix, "the argument %s %s",
                       tci_quote(name, strlen(name), quoted), reason);
    return 1;
}

static int push(struct builder *b, const char *element)
{
    if (b->count + 1 >= b->capacity) {
        size_t capacity = b->capacity ? 2 * b->capacity : 32;
        const char **larger = tci_arena_new_array(b->result->arena, capacity, const char *);
        if (!larger)
            return tci_error_no_memory(b->reterr);
        if (b->count)
            memcpy(larger, b->argv, b->count * sizeof *larger);
        b->argv = larger;
        b->capacity = capacity;
    }
    b->argv[b->count++] = element;
    b->argv[b->count] = NULL;
    return 0;
}

/* A value as text: strings as they are, numbers and booleans as JSON. */
static int append_value(struct builder *b, const char *name, const json_t *value,
                        struct tci_buf *out)
{
    char number[TCI_JSON_NUMBER_MAX];
    const char *bytes;
    switch (json_typeof(value)) {
    case JSON_STRING:
        bytes = json_string_value(value);
        if (memchr(bytes, '\0', json_string_length(value)))
            return invalid(b->result, "remove the NUL", "contains a NUL, which no argument can",
                           name);
        tci_buf_append(out, bytes, json_string_length(value));
        return 0;
    case JSON_INTEGER:
    case JSON_REAL:
        if (fabs(json_number_value(value)) > 9007199254740992.0 /* 2^53 */)
            return invalid(b->result, "send it as a string", "is a number too large to be exact",
                           name);
        tci_buf_string(out, tci_json_number(json_number_value(value), number));
        return 0;
    case JSON_TRUE:
    case JSON_FALSE:
        tci_buf_string(out, json_is_true(value) ? "true" : "false");
        return 0;
    case JSON_OBJECT:
    case JSON_ARRAY:
    case JSON_NULL:
        break;
    }
    return invalid(b->result, "send a string, a number or a boolean",
                   "is not a string, a number or a boolean", name);
}

/* The argument of a placeholder; NULL: absent. */
static const json_t *find_argument(const struct builder *b, const struct tci_template_part *part,
                                   const char **ret_name)
{
    const char *name = tci_arena_strndup(b->result->arena, part->text, part->length);
    const json_t *value = name ? json_object_get(b->arguments, name) : NULL;
    *ret_name = name;
    return json_is_null(value) ? NULL : value;
}

static int push_text(struct builder *b, struct tci_buf *text)
{
    const char *copy;
    tci_buf_append(text, "", 0);
    if (tci_buf_check(text, b->reterr) < 0)
        return -1;
    copy = tci_arena_strndup(b->result->arena, text->data, text->length);
    return copy ? push(b, copy) : tci_error_no_memory(b->reterr);
}

/* "{name...}": each item is an element. */
static int push_list(struct builder *b, const char *name, const json_t *list)
{
    if (!json_is_array(list))
        return invalid(b->result, "send a list", "is not a list", name);
    if (json_array_size(list) > argv_max)
        return invalid(b->result, "send fewer items", "has too many items", name);
    for (size_t i = 0; i < json_array_size(list); i++) {
        tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(argv_bytes_max);
        int r = append_value(b, name, json_array_get(list, i), &text);
        if (r != 0 || (r = push_text(b, &text)) != 0)
            return r;
    }
    return 0;
}

/* One element of `command`. One whose argument is absent is left out whole. */
static int push_element(struct builder *b, const char *element)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(argv_bytes_max);
    struct tci_template_part part;
    const char *cursor = element, *name;
    int r;

    while (tci_template_next(&cursor, &part) > 0) {
        const json_t *value;
        if (!part.is_placeholder) {
            tci_buf_append(&text, part.text, part.length);
            continue;
        }
        value = find_argument(b, &part, &name);
        if (!name)
            return tci_error_no_memory(b->reterr);
        if (!value)
            return 0;
        if (part.is_list)
            return push_list(b, name, value);
        if ((r = append_value(b, name, value, &text)) != 0)
            return r;
    }
    return push_text(b, &text);
}

static bool has_placeholder(const struct tci_strings *command)
{
    for (size_t i = 0; i < command->count; i++) {
        const char *cursor = command->items[i].text;
        struct tci_template_part part;
        while (tci_template_next(&cursor, &part) > 0)
            if (part.is_placeholder)
                return true;
    }
    return false;
}

static int refuse_schemas(const struct tci_tool *tool, struct tci_result *result)
{
    const char *parameters = tool->settings.parameters.json;
    bool unchecked = parameters && strcmp(parameters, "{}") != 0 && strcmp(parameters, "true") != 0;
    if (!unchecked && !tool->settings.returns.json)
        return 0;
    tci_result_verdict(result, TC_VERDICT_ERROR,
                       "remove \"parameters\" and \"returns\" from the tool, or check the "
                       "arguments yourself and run the command with argv",
                       "this version does not check JSON Schemas yet, and tool \"%s\" has one",
                       tool->name);
    return 1;
}

static int read_arguments(const struct tc_request *request, struct tci_result *result, json_t **ret,
                          struct tc_error *reterr)
{
    const char *text = request->arguments_json ? request->arguments_json : "{}";
    struct tc_error error = { 0 };
    json_t *value = tci_json_read(text, strlen(text), &error);
    if (!value && error.code == TC_ERROR_NO_MEMORY)
        return tci_error_no_memory(reterr);
    if (!value)
        /* The reader refuses a NUL in a string, in words that are about itself. */
        tci_result_verdict(result, TC_VERDICT_INVALID_INPUT, "send one JSON object without NULs",
                           strstr(error.message, "\\u0000")
                               ? "the arguments contain a NUL, which no argument can"
                               : "the arguments are not JSON: %s",
                           error.message);
    else if (!json_is_object(value))
        tci_result_verdict(result, TC_VERDICT_INVALID_INPUT, "send one JSON object",
                           "the arguments are not a JSON object");
    if (!value || !json_is_object(value)) {
        json_decref(value);
        return 1;
    }
    *ret = value;
    return 0;
}

/* The tool's own command. */
static int from_arguments(const struct tci_tool *tool, const struct tc_request *request,
                          struct tci_result *result, struct tci_command *ret,
                          struct tc_error *reterr)
{
    const struct tci_strings *command = &tool->settings.command;
    tc_cleanup(decref) json_t *arguments = NULL;
    struct builder b = { .result = result, .reterr = reterr };
    int r;

    if ((r = refuse_schemas(tool, result)) != 0 ||
        (r = read_arguments(request, result, &arguments, reterr)) != 0)
        return r;
    b.arguments = arguments;
    for (size_t i = 0; i < command->count; i++)
        if ((r = push_element(&b, command->items[i].text)) != 0)
            return r;
    ret->argv = b.argv;
    if (has_placeholder(command) || request->input || request->input_fd > 0)
        return 0;
    ret->input_length = request->arguments_json ? strlen(request->arguments_json) : 2;
    ret->input = tci_arena_strndup(
        result->arena, request->arguments_json ? request->arguments_json : "{}", ret->input_length);
    return ret->input ? 0 : tci_error_no_memory(reterr);
}

int tci_call_command(const struct tci_tool *tool, const struct tc_request *request,
                     struct tci_result *result, struct tci_command *ret, struct tc_error *reterr)
{
    if (request->argv) {
        ret->argv = request->argv;
        return 0;
    }
    if (tool->settings.command.count == 0) {
        tci_result_verdict(result, TC_VERDICT_ERROR,
                           "add command = [\"PROGRAM\", \"ARGUMENT\"] to the tool, or give argv",
                           "tool \"%s\" has no command to run", tool->name);
        return 1;
    }
    return from_arguments(tool, request, result, ret, reterr);
}
