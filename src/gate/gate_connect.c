/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: connections of a cage, from the SYN that asks for one to the last byte. Nothing is accepted
 * that was not announced here: the checked host is dialled first, and then the cage's own SYN is sent
 * again with the mark that its listener wants (inside.h). A connection that comes to a listener in
 * another way is reset.
 */
#include "gate/gate_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"

enum {
    announced_us = 20000000, /* for a program that has gone meanwhile */
    packets_per_step = 64,
    lost_max =
        200, /* datagrams that are looked at; one who sends more is not followed any longer */
};

enum state { LOOKING_UP, DIALLING, ENDING, ANNOUNCED, RELAYING };

/* A program that is still busy inside of connect() takes a reset later, but forgets an "unreachable":
 * it is told again, after these times. */
static const unsigned again_us[] = { 2000, 20000 };

struct tci_gate_connection {
    struct tci_gate *gate;
    struct tci_gate_connection *next;
    struct tci_syn syn;
    enum state state;
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

/* ---- packets into the cage ----------------------------------------------------------------------- */

static void inject(struct tci_gate *gate, const struct tci_syn *syn, const uint8_t *packet,
                   size_t length, const struct tci_address *to)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
    const bool is_v6 = syn->to.is_v6;
    memcpy(&v4.sin_addr, to->bytes, sizeof v4.sin_addr);
    memcpy(&v6.sin6_addr, to->bytes, sizeof v6.sin6_addr);
    if (is_v6 && gate->fixed_count <= TCI_GATE_SOCKET_TCP6)
        return;
    (void)sendto(gate->sockets[is_v6 ? TCI_GATE_SOCKET_TCP6 : TCI_GATE_SOCKET_TCP4], packet, length,
                 MSG_DONTWAIT | MSG_NOSIGNAL,
                 is_v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4,
                 is_v6 ? sizeof v6 : sizeof v4);
}

static void announce(struct tci_gate *gate, const struct tci_syn *syn)
{
    uint8_t packet[TCI_PACKET_MAX];
    inject(gate, syn, packet, tci_packet_write_syn(syn, packet), &syn->to);
}

/* The program sees what the world said. Silence stays silence. */
static void refuse(struct tci_gate *gate, const struct tci_syn *syn, int problem)
{
    uint8_t packet[TCI_PACKET_MAX];
    size_t length;
    switch (problem) {
    case ETIMEDOUT:
        return;
    case EHOSTUNREACH:
    case ENETUNREACH:
        length = tci_packet_write_unreachable(syn, problem == ENETUNREACH, packet);
        break;
    default:
        length = tci_packet_write_reset(syn, packet);
    }
    inject(gate, syn, packet, length, &syn->from);
}

/* ---- the list --------------------------------------------------------------------------------------- */

static const char *host_text(const struct tci_gate_connection *c)
{
    return c->name ? c->name->host.name : NULL;
}

static void forget(struct tci_gate_connection *c)
{
    struct tci_gate *gate = c->gate;
    struct tci_gate_connection **at = &gate->connections;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    gate->connection_count -= c->is_dns ? 0 : 1;
    tci_loop_set_timer(gate->loop, &c->timer, 0);
    if (c->dial)
        tci_dial_cancel(c->dial);
    (void)tci_close(c->world);
    tci_loop_bury(gate->loop, &c->grave, c);
}

static void tell_again(struct tci_gate_connection *c)
{
    if (c->times == sizeof again_us / sizeof again_us[0])
        forget(c);
    else
        tci_loop_set_timer(c->gate->loop, &c->timer, tci_clock_us() + again_us[c->times++]);
}

/* Nobody came for it, or nobody has heard that there is nothing to come for. */
static void is_due(struct tci_timer *timer)
{
    struct tci_gate_connection *c = timer->data;
    if (c->state != ENDING) {
        forget(c);
        return;
    }
    refuse(c->gate, &c->syn, c->problem);
    tell_again(c);
}

static struct tci_gate_connection *find(struct tci_gate *gate, const struct tci_syn *syn)
{
    struct tci_gate_connection *c = gate->connections;
    while (c && !tci_syn_same_ends(&c->syn, syn))
        c = c->next;
    return c;
}

