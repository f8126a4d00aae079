/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: from a spec to a plan, and its end. The same steps for every engine: who makes the container, what
 * that one cannot keep (refused), limits, users, mounts, filters, and for bare runtimes the bundle. The
 * plan is the same for every call of a tool; what differs goes to entry (inside/entry_abi.h).
 */
#include "backend/oci/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include "backend/environment.h"
#include "backend/etc_files.h"
#include "backend/oci/own_places.h"
#include "backend/program.h"
#include "base/fd.h"
#include "base/path.h"
#include "gate/setup.h"

/* ---- compiling --------------------------------------------------------------------------------- */

static void plan_gate(struct tci_oci_plan *plan)
{
    const struct tci_network *network = &plan->spec.settings->network;
    plan->has_gate = tci_network_has_gate(network);
    if (!plan->has_gate)
        return;
    tci_gate_ports(network, &plan->gate_ports);
    plan->gate_has_v6 = tci_gate_can_v6();
}

/* What a tool brings into its cage must be of use there. */
static int check_brought(const struct tci_oci_plan *plan, struct tc_error *reterr)
{
    const struct tc_spec *spec = &plan->spec;
    if (spec->is_function) {
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                      "a function of this process cannot run in a container");
        tci_error_remedy(reterr, "use backend = \"jail\", or make the handler a shared object");
        return -1;
    }
    if (spec->library && tci_program_check_library(spec->library, reterr) < 0)
        return -1;
    if (spec->settings->system) {
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                      "system = true has no meaning in a container: its system is the image's");
        tci_error_remedy(reterr, "leave it out, or grant /usr in filesystem.readable");
        return -1;
    }
    return 0;
}

static unsigned filter_flags(const struct tci_oci_plan *plan)
{
    const struct tci_settings *s = plan->spec.settings;
    /* Limits and priorities of others: of entry, which runs as the same user and would be killed by a
     * low enough one. */
    return TCI_FILTER_SELF_ONLY | (s->commands.any ? 0 : TCI_FILTER_NO_MEMFD) |
           (s->network.mode == TCI_NETWORK_HOST ? TCI_FILTER_HOST_NETWORK : 0) |
           (tci_filter_reaches_unix(s) ? TCI_FILTER_NO_UNIX : 0);
}

static int compile_filter(struct tci_oci_plan *plan, struct tc_error *reterr)
{
    const struct tci_settings *s = plan->spec.settings;
    const struct tci_filter_spec spec = { .syscalls = &s->syscalls, .flags = filter_flags(plan) };
    if (tci_filter_compile(&spec, &plan->filter, reterr) < 0)
        return -1;
    /* gVisor's own kernel knows no other way to become somebody than a setuid file, and shows none. */
    if (s->container.no_new_privileges || plan->choice.runtime == TCI_OCI_RUNSC)
        return 0;
    /* The kernel takes a filter only from who gives up new privileges. So the outer profile alone is
     * there, which is the default one for every tool. */
    if (s->syscalls.profile != TCI_SYSCALLS_DEFAULT || s->syscalls.allow.count ||
        s->syscalls.deny.count) {
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                      "syscalls cannot be kept with container.no_new_privileges = false: the "
                      "kernel takes a filter only from a process that gives up new privileges");
        tci_error_remedy(reterr, "leave out no_new_privileges, or use syscalls = \"default\"");
        return -1;
    }
    tci_filter_free(&plan->filter);
    return 0;
}

/* ---- the root directory ------------------------------------------------------------------------- */

static int identify_rootfs(struct tci_oci_plan *plan, struct tc_error *reterr)
{
    bool is_directory = false;
    tc_cleanup(tci_closep) int fd = tci_granted_open(&plan->writables, plan->rootfs);
    int r = fd < 0 ? fd
                   : tci_granted_identify(fd, &plan->rootfs_device, &plan->rootfs_inode,
                                          &is_directory);
    if (r == 0 && !is_directory)
        r = -ENOTDIR;
    if (r == 0)
        return 0;
    tci_error_errno(reterr, -r, "the root directory %.300s", plan->rootfs);
    tci_error_remedy(reterr, r == -ELOOP
                                 ? "a link lies at a place that this policy lets a tool write to: "
                                   "replace it by the directory itself"
                                 : "name an existing directory in rootfs, or an image");
    return -1;
}

