/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the double. Its runs are process groups; the end of the first process ends the group. */
#include "backend_double.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

atomic_int double_plans, double_plans_made, double_runs, double_misused;
struct tci_settings double_settings;
tci_clauses double_clauses;
const struct tci_gate_record *double_records;
size_t double_record_count;
uint64_t double_dropped;
static pthread_mutex_t last_plan = PTHREAD_MUTEX_INITIALIZER;

struct tc_plan {
    const struct tc_spec *spec;
};

struct tc_run {
    pid_t pid; /* 0: played */
    int fd;
    bool leaks, fails, ended, waits, in_step;
    struct tc_outcome outcome;
    void (*on_network)(void *data, const struct tci_gate_record *record);
    void *network_data;
    size_t told; /* of the records */
    char id[TCI_SANDBOX_ID_MAX];
};

static int plan(const struct tc_spec *spec, struct tc_plan **ret, struct tc_error *reterr)
{
    struct tc_plan *made;
    if (spec->clauses & tci_clause_bit(TCI_CLAUSE_NETWORK_NAMES)) {
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "network_names cannot be kept by a double");
        tci_error_remedy(reterr, "use a backend");
        return -1;
    }
    made = calloc(1, sizeof *made);
    if (!made)
        return tci_error_no_memory(reterr);
    made->spec = spec;
    (void)pthread_mutex_lock(&last_plan);
    double_settings = *spec->settings;
    double_clauses = spec->clauses;
    (void)pthread_mutex_unlock(&last_plan);
    double_plans++;
    double_plans_made++;
    *ret = made;
    return 0;
}

static void plan_free(struct tc_plan *made)
{
    double_plans--;
    free(made);
}

static bool play(const char *const *argv, struct tc_run *run)
{
    static const struct {
        const char *name;
        struct tc_outcome outcome;
    } plays[] = {
        { "double:exit", { .end = TCI_END_EXITED } },
        { "double:memory", { .end = TCI_END_SIGNALED, .status = 9, .hit = TCI_HIT_MEMORY } },
        { "double:cpu", { .end = TCI_END_SIGNALED, .status = 9, .hit = TCI_HIT_CPU } },
        { "double:disk", { .end = TCI_END_SIGNALED, .status = 9, .hit = TCI_HIT_DISK } },
        { "double:pids", { .end = TCI_END_EXITED, .hit = TCI_HIT_PIDS } },
        { "double:errno", { .end = TCI_END_NOT_STARTED } },
        { "double:broken", { .end = TCI_END_BROKEN } },
        { "double:fails", { .end = TCI_END_BROKEN } },
        { "double:waits", { .end = TCI_END_SIGNALED, .status = SIGKILL } },
        { "double:never", { .end = TCI_END_BROKEN, .never_started = true } },
    };
    for (size_t i = 0; i < sizeof plays / sizeof *plays; i++) {
        if (strcmp(argv[0], plays[i].name) != 0)
            continue;
        run->outcome = plays[i].outcome;
        run->outcome.finished = true;
        if (argv[1])
            run->outcome.status = atoi(argv[1]);
        run->fails = strcmp(argv[0], "double:fails") == 0;
        run->waits = strcmp(argv[0], "double:waits") == 0 || run->outcome.never_started;
        run->fd = eventfd(1, EFD_CLOEXEC);
        return true;
    }
    return false;
}

static int spawn(const struct tc_io *io, struct tc_run *run)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    const char *program = run->leaks ? io->argv[0] + strlen("leak:") : io->argv[0];
    int problem = 0;

    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawnattr_init(&attributes);
    for (int fd = 0; fd <= 2 && !problem; fd++)
        problem = posix_spawn_file_actions_adddup2(&actions,
                                                   fd == 0   ? io->in
                                                   : fd == 1 ? io->out
                                                             : io->err,
                                                   fd);
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setsigdefault(&attributes, &all);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                    POSIX_SPAWN_SETSIGDEF);
    if (!problem)
        problem = posix_spawnp(&run->pid, program, &actions, &attributes,
                               (char **)(uintptr_t)io->argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    return problem;
}

static int start(struct tc_plan *made, const struct tc_io *io, struct tc_run **ret,
                 struct tc_error *reterr)
{
    struct tc_run *run;
    int problem;

