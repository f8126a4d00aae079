/* SPDX-License-Identifier: Apache-2.0 */
/* Pins how probes are run and cleaned up after, and what is concluded from their report. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend/host.h"
#include "backend/probe.h"
#include "backend/probe_cgroup.h"
#include "backend/probe_exec.h"
#include "backend/probe_record.h"
#include "backend/ready.h"
#include "support.h"

/* ---- helpers ------------------------------------------------------------------------------ */

static int count_fds(void)
{
    int count = 0;
    DIR *directory = opendir("/proc/self/fd");
    assert_non_null(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

static void assert_no_children(void)
{
    errno = 0;
    assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
    assert_int_equal(errno, ECHILD);
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Runs one job made of `run` that answers for KERNEL and PIDFD; returns what it left of KERNEL. */
static struct tci_host_feature run_job(tci_probe_function *run, tci_probe_function *cleanup,
                                       int limit_ms)
{
    static struct tci_host_report report;
    struct tci_probe_job job = { "test", run, cleanup, limit_ms,
                                 TCI_FEATURE_BIT(KERNEL) | TCI_FEATURE_BIT(PIDFD) };
    memset(&report, 0, sizeof report);
    report.features[TCI_FEATURE_CLONE3].state = TCI_FEATURE_NO; /* not the job's: must stay */
    tci_probe_jobs(&job, 1, &report);
    assert_int_equal(report.features[TCI_FEATURE_CLONE3].state, TCI_FEATURE_NO);
    assert_no_children();
    return report.features[TCI_FEATURE_KERNEL];
}

static void fill(struct tci_host_report *report, enum tci_feature_state state)
{
    memset(report, 0, sizeof *report);
    for (size_t i = 0; i < TCI_FEATURE_COUNT; i++) {
        report->features[i].id = (enum tci_feature)i;
        report->features[i].state = state;
        snprintf(report->features[i].detail, sizeof report->features[i].detail, "detail %zu", i);
        if (state != TCI_FEATURE_YES)
            snprintf(report->features[i].remedy, sizeof report->features[i].remedy, "remedy %zu",
                     i);
    }
}

/* ---- the runner --------------------------------------------------------------------------- */

static void answers_twice(const struct tci_probe *p)
{
    tci_probe_yes(p, TCI_FEATURE_KERNEL, "first");
    tci_probe_no(p, TCI_FEATURE_KERNEL, "remedy", "second");
}

static void test_first_answer_counts(void **state)
{
    struct tci_host_feature f = run_job(answers_twice, NULL, 2000);
    (void)state;
    assert_int_equal(f.state, TCI_FEATURE_YES);
    assert_string_equal(f.detail, "first");
    assert_string_equal(f.remedy, "");
}

static void answers_for_another(const struct tci_probe *p)
{
    tci_probe_yes(p, TCI_FEATURE_CLONE3, "not mine");
    tci_probe_yes(p, TCI_FEATURE_COUNT, "nobody's");
    tci_probe_yes(p, TCI_FEATURE_KERNEL, "mine");
}

static void test_answer_for_a_foreign_feature_is_ignored(void **state)
{
    (void)state;
    assert_int_equal(run_job(answers_for_another, NULL, 2000).state, TCI_FEATURE_YES);
}

static void says_nothing(const struct tci_probe *p)
{
    (void)p;
}

static void test_silence_is_unknown(void **state)
{
    struct tci_host_feature f = run_job(says_nothing, NULL, 2000);
    (void)state;
    assert_int_equal(f.state, TCI_FEATURE_UNKNOWN);
    assert_non_null(strstr(f.detail, "without an answer"));
}

static void crashes(const struct tci_probe *p)
{
    (void)p;
    kill(getpid(), SIGSYS); /* what a container's filter does to a forbidden call */
}

static void test_crash_is_unknown_and_names_the_signal(void **state)
{
    struct tci_host_feature f = run_job(crashes, NULL, 2000);
    (void)state;
    assert_int_equal(f.state, TCI_FEATURE_UNKNOWN);
    assert_non_null(strstr(f.detail, "SIGSYS"));
}

/* In memory that is shared with probes, which have no descriptor but their own. */
static volatile pid_t *told_pid;

/* Hangs with a child that hangs, too, and both deaf to everything but SIGKILL. */
static void hangs(const struct tci_probe *p)
{
    pid_t pid;
    (void)p;
    signal(SIGTERM, SIG_IGN);
    pid = fork();
    if (pid > 0 && told_pid)
        *told_pid = pid;
    for (;;)
        pause();
}

/* Is it alive? A zombie is not; whoever reaps orphans here may be slow. */
static bool is_alive(pid_t pid)
{
    char path[64], text[256] = "";
    if (kill(pid, 0) < 0)
        return false;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    return tci_probe_read_file(AT_FDCWD, path, text, sizeof text) > 0 && !strstr(text, ") Z ");
}

static void test_hanging_probe_is_killed_with_its_children(void **state)
{
    struct tci_host_feature f;
    pid_t grandchild;
    int64_t begin = now_ms();
    (void)state;
    told_pid = mmap(NULL, sizeof *told_pid, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                    0);
    assert_true(told_pid != MAP_FAILED);
    f = run_job(hangs, NULL, 100);
    assert_true(now_ms() - begin < 1000);
    assert_int_equal(f.state, TCI_FEATURE_UNKNOWN);
    assert_string_equal(f.detail, "no answer within 100 ms");
    grandchild = *told_pid;
    assert_true(grandchild > 0);
    for (int i = 0; is_alive(grandchild); i++) {
        usleep(5000);
        assert_int_not_equal(i, 199);
    }
    munmap((void *)(uintptr_t)told_pid, sizeof *told_pid);
    told_pid = NULL;
}

/* A child in a session of its own, whose parent ends at once: nobody's, if not the probe's. */
static void leaves_a_daemon(const struct tci_probe *p)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)setsid();
        pid = fork();
        if (pid == 0)
            for (;;)
                pause();
        *told_pid = pid;
        _exit(0);
    }
    while (waitpid(pid, NULL, 0) < 0)
        ;
    tci_probe_yes(p, TCI_FEATURE_KERNEL, "left one");
}

