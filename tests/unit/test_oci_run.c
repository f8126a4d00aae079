/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: calls in containers whose driver is one of this file: its "container" is a real entry, as an
 * ordinary process. What can go wrong on the way from a cage to an outcome goes wrong here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <cmocka.h>
#include "descriptors.h"
#include "entry_support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include "backend/oci/run_internal.h"
#include "base/clock.h"
#include "base/fd.h"
#include "sanitized.h"

enum { patience_us = 20000000 };

/* ---- the driver ------------------------------------------------------------------------------------- */

enum mode {
    NORMAL,
    LATE,      /* the socket comes with a step */
    NEVER,     /* nothing ever comes */
    REFUSES,   /* begin fails */
    FAILS,     /* a step says why it could not be made */
    DIES,      /* entry is dead before it says hello */
    RUBBISH,   /* something else than entry answers */
    NOT_READY, /* ready fails */
    LINGERS,   /* its end takes its time */
};

struct container {
    pid_t pid;
    int control; /* LATE: until the step */
    int event;
};

static enum mode mode;
static atomic_int alive, made, ended, most, last_pid;
static struct tci_settings settings;
static struct tci_oci_plan plan;
static pthread_mutex_t spawning = PTHREAD_MUTEX_INITIALIZER; /* of the pool's thread and ours */

static void signal_event(int fd)
{
    assert_int_equal(write(fd, &(uint64_t){ 1 }, sizeof(uint64_t)), sizeof(uint64_t));
}

static int double_begin(struct tci_oci_cage *cage, struct tc_error *reterr)
{
    struct container *c = calloc(1, sizeof *c);
    assert_non_null(c);
    if (mode == REFUSES) {
        free(c);
        return tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "no container today");
    }
    c->control = -1;
    c->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    assert_true(c->event >= 0);
    cage->driver_state = c;
    cage->watch = c->event;
    if (mode == FAILS)
        signal_event(c->event);
    if (mode == RUBBISH) {
        int ends[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        assert_int_equal(write(ends[1], "HTTP/1.1 400 Bad Request, and so on\n", 36), 36);
        c->control = ends[1];
        cage->control = ends[0];
    } else if (mode != NEVER && mode != FAILS) {
        (void)pthread_mutex_lock(&spawning);
        c->pid = spawn_entry(&c->control);
        (void)pthread_mutex_unlock(&spawning);
        atomic_store(&last_pid, c->pid);
        if (mode == DIES)
            (void)kill(c->pid, SIGKILL);
        if (mode == LATE)
            signal_event(c->event);
        else
            cage->control = tci_take_fd(&c->control);
    }
    (void)pthread_mutex_lock(&spawning);
    atomic_fetch_add(&alive, 1);
    most = alive > most ? alive : most;
    (void)pthread_mutex_unlock(&spawning);
    atomic_fetch_add(&made, 1);
    return 0;
}

static void double_step(struct tci_oci_cage *cage)
{
    struct container *c = cage->driver_state;
    uint64_t ignored;
    assert_int_equal(read(c->event, &ignored, sizeof ignored), sizeof ignored);
    if (mode == LATE) {
        cage->control = tci_take_fd(&c->control);
        memcpy(cage->id, "late", 5);
        return;
    }
    cage->failed = true;
    tci_error_set(&cage->error, TC_ERROR_UNSUPPORTED, "engine: no such image");
}

static int double_ready(struct tci_oci_cage *cage, struct tc_error *reterr)
{
    (void)cage;
    return mode == NOT_READY ? tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "a path was exchanged")
                             : 0;
}

static void double_kill(struct tci_oci_cage *cage)
{
    const struct container *c = cage->driver_state;
    if (c->pid)
        (void)kill(c->pid, SIGKILL);
}

static void double_end(struct tci_oci_cage *cage)
{
    struct container *c = cage->driver_state;
    double_kill(cage);
    if (mode == LINGERS)
        (void)usleep(20000);
    if (c->pid)
        assert_int_equal(waitpid(c->pid, NULL, 0), c->pid);
    (void)tci_close(c->control);
    (void)tci_close(c->event);
    free(c);
    atomic_fetch_sub(&alive, 1);
    atomic_fetch_add(&ended, 1);
}

