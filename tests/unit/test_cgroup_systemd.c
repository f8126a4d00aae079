/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pins how systemd is asked for a scope: what goes over the wire, and that no answer, however odd,
 * is taken for a yes or waited for too long. The manager here is a mock at the other end of a pair
 * of sockets; the wire format is also judged by a real dbus-daemon where there is one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/cgroup/cgroup_bus.h"
#include "backend/cgroup/cgroup_internal.h"

static const char UNIT[] = "toolcage-1-00000000.scope";

struct mock {
    int fd;
    const unsigned char *answer; /* what it says to the call */
    size_t answer_length;
    const char *welcome; /* what it says to the sign-in */
    bool hang_up;        /* after the answer */
    char sign_in[128];
    size_t sign_in_length;
    unsigned char call[TCI_BUS_CALL_MAX];
    size_t call_length;
};

static void *run_mock(void *argument)
{
    struct mock *m = argument;
    char begin[8] = "";
    ssize_t n = read(m->fd, m->sign_in, sizeof m->sign_in - 1);
    m->sign_in_length = n > 0 ? (size_t)n : 0;
    if (!m->welcome || write(m->fd, m->welcome, strlen(m->welcome)) < 0)
        return NULL;
    if (recv(m->fd, begin, 7, MSG_WAITALL) == 7 && strcmp(begin, "BEGIN\r\n") == 0) {
        n = read(m->fd, m->call, sizeof m->call);
        m->call_length = n > 0 ? (size_t)n : 0;
        if (m->answer)
            (void)!write(m->fd, m->answer, m->answer_length);
    }
    if (m->hang_up)
        shutdown(m->fd, SHUT_RDWR);
    return NULL;
}

