/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the list of escape attempts and what they share.
 *
 *   escape-attempts --list            name, a tab, what it tries
 *   escape-attempts NAME ARGUMENT...  tries it
 *   escape-attempts --launch|--victim|--ipc|--handle|--swap ...   the host's side (helpers.c)
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "attempt.h"

static const struct attempt *const classes[] = {
    read_attempts,    write_attempts,   plant_attempts,   mount_attempts,
    device_attempts,  process_attempts, signal_attempts,  namespace_attempts,
    outlive_attempts, network_attempts, family_attempts,  ring_attempts,
    ipc_attempts,     kernel_attempts,  foreign_attempts, terminal_attempts,
    inherit_attempts, exec_attempts,    memory_attempts,  process_limit_attempts,
    disk_attempts,    control_attempts,
};

/* One line at once and past stdio's buffers: a process that dies next has still said it. */
__attribute__((format(printf, 2, 0))) static void say(const char *word, const char *format,
                                                      va_list list, const char *cause)
{
    char text[4608];
    int length = snprintf(text, sizeof(text), "%s: ", word);
    length += vsnprintf(text + length, sizeof(text) - (size_t)length, format, list);
    if (length > (int)sizeof(text) - 200)
        length = (int)sizeof(text) - 200;
    length += snprintf(text + length, sizeof(text) - (size_t)length, "%s\n", cause);
    write_all(STDOUT_FILENO, text, (size_t)length);
}

int escaped(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    say("ESCAPED", format, list, "");
    va_end(list);
    return ESCAPED;
}

int absent(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    say("absent", format, list, "");
    va_end(list);
    return ABSENT;
}

int held(const char *format, ...)
{
    char cause[128];
    snprintf(cause, sizeof(cause), ": %s (%d)", strerror(errno), errno);
    va_list list;
    va_start(list, format);
    say("held", format, list, cause);
    va_end(list);
    return HELD;
}

int judge(long result, const char *step)
{
    return result < 0 ? held("%s", step) : escaped("%s", step);
}

int loot_fd(int fd, const char *how)
{
    char text[4096];
    ssize_t length = pread(fd, text, sizeof(text) - 1, 0);
    if (length < 0 && errno == ESPIPE)
        length = read(fd, text, sizeof(text) - 1);
    if (length < 0)
        return held("%s: read", how);
    text[length] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return escaped("%s: %s", how, text);
}

int loot_path(const char *path, const char *how)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return held("%s: open %s", how, path);
    int result = loot_fd(fd, how);
    close(fd);
    return result;
}

long number(const char *text)
{
    return strtol(text, NULL, 0);
}

const char *join(const char *a, const char *b, const char *c)
{
    static char path[4096];
    snprintf(path, sizeof(path), "%s%s%s", a, b, c);
    return path;
}

void sleep_ms(long milliseconds)
{
    struct timespec left = { milliseconds / 1000, milliseconds % 1000 * 1000000 };
    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

int write_all(int fd, const void *bytes, size_t length)
{
    const char *next = bytes;
    while (length > 0) {
        ssize_t n = write(fd, next, length);
        if (n < 0)
            return -1;
        next += n;
        length -= (size_t)n;
    }
    return 0;
}

int make_file(const char *path, const char *text, unsigned mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, mode);
    if (fd < 0)
        return -1;
    int result = write_all(fd, text, strlen(text));
    close(fd);
    return result;
}

void end_child(int pid)
{
    if (pid <= 0)
        return;
    int saved = errno;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    errno = saved;
}

bool own_mounts(void)
{
    if (unshare(CLONE_NEWNS) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return false;
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static int list(void)
{
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        for (const struct attempt *a = classes[i]; a->name; a++)
            printf("%s\t%s\n", a->name, a->what);
    }
    return fflush(stdout) == 0 ? 0 : USAGE;
}

static const struct attempt *find(const char *name)
{
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        for (const struct attempt *a = classes[i]; a->name; a++) {
            if (strcmp(a->name, name) == 0)
                return a;
        }
    }
    return NULL;
}

static int usage(const char *why)
{
    fprintf(stderr, "escape-attempts: %s\n", why);
    return USAGE;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return usage("give --list or the name of an attempt");
    if (strcmp(argv[1], "--list") == 0)
        return list();
    if (strcmp(argv[1], "--launch") == 0)
        return helper_launch(argc - 2, argv + 2);
    if (strcmp(argv[1], "--victim") == 0)
        return helper_victim(argc - 2, argv + 2);
    if (strcmp(argv[1], "--ipc") == 0)
        return helper_ipc(argc - 2, argv + 2);
    if (strcmp(argv[1], "--handle") == 0)
        return helper_handle(argc - 2, argv + 2);
    if (strcmp(argv[1], "--swap") == 0)
        return helper_swap(argc - 2, argv + 2);
    const struct attempt *attempt = find(argv[1]);
    if (!attempt)
        return usage("no such attempt");
    if (argc - 2 < attempt->arguments)
        return usage("this attempt needs more arguments");
    return attempt->run(argc - 2, argv + 2);
}
