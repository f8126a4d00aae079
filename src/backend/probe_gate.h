/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the two probes of the gate share: netlink messages and a connection to catch. */
#ifndef TCI_BACKEND_PROBE_GATE_H
#define TCI_BACKEND_PROBE_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* One or more netlink messages in a row. What does not fit sets `overflow`. */
struct tci_netlink_batch {
    uint32_t sequence;
    size_t used;
    bool overflow;
    struct nlmsghdr *message; /* the one being written */
    _Alignas(struct nlmsghdr) char bytes[2048];
};

/* Starts a message with its family header; attributes follow. */
void tci_netlink_begin(struct tci_netlink_batch *b, uint16_t type, uint16_t flags,
                       const void *header, size_t size);
void tci_netlink_attribute(struct tci_netlink_batch *b, uint16_t type, const void *data,
                           size_t size);
/* A nested attribute: everything up to tci_netlink_close() is inside. */
size_t tci_netlink_open(struct tci_netlink_batch *b, uint16_t type);
void tci_netlink_close(struct tci_netlink_batch *b, size_t opened);

/* Sends to `protocol` and waits for one acknowledgement; 0 or an errno. */
int tci_netlink_send(int protocol, struct tci_netlink_batch *b);

/* A user and a network namespace with its loopback up. 0, or an errno and the step that failed. */
int tci_gate_enter(const char **ret_step, char *ret_why, size_t size);

/* A route that makes every address of `family` local to this namespace; 0 or an errno. */
int tci_gate_add_local_route(int family);

/* Listens, connects to `address` at `port`, and checks that the connection arrives at a listener
 * on `listen_port` under its original address. 0 or an errno. */
int tci_gate_catch(int family, const char *address, uint16_t port, uint16_t listen_port);

#endif