/* Asks the mock; returns what came of it. */
static int ask_mock(struct mock *m, int limit_ms)
{
    pthread_t thread;
    int pair[2], result;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    m->fd = pair[1];
    assert_int_equal(pthread_create(&thread, NULL, run_mock, m), 0);
    result = tci_cgroup_systemd_ask(pair[0], UNIT, tci_cgroup_now_ms() + limit_ms);
    shutdown(pair[0], SHUT_RDWR);
    pthread_join(thread, NULL);
    close(pair[0]);
    close(pair[1]);
    return result;
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ORDER     'l'
#define NUMBER(n) (n), 0, 0, 0
#else
#define ORDER     'B'
#define NUMBER(n) 0, 0, 0, (n)
#endif
#define WELCOME         "OK 0123456789abcdef0123456789abcdef\r\n"
#define ANSWERS_CALL(n) 5, 1, 'u', 0, NUMBER(n)
/* A message with nothing but the serial that it answers. */
#define ANSWER(type, serial)                                                                       \
    ORDER, type, 0, 1, NUMBER(0), NUMBER(9), NUMBER(8), ANSWERS_CALL(serial)

static void test_mock_says_yes_after_signals(void **unused)
{
    /* A signal with a string field that needs padding, an answer to somebody else, then ours. */
    static const unsigned char answer[] = {
        ORDER, 4,         0,   1,   NUMBER(4),    NUMBER(1),    NUMBER(14), 1, 1, 'o',
        0,     NUMBER(5), '/', 'a', '/',          'b',          'c',        0, 0, 0,
        'b',   'o',       'd', 'y', ANSWER(2, 7), ANSWER(2, 1),
    };
    struct mock m = { .answer = answer, .answer_length = sizeof answer, .welcome = WELCOME };
    char expected[64] = "", uid[16];
    size_t used = 0;
    (void)unused;
    assert_int_equal(ask_mock(&m, 5000), 0);
    snprintf(uid, sizeof uid, "%u", geteuid());
    used = (size_t)snprintf(expected, sizeof expected, "AUTH EXTERNAL ");
    for (const char *c = uid; *c; c++)
        used += (size_t)snprintf(expected + used, sizeof expected - used, "%02x", (unsigned)*c);
    used += (size_t)snprintf(expected + used, sizeof expected - used, "\r\n");
    assert_int_equal(m.sign_in_length, used + 1);
    assert_int_equal(m.sign_in[0], 0);
    assert_memory_equal(m.sign_in + 1, expected, used);
}

static void test_the_call_to_the_mock_is_this(void **unused)
{
    static const unsigned char answer[] = { ANSWER(2, 1) };
    /* Where each text stands shows that the alignment of everything before it is right. */
    static const struct {
        size_t at;
        const char *text;
    } texts[] = {
        { 24, "/org/freedesktop/systemd1" }, { 64, "org.freedesktop.systemd1.Manager" },
        { 112, "StartTransientUnit" },       { 144, "org.freedesktop.systemd1" },
        { 181, "ssa(sv)a(sa(sv))" },
    };
    struct mock m = { .answer = answer, .answer_length = sizeof answer, .welcome = WELCOME };
    uint32_t body, fields, length;
    const unsigned char *at;
    (void)unused;
    assert_int_equal(ask_mock(&m, 5000), 0);
    assert_int_equal(m.call[0], ORDER);
    assert_int_equal(m.call[1], 1);
    memcpy(&body, m.call + 4, 4);
    memcpy(&fields, m.call + 12, 4);
    assert_int_equal(16 + (fields + 7) / 8 * 8 + body, m.call_length);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_string_equal((char *)m.call + texts[i].at, texts[i].text);
    at = m.call + m.call_length - body;
    memcpy(&length, at, 4);
    assert_int_equal(length, strlen(UNIT));
    assert_string_equal((const char *)at + 4, UNIT);
    at += (4 + length + 1 + 3) / 4 * 4;
    assert_string_equal((const char *)at + 4, "fail");
    /* "PIDs", an array of one number, which is 0: whoever asks. */
    at = memmem(at, 200, "PIDs", 5);
    assert_non_null(at);
    assert_memory_equal(at + 5, "\2au", 4);
    at = (const unsigned char *)m.call + ((size_t)(at + 9 - m.call) + 3) / 4 * 4;
    assert_memory_equal(at, ((unsigned char[]){ NUMBER(4), NUMBER(0) }), 8);
    assert_non_null(memmem(at, 100, "Delegate\0\1b", 12));
    memcpy(&length, m.call + m.call_length - 4, 4);
    assert_int_equal(length, 0);
}

static void test_mock_says_no(void **unused)
{
    static const unsigned char answer[] = { ANSWER(3, 1) };
    struct mock m = { .answer = answer, .answer_length = sizeof answer, .welcome = WELCOME };
    struct mock rejected = { .welcome = "REJECTED EXTERNAL\r\n" };
    (void)unused;
    assert_int_equal(ask_mock(&m, 5000), EPERM);
    assert_int_equal(ask_mock(&rejected, 5000), EACCES);
}

static void test_mock_says_that_there_is_one_already(void **unused)
{
    static const char name[] = "org.freedesktop.systemd1.UnitExists";
    unsigned char answer[16 + 8 + 8 + 40] = { ORDER,
                                              3,
                                              0,
                                              1,
                                              NUMBER(0),
                                              NUMBER(9),
                                              NUMBER(8 + 8 + sizeof name),
                                              ANSWERS_CALL(1),
                                              4,
                                              1,
                                              's',
                                              0,
                                              NUMBER(sizeof name - 1) };
    struct mock m = { .answer = answer, .answer_length = sizeof answer, .welcome = WELCOME };
    (void)unused;
    memcpy(answer + 32, name, sizeof name);
    assert_int_equal(ask_mock(&m, 5000), EEXIST);
    answer[32] = 'x'; /* another error */
    assert_int_equal(ask_mock(&m, 5000), EPERM);
}

static void test_mock_that_is_silent_is_not_waited_for(void **unused)
{
    static const unsigned char half[] = { ORDER, 2, 0, 1, NUMBER(0) };
    struct mock mute = { .welcome = NULL }, no_answer = { .welcome = WELCOME };
    struct mock cut = { .answer = half, .answer_length = sizeof half, .welcome = WELCOME };
    struct mock gone = { .welcome = WELCOME, .hang_up = true };
    int64_t begin = tci_cgroup_now_ms();
    (void)unused;
    assert_int_equal(ask_mock(&mute, 50), ETIMEDOUT);
    assert_int_equal(ask_mock(&no_answer, 50), ETIMEDOUT);
    assert_int_equal(ask_mock(&cut, 50), ETIMEDOUT);
    assert_true(tci_cgroup_now_ms() - begin < 5000);
    assert_int_equal(ask_mock(&gone, 5000), ECONNRESET);
}

static void test_mock_that_talks_nonsense_is_refused(void **unused)
{
    static const unsigned char huge[] = {
        ORDER, 2, 0, 1, 255, 255, 255, 255, NUMBER(9), NUMBER(8)
    };
    static const unsigned char huge_fields[] = { ORDER,     2,   0,   1,   NUMBER(0),
                                                 NUMBER(9), 255, 255, 255, 255 };
    static const unsigned char order[] = { ORDER ^ 'l' ^ 'B', 2,         0,        1,
                                           NUMBER(0),         NUMBER(9), NUMBER(0) };
    static const unsigned char version[] = { ORDER, 2, 0, 9, NUMBER(0), NUMBER(9), NUMBER(0) };
    /* A field whose text is longer than all fields, and one of a type that no field has. */
    static const unsigned char long_text[] = { ORDER,     2, 0, 1,   NUMBER(0), NUMBER(9),
                                               NUMBER(8), 1, 1, 'o', 0,         NUMBER(200) };
    static const unsigned char odd_type[] = { ORDER,     2, 0, 1,   NUMBER(0), NUMBER(9),
                                              NUMBER(8), 5, 1, 'x', 0,         NUMBER(1) };
    static const struct {
        const unsigned char *bytes;
        size_t length;
        int problem;
    } answers[] = {
        { huge, sizeof huge, EMSGSIZE },         { huge_fields, sizeof huge_fields, EMSGSIZE },
        { order, sizeof order, EPROTO },         { version, sizeof version, EPROTO },
        { long_text, sizeof long_text, EPROTO }, { odd_type, sizeof odd_type, EPROTO },
    };
    char endless[600];
    struct mock babble = { .welcome = endless };
    (void)unused;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct mock m = { .answer = answers[i].bytes,
                          .answer_length = answers[i].length,
                          .welcome = WELCOME };
        assert_int_equal(ask_mock(&m, 5000), answers[i].problem);
    }
    memset(endless, 'x', sizeof endless);
    endless[sizeof endless - 1] = '\0';
    assert_int_equal(ask_mock(&babble, 5000), EPROTO);
}

