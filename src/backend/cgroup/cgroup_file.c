/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: reading and writing the small files of a control group. Trusts the kernel behind them, and
 * nothing about their size: what does not fit is cut.
 */
#include "backend/cgroup/cgroup_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

enum { FILE_NAME_MAX = 40 };

int64_t tci_cgroup_now_ms(void)
{
    return (int64_t)(tci_clock_us() / 1000);
}

int tci_cgroup_open_file(int base, const char *name, const char *file, int flags, int *ret)
{
    char path[TCI_CGROUP_NAME_MAX + FILE_NAME_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", name, file), fd;
    if (n < 0 || (size_t)n >= sizeof path)
        return ENAMETOOLONG;
    fd = openat(base, path, flags | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno;
    *ret = fd;
    return 0;
}

/* The kernel takes a value in one write or not at all. */
static int write_all(int fd, const char *text)
{
    size_t length = strlen(text);
    ssize_t n;
    int tries = 0;
    /* Lowering a limit can be given up for a signal, which is taken before the next try. */
    do
        n = write(fd, text, length);
    while (n < 0 && errno == EINTR && ++tries < 100);
    if (n < 0)
        return errno;
    return (size_t)n == length ? 0 : EIO;
}

/* The kernel gives these files in one piece, as far as there is room. */
static int read_all(int fd, char *buffer, size_t size)
{
    ssize_t n = pread(fd, buffer, size - 1, 0);
    buffer[n > 0 ? n : 0] = '\0';
    return n < 0 ? errno : 0;
}

int tci_cgroup_write(int base, const char *name, const char *file, const char *text)
{
    int fd = -1, problem = tci_cgroup_open_file(base, name, file, O_WRONLY, &fd);
    if (problem)
        return problem;
    problem = write_all(fd, text);
    (void)close(fd);
    return problem;
}

int tci_cgroup_read(int base, const char *name, const char *file, char *buffer, size_t size)
{
    int fd = -1, problem = tci_cgroup_open_file(base, name, file, O_RDONLY, &fd);
    buffer[0] = '\0';
    if (problem)
        return problem;
    problem = read_all(fd, buffer, size);
    (void)close(fd);
    return problem;
}

int tci_cgroup_set(int base, const char *name, const char *file, const char *text)
{
    char back[64];
    int fd = -1, problem = tci_cgroup_open_file(base, name, file, O_RDWR, &fd);
    if (problem)
        return problem;
    problem = write_all(fd, text);
    if (!problem)
        problem = read_all(fd, back, sizeof back);
    (void)close(fd);
    if (problem)
        return problem;
    back[strcspn(back, "\n")] = '\0';
    return strcmp(back, text) == 0 ? 0 : ERANGE;
}

static uint64_t number(const char *text)
{
    if (strncmp(text, "max", 3) == 0)
        return UINT64_MAX;
    return *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : 0;
}

uint64_t tci_cgroup_number(int base, const char *name, const char *file)
{
    char text[32];
    return tci_cgroup_read(base, name, file, text, sizeof text) ? 0 : number(text);
}

uint64_t tci_cgroup_field(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) == 0 && line[length] == ' ')
            return number(line + length + 1);
    }
    return 0;
}