static void test_what_a_probe_leaves_in_another_session_is_killed(void **state)
{
    (void)state;
    told_pid = mmap(NULL, sizeof *told_pid, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                    0);
    assert_true(told_pid != MAP_FAILED);
    assert_int_equal(run_job(leaves_a_daemon, NULL, 2000).state, TCI_FEATURE_YES);
    assert_true(*told_pid > 0);
    assert_false(is_alive(*told_pid));
    munmap((void *)(uintptr_t)told_pid, sizeof *told_pid);
    told_pid = NULL;
}

static void lacks(const struct tci_probe *p)
{
    tci_probe_failed(p, TCI_FEATURE_KERNEL, "remedy", EMFILE, "why");
    tci_probe_failed(p, TCI_FEATURE_PIDFD, "remedy", EPERM, "why");
}

static void cannot_try(const struct tci_probe *p)
{
    tci_probe_refused(p, TCI_FEATURE_KERNEL, "remedy", "open", ENOMEM);
}

static void says_unknown_without_a_remedy(const struct tci_probe *p)
{
    tci_probe_unknown(p, TCI_FEATURE_KERNEL, NULL, "odd");
}

static void test_shortage_is_unknown_and_has_a_remedy(void **state)
{
    struct tci_host_feature f = run_job(lacks, NULL, 2000);
    (void)state;
    assert_int_equal(f.state, TCI_FEATURE_UNKNOWN);
    assert_string_equal(f.detail, "why");
    assert_non_null(strstr(f.remedy, "ulimit -n"));
    f = run_job(cannot_try, NULL, 2000);
    assert_int_equal(f.state, TCI_FEATURE_UNKNOWN);
    assert_string_equal(f.detail, "could not try: open: Cannot allocate memory");
    assert_non_null(strstr(f.remedy, "ulimit"));
    f = run_job(says_unknown_without_a_remedy, NULL, 2000);
    assert_string_not_equal(f.remedy, "");
}

/* Those of the caller and of other probes would use up a tight limit. */
static void counts_descriptors(const struct tci_probe *p)
{
    int open_ones = 0;
    for (int fd = 3; fd < 1024; fd++)
        open_ones += fcntl(fd, F_GETFD) >= 0;
    tci_probe_yes(p, TCI_FEATURE_KERNEL, "%d", open_ones);
}

static void test_probe_has_no_descriptor_but_its_own(void **state)
{
    int low = open("/dev/null", O_RDONLY), high = fcntl(low, F_DUPFD, 100);
    struct tci_host_feature f;
    (void)state;
    tci_host_probe_feature(TCI_FEATURE_CLOSE_RANGE, &f);
    if (f.state == TCI_FEATURE_YES)
        assert_string_equal(run_job(counts_descriptors, NULL, 2000).detail, "1");
    close(high);
    close(low);
}

static char cleaned[64];

static void remember_cleanup(const struct tci_probe *p)
{
    snprintf(cleaned, sizeof cleaned, "%s", p->unique);
}

static void test_cleanup_runs_after_a_killed_probe_and_knows_its_name(void **state)
{
    (void)state;
    cleaned[0] = '\0';
    run_job(hangs, remember_cleanup, 50);
    assert_int_equal(strncmp(cleaned, "toolcage-probe-", 15), 0);
}

static void says_control_bytes(const struct tci_probe *p)
{
    tci_probe_no(p, TCI_FEATURE_KERNEL, "re\nmedy", "a\033[31mb\tc\200");
}

static void test_text_is_made_printable(void **state)
{
    struct tci_host_feature f = run_job(says_control_bytes, NULL, 2000);
    (void)state;
    assert_string_equal(f.detail, "a?[31mb?c?");
    assert_string_equal(f.remedy, "re?medy");
}

static void reports_signals(const struct tci_probe *p)
{
    struct sigaction action;
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    sigaction(SIGCHLD, NULL, &action);
    if (action.sa_handler == SIG_DFL && !sigismember(&blocked, SIGTERM))
        tci_probe_yes(p, TCI_FEATURE_KERNEL, "clean");
}

static void reap_all(int number)
{
    int problem = errno;
    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    errno = problem;
}

static void test_signal_set_up_of_the_caller_does_not_matter(void **state)
{
    void (*const handlers[])(int) = { SIG_IGN, SIG_DFL, reap_all };
    (void)state;
    for (size_t i = 0; i < tci_array_size(handlers); i++) {
        struct sigaction action = { .sa_handler = handlers[i], .sa_flags = SA_RESTART }, before;
        sigset_t blocked, mask;
        sigemptyset(&blocked);
        sigaddset(&blocked, SIGTERM);
        sigprocmask(SIG_BLOCK, &blocked, &mask);
        sigaction(SIGCHLD, &action, &before);
        assert_string_equal(run_job(reports_signals, NULL, 2000).detail, "clean");
        assert_non_null(strstr(run_job(crashes, NULL, 2000).detail, "SIGSYS"));
        sigaction(SIGCHLD, &before, NULL);
        sigprocmask(SIG_SETMASK, &mask, NULL);
    }
}

