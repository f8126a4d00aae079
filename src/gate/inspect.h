/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: does what a cage sends over a connection to NAME say that it is meant for NAME? TLS says it in
 * its ClientHello (SNI), HTTP/1 in the Host of each request. Fed with the bytes as they come; keeps
 * nothing but what it needs to go on. How bytes are cut into pieces never changes the outcome.
 *
 * The attack: one address serves many names (a CDN). A cage that may reach one of them dials it and
 * then asks for another, which the policy does not allow. docs/gate-inspection.md says what this stops
 * and what it does not.
 */
#ifndef TCI_GATE_INSPECT_H
#define TCI_GATE_INSPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "gate/record.h"

enum tci_inspect_says {
    TCI_INSPECT_MORE, /* cannot tell yet: bytes from `ret_pass` on are held back until more come */
    TCI_INSPECT_PASS, /* the first `ret_pass` bytes may go; come back with the rest and what follows */
    TCI_INSPECT_OPAQUE,  /* everything from here on may go; do not come back */
    TCI_INSPECT_REFUSED, /* `reason` says why */
};

enum { TCI_INSPECT_HOLD_MAX = 65536 + 1024 }; /* the most that is ever held back */

struct tci_inspect; /* about 1 KiB; no descriptors */

/* `name`: canonical. `port`: for a Host with a port. NULL: no memory. */
struct tci_inspect *tci_inspect_new(const char *name, uint16_t port, bool strict);
void tci_inspect_free(struct tci_inspect *inspect);

/*
 * `bytes`: everything that has not been passed yet, from the first byte held back. `at_end`: no more
 * will come (half-close); then the answer is never MORE. *ret_pass: how many leading bytes may go now;
 * MORE: may be 0; OPAQUE: all; REFUSED: 0. PASS with bytes left: call again at once, they may be refused.
 */
enum tci_inspect_says tci_inspect_feed(struct tci_inspect *inspect, const uint8_t *bytes,
                                       size_t length, bool at_end, size_t *ret_pass);

/* REFUSED: why, as a sentence. Else a note for the record ("no server name in TLS"), or "". */
const char *tci_inspect_reason(const struct tci_inspect *inspect);
/* REFUSED: the name that was meant instead, canonical if it can be, or "". */
const char *tci_inspect_meant(const struct tci_inspect *inspect);
/* "tls", "http", "other", or "" before it is known. */
const char *tci_inspect_protocol(const struct tci_inspect *inspect);

#endif