static const struct tci_oci_driver driver = { .name = "double",
                                              .begin = double_begin,
                                              .step = double_step,
                                              .ready = double_ready,
                                              .kill = double_kill,
                                              .end = double_end };

/* Nothing is to be looked at before the command: it may start before anybody has seen the hello. */
static const struct tci_oci_driver early_driver = { .name = "early",
                                                    .begin = double_begin,
                                                    .step = double_step,
                                                    .kill = double_kill,
                                                    .end = double_end };

static int set_up(void **state)
{
    static const char *environment[] = { "PATH=/usr/bin:/bin", NULL };
    (void)state;
    mode = NORMAL;
    alive = made = ended = most = 0;
    settings = (struct tci_settings){ .cpu_time = TCI_UNLIMITED,
                                      .disk = TCI_UNLIMITED,
                                      .container.no_new_privileges = true };
    plan = (struct tci_oci_plan){
        .spec.settings = &settings, .driver = &driver, .environment = environment, .directory = "/"
    };
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tci_oci_pool_close(plan.pool);
    tci_oci_bury_all(&plan);
    return atomic_load(&alive); /* nothing is left */
}

/* ---- one call --------------------------------------------------------------------------------------- */

struct called {
    struct tc_run *run;
    struct tc_outcome outcome;
    struct tc_error error;
    char text[256];
};

static struct tc_run *start_with(struct tc_io *io, int *ret_out)
{
    struct tc_run *run = NULL;
    struct tc_error error = { 0 };
    int ends[2], null = open("/dev/null", O_RDWR | O_CLOEXEC);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    io->in = io->err = null;
    io->out = ends[1];
    if (tci_oci_start((struct tc_plan *)&plan, io, &run, &error) < 0)
        fail_msg("%s", error.message);
    (void)close(null);
    (void)close(ends[1]);
    *ret_out = ends[0];
    return run;
}

/* Steps until it is over, or `us` have passed. */
static bool wait_for(struct tc_run *run, struct called *ret, uint64_t us)
{
    const uint64_t until = tci_clock_us() + us;
    while (tci_clock_us() < until) {
        struct pollfd p = { .fd = tci_oci_fd(run), .events = POLLIN };
        (void)poll(&p, 1, (int)((until - tci_clock_us()) / 1000 + 1));
        ret->error = (struct tc_error){ 0 };
        if (p.revents)
            assert_int_equal(tci_oci_step(run, &ret->outcome, &ret->error), 0);
        if (ret->outcome.finished)
            return true;
    }
    return false;
}

static struct called finish(struct tc_run *run, int out)
{
    struct called c = { .run = run };
    ssize_t n;
    if (!wait_for(run, &c, patience_us))
        fail_msg("the call does not end");
    n = read(out, c.text, sizeof c.text - 1);
    c.text[n < 0 ? 0 : n] = '\0';
    (void)close(out);
    return c;
}

static struct called call_script(const char *script)
{
    const char *argv[] = { "sh", "-c", script, NULL };
    struct tc_io io = { .argv = argv };
    struct called c;
    int out;
    struct tc_run *run = start_with(&io, &out);
    c = finish(run, out);
    tci_oci_destroy(run);
    return c;
}

static void expect_broken(const char *script, const char *message)
{
    struct called c = call_script(script);
    assert_int_equal(c.outcome.end, TCI_END_BROKEN);
    assert_true(c.outcome.never_started);
    assert_string_equal(c.text, "");
    if (!strstr(c.error.message, message))
        fail_msg("\"%s\" is not in \"%s\"", message, c.error.message);
}

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
    int out;
    (void)state;
    plan.driver = &early_driver;
    run = start_with(&io, &out);
    (void)usleep(200000);
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

/* ---- the pool ------------------------------------------------------------------------------------------ */

static void open_pool(uint64_t warm)
{
    struct tc_error error = { 0 };
    plan.spec.warm = warm;
    assert_int_equal(tci_oci_pool_open(&plan, &error), 0);
}

