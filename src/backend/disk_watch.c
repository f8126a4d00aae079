/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: how much a tree has written to storage, as the kernel counts it per process
 * (/proc/PID/io, write_bytes; memory file systems are not in it). The kernel keeps no sum for a tree:
 * we look at everybody who is alive, and keep what the dead had when last seen. What a process writes
 * between our last look and its end is missing here; init's report has it at the end.
 */
#include "backend/disk_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/fd.h"

enum { known_max = 4096, text_max = 4096 };

struct known {
    int pid;
    unsigned look; /* when last seen */
    uint64_t bytes;
};

struct tci_disk_watch {
    uint64_t dead;
    unsigned look;
    size_t count;
    struct known known[known_max];
    char text[text_max], list[text_max];
};

struct tci_disk_watch *tci_disk_watch_new(void)
{
    return calloc(1, sizeof(struct tci_disk_watch));
}

void tci_disk_watch_free(struct tci_disk_watch *watch)
{
    free(watch);
}

static bool read_text(struct tci_disk_watch *w, const char *path)
{
    tc_cleanup(tci_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : tci_read_some(fd, w->text, sizeof w->text - 1);
    w->text[n < 0 ? 0 : n] = '\0';
    return n > 0;
}

static uint64_t written_by(struct tci_disk_watch *w, int pid)
{
    char path[64];
    const char *at;
    (void)snprintf(path, sizeof path, "/proc/%d/io", pid);
    if (!read_text(w, path) || !(at = strstr(w->text, "\nwrite_bytes: ")))
        return 0;
    return strtoull(at + 14, NULL, 10);
}

static void see(struct tci_disk_watch *w, int pid)
{
    uint64_t bytes = written_by(w, pid);
    size_t i = 0;
    while (i < w->count && w->known[i].pid != pid)
        i++;
    if (i == known_max)
        return;
    if (i == w->count)
        w->known[w->count++] = (struct known){ .pid = pid };
    else if (w->known[i].bytes > bytes) /* another process under the same number */
        w->dead += w->known[i].bytes;
    w->known[i].bytes = bytes;
    w->known[i].look = w->look;
}

/* The numbers in one list of children, which may be longer than the buffer. */
static void see_list(struct tci_disk_watch *w, int fd)
{
    size_t kept = 0;
    ssize_t n;
    while ((n = tci_read_some(fd, w->list + kept, sizeof w->list - 1 - kept)) > 0) {
        char *at = w->list, *end = w->list + kept + n, *space;
        *end = '\0';
        while ((space = strchr(at, ' ')) != NULL) {
            see(w, (int)strtol(at, NULL, 10));
            at = space + 1;
        }
        kept = (size_t)(end - at); /* a number that was cut */
        memmove(w->list, at, kept);
        if (kept >= sizeof w->list - 1)
            return;
    }
}

/* Everybody below `pid`, found from parents to children; any thread may be the parent. */
static void see_children(struct tci_disk_watch *w, int pid)
{
    char path[64];
    DIR *tasks;
    struct dirent *task;
    (void)snprintf(path, sizeof path, "/proc/%d/task", pid);
    tasks = opendir(path);
    while (tasks && (task = readdir(tasks)) != NULL) {
        tc_cleanup(tci_closep) int fd = -1;
        (void)snprintf(path, sizeof path, "%.20s/children", task->d_name);
        fd = task->d_name[0] == '.' ? -1 : openat(dirfd(tasks), path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0)
            see_list(w, fd);
    }
    if (tasks)
        (void)closedir(tasks);
}

uint64_t tci_disk_watch_look(struct tci_disk_watch *w, int root_pid)
{
    uint64_t total;
    size_t kept = 0;
    w->look++;
    see_children(w, root_pid);
    for (size_t i = 0; i < w->count; i++)
        if (w->known[i].look == w->look)
            see_children(w, w->known[i].pid);
    for (size_t i = 0; i < w->count; i++) {
        if (w->known[i].look == w->look)
            w->known[kept++] = w->known[i];
        else
            w->dead += w->known[i].bytes;
    }
    w->count = kept;
    total = w->dead;
    for (size_t i = 0; i < w->count; i++)
        total += w->known[i].bytes;
    return total;
}
