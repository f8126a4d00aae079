/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the bundle's config.json, for runtimes that run without an engine (OCI runtime spec 1.0.2). It says
 * what every call of a tool has in common; nothing in it comes from a model, and nothing from an
 * image: no entry point, no environment, no hooks. Every path is one of the stage (TCI_STAGE_*), which
 * has checked it.
 *
 * Limits that it names (spec_resources.c) are kept by our own control group all the same (plan_limits.c), and
 * entry sets those of the process, because a runtime's own threads must not be stopped by them.
 */
#include "backend/oci/spec.h"

#include <string.h>

enum { config_max = 8 << 20 };

/* ---- the process ------------------------------------------------------------------------------------- */

static bool has_text(const struct tci_strings *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].text, text) == 0)
            return true;
    return false;
}

/* A container has none. What cap_add names it gets, unless cap_drop names it, too. */
static void write_capabilities(struct tci_json *json, const struct tci_container *container)
{
    static const char *const sets[] = { "bounding", "effective", "inheritable", "permitted",
                                        "ambient" };
    const struct tci_strings *add = &container->cap_add;
    tci_json_object_begin(json, "capabilities");
    for (size_t set = 0; set < tci_array_size(sets); set++) {
        tci_json_array_begin(json, sets[set]);
        for (size_t i = 0; i < add->count; i++)
            if (!has_text(&container->cap_drop, add->items[i].text))
                tci_json_printf(json, NULL, "CAP_%s", add->items[i].text);
        tci_json_array_end(json);
    }
    tci_json_object_end(json);
}

static void write_process(struct tci_json *json, const struct tci_oci_plan *plan)
{
    const struct tci_container *container = &plan->spec.settings->container;
    tci_json_object_begin(json, "process");
    tci_json_bool(json, "terminal", false);
    tci_json_object_begin(json, "user");
    tci_json_unsigned(json, "uid", plan->uid);
    tci_json_unsigned(json, "gid", plan->gid);
    tci_json_object_end(json);
    tci_json_array_begin(json, "args");
    tci_json_string(json, NULL, TCI_ENTRY_PROGRAM);
    tci_json_string(json, NULL, plan->choice.runtime == TCI_OCI_RUNSC ? "fd:0" : "fd:3");
    tci_json_array_end(json);
    /* The command's environment goes to entry: secrets of it are in no file. HOME keeps crun from looking it up
     * in the container's /etc/passwd, where a tool may have put gigabytes, or a pipe that nobody fills. */
    tci_json_array_begin(json, "env");
    tci_json_string(json, NULL, "HOME=/");
    tci_json_array_end(json);
    tci_json_string(json, "cwd", "/");
    write_capabilities(json, container);
    tci_json_bool(json, "noNewPrivileges", container->no_new_privileges);
    tci_json_object_end(json);
}

/* ---- namespaces, users, paths ------------------------------------------------------------------------ */

static void write_namespaces(struct tci_json *json, const struct tci_oci_plan *plan)
{
    static const char *const always[] = { "pid", "mount", "ipc", "uts", "cgroup" };
    const enum tci_network_mode mode = plan->spec.settings->network.mode;
    const bool gvisor = plan->choice.runtime == TCI_OCI_RUNSC;
    tci_json_array_begin(json, "namespaces");
    for (size_t i = 0; i < tci_array_size(always); i++) {
        if (gvisor && strcmp(always[i], "cgroup") == 0)
            continue;
        tci_json_object_begin(json, NULL);
        tci_json_string(json, "type", always[i]);
        tci_json_object_end(json);
    }
    if (tci_oci_has_user_namespace(plan)) {
        tci_json_object_begin(json, NULL);
        tci_json_string(json, "type", "user");
        tci_json_object_end(json);
    }
    /* None listed: that of the stage, which is the host's. */
    if (mode != TCI_NETWORK_HOST) {
        tci_json_object_begin(json, NULL);
        tci_json_string(json, "type", "network");
        if (plan->has_gate)
            tci_json_string(json, "path", TCI_STAGE_NETWORK);
        tci_json_object_end(json);
    }
    tci_json_array_end(json);
}

static void write_mapping(struct tci_json *json, uint32_t container, uint32_t host)
{
    tci_json_object_begin(json, NULL);
    tci_json_unsigned(json, "containerID", container);
    tci_json_unsigned(json, "hostID", host);
    tci_json_unsigned(json, "size", 1);
    tci_json_object_end(json);
}

