/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: Podman and Docker on an image of our own, which holds only the static program and is made
 * from an archive: no registry. Podman gets storage of its own: that of the service that bench/daemons.py
 * has started ($BENCH_PODMAN), or one that is made here. Docker's daemon must run already, or has been
 * started there ($DOCKER_HOST); its image is removed at the end.
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include "native.h"

static const char *podman_directory(struct bench *bench)
{
    const char *given = getenv("BENCH_PODMAN");
    return given ? given : bench->directory;
}

/* The beginning of every command line of this engine. */
static struct bench_command *engine(struct bench *bench, struct bench_subject *subject)
{
    const char *program = bench_find(bench, subject->argument);
    struct bench_command *command = bench_command_new(bench);

    if (!program)
        return NULL;
    bench_command_add(command, program, NULL);
    if (strcmp(subject->argument, "podman") == 0)
        bench_command_add(command, "--root",
                          bench_text(bench, "%s/podman", podman_directory(bench)), "--runroot",
                          bench_text(bench, "%s/podman-run", podman_directory(bench)),
                          "--cgroup-manager", "cgroupfs", "--events-backend", "file", NULL);
    /* crun refuses hybrid hosts. */
    if (strcmp(subject->argument, "podman") == 0 &&
        access("/sys/fs/cgroup/unified/cgroup.procs", F_OK) == 0)
        bench_command_add(command, "--runtime", "runc", NULL);
    return command;
}

const char *bench_engine_image(struct bench *bench)
{
    return bench_text(bench, "toolcage-bench:%d", (int)getpid());
}

/* Podman leaves the parent of its groups behind: give it one that can be removed. */
static const char *group_name(struct bench *bench)
{
    return bench_text(bench, "toolcage-bench-%d-podman", (int)getpid());
}

static void remove_groups(struct bench *bench)
{
    glob_t found;
    if (glob(bench_text(bench, "/sys/fs/cgroup/*/%s", group_name(bench)), 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            (void)rmdir(bench_text(bench, "%s/conmon", found.gl_pathv[i]));
            (void)rmdir(found.gl_pathv[i]);
        }
        globfree(&found);
    }
    (void)rmdir(bench_text(bench, "/sys/fs/cgroup/%s/conmon", group_name(bench)));
    (void)rmdir(bench_text(bench, "/sys/fs/cgroup/%s", group_name(bench)));
}

static int import(struct bench *bench, struct bench_subject *subject)
{
    struct bench_command *archive = bench_command_new(bench), *command = engine(bench, subject);
    const char *tar = bench_find(bench, "tar");
    const char *file = bench_text(bench, "%s/image.tar", bench->directory);

    if (!tar)
        return bench_fail(subject, "tar is not installed");
    bench_command_add(archive, tar, "-C", bench->directory, "-cf", file, "bin/true", NULL);
    if (bench_command_try(bench, archive, subject) < 0)
        return -1;
    bench_command_add(command, "import", file, bench_engine_image(bench), NULL);
    return bench_command_try(bench, command, subject);
}

int bench_engine_prepare(struct bench *bench, struct bench_subject *subject)
{
    struct bench_command *command = engine(bench, subject);

    if (!command)
        return bench_fail(subject, "not installed");
    if (import(bench, subject) < 0)
        return -1;
    bench_command_add(command, "run", "--rm", "--network", "none", "--read-only", "--cap-drop",
                      "ALL", "--security-opt", "no-new-privileges", "--hostname", "cage", NULL);
    if (geteuid() == 0 || strcmp(subject->argument, "docker") == 0)
        bench_command_add(command, "--memory", "256000000", "--pids-limit", "64", "--cpus", "1",
                          NULL);
    /* Podman raises these two limits by itself, which root in a container may not. */
    if (strcmp(subject->argument, "podman") == 0)
        bench_command_add(command, "--ulimit", "nofile=256:256", "--ulimit", "nproc=1000:1000",
                          "--cgroup-parent", bench_text(bench, "/%s", group_name(bench)), NULL);
    bench_command_add(command, bench_engine_image(bench), "/bin/true", NULL);
    subject->command = command;
    return bench_command_try(bench, command, subject);
}

void bench_engine_finish(struct bench *bench, struct bench_subject *subject)
{
    struct bench_command *command = engine(bench, subject);
    struct bench_subject ignored = { .id = subject->id };

    if (!command || !subject->command)
        return;
    bench_command_add(command, "rmi", "--force", bench_engine_image(bench), NULL);
    (void)bench_command_try(bench, command, &ignored);
    if (strcmp(subject->argument, "podman") == 0) {
        (void)umount2(bench_text(bench, "%s/podman/overlay", podman_directory(bench)), MNT_DETACH);
        remove_groups(bench);
    }
}
