/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: finding the host's side of a grant. The attack: a tool that may write to /work puts a link at
 * /work/data, which the policy grants to another tool, or to its next call; following it would put
 * any directory of the host into the cage. So a path that lies inside a place that this policy lets
 * any tool write to is opened beneath that place, links refused. Links elsewhere are the
 * administrator's own.
 */
#include "backend/native/native.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"

static int open_path(int directory, const char *path, uint64_t resolve)
{
    struct open_how how = { .flags = O_PATH | O_CLOEXEC,
                            .resolve = resolve | RESOLVE_NO_MAGICLINKS };
    int fd = (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
    return fd < 0 ? -errno : fd;
}

/* The longest writable path that `host` lies in, shorter than itself. */
static void consider(const struct tci_filesystem *fs, const char *host, const char **best)
{
    for (size_t i = 0; i < fs->count; i++) {
        const struct tci_path_rule *rule = &fs->rules[i];
        if (rule->access == TCI_ACCESS_WRITABLE && strcmp(rule->host, host) != 0 &&
            tci_path_is_within(host, rule->host) && (!*best || strlen(rule->host) > strlen(*best)))
            *best = rule->host;
    }
}

static const char *writable_around(const struct tc_plan *plan, const char *host)
{
    const struct tc_policy *policy = plan->spec.policy;
    const char *best = NULL;
    consider(&plan->spec.settings->filesystem, host, &best);
    for (size_t i = 0; policy && i < policy->tool_count; i++)
        consider(&policy->tools[i].settings.filesystem, host, &best);
    if (policy && policy->anonymous)
        consider(&policy->anonymous->settings.filesystem, host, &best);
    return best;
}

int tci_native_open_grant(const struct tc_plan *plan, const char *host)
{
    const char *around = writable_around(plan, host), *rest;
    int directory, fd;
    if (!around)
        return open_path(AT_FDCWD, host, 0);
    /* Each step is shorter than the one before: this ends. */
    directory = tci_native_open_grant(plan, around);
    if (directory < 0)
        return directory;
    rest = host + (strcmp(around, "/") == 0 ? 1 : strlen(around) + 1);
    fd = open_path(directory, rest, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    (void)tci_close(directory);
    return fd;
}

int tci_native_identify(int fd, uint64_t *ret_device, uint64_t *ret_inode, bool *ret_is_directory)
{
    struct statx found;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_TYPE, &found) < 0)
        return -errno;
    *ret_device = (uint64_t)found.stx_dev_major << 32 | found.stx_dev_minor;
    *ret_inode = found.stx_ino;
    *ret_is_directory = S_ISDIR(found.stx_mode);
    return 0;
}
