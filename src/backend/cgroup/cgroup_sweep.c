/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the names of groups, and collecting what a killed owner could not remove.
 *
 * A name is "toolcage-PIDNS.TIMENS-PID-STARTED-ID". A process id alone would be reused by somebody
 * else, and means another process in another pid namespace; a start time means another moment in
 * another time namespace. So only groups from our own namespaces are judged, and they are left
 * alone unless their owner is surely gone. Namespace numbers are reused only when no process is
 * left in the namespace: then no owner is.
 *
 * Invariant: a directory whose name is not wholly of this form is never touched.
 */
#include "backend/cgroup/cgroup_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "toolcage-"

enum { SWEEP_MS = 1000, SWEEP_EACH_MS = 200 };

/* Fields of /proc/PID/stat, counted from the one behind the name. */
enum { FIELD_STATE = 0, FIELD_THREADS = 17, FIELD_STARTED = 19 };

/* What /proc/PID/stat says: state, number of threads and start time. 0 or an errno. */
static int process_stat(const char *pid, char *ret_state, uint64_t *ret_threads,
                        uint64_t *ret_started)
{
    char text[1024], path[32], *at, *rest, *field;
    int problem, i = 0;
    (void)snprintf(path, sizeof path, "/proc/%s", pid);
    problem = tci_cgroup_read(AT_FDCWD, path, "stat", text, sizeof text);
    if (problem)
        return problem;
    /* The second field is the program's name in brackets, and may hold anything, brackets too. */
    at = strrchr(text, ')');
    if (!at || at[1] != ' ')
        return EIO;
    rest = at + 2;
    for (; i <= FIELD_STARTED && (field = strsep(&rest, " ")); i++) {
        if (i == FIELD_STATE)
            *ret_state = field[0];
        else if (i == FIELD_THREADS)
            *ret_threads = strtoull(field, NULL, 10);
        else if (i == FIELD_STARTED)
            *ret_started = strtoull(field, NULL, 10);
    }
    return i > FIELD_STARTED ? 0 : EIO;
}

static unsigned namespace_number(const char *path)
{
    struct stat s;
    return stat(path, &s) < 0 ? 0 : (unsigned)s.st_ino;
}

int tci_cgroup_owner_self(struct tci_cgroup_owner *ret)
{
    uint64_t threads;
    char state;
    int problem = process_stat("self", &state, &threads, &ret->started);
    ret->pid = getpid();
    ret->pid_namespace = namespace_number("/proc/self/ns/pid");
    ret->time_namespace = namespace_number("/proc/self/ns/time"); /* 0 before Linux 5.6 */
    if (!problem && !ret->pid_namespace)
        problem = ENOENT;
    return problem;
}

static bool is_id_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
}

bool tci_cgroup_name(const struct tci_cgroup_owner *owner, const char *id, char *buffer,
                     size_t size)
{
    size_t length = strlen(id);
    int n;
    if (!length || length > TCI_CGROUP_ID_MAX)
        return false;
    for (size_t i = 0; i < length; i++)
        if (!is_id_letter(id[i]))
            return false;
    n = snprintf(buffer, size, PREFIX "%x.%x-%d-%llu-%s", owner->pid_namespace,
                 owner->time_namespace, (int)owner->pid, (unsigned long long)owner->started, id);
    return n > 0 && (size_t)n < size;
}

/* A number that ends with `end`, which is stepped over. */
static bool read_number(const char **at, int radix, char end, uint64_t maximum, uint64_t *ret)
{
    char *stop;
    errno = 0;
    *ret = strtoull(*at, &stop, radix);
    if (errno || stop == *at || *stop != end || *ret > maximum)
        return false;
    *at = stop + 1;
    return true;
}