static int find_root(struct tci_oci_plan *plan, struct tc_error *reterr)
{
    const struct tci_settings *s = plan->spec.settings;
    char *path;
    if (plan->choice.engine != TCI_OCI_ENGINE_NONE) {
        plan->image = s->image;
        if (s->image)
            return 0;
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                      "rootfs is a directory, and an engine starts images only");
        tci_error_remedy(reterr, "set container.engine = \"none\", or name an image");
        return -1;
    }
    plan->rootfs = s->rootfs;
    if (!plan->rootfs) { /* found, held, and looked at once more: it may have been removed in between */
        path = tci_arena_alloc(plan->arena, PATH_MAX);
        if (!path)
            return tci_error_no_memory(reterr);
        if (tci_image_find(s->image ? s->image : TCI_IMAGE_DEFAULT, path, reterr) < 0)
            return -1;
        plan->rootfs = path;
        plan->rootfs_lock = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (plan->rootfs_lock >= 0)
            (void)flock(plan->rootfs_lock, LOCK_SH | LOCK_NB);
    }
    return identify_rootfs(plan, reterr);
}

/* ---- the whole ---------------------------------------------------------------------------------- */

static int compile(struct tci_oci_plan *plan, struct tc_error *reterr)
{
    const struct tci_settings *s = plan->spec.settings;
    if (check_brought(plan, reterr) < 0 || tci_oci_choose(s, &plan->choice, reterr) < 0)
        return -1;
    plan->driver = plan->choice.engine == TCI_OCI_ENGINE_NONE ? &tci_oci_driver_bare
                                                              : &tci_oci_driver_api;
    plan_gate(plan);
    plan->directory = tci_start_directory(s);
    plan->environment = tci_environment(plan->arena, s);
    if (!plan->environment)
        return tci_error_no_memory(reterr);
    if (tci_cgroups_open(&plan->cgroups, reterr) < 0)
        return -1;
    tci_oci_limits(plan);
    if (tci_oci_check(plan, reterr) < 0 ||
        tci_writables_note(plan->arena, plan->spec.policy, &s->filesystem, &plan->writables,
                           reterr) < 0 ||
        tci_oci_check_places(plan, reterr) < 0 || find_root(plan, reterr) < 0 ||
        tci_oci_users(plan, reterr) < 0 || tci_oci_mounts(plan, reterr) < 0 ||
        compile_filter(plan, reterr) < 0 || tci_oci_seccomp(plan, reterr) < 0)
        return -1;
    return plan->choice.engine == TCI_OCI_ENGINE_NONE ? tci_oci_spec(plan, reterr) : 0;
}

static bool has_source(const struct tci_oci_plan *plan)
{
    for (size_t i = 0; i < plan->mount_count; i++)
        if (plan->mounts[i].source >= 0)
            return true;
    return false;
}

static int open_plan(struct tci_oci_plan *plan, struct tc_error *reterr)
{
    if (has_source(plan) && tci_idmap_open(plan->arena, &plan->idmap, reterr) < 0)
        return -1;
    if (plan->driver->open && plan->driver->open(plan, reterr) < 0)
        return -1;
    plan->is_open = true;
    return plan->spec.warm ? tci_oci_pool_open(plan, reterr) : 0;
}

int tci_oci_plan(const struct tc_backend *backend, const struct tc_spec *spec, struct tc_plan **ret,
                 struct tc_error *reterr)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    struct tci_oci_plan *plan = arena ? tci_arena_new_of(arena, struct tci_oci_plan) : NULL;
    if (!plan)
        return tci_error_no_memory(reterr);
    plan->arena = tc_take(arena);
    plan->backend = backend;
    plan->spec = *spec;
    plan->idmap.fd = plan->idmap.child = plan->rootfs_lock = -1;
    if (compile(plan, reterr) < 0 || open_plan(plan, reterr) < 0) {
        tci_oci_plan_free((struct tc_plan *)plan);
        return -1;
    }
    *ret = (struct tc_plan *)plan;
    return 0;
}

/* ---- its end -------------------------------------------------------------------------------------- */

