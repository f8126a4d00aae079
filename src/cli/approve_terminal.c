/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the terminal while a question stands on it. One question at a time, whoever asks: otherwise
 * the "y" for one call approves another that a model has made at the same moment.
 *
 * The lock is flock() on the terminal's own device. It ends with us, and needs no file elsewhere.
 * /dev/tty will not do: its inode is the same for every terminal. Somebody who holds the lock for ever
 * turns every answer into no. Nothing waits past the deadline, not even for a terminal that takes no
 * output (^S).
 */
#include "cli/approve_terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"

enum { retry_ms = 40, drain_ms = 5, pts_major_first = 136, pts_major_last = 143 };

/* ---- waiting ------------------------------------------------------------------------------ */

/* For `events` of the terminal (0: for nothing), a signal, or `ms`. 1: ready; 0: `ms` are over; -1: a
 * signal, or the deadline. */
static int wait_for(const struct cli_terminal *terminal, short events, uint64_t ms)
{
    struct pollfd fds[] = { { .fd = terminal->signals, .events = POLLIN },
                            { .fd = events ? terminal->fd : -1, .events = events } };
    uint64_t now = tci_clock_us(), left;
    int ready;
    if (now >= terminal->deadline)
        return -1;
    left = (terminal->deadline - now + 999) / 1000;
    ms = ms < left ? ms : left;
    ready = poll(fds, 2, ms < 60000 ? (int)ms : 60000);
    if ((ready < 0 && errno != EINTR) || (ready > 0 && fds[0].revents))
        return -1;
    return ready > 0 && fds[1].revents;
}

bool cli_terminal_pause(const struct cli_terminal *terminal, uint64_t ms)
{
    uint64_t end = tci_clock_us() + ms * 1000, now;
    while ((now = tci_clock_us()) < end)
        if (wait_for(terminal, 0, (end - now + 999) / 1000) < 0)
            return false;
    return true;
}

/* ---- opening ------------------------------------------------------------------------------ */

