/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the names of one cage. Each has a number, and by it one made-up address of each family: a
 * connection to that address names its host. Its real addresses are asked for once and kept for a
 * short while; what was checked is what is dialled, so a name server that changes its mind between the
 * check and the connection (rebinding) changes nothing.
 */
#include "gate/gate_internal.h"

#include <stdlib.h>
#include <string.h>
#include "base/clock.h"

enum { fresh_us = 30000000, first_index = 2 };

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

static void found(void *data, const struct tci_lookup_result *result)
{
    struct tci_gate_name *name = data;
    name->lookup = NULL;
    name->found = *result;
    name->looked_up = tci_clock_us();
    tci_gate_dns_found(name);
    tci_gate_connect_found(name);
}

bool tci_gate_name_is_known(struct tci_gate_name *name)
{
    int problem;
    if (name->lookup)
        return false;
    if (name->looked_up && tci_clock_us() - name->looked_up < fresh_us &&
        name->found.end != TCI_LOOKUP_FAILED)
        return true;
    problem = tci_lookup_start(name->gate->loop, name->host.name, found, name, &name->lookup);
    if (problem == 0)
        return false;
    name->lookup = NULL;
    name->looked_up = 0;
    name->found = (struct tci_lookup_result){ .end = TCI_LOOKUP_FAILED,
                                              .reason = "the host is busy with other names" };
    return true;
}

void tci_gate_names_free(struct tci_gate *gate)
{
    struct tci_gate_name *name;
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
