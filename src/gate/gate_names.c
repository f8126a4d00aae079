/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the names of one cage. Each has a number, and by it one made-up address of each family: a
 * connection to that address names its host. Its real addresses are asked for once and kept for a
 * short while; what was checked is what is dialled, so a name server that changes its mind between the
 * check and the connection (rebinding) changes nothing.
 *
 * A cage looks up a few names at a time, and others wait for their turn. The attack: many names of a
 * name server that never answers. Each of them holds one of the places that all cages of the host share,
 * also after the cage has gone.
 */
#include "gate/gate_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"

enum { fresh_us = 30000000, first_index = 2, queue_us = 50000, patience_us = 4000000 };

static const struct tci_address v4_range = { .bytes = { TCI_GATE_V4_BYTES } };
static const struct tci_address v6_range = { .is_v6 = true, .bytes = { TCI_GATE_V6_BYTES } };

bool tci_gate_is_made_up(const struct tci_address *address)
{
    return tci_address_in_prefix(address, &v4_range, TCI_GATE_V4_PREFIX) ||
           tci_address_in_prefix(address, &v6_range, TCI_GATE_V6_PREFIX);
}

struct tci_address tci_gate_made_up(uint32_t index, bool is_v6)
{
    struct tci_address address = is_v6 ? v6_range : v4_range;
    uint8_t *end = address.bytes + (is_v6 ? 16 : 4);
    end[-1] = (uint8_t)index;
    end[-2] = (uint8_t)(index >> 8);
    return address;
}

struct tci_gate_name *tci_gate_name_at(struct tci_gate *gate, const struct tci_address *address)
{
    for (struct tci_gate_name *name = gate->names; name; name = name->next) {
        const struct tci_address own = tci_gate_made_up(name->index, address->is_v6);
        if (memcmp(own.bytes, address->bytes, address->is_v6 ? 16 : 4) == 0)
            return name;
    }
    return NULL;
}

struct tci_gate_name *tci_gate_name(struct tci_gate *gate, const struct tci_host *host)
{
    struct tci_gate_name *name = gate->names;
    while (name && strcmp(name->host.name, host->name) != 0)
        name = name->next;
    if (name || gate->name_count == TCI_GATE_NAMES_MAX || !(name = calloc(1, sizeof *name)))
        return name;
    name->gate = gate;
    name->host = *host;
    name->index = first_index + gate->name_count++;
    name->next = gate->names;
    gate->names = name;
    return name;
}

/* The kernel is asked about the host's own addresses last: that costs more than all rules. */
bool tci_gate_name_leads_to(const struct tci_gate_name *name, const struct tci_address *address,
                            uint16_t port, struct tci_gate_verdict *ret)
{
    const struct tci_network *network = name->gate->network;
    return tci_gate_allows_resolved(network, &name->host, address, false, port, ret) &&
           (!tci_address_is_own(address) ||
            tci_gate_allows_resolved(network, &name->host, address, true, port, ret));
}

/* ---- lookups ---------------------------------------------------------------------------------------- */

static void take_turns(struct tci_gate *gate);

static void is_found(struct tci_gate_name *name, const struct tci_lookup_result *result)
{
    name->lookup = NULL;
    name->found = *result;
    name->looked_up = tci_clock_us();
    name->leads = TCI_LEADS_UNKNOWN;
    tci_gate_dns_found(name);
    tci_gate_connect_found(name);
}

static void found(void *data, const struct tci_lookup_result *result)
{
    struct tci_gate_name *name = data;
    struct tci_gate *gate = name->gate;
    gate->lookup_count--;
    is_found(name, result);
    take_turns(gate);
}

static void queue_due(struct tci_timer *timer)
{
    take_turns(timer->data);
}

static void ask_later(struct tci_gate *gate)
{
    gate->queue_timer.due = queue_due;
    gate->queue_timer.data = gate;
    tci_loop_set_timer(gate->loop, &gate->queue_timer, tci_clock_us() + queue_us);
}

/* 0; -EAGAIN: not now. */
static int look_up(struct tci_gate_name *name)
{
    struct tci_gate *gate = name->gate;
    int problem = gate->lookup_count < TCI_GATE_LOOKUPS_MAX
                      ? tci_lookup_start(gate->loop, name->host.name, found, name, &name->lookup)
                      : -EAGAIN;
    if (problem < 0)
        name->lookup = NULL;
    else
        gate->lookup_count++;
    return problem;
}

static struct tci_gate_name *oldest_in_queue(const struct tci_gate *gate)
{
    struct tci_gate_name *oldest = NULL;
    for (struct tci_gate_name *name = gate->names; name; name = name->next)
        if (name->queued && (!oldest || name->queued_at < oldest->queued_at))
            oldest = name;
    return oldest;
}

/* Whoever has waited longest comes first. Programs ask again after some seconds: one whose turn has not
 * come by then is told so. */
static void take_turns(struct tci_gate *gate)
{
    struct tci_gate_name *name;
    while ((name = gate->queued_count ? oldest_in_queue(gate) : NULL) != NULL) {
        const bool is_late = tci_clock_us() - name->queued_at > patience_us;
        int problem = is_late ? -ETIMEDOUT : look_up(name);
        if (problem == -EAGAIN) {
            ask_later(gate);
            return;
        }
        name->queued = false;
        gate->queued_count--;
        if (problem < 0)
            is_found(name, &(struct tci_lookup_result){
                               .end = TCI_LOOKUP_FAILED,
                               .reason = is_late ? "the host is busy with other names"
                                                 : strerrordesc_np(-problem) });
    }
}

bool tci_gate_name_is_known(struct tci_gate_name *name)
{
    int problem;
    if (name->lookup || name->queued)
        return false;
    if (name->looked_up && tci_clock_us() - name->looked_up < fresh_us &&
        name->found.end != TCI_LOOKUP_FAILED)
        return true;
    problem = name->gate->queued_count ? -EAGAIN : look_up(name);
    if (problem == 0)
        return false;
    if (problem == -EAGAIN) {
        name->queued = true;
        name->queued_at = tci_clock_us();
        name->gate->queued_count++;
        if (!name->gate->queue_timer.deadline)
            ask_later(name->gate);
        return false;
    }
    name->looked_up = 0;
    name->found = (struct tci_lookup_result){ .end = TCI_LOOKUP_FAILED,
                                              .reason = strerrordesc_np(-problem) };
    return true;
}

void tci_gate_names_free(struct tci_gate *gate)
{
    struct tci_gate_name *name;
    tci_loop_set_timer(gate->loop, &gate->queue_timer, 0);
    while ((name = gate->names) != NULL) {
        gate->names = name->next;
        if (name->lookup)
            tci_lookup_cancel(name->lookup);
        while (name->waiting) {
            struct tci_gate_waiting *waiting = name->waiting;
            name->waiting = waiting->next;
            free(waiting);
        }
        free(name);
    }
}
