/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the record of a gate. Bounded: a cage that tries a million names makes no million entries, and
 * what it tries again is counted, not repeated.
 */
#include "gate/gate_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"

static bool is_same(const struct tci_gate_record *a, const struct tci_gate_record *b)
{
    return a->event == TCI_GATE_REFUSED && a->port == b->port &&
           strcmp(a->protocol, b->protocol) == 0 && strcmp(a->host, b->host) == 0 &&
           strcmp(a->address, b->address) == 0 && strcmp(a->reason, b->reason) == 0;
}

void tci_gate_changed(struct tci_gate *gate, long record)
{
    if (record >= 0 && gate->options.on_event)
        gate->options.on_event(gate->options.data, &gate->records[record]);
}

static struct tci_gate_record *make_room(struct tci_gate *gate)
{
    if (gate->record_count == gate->record_capacity) {
        size_t capacity = gate->record_capacity ? gate->record_capacity * 2 : 4;
        struct tci_gate_record *more = realloc(gate->records, capacity * sizeof *more);
        if (!more)
            return NULL;
        gate->records = more;
        gate->record_capacity = capacity;
    }
    return &gate->records[gate->record_count];
}

long tci_gate_note(struct tci_gate *gate, const struct tci_gate_record *record)
{
    const bool refused = record->event == TCI_GATE_REFUSED;
    size_t *count = refused ? &gate->refused_count : &gate->connection_records;
    struct tci_gate_record *entry;
    for (size_t i = 0; refused && i < gate->record_count; i++)
        if (is_same(&gate->records[i], record)) {
            gate->records[i].count++;
            return (long)i;
        }
    entry = *count < TCI_GATE_RECORDS_MAX ? make_room(gate) : NULL;
    if (!entry) {
        gate->dropped++;
        return TCI_GATE_NO_RECORD;
    }
    *entry = *record;
    entry->count = 1;
    entry->started_us = tci_clock_us() - gate->started;
    (*count)++;
    gate->record_count++;
    tci_gate_changed(gate, (long)gate->record_count - 1);
    return (long)gate->record_count - 1;
}

long tci_gate_refused(struct tci_gate *gate, const char *protocol, const char *host,
                      const struct tci_address *address, uint16_t port,
                      const struct tci_gate_verdict *verdict)
{
    struct tci_gate_record record = { .event = TCI_GATE_REFUSED,
                                      .protocol = protocol,
                                      .port = port };
    if (address)
        tci_address_format(address, record.address);
    (void)snprintf(record.host, sizeof record.host, "%s", host ? host : record.address);
    memcpy(record.rule, verdict->rule, sizeof record.rule);
    memcpy(record.reason, verdict->reason, sizeof record.reason);
    memcpy(record.fix, verdict->fix, sizeof record.fix);
    return tci_gate_note(gate, &record);
}

void tci_gate_refused_again(struct tci_gate *gate, long record)
{
    if (record == TCI_GATE_NO_RECORD)
        gate->dropped++;
    else
        gate->records[record].count++;
}
