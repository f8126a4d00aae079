/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the tests of relays share: relays between real sockets on loopback, with threads as
 * the programs at both ends. The inspection is one of this file, which does as it is told.
 */
#ifndef TCI_TESTS_GATE_RELAY_SUPPORT_H
#define TCI_TESTS_GATE_RELAY_SUPPORT_H

#include "gate_support.h"

#include <pthread.h>
#include "base/sha256.h"
#include "gate/relay.h"

static const bool never;

/* ---- an inspection that does as it is told --------------------------------------------------------- */

enum script {
    ALWAYS_MORE,
    OPAQUE_AFTER_LINE, /* MORE until a line has ended, then OPAQUE */
    REFUSE_AFTER_LINE,
    LINES,              /* PASS line by line; a line that begins with "X" is REFUSED */
    PASS_NOTHING,       /* "PASS", and then not a byte */
    MORE_BUT_ALL_BUT_5, /* MORE, and lets go all but the last five bytes */
};

struct tci_inspect {
    enum script script;
    unsigned fed, freed, fed_at_end;
    size_t held_most;
    bool over;
};

void tci_inspect_free(struct tci_inspect *inspect)
{
    if (inspect)
        inspect->freed++;
}

enum tci_inspect_says tci_inspect_feed(struct tci_inspect *inspect, const uint8_t *bytes,
                                       size_t length, bool at_end, size_t *ret_pass)
{
    const uint8_t *line_end = memchr(bytes, '\n', length);
    assert_false(inspect->over);
    assert_true(length > 0 && length <= TCI_INSPECT_HOLD_MAX);
    inspect->fed++;
    inspect->fed_at_end += at_end;
    inspect->held_most = length > inspect->held_most ? length : inspect->held_most;
    *ret_pass = 0;
    switch (inspect->script) {
    case OPAQUE_AFTER_LINE:
        inspect->over = line_end != NULL;
        return line_end ? TCI_INSPECT_OPAQUE : TCI_INSPECT_MORE;
    case REFUSE_AFTER_LINE:
        inspect->over = line_end != NULL;
        return line_end ? TCI_INSPECT_REFUSED : TCI_INSPECT_MORE;
    case LINES:
        if (bytes[0] == 'X')
            return TCI_INSPECT_REFUSED;
        if (!line_end)
            return TCI_INSPECT_MORE;
        *ret_pass = (size_t)(line_end - bytes) + 1;
        return TCI_INSPECT_PASS;
    case PASS_NOTHING:
        return TCI_INSPECT_PASS;
    case MORE_BUT_ALL_BUT_5:
        *ret_pass = at_end ? length : length > 5 ? length - 5 : 0;
        return TCI_INSPECT_MORE;
    case ALWAYS_MORE:
    default:
        return TCI_INSPECT_MORE;
    }
}

/* ---- one relay and its ends ------------------------------------------------------------------------ */

struct rig {
    struct tci_loop *loop;
    struct tci_budget budget;
    struct tci_relay *relay;
    int cage, world; /* the programs' ends; the test's */
    bool over;
    enum tci_relay_end end;
    uint64_t in, out;
    int descriptors;
};

static inline void relay_done(void *data, enum tci_relay_end end, uint64_t in, uint64_t out)
{
    struct rig *rig = data;
    assert_false(rig->over);
    rig->over = true;
    rig->end = end;
    rig->in = in;
    rig->out = out;
    tci_relay_cancel(rig->relay); /* harmless from here */
}

