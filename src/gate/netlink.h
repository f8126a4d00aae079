/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: netlink messages: writing them into a fixed buffer, and one acknowledged exchange. */
#ifndef TCI_GATE_NETLINK_H
#define TCI_GATE_NETLINK_H

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* One or more netlink messages in a row. What does not fit sets `overflow`. */
struct tci_netlink_batch {
    uint32_t sequence;
    size_t used;
    bool overflow;
    struct nlmsghdr *message; /* the one being written */
    _Alignas(struct nlmsghdr) char bytes[3072];
};

/* Starts a message with its family header; attributes follow. */
void tci_netlink_begin(struct tci_netlink_batch *b, uint16_t type, uint16_t flags,
                       const void *header, size_t size);
void tci_netlink_attribute(struct tci_netlink_batch *b, uint16_t type, const void *data,
                           size_t size);
/* A nested attribute: everything up to tci_netlink_close() is inside. */
size_t tci_netlink_open(struct tci_netlink_batch *b, uint16_t type);
void tci_netlink_close(struct tci_netlink_batch *b, size_t opened);

/* Sends to `protocol` and reads the answers, of which there must be one; 0 or the first errno. The
 * kernel has answered when the sending returns. */
int tci_netlink_send(int protocol, struct tci_netlink_batch *b);

#endif
