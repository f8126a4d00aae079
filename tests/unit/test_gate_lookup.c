/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the gate's lookups, over the host's resolver. */
#include "gate_support.h"

#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include "gate/lookup.h"

static const bool never;
static int descriptors; /* of this program, before its first test */

/* The resolver of these tests is the host's, but can be made to wait. */
static pthread_mutex_t resolver = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint asked, asked_with_signals;

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret)
{
    static int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    sigset_t blocked;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    (void)pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    (void)atomic_fetch_add(&asked, 1);
    if (!sigismember(&blocked, SIGTERM) || !sigismember(&blocked, SIGPROF))
        (void)atomic_fetch_add(&asked_with_signals, 1);
    (void)pthread_mutex_lock(&resolver);
    (void)pthread_mutex_unlock(&resolver);
    return real(name, service, hints, ret);
}

struct answer {
    bool over;
    struct tci_lookup_result result;
    struct tci_lookup *lookup;
};

static void looked_up(void *data, const struct tci_lookup_result *result)
{
    struct answer *answer = data;
    assert_false(answer->over);
    answer->over = true;
    answer->result = *result;
    tci_lookup_cancel(answer->lookup); /* harmless from here */
}

/* A thread that has answered has a last descriptor to close. */
static void wait_for_threads(void)
{
    for (int i = 0; i < PATIENCE_MS && count_descriptors() != descriptors; i++)
        (void)usleep(1000);
    assert_int_equal(count_descriptors(), descriptors);
}

static struct tci_lookup_result look_up(const char *name)
{
    struct tci_loop *loop = new_loop();
    struct answer answer = { 0 };
    assert_int_equal(tci_lookup_start(loop, name, looked_up, &answer, &answer.lookup), 0);
    assert_false(answer.over);
    (void)run_loop(loop, &answer.over, PATIENCE_MS);
    assert_true(answer.over);
    tci_loop_free(loop);
    wait_for_threads();
    return answer.result;
}

static void test_localhost_is_found(void **state)
{
    struct tci_lookup_result result = look_up("localhost");
    (void)state;
    assert_int_equal(result.end, TCI_LOOKUP_FOUND);
    assert_true(result.count >= 1);
    for (size_t i = 0; i < result.count; i++) {
        assert_int_equal(tci_address_classify(&result.addresses[i]), TCI_ADDRESS_LOOPBACK);
        for (size_t other = 0; other < i; other++)
            assert_memory_not_equal(&result.addresses[i], &result.addresses[other],
                                    sizeof result.addresses[i]);
    }
}

static void test_a_mapped_address_is_found_as_ipv4(void **state)
{
    struct tci_lookup_result result = look_up("::ffff:127.0.0.9");
    struct tci_address wanted = address_of("127.0.0.9");
    (void)state;
    assert_int_equal(result.end, TCI_LOOKUP_FOUND);
    assert_int_equal(result.count, 1);
    assert_memory_equal(&result.addresses[0], &wanted, sizeof wanted);
}

static void test_an_address_with_an_interface_is_dropped(void **state)
{
    struct tci_lookup_result result = look_up("fe80::1%lo");
    (void)state;
    assert_int_equal(result.end, TCI_LOOKUP_NO_NAME);
    assert_int_equal(result.count, 0);
    assert_true(strlen(result.reason) > 0);
}

/* .invalid never exists (RFC 6761). Whether that is known here depends on the host's resolver. */
static void test_a_name_that_does_not_exist_is_not_found(void **state)
{
    struct tci_lookup_result result = look_up("no-such-name.invalid");
    (void)state;
    assert_int_not_equal(result.end, TCI_LOOKUP_FOUND);
    assert_int_equal(result.count, 0);
    assert_true(strlen(result.reason) > 0);
    /* What can be no name at all is known everywhere. */
    result = look_up("two..dots");
    assert_int_not_equal(result.end, TCI_LOOKUP_FOUND);
}

/* Threads of lookups before this one may be about to end. */
static void start_patiently(struct tci_loop *loop, struct answer *answer)
{
    int r;
    do
        r = tci_lookup_start(loop, "localhost", looked_up, answer, &answer->lookup);
    while (r == -EAGAIN && usleep(1000) == 0);
    assert_int_equal(r, 0);
}

