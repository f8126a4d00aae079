/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: from a spec to a plan. Refuses first (backend/refuse.h): what is cheap to ask is asked (Landlock,
 * control groups), and what building the cage itself would find out (namespaces, mounts, filter) counts as
 * there, because without it the cage is not built.
 */
#include "backend/native/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "backend/host.h"
#include "backend/program.h"
#include "backend/refuse.h"
#include "base/fd.h"
#include "base/path.h"
#include "gate/setup.h"

/* ---- what this host has ---------------------------------------------------------------------- */

static int landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* VERSION */);
    return abi < 0 ? 0 : (int)abi;
}

static void look_at_host(const struct tc_plan *plan, struct tci_host_report *report)
{
    static const enum tci_feature built[] = {
        TCI_FEATURE_USER_NAMESPACES,  TCI_FEATURE_MOUNT_NAMESPACE, TCI_FEATURE_PID_NAMESPACE,
        TCI_FEATURE_NET_NAMESPACE,    TCI_FEATURE_IPC_NAMESPACE,   TCI_FEATURE_UTS_NAMESPACE,
        TCI_FEATURE_MOUNT_API,        TCI_FEATURE_MOUNT_SETATTR,   TCI_FEATURE_PIVOT_ROOT,
        TCI_FEATURE_TMPFS_SIZE,       TCI_FEATURE_SECCOMP_FILTER,  TCI_FEATURE_PIDFD,
        TCI_FEATURE_GATE_LOCAL_ROUTE, TCI_FEATURE_GATE_REDIRECT,
    };
    tci_host_report_init(report);
    for (size_t i = 0; i < tci_array_size(built); i++)
        tci_refuse_answer(report, built[i], true, "shown by building the cage", "");
    tci_refuse_answer(
        report, TCI_FEATURE_LANDLOCK, plan->landlock_abi >= 1, "no Landlock",
        "use a kernel with CONFIG_SECURITY_LANDLOCK, and \"landlock\" in its lsm= list");
    tci_refuse_answer(report, TCI_FEATURE_LANDLOCK_TRUNCATE, plan->landlock_abi >= 3,
                      "no Landlock 3", "use Linux 6.2 or newer");
    tci_refuse_answer(report, TCI_FEATURE_USERNS_PROCESS_LIMIT, tci_host_has_process_limit(),
                      "not per user namespace",
                      "use Linux 5.14 or newer, or give toolcage a control group");
    (void)tci_refuse_answer_groups(report, tci_cgroups_has(plan->cgroups),
                                   "no control group is writable here",
                                   "\"toolcage doctor\" says how to get one");
}

/* ---- refusing ---------------------------------------------------------------------------------- */

static int check_clauses(const struct tc_plan *plan, struct tc_error *reterr)
{
    struct tci_host_report *report = tci_arena_new_of(plan->arena, struct tci_host_report);
    if (!report)
        return tci_error_no_memory(reterr);
    look_at_host(plan, report);
    return tci_refuse(report, plan->backend->name, &plan->spec, reterr);
}

static bool has_text(const struct tci_strings *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].text, text) == 0)
            return true;
    return false;
}

/* What a tool brings into its cage must be of use there. */
static int check_brought(const struct tc_plan *plan, struct tc_error *reterr)
{
    const struct tc_spec *spec = &plan->spec;
    if (spec->program != TCI_PROGRAM_NONE && has_text(&spec->settings->syscalls.deny, "execveat")) {
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                      "syscalls.deny: without \"execveat\" the program of this tool could not be "
                      "started");
        tci_error_remedy(reterr, "take it out of syscalls.deny");
        return -1;
    }
    if (spec->library && tci_program_check_library(spec->library, reterr) < 0)
        return -1;
    if (spec->is_function && plan->counts_memory) {
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                      "memory is limited by the address space here, and a function has all of this "
                      "process's");
        tci_error_remedy(reterr, "give toolcage a control group (\"toolcage doctor\" says how), or "
                                 "make the handler a shared object");
        return -1;
    }
    return 0;
}