static void test_jobs_run_side_by_side(void **state)
{
    static struct tci_host_report report;
    struct tci_probe_job job = { "test", hangs, NULL, 200, TCI_FEATURE_BIT(KERNEL) };
    struct tci_probe_job jobs[8];
    int64_t begin = now_ms();
    (void)state;
    for (size_t i = 0; i < tci_array_size(jobs); i++)
        jobs[i] = job;
    tci_probe_jobs(jobs, tci_array_size(jobs), &report);
    assert_true(now_ms() - begin < 8 * 200);
    assert_no_children();
}

static void test_few_descriptors_mean_fewer_at_a_time(void **state)
{
    static struct tci_host_report report;
    struct tci_probe_job job = { "test", answers_twice, NULL, 2000, TCI_FEATURE_BIT(KERNEL) };
    struct tci_probe_job jobs[16];
    struct rlimit before, tight;
    int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)state;
    close(lowest);
    for (size_t i = 0; i < tci_array_size(jobs); i++)
        jobs[i] = job;
    getrlimit(RLIMIT_NOFILE, &before);
    tight = before;
    tight.rlim_cur = (rlim_t)lowest + 3;
    setrlimit(RLIMIT_NOFILE, &tight);
    tci_probe_jobs(jobs, tci_array_size(jobs), &report);
    assert_int_equal(report.features[TCI_FEATURE_KERNEL].state, TCI_FEATURE_YES);
    tight.rlim_cur = (rlim_t)lowest;
    setrlimit(RLIMIT_NOFILE, &tight);
    tci_probe_jobs(jobs, 1, &report);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_int_equal(report.features[TCI_FEATURE_KERNEL].state, TCI_FEATURE_UNKNOWN);
    assert_non_null(strstr(report.features[TCI_FEATURE_KERNEL].detail, "could not start"));
}

/* ---- the real probes ---------------------------------------------------------------------- */

static void test_feature_names_are_stable_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < TCI_FEATURE_COUNT; i++) {
        const char *name = tci_feature_name((enum tci_feature)i);
        assert_true(strlen(tci_feature_purpose((enum tci_feature)i)) > 5);
        for (const char *c = name; *c; c++)
            assert_true(islower((unsigned char)*c) || isdigit((unsigned char)*c) || *c == '_');
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(name, tci_feature_name((enum tci_feature)k));
    }
    assert_string_equal(tci_feature_name(TCI_FEATURE_COUNT), "unknown");
}

static void test_report_is_complete_and_leaves_nothing(void **state)
{
    static struct tci_host_report report;
    int fds = count_fds();
    (void)state;
    tci_host_probe(&report);
    assert_int_equal(count_fds(), fds);
    assert_no_children();
    for (size_t i = 0; i < TCI_FEATURE_COUNT; i++) {
        const struct tci_host_feature *f = &report.features[i];
        assert_int_equal(f->id, i);
        assert_string_not_equal(f->detail, "");
        assert_string_not_equal(f->detail, "not asked"); /* every feature belongs to a job */
        if (f->state == TCI_FEATURE_YES)
            assert_string_equal(f->remedy, "");
        else
            assert_string_not_equal(f->remedy, "");
        assert_true(strlen(f->remedy) < TCI_FEATURE_REMEDY_MAX - 1); /* a cut command is harmful */
    }
    assert_int_equal(report.features[TCI_FEATURE_KERNEL].state, TCI_FEATURE_YES);
}

static void test_one_feature_alone(void **state)
{
    struct tci_host_feature f;
    (void)state;
    tci_host_probe_feature(TCI_FEATURE_KERNEL, &f);
    assert_int_equal(f.id, TCI_FEATURE_KERNEL);
    assert_int_equal(f.state, TCI_FEATURE_YES);
    tci_host_probe_feature(TCI_FEATURE_COUNT, &f);
    assert_int_equal(f.state, TCI_FEATURE_UNKNOWN);
    assert_no_children();
}

/* The names of the features that a backend's probes answered for, joined. */
static void names_asked(const char *backend, char *text, size_t size)
{
    static struct tci_host_report report;
    size_t used = 0;
    tci_host_report_init(&report);
    tci_backend_probe(backend, &report);
    text[0] = '\0';
    for (size_t i = 0; i < TCI_FEATURE_COUNT; i++) {
        const struct tci_host_feature *f = &report.features[i];
        bool asked = report.asked >> i & 1;
        assert_int_equal(asked, strcmp(f->detail, "not asked") != 0);
        if (!asked)
            assert_int_equal(f->state, TCI_FEATURE_UNKNOWN);
        else
            used += (size_t)snprintf(text + used, size - used, " %s", tci_feature_name(f->id));
    }
}

static void test_only_what_a_backend_needs_is_asked(void **state)
{
    static const char *const programs[] = { "podman", "docker", "crun",        "runc",
                                            "runsc",  "qemu",   "firecracker", "wasmtime" };
    static const char *const natives[] = { "process", "jail" };
    char text[2048];
    (void)state;
    for (size_t i = 0; i < tci_array_size(natives); i++) {
        names_asked(natives[i], text, sizeof text);
        assert_true(tci_cgroup_has_word(text, "seccomp_filter", ' '));
        assert_true(tci_cgroup_has_word(text, "cgroup_memory", ' '));
        assert_false(tci_cgroup_has_word(text, "kvm", ' '));
        for (size_t k = 0; k < tci_array_size(programs); k++)
            assert_false(tci_cgroup_has_word(text, programs[k], ' '));
    }
    names_asked("wasm", text, sizeof text);
    assert_true(tci_cgroup_has_word(text, "libwasmtime", ' '));
    assert_false(tci_cgroup_has_word(text, "podman", ' '));
    names_asked("oci/runc", text, sizeof text);
    assert_true(tci_cgroup_has_word(text, "runc", ' '));
    assert_false(tci_cgroup_has_word(text, "crun", ' '));
    assert_false(tci_cgroup_has_word(text, "podman", ' '));
    assert_false(tci_cgroup_has_word(text, "docker_daemon", ' '));
    assert_false(tci_cgroup_has_word(text, "runsc", ' '));
    names_asked("no such", text, sizeof text);
    assert_string_equal(text, "");
    assert_no_children();
}