static void wait_until(const atomic_int *value, int wanted)
{
    const uint64_t until = tci_clock_us() + patience_us;
    while (atomic_load(value) != wanted && tci_clock_us() < until)
        (void)usleep(1000);
    assert_int_equal(atomic_load(value), wanted);
}

/* One that waits with its hello. */
static struct tci_oci_cage *take_warm(void)
{
    const uint64_t until = tci_clock_us() + patience_us;
    struct tci_oci_cage *cage = NULL;
    tci_oci_count_call(&plan, 1);
    while (!(cage = tci_oci_pool_take(plan.pool)) && tci_clock_us() < until)
        (void)usleep(1000);
    assert_non_null(cage);
    return cage;
}

static void test_pool_is_empty_before_the_first_call_and_is_filled_by_it(void **state)
{
    (void)state;
    open_pool(2);
    (void)usleep(20000);
    assert_int_equal(made, 0);
    assert_string_equal(call_script("echo cold").text, "cold\n");
    wait_until(&made, 3);
    wait_until(&ended, 1);
    assert_int_equal(alive, 2);
}

static void test_every_warm_container_is_used_once(void **state)
{
    struct tci_oci_cage *first, *second;
    char id[TCI_SANDBOX_ID_MAX];
    (void)state;
    open_pool(1);
    first = take_warm();
    assert_true(first->hello);
    memcpy(id, first->id, sizeof id);
    second = take_warm();
    assert_string_not_equal(second->id, id);
    tci_oci_cage_free(first);
    tci_oci_cage_free(second);
    assert_string_equal(call_script("echo warm").text, "warm\n");
}

static void test_warm_container_that_dies_is_replaced_and_not_given_out(void **state)
{
    siginfo_t info;
    pid_t pid;
    (void)state;
    open_pool(1);
    tci_oci_cage_free(take_warm());
    wait_until(&made, 2);
    (void)usleep(50000); /* its hello */
    pid = atomic_load(&last_pid);
    (void)kill(pid, SIGKILL);
    (void)waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT); /* or the pool was faster */
    assert_null(tci_oci_pool_take(plan.pool));
    wait_until(&ended, 2);
    wait_until(&made, 3); /* after a rest */
}

static void test_pool_rests_after_failures(void **state)
{
    int before;
    (void)state;
    mode = FAILS;
    open_pool(4);
    assert_null(tci_oci_pool_take(plan.pool));
    wait_until(&ended, 2);
    (void)usleep(300000);
    before = atomic_load(&made);
    assert_true(before <= 4);
    mode = NORMAL;
    assert_string_equal(call_script("echo still").text, "still\n"); /* calls do without it */
}

static void test_closing_the_pool_ends_what_it_has(void **state)
{
    struct tci_oci_pool *pool;
    (void)state;
    open_pool(3);
    tci_oci_cage_free(take_warm());
    pool = plan.pool;
    plan.pool = NULL;
    tci_oci_pool_close(pool);
    assert_int_equal(alive, 0);
}

static void test_there_are_never_more_containers_than_calls_and_warm_ones(void **state)
{
    (void)state;
    mode = LINGERS;
    for (int i = 0; i < 5; i++)
        assert_string_equal(call_script("echo cold").text, "cold\n");
    assert_int_equal(most, 1);
    open_pool(2);
    for (int i = 0; i < 10; i++)
        assert_string_equal(call_script("echo warm").text, "warm\n");
    wait_until(&alive, 2);
    assert_true(most <= 3);
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

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
        TEST(test_pool_is_empty_before_the_first_call_and_is_filled_by_it),
        TEST(test_every_warm_container_is_used_once),
        TEST(test_warm_container_that_dies_is_replaced_and_not_given_out),
        TEST(test_pool_rests_after_failures),
        TEST(test_closing_the_pool_ends_what_it_has),
        TEST(test_there_are_never_more_containers_than_calls_and_warm_ones),
        TEST(test_a_thousand_calls_leave_no_descriptor),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
