/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: calls in containers that are made for them, from start to end, and what can go wrong on the way
 * (oci_run_support.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <cmocka.h>
#include "descriptors.h"
#include "oci_run_support.h"
#include "sanitized.h"

#include <sys/stat.h>

/* Nothing is to be looked at before the command: it may start before anybody has seen the hello. */
static const struct tci_oci_driver early_driver = { .name = "early",
                                                    .begin = double_begin,
                                                    .step = double_step,
                                                    .kill = double_kill,
                                                    .end = double_end };

static void expect_broken(const char *script, const char *message)
{
    struct called c = call_script(script);
    assert_int_equal(c.outcome.end, TCI_END_BROKEN);
    assert_true(c.outcome.never_started);
    assert_string_equal(c.text, "");
    if (!strstr(c.error.message, message))
        fail_msg("\"%s\" is not in \"%s\"", message, c.error.message);
}

/* ---- one call --------------------------------------------------------------------------------------- */

static void test_command_runs_and_its_exit_status_is_exact(void **state)
{
    struct called c = call_script("echo hello; exit 9");
    (void)state;
    assert_int_equal(c.outcome.end, TCI_END_EXITED);
    assert_int_equal(c.outcome.status, 9);
    assert_string_equal(c.text, "hello\n");
    c = call_script("kill -TERM $$");
    assert_int_equal(c.outcome.end, TCI_END_SIGNALED);
    assert_int_equal(c.outcome.status, SIGTERM);
}

static void test_program_that_is_missing_is_not_started(void **state)
{
    const char *argv[] = { "no-such-program", NULL };
    struct tc_io io = { .argv = argv };
    int out;
    struct tc_run *run = start_with(&io, &out);
    struct called c = finish(run, out);
    (void)state;
    assert_int_equal(c.outcome.end, TCI_END_NOT_STARTED);
    assert_int_equal(c.outcome.status, ENOENT);
    tci_oci_destroy(run);
}

static void test_container_that_comes_late_is_used_and_has_its_engines_id(void **state)
{
    const char *argv[] = { "echo", "late", NULL };
    struct tc_io io = { .argv = argv };
    struct tc_run *run;
    struct called c;
    int out;
    (void)state;
    mode = LATE;
    run = start_with(&io, &out);
    c = finish(run, out);
    assert_int_equal(c.outcome.end, TCI_END_EXITED);
    assert_string_equal(c.text, "late\n");
    assert_string_equal(tci_oci_sandbox_id(run), "late");
    tci_oci_destroy(run);
}

static void test_call_that_is_over_before_anybody_looks_is_read_all_the_same(void **state)
{
    const char *argv[] = { "sh", "-c", "echo quick; exit 4", NULL };
    struct tc_io io = { .argv = argv };
    struct tc_run *run;
    struct called c;
    siginfo_t info;
    int out;
    (void)state;
    plan.driver = &early_driver;
    run = start_with(&io, &out);
    /* Until it has ended; nobody reads what it says meanwhile. */
    (void)waitid(P_PID, (id_t)atomic_load(&last_pid), &info, WEXITED | WNOWAIT);
    signal_event(run->cage->watch); /* its driver says that it has ended */
    c = finish(run, out);
    assert_int_equal(c.outcome.end, TCI_END_EXITED);
    assert_int_equal(c.outcome.status, 4);
    assert_string_equal(c.text, "quick\n");
    tci_oci_destroy(run);
}

/* ---- what goes wrong before the command ------------------------------------------------------------- */

static void test_begin_that_fails_leaves_nothing(void **state)
{
    const char *argv[] = { "true", NULL };
    const struct tc_io io = { .argv = argv, .in = 0, .out = 1, .err = 2 };
    int before = count_descriptors();
    struct tc_run *run = NULL;
    struct tc_error error = { 0 };
    (void)state;
    mode = REFUSES;
    assert_int_equal(tci_oci_start((struct tc_plan *)&plan, &io, &run, &error), -1);
    assert_string_equal(error.message, "no container today");
    assert_int_equal(count_descriptors(), before);
}

static void test_container_that_cannot_be_made_says_why(void **state)
{
    (void)state;
    mode = FAILS;
    expect_broken("echo ran", "engine: no such image");
}

static void test_entry_that_dies_before_hello_never_ran_the_command(void **state)
{
    (void)state;
    mode = DIES;
    expect_broken("echo ran", "ended before it could be used");
}

static void test_somebody_else_at_the_socket_is_not_believed(void **state)
{
    (void)state;
    mode = RUBBISH;
    expect_broken("echo ran", "not toolcage's own");
}

static void test_container_that_is_not_as_agreed_gets_no_command(void **state)
{
    (void)state;
    mode = NOT_READY;
    expect_broken("echo ran", "a path was exchanged");
}

static void test_kill_before_hello_says_what_was_waited_for(void **state)
{
    const char *argv[] = { "echo", "ran", NULL };
    struct tc_io io = { .argv = argv };
    struct called c = { 0 };
    struct tc_run *run;
    int out;
    (void)state;
    mode = NEVER;
    run = start_with(&io, &out);
    assert_false(wait_for(run, &c, 50000));
    tci_oci_kill(run);
    c = finish(run, out);
    assert_int_equal(c.outcome.end, TCI_END_BROKEN);
    assert_true(c.outcome.never_started);
    assert_non_null(strstr(c.error.message, "waiting for the container to be made"));
    tci_oci_destroy(run);
}

static void test_directory_that_is_missing_is_named(void **state)
{
    (void)state;
    plan.directory = "/no/such";
    expect_broken("echo ran", "entering the working directory /no/such");
}

/* ---- what goes wrong later ---------------------------------------------------------------------------- */

/* A command that has started: its process waits for a signal. */
static struct tc_run *start_waiting(int *ret_out)
{
    static const char *const argv[] = { "sh", "-c", "echo up; exec sleep 1000", NULL };
    struct tc_io io = { .argv = argv };
    struct tc_run *run = start_with(&io, ret_out);
    struct called c = { 0 };
    char up[3];
    while (!wait_for(run, &c, 10000)) {
        struct pollfd p = { .fd = *ret_out, .events = POLLIN };
        if (poll(&p, 1, 0) == 1)
            break;
    }
    assert_int_equal(read(*ret_out, up, sizeof up), sizeof up);
    assert_false(wait_for(run, &c, 20000));
    return run;
}

/* Entry was killed and is no pid 1 here: what it started must be ended by hand. */
static void end_orphan(int pid)
{
    char path[64], text[32] = "";
    int fd;
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(read(fd, text, sizeof text - 1) > 0);
    (void)close(fd);
    assert_int_equal(kill((pid_t)strtol(text, NULL, 10), SIGKILL), 0);
}

static void test_kill_in_mid_call_is_a_signal(void **state)
{
    int out;
    struct tc_run *run = start_waiting(&out);
    struct called c;
    (void)state;
    end_orphan(tci_oci_pid(run));
    tci_oci_kill(run);
    tci_oci_kill(run);
    c = finish(run, out);
    assert_int_equal(c.outcome.end, TCI_END_SIGNALED);
    assert_int_equal(c.outcome.status, SIGKILL);
    tci_oci_destroy(run);
}

static void test_entry_that_somebody_kills_breaks_the_call(void **state)
{
    int out;
    struct tc_run *run = start_waiting(&out);
    struct called c;
    int pid = tci_oci_pid(run);
    (void)state;
    (void)kill(pid, SIGSTOP); /* or it would report the end of its child first */
    end_orphan(pid);
    (void)kill(pid, SIGKILL);
    c = finish(run, out);
    assert_int_equal(c.outcome.end, TCI_END_BROKEN);
    assert_false(c.outcome.never_started);
    assert_non_null(strstr(c.error.message, "somebody else"));
    tci_oci_destroy(run);
}

static void test_call_that_is_given_up_leaves_nobody(void **state)
{
    int out;
    struct tc_run *run = start_waiting(&out);
    struct pollfd p = { .fd = out, .events = POLLIN };
    (void)state;
    /* Entry ends its tree when its socket ends: no kill is needed. */
    (void)shutdown(run->cage->control, SHUT_WR);
    assert_int_equal(poll(&p, 1, 20000), 1);
    (void)close(out);
    tci_oci_destroy(run);
}

/* ---- messages ------------------------------------------------------------------------------------------ */

static void test_long_command_comes_whole(void **state)
{
    enum { words = 12, each = 100000 };
    const char *argv[4 + words + 1] = { "sh", "-c", "echo $#; eval \"echo \\${#$#}\"", "sh" };
    struct tc_io io = { .argv = argv };
    char *word = malloc(each + 1);
    struct called c;
    int out;
    struct tc_run *run;
    (void)state;
    assert_non_null(word);
    memset(word, 'x', each);
    word[each] = '\0';
    for (size_t i = 0; i < words; i++)
        argv[4 + i] = word;
    plan.driver = &early_driver;
    run = start_with(&io, &out);
    free(word); /* the message is made by then */
    c = finish(run, out);
    assert_int_equal(c.outcome.end, TCI_END_EXITED);
    assert_string_equal(c.text, "12\n100000\n");
    tci_oci_destroy(run);
}

static void test_command_that_is_too_long_is_refused(void **state)
{
    enum { each = 5 << 20 };
    char *word = malloc(each);
    const char *argv[] = { "echo", word, NULL };
    const struct tc_io io = { .argv = argv, .in = 0, .out = 1, .err = 2 };
    struct tc_run *run = NULL;
    struct tc_error error = { 0 };
    (void)state;
    assert_non_null(word);
    memset(word, 'x', each);
    word[each - 1] = '\0';
    assert_int_equal(tci_oci_start((struct tc_plan *)&plan, &io, &run, &error), -1);
    assert_int_equal(error.code, TC_ERROR_USAGE);
    assert_int_equal(made, 0);
    free(word);
}

static void test_what_a_container_cannot_do_is_refused(void **state)
{
    const char *argv[] = { "true", NULL };
    struct tc_io io = { .argv = argv, .traced = true, .out = 1, .err = 2 };
    struct tc_run *run = NULL;
    struct tc_error error = { 0 };
    (void)state;
    assert_int_equal(tci_oci_start((struct tc_plan *)&plan, &io, &run, &error), -1);
    assert_int_equal(error.code, TC_ERROR_UNSUPPORTED);
    io.traced = false;
    io.terminal = true;
    plan.choice.runtime = TCI_OCI_RUNSC;
    error = (struct tc_error){ 0 };
    assert_int_equal(tci_oci_start((struct tc_plan *)&plan, &io, &run, &error), -1);
    assert_non_null(strstr(error.message, "terminal"));
    assert_int_equal(made, 0);
}

/* ---- files --------------------------------------------------------------------------------------------- */

static void test_held_files_are_reached_beneath_the_root_and_links_lead_nowhere(void **state)
{
    char directory[] = "/tmp/toolcage-oci-XXXXXX", link[64];
    const char *argv[] = { "true", NULL };
    struct tc_io io = { .argv = argv, .hold = true };
    struct tc_error error = { 0 };
    struct tc_run *run;
    struct stat a, b;
    int out, fd;
    (void)state;
    assert_non_null(mkdtemp(directory));
    (void)snprintf(link, sizeof link, "%s/link", directory);
    assert_int_equal(symlink("/etc", link), 0);
    run = start_with(&io, &out);
    assert_int_equal(finish(run, out).outcome.end, TCI_END_EXITED);
    fd = tci_oci_open_directory(run, directory, &error);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &a), 0);
    assert_int_equal(stat(directory, &b), 0);
    assert_int_equal(a.st_ino, b.st_ino);
    (void)close(fd);
    assert_int_equal(tci_oci_open_directory(run, link, &error), -1);
    tci_oci_destroy(run);
    (void)unlink(link);
    (void)rmdir(directory);
}

