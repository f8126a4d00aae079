/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the files of one gate share.
 *
 *   gate.c          the object: sockets from inside, their sources, the end
 *   gate_record.c   what happened
 *   gate_names.c    names that were asked for, their real and their made-up addresses
 *   gate_dns.c      the stub resolver, over UDP and TCP
 *   gate_connect.c  connections, from a SYN to the last byte
 */
#ifndef TCI_GATE_GATE_INTERNAL_H
#define TCI_GATE_GATE_INTERNAL_H

#include <netinet/in.h>
#include <sys/socket.h>
#include "gate/dial.h"
#include "gate/dns.h"
#include "gate/gate.h"
#include "gate/inside.h"
#include "gate/lookup.h"
#include "gate/loop.h"
#include "gate/packet.h"
#include "gate/relay.h"
#include "gate/rules.h"

enum {
    TCI_GATE_NAMES_MAX = 4096,
    TCI_GATE_WAITING_MAX = 256, /* questions that wait for the host's resolver */
    TCI_GATE_PEERS_MAX = 16,    /* of DNS over TCP */
    TCI_GATE_NO_RECORD = -1,
};

/* A question over TCP comes from one of these; over UDP there is none. */
struct tci_gate_peer;

struct tci_gate_asker {
    struct tci_gate_peer *peer;      /* NULL: UDP */
    struct sockaddr_storage address; /* who asked, */
    socklen_t address_length;
    struct in6_addr asked; /* and which address */
};

struct tci_gate_waiting {
    struct tci_gate_waiting *next;
    struct tci_gate_asker asker;
    struct tci_dns_question question;
};

struct tci_gate_name {
    struct tci_gate *gate;
    struct tci_gate_name *next;
    uint32_t index; /* of the made-up addresses; from 2 on */
    struct tci_host host;
    struct tci_lookup *lookup; /* running; or NULL */
    uint64_t looked_up;        /* when `found` was true; 0: never */
    struct tci_lookup_result found;
    struct tci_gate_waiting *waiting;
};

struct tci_gate_connection;

struct tci_gate {
    struct tci_gate_options options;
    const struct tci_network *network;
    struct tci_gate_ports ports;
    bool catches_loopback, closing;
    uint64_t finish_by; /* once `closing` */
    struct tci_loop *loop;
    uint64_t started;
    int channel;
    struct tci_source channel_source;
    int sockets[TCI_GATE_SOCKETS_MAX];
    struct tci_source sources[TCI_GATE_SOCKETS_MAX];
    size_t socket_count, fixed_count;
    struct tci_budget budget;
    struct tci_gate_record *records;
    size_t record_count, record_capacity, refused_count, connection_records;
    uint64_t dropped;
    struct tci_gate_name *names; /* the newest first */
    uint32_t name_count;
    size_t waiting_count, peer_count, connection_count, lost_seen;
    struct tci_gate_peer *peers;
    struct tci_gate_connection *connections;
};

/* gate_record.c: adds it, or counts it where the same is there. Its index; or TCI_GATE_NO_RECORD. */
long tci_gate_note(struct tci_gate *gate, const struct tci_gate_record *record);
void tci_gate_refused(struct tci_gate *gate, const char *protocol, const char *host,
                      const struct tci_address *address, uint16_t port,
                      const struct tci_gate_verdict *verdict);
void tci_gate_changed(struct tci_gate *gate, long record);

/* gate_names.c: NULL: no memory, or too many. */
struct tci_gate_name *tci_gate_name(struct tci_gate *gate, const struct tci_host *host);
/* The name that a made-up address stands for. */
struct tci_gate_name *tci_gate_name_at(struct tci_gate *gate, const struct tci_address *address);
bool tci_gate_is_made_up(const struct tci_address *address);
struct tci_address tci_gate_made_up(uint32_t index, bool is_v6);
/* Are its addresses known and fresh? Otherwise a lookup runs from now on, whose end goes to
 * tci_gate_dns_found() and tci_gate_connect_found(). */
bool tci_gate_name_is_known(struct tci_gate_name *name);
void tci_gate_names_free(struct tci_gate *gate);

/* gate_dns.c */
tci_source_ready tci_gate_dns_ready;
void tci_gate_dns_found(struct tci_gate_name *name);
/* Takes the connection. */
void tci_gate_dns_accept(struct tci_gate *gate, int fd);
void tci_gate_dns_close(struct tci_gate *gate);

/* gate_connect.c */
tci_source_ready tci_gate_syn_ready, tci_gate_lost_ready, tci_gate_accept_ready;
void tci_gate_connect_found(struct tci_gate_name *name);
/* Everything that the cage had sent is on its way, or there is nowhere for it to go. */
bool tci_gate_connect_drained(const struct tci_gate *gate);
void tci_gate_connect_close(struct tci_gate *gate, bool all);

/* gate.c: an IPv4 address in IPv6 clothes is an IPv4 address. */
struct tci_address tci_gate_plain(const struct in6_addr *address);

#endif
