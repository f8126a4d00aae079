/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a TCP connection of the host to the first of several checked addresses that answers (RFC 8305:
 * families take turns, IPv6 first; the next try starts 250 ms after the last, or
 * at once when it failed). Only the given addresses are dialled.
 */
#ifndef TCI_GATE_DIAL_H
#define TCI_GATE_DIAL_H

#include <stddef.h>
#include "gate/loop.h"
#include "policy/address.h"

enum { TCI_DIAL_TIMEOUT_MS = 30000, TCI_DIAL_STAGGER_MS = 250 };

struct tci_dial;
/* Once, from tci_loop_step(). `fd`: connected, non-blocking, close-on-exec, now the callee's, and the
 * address that answered; or -1 and `problem`, an errno: that of the most telling failure (ECONNREFUSED,
 * ETIMEDOUT, EHOSTUNREACH, ENETUNREACH, ...). The dial is freed afterwards. */
typedef void tci_dial_done(void *data, int fd, const struct tci_address *address, int problem);

/* 1 to 64 addresses. 0 or a negative errno. */
int tci_dial_start(struct tci_loop *loop, const struct tci_address *addresses, size_t count,
                   uint16_t port, tci_dial_done *done, void *data, struct tci_dial **ret);
/* `done` will not be called. Harmless for NULL, and from inside of `done`. */
void tci_dial_cancel(struct tci_dial *dial);

/* Does the address lead to this host itself, or to many (the kernel's own answer: a local, broadcast,
 * anycast or multicast route)? Also true when the kernel cannot be asked; false when there is no route. */
bool tci_address_is_own(const struct tci_address *address);

#endif