static void test_mock_that_floods_is_left(void **unused)
{
    static const unsigned char one[] = { ANSWER(4, 9) };
    unsigned char *flood = malloc(sizeof one * (TCI_BUS_MESSAGES_MAX + 1));
    struct mock m = { .answer = flood,
                      .answer_length = sizeof one * (TCI_BUS_MESSAGES_MAX + 1),
                      .welcome = WELCOME };
    (void)unused;
    assert_non_null(flood);
    for (size_t i = 0; i <= TCI_BUS_MESSAGES_MAX; i++)
        memcpy(flood + i * sizeof one, one, sizeof one);
    assert_int_equal(ask_mock(&m, 5000), EPROTO);
    free(flood);
}

static void test_what_does_not_fit_is_not_sent(void **unused)
{
    struct tci_bus_data body = { .used = 0 };
    struct tci_bus_call call = {
        .path = "/", .member = "M", .signature = "s", .body = &body, .serial = 1
    };
    char text[600];
    int pair[2];
    (void)unused;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    tci_bus_string(&body, text);
    assert_false(body.full);
    tci_bus_string(&body, text);
    assert_true(body.full);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(tci_bus_call(pair[0], &call, tci_cgroup_now_ms() + 1000), EMSGSIZE);
    assert_int_equal(poll(&(struct pollfd){ .fd = pair[1], .events = POLLIN }, 1, 0), 0);
    close(pair[0]);
    close(pair[1]);
}