/* ---- many ---------------------------------------------------------------------------------------------- */

static void test_a_thousand_calls_leave_no_descriptor(void **state)
{
#ifdef SANITIZED
    enum { calls = 300 };
#else
    enum { calls = 1000 };
#endif
    int before;
    (void)state;
    plan.driver = &early_driver;
    assert_string_equal(call_script("echo 1").text, "1\n");
    wait_until(&alive, 0);
    before = count_descriptors();
    for (int i = 0; i < calls; i++) {
        const char *argv[] = { "/bin/true", NULL };
        struct tc_io io = { .argv = argv };
        int out;
        struct tc_run *run = start_with(&io, &out);
        assert_int_equal(finish(run, out).outcome.end, TCI_END_EXITED);
        tci_oci_destroy(run);
    }
    wait_until(&alive, 0);
    assert_int_equal(count_descriptors(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_command_runs_and_its_exit_status_is_exact),
        TEST(test_program_that_is_missing_is_not_started),
        TEST(test_container_that_comes_late_is_used_and_has_its_engines_id),
        TEST(test_call_that_is_over_before_anybody_looks_is_read_all_the_same),
        TEST(test_begin_that_fails_leaves_nothing),
        TEST(test_container_that_cannot_be_made_says_why),
        TEST(test_entry_that_dies_before_hello_never_ran_the_command),
        TEST(test_somebody_else_at_the_socket_is_not_believed),
        TEST(test_container_that_is_not_as_agreed_gets_no_command),
        TEST(test_kill_before_hello_says_what_was_waited_for),
        TEST(test_directory_that_is_missing_is_named),
        TEST(test_kill_in_mid_call_is_a_signal),
        TEST(test_entry_that_somebody_kills_breaks_the_call),
        TEST(test_call_that_is_given_up_leaves_nobody),
        TEST(test_long_command_comes_whole),
        TEST(test_command_that_is_too_long_is_refused),
        TEST(test_what_a_container_cannot_do_is_refused),
        TEST(test_held_files_are_reached_beneath_the_root_and_links_lead_nowhere),
        TEST(test_a_thousand_calls_leave_no_descriptor),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
