/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what Podman is told to make, as the body of its own POST /libpod/containers/create. Its
 * form of Docker's interface is not used for this: it writes mounts as text with commas between the
 * parts, and a path with a comma in it would be one more option.
 */
#include "backend/oci/api.h"

#include <string.h>
#include <sys/resource.h>

/* Podman lowers its own limit to the kernel's smallest number of process ids. It is for no tool:
 * `pids` is the limit. */
enum { NPROC = 32768 };

static void write_namespace(struct tci_json *json, const char *key, const char *mode)
{
    tci_json_object_begin(json, key);
    tci_json_string(json, "nsmode", mode);
    tci_json_object_end(json);
}

static void write_limit(struct tci_json *json, const char *name, unsigned resource, uint64_t wanted)
{
    struct rlimit now = { 1024, 1024 };
    (void)getrlimit(resource, &now);
    if (wanted > now.rlim_max)
        wanted = now.rlim_max;
    tci_json_object_begin(json, NULL);
    tci_json_string(json, "type", name);
    tci_json_unsigned(json, "hard", wanted);
    tci_json_unsigned(json, "soft", wanted);
    tci_json_object_end(json);
}

/* Podman's own defaults may be above what it may give: it would fail. Entry narrows the rest. */
static void write_limits(struct tci_json *json, const struct tci_oci_plan *plan)
{
    const struct tci_settings *s = plan->spec.settings;
    tci_json_array_begin(json, "r_limits");
    write_limit(json, "NOFILE", RLIMIT_NOFILE, s->files);
    if (!plan->choice.engine_is_rootless)
        write_limit(json, "NPROC", RLIMIT_NPROC, NPROC);
    tci_json_array_end(json);
    if (plan->use_cgroup) /* a group of ours has them */
        return;
    tci_json_object_begin(json, "resource_limits");
    if (s->memory != TCI_UNLIMITED) {
        tci_json_object_begin(json, "memory");
        tci_json_unsigned(json, "limit", s->memory);
        tci_json_unsigned(json, "swap", s->memory);
        tci_json_object_end(json);
    }
    if (s->pids != TCI_UNLIMITED) {
        tci_json_object_begin(json, "pids");
        tci_json_unsigned(json, "limit", s->pids + 1);
        tci_json_object_end(json);
    }
    if (s->cpu != TCI_UNLIMITED) {
        tci_json_object_begin(json, "cpu");
        tci_json_unsigned(json, "period", 100000);
        tci_json_unsigned(json, "quota", s->cpu * 100 < 1000 ? 1000 : s->cpu * 100);
        tci_json_object_end(json);
    }
    tci_json_object_end(json);
}

static void begin_mount(struct tci_json *json, const char *cage, const char *type,
                        const char *source, bool writable, bool no_exec)
{
    tci_json_object_begin(json, NULL);
    tci_json_string(json, "destination", cage);
    tci_json_string(json, "type", type);
    tci_json_string(json, "source", source);
    tci_json_array_begin(json, "options");
    tci_json_string(json, NULL, writable ? "rw" : "ro");
    tci_json_string(json, NULL, "nosuid");
    tci_json_string(json, NULL, "nodev");
    if (no_exec)
        tci_json_string(json, NULL, "noexec");
}

static void end_mount(struct tci_json *json)
{
    tci_json_array_end(json);
    tci_json_object_end(json);
}

static void write_bind(struct tci_json *json, const struct tci_api_bind *bind)
{
    begin_mount(json, bind->cage, "bind", bind->host, bind->writable, bind->no_exec);
    tci_json_string(json, NULL, bind->recursive ? "rbind" : "bind");
    tci_json_string(json, NULL, "rprivate");
    end_mount(json);
}

static int write_mounts(struct tci_json *json, const struct tci_api_body *what,
                        struct tc_error *reterr)
{
    const struct tci_oci_plan *plan = what->plan;

    tci_json_array_begin(json, "mounts");
    if (tci_api_write_binds(json, what, write_bind, reterr) < 0)
        return -1;
    for (size_t i = 0; i < plan->mount_count; i++) {
        const struct tci_oci_mount *m = &plan->mounts[i];
        if (m->kind != TCI_OCI_MOUNT_TMPFS)
            continue;
        begin_mount(json, m->cage, "tmpfs", "tmpfs", m->writable, m->no_exec);
        tci_json_printf(json, NULL, "size=%llu", (unsigned long long)m->size);
        tci_json_printf(json, NULL, "mode=%s", m->mode);
        /* The attack: Podman fills memory with a copy of what lies below it, and so a hidden
         * directory with what is to be hidden. */
        tci_json_string(json, NULL, "notmpcopyup");
        end_mount(json);
    }
    tci_json_array_end(json);
    tci_json_string(json, "image_volume_mode", "ignore");
    return 0;
}

