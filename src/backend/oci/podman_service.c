/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a Podman service of our own, for a plan that finds none running.
 *
 * It ends with the plan, and when this process is killed. The kernel's signal for the death of a
 * parent does not survive the way Podman starts itself again, so a shell stands between: it holds
 * the reading end of a pipe, and when nobody holds the other end any more, it ends the service. No
 * copy of this process' memory is made (posix_spawn).
 */
#include "backend/oci/api.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "backend/probe_exec.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/quote.h"

enum { START_MS = 15000, END_MS = 3000, PAUSE_MS = 5 };

/* $0: "toolcage-podman"; $@: the command. Shell and service are one group, which ends as a whole: when
 * the service ends by itself, and when `read` returns because the pipe has no other end any more. Then
 * all are asked to end, and soon made to: Podman may have become two processes, of which nobody but the
 * kernel knows both. Its containers and its namespaces' keeper have sessions of their own. */
static const char WATCH[] = "(trap 'kill -KILL 0' TERM; \"$@\" </dev/null; kill -KILL 0) & "
                            "read -r line; trap '' TERM; kill -TERM 0; sleep 3; kill -KILL 0";

static void pause_a_moment(void)
{
    const struct timespec moment = { .tv_nsec = PAUSE_MS * 1000000L };
    (void)nanosleep(&moment, NULL);
}

/* Podman takes systemd's word for control groups unless it is told; without systemd it has none
 * to ask. */
static bool has_systemd(void)
{
    struct stat s;
    return stat("/run/systemd/system", &s) == 0 && S_ISDIR(s.st_mode);
}

/* On a host with both versions of control groups crun refuses to work, as Podman's default as
 * anybody's. */
static const char *needed_runtime(char path[TCI_PROGRAM_PATH_MAX])
{
    struct statfs s;
    bool hybrid = statfs("/sys/fs/cgroup/unified", &s) == 0 && s.f_type == CGROUP2_SUPER_MAGIC;
    return hybrid && tci_program_find("runc", path) ? "runc" : NULL;
}

struct command {
    const char *program, *runtime, *address;
};

static int spawn(const struct command *command, int alive, int log, pid_t *ret)
{
    const char *argv[14] = { "sh", "-c", WATCH, "toolcage-podman", command->program };
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    size_t n = 5;
    int r;
    if (!has_systemd())
        argv[n++] = "--cgroup-manager=cgroupfs";
    /* Only here: Podman 4 does not listen to a container's own wish. */
    if (command->runtime) {
        argv[n++] = "--runtime";
        argv[n++] = command->runtime;
    }
    argv[n++] = "system";
    argv[n++] = "service";
    argv[n++] = "--time=0";
    argv[n++] = command->address;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    r = posix_spawn_file_actions_init(&actions);
    if (r)
        return r;
    r = posix_spawnattr_init(&attributes);
    if (r) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return r;
    }
    /* A session of its own: what the terminal sends to the caller is not for it. */
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
                                                    POSIX_SPAWN_SETSIGDEF);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setsigdefault(&attributes, &all);
    (void)posix_spawn_file_actions_adddup2(&actions, alive, STDIN_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, log, STDOUT_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, log, STDERR_FILENO);
    r = posix_spawn(ret, "/bin/sh", &actions, &attributes, (char *const *)(uintptr_t)argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    return r;
}

/* 0, or an errno. */
static int try_to_connect(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    tc_cleanup(tci_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    memcpy(address.sun_path, path, strlen(path));
    return fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 ? 0
                                                                                          : errno;
}

bool tci_podman_service_is_gone(const struct tci_podman_service *service, const char *path)
{
    const int problem = service->pid ? try_to_connect(path) : 0;
    return problem == ECONNREFUSED || problem == ENOENT;
}

/* Why it did not come up, in its own words: the end of its log, which holds a line for each
 * step. */
static int failed(int log, const char *program, const char *why, struct tc_error *reterr)
{
    char text[240], shown[TCI_QUOTE_MAX];
    off_t size = lseek(log, 0, SEEK_END);
    off_t from = size > (off_t)sizeof text - 1 ? size - ((off_t)sizeof text - 1) : 0;
    ssize_t n = size > 0 ? pread(log, text, sizeof text - 1, from) : 0;
    text[n > 0 ? n : 0] = '\0';
    while (n > 0 && text[n - 1] == '\n')
        text[--n] = '\0';
    char *last = strrchr(text, '\n');
    last = last ? last + 1 : text;
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "Podman's service %s: %s", why,
                  tci_quote(last, strlen(last), shown));
    tci_error_remedy(reterr, "try: %.200s system service --time=5 unix:///tmp/podman-try.sock",
                     program);
    return -1;
}

static int wait_for(struct tci_podman_service *service, const char *path, int log,
                    const char *program, struct tc_error *reterr)
{
    uint64_t until = tci_clock_us() + START_MS * UINT64_C(1000);
    while (try_to_connect(path) != 0) {
        siginfo_t info = { 0 };
        if (waitid(P_PID, (id_t)service->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            info.si_pid)
            return failed(log, program, "ended at once", reterr);
        if (tci_clock_us() > until)
            return failed(log, program, "did not answer within 15 s", reterr);
        pause_a_moment();
    }
    return 0;
}

int tci_podman_service_start(struct tci_podman_service *service, const char *program,
                             const struct tci_api_place *place, char ret_socket[TCI_OCI_SOCKET_MAX],
                             struct tc_error *reterr)
{
    tc_cleanup(tci_closep) int log = -1, theirs = -1;
    char path[TCI_PROGRAM_PATH_MAX];
    const char *runtime = service->runtime ? service->runtime : needed_runtime(path);
    char address[TCI_OCI_SOCKET_MAX + 8];
    int ends[2], r, length;
    service->pid = 0;
    service->alive = -1;
    length = snprintf(ret_socket, TCI_OCI_SOCKET_MAX, "%s/podman.sock", place->path);
    if (length >= TCI_OCI_SOCKET_MAX)
        return tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                             "the path of a socket would be too long: %.200s", place->path);
    (void)snprintf(address, sizeof address, "unix://%s", ret_socket);
    log = openat(place->directory, "podman.log", O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC,
                 0600);
    if (log < 0 || tci_pipe(ends, 0) < 0)
        return tci_error_errno(reterr, errno, "preparing Podman's service");
    theirs = ends[0];
    service->alive = ends[1];
    r = spawn(&(struct command){ program, runtime, address }, theirs, log, &service->pid);
    if (r) {
        service->pid = 0;
        service->alive = tci_close(service->alive);
        return tci_error_errno(reterr, r, "starting Podman's service");
    }
    if (wait_for(service, ret_socket, log, program, reterr) == 0)
        return 0;
    tci_podman_service_end(service);
    return -1;
}

void tci_podman_service_end(struct tci_podman_service *service)
{
    uint64_t until = tci_clock_us() + END_MS * UINT64_C(1000);
    service->alive = tci_close(service->alive);
    if (!service->pid)
        return;
    for (;;) {
        siginfo_t info = { 0 };
        if (waitid(P_PID, (id_t)service->pid, &info, WEXITED | WNOHANG) < 0 || info.si_pid)
            break; /* also when the host itself collects all children */
        if (tci_clock_us() > until) {
            (void)kill(-service->pid, SIGKILL); /* its session: shell and service */
            until += END_MS * UINT64_C(1000);
        }
        pause_a_moment();
    }
    service->pid = 0;
}
