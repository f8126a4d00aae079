/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the counter-tests. They do what the policy grants and must work in every cage: without them
 * a cage that starts nothing would pass as a safe one. "ok: ..." and 0, or "failed: ..." and 3. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "attempt.h"

enum { CONTROL_FAILED = 3 };

static int failed(const char *step)
{
    printf("failed: %s: %s\n", step, strerror(errno));
    return CONTROL_FAILED;
}

static int read_granted(int argc, char **argv)
{
    char text[256] = "";
    (void)argc;
    int fd = open(argv[0], O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
        return failed("read");
    printf("ok: %s\n", text);
    return 0;
}

static int write_granted(int argc, char **argv)
{
    (void)argc;
    if (make_file(argv[0], "from the cage", 0644) < 0)
        return failed("write");
    printf("ok: wrote %s\n", argv[0]);
    return 0;
}

static int fork_granted(int argc, char **argv)
{
    int status = 0;
    (void)argc;
    (void)argv;
    int pid = fork();
    if (pid == 0)
        _exit(7);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 7)
        return failed("fork and wait");
    printf("ok: a child came back\n");
    return 0;
}

static int echo_input(int argc, char **argv)
{
    char text[4096];
    (void)argc;
    (void)argv;
    ssize_t n = read(STDIN_FILENO, text, sizeof(text));
    if (n < 0)
        return failed("read standard input");
    printf("ok: %.*s\n", (int)n, text);
    return 0;
}

static int say_escaped(int argc, char **argv)
{
    (void)argc;
    return escaped("%s", argv[0]);
}

const struct attempt control_attempts[] = {
    { "control-read", 1, read_granted, "read FILE, which is granted" },
    { "control-write", 1, write_granted, "write FILE in a directory that is granted" },
    { "control-fork", 0, fork_granted, "make a child" },
    { "control-stdin", 0, echo_input, "read standard input" },
    { "control-escape", 1, say_escaped, "say TEXT as an escape: the tests must see it" },
    { 0 },
};
