/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: reading from a process of the cage. All of it is the cage's own word: other threads of it may
 * change a string between the kernel's look and ours, which can only make it lie about itself.
 * Nothing is opened: /proc links are read as text.
 */
#include "backend/native/trace_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

size_t tci_trace_read(int id, uint64_t address, void *buffer, size_t size)
{
    /* Two pieces, so that a string just before a page that is not there can be read. */
    const uint64_t page = 4096;
    size_t first = (size_t)(page - address % page);
    struct iovec local = { buffer, size };
    struct iovec remote[2] = { { (void *)(uintptr_t)address, first < size ? first : size },
                               { (void *)(uintptr_t)(address + first),
                                 first < size ? size - first : 0 } };
    ssize_t n = process_vm_readv(id, &local, 1, remote, first < size ? 2 : 1, 0);
    return n < 0 ? 0 : (size_t)n;
}

bool tci_trace_link(int id, const char *name, char buffer[TCI_PATH_MAX + 1])
{
    static const char deleted[] = " (deleted)";
    const size_t suffix = sizeof deleted - 1;
    char link[64];
    ssize_t n;
    (void)snprintf(link, sizeof link, "/proc/%d/%s", id, name);
    n = readlink(link, buffer, TCI_PATH_MAX);
    if (n <= 0 || n >= TCI_PATH_MAX || buffer[0] != '/')
        return false;
    buffer[n] = '\0';
    return (size_t)n <= suffix || strcmp(buffer + (size_t)n - suffix, deleted) != 0;
}

bool tci_trace_descriptor(int id, uint64_t fd, char buffer[TCI_PATH_MAX + 1])
{
    char name[32];
    (void)snprintf(name, sizeof name, "fd/%d", (int)fd);
    return (int)fd >= 0 && tci_trace_link(id, name, buffer);
}

/* One component more, or one fewer for "..". False: too long. */
static bool step(char *buffer, size_t *length, const char *name, size_t size)
{
    if (size == 2 && name[0] == '.' && name[1] == '.') {
        while (*length > 0 && buffer[--*length] != '/')
            ;
        return true;
    }
    if (*length + 1 + size > TCI_PATH_MAX)
        return false;
    buffer[(*length)++] = '/';
    memcpy(buffer + *length, name, size);
    *length += size;
    return true;
}

bool tci_trace_normalise(const char *base, const char *path, char buffer[TCI_PATH_MAX + 1],
                         bool *ret_exact)
{
    const char *parts[2] = { path[0] == '/' ? "" : base, path };
    size_t length = 0;
    bool after_name = false;
    *ret_exact = true;
    for (size_t i = 0; i < 2; i++)
        for (const char *from = parts[i]; *from;) {
            size_t size = strcspn(from, "/");
            bool is_up = size == 2 && from[0] == '.' && from[1] == '.';
            if (size > 0 && !(size == 1 && from[0] == '.')) {
                /* The base comes from the kernel and has no links in it. */
                *ret_exact &= !(is_up && after_name);
                after_name |= i == 1 && !is_up;
                if (!step(buffer, &length, from, size))
                    return false;
            }
            from += size + (from[size] == '/');
        }
    if (length == 0)
        buffer[length++] = '/';
    buffer[length] = '\0';
    return true;
}

bool tci_trace_argument_path(struct tci_trace *trace, const struct tci_tracee *tracee,
                             int directory, int path, bool *ret_exact)
{
    const __u64 *args = tracee->call.args;
    bool has_base = false;
    size_t n = args[path] ? tci_trace_read(tracee->id, args[path], trace->path, TCI_PATH_MAX + 1)
                          : 0;
    trace->path[n] = '\0';
    if (args[path] && (!n || strlen(trace->path) == n))
        return false; /* it could not be read to its end */
    if (trace->path[0] == '/')
        return tci_trace_normalise("", trace->path, trace->normal, ret_exact);
    if (directory != TCI_TRACE_NO_DIRECTORY && (int)args[directory] != AT_FDCWD)
        has_base = tci_trace_descriptor(tracee->id, args[directory], trace->base);
    else if (trace->path[0])
        has_base = tci_trace_link(tracee->id, "cwd", trace->base);
    return has_base && tci_trace_normalise(trace->base, trace->path, trace->normal, ret_exact);
}