static bool has_mount(const struct tci_oci_plan *plan, const char *cage)
{
    for (size_t i = 0; i < plan->mount_count; i++)
        if (strcmp(plan->mounts[i].cage, cage) == 0)
            return true;
    return false;
}

static bool is_masked(const struct tci_oci_plan *plan, const char *cage)
{
    for (const char **path = plan->masked; path && *path; path++)
        if (strcmp(*path, cage) == 0)
            return true;
    return false;
}

/* Has an optional path appeared that was not there? A `.env` to be hidden, for one; in `rootfs`, too. */
static bool has_appeared(const struct tci_oci_plan *plan, const struct tci_path_rule *rule)
{
    char buffer[TCI_PATH_MAX + 1];
    const char *host = rule->host ? rule->host
                                  : tci_oci_host_path(plan, rule->cage, buffer, sizeof buffer);
    tc_cleanup(tci_closep) int fd = -1;
    if (has_mount(plan, rule->cage) || is_masked(plan, rule->cage))
        return false;
    if (!host && !tci_oci_mount_around(plan, rule->cage))
        return plan->spec.settings->rootfs && tci_oci_mount_look(plan, rule->cage) != -ENOENT;
    if (!host)
        return false;
    fd = tci_granted_open(&plan->writables, host);
    return fd >= 0;
}

/* Has a tool put its own passwd or group into a granted /etc? A runtime reads these, and takes its time if
 * they are large, or a named pipe: ours lie over them from now on. */
static bool has_accounts(const struct tci_oci_plan *plan)
{
    for (unsigned i = 0; i < TCI_OCI_ACCOUNTS; i++) {
        char buffer[TCI_PATH_MAX + 1];
        const char *cage = tci_etc_path(i), *host;
        tc_cleanup(tci_closep) int fd = -1;
        host = tci_oci_host_path(plan, cage, buffer, sizeof buffer);
        if (!host || has_mount(plan, cage) || !tci_oci_brings_accounts(plan))
            continue;
        fd = tci_granted_open(&plan->writables, host);
        if (fd >= 0 || fd == -ELOOP)
            return true;
    }
    return false;
}

/* A workspace was made anew, what a cover lies on was, the image was, or an optional path has appeared. */
static bool is_stale(const struct tci_oci_plan *plan)
{
    const struct tci_filesystem *fs = &plan->spec.settings->filesystem;
    if (plan->rootfs && !tci_granted_is_same(&plan->writables, plan->rootfs, plan->rootfs_device,
                                             plan->rootfs_inode))
        return true;
    for (size_t i = 0; i < plan->mount_count; i++) {
        const struct tci_oci_mount *m = &plan->mounts[i];
        if (m->kind == TCI_OCI_MOUNT_BIND &&
            !tci_granted_is_same(&plan->writables, m->host, m->device, m->inode))
            return true;
        if (m->over &&
            !tci_granted_is_same(&plan->writables, m->over, m->over_device, m->over_inode))
            return true;
    }
    if (has_accounts(plan))
        return true;
    for (size_t i = 0; i < fs->count; i++)
        if (fs->rules[i].optional && has_appeared(plan, &fs->rules[i]))
            return true;
    return false;
}

bool tci_oci_is_stale(const struct tc_plan *plan)
{
    const struct tci_oci_plan *p = (const struct tci_oci_plan *)plan;
    return is_stale(p) || (p->driver && p->driver->is_stale && p->driver->is_stale(p));
}

/* In whatever state the making of it was left. */
static void free_plan(struct tci_oci_plan *plan)
{
    tci_oci_pool_close(plan->pool); /* its cages need everything else */
    tci_oci_bury_all(plan);
    if (plan->is_open && plan->driver->close)
        plan->driver->close(plan);
    for (size_t i = 0; i < plan->mount_count; i++) {
        (void)tci_close(plan->mounts[i].source);
        if (plan->mounts[i].over)
            (void)tci_close(plan->mounts[i].over_handle);
    }
    (void)tci_close(plan->rootfs_lock);
    tci_idmap_close(&plan->idmap);
    tci_filter_free(&plan->filter);
    tci_cgroups_free(plan->cgroups);
    tci_arena_free(plan->arena);
}

void tci_oci_plan_free(struct tc_plan *plan)
{
    if (plan)
        free_plan((struct tci_oci_plan *)plan);
}
