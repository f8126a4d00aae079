/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: OCI runtimes (runc, crun, runsc) on a bundle of our own: the static program in a read-only
 * root, the host's /usr beside it, all namespaces, no capabilities, the default profile's system calls,
 * and as root the limits of a cage.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/buf.h"
#include "json/write.h"
#include "native.h"

enum { config_max = 65536 };

static void strings(struct tci_json *json, const char *key, const char *const *values)
{
    tci_json_array_begin(json, key);
    for (; *values; values++)
        tci_json_string(json, NULL, *values);
    tci_json_array_end(json);
}

static void write_process(struct tci_json *json)
{
    static const char *const sets[] = { "bounding", "effective", "inheritable", "permitted",
                                        "ambient" };
    tci_json_object_begin(json, "process");
    tci_json_object_begin(json, "user");
    tci_json_integer(json, "uid", 0);
    tci_json_integer(json, "gid", 0);
    tci_json_object_end(json);
    strings(json, "args", (const char *const[]){ "/bench/true", NULL });
    strings(json, "env", (const char *const[]){ "PATH=/usr/bin:/bin", "HOME=/tmp", NULL });
    tci_json_string(json, "cwd", "/");
    tci_json_object_begin(json, "capabilities");
    for (unsigned i = 0; i < tci_array_size(sets); i++)
        strings(json, sets[i], (const char *const[]){ NULL });
    tci_json_object_end(json);
    tci_json_bool(json, "noNewPrivileges", true);
    tci_json_object_end(json);
}

static void write_mounts(struct tci_json *json)
{
    static const char *const mounts[][4] = {
        { "/proc", "proc", "proc", "nosuid" },      { "/dev", "tmpfs", "tmpfs", "mode=755" },
        { "/dev/shm", "tmpfs", "shm", "size=64m" }, { "/tmp", "tmpfs", "tmpfs", "size=64m" },
        { "/usr", "bind", "/usr", "ro" },
    };
    tci_json_array_begin(json, "mounts");
    for (unsigned i = 0; i < tci_array_size(mounts); i++) {
        const char *flags[] = { mounts[i][3], "nosuid", "nodev", NULL, NULL };
        tci_json_object_begin(json, NULL);
        tci_json_string(json, "destination", mounts[i][0]);
        tci_json_string(json, "type", mounts[i][1]);
        tci_json_string(json, "source", mounts[i][2]);
        if (strcmp(mounts[i][1], "bind") == 0)
            flags[3] = "rbind";
        strings(json, "options", flags);
        tci_json_object_end(json);
    }
    tci_json_array_end(json);
}

static void write_map(struct tci_json *json, const char *key, unsigned id)
{
    tci_json_array_begin(json, key);
    tci_json_object_begin(json, NULL);
    tci_json_integer(json, "containerID", 0);
    tci_json_integer(json, "hostID", id);
    tci_json_integer(json, "size", 1);
    tci_json_object_end(json);
    tci_json_array_end(json);
}

/* The built-in limits of a policy. */
static void write_resources(struct tci_json *json)
{
    tci_json_object_begin(json, "resources");
    tci_json_raw(json, "memory", "{\"limit\":256000000}");
    tci_json_raw(json, "cpu", "{\"quota\":100000,\"period\":100000}");
    tci_json_raw(json, "pids", "{\"limit\":64}");
    tci_json_object_end(json);
}

/* The calls of the default profile, without its rules for arguments. The rest gets EPERM. */
static void write_seccomp(struct tci_json *json)
{
    static const struct {
        const char *name, *profiles;
    } calls[] = {
#define GROUP(id, reason)
#define CALL(name, x86_64, aarch64, profiles, ...) { #name, #profiles },
#include "backend/filter/syscalls.def"
#undef CALL
#undef GROUP
    };
    tci_json_object_begin(json, "seccomp");
    tci_json_string(json, "defaultAction", "SCMP_ACT_ERRNO");
    tci_json_array_begin(json, "syscalls");
    tci_json_object_begin(json, NULL);
    tci_json_array_begin(json, "names");
    for (unsigned i = 0; i < tci_array_size(calls); i++)
        if (calls[i].profiles[0] == 'D')
            tci_json_string(json, NULL, calls[i].name);
    tci_json_array_end(json);
    tci_json_string(json, "action", "SCMP_ACT_ALLOW");
    tci_json_object_end(json);
    tci_json_array_end(json);
    tci_json_object_end(json);
}