static struct tci_gate_connection *add(struct tci_gate *gate, const struct tci_syn *syn,
                                       bool is_dns)
{
    struct tci_gate_connection *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->gate = gate;
    c->syn = *syn;
    c->is_dns = is_dns;
    c->world = -1;
    c->record = TCI_GATE_NO_RECORD;
    c->timer = (struct tci_timer){ .due = is_due, .data = c };
    c->next = gate->connections;
    gate->connections = c;
    gate->connection_count += is_dns ? 0 : 1;
    return c;
}

/* ---- deciding and dialling ------------------------------------------------------------------------- */

static void fill(const struct tci_gate_connection *c, enum tci_gate_event event,
                 struct tci_gate_record *ret)
{
    *ret = (struct tci_gate_record){ .event = event, .protocol = "tcp", .port = c->syn.to_port };
    if (c->state >= ANNOUNCED)
        tci_address_format(&c->dialled, ret->address);
    if (c->name)
        (void)snprintf(ret->host, sizeof ret->host, "%s", c->name->host.name);
    else
        tci_address_format(&c->syn.to, ret->host);
    memcpy(ret->rule, c->rule, sizeof ret->rule);
}

static void fail(struct tci_gate_connection *c, int problem, const char *reason)
{
    struct tci_gate_record record;
    fill(c, TCI_GATE_FAILED, &record);
    (void)snprintf(record.reason, sizeof record.reason, "%s", reason);
    (void)tci_gate_note(c->gate, &record);
    refuse(c->gate, &c->syn, problem);
    if (problem != EHOSTUNREACH && problem != ENETUNREACH) {
        forget(c);
        return;
    }
    c->state = ENDING;
    c->problem = problem;
    tell_again(c);
}

static void dialled(void *data, int fd, const struct tci_address *address, int problem)
{
    struct tci_gate_connection *c = data;
    c->dial = NULL;
    if (fd < 0) {
        fail(c, problem, strerrordesc_np(problem) ? strerrordesc_np(problem) : "no connection");
        return;
    }
    c->world = fd;
    c->dialled = *address;
    c->state = ANNOUNCED;
    tci_loop_set_timer(c->gate->loop, &c->timer, tci_clock_us() + announced_us);
    announce(c->gate, &c->syn);
}

static void dial(struct tci_gate_connection *c, const struct tci_address *addresses, size_t count)
{
    int problem;
    c->state = DIALLING;
    problem = tci_dial_start(c->gate->loop, addresses, count, c->syn.to_port, dialled, c, &c->dial);
    if (problem < 0) {
        c->dial = NULL;
        fail(c, ECONNREFUSED, strerrordesc_np(-problem));
    }
}

/* Those of the name's addresses that may be dialled, in their order. */
static void dial_name(struct tci_gate_connection *c)
{
    const struct tci_lookup_result *found = &c->name->found;
    struct tci_address allowed[TCI_LOOKUP_ADDRESSES_MAX];
    struct tci_gate_verdict verdict = { 0 }, refused = { 0 };
    const struct tci_address *refused_address = NULL;
    size_t count = 0;
    if (found->end != TCI_LOOKUP_FOUND) {
        fail(c, EHOSTUNREACH, found->reason ? found->reason : "the name has no address");
        return;
    }
    for (size_t i = 0; i < found->count; i++) {
        const struct tci_address *address = &found->addresses[i];
        if (tci_gate_allows_resolved(c->gate->network, &c->name->host, address,
                                     tci_address_is_own(address), c->syn.to_port, &verdict)) {
            allowed[count++] = *address;
        } else {
            refused = verdict;
            refused_address = address;
        }
    }
    if (count) {
        dial(c, allowed, count);
        return;
    }
    tci_gate_refused(c->gate, "tcp", c->name->host.name, refused_address, c->syn.to_port, &refused);
    refuse(c->gate, &c->syn, ECONNREFUSED);
    forget(c);
}

void tci_gate_connect_found(struct tci_gate_name *name)
{
    struct tci_gate_connection *c, *next;
    for (c = name->gate->connections; c; c = next) {
        next = c->next;
        if (c->state == LOOKING_UP && c->name == name)
            dial_name(c);
    }
}

/* ---- SYNs -------------------------------------------------------------------------------------------- */

static bool is_loopback(const struct tci_address *address)
{
    return tci_address_classify(address) == TCI_ADDRESS_LOOPBACK;
}

