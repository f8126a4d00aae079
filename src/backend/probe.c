/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the parent's side of probes: start, listen, time limit, kill, reap, clean up.
 *
 * Trusts nothing a probe's child sends beyond its form: a record counts only for a feature of its
 * own job, its text is cut and made printable, and a missing record is UNKNOWN.
 *
 * Invariants: a child is made with exit signal 0, so that neither an ignored SIGCHLD nor a handler
 * of the caller's can reap it. It stays a zombie until waited for here; its id, and with it that
 * of its process group, therefore cannot name anybody else when it is killed.
 */
#include "backend/probe.h"
#include "backend/probe_record.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    JOBS_MAX = 32,
    FEW_FILES = 64,       /* open files: more than any probe needs */
    REAP_LIMIT_MS = 1000, /* a killed child that still is not gone is stuck in the kernel */
    BACKSTOP_MS = 1000,   /* how long a child whose parent died may outlive its time limit */
};

static const char REMEDY_LIMITS[] =
    "raise the limits on processes and open files of this shell (ulimit -u, ulimit -n)";
static const char REMEDY_AGAIN[] =
    "try again without limits on this shell (ulimit -a); if it stays so, please report it";

struct running {
    const struct tci_probe_job *job;
    pid_t pid;
    int fd;
    int64_t deadline;
    uint64_t seen; /* features with a record */
    struct tci_probe context;
};

static int64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The features for which `bits` are set were not found out. */
static void set_unknown(struct tci_host_report *report, uint64_t bits, const char *detail,
                        const char *remedy)
{
    for (size_t i = 0; i < TCI_FEATURE_COUNT; i++) {
        struct tci_host_feature *f = &report->features[i];
        if (!(bits >> i & 1))
            continue;
        f->state = TCI_FEATURE_UNKNOWN;
        (void)snprintf(f->detail, sizeof f->detail, "%s", detail);
        (void)snprintf(f->remedy, sizeof f->remedy, "%s", remedy);
    }
}

static void unique_name(char *buffer, size_t size)
{
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random) {
        struct timespec t;
        (void)clock_gettime(CLOCK_MONOTONIC, &t);
        random = (uint64_t)t.tv_nsec; /* the process id before it already makes it unique */
    }
    (void)snprintf(buffer, size, "toolcage-probe-%d-%016llx", (int)getpid(),
                   (unsigned long long)random);
}

/*
 * In the child: only its own descriptors. Those of the caller and of the other probes would use up
 * a tight limit, and what a probe starts has no business with them. A low soft limit is the
 * caller's convenience; the hard one is the answer.
 */
static void settle_files(int own)
{
    struct rlimit limit;
    if (own > STDERR_FILENO + 1)
        (void)syscall(SYS_close_range, STDERR_FILENO + 1U, (unsigned)own - 1, 0U);
    (void)syscall(SYS_close_range, (unsigned)(own > STDERR_FILENO ? own : STDERR_FILENO) + 1, ~0U,
                  0U);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < FEW_FILES) {
        limit.rlim_cur = limit.rlim_max < FEW_FILES ? limit.rlim_max : FEW_FILES;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* In the child: nothing of the caller's signal set-up, no core file, an end even if orphaned. */
static void child_settle(const struct tci_probe_job *job, pid_t parent)
{
    int limit_ms = job->limit_ms + BACKSTOP_MS;
    struct itimerval backstop = { .it_value = { limit_ms / 1000, limit_ms % 1000 * 1000L } };
    struct sigaction action = { .sa_handler = SIG_DFL };
    sigset_t none;
    (void)setpgid(0, 0);
    for (int s = 1; s < NSIG; s++)
        (void)sigaction(s, &action, NULL); /* fails for a few numbers, by design */
    action.sa_handler = SIG_IGN;
    (void)sigaction(SIGPIPE, &action, NULL);
    (void)sigaction(SIGXFSZ, &action, NULL); /* a limit on file sizes is an answer, not an end */
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    /* The attack: a program that puts a child into a session of its own would leave it to init. */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    (void)setitimer(ITIMER_REAL, &backstop, NULL);
    /* A probe that cleans up after itself is let finish when the parent dies. */
    if (!job->cleanup) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        /* It may have died already; 0: it is in another pid namespace. */
        if (getppid() != parent && getppid() != 0)
            _exit(1);
    }
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* 0, or an errno. */
static int start(struct running *r, const struct tci_probe_job *job)
{
    sigset_t all, before;
    int fds[2], problem;
    pid_t parent = getpid();
    if (pipe2(fds, O_CLOEXEC) < 0)
        return errno;
    *r = (struct running){ .job = job, .fd = fds[0] };
    r->context.fd = fds[1];
    r->context.wanted = job->features;
    unique_name(r->context.unique, sizeof r->context.unique);
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &before);
    /* A plain fork, but with exit signal 0: see the top of this file. */
    r->pid = (pid_t)syscall(SYS_clone, 0UL, 0UL, 0UL, 0UL, 0UL);
    problem = errno;
    if (r->pid == 0) {
        child_settle(job, parent);
        settle_files(fds[1]);
        job->run(&r->context);
        tci_probe_end_descendants();
        _exit(0);
    }
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    (void)close(fds[1]);
    if (r->pid < 0) {
        (void)close(fds[0]);
        return problem;
    }
    (void)setpgid(r->pid, r->pid);
    (void)fcntl(r->fd, F_SETFL, O_NONBLOCK);
    r->deadline = now_ms() + job->limit_ms;
    return 0;
}

