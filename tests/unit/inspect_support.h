/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: feeding an inspection as the relay does, in pieces of any size. Each case is fed in several
 * sizes, one byte at a time among them, and must end alike.
 */
#ifndef TCI_TESTS_INSPECT_SUPPORT_H
#define TCI_TESTS_INSPECT_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/attr.h"
#include "gate/inspect.h"

#define NAME "api.example.com"
enum { PORT = 8080 };

enum ending { HELD, PASSED, OPEN, REFUSED };

struct outcome {
    enum ending ending;
    size_t passed;
    char reason[TCI_GATE_REASON_MAX], meant[TCI_NAME_MAX + 1], protocol[8];
};

/* What is to come, as the relay has it. */
struct pieces {
    const uint8_t *bytes;
    size_t length, piece;
    bool at_end;
};

/* A copy that ends where the bytes do, so that the sanitizer sees a byte read too many. */
static inline enum tci_inspect_says feed_exactly(struct tci_inspect *inspect, const uint8_t *bytes,
                                                 size_t length, bool at_end, size_t *ret_pass)
{
    uint8_t *copy = malloc(length > 0 ? length : 1);
    enum tci_inspect_says says;
    assert_non_null(copy);
    if (length > 0)
        memcpy(copy, bytes, length);
    says = tci_inspect_feed(inspect, copy, length, at_end, ret_pass);
    free(copy);
    assert_true(*ret_pass <= length);
    assert_true(says != TCI_INSPECT_REFUSED || *ret_pass == 0);
    assert_true(says != TCI_INSPECT_OPAQUE || *ret_pass == length);
    assert_true(says != TCI_INSPECT_MORE || !at_end);
    assert_true(length - *ret_pass <= TCI_INSPECT_HOLD_MAX || says != TCI_INSPECT_MORE);
    return says;
}

static inline enum ending feed_pieces(struct tci_inspect *inspect, const struct pieces *pieces,
                                      size_t *ret_passed)
{
    size_t passed = 0, there = 0, pass;
    enum tci_inspect_says says;

    *ret_passed = 0;
    do {
        there = pieces->length - there < pieces->piece ? pieces->length : there + pieces->piece;
        do {
            says = feed_exactly(inspect, pieces->bytes + passed, there - passed,
                                pieces->at_end && there == pieces->length, &pass);
            passed += pass;
        } while (says == TCI_INSPECT_PASS && passed < there);
        *ret_passed = passed;
        if (says == TCI_INSPECT_OPAQUE)
            *ret_passed = pieces->length;
        if (says == TCI_INSPECT_OPAQUE || says == TCI_INSPECT_REFUSED)
            return says == TCI_INSPECT_OPAQUE ? OPEN : REFUSED;
    } while (there < pieces->length);
    return says == TCI_INSPECT_MORE ? HELD : PASSED;
}

static inline struct outcome run_pieces(const struct pieces *pieces, bool strict)
{
    struct tci_inspect *inspect = tci_inspect_new(NAME, PORT, strict);
    struct outcome outcome = { 0 };
    assert_non_null(inspect);
    outcome.ending = feed_pieces(inspect, pieces, &outcome.passed);
    (void)snprintf(outcome.reason, sizeof outcome.reason, "%s", tci_inspect_reason(inspect));
    (void)snprintf(outcome.meant, sizeof outcome.meant, "%s", tci_inspect_meant(inspect));
    (void)snprintf(outcome.protocol, sizeof outcome.protocol, "%s", tci_inspect_protocol(inspect));
    tci_inspect_free(inspect);
    return outcome;
}

/* In pieces of several sizes; the outcome is the same. */
static inline struct outcome run(const void *bytes, size_t length, bool strict, bool at_end)
{
    static const size_t sizes[] = { 1, 2, 3, 7, 100, 1500 };
    struct pieces pieces = { bytes, length, length > 0 ? length : 1, at_end };
    struct outcome whole = run_pieces(&pieces, strict);

    for (size_t i = 0; i < tci_array_size(sizes); i++) {
        /* Small pieces of much would take long and show nothing new. */
        if (length / sizes[i] > 5000 || sizes[i] >= length)
            continue;
        pieces.piece = sizes[i];
        struct outcome other = run_pieces(&pieces, strict);
        if (other.ending != whole.ending || strcmp(other.reason, whole.reason) != 0 ||
            strcmp(other.meant, whole.meant) != 0 || strcmp(other.protocol, whole.protocol) != 0)
            fail_msg("pieces of %zu end in %d \"%s\" (%s), the whole in %d \"%s\" (%s)", sizes[i],
                     other.ending, other.reason, other.protocol, whole.ending, whole.reason,
                     whole.protocol);
        if (whole.ending == PASSED || whole.ending == OPEN)
            assert_int_equal(other.passed, whole.passed);
    }
    return whole;
}

static inline void expect_ending(const char *what, struct outcome got, enum ending ending,
                                 const char *reason)
{
    if (got.ending != ending || !strstr(got.reason, reason))
        fail_msg("%s: ended in %d: \"%s\"; should be %d: \"%s\"", what, got.ending, got.reason,
                 ending, reason);
}

/* The same in both modes: it is refused, with a reason that contains `reason`. */
static inline void expect_refused(const void *bytes, size_t length, const char *reason)
{
    for (int strict = 0; strict < 2; strict++) {
        expect_ending(bytes, run(bytes, length, strict, false), REFUSED, reason);
        expect_ending(bytes, run(bytes, length, strict, true), REFUSED, reason);
    }
}

/* Bytes that come from nowhere but a number, so that a failure can be repeated. */
static inline uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* Some bytes of it changed, some taken out: nothing is read that is not there, and pieces do not matter. */
static inline void mutate(const uint8_t *bytes, size_t length, unsigned rounds)
{
    uint32_t state = 2463534242U;
    uint8_t *changed = malloc(length);
    assert_non_null(changed);
    for (unsigned i = 0; i < rounds; i++) {
        size_t size = length;
        memcpy(changed, bytes, length);
        for (unsigned n = next_random(&state) % 4; n > 0; n--)
            changed[next_random(&state) % length] = (uint8_t)next_random(&state);
        if (next_random(&state) % 4 == 0) {
            size_t at = next_random(&state) % length;
            size_t gone = next_random(&state) % (length - at);
            memmove(changed + at, changed + at + gone, length - at - gone);
            size = length - gone;
        }
        struct pieces pieces = { changed, size, size, next_random(&state) % 2 };
        bool strict = next_random(&state) % 2;
        struct outcome whole = run_pieces(&pieces, strict);
        pieces.piece = 1 + next_random(&state) % 40;
        struct outcome other = run_pieces(&pieces, strict);
        assert_int_equal(whole.ending, other.ending);
        assert_string_equal(whole.reason, other.reason);
    }
    free(changed);
}

#endif