static inline void set_up_with(struct rig *rig, struct tci_budget *budget,
                               struct tci_inspect *inspect)
{
    struct tci_relay_options options = {
        .loop = rig->loop, .budget = budget, .inspect = inspect, .done = relay_done, .data = rig
    };
    int cage[2], world[2];
    connect_ends("127.0.0.1", cage);
    connect_ends("::1", world);
    rig->cage = cage[0];
    rig->world = world[1];
    options.cage = cage[1];
    options.world = world[0];
    assert_int_equal(fcntl(options.cage, F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(fcntl(options.world, F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(tci_relay_start(&options, &rig->relay), 0);
}

static inline void set_up(struct rig *rig, struct tci_inspect *inspect)
{
    rig->descriptors = count_descriptors();
    rig->loop = new_loop();
    set_up_with(rig, &rig->budget, inspect);
}

static inline void tear_down(struct rig *rig)
{
    if (!rig->over)
        tci_relay_cancel(rig->relay);
    tci_loop_free(rig->loop);
    (void)close(rig->cage);
    (void)close(rig->world);
    assert_int_equal(count_descriptors(), rig->descriptors);
}

static inline void run_to_end(struct rig *rig, enum tci_relay_end end)
{
    (void)run_loop(rig->loop, &rig->over, PATIENCE_MS);
    assert_true(rig->over);
    assert_int_equal(rig->end, end);
}

/* What can be read within a moment. */
static inline ssize_t read_soon(struct rig *rig, int fd, void *bytes, size_t size)
{
    for (int i = 0; i < 2000; i++) {
        ssize_t n = recv(fd, bytes, size, MSG_DONTWAIT);
        if (n >= 0 || errno != EAGAIN)
            return n;
        (void)run_loop(rig->loop, &never, 1);
    }
    errno = EAGAIN;
    return -1;
}

static inline void expect_text(struct rig *rig, int fd, const char *text)
{
    char bytes[256] = "";
    size_t length = 0;
    while (length < strlen(text)) {
        ssize_t n = read_soon(rig, fd, bytes + length, sizeof bytes - 1 - length);
        assert_true(n > 0);
        length += (size_t)n;
    }
    assert_string_equal(bytes, text);
}

static inline void expect_end(struct rig *rig, int fd)
{
    char byte;
    assert_int_equal(read_soon(rig, fd, &byte, 1), 0);
}

static inline void expect_reset(struct rig *rig, int fd)
{
    char byte;
    assert_int_equal(read_soon(rig, fd, &byte, 1), -1);
    assert_int_equal(errno, ECONNRESET);
}

static inline void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Sends until nothing fits any more, neither in the sockets nor in the relay. Returns how much. */
static inline size_t fill(struct rig *rig, int fd)
{
    static const char bytes[65536];
    size_t total = 0;
    for (int quiet = 0; quiet < 20;) {
        ssize_t n = send(fd, bytes, sizeof bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) {
            total += (size_t)n;
            quiet = 0;
        } else {
            quiet++;
        }
        (void)run_loop(rig->loop, &never, 2);
    }
    return total;
}

struct sender {
    int fd;
    size_t total;
    uint32_t seed;
    char hash[TCI_SHA256_TEXT_MAX];
    size_t passed;
    int problem;
};

static inline void *send_all(void *data)
{
    struct sender *s = data;
    static const size_t sizes[] = { 1, 100, 1460, 65536, 100000, 7, 30000 };
    uint32_t *words = malloc(100000);
    struct tci_sha256 hash;
    uint32_t x = s->seed;
    tci_sha256_begin(&hash);
    for (unsigned i = 0; s->passed < s->total; i++) {
        size_t size = sizes[i % (sizeof sizes / sizeof *sizes)], at = 0;
        size = size < s->total - s->passed ? size : s->total - s->passed;
        for (size_t w = 0; w < size / 4 + 1 && w < 25000; w++)
            words[w] = x = x * 1664525 + 1013904223;
        tci_sha256_add(&hash, words, size);
        while (at < size) {
            ssize_t n = send(s->fd, (char *)words + at, size - at, MSG_NOSIGNAL);
            if (n < 0) {
                s->problem = errno;
                free(words);
                return NULL;
            }
            at += (size_t)n;
        }
        s->passed += size;
    }
    tci_sha256_end_text(&hash, s->hash);
    (void)shutdown(s->fd, SHUT_WR);
    free(words);
    return NULL;
}

static inline void *receive_all(void *data)
{
    struct sender *s = data;
    char *bytes = malloc(80000);
    struct tci_sha256 hash;
    ssize_t n;
    tci_sha256_begin(&hash);
    while ((n = recv(s->fd, bytes, 80000, 0)) > 0) {
        tci_sha256_add(&hash, bytes, (size_t)n);
        s->passed += (size_t)n;
    }
    s->problem = n < 0 ? errno : 0;
    tci_sha256_end_text(&hash, s->hash);
    free(bytes);
    return NULL;
}

static inline void start(pthread_t *thread, void *(*body)(void *), struct sender *sender)
{
    assert_int_equal(pthread_create(thread, NULL, body, sender), 0);
}

#endif
