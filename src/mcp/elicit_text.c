/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what a person reads before they say whether a call may run.
 *
 * The attacks. An argument that draws a text of its own into the question: everything of strangers stands
 * in quotes with controls and hidden characters written out. Blanks that push what matters out of sight:
 * long runs of them are one short escape, and those that only look like a blank are written out. One so
 * long that nobody finds what matters: arguments, command and input are shown whole, or nobody is asked
 * (core/approval.h). Only lists of the policy, which is not a stranger's, are cut in their middle.
 */
#include "mcp/job.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/utf8.h"
#include "core/approval.h"

enum {
    list_max = 2048,  /* bytes of one list of the policy */
    blanks_shown = 8, /* in a row: code is indented */
    escapes_shown = 3,
};

/* All of it is counted; kept is what can be shown. */
struct shown {
    struct tci_buf *out;
    size_t length;
};

static void put(struct shown *shown, const char *text, size_t length)
{
    if (shown->length <= TCI_APPROVAL_SHOWN_MAX)
        tci_buf_append(shown->out, text, length);
    shown->length += length;
}

static void put_string(struct shown *shown, const char *text)
{
    put(shown, text, strlen(text));
}

static void put_format(struct shown *shown, const char *format, ...) tci_printf_like(2, 3);

static void put_format(struct shown *shown, const char *format, ...)
{
    char text[96];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    put_string(shown, text);
}

/* ---- values ----------------------------------------------------------------------------------- */

/* How often the character of `size` bytes at the beginning stands there in a row. */
static size_t count_run(const char *text, size_t length, size_t size)
{
    size_t end = size;
    while (length - end >= size && memcmp(text, text + end, size) == 0)
        end += size;
    return end / size;
}

/* One character, or a run of it that is shown as one escape. Returns how many bytes that were. */
static size_t put_character(struct shown *shown, const char *text, size_t length, bool is_json)
{
    uint32_t c = 0;
    size_t size = tci_utf8_decode(text, length, &c), run;
    char kind = size ? 'u' : 'x';

    if (!size) {
        size = 1;
        c = (unsigned char)*text;
    } else if (tci_utf8_is_plain(c) && c != ' ') {
        if (!is_json && (c == '"' || c == '\\'))
            put(shown, "\\", 1);
        put(shown, text, size);
        return size;
    }
    run = count_run(text, length, size);
    if (kind == 'u' && c == ' ' && run <= blanks_shown) {
        put(shown, "        ", run);
        return run;
    }
    if (run > escapes_shown) {
        put_format(shown, "\\%c{%" PRIx32 " x%zu}", kind, c, run);
        return run * size;
    }
    put_format(shown, "\\%c{%" PRIx32 "}", kind, c);
    return size;
}

/* In quotes, unless it is JSON, which has its own. */
static void put_value(struct shown *shown, const char *text, size_t length, bool is_json)
{
    if (!is_json)
        put(shown, "\"", 1);
    for (size_t i = 0; i < length;)
        i += put_character(shown, text + i, length - i, is_json);
    if (!is_json)
        put(shown, "\"", 1);
}

static void put_item(struct shown *shown, const char *text)
{
    put(shown, " ", 1);
    put_value(shown, text, strlen(text), false);
}

static size_t item_length(const char *text)
{
    struct tci_buf none = TCI_BUF_INIT(0);
    struct shown counted = { .out = &none };
    put_item(&counted, text);
    return counted.length;
}

/* ---- lists ------------------------------------------------------------------------------------ */

static void put_command(struct shown *shown, const char *const *argv)
{
    if (!argv || !*argv)
        return;
    put_string(shown, "\nCommand:");
    for (; *argv; argv++)
        put_item(shown, *argv);
}

/* Of the policy: its beginning, its end, and how much there is between the two. */
static void put_list(struct shown *shown, const char *label, const char *const *items)
{
    size_t count = 0, first = 0, last, room = list_max / 2, cut = 0;

    while (items && items[count])
        count++;
    if (!count)
        return;
    put_format(shown, "\n%s:", label);
    for (; first < count && item_length(items[first]) <= room; first++) {
        room -= item_length(items[first]);
        put_item(shown, items[first]);
    }
    room = list_max / 2;
    for (last = count; last > first && item_length(items[last - 1]) <= room; last--)
        room -= item_length(items[last - 1]);
    for (size_t i = first; i < last; i++)
        cut += strlen(items[i]);
    if (cut)
        put_format(shown, " [%zu more of the policy are not shown here, %zu bytes]", last - first,
                   cut);
    for (; last < count; last++)
        put_item(shown, items[last]);
}

static void put_input(struct shown *shown, const struct tc_approval *approval)
{
    size_t length = approval->arguments_json ? strlen(approval->arguments_json) : 0;
    bool is_arguments = approval->arguments_json && approval->input &&
                        approval->input_length >= length && approval->input_length <= length + 1 &&
                        memcmp(approval->input, approval->arguments_json, length) == 0;

    if (approval->input_unseen)
        put_string(shown, "\nInput: is passed to it while it runs; it cannot be shown here");
    else if (is_arguments)
        put_string(shown, "\nInput: the arguments");
    else if (approval->input) {
        put_string(shown, "\nInput: ");
        put_value(shown, approval->input, approval->input_length, false);
    }
}

size_t tci_mcp_elicit_text(struct tci_buf *out, const struct tc_approval *approval)
{
    struct shown shown = { .out = out };

    put_string(&shown, "A tool call needs your approval.\nTool:");
    put_item(&shown, approval->tool);
    if (approval->agent) {
        put_string(&shown, "\nAgent:");
        put_item(&shown, approval->agent);
    }
    if (approval->arguments_json) {
        put_string(&shown, "\nArguments: ");
        put_value(&shown, approval->arguments_json, strlen(approval->arguments_json), true);
    }
    put_command(&shown, approval->argv);
    put_input(&shown, approval);
    put_list(&shown, "Reads", approval->readable);
    put_list(&shown, "Writes", approval->writable);
    put_list(&shown, "Network", approval->network);
    return shown.length;
}
