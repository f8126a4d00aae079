/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the files of one gate share.
 *
 *   gate.c          the object: sockets from inside, their sources, the end
 *   gate_record.c   what happened
 *   gate_names.c    names that were asked for, their real and their made-up addresses
 *   gate_dns.c      the stub resolver, over UDP and TCP
 *   gate_packets.c  the raw sockets: SYNs from the cage, answers to it
 *   gate_connect.c  connections, from a SYN until they are announced
 *   gate_accept.c   and from there to the last byte
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
    TCI_GATE_PEERS_MAX = 16,    /* of DNS over TCP, */
    TCI_GATE_KNOCKING_MAX = 32, /* and those that are still to come */
    TCI_GATE_LOOKUPS_MAX = 8,   /* at a time; the others queue up */
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
    bool queued;               /* waits for its turn to be looked up, */
    uint64_t queued_at;        /* since then */
    uint64_t looked_up;        /* when `found` was true; 0: never */
    struct tci_lookup_result found;
    enum { TCI_LEADS_UNKNOWN, TCI_LEADS_SOMEWHERE, TCI_LEADS_NOWHERE } leads;
    long refusal; /* NOWHERE: its record */
    struct tci_gate_waiting *waiting;
};

enum tci_gate_state {
    TCI_GATE_LOOKING_UP,
    TCI_GATE_DIALLING,
    TCI_GATE_ENDING,    /* the program is told why there is none */
    TCI_GATE_ANNOUNCED, /* the host has it, the program is to come */
    TCI_GATE_RELAYING,
};

struct tci_gate_connection {
    struct tci_gate *gate;
    struct tci_gate_connection *next;
    struct tci_syn syn;
    enum tci_gate_state state;
    struct tci_gate_name *name; /* NULL: an address without one */
    bool is_dns;                /* to the resolver */
    bool by_name;
    char rule[TCI_RULE_TEXT_MAX];
    struct tci_dial *dial;
    int problem;    /* ENDING: what the program is told, */
    unsigned times; /* and how often it was told again */
    int world;      /* ANNOUNCED */
    struct tci_address dialled;
    struct tci_inspect *inspect; /* the relay's, while there is one */
    struct tci_relay *relay;
    struct tci_timer timer;
    struct tci_grave grave;
    uint64_t opened;
    long record;
};

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
    struct tci_timer rest; /* sources that are out of the loop come back then */
    uint64_t busy_since;
    unsigned busy_count;
    size_t socket_count, fixed_count;
    struct tci_budget budget;
    struct tci_gate_record *records;
    size_t record_count, record_capacity, refused_count, connection_records;
    uint64_t dropped;
    struct tci_gate_name *names; /* the newest first */
    uint32_t name_count;
    uint32_t lookup_count, queued_count;
    struct tci_timer queue_timer;
    size_t waiting_count, peer_count, connection_count, knocking_count, lost_seen;
    struct tci_gate_peer *peers;
    struct tci_gate_connection *connections;
};

/* gate_record.c: adds it, or counts it where the same is there. Its index; or TCI_GATE_NO_RECORD. */
long tci_gate_note(struct tci_gate *gate, const struct tci_gate_record *record);
long tci_gate_refused(struct tci_gate *gate, const char *protocol, const char *host,
                      const struct tci_address *address, uint16_t port,
                      const struct tci_gate_verdict *verdict);
/* The same once more. */
void tci_gate_refused_again(struct tci_gate *gate, long record);
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
/* May this one of its addresses be dialled? */
bool tci_gate_name_leads_to(const struct tci_gate_name *name, const struct tci_address *address,
                            uint16_t port, struct tci_gate_verdict *ret);
void tci_gate_names_free(struct tci_gate *gate);

/* gate_dns.c */
tci_source_ready tci_gate_dns_ready;
void tci_gate_dns_found(struct tci_gate_name *name);
/* Takes the connection. */
void tci_gate_dns_accept(struct tci_gate *gate, int fd);
void tci_gate_dns_rested(struct tci_gate *gate);
void tci_gate_dns_close(struct tci_gate *gate);

/* gate_packets.c: the cage's SYN again, with the mark; and what the program is told instead. */
tci_source_ready tci_gate_syn_ready, tci_gate_lost_ready;
void tci_gate_announce(struct tci_gate *gate, const struct tci_syn *syn);
void tci_gate_answer(struct tci_gate *gate, const struct tci_syn *syn, int problem);
bool tci_gate_is_loopback(const struct tci_address *address);

/* gate_connect.c: a SYN came. */
void tci_gate_knock(struct tci_gate *gate, const struct tci_syn *syn);
void tci_gate_connect_found(struct tci_gate_name *name);
struct tci_gate_connection *tci_gate_connection_find(struct tci_gate *gate,
                                                     const struct tci_syn *syn);
void tci_gate_connection_fill(const struct tci_gate_connection *connection,
                              enum tci_gate_event event, struct tci_gate_record *ret);
void tci_gate_connection_forget(struct tci_gate_connection *connection);
/* The same; but whoever was dialled has seen it, so it is in the record, although the program has not
 * come for it. */
void tci_gate_connection_give_up(struct tci_gate_connection *connection);

/* gate_accept.c */
tci_source_ready tci_gate_accept_ready;
/* Everything that the cage had sent is on its way, or there is nowhere for it to go. */
bool tci_gate_connect_drained(const struct tci_gate *gate);
void tci_gate_connect_close(struct tci_gate *gate, bool all);

/* gate.c: takes a source out of the loop for a moment. */
void tci_gate_rest(struct tci_gate *gate, struct tci_source *source);
/* Counts a packet or a question of the cage. True: that were many, and the source rests. */
bool tci_gate_is_busy(struct tci_gate *gate, struct tci_source *source);
/* An IPv4 address in IPv6 clothes is an IPv4 address. */
struct tci_address tci_gate_plain(const struct in6_addr *address);

#endif