/* What lint concludes from a few features is what doctor concludes from all of them. */
static void test_backend_alone_is_judged_as_in_the_whole_report(void **state)
{
    static struct tci_host_report whole, part;
    static const char *const natives[] = { "jail", "process" };
    (void)state;
    tci_host_probe(&whole);
    tci_host_report_init(&part);
    for (size_t i = 0; i < tci_array_size(natives); i++) {
        tci_backend_probe(natives[i], &part);
        for (size_t c = 0; c < TCI_CLAUSE_COUNT; c++) {
            struct tci_keeping a, b;
            tci_backend_keeps(&whole, natives[i], (enum tci_clause)c, &a);
            tci_backend_keeps(&part, natives[i], (enum tci_clause)c, &b);
            assert_int_equal(a.keeps, b.keeps);
            assert_string_equal(a.why, b.why);
        }
    }
    /* Once is enough. */
    part.features[TCI_FEATURE_LANDLOCK].detail[0] = '!';
    tci_backend_probe("jail", &part);
    assert_int_equal(part.features[TCI_FEATURE_LANDLOCK].detail[0], '!');
}

/* ---- programs ----------------------------------------------------------------------------- */

static char planted[64]; /* a directory with a program called "planted" in it */

static int plant(void **state)
{
    char path[96];
    FILE *file;
    (void)state;
    snprintf(planted, sizeof planted, "/tmp/test_host.XXXXXX");
    if (!mkdtemp(planted))
        return -1;
    snprintf(path, sizeof path, "%s/planted", planted);
    file = fopen(path, "we");
    if (!file)
        return -1;
    fputs("#!/bin/sh\necho planted\n", file);
    fclose(file);
    return chmod(path, 0755);
}

static int unplant(void **state)
{
    char path[96];
    (void)state;
    snprintf(path, sizeof path, "%s/planted", planted);
    unlink(path);
    return rmdir(planted);
}

static void test_program_in_a_relative_directory_is_not_found(void **state)
{
    char path[TCI_PROGRAM_PATH_MAX], before[4096], value[256], here[1024];
    const char *const relative[] = { ".", "", ":", ":/usr/bin:", "./", "../tmp", "bin:." };
    (void)state;
    snprintf(before, sizeof before, "%s", getenv("PATH"));
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(planted), 0);
    for (size_t i = 0; i < tci_array_size(relative); i++) {
        setenv("PATH", relative[i], 1);
        assert_false(tci_program_find("planted", path));
    }
    snprintf(value, sizeof value, ".:%s:/usr/bin", planted);
    setenv("PATH", value, 1);
    assert_true(tci_program_find("planted", path));
    assert_int_equal(path[0], '/');
    unsetenv("PATH");
    assert_false(tci_program_find("planted", path));
    setenv("PATH", before, 1);
    assert_int_equal(chdir(here), 0);
}

static void test_program_gets_a_clean_environment_and_no_descriptors(void **state)
{
    const char *const environment[] = { "env", NULL };
    const char *const list[] = { "sh", "-c", "echo /proc/self/fd/*", NULL };
    char output[1024];
    int inherited = open("/dev/null", O_RDONLY); /* without CLOEXEC, as a careless caller has it */
    struct tci_program_result r;
    (void)state;
    setenv("TEST_HOST_SECRET", "swordfish", 1);
    r = tci_program_run("/usr/bin/env", environment, 0, 2000, output, sizeof output);
    unsetenv("TEST_HOST_SECRET");
    assert_int_equal(r.end, TCI_PROGRAM_EXITED);
    assert_null(strstr(output, "swordfish"));
    assert_non_null(strstr(output, "HOME=/dev/null\n"));
    r = tci_program_run("/bin/sh", list, 0, 2000, output, sizeof output);
    assert_int_equal(r.end, TCI_PROGRAM_EXITED);
    /* 3 is the shell's own handle on the directory. */
    assert_null(strstr(output, "/4"));
    close(inherited);
}

static void test_program_output_is_capped_and_time_is_limited(void **state)
{
    const char *const endless[] = { "sh", "-c", "while :; do echo yes; done", NULL };
    const char *const long_output[] = { "sh", "-c",
                                        "i=0; while [ $i -lt 5000 ]; do echo x; "
                                        "i=$((i+1)); done; exit 3",
                                        NULL };
    char output[100];
    int64_t begin = now_ms();
    struct tci_program_result r = tci_program_run("/bin/sh", endless, 0, 200, output,
                                                  sizeof output);
    (void)state;
    assert_int_equal(r.end, TCI_PROGRAM_TOO_LATE);
    assert_int_equal(r.length, sizeof output - 1);
    assert_true(now_ms() - begin < 2000);
    r = tci_program_run("/bin/sh", long_output, 0, 10000, output, sizeof output);
    assert_int_equal(r.end, TCI_PROGRAM_EXITED);
    assert_int_equal(r.status, 3);
    assert_int_equal(r.length, sizeof output - 1);
    assert_no_children();
}

