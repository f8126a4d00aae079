/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: attempts on the caller's terminal: typing into it (TIOCSTI), the console's selection
 * (TIOCLINUX), and opening it at all. They report on standard error as well, since standard output
 * may be the terminal itself. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>
#include "attempt.h"

#ifndef TIOCLINUX
#define TIOCLINUX 0x541C
#endif

/* Any way to a terminal: the controlling one, or one of our streams. */
static int find_terminal(void)
{
    int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
    for (int i = 0; fd < 0 && i < 3; i++) {
        if (isatty(i))
            fd = i;
    }
    return fd;
}

static int type_into(unsigned long request)
{
    int fd = find_terminal();
    if (fd < 0)
        return held("find a terminal");
    for (const char *c = "canary"; *c; c++) {
        /* Not through glibc, which could cut the number down. */
        if (syscall(SYS_ioctl, fd, request, c) < 0)
            return held("ioctl %#lx", request);
    }
    return escaped("typed into the terminal with ioctl %#lx", request);
}

static int type_plain(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return type_into(TIOCSTI);
}

/* The kernel looks at 32 bits of the number; a filter that compares 64 lets this one pass. */
static int type_high_bits(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return type_into((unsigned long)TIOCSTI | 1UL << 32);
}

static int type_all_high_bits(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return type_into((unsigned long)TIOCSTI | 0xffffffffUL << 32);
}

static int console_state(int argc, char **argv)
{
    (void)argc;
    char command = 6; /* asks for the shift state: changes nothing */
    int fd = open(argv[0], O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return held("open %s", argv[0]);
    int result = ioctl(fd, TIOCLINUX, &command);
    if (result < 0 && (errno == EIO || errno == ENOTTY))
        return absent("no console behind %s", argv[0]);
    return judge(result, "TIOCLINUX");
}

/* The same call where no console is: refused by a filter it says EPERM, by the device ENOTTY. */
static int console_call(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    char command = 6;
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return held("open /dev/null");
    if (syscall(SYS_ioctl, fd, (unsigned long)TIOCLINUX | 1UL << 32, &command) < 0 &&
        errno == ENOTTY)
        return escaped("TIOCLINUX came to the device");
    return held("TIOCLINUX");
}

static int open_terminal(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return judge(open("/dev/tty", O_RDWR | O_CLOEXEC), "opened the controlling terminal");
}

/* A session leader without a terminal takes the next one that it opens. */
static int take_terminal(int argc, char **argv)
{
    (void)argc;
    setsid();
    int fd = open(argv[0], O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return held("open %s", argv[0]);
    return judge(ioctl(fd, TIOCSCTTY, 0), "took a terminal of the host");
}

const struct attempt terminal_attempts[] = {
    { "tiocsti", 0, type_plain, "type into the terminal" },
    { "tiocsti-high-bit", 0, type_high_bits, "type into the terminal, with bit 32 set" },
    { "tiocsti-high-bits", 0, type_all_high_bits,
      "type into the terminal, with all high bits set" },
    { "tioclinux", 1, console_state, "ask the console at DEVICE" },
    { "tioclinux-call", 0, console_call, "make the console's call, with bit 32 set" },
    { "open-terminal", 0, open_terminal, "open /dev/tty" },
    { "take-terminal", 1, take_terminal, "take terminal DEVICE of the host" },
    { 0 },
};
