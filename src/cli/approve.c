/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: asking the person at the terminal whether a call may be made.
 *
 * The attacks. An argument that draws a prompt of its own, or moves the cursor over the real one: every
 * value stands in quotes with controls, direction marks and bad bytes written out, is broken into lines
 * here and not by the terminal, and no line of it begins where ours begin. An argument so long that what
 * matters scrolls away: everything is shown or nothing is asked. A "y" that was typed or piped for
 * something else: only /dev/tty is read, and what was typed before the question is thrown away.
 */
#include "cli/approve.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "policy/units.h"

enum { shown_max = 32768, indent = 13, width = 76, nobody = -1 };

/* ---- what is shown ------------------------------------------------------------------------ */

struct page {
    struct tci_buf out;
    size_t lines, column;
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
    if (page->column + columns > width) {
        new_line(page);
        tci_buf_printf(&page->out, "%*s", (int)indent, "| ");
        page->column = indent;
    }
    tci_buf_append(&page->out, text, length);
    page->column += columns;
}

static void put_escape(struct page *page, char kind, uint32_t value)
{
    char text[16];
    int length = snprintf(text, sizeof text, "\\%c{%x}", kind, value);
    put(page, text, (size_t)length, (size_t)length);
}

/* `is_json`: it has quotes and escapes of its own. */
static void put_value(struct page *page, const char *text, size_t length, bool is_json)
{
    if (!is_json)
        put(page, "\"", 1, 1);
    for (size_t i = 0; i < length;) {
        uint32_t c = 0;
        size_t size = tci_utf8_decode(text + i, length - i, &c);
        if (!size)
            put_escape(page, 'x', (unsigned char)text[i]);
        else if (c < 0x20 || (c >= 0x7f && c <= 0x9f) || tci_utf8_is_deceptive(c))
            put_escape(page, 'u', c);
        else if (!is_json && (c == '"' || c == '\\'))
            put(page, c == '"' ? "\\\"" : "\\\\", 2, 2);
        else
            put(page, text + i, size, c < 0x80 ? 1 : 2); /* some are two columns wide */
        i += size ? size : 1;
    }
    if (!is_json)
        put(page, "\"", 1, 1);
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
        tci_buf_string(&page->out, "is passed to it while it runs; it cannot be shown here");
    else
        put_value(page, approval->input, approval->input_length, false);
    new_line(page);
}

