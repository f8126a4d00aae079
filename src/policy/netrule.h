/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: one network rule: its canonical form and what it matches.
 * Invariant: the string that is compared is the string that will be dialled. There is one spelling
 * of each host; every other spelling is either turned into it here or refused here.
 */
#ifndef TCI_POLICY_NETRULE_H
#define TCI_POLICY_NETRULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/attr.h"
#include "policy/address.h"

enum tci_host_kind {
    TCI_HOST_NAME,     /* api.example.com: that name and no other */
    TCI_HOST_WILDCARD, /* *.example.com: names below example.com, never example.com itself */
    TCI_HOST_ADDRESS,  /* 192.0.2.1, [2001:db8::1], or a prefix of either */
};

enum {
    TCI_NAME_MAX = 253,
    TCI_RULE_TEXT_MAX = 288, /* "deny:" + host + ":lo-hi" + NUL, with room */
    TCI_NETRULE_PROBLEM_MAX = 256,
};

struct tci_host {
    enum tci_host_kind kind;
    char name[TCI_NAME_MAX + 1]; /* canonical; for a wildcard without its "*." */
    struct tci_address address;
    unsigned prefix; /* address bits that count: 32 or 128 for a single address */
};

struct tci_netrule {
    bool deny;
    struct tci_host host;
    uint16_t port_low, port_high; /* 1 to 65535, low <= high */
};

/* Why a rule or host was refused, and what to write instead. */
struct tci_netrule_problem {
    char message[TCI_NETRULE_PROBLEM_MAX], remedy[TCI_NETRULE_PROBLEM_MAX];
};

/* "allowlist:HOST:PORT", "HOST:PORT" or "deny:HOST:PORT". 0, or -1 with *problem. A host cannot be
 * called like a prefix ("deny", "allow", ...). Messages are printable ASCII whatever the text. */
int tci_netrule_parse(const char *text, size_t length, struct tci_netrule *ret,
                      struct tci_netrule_problem *problem) tci_must_check;

/* HOST alone, as in a rule (so wildcards and prefixes too). 0, or -1 with *problem. */
int tci_host_parse(const char *text, size_t length, struct tci_host *ret,
                   struct tci_netrule_problem *problem) tci_must_check;

/* A host that a program wants to reach: a name or a single address ("[v6]" or bare v6), brought to
 * the same canonical form. An IPv4-mapped IPv6 address ("::ffff:10.0.0.1" or "::ffff:a00:1") becomes
 * the IPv4 address that the kernel would dial. Wildcards, prefixes, zones, other mixed notation and
 * IPv4-compatible addresses ("::10.0.0.1") are refused. 0, or -1 with *problem. */
int tci_destination_parse(const char *text, size_t length, struct tci_host *ret,
                          struct tci_netrule_problem *problem) tci_must_check;

/* Canonical text: "HOST:PORT" or "deny:HOST:PORT"; parses to an equal rule. Returns `buffer`. */
const char *tci_netrule_format(const struct tci_netrule *rule, char buffer[TCI_RULE_TEXT_MAX]);
const char *tci_host_format(const struct tci_host *host, char buffer[TCI_RULE_TEXT_MAX]);

bool tci_netrule_equal(const struct tci_netrule *a, const struct tci_netrule *b);

/* Does the rule speak about this destination (a NAME or single ADDRESS) and port? An IPv4 deny rule
 * also speaks about IPv6 addresses that carry such an IPv4 address; an IPv4 allow rule does not. */
bool tci_netrule_matches(const struct tci_netrule *rule, const struct tci_host *destination,
                         uint16_t port);

/* Does everything that `inner` matches match `outer` too? (Ignores `deny`, so also what a deny rule
 * says about IPv6 addresses that carry IPv4 ones.) */
bool tci_netrule_covers(const struct tci_netrule *outer, const struct tci_netrule *inner);

#endif
