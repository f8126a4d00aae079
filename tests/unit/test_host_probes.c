/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of the runner of probes, with probes that crash, hang and lie, and of the real
 * probes on this host.
 */
#include "host_support.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "backend/host.h"
#include "backend/probe.h"
#include "backend/probe_cgroup.h"
#include "backend/ready.h"

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
    int limit = 100;
    int64_t begin;
    char expected[64];
    (void)state;
    told_pid = mmap(NULL, sizeof *told_pid, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                    0);
    assert_true(told_pid != MAP_FAILED);
    do { /* on a busy machine it may be killed before it has made its child */
        begin = now_ms();
        f = run_job(hangs, NULL, limit);
        assert_int_equal(f.state, TCI_FEATURE_UNKNOWN);
        (void)snprintf(expected, sizeof expected, "no answer within %d ms", limit);
        assert_string_equal(f.detail, expected);
        limit *= 4;
        grandchild = *told_pid;
    } while (grandchild <= 0 && limit < 20000);
    assert_true(now_ms() - begin < 20000); /* it would hang for ever */
    assert_true(grandchild > 0);
    for (int i = 0; is_alive(grandchild); i++) {
        usleep(5000);
        assert_int_not_equal(i, 4000);
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
    int64_t best = INT64_MAX;
    (void)state;
    for (size_t i = 0; i < tci_array_size(jobs); i++)
        jobs[i] = job;
    for (int i = 0; i < 10 && best >= 8 * 200; i++) {
        int64_t begin = now_ms(), took;
        tci_probe_jobs(jobs, tci_array_size(jobs), &report);
        took = now_ms() - begin;
        best = took < best ? took : best;
    }
    assert_true(best < 8 * 200);
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
        cmocka_unit_test(test_words_are_matched_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