static void write_linux(struct tci_json *json, const char *name, bool users)
{
    static const char *const namespaces[] = { "pid",   "network", "ipc", "uts",
                                              "mount", "cgroup",  "user" };
    tci_json_object_begin(json, "linux");
    tci_json_array_begin(json, "namespaces");
    for (unsigned i = 0; i < tci_array_size(namespaces) - !users; i++) {
        tci_json_object_begin(json, NULL);
        tci_json_string(json, "type", namespaces[i]);
        tci_json_object_end(json);
    }
    tci_json_array_end(json);
    if (users) {
        write_map(json, "uidMappings", (unsigned)geteuid());
        write_map(json, "gidMappings", (unsigned)getegid());
    }
    write_seccomp(json);
    if (geteuid() == 0) { /* others have no control groups to give */
        tci_json_printf(json, "cgroupsPath", "/%s", name);
        write_resources(json);
    }
    tci_json_object_end(json);
}

/* gVisor brings its own kernel: its root needs no user namespace around it, nor does it take one. */
static int write_bundle(struct bench *bench, struct bench_subject *subject, const char *name)
{
    struct tci_buf text = TCI_BUF_INIT(config_max);
    struct tci_json json = { .out = &text };
    const char *folder = bench_text(bench, "%s-bundle", subject->argument);
    const char *program = bench_text(bench, "%s/rootfs/bench/true", folder);

    tci_json_object_begin(&json, NULL);
    tci_json_string(&json, "ociVersion", "1.0.2");
    write_process(&json);
    tci_json_raw(&json, "root", "{\"path\":\"rootfs\",\"readonly\":true}");
    tci_json_string(&json, "hostname", "cage");
    write_mounts(&json);
    write_linux(&json, name, strcmp(subject->argument, "runsc") != 0);
    tci_json_object_end(&json);
    if (tci_buf_check(&text, NULL) < 0)
        abort();
    (void)bench_file(bench, bench_text(bench, "%s/config.json", folder), text.data);
    tci_buf_free(&text);
    for (const char *const *at = (const char *const[]){ "proc", "dev", "tmp", "usr", NULL }; *at;
         at++)
        (void)bench_file(bench, bench_text(bench, "%s/rootfs/%s/", folder, *at), NULL);
    program = bench_file(bench, program, "");
    if (unlink(program) < 0 || link(bench->true_path, program) < 0)
        return bench_fail(subject, "cannot link the program: %s", strerror(errno));
    return 0;
}

/*
 * crun refuses a hybrid host, where version 2 has no controllers. A mount namespace in which
 * that hierarchy is not mounted makes it an ordinary version 1 host for it.
 */
static int without_unified(struct bench_subject *subject, int *ret)
{
    int home = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    int there;

    *ret = -1;
    if (geteuid() != 0 || access("/sys/fs/cgroup/unified/cgroup.procs", F_OK) < 0)
        return 0;
    if (home < 0 || unshare(CLONE_NEWNS) < 0)
        return bench_fail(subject, "cannot make a mount namespace: %s", strerror(errno));
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        umount2("/sys/fs/cgroup/unified", MNT_DETACH) < 0)
        (void)bench_fail(subject, "cannot hide /sys/fs/cgroup/unified: %s", strerror(errno));
    there = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (setns(home, CLONE_NEWNS) < 0)
        abort();
    (void)close(home);
    *ret = there;
    return subject->note[0] ? -1 : 0;
}

int bench_bundle_prepare(struct bench *bench, struct bench_subject *subject)
{
    const char *program = bench_find(bench, subject->argument);
    const char *name = bench_text(bench, "toolcage-bench-%d", (int)getpid());
    struct bench_command *command = bench_command_new(bench);

    if (!program)
        return bench_fail(subject, "not installed");
    if (write_bundle(bench, subject, name) < 0)
        return -1;
    if (strcmp(subject->argument, "crun") == 0 && without_unified(subject, &command->mounts) < 0)
        return -1;
    bench_command_add(command, program, "--root",
                      bench_text(bench, "%s/%s-state", bench->directory, subject->argument), NULL);
    if (strcmp(subject->argument, "runsc") == 0) {
        bench_command_add(command, "--network=none", NULL);
        if (geteuid() != 0)
            bench_command_add(command, "--rootless", "--ignore-cgroups", NULL);
    }
    bench_command_add(command, "run", "--bundle",
                      bench_text(bench, "%s/%s-bundle", bench->directory, subject->argument), name,
                      NULL);
    subject->command = command;
    return bench_command_try(bench, command, subject);
}