/* Copies text that came from outside: program output must not reach a terminal as control bytes. */
static void copy_printable(char *to, size_t size, const char *from, size_t from_size)
{
    size_t i;
    for (i = 0; i + 1 < size && i < from_size && from[i]; i++)
        to[i] = from[i] >= ' ' && from[i] <= '~' ? from[i] : '?';
    to[i] = '\0';
}

static void accept_record(struct running *r, const struct tci_probe_record *record,
                          struct tci_host_report *report)
{
    struct tci_host_feature *f;
    uint64_t bit;
    if (!r->job || record->id < 0 || record->id >= TCI_FEATURE_COUNT ||
        record->state < TCI_FEATURE_UNKNOWN || record->state > TCI_FEATURE_YES)
        return;
    bit = UINT64_C(1) << record->id;
    if (!(r->job->features & bit) || (r->seen & bit))
        return;
    r->seen |= bit;
    f = &report->features[record->id];
    f->state = (enum tci_feature_state)record->state;
    copy_printable(f->detail, sizeof f->detail, record->detail, sizeof record->detail);
    copy_printable(f->remedy, sizeof f->remedy, record->remedy, sizeof record->remedy);
    if (f->state != TCI_FEATURE_YES && !f->remedy[0])
        (void)snprintf(f->remedy, sizeof f->remedy, "%s", REMEDY_AGAIN);
}

/* Takes what is in the pipe. False at its end. Records are written whole (below PIPE_BUF). */
static bool listen_to(struct running *r, struct tci_host_report *report)
{
    struct tci_probe_record record;
    for (;;) {
        ssize_t n = read(r->fd, &record, sizeof record);
        if (n == (ssize_t)sizeof record)
            accept_record(r, &record, report);
        else if (n < 0 && errno == EINTR)
            continue;
        else
            return n < 0 && errno == EAGAIN;
    }
}

/* Kills and reaps. The child's wait status, or -1 if it is stuck in the kernel. */
static int end(const struct running *r)
{
    int64_t until = now_ms() + REAP_LIMIT_MS;
    (void)kill(-r->pid, SIGKILL);
    (void)kill(r->pid, SIGKILL);
    for (;;) {
        int status = 0;
        pid_t got = waitpid(r->pid, &status, WNOHANG | __WALL);
        if (got == r->pid)
            return status;
        if (got < 0 && errno != EINTR)
            return 0; /* ECHILD: somebody with __WALL was faster; it is gone, which is enough */
        if (now_ms() >= until)
            return -1;
        (void)nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
    }
}

static void finish(struct running *r, bool in_time, struct tci_host_report *report)
{
    char detail[TCI_FEATURE_DETAIL_MAX];
    int status = end(r);
    (void)close(r->fd);
    if (r->job->cleanup)
        r->job->cleanup(&r->context);
    if (status == -1)
        (void)snprintf(detail, sizeof detail, "the probe hangs inside the kernel");
    else if (!in_time)
        (void)snprintf(detail, sizeof detail, "no answer within %d ms", r->job->limit_ms);
    else if (WIFSIGNALED(status))
        (void)snprintf(detail, sizeof detail, "the probe was killed by SIG%s",
                       sigabbrev_np(WTERMSIG(status)) ? sigabbrev_np(WTERMSIG(status)) : "?");
    else
        (void)snprintf(detail, sizeof detail, "the probe ended without an answer");
    set_unknown(report, r->job->features & ~r->seen, detail, REMEDY_AGAIN);
}

/* Waits until something happens and finishes the jobs that are over; returns how many still run. */
static size_t step(struct running *running, size_t count, struct tci_host_report *report)
{
    struct pollfd polled[JOBS_MAX];
    int64_t next = INT64_MAX, now = now_ms();
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        polled[i] = (struct pollfd){ .fd = running[i].fd, .events = POLLIN };
        next = running[i].deadline < next ? running[i].deadline : next;
    }
    (void)poll(polled, (nfds_t)count, next > now ? (int)(next - now) : 0); /* EINTR: look again */
    now = now_ms();
    for (size_t i = 0; i < count; i++) {
        bool open = listen_to(&running[i], report);
        if (open && now < running[i].deadline)
            running[kept++] = running[i];
        else
            finish(&running[i], !open, report);
    }
    return kept;
}

void tci_probe_jobs(const struct tci_probe_job *jobs, size_t count, struct tci_host_report *report)
{
    struct running running[JOBS_MAX] = { 0 };
    size_t active = 0, next = 0;
    while (next < count || active) {
        int problem = 0;
        if (next < count && active < JOBS_MAX)
            problem = start(&running[active], &jobs[next]);
        else
            problem = EAGAIN;
        if (!problem) {
            active++;
            next++;
        } else if (active && (next == count || tci_probe_is_shortage(problem))) {
            /* Under a tight limit on processes or files, simply fewer run at a time. */
            active = step(running, active, report);
        } else {
            char detail[TCI_FEATURE_DETAIL_MAX];
            (void)snprintf(detail, sizeof detail, "could not start the probe: %s",
                           strerrordesc_np(problem));
            set_unknown(report, jobs[next++].features, detail, REMEDY_LIMITS);
        }
    }
}