    (void)made;
    if (strcmp(io->argv[0], "double:refused") == 0) {
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "no namespaces");
        tci_error_remedy(reterr, "switch them on");
        return -1;
    }
    run = calloc(1, sizeof *run);
    if (!run)
        return tci_error_no_memory(reterr);
    run->fd = -1;
    run->leaks = strncmp(io->argv[0], "leak:", 5) == 0;
    run->on_network = io->on_network;
    run->network_data = io->network_data;
    (void)snprintf(run->id, sizeof run->id, "double-%p", (void *)run);
    if (!play(io->argv, run)) {
        problem = spawn(io, run);
        if (problem) {
            run->pid = 0;
            run->outcome = (struct tc_outcome){ .finished = true,
                                                .end = TCI_END_NOT_STARTED,
                                                .status = problem };
            run->fd = eventfd(1, EFD_CLOEXEC);
        } else {
            run->fd = (int)syscall(SYS_pidfd_open, run->pid, 0);
        }
    }
    double_runs++;
    *ret = run;
    return 0;
}

static int run_fd(const struct tc_run *run)
{
    return run->fd;
}

static void kill_run(struct tc_run *run)
{
    double_misused += run->in_step;
    run->waits = false;
    if (run->pid)
        (void)kill(-run->pid, SIGKILL);
}

static void tell(struct tc_run *run)
{
    run->in_step = true;
    for (; run->told < double_record_count; run->told++)
        if (run->on_network)
            run->on_network(run->network_data, &double_records[run->told]);
    run->in_step = false;
}

static int step(struct tc_run *run, struct tc_outcome *ret, struct tc_error *reterr)
{
    siginfo_t info = { .si_pid = 0 };
    tell(run);
    if (run->waits)
        return 0;
    if (run->fails)
        return tci_error_set(reterr, TC_ERROR_IO, "the double cannot look");
    if (run->outcome.end == TCI_END_BROKEN && run->outcome.finished)
        tci_error_set(reterr, TC_ERROR_IO, "the cage lost its root");
    if (run->pid && !run->ended) {
        if (waitid(P_PID, (id_t)run->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || !info.si_pid) {
            ret->finished = false;
            return 0;
        }
        if (!run->leaks)
            kill_run(run);
        (void)waitid(P_PID, (id_t)run->pid, &info, WEXITED);
        run->ended = true;
        run->outcome = (struct tc_outcome){
            .finished = true,
            .end = info.si_code == CLD_EXITED ? TCI_END_EXITED : TCI_END_SIGNALED,
            .status = info.si_status,
            .usage = { .cpu_us = 1 },
        };
    }
    *ret = run->outcome;
    return 0;
}

/* What a gate closes when it goes is told, too, if nobody looked before. */
static void destroy(struct tc_run *run)
{
    tell(run);
    kill_run(run);
    if (run->pid && !run->ended)
        (void)waitpid(run->pid, NULL, 0);
    (void)close(run->fd);
    free(run);
    double_runs--;
}

static const char *layers(const struct tc_run *run)
{
    (void)run;
    return "none";
}

static const char *sandbox_id(const struct tc_run *run)
{
    return run->id;
}

static int open_directory(const struct tc_run *run, const char *path, struct tc_error *reterr)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)run;
    return fd < 0 ? tci_error_errno(reterr, errno, "%s", path) : fd;
}

static int run_pid(const struct tc_run *run)
{
    return run->pid;
}

static const struct tci_gate_record *network(const struct tc_run *run, size_t *ret_count,
                                             uint64_t *ret_dropped)
{
    (void)run;
    *ret_count = double_record_count;
    *ret_dropped = double_dropped;
    return double_records;
}

static const struct tc_backend backend = {
    .abi = TC_BACKEND_ABI,
    .kind = TCI_BACKEND_JAIL,
    .name = "double",
    .summary = "no cage at all",
    .plan = plan,
    .plan_free = plan_free,
    .start = start,
    .fd = run_fd,
    .step = step,
    .kill = kill_run,
    .destroy = destroy,
    .layers = layers,
    .sandbox_id = sandbox_id,
    .open_directory = open_directory,
    .pid = run_pid,
    .network = network,
};

const struct tc_backend *double_for(enum tci_backend_kind kind)
{
    return kind == TCI_BACKEND_JAIL ? &backend : NULL;
}
