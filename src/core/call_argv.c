/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: from a tool's `command` and the arguments of a call to argv. The attack: an argument that
 * becomes something else than one argument. There is no shell and no splitting: whatever is in a
 * string, it is one element, or a part of the one element that names it; a NUL, which would cut it
 * short, is refused, and so is a number that would not arrive as it was sent. Nor does it become an
 * option: what begins with "-" needs text of the policy's before it, or "--" in an earlier element.
 * Nor does it take the place of another that was left out, and so a role that it was not checked for.
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

/* What the kernel takes: 32 pages for one with its NUL, and for all of them, each with a pointer, a
 * quarter of the stack, of which the environment needs some. */
enum { element_max = 32 * 4096 - 1, argv_bytes_max = 1024 * 1024, argv_max = 64 * 1024 };

static const char less_or_stdin[] = "send less; or, in the policy, leave placeholders out of "
                                    "\"command\": then the program gets the "
                                    "arguments on stdin";

struct builder {
    struct tci_result *result;
    const json_t *arguments;
    const char **argv;
    size_t count, capacity, bytes;
    const char *before; /* the last element of `command` that argv has something of */
    bool is_last;       /* no element of `command` follows */
    bool after_dashes;  /* an element before this one is "--" */
    struct tc_error *reterr;
};

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
        void *argv = tci_arena_grow(b->result->arena, b->argv, b->count, sizeof *b->argv,
                                    &b->capacity);
        if (!argv)
            return tci_error_no_memory(b->reterr);
        b->argv = argv;
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

/* `name` is the argument in it; NULL: there is none. */
static int push_text(struct builder *b, const char *name, struct tci_buf *text)
{
    const char *copy;
    tci_buf_append(text, "", 0);
    if (name && (text->too_large || text->length > element_max))
        return invalid(b->result, less_or_stdin,
                       "is too long for a command line, where one may have 131071 bytes", name);
    if (tci_buf_check(text, b->reterr) < 0)
        return -1;
    b->bytes += text->length + 1 + sizeof copy;
    if (name && b->bytes > argv_bytes_max)
        return invalid(b->result, less_or_stdin,
                       "makes the command line too long: it may have 1 MiB", name);
    copy = tci_arena_strndup(b->result->arena, text->data, text->length);
    return copy ? push(b, copy) : tci_error_no_memory(b->reterr);
}

/* An element that begins with an argument. Whether the program would take it for an option, nobody but
 * the program knows: `-e {pattern}` may mean that the pattern belongs to -e, or not. */
static int check_dash(struct builder *b, const char *name, const struct tci_buf *text)
{
    if (b->after_dashes || text->length == 0 || text->data[0] != '-')
        return 0;
    return invalid(
        b->result,
        "send a value that does not begin with \"-\"; or, in the policy, put \"--\" before "
        "it in \"command\", or text as in \"--name={name}\"",
        "begins with \"-\", and could be taken for an option", name);
}

/*
 * The element of an argument that is absent, or of a list without items: it is left out. The attack: in
 * ["sort", "-o", "{out}", "{in}"] without `out`, `in` would become the file that -o writes; in
 * ["tar", "-C", "{dir}", "--", "{files...}"] without `dir`, -C would take the "--", and files could be
 * options. At the end nothing can move up; and "--name={name}" is nobody's value.
 */
static int leave_out(struct builder *b, const char *element, const char *name)
{
    char quoted[TCI_QUOTE_MAX], option[TCI_QUOTE_MAX];
    if (b->is_last || tci_template_is_option(element) || !tci_template_wants_value(b->before))
        return 0;
    (void)tci_quote(b->before, strlen(b->before), option);
    tci_result_verdict(
        b->result, TC_VERDICT_INVALID_INPUT,
        "send it; or, in the policy, write option and argument as one element, as in "
        "\"-C{dir}\" or \"--include={glob}\", which is left out whole",
        "the argument %s cannot be left out: it stands behind %s, which would take "
        "what follows",
        tci_quote(name, strlen(name), quoted), option);
    return 1;
}