bool tci_cgroup_name_parse(const char *name, struct tci_cgroup_owner *ret, const char **ret_id)
{
    const char *at = name + sizeof PREFIX - 1;
    uint64_t pid_namespace, time_namespace, pid, started;
    struct tci_cgroup_owner owner;
    char again[TCI_CGROUP_NAME_MAX];
    if (strncmp(name, PREFIX, sizeof PREFIX - 1) != 0 ||
        !read_number(&at, 16, '.', UINT32_MAX, &pid_namespace) ||
        !read_number(&at, 16, '-', UINT32_MAX, &time_namespace) ||
        !read_number(&at, 10, '-', INT32_MAX, &pid) || pid == 0 ||
        !read_number(&at, 10, '-', UINT64_MAX, &started))
        return false;
    owner = (struct tci_cgroup_owner){ (unsigned)pid_namespace, (unsigned)time_namespace,
                                       (pid_t)pid, started };
    /* strtoull() forgives blanks, signs and zeros; a name is what we would write ourselves. */
    if (!tci_cgroup_name(&owner, at, again, sizeof again) || strcmp(again, name) != 0)
        return false;
    *ret = owner;
    *ret_id = at;
    return true;
}

/* Surely gone: no such process, or another one by now, or one that is dead and not yet reaped. */
static bool is_gone(const struct tci_cgroup_owner *owner)
{
    uint64_t started = 0, threads = 0;
    char state = 0, pid[16];
    if (kill(owner->pid, 0) < 0)
        return errno == ESRCH; /* EPERM: somebody else's, who can be seen to be there */
    (void)snprintf(pid, sizeof pid, "%d", (int)owner->pid);
    if (process_stat(pid, &state, &threads, &started))
        return false;
    /* A first thread that ended before the others looks dead as well. */
    return started != owner->started || ((state == 'Z' || state == 'X') && threads <= 1);
}

/* One sweep, and who was seen to be alive in it: an owner has many groups. */
struct sweep {
    const struct tci_cgroups *groups;
    int64_t until_ms;
    struct tci_cgroup_owner alive[8];
    unsigned alive_count;
};

static bool is_collectable(struct sweep *sweep, const struct tci_cgroup_owner *owner)
{
    const struct tci_cgroup_owner *self = &sweep->groups->owner;
    if (owner->pid_namespace != self->pid_namespace ||
        owner->time_namespace != self->time_namespace)
        return false;
    for (unsigned i = 0; i < sweep->alive_count; i++)
        if (owner->pid == sweep->alive[i].pid && owner->started == sweep->alive[i].started)
            return false;
    if (is_gone(owner))
        return true;
    if (sweep->alive_count < tci_array_size(sweep->alive))
        sweep->alive[sweep->alive_count++] = *owner;
    return false;
}

static void collect(struct sweep *sweep, const struct tci_cgroup_hierarchy *h, const char *name)
{
    struct tci_cgroup_owner owner;
    const char *id;
    int64_t left;
    int limit;
    if (!tci_cgroup_name_parse(name, &owner, &id) || !is_collectable(sweep, &owner))
        return;
    left = sweep->until_ms - tci_cgroup_now_ms();
    limit = left > SWEEP_EACH_MS ? SWEEP_EACH_MS : left > 0 ? (int)left : 0;
    /* The leaf of a process that stepped down may hold what that process started and left running
     * on purpose: it goes when it is empty. */
    if (strcmp(id, TCI_CGROUP_SELF) == 0)
        limit = 0;
    else
        (void)tci_cgroup_kill_named(h, name, limit);
    (void)tci_cgroup_remove_named(h, name, limit);
}

void tci_cgroups_sweep(const struct tci_cgroups *groups)
{
    struct sweep sweep = { .groups = groups, .until_ms = tci_cgroup_now_ms() + SWEEP_MS };
    /* Version 2 comes first: its kill ends a tree at once, in every hierarchy. */
    for (unsigned i = 0; i < groups->count; i++) {
        const struct tci_cgroup_hierarchy *h = &groups->hierarchies[i];
        int fd = openat(h->base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *directory = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *entry;
        if (!directory) {
            if (fd >= 0)
                (void)close(fd);
            continue;
        }
        while ((entry = readdir(directory)))
            if (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN)
                collect(&sweep, h, entry->d_name);
        (void)closedir(directory);
    }
}