static void compose(struct page *page, const struct tc_approval *approval)
{
    tci_buf_string(&page->out, "toolcage: a call needs your approval");
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

/* ---- the terminal ------------------------------------------------------------------------- */

struct terminal {
    int fd, signals;
    struct termios saved;
    bool is_changed;
    sigset_t before;
};

/* As a person expects it, also where --tty has made it raw: lines, echo, and keys that end us. */
static void set_up(struct terminal *terminal)
{
    struct termios plain;
    if (tcgetattr(terminal->fd, &terminal->saved) < 0)
        return;
    plain = terminal->saved;
    plain.c_lflag |= ICANON | ECHO | ECHOE | ISIG;
    plain.c_iflag |= ICRNL;
    plain.c_oflag |= OPOST | ONLCR;
    terminal->is_changed = tcsetattr(terminal->fd, TCSAFLUSH, &plain) == 0;
}

/* Signals that mean no. They stay pending: whoever waits for them gets them afterwards. */
static int watch_signals(struct terminal *terminal)
{
    static const int wanted[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
    struct sigaction action;
    sigset_t set;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < tci_array_size(wanted); i++)
        if (sigaction(wanted[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            (void)sigaddset(&set, wanted[i]);
    if (pthread_sigmask(SIG_BLOCK, &set, &terminal->before) != 0)
        return -1;
    terminal->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return terminal->signals < 0 ? -1 : 0;
}

/* False: nobody is there. In the background, a question would stop us, and nobody would see why. */
static bool open_terminal(struct terminal *terminal)
{
    *terminal = (struct terminal){ .fd = -1, .signals = -1 };
    (void)pthread_sigmask(SIG_BLOCK, NULL, &terminal->before);
    terminal->fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal->fd < 0 || tcgetpgrp(terminal->fd) != getpgrp() || watch_signals(terminal) < 0)
        return false;
    set_up(terminal);
    return terminal->is_changed;
}

static void close_terminal(struct terminal *terminal)
{
    if (terminal->is_changed)
        (void)tcsetattr(terminal->fd, TCSAFLUSH, &terminal->saved);
    tci_close(terminal->fd);
    tci_close(terminal->signals);
    (void)pthread_sigmask(SIG_SETMASK, &terminal->before, NULL);
}

static bool say(const struct terminal *terminal, const char *text, size_t length)
{
    while (length) {
        ssize_t n = write(terminal->fd, text, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        text += n;
        length -= (size_t)n;
    }
    return true;
}

/* ---- the answer --------------------------------------------------------------------------- */

static bool is_yes(const char *line, size_t length)
{
    while (length && (line[length - 1] == '\n' || line[length - 1] == ' '))
        length--;
    return (length == 1 && strncasecmp(line, "y", 1) == 0) ||
           (length == 3 && strncasecmp(line, "yes", 3) == 0);
}

/* One line, typed after the question. */
static bool read_answer(const struct terminal *terminal, uint64_t deadline)
{
    struct pollfd fds[] = { { .fd = terminal->fd, .events = POLLIN },
                            { .fd = terminal->signals, .events = POLLIN } };
    char line[64];
    uint64_t now;
    ssize_t n;

    while ((now = tci_clock_us()) < deadline) {
        uint64_t ms = (deadline - now + 999) / 1000;
        int ready = poll(fds, 2, ms < 60000 ? (int)ms : 60000);
        if ((ready < 0 && errno != EINTR) || fds[1].revents)
            return false;
        if (ready <= 0 || !fds[0].revents)
            continue;
        n = read(terminal->fd, line, sizeof line);
        return n > 0 && line[n - 1] == '\n' && is_yes(line, (size_t)n);
    }
    (void)say(terminal, "\nno answer\n", 11);
    return false;
}

static void note_length(struct page *page, const struct terminal *terminal)
{
    struct winsize size = { 0 };
    (void)ioctl(terminal->fd, TIOCGWINSZ, &size);
    if (size.ws_row && page->lines + 2 > size.ws_row)
        tci_buf_printf(&page->out, "  (these are %zu lines: scroll up, and read all of them)\n",
                       page->lines);
}

static bool ask(const struct terminal *terminal, struct page *page,
                const struct tc_approval *approval, uint64_t deadline)
{
    static const char too_long[] =
        "toolcage: a call needs your approval, and is longer than can be "
        "shown: it is refused\n";
    char question[128], time[TCI_UNIT_TEXT_MAX];
    int length = snprintf(question, sizeof question,
                          "Allow it? (y or yes within %s; anything else is no) ",
                          tci_duration_format(approval->timeout_ms, time));

    compose(page, approval);
    note_length(page, terminal);
    if (page->out.too_large || page->out.no_memory) {
        (void)say(terminal, too_long, sizeof too_long - 1);
        return false;
    }
    /* What was typed until here was typed before the question could be read. */
    if (!say(terminal, page->out.data, page->out.length) || tcdrain(terminal->fd) < 0 ||
        tcflush(terminal->fd, TCIFLUSH) < 0 || !say(terminal, question, (size_t)length))
        return false;
    return read_answer(terminal, deadline);
}

int cli_approve(void *context, const struct tc_approval *approval)
{
    uint64_t now = tci_clock_us(), wait = approval->timeout_ms;
    uint64_t deadline = wait < (UINT64_MAX - now) / 1000 ? now + wait * 1000 : UINT64_MAX;
    struct page page = { .out = TCI_BUF_INIT(shown_max) };
    struct terminal terminal;
    int answer = nobody;

    (void)context;
    if (open_terminal(&terminal))
        answer = ask(&terminal, &page, approval, deadline) ? 1 : 0;
    close_terminal(&terminal);
    tci_buf_free(&page.out);
    return answer;
}
