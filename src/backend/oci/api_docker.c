/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what Docker is told to make, as the body of POST /containers/create. Everything that an
 * image could say (entrypoint, environment, user, volumes, health check, stop signal) is said here
 * as well, so that the image's word never counts.
 */
#include "backend/oci/api.h"

#include <string.h>
#include <sys/resource.h>

static void write_strings(struct tci_json *json, const char *key, const char *const *list)
{
    tci_json_array_begin(json, key);
    for (; *list; list++)
        tci_json_string(json, NULL, *list);
    tci_json_array_end(json);
}

/* SELinux's own labels would keep a container from every path of the host that was not labelled for
 * containers, granted or not, and from our socket; the other layers stay. */
static void write_security(struct tci_json *json, const struct tci_oci_plan *plan)
{
    tci_json_array_begin(json, "SecurityOpt");
    if (plan->spec.settings->container.no_new_privileges)
        tci_json_string(json, NULL, "no-new-privileges");
    tci_json_string(json, NULL, "label=disable");
    if (plan->seccomp_json) {
        struct tci_buf option = TCI_BUF_INIT(TCI_API_ANSWER_MAX);
        tci_buf_string(&option, "seccomp=");
        tci_buf_string(&option, plan->seccomp_json);
        if (option.no_memory || option.too_large)
            json->out->no_memory = true; /* never a container without it */
        else
            tci_json_string(json, NULL, option.data);
        tci_buf_free(&option);
    }
    tci_json_array_end(json);
}

static void write_limit(struct tci_json *json, const char *name, uint64_t value)
{
    int64_t number = value > INT64_MAX ? -1 : (int64_t)value;
    tci_json_object_begin(json, NULL);
    tci_json_string(json, "Name", name);
    tci_json_integer(json, "Soft", number);
    tci_json_integer(json, "Hard", number);
    tci_json_object_end(json);
}

/* The daemon's own default may be above what it may give. Entry narrows the rest. */
static void write_limits(struct tci_json *json, const struct tci_oci_plan *plan)
{
    const struct tci_settings *s = plan->spec.settings;
    struct rlimit now = { 1024, 1024 };
    (void)getrlimit(RLIMIT_NOFILE, &now);
    tci_json_array_begin(json, "Ulimits");
    write_limit(json, "nofile", s->files < now.rlim_max ? s->files : now.rlim_max);
    tci_json_array_end(json);
    if (plan->use_cgroup) /* a group of ours has them */
        return;
    if (s->memory != TCI_UNLIMITED) {
        tci_json_unsigned(json, "Memory", s->memory);
        tci_json_unsigned(json, "MemorySwap", s->memory); /* both together: no swap */
    }
    if (s->pids != TCI_UNLIMITED)
        tci_json_unsigned(json, "PidsLimit", s->pids + 1); /* and entry */
    if (s->cpu != TCI_UNLIMITED)
        tci_json_unsigned(json, "NanoCpus", s->cpu * 1000000);
}

static void write_bind(struct tci_json *json, const struct tci_api_bind *bind)
{
    tci_json_object_begin(json, NULL);
    tci_json_string(json, "Type", "bind");
    tci_json_string(json, "Source", bind->host);
    tci_json_string(json, "Target", bind->cage);
    tci_json_bool(json, "ReadOnly", !bind->writable);
    tci_json_object_begin(json, "BindOptions");
    tci_json_string(json, "Propagation", "rprivate");
    tci_json_bool(json, "NonRecursive", !bind->recursive);
    tci_json_object_end(json);
    tci_json_object_end(json);
}

static int write_mounts(struct tci_json *json, const struct tci_api_body *what,
                        struct tc_error *reterr)
{
    const struct tci_oci_plan *plan = what->plan;

    tci_json_array_begin(json, "Mounts");
    if (tci_api_write_binds(json, what, write_bind, reterr) < 0)
        return -1;
    tci_json_array_end(json);
    tci_json_object_begin(json, "Tmpfs");
    for (size_t i = 0; i < plan->mount_count; i++) {
        const struct tci_oci_mount *m = &plan->mounts[i];
        if (m->kind == TCI_OCI_MOUNT_TMPFS)
            tci_json_printf(json, m->cage, "%s,nosuid,nodev,%s,size=%llu,mode=%s",
                            m->writable ? "rw" : "ro", m->no_exec ? "noexec" : "exec",
                            (unsigned long long)m->size, m->mode);
    }
    for (size_t i = 0; i < what->image->volume_count; i++) {
        bool read_only;
        if (tci_api_covers(what, what->image->volumes[i], &read_only))
            tci_json_printf(json, what->image->volumes[i], "%s,nosuid,nodev,noexec,size=65536",
                            read_only ? "ro" : "rw");
    }
    tci_json_object_end(json);
    return 0;
}

