/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: asking the host's own resolver (getaddrinfo, so hosts files, nsswitch and systemd-resolved
 * count) without waiting for it: one detached thread a question, with a small stack and all signals
 * blocked. A lookup that nobody waits for any more ends by itself and touches nothing of the gate.
 */
#ifndef TCI_GATE_LOOKUP_H
#define TCI_GATE_LOOKUP_H

#include <stddef.h>
#include "gate/loop.h"
#include "policy/address.h"

enum { TCI_LOOKUP_ADDRESSES_MAX = 32, TCI_LOOKUP_RUNNING_MAX = 64 /* of the whole process */ };

enum tci_lookup_end {
    TCI_LOOKUP_FOUND,
    TCI_LOOKUP_NO_NAME, /* it does not exist, or has no address */
    TCI_LOOKUP_FAILED,  /* the resolver could not be asked, or did not answer */
};

struct tci_lookup_result {
    enum tci_lookup_end end;
    const char *reason; /* lives for ever; "" when FOUND */
    struct tci_address
        addresses[TCI_LOOKUP_ADDRESSES_MAX]; /* as the resolver ordered them, no doubles */
    size_t count;
};

struct tci_lookup;
/* Called once, from tci_loop_step(), never from tci_lookup_start(). The lookup is freed afterwards. */
typedef void tci_lookup_done(void *data, const struct tci_lookup_result *result);

/* 0 or a negative errno (EAGAIN: too many are running). */
int tci_lookup_start(struct tci_loop *loop, const char *name, tci_lookup_done *done, void *data,
                     struct tci_lookup **ret);
/* `done` will not be called. Harmless for NULL, and from inside of `done`. */
void tci_lookup_cancel(struct tci_lookup *lookup);

#endif
