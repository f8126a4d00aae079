/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: `--tty`. The command gets the slave of a pseudo terminal of its own as its controlling
 * terminal; the user's is never handed in. The attack: a command that pushes characters into the
 * terminal that it was given, to be run by the user's shell when it is back; what it pushes into its
 * own ends with it.
 */
#include "cli/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "base/fd.h"

static int find_user_terminal(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (isatty(fd))
            return fd;
    return -1;
}

/* The command's terminal begins as the user's is: same keys, same size. */
static void copy_settings(const struct exec_terminal *terminal)
{
    struct termios settings;
    if (terminal->user >= 0 && tcgetattr(terminal->user, &settings) == 0)
        (void)tcsetattr(terminal->slave, TCSANOW, &settings);
    exec_terminal_resize(terminal);
}

static void make_raw(struct exec_terminal *terminal)
{
    struct termios raw;
    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &terminal->saved) < 0)
        return;
    raw = terminal->saved;
    cfmakeraw(&raw);
    terminal->raw = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

int exec_terminal_open(struct exec_terminal *terminal, struct tc_error *reterr)
{
    *terminal = (struct exec_terminal){ .master = -1, .slave = -1, .after_line = true };
    terminal->user = find_user_terminal();
    terminal->input = STDIN_FILENO;
    terminal->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (terminal->master < 0 || grantpt(terminal->master) < 0 || unlockpt(terminal->master) < 0)
        return tci_error_errno(reterr, errno, "cannot make a pseudo terminal");
    /* By handle, not by name: /dev/pts of this host may be another one. */
    terminal->slave = ioctl(terminal->master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal->slave < 0)
        return tci_error_errno(reterr, errno, "cannot open the pseudo terminal");
    copy_settings(terminal);
    make_raw(terminal);
    return 0;
}

void exec_terminal_close(struct exec_terminal *terminal)
{
    if (terminal->raw)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal->saved);
    terminal->raw = false;
    terminal->master = tci_close(terminal->master);
    terminal->slave = tci_close(terminal->slave);
}

void exec_terminal_resize(const struct exec_terminal *terminal)
{
    struct winsize size;
    if (terminal->user >= 0 && ioctl(terminal->user, TIOCGWINSZ, &size) == 0)
        (void)ioctl(terminal->master, TIOCSWINSZ, &size);
}

/* What a keyboard would send for the end of input: once for a line that has begun, once for itself. */
static void end_of_input(struct exec_terminal *terminal)
{
    struct termios settings;
    char key = 4;
    if (tcgetattr(terminal->master, &settings) == 0 && settings.c_cc[VEOF])
        key = (char)settings.c_cc[VEOF];
    terminal->bytes[0] = terminal->bytes[1] = key;
    terminal->done = 0;
    terminal->length = terminal->after_line ? 1 : 2;
    terminal->input = -1;
}

void exec_terminal_relay(struct exec_terminal *terminal, bool readable)
{
    ssize_t n;
    if (readable && terminal->done == terminal->length && terminal->input >= 0) {
        n = tci_read_some(terminal->input, terminal->bytes, sizeof terminal->bytes);
        terminal->done = 0;
        terminal->length = n > 0 ? (size_t)n : 0;
        if (n > 0)
            terminal->after_line = terminal->bytes[n - 1] == '\n' || terminal->bytes[n - 1] == '\r';
        else if (n == 0 || errno != EAGAIN)
            end_of_input(terminal);
    }
    if (terminal->done < terminal->length) {
        n = write(terminal->master, terminal->bytes + terminal->done,
                  terminal->length - terminal->done);
        if (n > 0)
            terminal->done += (size_t)n;
        else if (errno != EAGAIN && errno != EINTR)
            terminal->done = terminal->length; /* nobody is there to read it */
    }
}

int exec_terminal_show(struct exec_terminal *terminal, struct tc_call *call,
                       struct exec_writer *out)
{
    char bytes[4096];
    ssize_t n;
    while (!exec_writer_is_behind(out) &&
           (n = tci_read_some(terminal->master, bytes, sizeof bytes)) > 0)
        if (exec_writer_write(out, bytes, tci_call_count_output(call, (size_t)n)) < 0)
            return -1;
    return 0;
}
