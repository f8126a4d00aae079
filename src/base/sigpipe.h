/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: writing to somebody who may be gone, where no flag of the call keeps the signal away (write() to a
 * pipe, splice()). SIGPIPE must not end the host, which did nothing wrong, and its handlers are not ours.
 */
#ifndef TCI_BASE_SIGPIPE_H
#define TCI_BASE_SIGPIPE_H

#include <signal.h>
#include <stdbool.h>

struct tci_sigpipe {
    sigset_t before;
    bool was_pending;
};

/* Around the call, in one thread: the kernel sends the signal to that one only. */
void tci_sigpipe_hold(struct tci_sigpipe *held);
/* `may_have_come`: not everything was written, also when a part was before the peer went. Keeps errno. */
void tci_sigpipe_release(const struct tci_sigpipe *held, bool may_have_come);

#endif