/* ---- compiling --------------------------------------------------------------------------------- */

static unsigned filter_flags(const struct tc_plan *plan)
{
    const struct tci_settings *s = plan->spec.settings;
    const bool host_network = s->network.mode == TCI_NETWORK_HOST;
    /* Limits and priorities of others: of the host's processes, or of init, which runs as the same
     * user and would be killed by a low enough one. */
    unsigned flags = TCI_FILTER_SELF_ONLY | (plan->pinned ? TCI_FILTER_KEEP_CPUS : 0) |
                     (s->commands.any ? 0 : TCI_FILTER_NO_MEMFD) |
                     (plan->counts_memory ? TCI_FILTER_COUNT_MEMORY : 0) |
                     (host_network ? TCI_FILTER_HOST_NETWORK : 0);
    if (plan->is_jail)
        return flags | (tci_filter_reaches_unix(s) ? TCI_FILTER_NO_UNIX : 0);
    /* Landlock does not rule who may connect to a socket that has a path. */
    return flags | TCI_FILTER_NO_UNIX | TCI_FILTER_NO_NAMESPACES | TCI_FILTER_KEEP_GROUP |
           (host_network ? 0 : TCI_FILTER_NO_SOCKETS) |
           (plan->landlock_abi < 3 ? TCI_FILTER_NO_TRUNCATE : 0) |
           (plan->landlock_abi < 6 ? TCI_FILTER_NO_SIGNALS : 0);
}

static int compile_filter(struct tc_plan *plan, struct tc_error *reterr)
{
    const struct tci_filter_spec spec = { .syscalls = &plan->spec.settings->syscalls,
                                          .flags = filter_flags(plan) };
    return tci_filter_compile(&spec, &plan->filter, reterr);
}

static void describe_layers(struct tc_plan *plan)
{
    char landlock[24] = "", group[24] = "";
    if (plan->rules.attr_size)
        (void)snprintf(landlock, sizeof landlock, " landlock:%d", plan->landlock_abi);
    if (plan->use_cgroup)
        (void)snprintf(group, sizeof group, " cgroup:%s", tci_cgroups_kind(plan->cgroups));
    (void)snprintf(
        plan->layers, sizeof plan->layers, "%s%s%s%snonewprivs seccomp rlimits%s%s",
        plan->is_jail ? "userns mountns pidns ipcns utsns cgroupns timens " : "",
        plan->is_jail && plan->spec.settings->network.mode != TCI_NETWORK_HOST ? "netns " : "",
        plan->has_gate ? "gate " : "", plan->idmap.fd >= 0 ? "idmap " : "", landlock, group);
}

static bool has_handed_mount(const struct tc_plan *plan)
{
    for (size_t i = 0; i < plan->mounts.count; i++)
        if (plan->mounts.items[i].kind == TCI_MOUNT_HANDED)
            return true;
    return false;
}

static void plan_gate(struct tc_plan *plan)
{
    const struct tci_network *network = &plan->spec.settings->network;
    plan->has_gate = plan->is_jail && tci_network_has_gate(network);
    if (!plan->has_gate)
        return;
    tci_gate_ports(network, &plan->gate_ports);
    plan->gate_has_v6 = tci_gate_can_v6();
}

static int compile(struct tc_plan *plan, struct tc_error *reterr)
{
    plan_gate(plan);
    plan->landlock_abi = landlock_abi();
    plan->directory = tci_start_directory(plan->spec.settings);
    if (tci_cgroups_open(&plan->cgroups, reterr) < 0 || check_clauses(plan, reterr) < 0 ||
        tci_native_limits(plan, reterr) < 0 || check_brought(plan, reterr) < 0)
        return -1;
    plan->environment = tci_environment(plan->arena, plan->spec.settings);
    if (!plan->environment)
        return tci_error_no_memory(reterr);
    if (tci_writables_note(plan->arena, plan->spec.policy, &plan->spec.settings->filesystem,
                           &plan->writables, reterr) < 0 ||
        (plan->is_jail && tci_native_mounts(plan, reterr) < 0))
        return -1;
    if (tci_native_programs(plan, reterr) < 0 || tci_native_rules(plan, reterr) < 0 ||
        compile_filter(plan, reterr) < 0 || tci_native_config(plan, reterr) < 0)
        return -1;
    plan->init_fd = tci_native_init_fd(reterr);
    if (plan->init_fd < 0)
        return -1;
    if (has_handed_mount(plan) && tci_idmap_open(plan->arena, &plan->idmap, reterr) < 0)
        return -1;
    describe_layers(plan);
    return 0;
}

