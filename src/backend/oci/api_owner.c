/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the name of a process in labels and directories, and whether that process is gone.
 *
 * "PID-STARTED-PIDNS.TIMENS-BOOT". A process id alone is used again by somebody else; a start time
 * makes it unique until the next boot, which containers outlive. Both mean something else in other
 * pid and time namespaces: owners there are not judged. Whatever is not wholly of this form is
 * never touched.
 */
#include "backend/oci/api.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"

enum { BOOT_LENGTH = 8, FIELD_STARTED = 19 };

struct owner {
    int pid;
    unsigned long long started;
    unsigned pid_namespace, time_namespace;
    char boot[BOOT_LENGTH + 1];
};

static bool read_small(const char *path, char *buffer, size_t size)
{
    tc_cleanup(tci_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : tci_read_some(fd, buffer, size - 1);
    buffer[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* The start time of a process, and whether it is dead but for its parent's taking notice. */
static bool read_started(int pid, unsigned long long *ret, bool *ret_dead)
{
    char path[32], text[1024], *at, *field;
    int i = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (!read_small(path, text, sizeof text))
        return false;
    at = strrchr(text, ')'); /* the name in front of it may hold anything */
    if (!at || at[1] != ' ')
        return false;
    at += 2;
    *ret_dead = *at == 'Z' || *at == 'X';
    for (; i <= FIELD_STARTED && (field = strsep(&at, " ")); i++)
        if (i == FIELD_STARTED)
            *ret = strtoull(field, NULL, 10);
    return i > FIELD_STARTED;
}

static unsigned namespace_number(const char *path)
{
    struct stat s;
    return stat(path, &s) < 0 ? 0 : (unsigned)s.st_ino;
}

static bool read_self(struct owner *ret)
{
    char boot[64];
    bool dead;
    ret->pid = (int)getpid();
    ret->pid_namespace = namespace_number("/proc/self/ns/pid");
    ret->time_namespace = namespace_number("/proc/self/ns/time"); /* 0 before Linux 5.6 */
    if (!read_small("/proc/sys/kernel/random/boot_id", boot, sizeof boot) ||
        strlen(boot) < BOOT_LENGTH)
        return false;
    memcpy(ret->boot, boot, BOOT_LENGTH);
    ret->boot[BOOT_LENGTH] = '\0';
    return ret->pid_namespace && read_started(ret->pid, &ret->started, &dead);
}

static void write_owner(const struct owner *owner, char ret[TCI_API_OWNER_MAX])
{
    (void)snprintf(ret, TCI_API_OWNER_MAX, "%d-%llu-%x.%x-%s", owner->pid, owner->started,
                   owner->pid_namespace, owner->time_namespace, owner->boot);
}

int tci_api_owner(char ret[TCI_API_OWNER_MAX], struct tc_error *reterr)
{
    struct owner self;
    if (!read_self(&self)) {
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                      "containers are named after this process, and /proc does not describe it");
        tci_error_remedy(reterr, "mount /proc");
        return -1;
    }
    write_owner(&self, ret);
    return 0;
}

/* A number that ends with `end`, which is stepped over. */
static bool read_number(const char **at, int radix, char end, unsigned long long maximum,
                        unsigned long long *ret)
{
    char *stop;
    errno = 0;
    *ret = strtoull(*at, &stop, radix);
    if (errno || stop == *at || *stop != end || *ret > maximum)
        return false;
    *at = stop + 1;
    return true;
}

static bool parse(const char *text, struct owner *ret)
{
    char again[TCI_API_OWNER_MAX];
    const char *at = text;
    unsigned long long pid, pid_namespace, time_namespace;
    if (!read_number(&at, 10, '-', INT_MAX, &pid) || pid == 0 ||
        !read_number(&at, 10, '-', ULLONG_MAX, &ret->started) ||
        !read_number(&at, 16, '.', UINT_MAX, &pid_namespace) ||
        !read_number(&at, 16, '-', UINT_MAX, &time_namespace) || strlen(at) != BOOT_LENGTH)
        return false;
    ret->pid = (int)pid;
    ret->pid_namespace = (unsigned)pid_namespace;
    ret->time_namespace = (unsigned)time_namespace;
    memcpy(ret->boot, at, BOOT_LENGTH + 1);
    /* strtoull() forgives blanks, signs and zeros; a name is what we would write ourselves. */
    write_owner(ret, again);
    return strcmp(again, text) == 0;
}

bool tci_api_owner_is_gone(const char *text)
{
    struct owner owner = { 0 }, self = { 0 };
    unsigned long long started;
    bool dead;
    if (!parse(text, &owner) || !read_self(&self))
        return false;
    if (strcmp(owner.boot, self.boot) != 0)
        return true;
    if (owner.pid_namespace != self.pid_namespace || owner.time_namespace != self.time_namespace)
        return false;
    if (kill(owner.pid, 0) < 0)
        return errno == ESRCH;
    if (!read_started(owner.pid, &started, &dead))
        return false;
    return started != owner.started || dead;
}
