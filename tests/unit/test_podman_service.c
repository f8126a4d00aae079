/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the beginning and the end of a Podman service of our own. Scripts stand where Podman would: what matters is
 * what a service says, when it listens, and whether it wants to end. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/oci/api.h"
#include "base/clock.h"
#include "base/fd.h"

enum { TICK_MS = 10, PATIENCE_MS = 30000 };

struct fixture {
    struct tci_api_place place;
    struct tci_podman_service service;
    char script[PATH_MAX + 16], note[PATH_MAX + 16], socket[TCI_OCI_SOCKET_MAX];
};

static void pause_ms(long ms)
{
    const struct timespec moment = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    (void)nanosleep(&moment, NULL);
}

/* `words`: what the service does after it has noted who it is. */
static void begin(struct fixture *f, const char *words)
{
    char text[4 * PATH_MAX];
    *f = (struct fixture){ .service.alive = -1 };
    assert_int_equal(tci_api_place_open(&f->place, NULL), 0);
    (void)snprintf(f->script, sizeof f->script, "%s/podman", f->place.path);
    (void)snprintf(f->note, sizeof f->note, "%s/pid", f->place.path);
    (void)snprintf(text, sizeof text, "#!/bin/sh\necho $$ >%s.new; mv %s.new %s\n%s\n", f->note,
                   f->note, f->note, words);
    assert_int_equal(tci_api_place_write(&f->place, "podman", 0700, text, strlen(text), NULL), 0);
}

static pid_t noted(const struct fixture *f)
{
    char text[32] = "";
    int fd = open(f->note, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && read(fd, text, sizeof text - 1) < 0)
        text[0] = '\0';
    (void)tci_close(fd);
    return (pid_t)strtol(text, NULL, 10);
}

static bool is_gone(pid_t pid)
{
    for (int waited = 0; waited < PATIENCE_MS; waited += TICK_MS) {
        (void)waitpid(pid, NULL, WNOHANG); /* what a dead process left to us */
        if (kill(pid, 0) < 0)
            return true;
        pause_ms(TICK_MS);
    }
    return false;
}

static void *listen_in_a_while(void *data)
{
    struct fixture *f = data;
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    while (!noted(f))
        pause_ms(TICK_MS);
    pause_ms(100);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%.90s/podman.sock", f->place.path);
    if (bind(fd, (const struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 8) < 0)
        abort();
    return (void *)(intptr_t)fd;
}

static int start(struct fixture *f, int *ret_listener, struct tc_error *reterr)
{
    pthread_t thread;
    void *listener;
    int r;
    assert_int_equal(pthread_create(&thread, NULL, listen_in_a_while, f), 0);
    r = tci_podman_service_start(&f->service, f->script, &f->place, f->socket, reterr);
    assert_int_equal(pthread_join(thread, &listener), 0);
    *ret_listener = (int)(intptr_t)listener;
    return r;
}

/* Podman warns of things that were not found, and of errors, and goes on. */
static void test_what_a_service_says_while_it_starts_does_not_count(void **state)
{
    struct tc_error error = { 0 };
    struct fixture f;
    int listener;
    pid_t pid;
    (void)state;
    begin(&f, "echo 'level=warning msg=\"Error: layer not found\"' >&2; exec sleep 1000");
    assert_int_equal(start(&f, &listener, &error), 0);
    assert_false(tci_podman_service_is_gone(&f.service, f.socket));
    pid = noted(&f);
    assert_int_equal(kill(pid, 0), 0);
    tci_podman_service_end(&f.service);
    assert_int_equal(f.service.pid, 0);
    assert_true(is_gone(pid));
    (void)tci_close(listener);
    tci_api_place_close(&f.place);
}

static void test_a_service_that_ends_is_not_waited_for(void **state)
{
    static const char *const words[] = {
        "echo 'first' >&2; echo 'Error: it is broken' >&2; exit 125",
        "echo 'it is broken' >&2; kill -SEGV $$"
    };
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct tc_error error = { 0 };
        struct fixture f;
        uint64_t from = tci_clock_us();
        begin(&f, words[i]);
        assert_int_equal(tci_podman_service_start(&f.service, f.script, &f.place, f.socket, &error),
                         -1);
        assert_true(tci_clock_us() - from < 10 * UINT64_C(1000000));
        assert_non_null(strstr(error.message, "ended at once"));
        assert_non_null(strstr(error.message, i ? "fault" : "it is broken"));
        assert_int_equal(f.service.pid, 0);
        tci_api_place_close(&f.place);
    }
}

static void test_a_program_that_is_not_there_is_named(void **state)
{
    struct tc_error error = { 0 };
    struct fixture f;
    (void)state;
    begin(&f, "");
    assert_int_equal(
        tci_podman_service_start(&f.service, "/nowhere/podman", &f.place, f.socket, &error), -1);
    assert_non_null(strstr(error.message, "/nowhere/podman: not found"));
    tci_api_place_close(&f.place);
}

/* The attack: toolcage is killed, and a service that does not listen to anybody stays for good. */
static void test_a_service_that_will_not_end_does_not_survive_its_owner(void **state)
{
    struct fixture f;
    pid_t pid, owner;
    int status;
    (void)state;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    begin(&f, "trap '' TERM; while :; do sleep 1000; done");
    owner = fork();
    assert_true(owner >= 0);
    if (owner == 0) {
        (void)tci_podman_service_start(&f.service, f.script, &f.place, f.socket, NULL);
        _exit(1);
    }
    while (!(pid = noted(&f)))
        pause_ms(TICK_MS);
    assert_int_equal(kill(owner, SIGKILL), 0);
    assert_int_equal(waitpid(owner, &status, 0), owner);
    assert_true(WIFSIGNALED(status));
    assert_true(is_gone(pid));
    tci_api_place_close(&f.place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_service_says_while_it_starts_does_not_count),
        cmocka_unit_test(test_a_service_that_ends_is_not_waited_for),
        cmocka_unit_test(test_a_program_that_is_not_there_is_named),
        cmocka_unit_test(test_a_service_that_will_not_end_does_not_survive_its_owner),
    };
    return cmocka_run_group_tests_name("podman_service", tests, NULL, NULL);
}