static bool has_listener(const struct tci_gate *gate, uint16_t port)
{
    return port == TCI_GATE_DNS_PORT || tci_gate_ports_has(&gate->ports, port);
}

/* Programs may talk to themselves: that is no business of the gate, unless a rule makes it one. */
static bool is_between_themselves(const struct tci_gate *gate, const struct tci_address *to,
                                  uint16_t port)
{
    if (!is_loopback(to))
        return false;
    return gate->ports.every ? !gate->catches_loopback : !has_listener(gate, port);
}

/* Whom a program takes for its name server, it gets ours; unless it may really reach that one. */
static bool is_question(struct tci_gate *gate, const struct tci_syn *syn)
{
    struct tci_gate_verdict verdict;
    return syn->to_port == TCI_GATE_DNS_PORT && !tci_gate_name_at(gate, &syn->to) &&
           (tci_gate_is_made_up(&syn->to) ||
            !tci_gate_allows_address(gate->network, &syn->to, tci_address_is_own(&syn->to),
                                     syn->to_port, &verdict));
}

/* May it be had, as far as that can be said before the name has an address? */
static bool is_allowed(struct tci_gate *gate, const struct tci_syn *syn,
                       const struct tci_gate_name *name, struct tci_gate_verdict *ret)
{
    const uint64_t most = gate->options.settings->network_limits.connections;
    memset(ret, 0, sizeof *ret);
    if (!name && tci_gate_is_made_up(&syn->to)) {
        (void)snprintf(ret->reason, sizeof ret->reason,
                       "the address stands for no name that was asked for in this cage");
        return false;
    }
    if (name ? !tci_gate_allows_name(gate->network, &name->host, syn->to_port, ret)
             : !tci_gate_allows_address(gate->network, &syn->to, tci_address_is_own(&syn->to),
                                        syn->to_port, ret))
        return false;
    if (!most || gate->connection_count < most)
        return true;
    (void)snprintf(ret->reason, sizeof ret->reason, "%llu connections are open, the most allowed",
                   (unsigned long long)most);
    (void)snprintf(ret->fix, sizeof ret->fix, "raise \"connections\" in \"network_limits\"");
    return false;
}

static void begin(struct tci_gate *gate, const struct tci_syn *syn)
{
    struct tci_gate_name *name = tci_gate_name_at(gate, &syn->to);
    struct tci_gate_connection *c;
    struct tci_gate_verdict verdict;
    if (!is_allowed(gate, syn, name, &verdict)) {
        tci_gate_refused(gate, "tcp", name ? name->host.name : NULL, name ? NULL : &syn->to,
                         syn->to_port, &verdict);
        refuse(gate, syn, ECONNREFUSED);
        return;
    }
    c = add(gate, syn, false);
    if (!c) {
        refuse(gate, syn, ECONNREFUSED);
        return;
    }
    c->name = name;
    c->by_name = verdict.by_name;
    memcpy(c->rule, verdict.rule, sizeof c->rule);
    if (!name)
        dial(c, &syn->to, 1);
    else if (tci_gate_name_is_known(name))
        dial_name(c);
}

static void handle(struct tci_gate *gate, const struct tci_syn *syn)
{
    struct tci_gate_connection *c = find(gate, syn);
    if (c && tci_syn_equal(&c->syn, syn)) {
        if (c->state == ANNOUNCED)
            announce(gate, syn); /* the listener had no room, or we were not heard */
        return;
    }
    if (c && c->state != RELAYING)
        forget(c); /* that try was given up */
    if (is_between_themselves(gate, &syn->to, syn->to_port))
        return;
    if (is_question(gate, syn)) {
        if ((c = add(gate, syn, true)) != NULL) {
            c->state = ANNOUNCED;
            tci_loop_set_timer(gate->loop, &c->timer, tci_clock_us() + announced_us);
            announce(gate, syn);
        }
        return;
    }
    begin(gate, syn);
}