/* How many processes have this word among their arguments. */
static int count_processes(const char *word)
{
    DIR *directory = opendir("/proc");
    const struct dirent *entry;
    int count = 0;
    assert_non_null(directory);
    while ((entry = readdir(directory))) {
        char path[300], text[512];
        ssize_t length;
        snprintf(path, sizeof path, "/proc/%s/cmdline", entry->d_name);
        length = isdigit((unsigned char)entry->d_name[0])
                     ? tci_probe_read_file(AT_FDCWD, path, text, sizeof text)
                     : 0;
        for (ssize_t at = 0; at < length; at += (ssize_t)strlen(text + at) + 1)
            count += strcmp(text + at, word) == 0;
    }
    closedir(directory);
    return count;
}

/* The attack: a child in a session of its own, which also keeps the output open. In a pid namespace
 * and without one (as for helpers that gain privileges). */
static void test_program_leaves_no_process_in_another_session(void **state)
{
    static const unsigned flags[] = { 0, TCI_PROGRAM_SETUID };
    static const char *const scripts[] = {
        "setsid sleep $0 & setsid sleep $0 >/dev/null 2>&1 & sleep 0.1; echo done",
        "(setsid sh -c 'setsid sleep $0 & setsid sleep $0' $0) & sleep 0.1; echo done",
        "setsid sleep $0 & setsid sleep $0 >/dev/null 2>&1 & echo done; sleep 0.1; kill -SEGV $$",
        "setsid sleep $0 & setsid sleep $0 & sleep 50",
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(flags) * tci_array_size(scripts); i++) {
        const size_t which = i / tci_array_size(flags);
        char word[32], output[64];
        const char *argv[] = { "sh", "-c", scripts[which], word, NULL };
        struct tci_program_result r;
        snprintf(word, sizeof word, "99.%d%zu", (int)getpid(), i);
        r = tci_program_run("/bin/sh", argv, flags[i % tci_array_size(flags)], 700, output,
                            sizeof output);
        assert_int_equal(count_processes(word), 0);
        assert_no_children();
        assert_int_equal(r.end, which == 3   ? TCI_PROGRAM_TOO_LATE
                                : which == 2 ? TCI_PROGRAM_KILLED
                                             : TCI_PROGRAM_EXITED);
        assert_string_equal(output, which == 3 ? "" : "done\n");
        if (which == 2)
            assert_int_equal(r.status, SIGSEGV);
    }
}

/* Its parent is the guard: in a namespace it cannot be killed, and elsewhere nothing is lost. */
static void kills_its_guard(const struct tci_probe *p)
{
    const char *const argv[] = { "sh", "-c", "setsid sleep 99.4711 & kill -9 $PPID; sleep 50",
                                 NULL };
    char output[64];
    for (unsigned flags = 0; flags <= TCI_PROGRAM_SETUID; flags += TCI_PROGRAM_SETUID)
        (void)tci_program_run("/bin/sh", argv, flags, 300, output, sizeof output);
    tci_probe_yes(p, TCI_FEATURE_KERNEL, "done");
}

static void test_program_that_kills_its_guard_leaves_nothing(void **state)
{
    (void)state;
    assert_int_equal(run_job(kills_its_guard, NULL, 3000).state, TCI_FEATURE_YES);
    assert_int_equal(count_processes("99.4711"), 0);
}

/* ---- control groups ----------------------------------------------------------------------- */

static void test_words_are_matched_whole(void **state)
{
    (void)state;
    assert_true(tci_cgroup_has_word("cpu,cpuacct", "cpu", ','));
    assert_true(tci_cgroup_has_word("rw,cpuacct,cpu", "cpu", ','));
    assert_true(tci_cgroup_has_word("cpuset cpu memory\n", "memory", ' '));
    assert_false(tci_cgroup_has_word("cpuset,cpuacct", "cpu", ','));
    assert_false(tci_cgroup_has_word("", "cpu", ','));
}

/* ---- conclusions -------------------------------------------------------------------------- */

static void test_backends_have_their_names(void **state)
{
    static const char *const names[] = { "process",  "jail",       "oci/crun",
                                         "oci/runc", "oci/podman", "oci/docker",
                                         "gvisor",   "wasm",       "microvm" };
    (void)state;
    assert_int_equal(tci_backend_count(), tci_array_size(names));
    for (size_t i = 0; i < tci_array_size(names); i++)
        assert_string_equal(tci_backend_name(i), names[i]);
    assert_null(tci_backend_name(tci_array_size(names)));
}

static void test_host_without_anything_keeps_nothing(void **state)
{
    static struct tci_host_report report;
    const enum tci_feature_state states[] = { TCI_FEATURE_NO, TCI_FEATURE_UNKNOWN };
    (void)state;
    for (size_t s = 0; s < tci_array_size(states); s++) {
        fill(&report, states[s]);
        for (size_t b = 0; b < tci_backend_count(); b++) {
            struct tci_missing missing;
            assert_false(tci_backend_ready(&report, tci_backend_name(b), &missing));
            assert_true(missing.count > 0);
            for (size_t c = 0; c < TCI_CLAUSE_COUNT; c++) {
                char why[256], remedy[256];
                assert_false(tci_backend_can_for(&report, tci_backend_name(b), (enum tci_clause)c,
                                                 ~0U, why, sizeof why, remedy, sizeof remedy));
                assert_string_not_equal(why, "");
                assert_string_not_equal(remedy, "");
            }
        }
    }
}

