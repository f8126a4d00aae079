/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the host has mounted below paths that are granted for reading.
 *
 * The attack: an engine makes the top of a read-only bind read-only, and what is mounted below it
 * stays writable. So a rootful engine binds a read-only path without what lies below it, and each
 * mount below becomes a bind of the plan, checked like any other. What is mounted there later is not
 * seen. A rootless engine can only bind with all that is below, listed or not: there everything
 * becomes read-only in the finished container (driver_api_ready.c).
 */
#include "backend/oci/api.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "backend/oci/mounts.h"
#include "base/fd.h"
#include "base/mountinfo.h"
#include "base/path.h"

enum { BELOW_MAX = 512 };

struct below {
    const struct tci_oci_plan *plan;
    struct tci_oci_mount *all; /* the plan's, then those that were found */
    size_t count;
    const char **real; /* of the plan's read-only directories: without links; else NULL */
    struct tc_error *reterr;
    bool is_told;
};

/* Where it is, as the kernel lists mounts: a policy's own spelling may lead through links. */
static int find_real(const struct tci_oci_plan *plan, const struct tci_oci_mount *m,
                     const char **ret, struct tc_error *reterr)
{
    tc_cleanup(tci_closep) int fd = tci_granted_open(&plan->writables, m->host);
    char handle[40], real[PATH_MAX];
    ssize_t n;
    if (fd < 0)
        return tci_error_errno(reterr, -fd, "the granted path %.300s", m->host);
    (void)snprintf(handle, sizeof handle, "/proc/self/fd/%d", fd);
    n = readlink(handle, real, sizeof real);
    if (n <= 0 || (size_t)n == sizeof real)
        return tci_error_errno(reterr, n < 0 ? errno : ENAMETOOLONG, "the granted path %.300s",
                               m->host);
    *ret = tci_arena_strndup(plan->arena, real, (size_t)n);
    return *ret ? 0 : tci_error_no_memory(reterr);
}

static bool is_listed(const struct below *below, const char *cage)
{
    for (size_t i = 0; i < below->count; i++)
        if (strcmp(below->all[i].cage, cage) == 0)
            return true;
    return false;
}

/*
 * The attack: the host has a volume at /proj/x/y. One tool may write to /proj, another reads it. The
 * first one puts a directory of its own in the place of x, with a link y in it that leads to ~/.ssh: and
 * the engine, which is told a path, binds the keys for the second one. So what is there is noted now, and
 * no link is followed: before each call the plan is looked through (tci_oci_is_stale), and what the
 * engine has mounted must be the same (driver_api_ready.c).
 */
static int add_below(struct below *below, const struct tci_oci_mount *m, const char *cage,
                     const char *host)
{
    const struct tci_oci_plan *plan = below->plan;
    struct tci_oci_mount found = {
        .kind = TCI_OCI_MOUNT_BIND, .no_exec = m->no_exec, .source = -1, .over_handle = -1
    };
    tc_cleanup(tci_closep) int fd = tci_granted_open(&plan->writables, host);
    bool is_directory = false;
    int r = fd < 0 ? fd : tci_granted_identify(fd, &found.device, &found.inode, &is_directory);
    /* Covered by another mount; or not ours to look at, and then not the container's. */
    if (r == -ENOENT || r == -ENOTDIR || r == -EACCES)
        return 0;
    if (r < 0)
        return tci_error_errno(below->reterr, -r, "what is mounted at %.300s", host);
    if (below->count == plan->mount_count + BELOW_MAX)
        return tci_error_set(below->reterr, TC_ERROR_UNSUPPORTED,
                             "more than %d mounts lie below what is granted", BELOW_MAX);
    found.is_file = !is_directory;
    found.host = tci_arena_strdup(plan->arena, host);
    found.cage = tci_arena_strdup(plan->arena, cage);
    if (!found.host || !found.cage)
        return tci_error_no_memory(below->reterr);
    below->all[below->count++] = found;
    return 0;
}

/* A mount of the host: does it show through a read-only bind? Then it becomes one, too. */
static int look_below(struct below *below, const char *host)
{
    const struct tci_oci_plan *plan = below->plan;
    for (size_t i = 0; i < plan->mount_count; i++) {
        const struct tci_oci_mount *m = &plan->mounts[i];
        const char *real = below->real[i], *rest, *cage;
        if (!real || strcmp(host, real) == 0 || !tci_path_is_within(host, real))
            continue;
        rest = strcmp(real, "/") == 0 ? host : host + strlen(real);
        cage = tci_arena_printf(plan->arena, "%s%s", m->cage, rest);
        if (!cage)
            return tci_error_no_memory(below->reterr);
        /* Something else of the plan lies on it or above it: a hidden directory, for one. */
        if (tci_oci_mount_around(plan, cage) != m || is_listed(below, cage))
            continue;
        if (add_below(below, m, cage, host) < 0)
            return -1;
    }
    return 0;
}

static int see_mount(void *context, const struct tci_mounted *mount)
{
    struct below *below = context;
    int r = look_below(below, mount->point);
    below->is_told = r < 0;
    return r;
}

int tci_api_below(struct tci_oci_plan *plan, struct tc_error *reterr)
{
    struct below below = { .plan = plan, .count = plan->mount_count, .reterr = reterr };
    bool is_wanted = false;
    if (plan->choice.engine_is_rootless || !plan->mount_count)
        return 0;
    below.all = tci_arena_new_array(plan->arena, plan->mount_count + BELOW_MAX,
                                    struct tci_oci_mount);
    below.real = tci_arena_new_array(plan->arena, plan->mount_count, const char *);
    if (!below.all || !below.real)
        return tci_error_no_memory(reterr);
    memcpy(below.all, plan->mounts, plan->mount_count * sizeof *below.all);
    for (size_t i = 0; i < plan->mount_count; i++) {
        const struct tci_oci_mount *m = &plan->mounts[i];
        if (m->kind != TCI_OCI_MOUNT_BIND || m->writable || m->is_file)
            continue;
        if (find_real(plan, m, &below.real[i], reterr) < 0)
            return -1;
        is_wanted = true;
    }
    if (is_wanted && tci_mountinfo_each(see_mount, &below) < 0)
        return below.is_told ? -1
                             : tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                                             "/proc/self/mountinfo cannot be read, and read-only "
                                             "paths depend on it");
    plan->mounts = below.all;
    plan->mount_count = below.count;
    return 0;
}