/* One packet from a raw socket, with where it was going. 0: there is none. */
static size_t receive(int fd, uint8_t *bytes, size_t size, struct tci_address *ret_from,
                      struct tci_address *ret_to)
{
    struct sockaddr_in6 from = { 0 };
    struct iovec vector = { bytes, size };
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(struct in6_pktinfo))];
    } control;
    struct msghdr message = { .msg_name = &from,
                              .msg_namelen = sizeof from,
                              .msg_iov = &vector,
                              .msg_iovlen = 1,
                              .msg_control = &control,
                              .msg_controllen = sizeof control };
    ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT);
    const struct cmsghdr *head = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    memset(ret_from, 0, sizeof *ret_from);
    memset(ret_to, 0, sizeof *ret_to);
    if (head && head->cmsg_level == IPPROTO_IPV6 && head->cmsg_type == IPV6_PKTINFO) {
        ret_from->is_v6 = ret_to->is_v6 = true;
        memcpy(ret_from->bytes, &from.sin6_addr, 16);
        memcpy(ret_to->bytes, CMSG_DATA(head), 16); /* the first member of in6_pktinfo */
    }
    return n > 0 ? (size_t)n : 0;
}

void tci_gate_syn_ready(struct tci_source *source, uint32_t events)
{
    struct tci_gate *gate = source->data;
    const bool is_v6 = source->fd != gate->sockets[TCI_GATE_SOCKET_TCP4];
    struct tci_address from, to;
    uint8_t bytes[TCI_PACKET_MAX];
    struct tci_syn syn;
    size_t n;
    (void)events;
    for (int i = 0; i < packets_per_step; i++) {
        n = receive(source->fd, bytes, sizeof bytes, &from, &to);
        if (!n)
            return;
        if (is_v6 ? tci_packet_read_syn6(bytes, n, &from, &to, &syn)
                  : tci_packet_read_syn4(bytes, n, &syn))
            handle(gate, &syn);
    }
}

void tci_gate_lost_ready(struct tci_source *source, uint32_t events)
{
    struct tci_gate *gate = source->data;
    const bool is_v6 = source->fd != gate->sockets[TCI_GATE_SOCKET_UDP4];
    struct tci_gate_verdict verdict = { .reason = "datagrams do not leave a cage" };
    struct tci_address from, to;
    uint8_t bytes[TCI_PACKET_MAX];
    uint16_t port = 0;
    size_t n;
    (void)events;
    for (int i = 0; i < packets_per_step; i++) {
        n = receive(source->fd, bytes, sizeof bytes, &from, &to);
        if (!n)
            return;
        if (is_v6 && n >= 4)
            port = (uint16_t)(bytes[2] << 8 | bytes[3]);
        if ((is_v6 ? n >= 4 : tci_packet_read_udp4(bytes, n, &to, &port)) && !is_loopback(&to)) {
            struct tci_gate_name *name = tci_gate_name_at(gate, &to);
            tci_gate_refused(gate, "udp", name ? name->host.name : NULL, name ? NULL : &to, port,
                             &verdict);
        }
        if (++gate->lost_seen == lost_max) {
            tci_loop_remove(gate->loop, source);
            return;
        }
    }
}

/* ---- relaying --------------------------------------------------------------------------------------- */

static void close_record(struct tci_gate_connection *c, uint64_t in, uint64_t out)
{
    struct tci_gate_record *record;
    const char *note = c->inspect ? tci_inspect_reason(c->inspect) : "";
    if (c->record < 0)
        return;
    record = &c->gate->records[c->record];
    record->event = TCI_GATE_CLOSED;
    record->bytes_in = in;
    record->bytes_out = out;
    record->duration_us = tci_clock_us() - c->opened;
    (void)snprintf(record->reason, sizeof record->reason, "%s", note);
    tci_gate_changed(c->gate, c->record);
}

static void relayed(void *data, enum tci_relay_end end, uint64_t in, uint64_t out)
{
    struct tci_gate_connection *c = data;
    struct tci_gate_verdict verdict = { 0 };
    c->relay = NULL;
    memcpy(verdict.rule, c->rule, sizeof verdict.rule);
    if (end == TCI_RELAY_REFUSED) {
        const char *meant = tci_inspect_meant(c->inspect);
        (void)snprintf(verdict.reason, sizeof verdict.reason, "%s", tci_inspect_reason(c->inspect));
        if (*meant)
            (void)snprintf(verdict.fix, sizeof verdict.fix, "add \"%.200s:%u\" to \"network\"",
                           meant, c->syn.to_port);
    } else if (end == TCI_RELAY_LIMIT) {
        (void)snprintf(verdict.reason, sizeof verdict.reason,
                       "the cage's connections have carried as many bytes as they may");
        (void)snprintf(verdict.fix, sizeof verdict.fix,
                       "raise \"bytes_in\" or \"bytes_out\" in \"network_limits\"");
    }
    if (*verdict.reason)
        tci_gate_refused(c->gate, "tcp", host_text(c), &c->dialled, c->syn.to_port, &verdict);
    close_record(c, in, out);
    c->inspect = NULL;
    forget(c);
}