/* Threads that nobody waits for leave nothing behind, whether they ended before or after. */
static void test_lookups_can_be_cancelled_at_any_moment(void **state)
{
    (void)state;
    for (int round = 0; round < 60; round++) {
        struct tci_loop *loop = new_loop();
        struct answer answer = { 0 };
        start_patiently(loop, &answer);
        if (round % 3)
            (void)usleep((unsigned)round * 20);
        tci_lookup_cancel(answer.lookup);
        if (round % 2)
            (void)run_loop(loop, &never, 1);
        tci_loop_free(loop);
        assert_false(answer.over);
    }
    tci_lookup_cancel(NULL);
    wait_for_threads();
}

static void test_no_more_than_the_allowed_lookups_run_at_once(void **state)
{
    struct tci_loop *loop = new_loop();
    static struct answer answers[TCI_LOOKUP_RUNNING_MAX];
    struct tci_lookup *extra = NULL;
    sigset_t signals;
    (void)state;
    atomic_store(&asked, 0);
    (void)pthread_mutex_lock(&resolver);
    for (int i = 0; i < TCI_LOOKUP_RUNNING_MAX; i++)
        start_patiently(loop, &answers[i]);
    assert_int_equal(tci_lookup_start(loop, "localhost", looked_up, &answers[0], &extra), -EAGAIN);
    /* One that nobody waits for still runs, and still counts. */
    tci_lookup_cancel(answers[0].lookup);
    assert_int_equal(tci_lookup_start(loop, "localhost", looked_up, &answers[0], &extra), -EAGAIN);
    (void)run_loop(loop, &never, 20);
    (void)pthread_mutex_unlock(&resolver);
    for (int i = 1; i < TCI_LOOKUP_RUNNING_MAX; i++) {
        (void)run_loop(loop, &answers[i].over, PATIENCE_MS);
        assert_true(answers[i].over);
    }
    assert_false(answers[0].over);
    assert_int_equal(atomic_load(&asked), TCI_LOOKUP_RUNNING_MAX);
    assert_int_equal(atomic_load(&asked_with_signals), 0);
    (void)pthread_sigmask(SIG_BLOCK, NULL, &signals);
    assert_false(sigismember(&signals, SIGTERM)); /* our own are as they were */
    tci_loop_free(loop);
    wait_for_threads();
    assert_int_equal(look_up("localhost").end, TCI_LOOKUP_FOUND);
}

/* A child of the host has none of the threads that its parent had when it was made. */
static void test_a_child_made_by_fork_can_look_up(void **state)
{
    struct tci_loop *loop = new_loop();
    static struct answer answers[TCI_LOOKUP_RUNNING_MAX];
    struct answer answer = { 0 };
    int status = 0;
    pid_t pid;
    (void)state;
    (void)pthread_mutex_lock(&resolver);
    for (int i = 0; i < TCI_LOOKUP_RUNNING_MAX; i++)
        start_patiently(loop, &answers[i]);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct tci_loop *own = NULL;
        if (tci_loop_new(&own, NULL) < 0)
            _exit(1);
        _exit(tci_lookup_start(own, "localhost", looked_up, &answer, &answer.lookup) == 0 ? 0 : 2);
    }
    (void)pthread_mutex_unlock(&resolver);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    for (int i = 0; i < TCI_LOOKUP_RUNNING_MAX; i++) {
        (void)run_loop(loop, &answers[i].over, PATIENCE_MS);
        assert_true(answers[i].over);
    }
    tci_loop_free(loop);
    wait_for_threads();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_localhost_is_found),
        cmocka_unit_test(test_a_mapped_address_is_found_as_ipv4),
        cmocka_unit_test(test_an_address_with_an_interface_is_dropped),
        cmocka_unit_test(test_a_name_that_does_not_exist_is_not_found),
        cmocka_unit_test(test_lookups_can_be_cancelled_at_any_moment),
        cmocka_unit_test(test_no_more_than_the_allowed_lookups_run_at_once),
        cmocka_unit_test(test_a_child_made_by_fork_can_look_up),
    };
    descriptors = count_descriptors();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
