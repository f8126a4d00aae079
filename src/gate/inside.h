/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the two sides of a gate agree on: the sockets that are made inside of the namespace and
 * served from outside, and the addresses that the gate makes up. Read by init, which has no C library.
 *
 * How a connection is made. Every address is local (setup.h), so a SYN never leaves. The listener's own
 * socket filter drops it unless it has the gate's mark, which nobody in the cage can set; a raw socket
 * hands a copy to the supervisor. That one decides, dials, and only then sends the same SYN again, with
 * the mark, or the refusal that the world gave. So connect() in the cage ends as it would without a
 * gate, blocking or not, and nothing that the program does is intercepted.
 */
#ifndef TCI_GATE_INSIDE_H
#define TCI_GATE_INSIDE_H

enum {
    TCI_GATE_MARK = 0x7463,
    TCI_GATE_DNS_PORT = 53,
    TCI_GATE_CATCH_PORT =
        7, /* the listener for every port; below 1024: nobody inside can take it */
    TCI_GATE_SOCKETS_MAX = 40,
    TCI_GATE_BACKLOG = 1024,
};

/* In the order in which they travel. A socket that this kernel cannot have (IPv6) is left out; the
 * first byte of the message says how many of the fixed ones are there. */
enum tci_gate_socket {
    TCI_GATE_SOCKET_DNS,  /* UDP, port 53, any address */
    TCI_GATE_SOCKET_TCP4, /* raw: SYNs come, packets of ours go */
    TCI_GATE_SOCKET_UDP4, /* raw: datagrams that lead nowhere, for the record */
    TCI_GATE_SOCKET_TCP6,
    TCI_GATE_SOCKET_UDP6,
    TCI_GATE_SOCKET_LISTENERS, /* the first of them; each serves both families */
};

/* 198.18.0.0/15 and 2001:2::/48 are set aside for measuring equipment: no host of the world has them.
 * The first address of each is the resolver's, the others stand for names. */
#define TCI_GATE_V4_BYTES  198, 18, 0, 0
#define TCI_GATE_V4_PREFIX 15
#define TCI_GATE_V6_BYTES  0x20, 0x01, 0x00, 0x02
#define TCI_GATE_V6_PREFIX 48
#define TCI_GATE_RESOLVER  "198.18.0.1"

#endif