static void relay(struct tci_gate_connection *c, int cage)
{
    struct tci_gate *gate = c->gate;
    struct tci_gate_record record;
    struct tci_relay_options options = { .loop = gate->loop,
                                         .budget = &gate->budget,
                                         .cage = cage,
                                         .world = tci_take_fd(&c->world),
                                         .done = relayed,
                                         .data = c };
    c->state = RELAYING;
    c->opened = tci_clock_us();
    tci_loop_set_timer(gate->loop, &c->timer, 0);
    if (c->by_name) {
        c->inspect = tci_inspect_new(c->name->host.name, c->syn.to_port,
                                     gate->options.settings->inspect_strict);
        if (!c->inspect) { /* unchecked it does not leave */
            (void)tci_close(cage);
            (void)tci_close(options.world);
            forget(c);
            return;
        }
    }
    options.inspect = c->inspect;
    fill(c, TCI_GATE_OPENED, &record);
    c->record = tci_gate_note(gate, &record);
    if (tci_relay_start(&options, &c->relay) < 0) {
        c->inspect = NULL;
        close_record(c, 0, 0);
        forget(c);
    }
}

/* The ends of an accepted connection, as the SYN had them. */
static bool read_ends(int fd, struct tci_syn *ret)
{
    struct sockaddr_in6 peer = { 0 }, own = { 0 };
    socklen_t peer_length = sizeof peer, own_length = sizeof own;
    memset(ret, 0, sizeof *ret);
    if (getpeername(fd, (struct sockaddr *)&peer, &peer_length) < 0 ||
        getsockname(fd, (struct sockaddr *)&own, &own_length) < 0)
        return false;
    ret->from_port = ntohs(peer.sin6_port); /* at the same place in both families */
    ret->to_port = ntohs(own.sin6_port);
    if (peer.sin6_family == AF_INET6) {
        ret->from = tci_gate_plain(&peer.sin6_addr);
        ret->to = tci_gate_plain(&own.sin6_addr);
    } else {
        memcpy(ret->from.bytes, &((struct sockaddr_in *)&peer)->sin_addr, 4);
        memcpy(ret->to.bytes, &((struct sockaddr_in *)&own)->sin_addr, 4);
    }
    return true;
}

void tci_gate_accept_ready(struct tci_source *source, uint32_t events)
{
    static const struct linger at_once = { .l_onoff = 1 };
    struct tci_gate *gate = source->data;
    struct tci_gate_connection *c;
    struct tci_syn ends;
    int fd;
    (void)events;
    for (int i = 0; i < packets_per_step; i++) {
        fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        c = read_ends(fd, &ends) ? find(gate, &ends) : NULL;
        if (!c || c->state != ANNOUNCED) {
            (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
            (void)tci_close(fd);
        } else if (c->is_dns) {
            forget(c);
            tci_gate_dns_accept(gate, fd);
        } else {
            relay(c, fd);
        }
    }
}

/* ---- the end ------------------------------------------------------------------------------------------ */

bool tci_gate_connect_drained(const struct tci_gate *gate)
{
    for (const struct tci_gate_connection *c = gate->connections; c; c = c->next)
        if (c->relay && !tci_relay_is_drained(c->relay))
            return false;
    return true;
}

/* Those that are not open yet; or all. */
void tci_gate_connect_close(struct tci_gate *gate, bool all)
{
    struct tci_gate_connection *c, *next;
    uint64_t in = 0, out = 0;
    for (c = gate->connections; c; c = next) {
        next = c->next;
        if (c->relay && !all)
            continue;
        if (c->relay) {
            tci_relay_bytes(c->relay, &in, &out);
            close_record(c, in, out);
            tci_relay_cancel(c->relay);
        }
        forget(c);
    }
}
