/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: calls in containers whose driver is one of this file: its "container" is a real entry, as an ordinary
 * process. What can go wrong on the way from a cage to an outcome goes wrong here. */
#ifndef TCI_TESTS_OCI_RUN_SUPPORT_H
#define TCI_TESTS_OCI_RUN_SUPPORT_H

#include "entry_support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include "backend/oci/run_internal.h"
#include "base/clock.h"
#include "base/fd.h"

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

static inline void signal_event(int fd)
{
    assert_int_equal(write(fd, &(uint64_t){ 1 }, sizeof(uint64_t)), sizeof(uint64_t));
}

static inline int double_begin(struct tci_oci_cage *cage, struct tc_error *reterr)
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

static inline void double_step(struct tci_oci_cage *cage)
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

static inline int double_ready(struct tci_oci_cage *cage, struct tc_error *reterr)
{
    (void)cage;
    return mode == NOT_READY ? tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "a path was exchanged")
                             : 0;
}

static inline void double_kill(struct tci_oci_cage *cage)
{
    const struct container *c = cage->driver_state;
    if (c->pid)
        (void)kill(c->pid, SIGKILL);
}

static inline void double_end(struct tci_oci_cage *cage)
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

static inline int set_up(void **state)
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

static inline int tear_down(void **state)
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

static inline struct tc_run *start_with(struct tc_io *io, int *ret_out)
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
static inline bool wait_for(struct tc_run *run, struct called *ret, uint64_t us)
{
    const uint64_t until = tci_clock_us() + us;
    uint64_t now;
    while ((now = tci_clock_us()) < until) {
        struct pollfd p = { .fd = tci_oci_fd(run), .events = POLLIN };
        (void)poll(&p, 1, (int)((until - now) / 1000 + 1));
        ret->error = (struct tc_error){ 0 };
        if (p.revents)
            assert_int_equal(tci_oci_step(run, &ret->outcome, &ret->error), 0);
        if (ret->outcome.finished)
            return true;
    }
    return false;
}

static inline struct called finish(struct tc_run *run, int out)
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

static inline struct called call_script(const char *script)
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

static inline void wait_until(const atomic_int *value, int wanted)
{
    const uint64_t until = tci_clock_us() + patience_us;
    while (atomic_load(value) != wanted && tci_clock_us() < until)
        (void)usleep(1000);
    assert_int_equal(atomic_load(value), wanted);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
