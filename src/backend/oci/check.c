/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: refusing what the chosen engine cannot keep here, before anything is made, and saying what
 * will be in force. As for native cages nothing costly is tried: what making the container shows by
 * itself counts as there; what would be dropped without a word (limits, the gate) is asked for.
 */
#include "backend/oci/oci.h"

#include <stdio.h>
#include <string.h>
#include "backend/engine_socket.h"
#include "backend/host.h"
#include "backend/probe.h"
#include "backend/refuse.h"

enum { INFO_LIMIT_MS = 1500, INFO_MAX = 65536 };

/* May we count, move and furnish the container's processes? Not if they are another user's. */
bool tci_oci_is_ours(const struct tci_oci_choice *choice)
{
    if (choice->is_root || choice->engine == TCI_OCI_ENGINE_NONE)
        return true;
    return choice->engine == TCI_OCI_ENGINE_PODMAN && choice->engine_is_rootless;
}

static bool docker_limits(const char *socket_path, struct tci_arena *arena)
{
    char *info = tci_arena_alloc(arena, INFO_MAX);
    return info && tci_engine_get(socket_path, "/info", INFO_LIMIT_MS, info, INFO_MAX, NULL) == 0 &&
           tci_engine_is_ok(info) && strstr(info, "\"MemoryLimit\":true") &&
           strstr(info, "\"PidsLimit\":true") && strstr(info, "\"CpuCfsQuota\":true");
}

/* The daemon is asked only by whom it matters to: without a group of ours its limits are all there
 * is. */
static void look_at_limits(const struct tci_oci_plan *plan, bool is_ours,
                           struct tci_host_report *report)
{
    /* Not used, for example, where the container's user is not the one whose processes we may move. */
    const unsigned has = is_ours && plan->use_cgroup ? tci_cgroups_has(plan->cgroups) : 0;
    const bool all = tci_refuse_answer_groups(
        report, has,
        !is_ours ? "the engine's processes are not ours to move"
        : plan->cgroups && tci_cgroups_has(plan->cgroups)
            ? "the container's user is not one whose processes we may move"
            : "no control group is writable here",
        is_ours ? "\"toolcage doctor\" says how to get one"
                : "use container.engine = \"none\", or rootless Podman");
    if (plan->choice.engine == TCI_OCI_ENGINE_DOCKER && !all)
        tci_refuse_answer(report, TCI_FEATURE_DOCKER_LIMITS,
                          docker_limits(plan->choice.socket, plan->arena),
                          "the daemon has no limits",
                          "give the daemon control groups: see cgroup in toolcage doctor");
}

static void look_at_host(const struct tci_oci_plan *plan, struct tci_host_report *report)
{
    /* Chosen, so there; or shown by making the container: without them there is none. */
    static const enum tci_feature shown[] = {
        TCI_FEATURE_CRUN,
        TCI_FEATURE_RUNC,
        TCI_FEATURE_RUNSC,
        TCI_FEATURE_PODMAN,
        TCI_FEATURE_DOCKER_DAEMON,
        TCI_FEATURE_SUBID_RANGES,
        TCI_FEATURE_USER_NAMESPACES,
        TCI_FEATURE_MOUNT_NAMESPACE,
        TCI_FEATURE_PID_NAMESPACE,
        TCI_FEATURE_NET_NAMESPACE,
        TCI_FEATURE_MOUNT_API,
        TCI_FEATURE_MOUNT_PROC,
        TCI_FEATURE_OVERLAY,
        TCI_FEATURE_SECCOMP_FILTER,
        TCI_FEATURE_PIDFD,
    };
    const bool is_ours = tci_oci_is_ours(&plan->choice);
    static const char gate_why[] = "the engine's network namespaces are not ours to enter";
    static const char gate_remedy[] = "use container.engine = \"none\", or rootless Podman";
    tci_host_report_init(report);
    for (size_t i = 0; i < tci_array_size(shown); i++)
        tci_refuse_answer(report, shown[i], true, "shown by making the container", "");
    tci_refuse_answer(report, TCI_FEATURE_PRIVILEGED, plan->choice.is_root, "not root",
                      "run toolcage as root, or use container.engine = \"none\" or \"podman\"");
    tci_refuse_answer(report, TCI_FEATURE_GATE_LOCAL_ROUTE, is_ours, gate_why, gate_remedy);
    tci_refuse_answer(report, TCI_FEATURE_GATE_REDIRECT, is_ours, gate_why, gate_remedy);
    tci_refuse_answer(report, TCI_FEATURE_USERNS_PROCESS_LIMIT, tci_host_has_process_limit(),
                      "not per user namespace",
                      "use Linux 5.14 or newer, or give toolcage a control group");
    look_at_limits(plan, is_ours, report);
}

/* ---- what is in force ---------------------------------------------------------------------- */