/* Also shows that the table has an answer for every backend and clause. */
static void test_host_with_everything_keeps_all_but_what_cannot_be(void **state)
{
    static struct tci_host_report report;
    static const char *const never[] = {
        "process network_names",
        "process network_public",
        "process scratch",
        "oci/crun exec_allowlist",
        "oci/runc exec_allowlist",
        "oci/podman exec_allowlist",
        "oci/docker exec_allowlist",
        "gvisor exec_allowlist",
        "wasm network_host",
        "microvm filesystem",
        "microvm network_names",
        "microvm network_public",
        "microvm network_host",
        "microvm syscalls",
        "microvm exec_allowlist",
        "microvm pids",
        "microvm files",
        "microvm scratch",
    };
    size_t refused = 0;
    (void)state;
    fill(&report, TCI_FEATURE_YES);
    for (size_t b = 0; b < tci_backend_count(); b++) {
        const char *backend = tci_backend_name(b);
        struct tci_missing missing;
        assert_true(tci_backend_ready(&report, backend, &missing));
        assert_int_equal(missing.count, 0);
        for (size_t c = 0; c < TCI_CLAUSE_COUNT; c++) {
            struct tci_keeping k;
            char pair[64];
            bool found = false;
            tci_backend_keeps(&report, backend, (enum tci_clause)c, &k);
            assert_null(strstr(k.why, "no such"));
            snprintf(pair, sizeof pair, "%s %s", backend, tci_clause_name((enum tci_clause)c));
            for (size_t i = 0; i < tci_array_size(never); i++)
                found |= strcmp(pair, never[i]) == 0;
            refused += k.keeps == TCI_KEEPS_NO;
            if (found != (k.keeps == TCI_KEEPS_NO))
                fail_msg("%s: %s", pair, k.why);
            if (k.keeps != TCI_KEEPS_YES)
                assert_string_not_equal(k.remedy, "");
        }
    }
    assert_int_equal(refused, tci_array_size(never));
}

/* The kernel limits no sum of bytes over all files. They are counted where the supervisor sees the whole
 * tree: not in Docker's containers, unless it is root. */
static void test_disk_is_kept_only_where_nothing_is_writable(void **state)
{
    static const char *const counted[] = { "jail", "oci/crun", "oci/runc", "oci/podman", "gvisor" };
    static struct tci_host_report report;
    char why[256], remedy[256];
    (void)state;
    fill(&report, TCI_FEATURE_YES);
    for (size_t b = 0; b < tci_backend_count(); b++) {
        const char *backend = tci_backend_name(b);
        bool is_counted = false;
        for (size_t i = 0; i < tci_array_size(counted); i++)
            is_counted |= strcmp(backend, counted[i]) == 0;
        report.features[TCI_FEATURE_PRIVILEGED].state = TCI_FEATURE_YES;
        if (is_counted || strcmp(backend, "oci/docker") == 0)
            assert_true(tci_backend_can(&report, backend, TCI_CLAUSE_DISK, why, sizeof why, remedy,
                                        sizeof remedy));
        report.features[TCI_FEATURE_PRIVILEGED].state = TCI_FEATURE_NO;
        if (is_counted)
            continue;
        assert_false(tci_backend_can(&report, backend, TCI_CLAUSE_DISK, why, sizeof why, remedy,
                                     sizeof remedy));
        assert_true(tci_backend_can_for(&report, backend, TCI_CLAUSE_DISK,
                                        TCI_FACT_NOTHING_WRITABLE, why, sizeof why, remedy,
                                        sizeof remedy));
        assert_string_equal(why, "");
    }
}

static void test_process_without_control_groups_keeps_limits_of_lone_tools(void **state)
{
    static struct tci_host_report report;
    const enum tci_clause clauses[] = { TCI_CLAUSE_MEMORY, TCI_CLAUSE_PIDS, TCI_CLAUSE_CPU_TIME };
    char why[256], remedy[256];
    (void)state;
    fill(&report, TCI_FEATURE_NO);
    report.features[TCI_FEATURE_SECCOMP_FILTER].state = TCI_FEATURE_YES;
    for (size_t i = 0; i < tci_array_size(clauses); i++) {
        assert_false(tci_backend_can(&report, "process", clauses[i], why, sizeof why, remedy,
                                     sizeof remedy));
        assert_non_null(strstr(why, "control group"));
        assert_non_null(strstr(remedy, "pure"));
        assert_true(tci_backend_can_for(&report, "process", clauses[i], TCI_FACT_ALONE, why,
                                        sizeof why, remedy, sizeof remedy));
        assert_false(tci_backend_can_for(&report, "process", clauses[i], TCI_FACT_WHOLE_CORES, why,
                                         sizeof why, remedy, sizeof remedy));
    }
    assert_false(tci_backend_can_for(&report, "process", TCI_CLAUSE_FILESYSTEM, ~0U, why,
                                     sizeof why, remedy, sizeof remedy));
    assert_non_null(strstr(why, "landlock"));
}

/* A listener for each port needs nothing of nftables; one for all ports does. */
static void test_names_without_redirect_are_kept_for_few_ports(void **state)
{
    static const char *const backends[] = { "jail",       "oci/crun",   "oci/runc",
                                            "oci/podman", "oci/docker", "gvisor" };
    static struct tci_host_report report;
    char why[256], remedy[256];
    (void)state;
    fill(&report, TCI_FEATURE_YES);
    report.features[TCI_FEATURE_GATE_REDIRECT].state = TCI_FEATURE_NO;
    for (size_t i = 0; i < tci_array_size(backends); i++) {
        assert_false(tci_backend_can_for(&report, backends[i], TCI_CLAUSE_NETWORK_NAMES,
                                         ~(unsigned)TCI_FACT_FEW_PORTS, why, sizeof why, remedy,
                                         sizeof remedy));
        assert_non_null(strstr(why, "32 ports"));
        assert_non_null(strstr(remedy, "gate_redirect"));
        assert_true(tci_backend_can_for(&report, backends[i], TCI_CLAUSE_NETWORK_NAMES,
                                        TCI_FACT_FEW_PORTS, why, sizeof why, remedy,
                                        sizeof remedy));
        assert_string_equal(why, "");
        assert_false(tci_backend_can_for(&report, backends[i], TCI_CLAUSE_NETWORK_PUBLIC, ~0U, why,
                                         sizeof why, remedy, sizeof remedy));
        assert_non_null(strstr(why, "gate_redirect"));
    }
    report.features[TCI_FEATURE_GATE_LOCAL_ROUTE].state = TCI_FEATURE_NO;
    for (size_t i = 0; i < tci_array_size(backends); i++)
        assert_false(tci_backend_can_for(&report, backends[i], TCI_CLAUSE_NETWORK_NAMES, ~0U, why,
                                         sizeof why, remedy, sizeof remedy));
}

