/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: connections that were announced, from the listener to the last byte. One that comes to a
 * listener in another way is reset.
 */
#include "gate/gate_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/fd.h"

enum { accepted_per_step = 64 };

static const char *host_text(const struct tci_gate_connection *c)
{
    return c->name ? c->name->host.name : NULL;
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
    tci_gate_connection_forget(c);
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
    c->state = TCI_GATE_RELAYING;
    c->opened = tci_clock_us();
    tci_loop_set_timer(gate->loop, &c->timer, 0);
    if (c->by_name) {
        c->inspect = tci_inspect_new(c->name->host.name, c->syn.to_port,
                                     gate->options.settings->inspect_strict);
        if (!c->inspect) { /* unchecked it does not leave */
            (void)tci_close(cage);
            (void)tci_close(options.world);
            tci_gate_connection_forget(c);
            return;
        }
    }
    options.inspect = c->inspect;
    tci_gate_connection_fill(c, TCI_GATE_OPENED, &record);
    c->record = tci_gate_note(gate, &record);
    if (tci_relay_start(&options, &c->relay) < 0) {
        c->inspect = NULL;
        close_record(c, 0, 0);
        tci_gate_connection_forget(c);
    }
}

/* The ends of an accepted connection, as the SYN had them. */
static bool read_ends(int fd, const struct sockaddr_in6 *peer, struct tci_syn *ret)
{
    struct sockaddr_in6 own = { 0 };
    socklen_t own_length = sizeof own;
    memset(ret, 0, sizeof *ret);
    if (getsockname(fd, (struct sockaddr *)&own, &own_length) < 0)
        return false;
    ret->from_port = ntohs(peer->sin6_port); /* at the same place in both families */
    ret->to_port = ntohs(own.sin6_port);
    if (peer->sin6_family == AF_INET6) {
        ret->from = tci_gate_plain(&peer->sin6_addr);
        ret->to = tci_gate_plain(&own.sin6_addr);
    } else {
        memcpy(ret->from.bytes, &((const struct sockaddr_in *)peer)->sin_addr, 4);
        memcpy(ret->to.bytes, &((struct sockaddr_in *)&own)->sin_addr, 4);
    }
    return true;
}

void tci_gate_accept_ready(struct tci_source *source, uint32_t events)
{
    static const struct linger at_once = { .l_onoff = 1 };
    struct tci_gate *gate = source->data;
    struct tci_gate_connection *c;
    struct sockaddr_in6 peer = { 0 };
    struct tci_syn ends;
    socklen_t length;
    int fd;
    (void)events;
    for (int i = 0; i < accepted_per_step; i++) {
        length = sizeof peer;
        fd = accept4(source->fd, (struct sockaddr *)&peer, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            /* The host has no descriptor for it. It would be told of this without end. */
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                tci_gate_rest(gate, source);
            return;
        }
        c = read_ends(fd, &peer, &ends) ? tci_gate_connection_find(gate, &ends) : NULL;
        if (!c || c->state != TCI_GATE_ANNOUNCED) {
            (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
            (void)tci_close(fd);
        } else if (c->is_dns) {
            tci_gate_connection_forget(c);
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
        tci_gate_connection_give_up(c);
    }
}