int tci_native_plan(const struct tc_backend *backend, const struct tc_spec *spec,
                    struct tc_plan **ret, struct tc_error *reterr)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    struct tc_plan *plan = arena ? tci_arena_new_of(arena, struct tc_plan) : NULL;
    if (!plan)
        return tci_error_no_memory(reterr);
    plan->arena = tc_take(arena);
    plan->backend = backend;
    plan->spec = *spec;
    plan->is_jail = backend->kind == TCI_BACKEND_JAIL;
    plan->is_root = tci_host_is_root();
    (void)pthread_mutex_init(&plan->lock, NULL);
    plan->init_fd = plan->config_fd = plan->idmap.fd = plan->idmap.child = -1;
    plan->ruleset_fd = -1;
    if (compile(plan, reterr) < 0) {
        tci_native_plan_free(plan);
        return -1;
    }
    *ret = plan;
    return 0;
}

/* The path of the host behind a rule; hidden ones have none of their own. */
static bool is_there(const struct tc_plan *plan, const struct tci_path_rule *rule)
{
    char buffer[TCI_PATH_MAX + 1];
    const char *host = rule->host ? rule->host
                       : plan->is_jail
                           ? tci_native_host_path(plan, rule->cage, buffer, sizeof buffer)
                           : rule->cage;
    tc_cleanup(tci_closep) int fd = host ? tci_granted_open(&plan->writables, host) : -1;
    return fd >= 0;
}

static bool has_mount(const struct tc_plan *plan, const char *cage)
{
    for (size_t i = 0; i < plan->mounts.count; i++)
        if (strcmp(plan->mounts.items[i].target, cage + 1) == 0)
            return true;
    return false;
}

/* A workspace was made anew, or an optional path that was not there has appeared: a `.env` to be
 * hidden, for one. */
bool tci_native_is_stale(const struct tc_plan *plan)
{
    const struct tci_filesystem *fs = &plan->spec.settings->filesystem;
    for (size_t i = 0; i < plan->mounts.count; i++) {
        const struct tci_mount *m = &plan->mounts.items[i];
        if (m->flags & TCI_MOUNT_CHECKED &&
            !tci_granted_is_same(&plan->writables, m->host, m->device, m->inode))
            return true;
    }
    for (size_t i = 0; i < plan->rules.count; i++) {
        const struct tci_rule *rule = &plan->rules.items[i];
        if (!plan->is_jail && rule->flags & TCI_MOUNT_CHECKED &&
            !tci_granted_is_same(&plan->writables, rule->path, rule->device, rule->inode))
            return true;
    }
    for (size_t i = 0; i < fs->count; i++)
        if (fs->rules[i].optional && plan->is_jail && !has_mount(plan, fs->rules[i].cage) &&
            is_there(plan, &fs->rules[i]))
            return true;
    return false;
}

void tci_native_plan_free(struct tc_plan *plan)
{
    if (!plan)
        return;
    tci_native_bury(plan, true);
    (void)pthread_mutex_destroy(&plan->lock);
    for (size_t i = 0; i < plan->mounts.count; i++)
        (void)tci_close(plan->mounts.items[i].source);
    (void)tci_close(plan->init_fd);
    (void)tci_close(plan->config_fd);
    (void)tci_close(plan->ruleset_fd);
    tci_idmap_close(&plan->idmap);
    tci_filter_free(&plan->filter);
    tci_cgroups_free(plan->cgroups);
    tci_arena_free(plan->arena);
}