/*
 * Who asks as root gets two users who own nothing on the host: one for the command, and another for the
 * container's root, as whom the runtime sets things up. An ordinary user has one id to give: in the
 * stage's user namespace it is 0, and it becomes the command's.
 */
static void write_mappings(struct tci_json *json, const struct tci_oci_plan *plan, const char *key,
                           uint32_t id)
{
    tci_json_array_begin(json, key);
    if (!tci_oci_stage_is_mapped(&plan->choice)) {
        if (id != 0)
            write_mapping(json, 0, TCI_JAIL_HOST_ID + 1);
        write_mapping(json, id, TCI_JAIL_HOST_ID);
    } else {
        write_mapping(json, id, 0);
    }
    tci_json_array_end(json);
}

static void write_paths(struct tci_json *json, const struct tci_oci_plan *plan)
{
    /* What the kernel tells about the host rather than the container. The whole of /proc is read-only
     * (spec_mounts.c), so that none of it takes orders. */
    static const char *const masked[] = {
        "/proc/acpi",       "/proc/asound",        "/proc/kcore",       "/proc/keys",
        "/proc/key-users",  "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi",
        "/proc/timer_list", "/proc/timer_stats",   "/sys/firmware",
    };
    tci_json_array_begin(json, "maskedPaths");
    for (size_t i = 0; i < tci_array_size(masked); i++)
        tci_json_string(json, NULL, masked[i]);
    for (size_t i = 0; plan->masked && plan->masked[i]; i++)
        tci_json_string(json, NULL, plan->masked[i]);
    tci_json_array_end(json);
}

bool tci_oci_has_user_namespace(const struct tci_oci_plan *plan)
{
    return plan->choice.runtime != TCI_OCI_RUNSC;
}

static void write_linux(struct tci_json *json, const struct tci_oci_plan *plan)
{
    tci_json_object_begin(json, "linux");
    write_namespaces(json, plan);
    if (tci_oci_has_user_namespace(plan)) {
        write_mappings(json, plan, "uidMappings", plan->uid);
        write_mappings(json, plan, "gidMappings", plan->gid);
    }
    tci_oci_spec_resources(json, plan);
    /* gVisor's own kernel answers: it has its own /proc, and no use for a filter of ours outside. */
    if (plan->choice.runtime != TCI_OCI_RUNSC) {
        write_paths(json, plan);
        tci_json_raw(json, "seccomp", plan->seccomp_json);
    }
    tci_json_object_end(json);
}

/* ---- the whole ---------------------------------------------------------------------------------------- */

static void write_config(struct tci_json *json, const struct tci_oci_plan *plan)
{
    tci_json_object_begin(json, NULL);
    tci_json_string(json, "ociVersion", "1.0.2");
    write_process(json, plan);
    tci_json_object_begin(json, "root");
    tci_json_string(json, "path", TCI_STAGE_ROOTFS);
    /* gVisor's file server could not remount it (nosuid and nodev are locked): the stage did. */
    tci_json_bool(json, "readonly",
                  plan->spec.settings->container.read_only_rootfs &&
                      plan->choice.runtime != TCI_OCI_RUNSC);
    tci_json_object_end(json);
    tci_json_string(json, "hostname", "cage");
    tci_oci_spec_mounts(json, plan);
    write_linux(json, plan);
    /* The one annotation that a runtime obeys, and what is in it is ours. A crun that does not know it takes
     * the profile in `linux`, which says the same. */
    if (plan->seccomp_program) {
        tci_json_object_begin(json, "annotations");
        tci_json_string(json, "run.oci.seccomp_bpf_data", plan->seccomp_program);
        tci_json_object_end(json);
    }
    tci_json_object_end(json);
}

int tci_oci_spec(struct tci_oci_plan *plan, struct tc_error *reterr)
{
    struct tci_buf out = TCI_BUF_INIT(config_max);
    struct tci_json json = { .out = &out };
    int r;
    write_config(&json, plan);
    r = tci_buf_check(&out, reterr);
    if (r == 0)
        plan->config_json = tci_arena_strndup(plan->arena, out.data, out.length);
    tci_buf_free(&out);
    if (r == 0 && !plan->config_json)
        r = tci_error_no_memory(reterr);
    return r;
}
