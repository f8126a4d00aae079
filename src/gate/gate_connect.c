/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: connections of a cage, from the SYN that asks for one until it is announced. Nothing is
 * accepted that was not announced here: the checked host is dialled first, and then the cage's own SYN
 * is sent again with the mark that its listener wants (inside.h).
 */
#include "gate/gate_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/fd.h"

enum { announced_us = 20000000 }; /* for a program that has gone meanwhile */

/* A program that is still busy inside of connect() takes a reset later, but forgets an "unreachable":
 * it is told again, after these times. */
static const unsigned again_us[] = { 2000, 20000 };

/* ---- the list --------------------------------------------------------------------------------------- */

void tci_gate_connection_forget(struct tci_gate_connection *c)
{
    struct tci_gate *gate = c->gate;
    struct tci_gate_connection **at = &gate->connections;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    *(c->is_dns ? &gate->knocking_count : &gate->connection_count) -= 1;
    tci_loop_set_timer(gate->loop, &c->timer, 0);
    if (c->dial)
        tci_dial_cancel(c->dial);
    (void)tci_close(c->world);
    tci_loop_bury(gate->loop, &c->grave, c);
}

void tci_gate_connection_fill(const struct tci_gate_connection *c, enum tci_gate_event event,
                              struct tci_gate_record *ret)
{
    *ret = (struct tci_gate_record){ .event = event, .protocol = "tcp", .port = c->syn.to_port };
    if (c->state >= TCI_GATE_ANNOUNCED)
        tci_address_format(&c->dialled, ret->address);
    if (c->name)
        (void)snprintf(ret->host, sizeof ret->host, "%s", c->name->host.name);
    else
        tci_address_format(&c->syn.to, ret->host);
    memcpy(ret->rule, c->rule, sizeof ret->rule);
}

void tci_gate_connection_give_up(struct tci_gate_connection *c)
{
    struct tci_gate_record record;
    if (c->state == TCI_GATE_ANNOUNCED && !c->is_dns) {
        tci_gate_connection_fill(c, TCI_GATE_FAILED, &record);
        (void)snprintf(record.reason, sizeof record.reason, "the program did not wait for it");
        (void)tci_gate_note(c->gate, &record);
    }
    tci_gate_connection_forget(c);
}

static void tell_again(struct tci_gate_connection *c)
{
    if (c->times == sizeof again_us / sizeof again_us[0])
        tci_gate_connection_forget(c);
    else
        tci_loop_set_timer(c->gate->loop, &c->timer, tci_clock_us() + again_us[c->times++]);
}

/* Nobody came for it, or nobody has heard that there is nothing to come for. */
static void is_due(struct tci_timer *timer)
{
    struct tci_gate_connection *c = timer->data;
    if (c->state != TCI_GATE_ENDING) {
        tci_gate_connection_give_up(c);
        return;
    }
    tci_gate_answer(c->gate, &c->syn, c->problem);
    tell_again(c);
}

struct tci_gate_connection *tci_gate_connection_find(struct tci_gate *gate,
                                                     const struct tci_syn *syn)
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
    *(is_dns ? &gate->knocking_count : &gate->connection_count) += 1;
    return c;
}

/* ---- deciding and dialling ------------------------------------------------------------------------- */

static void fail(struct tci_gate_connection *c, int problem, const char *reason)
{
    struct tci_gate_record record;
    tci_gate_connection_fill(c, TCI_GATE_FAILED, &record);
    (void)snprintf(record.reason, sizeof record.reason, "%s", reason);
    (void)tci_gate_note(c->gate, &record);
    tci_gate_answer(c->gate, &c->syn, problem);
    if (problem != EHOSTUNREACH && problem != ENETUNREACH) {
        tci_gate_connection_forget(c);
        return;
    }
    c->state = TCI_GATE_ENDING;
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
    c->state = TCI_GATE_ANNOUNCED;
    tci_loop_set_timer(c->gate->loop, &c->timer, tci_clock_us() + announced_us);
    tci_gate_announce(c->gate, &c->syn);
}

static void dial(struct tci_gate_connection *c, const struct tci_address *addresses, size_t count)
{
    int problem;
    c->state = TCI_GATE_DIALLING;
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
        if (tci_gate_name_leads_to(c->name, address, c->syn.to_port, &verdict)) {
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
    tci_gate_answer(c->gate, &c->syn, ECONNREFUSED);
    tci_gate_connection_forget(c);
}

void tci_gate_connect_found(struct tci_gate_name *name)
{
    struct tci_gate_connection *c, *next;
    for (c = name->gate->connections; c; c = next) {
        next = c->next;
        if (c->state == TCI_GATE_LOOKING_UP && c->name == name)
            dial_name(c);
    }
}

/* ---- SYNs -------------------------------------------------------------------------------------------- */

static bool has_listener(const struct tci_gate *gate, uint16_t port)
{
    return port == TCI_GATE_DNS_PORT || tci_gate_ports_has(&gate->ports, port);
}

/* Programs may talk to themselves: that is no business of the gate, unless a rule makes it one. */
static bool is_between_themselves(const struct tci_gate *gate, const struct tci_address *to,
                                  uint16_t port)
{
    if (!tci_gate_is_loopback(to))
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
        tci_gate_answer(gate, syn, ECONNREFUSED);
        return;
    }
    c = add(gate, syn, false);
    if (!c) {
        tci_gate_answer(gate, syn, ECONNREFUSED);
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

/* The resolver counts as no connection, so a cage could begin one after the other and never come. The
 * oldest of those gives way. */
static void make_room_for_question(struct tci_gate *gate)
{
    struct tci_gate_connection *oldest = NULL;
    if (gate->knocking_count < TCI_GATE_KNOCKING_MAX)
        return;
    for (struct tci_gate_connection *c = gate->connections; c; c = c->next)
        if (c->is_dns)
            oldest = c;
    if (oldest)
        tci_gate_connection_forget(oldest);
}

void tci_gate_knock(struct tci_gate *gate, const struct tci_syn *syn)
{
    struct tci_gate_connection *c = tci_gate_connection_find(gate, syn);
    if (c && tci_syn_equal(&c->syn, syn)) {
        if (c->state == TCI_GATE_ANNOUNCED)
            tci_gate_announce(gate, syn); /* the listener had no room, or we were not heard */
        return;
    }
    if (c && c->state != TCI_GATE_RELAYING)
        tci_gate_connection_give_up(c); /* that try was */
    if (is_between_themselves(gate, &syn->to, syn->to_port))
        return;
    if (is_question(gate, syn)) {
        make_room_for_question(gate);
        if ((c = add(gate, syn, true)) != NULL) {
            c->state = TCI_GATE_ANNOUNCED;
            tci_loop_set_timer(gate->loop, &c->timer, tci_clock_us() + announced_us);
            tci_gate_announce(gate, syn);
        }
        return;
    }
    begin(gate, syn);
}