/* "{name...}": each item is an element. */
static int push_list(struct builder *b, const char *element, const char *name, const json_t *list)
{
    if (!json_is_array(list))
        return invalid(b->result, "send a list", "is not a list", name);
    if (json_array_size(list) > argv_max)
        return invalid(b->result, "send fewer items", "has too many items", name);
    if (json_array_size(list) == 0)
        return leave_out(b, element, name);
    b->before = element;
    for (size_t i = 0; i < json_array_size(list); i++) {
        tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(argv_bytes_max);
        int r = append_value(b, name, json_array_get(list, i), &text);
        if (r != 0 || (r = check_dash(b, name, &text)) != 0 || (r = push_text(b, name, &text)) != 0)
            return r;
    }
    return 0;
}

/* One element of `command`. One whose argument is absent is left out whole. */
static int push_element(struct builder *b, const char *element)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(argv_bytes_max);
    struct tci_template_part part;
    const char *cursor = element, *name, *first = NULL;
    bool literal = false;
    int r;

    while (tci_template_next(&cursor, &part) > 0) {
        const json_t *value;
        if (!part.is_placeholder) {
            tci_buf_append(&text, part.text, part.length);
            literal |= !first;
            continue;
        }
        value = find_argument(b, &part, &name);
        if (!name)
            return tci_error_no_memory(b->reterr);
        if (!value)
            return leave_out(b, element, name);
        first = first ? first : name;
        if (part.is_list)
            return push_list(b, element, name, value);
        if ((r = append_value(b, name, value, &text)) != 0)
            return r;
    }
    if (first && !literal && (r = check_dash(b, first, &text)) != 0)
        return r;
    b->before = element;
    return push_text(b, first, &text);
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

/* The tool's own command. */
static int from_arguments(struct tc_call *call, const struct tc_request *request,
                          struct tci_command *ret, struct tc_error *reterr)
{
    const struct tci_strings *command = &call->tool->settings.command;
    struct builder b = {
        .result = call->result, .arguments = call->arguments, .before = "", .reterr = reterr
    };
    int r;

    for (size_t i = 0; i < command->count; i++) {
        b.is_last = i + 1 == command->count;
        if ((r = push_element(&b, command->items[i].text)) != 0)
            return r;
        b.after_dashes |= i > 0 && strcmp(command->items[i].text, "--") == 0;
    }
    ret->argv = b.argv;
    if (has_placeholder(command))
        return 0;
    if (request->input || request->input_fd > 0) {
        tci_error_set(reterr, TC_ERROR_USAGE,
                      "tool \"%s\" takes its arguments on stdin, so the request cannot have input",
                      call->tool->name);
        tci_error_remedy(reterr, "leave out input and input_fd");
        return -1;
    }
    ret->input = call->arguments_text;
    ret->input_length = strlen(call->arguments_text);
    return 0;
}

int tci_call_command(struct tc_call *call, const struct tc_request *request,
                     struct tci_command *ret, struct tc_error *reterr)
{
    const struct tci_tool *tool = call->tool;
    if (request->argv) {
        ret->argv = request->argv;
        return 0;
    }
    /* Arguments on its stdin would be messages that nothing has checked. */
    if (tool->settings.mcp.given) {
        tci_result_verdict(call->result, TC_VERDICT_ERROR,
                           "use \"toolcage mcp wrap\", and call the server's own tools",
                           "tool \"%s\" is an MCP server, which is not called itself", tool->name);
        return 1;
    }
    if (tool->settings.command.count == 0) {
        tci_result_verdict(
            call->result, TC_VERDICT_ERROR,
            "add command = [\"PROGRAM\", \"ARGUMENT\"] to the tool, or run a command under it: "
            "toolcage exec --tool NAME -- PROGRAM",
            "tool \"%s\" has no command to run", tool->name);
        return 1;
    }
    return from_arguments(call, request, ret, reterr);
}