static unsigned facts_of_network(const char *network)
{
    char text[1000];
    unsigned facts;
    struct tc_policy *policy;
    (void)snprintf(text, sizeof text, "[tool.t]\nnetwork = %s\n", network);
    policy = load_text(text);
    facts = tci_settings_facts(&policy->tools[0].settings);
    tc_policy_free(policy);
    return facts;
}

static void test_few_ports_are_counted_over_all_rules(void **state)
{
    (void)state;
    assert_true(facts_of_network("\"none\"") & TCI_FACT_FEW_PORTS);
    assert_true(facts_of_network("[\"a.example:443\", \"deny:*.b.example:*\"]") &
                TCI_FACT_FEW_PORTS);
    assert_true(facts_of_network("[\"a.example:1-32\", \"b.example:8-20\"]") & TCI_FACT_FEW_PORTS);
    assert_false(facts_of_network("[\"a.example:1-32\", \"b.example:33\"]") & TCI_FACT_FEW_PORTS);
    assert_false(facts_of_network("[\"a.example:*\"]") & TCI_FACT_FEW_PORTS);
    assert_false(facts_of_network("\"public\"") & TCI_FACT_FEW_PORTS);
}

static void test_process_never_promises_network_names(void **state)
{
    static struct tci_host_report report;
    char why[256], remedy[256];
    (void)state;
    fill(&report, TCI_FEATURE_YES);
    assert_false(tci_backend_can_for(&report, "process", TCI_CLAUSE_NETWORK_NAMES, ~0U, why,
                                     sizeof why, remedy, sizeof remedy));
    assert_string_equal(why, "the process backend has no network namespace");
}

static void test_uncertain_feature_is_not_relied_on(void **state)
{
    static struct tci_host_report report;
    char why[256], remedy[256];
    (void)state;
    fill(&report, TCI_FEATURE_YES);
    report.features[TCI_FEATURE_KVM].state = TCI_FEATURE_UNKNOWN;
    assert_false(tci_backend_can(&report, "microvm", TCI_CLAUSE_MEMORY, why, sizeof why, remedy,
                                 sizeof remedy));
    assert_non_null(strstr(why, "kvm is not certain"));
}

static void test_jail_counts_processes_with_either_means(void **state)
{
    static struct tci_host_report report;
    char why[256], remedy[256];
    (void)state;
    fill(&report, TCI_FEATURE_YES);
    report.features[TCI_FEATURE_CGROUP_PIDS].state = TCI_FEATURE_NO;
    assert_true(
        tci_backend_can(&report, "jail", TCI_CLAUSE_PIDS, why, sizeof why, remedy, sizeof remedy));
    report.features[TCI_FEATURE_USERNS_PROCESS_LIMIT].state = TCI_FEATURE_NO;
    assert_false(
        tci_backend_can(&report, "jail", TCI_CLAUSE_PIDS, why, sizeof why, remedy, sizeof remedy));
    assert_non_null(strstr(why, "cgroup_pids"));
}

static void test_jail_runs_as_root_without_user_namespaces(void **state)
{
    static struct tci_host_report report;
    struct tci_missing missing;
    (void)state;
    fill(&report, TCI_FEATURE_YES);
    report.features[TCI_FEATURE_USER_NAMESPACES].state = TCI_FEATURE_NO;
    assert_true(tci_backend_ready(&report, "jail", &missing));
    report.features[TCI_FEATURE_PRIVILEGED].state = TCI_FEATURE_NO;
    assert_false(tci_backend_ready(&report, "jail", &missing));
    assert_int_equal(missing.count, 1);
    assert_int_equal(missing.features[0], TCI_FEATURE_USER_NAMESPACES);
}

/* Docker's processes are root's: who is not root has the daemon's own limits and no gate. */
static void test_docker_of_an_ordinary_user_keeps_what_the_daemon_keeps(void **state)
{
    static const enum tci_clause kept[] = { TCI_CLAUSE_MEMORY, TCI_CLAUSE_CPU, TCI_CLAUSE_PIDS };
    static const enum tci_clause lost[] = { TCI_CLAUSE_CPU_TIME, TCI_CLAUSE_NETWORK_NAMES,
                                            TCI_CLAUSE_NETWORK_PUBLIC };
    static struct tci_host_report report;
    char why[256], remedy[256];
    (void)state;
    fill(&report, TCI_FEATURE_YES);
    report.features[TCI_FEATURE_PRIVILEGED].state = TCI_FEATURE_NO;
    for (size_t i = 0; i < tci_array_size(kept); i++)
        assert_true(tci_backend_can(&report, "oci/docker", kept[i], why, sizeof why, remedy,
                                    sizeof remedy));
    for (size_t i = 0; i < tci_array_size(lost); i++)
        assert_false(tci_backend_can_for(&report, "oci/docker", lost[i], ~0U, why, sizeof why,
                                         remedy, sizeof remedy));
    report.features[TCI_FEATURE_DOCKER_LIMITS].state = TCI_FEATURE_NO;
    for (size_t i = 0; i < tci_array_size(kept); i++)
        assert_false(tci_backend_can_for(&report, "oci/docker", kept[i], ~0U, why, sizeof why,
                                         remedy, sizeof remedy));
}