static void write_security(struct tci_json *json, const struct tci_api_body *what)
{
    const struct tci_oci_plan *plan = what->plan;
    const struct tci_container *c = &plan->spec.settings->container;
    tci_json_bool(json, "privileged", false);
    tci_json_bool(json, "read_only_filesystem", c->read_only_rootfs);
    tci_api_write_list(json, "cap_drop", &c->cap_drop);
    tci_api_write_list(json, "cap_add", &c->cap_add);
    tci_json_bool(json, "no_new_privileges", c->no_new_privileges);
    if (plan->seccomp_json)
        tci_json_printf(json, "seccomp_profile_path", "%s/seccomp.json", what->place->path);
    /* SELinux's own labels would keep a container from every path of the host that was not
     * labelled for containers, granted or not, and from our socket; the other layers stay. */
    tci_json_array_begin(json, "selinux_opts");
    tci_json_string(json, NULL, "disable");
    tci_json_array_end(json);
    tci_json_array_begin(json, "mask");
    tci_json_string(json, NULL, "/proc/interrupts");
    tci_json_string(json, NULL, "/proc/sysrq-trigger");
    tci_json_string(json, NULL, "/sys");
    for (const char **path = plan->masked; path && *path; path++)
        tci_json_string(json, NULL, *path); /* hidden paths of the image itself */
    tci_json_array_end(json);
    write_namespace(json, "netns",
                    plan->spec.settings->network.mode == TCI_NETWORK_HOST ? "host" : "none");
    write_namespace(json, "ipcns", "private");
    write_namespace(json, "pidns", "private");
    write_namespace(json, "utsns", "private");
    write_namespace(json, "cgroupns", "private");
}

static void write_command(struct tci_json *json, const struct tci_api_body *what)
{
    const struct tci_oci_plan *plan = what->plan;
    tci_json_string(json, "name", TCI_API_NAME_PREFIX TCI_API_CAGE_MARK);
    tci_json_string(json, "image", what->image->id);
    tci_json_array_begin(json, "entrypoint");
    tci_json_string(json, NULL, TCI_API_ENTRY_DIRECTORY "/entry");
    tci_json_string(json, NULL, TCI_API_ENTRY_DIRECTORY);
    tci_json_array_end(json);
    tci_json_array_begin(json, "command");
    tci_json_array_end(json);
    tci_json_string(json, "user", plan->user);
    tci_json_string(json, "work_dir", "/");
    tci_json_string(json, "hostname", "cage");
    /* A pipe. Else it is the host's /dev/null, which crun gives to the container's user. */
    tci_json_bool(json, "stdin", true);
    tci_json_bool(json, "unsetenvall", true);
    tci_json_bool(json, "httpproxy", false); /* else the service's own variables go in */
    tci_json_integer(json, "stop_signal", 9);
    tci_json_string(json, "systemd", "false");
    tci_json_string(json, "sdnotifyMode", "ignore");
    tci_json_bool(json, "use_image_hosts", true);
    tci_json_object_begin(json, "healthconfig");
    tci_json_array_begin(json, "Test");
    tci_json_string(json, NULL, "NONE");
    tci_json_array_end(json);
    tci_json_object_end(json);
    tci_json_object_begin(json, "labels");
    tci_json_string(json, TCI_API_LABEL_OWNER, what->place->owner);
    tci_json_string(json, TCI_API_LABEL_TOOL, plan->spec.tool ? plan->spec.tool : "");
    tci_json_object_end(json);
}

int tci_api_podman_body(const struct tci_api_body *what, struct tci_buf *out,
                        struct tc_error *reterr)
{
    const char *runtime = tci_api_runtime(what->plan->choice.runtime);
    struct tci_json json = { .out = out };
    tci_json_object_begin(&json, NULL);
    write_command(&json, what);
    tci_json_bool(&json, "remove", true);
    tci_json_string(&json, "restart_policy", "no");
    if (runtime)
        tci_json_string(&json, "oci_runtime", runtime);
    tci_json_object_begin(&json, "log_configuration");
    tci_json_string(&json, "driver", "none"); /* output is the call's, and on no disk */
    tci_json_object_end(&json);
    write_security(&json, what);
    write_limits(&json, what->plan);
    if (write_mounts(&json, what, reterr) < 0)
        return -1;
    tci_json_object_end(&json);
    return tci_buf_check(out, reterr);
}
