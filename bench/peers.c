/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: bubblewrap and firejail, asked for what a jail of toolcage has, as far as they can: all
 * namespaces, the host's programs read-only, a private /proc, /dev and /tmp, no capabilities, a clean
 * environment, a session of its own. They have no limits for a whole tree and no Landlock.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "backend/filter/filter.h"
#include "native.h"

static void bwrap_system(struct bench *bench, struct bench_command *command)
{
    static const char *const folders[] = { "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32" };
    static const char *const kept[] = { "/etc/ld.so.cache", "/etc/ssl/certs", "/etc/localtime" };
    char target[200];

    bench_command_add(command, "--ro-bind", "/usr", "/usr", NULL);
    for (unsigned i = 0; i < tci_array_size(folders); i++) {
        ssize_t length = readlink(folders[i], target, sizeof(target) - 1);
        if (length > 0)
            bench_command_add(command, "--symlink", bench_text(bench, "%.*s", (int)length, target),
                              folders[i], NULL);
        else if (access(folders[i], F_OK) == 0)
            bench_command_add(command, "--ro-bind", folders[i], folders[i], NULL);
    }
    for (unsigned i = 0; i < tci_array_size(kept); i++)
        bench_command_add(command, "--ro-bind-try", kept[i], kept[i], NULL);
}

static void bwrap_etc(struct bench *bench, struct bench_command *command)
{
    static const char *const files[][2] = {
        { "passwd", "cage:x:1000:1000:cage:/tmp:/bin/sh\n" },
        { "group", "cage:x:1000:\n" },
        { "hosts", "127.0.0.1 localhost cage\n" },
        { "resolv.conf", "" },
    };
    for (unsigned i = 0; i < tci_array_size(files); i++) {
        const char *file = bench_file(bench, bench_text(bench, "etc/%s", files[i][0]), files[i][1]);
        bench_command_add(command, "--ro-bind", file, bench_text(bench, "/etc/%s", files[i][0]),
                          NULL);
    }
}

static struct bench_command *bwrap(struct bench *bench, struct bench_subject *subject)
{
    const char *program = bench_find(bench, "bwrap");
    const char *bin = bench_text(bench, "%s/bin", bench->directory);
    struct bench_command *command = bench_command_new(bench);

    if (!program) {
        (void)bench_fail(subject, "not installed");
        return NULL;
    }
    bench_command_add(command, program, "--unshare-user", "--unshare-ipc", "--unshare-pid",
                      "--unshare-net", "--unshare-uts", "--unshare-cgroup-try", "--uid", "1000",
                      "--gid", "1000", "--hostname", "cage", NULL);
    bwrap_system(bench, command);
    bwrap_etc(bench, command);
    bench_command_add(command, "--ro-bind", bin, bin, "--proc", "/proc", "--dev", "/dev", "--tmpfs",
                      "/tmp", "--tmpfs", "/dev/shm", "--remount-ro", "/", "--chdir", "/tmp",
                      "--cap-drop", "ALL", "--new-session", "--die-with-parent", "--clearenv",
                      "--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin", "--setenv", "HOME",
                      "/tmp", "--setenv", "LANG", "C.UTF-8", "--setenv", "TMPDIR", "/tmp", NULL);
    return command;
}

int bench_bwrap_prepare(struct bench *bench, struct bench_subject *subject)
{
    struct bench_command *command = bwrap(bench, subject);
    if (!command)
        return -1;
    bench_command_add(command, "--", bench->true_path, NULL);
    subject->command = command;
    return bench_command_try(bench, command, subject);
}

/* Our own filter, as bubblewrap wants it: the instructions as they are, in a file. */
static const char *filter_file(struct bench *bench, struct bench_subject *subject)
{
    struct tci_syscalls profile = { .profile = TCI_SYSCALLS_DEFAULT };
    struct tci_filter_spec spec = { .syscalls = &profile };
    struct tci_filter filter = { 0 };
    struct tc_error error = { 0 };
    const char *path = bench_file(bench, "filter", "");
    FILE *file;
    size_t written = 0;

    if (tci_filter_compile(&spec, &filter, &error) < 0) {
        (void)bench_fail(subject, "filter: %s", error.message);
        return NULL;
    }
    file = fopen(path, "we");
    if (file) {
        written = fwrite(filter.code, sizeof(filter.code[0]), filter.count, file);
        if (fclose(file) != 0)
            written = 0;
    }
    if (written != filter.count || written == 0)
        (void)bench_fail(subject, "cannot write the filter");
    else
        subject->note[0] = 0;
    tci_filter_free(&filter);
    return subject->note[0] ? NULL : path;
}

int bench_bwrap_filter_prepare(struct bench *bench, struct bench_subject *subject)
{
    struct bench_command *command = bwrap(bench, subject);
    if (!command)
        return -1;
    command->descriptor_10 = filter_file(bench, subject);
    if (!command->descriptor_10)
        return -1;
    bench_command_add(command, "--seccomp", "10", "--", bench->true_path, NULL);
    subject->command = command;
    return bench_command_try(bench, command, subject);
}

int bench_firejail_prepare(struct bench *bench, struct bench_subject *subject)
{
    const char *program = bench_find(bench, "firejail");
    struct bench_command *command = bench_command_new(bench);
    if (!program)
        return bench_fail(subject, "not installed");
    /* It covers /var/tmp, whatever it is told. */
    bench_command_add(command, program, "--quiet", "--noprofile", "--net=none", "--ipc-namespace",
                      "--hostname=cage", "--caps.drop=all", "--nonewprivs", "--nogroups",
                      "--seccomp", "--private-dev", "--private-tmp",
                      "--private-etc=ld.so.cache,localtime", "--read-only=/", "--nodbus",
                      "--rlimit-nofile=256", "--", bench->built_true_path, NULL);
    subject->command = command;
    return bench_command_try(bench, command, subject);
}