/* Limits of runtimes and of rootless Podman are dropped without a word on some hosts: only a control
 * group of ours counts. */
static void test_containers_without_a_control_group_keep_no_memory_limit(void **state)
{
    static const char *const backends[] = { "oci/crun", "oci/runc", "oci/podman", "gvisor" };
    static struct tci_host_report report;
    char why[256], remedy[256];
    (void)state;
    fill(&report, TCI_FEATURE_YES);
    report.features[TCI_FEATURE_CGROUP_MEMORY].state = TCI_FEATURE_NO;
    for (size_t i = 0; i < tci_array_size(backends); i++) {
        assert_false(tci_backend_can_for(&report, backends[i], TCI_CLAUSE_MEMORY, ~0U, why,
                                         sizeof why, remedy, sizeof remedy));
        assert_non_null(strstr(why, "cgroup_memory"));
        assert_true(tci_backend_can(&report, backends[i], TCI_CLAUSE_CPU, why, sizeof why, remedy,
                                    sizeof remedy));
    }
}

static void test_a_container_root_that_can_be_written_is_a_writable_path(void **state)
{
    static const char *const lines[] = { "read_only_rootfs = true", "read_only_rootfs = false" };
    (void)state;
    for (size_t i = 0; i < tci_array_size(lines); i++) {
        char text[200];
        struct tc_policy *policy;
        (void)snprintf(text, sizeof text, "[tool.t]\nbackend = \"oci\"\ncontainer = { %s }\n",
                       lines[i]);
        policy = load_text(text);
        assert_int_equal(
            !(tci_settings_facts(&policy->tools[0].settings) & TCI_FACT_NOTHING_WRITABLE), i);
        tc_policy_free(policy);
    }
}

static void test_unknown_backend_keeps_nothing(void **state)
{
    static struct tci_host_report report;
    struct tci_missing missing;
    char why[256], remedy[256];
    (void)state;
    fill(&report, TCI_FEATURE_YES);
    assert_false(tci_backend_ready(&report, "Jail", &missing));
    assert_false(tci_backend_can(&report, "Jail", TCI_CLAUSE_MEMORY, why, sizeof why, remedy,
                                 sizeof remedy));
    assert_non_null(strstr(why, "no such backend"));
    assert_false(
        tci_backend_can(&report, "jail", TCI_CLAUSE_COUNT, why, sizeof why, remedy, sizeof remedy));
    assert_non_null(strstr(why, "no such clause"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_answer_counts),
        cmocka_unit_test(test_answer_for_a_foreign_feature_is_ignored),
        cmocka_unit_test(test_silence_is_unknown),
        cmocka_unit_test(test_crash_is_unknown_and_names_the_signal),
        cmocka_unit_test(test_hanging_probe_is_killed_with_its_children),
        cmocka_unit_test(test_what_a_probe_leaves_in_another_session_is_killed),
        cmocka_unit_test(test_shortage_is_unknown_and_has_a_remedy),
        cmocka_unit_test(test_probe_has_no_descriptor_but_its_own),
        cmocka_unit_test(test_cleanup_runs_after_a_killed_probe_and_knows_its_name),
        cmocka_unit_test(test_text_is_made_printable),
        cmocka_unit_test(test_signal_set_up_of_the_caller_does_not_matter),
        cmocka_unit_test(test_jobs_run_side_by_side),
        cmocka_unit_test(test_few_descriptors_mean_fewer_at_a_time),
        cmocka_unit_test(test_feature_names_are_stable_words),
        cmocka_unit_test(test_report_is_complete_and_leaves_nothing),
        cmocka_unit_test(test_one_feature_alone),
        cmocka_unit_test(test_only_what_a_backend_needs_is_asked),
        cmocka_unit_test(test_backend_alone_is_judged_as_in_the_whole_report),
        cmocka_unit_test_setup_teardown(test_program_in_a_relative_directory_is_not_found, plant,
                                        unplant),
        cmocka_unit_test(test_program_gets_a_clean_environment_and_no_descriptors),
        cmocka_unit_test(test_program_output_is_capped_and_time_is_limited),
        cmocka_unit_test(test_program_leaves_no_process_in_another_session),
        cmocka_unit_test(test_program_that_kills_its_guard_leaves_nothing),
        cmocka_unit_test(test_words_are_matched_whole),
        cmocka_unit_test(test_backends_have_their_names),
        cmocka_unit_test(test_host_without_anything_keeps_nothing),
        cmocka_unit_test(test_host_with_everything_keeps_all_but_what_cannot_be),
        cmocka_unit_test(test_disk_is_kept_only_where_nothing_is_writable),
        cmocka_unit_test(test_process_without_control_groups_keeps_limits_of_lone_tools),
        cmocka_unit_test(test_names_without_redirect_are_kept_for_few_ports),
        cmocka_unit_test(test_few_ports_are_counted_over_all_rules),
        cmocka_unit_test(test_process_never_promises_network_names),
        cmocka_unit_test(test_uncertain_feature_is_not_relied_on),
        cmocka_unit_test(test_jail_counts_processes_with_either_means),
        cmocka_unit_test(test_jail_runs_as_root_without_user_namespaces),
        cmocka_unit_test(test_docker_of_an_ordinary_user_keeps_what_the_daemon_keeps),
        cmocka_unit_test(test_containers_without_a_control_group_keep_no_memory_limit),
        cmocka_unit_test(test_a_container_root_that_can_be_written_is_a_writable_path),
        cmocka_unit_test(test_unknown_backend_keeps_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
