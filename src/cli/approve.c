/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: asking the person at the terminal whether a call may be made.
 *
 * The attacks. An argument that draws a prompt of its own, or moves the cursor over the real one: every
 * value stands in quotes with controls, direction marks and bad bytes written out, is broken into lines
 * here and not by the terminal, and no line of it begins where ours begin. An argument so long that what
 * matters scrolls away: everything is shown or nothing is asked. A tool that has left the terminal in a
 * state in which the question cannot be seen: that state is ended first. A "y" that was typed or piped
 * for something else: only the terminal is read, it is ours alone meanwhile (approve_terminal.c), and
 * what was typed before the question is thrown away.
 */
#include "cli/approve.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/clock.h"
#include "base/utf8.h"
#include "cli/approve_terminal.h"
#include "policy/units.h"

enum {
    shown_max = 32768,
    indent = 13,
    width_max = 76,
    width_unknown = 40, /* hardly a terminal is narrower */
    columns_min = 30,
    settle_ms = 1000,
    blanks_shown = 8, /* in a row; more would push what follows out of sight */
};

/* ---- what is shown ------------------------------------------------------------------------ */

struct page {
    struct tci_buf out;
    size_t width, lines, column;
    bool is_ascii; /* the terminal shows nothing else */
};

static void new_line(struct page *page)
{
    tci_buf_char(&page->out, '\n');
    page->lines++;
    page->column = 0;
}

/* A piece that is not torn apart, `columns` wide. */
static void put(struct page *page, const char *text, size_t length, size_t columns)
{
    if (page->column + columns > page->width) {
        new_line(page);
        tci_buf_printf(&page->out, "%*s", (int)indent, "| ");
        page->column = indent;
    }
    tci_buf_append(&page->out, text, length);
    page->column += columns;
}

/* `run`: how often it stands there. */
static void put_escape(struct page *page, char kind, uint32_t value, size_t run)
{
    char text[48];
    int length = run == 1 ? snprintf(text, sizeof text, "\\%c{%x}", kind, value)
                          : snprintf(text, sizeof text, "\\%c{%x x%zu}", kind, value, run);
    put(page, text, (size_t)length, (size_t)length);
}

static bool is_shown(const struct page *page, uint32_t c)
{
    return (c < 0x80 || !page->is_ascii) && tci_utf8_is_plain(c);
}

static size_t count_blanks(const char *text, size_t length)
{
    size_t count = 0;
    while (count < length && text[count] == ' ')
        count++;
    return count;
}

/* `is_json`: it has quotes and escapes of its own. */
static void put_value(struct page *page, const char *text, size_t length, bool is_json)
{
    if (!is_json)
        put(page, "\"", 1, 1);
    for (size_t i = 0; i < length;) {
        uint32_t c = 0;
        size_t size = tci_utf8_decode(text + i, length - i, &c);
        size_t blanks = count_blanks(text + i, length - i);
        if (blanks > blanks_shown) {
            put_escape(page, 'u', ' ', blanks);
            size = blanks;
        } else if (!size)
            put_escape(page, 'x', (unsigned char)text[i], 1);
        else if (!is_shown(page, c))
            put_escape(page, 'u', c, 1);
        else if (!is_json && (c == '"' || c == '\\'))
            put(page, c == '"' ? "\\\"" : "\\\\", 2, 2);
        else
            put(page, text + i, size, c < 0x80 ? 1 : 2); /* none is wider, whatever the font */
        i += size ? size : 1;
    }
    if (!is_json)
        put(page, "\"", 1, 1);
}

/* A sentence of ours, broken between words. */
static void put_words(struct page *page, const char *text)
{
    while (*text) {
        size_t length = strcspn(text, " ");
        length += text[length] == ' ';
        put(page, text, length, length);
        text += length;
    }
}

static void put_label(struct page *page, const char *label)
{
    tci_buf_printf(&page->out, "  %-*s", (int)indent - 2, label);
    page->column = indent;
}

static void put_list(struct page *page, const char *label, const char *const *items)
{
    for (; *items; items++, label = "") {
        put_label(page, label);
        put_value(page, *items, strlen(*items), false);
        new_line(page);
    }
}

static void put_input(struct page *page, const struct tc_approval *approval)
{
    if (!approval->input && !approval->input_unseen)
        return;
    put_label(page, "input");
    if (approval->input_unseen)
        put_words(page, "is passed to it while it runs; it cannot be shown here");
    else
        put_value(page, approval->input, approval->input_length, false);
    new_line(page);
}

static void compose(struct page *page, const struct tc_approval *approval)
{
    put_words(page, "toolcage: a call needs your approval");
    new_line(page);
    put_list(page, "tool", (const char *const[]){ approval->tool, NULL });
    if (approval->agent)
        put_list(page, "agent", (const char *const[]){ approval->agent, NULL });
    put_list(page, "command", approval->argv);
    if (approval->arguments_json) {
        put_label(page, "arguments");
        put_value(page, approval->arguments_json, strlen(approval->arguments_json), true);
        new_line(page);
    }
    put_input(page, approval);
    put_list(page, "reads", approval->readable);
    put_list(page, "writes", approval->writable);
    put_list(page, "network", approval->network);
}

/* ---- the terminal's state ----------------------------------------------------------------- */

/* A terminal that reads bytes takes some of the bytes of UTF-8 for controls. */
static bool is_unicode_terminal(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    for (size_t i = 0; i < tci_array_size(names); i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strcasestr(value, "UTF-8") || strcasestr(value, "UTF8");
    }
    return false;
}

