/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the part of the DNS wire format that a stub resolver needs: one question in, one answer out.
 * Input is hostile. No compression pointers are followed; names are lower-cased; what
 * tci_destination_parse() does not take for a name is a name that no rule can allow.
 */
#ifndef TCI_GATE_DNS_H
#define TCI_GATE_DNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "policy/netrule.h"

enum {
    TCI_DNS_MESSAGE_MAX = 512,  /* of an answer of ours: it always fits */
    TCI_DNS_WIRE_MAX = 255 + 4, /* of a question: name, type, class */
    TCI_DNS_A = 1,
    TCI_DNS_AAAA = 28,
    TCI_DNS_ANY = 255,
    TCI_DNS_OK = 0,
    TCI_DNS_MALFORMED = 1,
    TCI_DNS_FAILED = 2,
    TCI_DNS_NO_NAME = 3,
    TCI_DNS_UNKNOWN = 4, /* opcode not implemented */
    TCI_DNS_REFUSED = 5,
};

struct tci_dns_question {
    uint16_t id, type, class_;
    uint8_t opcode;
    bool recursion_desired, has_options; /* has_options: an EDNS record came with it */
    char name[TCI_NAME_MAX + 1]; /* printable, lower case, without the last dot; "" for the root */
    bool is_host_name; /* a canonical name; else no rule can mean it ("?": another byte) */
    uint8_t wire[TCI_DNS_WIRE_MAX]; /* the question as it came, for the answer */
    size_t wire_length;             /* 0: there was none that could be read */
};

/* 0; or a response code (TCI_DNS_MALFORMED, TCI_DNS_UNKNOWN) for which an answer can be made from what
 * was read of the header; or -1: not even that, or it is a response: say nothing. */
int tci_dns_read_question(const uint8_t *bytes, size_t length, struct tci_dns_question *ret);

/* An answer with the code and up to one address of each family: A for type A, AAAA for type AAAA, both
 * for ANY, none for other types; NULL: none. Not authoritative, recursion available, TTL `ttl`, an EDNS
 * record if the question had one. NO_NAME carries no SOA. Returns its length. */
size_t tci_dns_write_answer(const struct tci_dns_question *question, int code,
                            const struct tci_address *v4, const struct tci_address *v6,
                            uint32_t ttl, uint8_t ret[TCI_DNS_MESSAGE_MAX]);

#endif