/* Signals that mean no. They stay pending: whoever waits for them gets them afterwards. */
static bool watch_signals(struct cli_terminal *terminal)
{
    static const int wanted[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
    struct sigaction action;
    sigset_t set;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < tci_array_size(wanted); i++)
        if (sigaction(wanted[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            (void)sigaddset(&set, wanted[i]);
    if (pthread_sigmask(SIG_BLOCK, &set, &terminal->before) != 0)
        return false;
    terminal->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return terminal->signals >= 0;
}

/* Looked at before it is opened: opening another kind of file can do something. */
static int open_node(const char *path, dev_t device)
{
    struct stat status;
    int fd;
    if (stat(path, &status) < 0 || !S_ISCHR(status.st_mode) || status.st_rdev != device)
        return -1;
    fd = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    /* The number alone is not enough: a container has a /dev/pts/3 of its own. The kernel tells the
     * session of a terminal only to those whose terminal it is. */
    if (fd >= 0 && (fstat(fd, &status) < 0 || !S_ISCHR(status.st_mode) ||
                    status.st_rdev != device || tcgetsid(fd) < 0))
        fd = tci_close(fd);
    return fd;
}

/* The device behind /dev/tty: a new open file, so that the lock is ours and not our parent's. -1: it
 * cannot be found, or belongs to somebody else. */
static int open_device(int tty)
{
    char path[64], link[512];
    unsigned number = 0;
    dev_t device;
    ssize_t n;
    int fd;

    if (ioctl(tty, TIOCGDEV, &number) < 0)
        return -1;
    device = (dev_t)number;
    for (int standard = 0; standard <= 2; standard++) {
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", standard);
        if ((fd = open_node(path, device)) >= 0)
            return fd;
    }
    if (major(device) >= pts_major_first && major(device) <= pts_major_last) {
        unsigned pts = (major(device) - pts_major_first) * 256 + minor(device);
        (void)snprintf(path, sizeof path, "/dev/pts/%u", pts);
        return open_node(path, device);
    }
    (void)snprintf(path, sizeof path, "/sys/dev/char/%u:%u", major(device), minor(device));
    n = readlink(path, link, sizeof link - 1);
    if (n <= 0)
        return -1;
    link[n] = '\0';
    (void)snprintf(path, sizeof path, "/dev/%.40s",
                   strrchr(link, '/') ? strrchr(link, '/') + 1 : link);
    return open_node(path, device);
}

static bool take_lock(struct cli_terminal *terminal)
{
    while (flock(terminal->device, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return false;
        terminal->has_waited = true;
        if (wait_for(terminal, 0, retry_ms) < 0)
            return false;
    }
    return true;
}

/* As a person expects it, also where --tty has made it raw: lines, echo, and keys that end us. */
static bool set_up(struct cli_terminal *terminal)
{
    struct termios plain;
    if (tcgetattr(terminal->fd, &terminal->saved) < 0)
        return false;
    plain = terminal->saved;
    plain.c_lflag |= ICANON | ECHO | ECHOE | ISIG;
    plain.c_iflag |= ICRNL;
    plain.c_oflag |= OPOST | ONLCR;
    terminal->is_changed = tcsetattr(terminal->fd, TCSANOW, &plain) == 0;
    return terminal->is_changed && tcflush(terminal->fd, TCIFLUSH) == 0;
}

/* In the background, a question would stop us, and nobody would see why. */
static bool is_in_front(const struct cli_terminal *terminal)
{
    return tcgetpgrp(terminal->fd) == getpgrp();
}

int cli_terminal_open(struct cli_terminal *terminal, uint64_t deadline)
{
    static const char no_lock[] =
        "toolcage: a call needs your approval, and this terminal cannot be kept for one question "
        "(does it belong to another user?): it is refused\n";
    *terminal = (struct cli_terminal){ .fd = -1, .device = -1, .signals = -1 };
    terminal->deadline = deadline;
    (void)pthread_sigmask(SIG_BLOCK, NULL, &terminal->before);
    /* Not blocking: somebody else may read the line between poll() and read(). */
    terminal->fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (terminal->fd < 0 || !is_in_front(terminal) || !watch_signals(terminal))
        return -1;
    terminal->device = open_device(terminal->fd);
    if (terminal->device < 0) {
        (void)cli_terminal_say(terminal, no_lock, sizeof no_lock - 1);
        return -1;
    }
    if (!take_lock(terminal))
        return 0;
    /* Both only now: before, the settings were those of another question, and time has passed. */
    return is_in_front(terminal) && set_up(terminal) ? 1 : -1;
}

void cli_terminal_close(struct cli_terminal *terminal)
{
    if (terminal->is_changed) {
        (void)tcsetattr(terminal->fd, TCSANOW, &terminal->saved);
        (void)tcflush(terminal->fd, TCIFLUSH);
    }
    if (terminal->device >= 0)
        (void)flock(terminal->device, LOCK_UN); /* also where a child still holds a copy */
    tci_close(terminal->device);
    tci_close(terminal->fd);
    tci_close(terminal->signals);
    (void)pthread_sigmask(SIG_SETMASK, &terminal->before, NULL);
}

/* ---- using -------------------------------------------------------------------------------- */

unsigned cli_terminal_columns(const struct cli_terminal *terminal)
{
    struct winsize size = { 0 };
    return ioctl(terminal->fd, TIOCGWINSZ, &size) < 0 ? 0 : size.ws_col;
}

unsigned cli_terminal_rows(const struct cli_terminal *terminal)
{
    struct winsize size = { 0 };
    return ioctl(terminal->fd, TIOCGWINSZ, &size) < 0 ? 0 : size.ws_row;
}

bool cli_terminal_say(const struct cli_terminal *terminal, const char *text, size_t length)
{
    while (length) {
        ssize_t n = write(terminal->fd, text, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN && wait_for(terminal, POLLOUT, UINT64_MAX) >= 0)
            continue;
        if (n <= 0)
            return false;
        text += n;
        length -= (size_t)n;
    }
    return true;
}

bool cli_terminal_forget_typed(const struct cli_terminal *terminal)
{
    int waiting = 0;
    /* Not tcdrain(): it would wait for ever on a line that ^S has stopped. */
    while (ioctl(terminal->fd, TIOCOUTQ, &waiting) == 0 && waiting > 0)
        if (!cli_terminal_pause(terminal, drain_ms))
            return false;
    return tcflush(terminal->fd, TCIFLUSH) == 0;
}

size_t cli_terminal_read_line(const struct cli_terminal *terminal, char *line, size_t size)
{
    int ready;
    while ((ready = wait_for(terminal, POLLIN, UINT64_MAX)) >= 0) {
        ssize_t n;
        if (!ready)
            continue;
        n = read(terminal->fd, line, size);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            continue; /* somebody else has read it */
        return n > 0 && line[n - 1] == '\n' ? (size_t)n : 0;
    }
    return 0;
}