/* ---- a real bus ----------------------------------------------------------------------------- */

static const char BUS_CONFIGURATION[] =
    "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\" "
    "\"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">"
    "<busconfig><type>session</type><listen>unix:path=%s/socket</listen><policy "
    "context=\"default\">"
    "<allow send_destination=\"*\"/><allow receive_sender=\"*\"/><allow "
    "own=\"*\"/></policy></busconfig>";

static int connect_bus(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    for (int i = 0; i < 200; i++) {
        if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
            return fd;
        poll(NULL, 0, 20);
    }
    close(fd);
    return -1;
}

/* It drops whoever sends a message that is not well-formed, body included. That nobody there is
 * called systemd1 is an answer. */
static void test_a_real_bus_finds_the_call_well_formed(void **unused)
{
    static const struct tci_bus_call hello = {
        .destination = "org.freedesktop.DBus",
        .path = "/org/freedesktop/DBus",
        .interface = "org.freedesktop.DBus",
        .member = "Hello",
        .serial = 1,
    };
    char directory[] = "/tmp/test_cgroup_XXXXXX", path[64], option[80], text[512];
    int64_t until = tci_cgroup_now_ms() + 10000;
    FILE *file;
    pid_t pid;
    int fd;
    (void)unused;
    if (access("/usr/bin/dbus-daemon", X_OK) < 0)
        skip();
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/conf", directory);
    file = fopen(path, "we");
    assert_non_null(file);
    assert_true(snprintf(text, sizeof text, BUS_CONFIGURATION, directory) < (int)sizeof text);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    snprintf(option, sizeof option, "--config-file=%s", path);
    pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(null, STDERR_FILENO); /* it complains about limits that do not matter here */
        execl("/usr/bin/dbus-daemon", "dbus-daemon", option, "--nofork", "--nopidfile",
              (char *)NULL);
        _exit(127);
    }
    snprintf(path, sizeof path, "%s/socket", directory);
    fd = connect_bus(path);
    assert_true(fd >= 0);
    assert_int_equal(tci_bus_sign_in(fd, until), 0);
    assert_int_equal(tci_bus_call(fd, &hello, until), 0);
    assert_int_equal(tci_cgroup_systemd_call(fd, UNIT, until), EPERM);
    /* Still welcome, so the call was read to its end. */
    assert_int_equal(tci_bus_call(fd,
                                  &(struct tci_bus_call){ .destination = hello.destination,
                                                          .path = hello.path,
                                                          .interface = hello.interface,
                                                          .member = "GetId",
                                                          .serial = 9 },
                                  until),
                     0);
    close(fd);
    kill(pid, SIGTERM);
    waitpid(pid, NULL, 0);
    unlink(path);
    snprintf(path, sizeof path, "%s/conf", directory);
    unlink(path);
    assert_int_equal(rmdir(directory), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mock_says_yes_after_signals),
        cmocka_unit_test(test_the_call_to_the_mock_is_this),
        cmocka_unit_test(test_mock_says_no),
        cmocka_unit_test(test_mock_says_that_there_is_one_already),
        cmocka_unit_test(test_mock_that_is_silent_is_not_waited_for),
        cmocka_unit_test(test_mock_that_talks_nonsense_is_refused),
        cmocka_unit_test(test_mock_that_floods_is_left),
        cmocka_unit_test(test_what_does_not_fit_is_not_sent),
        cmocka_unit_test(test_a_real_bus_finds_the_call_well_formed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