/* Nothing here clears or moves what a person has on the screen above the cursor. */
static void put_reset(struct page *page)
{
    static const char *const reset[] = {
        "\030\033\\",       /* ends a control string that would swallow the question */
        "\033[!p",          /* soft reset: modes, margins, character sets */
        "\0337\033[r\0338", /* all lines scroll; the cursor stays. For terminals without the above */
        "\033[0m",          /* no concealed text, no colour of the background */
        "\033(B\017",       /* letters are letters, not lines */
        "\033[4l",          /* overwrite, do not insert */
        "\033[?7h\033[?25h", /* long lines go on, the cursor is seen */
        "\r\n\033[J",        /* nothing from before stands beside or below our lines */
    };
    const char *term = getenv("TERM");
    if (term && strcmp(term, "dumb") == 0)
        return;
    for (size_t i = 0; i < tci_array_size(reset); i++)
        tci_buf_string(&page->out, reset[i]);
    if (!page->is_ascii)
        tci_buf_string(&page->out, "\033%G"); /* UTF-8, where a tool has switched it off */
}

/* ---- the answer --------------------------------------------------------------------------- */

static bool is_yes(const char *line, size_t length)
{
    while (length && (line[length - 1] == '\n' || line[length - 1] == ' '))
        length--;
    return (length == 1 && strncasecmp(line, "y", 1) == 0) ||
           (length == 3 && strncasecmp(line, "yes", 3) == 0);
}

static bool refuse(const struct cli_terminal *terminal, const char *sentence)
{
    (void)cli_terminal_say(terminal, sentence, strlen(sentence));
    return false;
}

/* One line, typed after the question, on a terminal that still shows our lines as lines. */
static bool read_answer(const struct cli_terminal *terminal, const struct page *page)
{
    char line[64];
    size_t length = cli_terminal_read_line(terminal, line, sizeof line);
    unsigned columns = cli_terminal_columns(terminal);
    if (!length && tci_clock_us() >= terminal->deadline)
        return refuse(terminal, "\nno answer\n");
    if (!length || !is_yes(line, length))
        return false;
    if (columns && columns <= page->width)
        return refuse(terminal,
                      "toolcage: the terminal has become narrower, and the lines above are "
                      "no longer as they were written: it is refused\n");
    return true;
}

/* False: too narrow. */
static bool measure(struct page *page, const struct cli_terminal *terminal)
{
    unsigned columns = cli_terminal_columns(terminal);
    page->width = columns ? columns - 1
                          : width_unknown; /* some wrap when the last column is full */
    if (page->width > width_max)
        page->width = width_max;
    return !columns || columns >= columns_min;
}

static void compose_question(struct page *page, const struct cli_terminal *terminal,
                             const struct tc_approval *approval)
{
    char text[128], time[TCI_UNIT_TEXT_MAX];
    uint64_t ms = approval->timeout_ms, now = tci_clock_us();
    if (terminal->has_waited) {
        ms = now < terminal->deadline ? (terminal->deadline - now) / 1000 : 0;
        ms -= ms > 1000 ? ms % 1000 : 0;
    }
    (void)snprintf(text, sizeof text, "Allow it? (y or yes within %s; anything else is no) ",
                   tci_duration_format(ms, time));
    put_words(page, text);
}

static void note_length(struct page *page, const struct cli_terminal *terminal)
{
    unsigned rows = cli_terminal_rows(terminal);
    char text[96];
    /* The first line of the reset, and three at most for the question. */
    if (rows && page->lines + 4 > rows) {
        (void)snprintf(text, sizeof text,
                       "  (these are %zu lines: scroll up, and read all of them)", page->lines);
        put_words(page, text);
        new_line(page);
    }
}

/* Too late to read and answer it: nothing is shown, and the time runs out. */
static bool is_too_late(const struct cli_terminal *terminal)
{
    if (tci_clock_us() + 2 * (uint64_t)settle_ms * 1000 < terminal->deadline)
        return false;
    while (cli_terminal_pause(terminal, settle_ms))
        continue;
    return true;
}

static bool ask(const struct cli_terminal *terminal, struct page *page,
                const struct tc_approval *approval)
{
    size_t shown;
    if (terminal->has_waited && is_too_late(terminal))
        return false;
    if (!measure(page, terminal))
        return refuse(terminal,
                      "toolcage: a call needs your approval, and the terminal is too narrow "
                      "to show it (30 columns): it is refused\n");
    page->is_ascii = !is_unicode_terminal();
    put_reset(page);
    compose(page, approval);
    note_length(page, terminal);
    if (page->out.too_large || page->out.no_memory)
        return refuse(terminal, "toolcage: a call needs your approval, and is longer than can be "
                                "shown: it is refused\n");
    shown = page->out.length;
    if (!cli_terminal_say(terminal, page->out.data, shown))
        return false;
    /* A person may still be typing the answer to the question that was here before. */
    if (terminal->has_waited && !cli_terminal_pause(terminal, settle_ms))
        return false;
    /* What was typed until here was typed before the question could be read. */
    compose_question(page, terminal, approval);
    if (page->out.too_large || page->out.no_memory || !cli_terminal_forget_typed(terminal) ||
        !cli_terminal_say(terminal, page->out.data + shown, page->out.length - shown))
        return false;
    return read_answer(terminal, page);
}

int cli_approve(void *context, const struct tc_approval *approval)
{
    uint64_t now = tci_clock_us(), wait = approval->timeout_ms;
    uint64_t deadline = wait < (UINT64_MAX - now) / 1000 ? now + wait * 1000 : UINT64_MAX;
    struct page page = { .out = TCI_BUF_INIT(shown_max) };
    struct cli_terminal terminal;
    int answer;

    (void)context;
    answer = cli_terminal_open(&terminal, deadline);
    if (answer == 1)
        answer = ask(&terminal, &page, approval) ? 1 : 0;
    cli_terminal_close(&terminal);
    tci_buf_free(&page.out);
    return answer;
}
