/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what a gate tells about its cage: connections that were made, and what was refused. */
#ifndef TCI_GATE_RECORD_H
#define TCI_GATE_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include "policy/netrule.h"

enum {
    TCI_GATE_REASON_MAX = 256,
    TCI_GATE_RECORDS_MAX = 1000, /* of each kind; beyond that they are counted only */
};

enum tci_gate_event {
    TCI_GATE_REFUSED, /* a name, an address, a port, a protocol: a denial of the result */
    TCI_GATE_OPENED,  /* a connection was made */
    TCI_GATE_CLOSED,  /* and has ended: with its bytes and its duration */
    TCI_GATE_FAILED,  /* was allowed, and could not be made; `reason` says why */
};

struct tci_gate_record {
    enum tci_gate_event event;
    const char *protocol;               /* "tcp", "udp", "dns" */
    char host[TCI_NAME_MAX + 1];        /* the name, or the address where the cage used one */
    char address[TCI_ADDRESS_TEXT_MAX]; /* that was dialled or refused; "": none was */
    uint16_t port;                      /* 0: a name that was asked for */
    char rule[TCI_RULE_TEXT_MAX];       /* that allowed or denied it; "": none */
    char reason
        [TCI_GATE_REASON_MAX];     /* why it was refused or failed, or a note ("no server name") */
    char fix[TCI_GATE_REASON_MAX]; /* REFUSED: the smallest change of the policy that allows it */
    uint64_t started_us;           /* since the cage's start */
    uint64_t duration_us, bytes_in, bytes_out; /* in: to the cage */
    uint64_t count;                            /* REFUSED: how often the same was tried */
};

#endif