static int write_host(struct tci_json *json, const struct tci_api_body *what,
                      struct tc_error *reterr)
{
    /* What of the kernel's own files tells of the host, or changes it, for any image and
     * version. */
    static const char *const masked[] = { "/proc/acpi",
                                          "/proc/asound",
                                          "/proc/interrupts",
                                          "/proc/kcore",
                                          "/proc/keys",
                                          "/proc/latency_stats",
                                          "/proc/sched_debug",
                                          "/proc/scsi",
                                          "/proc/timer_list",
                                          "/proc/timer_stats",
                                          "/proc/sysrq-trigger",
                                          "/sys",
                                          NULL };
    static const char *const read_only[] = { "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys",
                                             NULL };
    const struct tci_oci_plan *plan = what->plan;
    const struct tci_container *c = &plan->spec.settings->container;
    const char *runtime = tci_api_runtime(plan->choice.runtime);
    tci_json_object_begin(json, "HostConfig");
    tci_json_bool(json, "AutoRemove", true);
    tci_json_bool(json, "Privileged", false);
    tci_json_bool(json, "Init", false);
    tci_json_bool(json, "ReadonlyRootfs", c->read_only_rootfs);
    tci_api_write_list(json, "CapDrop", &c->cap_drop);
    tci_api_write_list(json, "CapAdd", &c->cap_add);
    write_security(json, plan);
    tci_json_string(json, "NetworkMode",
                    plan->spec.settings->network.mode == TCI_NETWORK_HOST ? "host" : "none");
    tci_json_string(json, "IpcMode", "private");
    tci_json_string(json, "CgroupnsMode", "private");
    tci_json_array_begin(json, "MaskedPaths");
    for (size_t i = 0; masked[i]; i++)
        tci_json_string(json, NULL, masked[i]);
    for (const char **path = plan->masked; path && *path; path++)
        tci_json_string(json, NULL, *path); /* hidden paths of the image itself */
    tci_json_array_end(json);
    write_strings(json, "ReadonlyPaths", read_only);
    if (runtime)
        tci_json_string(json, "Runtime", runtime);
    tci_json_object_begin(json, "LogConfig");
    tci_json_string(json, "Type", "none"); /* output is the call's, and on no disk */
    tci_json_object_end(json);
    write_limits(json, plan);
    if (write_mounts(json, what, reterr) < 0)
        return -1;
    tci_json_object_end(json);
    return 0;
}

int tci_api_docker_body(const struct tci_api_body *what, struct tci_buf *out,
                        struct tc_error *reterr)
{
    static const char *const entry[] = { TCI_API_ENTRY_DIRECTORY "/entry", TCI_API_ENTRY_DIRECTORY,
                                         NULL };
    static const char *const none[] = { NULL }, *const no_health[] = { "NONE", NULL };
    const struct tci_oci_plan *plan = what->plan;
    struct tci_json json = { .out = out };
    tci_json_object_begin(&json, NULL);
    tci_json_printf(&json, "Image", "sha256:%s", what->image->id);
    write_strings(&json, "Entrypoint", entry);
    write_strings(&json, "Cmd", none);
    tci_json_string(&json, "User", plan->user);
    tci_json_string(&json, "WorkingDir", "/");
    if (plan->spec.settings->network.mode != TCI_NETWORK_HOST)
        tci_json_string(&json, "Hostname", "cage");
    tci_json_string(&json, "StopSignal", "SIGKILL");
    tci_json_object_begin(&json, "Healthcheck");
    write_strings(&json, "Test", no_health);
    tci_json_object_end(&json);
    tci_json_object_begin(&json, "Labels");
    tci_json_string(&json, TCI_API_LABEL_OWNER, what->place->owner);
    tci_json_string(&json, TCI_API_LABEL_TOOL, plan->spec.tool ? plan->spec.tool : "");
    tci_json_object_end(&json);
    if (write_host(&json, what, reterr) < 0)
        return -1;
    tci_json_object_end(&json);
    return tci_buf_check(out, reterr);
}
