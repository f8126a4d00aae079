/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: feeding an inspection in pieces, for the fuzz targets of gate/hello.h and gate/http.h. */
#ifndef TCI_FUZZ_INSPECT_FEED_H
#define TCI_FUZZ_INSPECT_FEED_H

#include <stdlib.h>
#include <string.h>
#include "gate/inspect.h"

#define NAME "api.example.com"

struct fed {
    enum tci_inspect_says says;
    size_t passed;
    char reason[TCI_GATE_REASON_MAX], meant[TCI_NAME_MAX + 1];
    const char *protocol;
};

static inline void check(bool holds)
{
    if (!holds)
        abort();
}

static inline void check_shown_text(const char *text)
{
    for (; *text; text++)
        check(*text >= 0x20 && *text < 0x7f);
}

/* As the relay does. The bytes of each call end where their copy ends. */
static inline enum tci_inspect_says feed(struct tci_inspect *inspect, const uint8_t *bytes,
                                         size_t length, bool at_end, size_t *ret_pass)
{
    uint8_t *copy = malloc(length > 0 ? length : 1);
    enum tci_inspect_says says;
    check(copy != NULL);
    if (length > 0)
        memcpy(copy, bytes, length);
    says = tci_inspect_feed(inspect, copy, length, at_end, ret_pass);
    free(copy);
    check(*ret_pass <= length);
    check(says != TCI_INSPECT_MORE ||
          (!at_end && *ret_pass < length && length - *ret_pass < TCI_INSPECT_HOLD_MAX));
    check(says != TCI_INSPECT_REFUSED || *ret_pass == 0);
    return says;
}

static inline struct fed feed_all(const uint8_t *bytes, size_t length, size_t piece, bool strict,
                                  bool at_end)
{
    struct tci_inspect *inspect = tci_inspect_new(NAME, 80, strict);
    struct fed fed = { .says = TCI_INSPECT_PASS };
    size_t there = 0, pass;

    check(inspect != NULL);
    do {
        there = length - there < piece ? length : there + piece;
        do {
            fed.says = feed(inspect, bytes + fed.passed, there - fed.passed,
                            at_end && there == length, &pass);
            fed.passed += pass;
        } while (fed.says == TCI_INSPECT_PASS && fed.passed < there);
    } while (there < length && fed.says != TCI_INSPECT_OPAQUE && fed.says != TCI_INSPECT_REFUSED);
    if (fed.says == TCI_INSPECT_OPAQUE)
        fed.passed = length;
    memcpy(fed.reason, tci_inspect_reason(inspect), strlen(tci_inspect_reason(inspect)) + 1);
    memcpy(fed.meant, tci_inspect_meant(inspect), strlen(tci_inspect_meant(inspect)) + 1);
    fed.protocol = tci_inspect_protocol(inspect);
    check_shown_text(fed.reason);
    check_shown_text(fed.meant);
    check(fed.says != TCI_INSPECT_REFUSED || fed.reason[0]);
    check(!strict || fed.says != TCI_INSPECT_OPAQUE || strcmp(fed.protocol, "tls") == 0);
    tci_inspect_free(inspect);
    return fed;
}

/* In one piece, and in pieces of `piece`: the same. */
static inline struct fed feed_both_ways(const uint8_t *bytes, size_t length, size_t piece,
                                        bool strict, bool at_end)
{
    struct fed whole = feed_all(bytes, length, length > 0 ? length : 1, strict, at_end);
    struct fed parts = feed_all(bytes, length, piece, strict, at_end);
    check(whole.says == parts.says);
    check(strcmp(whole.reason, parts.reason) == 0 && strcmp(whole.meant, parts.meant) == 0);
    check(strcmp(whole.protocol, parts.protocol) == 0);
    check(whole.says == TCI_INSPECT_REFUSED || whole.passed == parts.passed);
    return whole;
}

#endif