static const char *maker(const struct tci_oci_choice *choice)
{
    switch (choice->engine) {
    case TCI_OCI_ENGINE_PODMAN:
        return choice->engine_is_rootless ? "oci:podman-rootless" : "oci:podman";
    case TCI_OCI_ENGINE_DOCKER:
        return choice->engine_is_rootless ? "oci:docker-rootless" : "oci:docker";
    case TCI_OCI_ENGINE_NONE:
        break;
    }
    return choice->runtime == TCI_OCI_RUNC ? "oci:runc" : "oci:crun";
}

static void describe_layers(struct tci_oci_plan *plan)
{
    const struct tci_oci_choice *choice = &plan->choice;
    const struct tci_settings *s = plan->spec.settings;
    const bool sandbox = choice->engine == TCI_OCI_ENGINE_NONE && choice->runtime == TCI_OCI_RUNSC;
    /* Docker's daemon, unless it is rootless, gives containers the host's users. */
    const bool userns = choice->engine == TCI_OCI_ENGINE_NONE || choice->engine_is_rootless;
    char first[32], group[24] = "";
    if (sandbox)
        (void)snprintf(first, sizeof first, "gvisor:%s", choice->platform);
    else
        (void)snprintf(first, sizeof first, "%s", maker(choice));
    if (plan->use_cgroup && plan->cgroups)
        (void)snprintf(group, sizeof group, " cgroup:%s", tci_cgroups_kind(plan->cgroups));
    else if (choice->engine == TCI_OCI_ENGINE_DOCKER)
        (void)snprintf(group, sizeof group, " cgroup:docker");
    (void)snprintf(
        plan->layers, sizeof plan->layers,
        "%s %smountns pidns ipcns utsns %s%s%s%sseccomp rlimits%s", first, userns ? "userns " : "",
        sandbox ? "" : "cgroupns ", s->network.mode != TCI_NETWORK_HOST ? "netns " : "",
        plan->has_gate ? "gate " : "", s->container.no_new_privileges ? "nonewprivs " : "", group);
}

/* ---- refusing ------------------------------------------------------------------------------ */

/* A word too much in a policy must not give a container everything that the host can reach. And with an engine
 * it is our own filter that keeps abstract unix sockets of the host away: entry needs one to call us. */
static int check_host_network(const struct tci_oci_plan *plan, struct tc_error *reterr)
{
    const struct tci_settings *s = plan->spec.settings;
    if (s->network.mode != TCI_NETWORK_HOST)
        return 0;
    if (!s->allow_host_network) {
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                      "network = \"host\" needs allow_host_network = true for a container");
        tci_error_remedy(reterr, "name the hosts in \"network\", or set allow_host_network = true");
        return -1;
    }
    if (plan->choice.engine == TCI_OCI_ENGINE_NONE || s->container.no_new_privileges)
        return 0;
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                  "network = \"host\" and container.no_new_privileges = false do not go together "
                  "with an engine: abstract unix sockets of the host could be reached");
    tci_error_remedy(reterr, "leave out no_new_privileges, or set container.engine = \"none\"");
    return -1;
}

static bool has_text(const struct tci_strings *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].text, text) == 0)
            return true;
    return false;
}

/* gVisor's own kernel keeps `pids` and `files`, and, like Linux, exempts whoever has these capabilities; and
 * there is no control group behind it that would count. */
static int check_exempt(const struct tci_oci_plan *plan, struct tc_error *reterr)
{
    static const struct {
        const char *capability;
        bool lifts_files;
    } lifting[] = { { "SYS_ADMIN", false }, { "SYS_RESOURCE", true } };
    const struct tci_settings *s = plan->spec.settings;
    const struct tci_container *container = &s->container;
    if (plan->choice.runtime != TCI_OCI_RUNSC)
        return 0;
    for (size_t i = 0; i < tci_array_size(lifting); i++) {
        const char *name = lifting[i].capability;
        const bool lifts_files = lifting[i].lifts_files && s->files != TCI_UNLIMITED;
        if (!has_text(&container->cap_add, name) || has_text(&container->cap_drop, name) ||
            (s->pids == TCI_UNLIMITED && !lifts_files))
            continue;
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                      "gVisor cannot keep \"%s\" for a tool with the capability %s",
                      s->pids == TCI_UNLIMITED ? "files" : "pids", name);
        tci_error_remedy(reterr, "leave %s out of container.cap_add, or use backend = \"oci\"",
                         name);
        return -1;
    }
    return 0;
}

int tci_oci_check(struct tci_oci_plan *plan, struct tc_error *reterr)
{
    struct tci_host_report *report = tci_arena_new_of(plan->arena, struct tci_host_report);
    if (!report)
        return tci_error_no_memory(reterr);
    if (check_host_network(plan, reterr) < 0 || check_exempt(plan, reterr) < 0)
        return -1;
    look_at_host(plan, report);
    if (tci_refuse(report, tci_oci_ready_name(&plan->choice), &plan->spec, reterr) < 0)
        return -1;
    describe_layers(plan);
    return 0;
}
