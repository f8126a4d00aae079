/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: memory that a fork does not copy. A shared mapping stays shared: a file of the host that is
 * mapped for writing, a ring of io_uring, a segment that other processes have, a device's registers.
 * The attack: a function that was handed hostile arguments writes there, and is out of its cage without
 * one system call. What can be written, or made so, is replaced by a hole; what never can (a cache of
 * the C library) stays.
 *
 * Runs in a fork of the host: no allocation, no stdio.
 */
#include "backend/native/function.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/fd.h"

enum { text_max = 8192, passes_max = 8 };

/* "start-end perms offset device inode path" */
struct mapping {
    uintptr_t start, end;
    bool shared, device;
};

static const char *read_number(const char *at, uintptr_t *ret)
{
    *ret = 0;
    for (;; at++) {
        if (*at >= '0' && *at <= '9')
            *ret = *ret * 16 + (uintptr_t)(*at - '0');
        else if (*at >= 'a' && *at <= 'f')
            *ret = *ret * 16 + (uintptr_t)(*at - 'a' + 10);
        else
            return at;
    }
}

/* What looks like a device and is memory. */
static bool is_memory(const char *path)
{
    static const char *const places[] = { "/dev/zero", "/dev/shm/", "/dev/hugepages/" };
    for (size_t i = 0; i < tci_array_size(places); i++)
        if (strncmp(path, places[i], strlen(places[i])) == 0)
            return true;
    return false;
}

static bool read_line(const char *line, struct mapping *ret)
{
    const char *at = read_number(line, &ret->start), *path;
    if (*at != '-')
        return false;
    at = read_number(at + 1, &ret->end);
    if (*at != ' ' || strlen(at) < 5 || ret->end <= ret->start)
        return false;
    ret->shared = at[4] == 's';
    path = strchr(at, '/');
    ret->device = path && strncmp(path, "/dev/", 5) == 0 && !is_memory(path);
    return true;
}

/* 1: it is gone; 0: it may stay; -1 with errno. */
static int forget(const struct mapping *m)
{
    void *start = (void *)m->start; /* NOLINT: an address from the kernel */
    size_t size = m->end - m->start;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (!m->shared && !m->device)
        return 0;
    /* The kernel refuses this exactly where writing is out of the question for ever. */
    if (m->shared && !m->device && mprotect(start, size, PROT_READ | PROT_WRITE) < 0 &&
        errno == EACCES)
        return 0;
    if (here >= m->start && here < m->end) {
        errno = EFAULT; /* a stack that is shared with somebody: no function can run on it */
        return -1;
    }
    start = mmap(start, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
                 -1, 0);
    return start == MAP_FAILED ? -1 : 1;
}

static int invalid(void)
{
    errno = EINVAL;
    return -1;
}

/* All whole lines; what is behind the last one is moved to the front. *ret_gone counts. */
static int take_lines(char *text, size_t *length, unsigned *ret_gone)
{
    char *line = text, *end;
    while ((end = memchr(line, '\n', *length - (size_t)(line - text))) != NULL) {
        struct mapping m;
        int r;
        *end = '\0';
        if (!read_line(line, &m))
            return invalid();
        r = forget(&m);
        if (r < 0)
            return -1;
        *ret_gone += (unsigned)r;
        line = end + 1;
    }
    *length -= (size_t)(line - text);
    memmove(text, line, *length);
    return 0;
}

static int look_through(char text[text_max], unsigned *ret_gone)
{
    size_t length = 0;
    ssize_t n;
    tc_cleanup(tci_closep) int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    while ((n = tci_read_some(fd, text + length, text_max - length)) > 0) {
        length += (size_t)n;
        if (take_lines(text, &length, ret_gone) < 0)
            return -1;
        if (length == text_max)
            return invalid(); /* no path is that long */
    }
    return n < 0 ? -1 : length ? invalid() : 0;
}

/* Until there is nothing left to be taken: the list changes while it is read. */
int tci_native_forget_shared(void)
{
    char text[text_max];
    for (unsigned pass = 0; pass < passes_max; pass++) {
        unsigned gone = 0;
        if (look_through(text, &gone) < 0)
            return -1;
        if (!gone)
            return 0;
    }
    return invalid();
}
