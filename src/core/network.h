/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the gate of a call has on record, in its result; and its events, for the caller. */
#ifndef TCI_CORE_NETWORK_H
#define TCI_CORE_NETWORK_H

#include "core/result.h"
#include "gate/record.h"

/* Connections, and of what was refused denials of kind "network". The tree is gone. */
int tci_network_add(struct tci_result *result, const struct tci_gate_record *records, size_t count,
                    uint64_t dropped, struct tc_error *reterr) tci_must_check;

/* The texts of the event are those of the record. */
void tci_network_event(const struct tci_gate_record *record, struct tc_network_event *ret);

enum { TCI_NETWORK_TARGET_MAX = TCI_NAME_MAX + 16 };

/* What was meant, for people: "evil.example" for a name that was asked for, "evil.example:443",
 * "[2001:db8::1]:443", "192.0.2.1:123/udp". Returns `buffer`. */
const char *tci_network_target(const struct tc_network_event *event,
                               char buffer[TCI_NETWORK_TARGET_MAX]);

#endif
