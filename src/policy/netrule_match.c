/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what a network rule speaks about.
 * Trusts: that rules and destinations are canonical, as netrule.c and netrule_host.c leave them;
 * so names are compared byte by byte, and addresses bit by bit.
 * Invariant: when in doubt an allow rule does not match and a deny rule does.
 */
#include "policy/netrule.h"

#include <string.h>

/* "a.example.com" and "a.b.example.com" are below "example.com"; "example.com" and
 * "badexample.com" are not. */
static bool name_is_below(const char *name, const char *parent)
{
    size_t name_length = strlen(name), parent_length = strlen(parent);

    if (name_length <= parent_length + 1)
        return false;
    const char *tail = name + (name_length - parent_length);
    return tail[-1] == '.' && strcmp(tail, parent) == 0;
}

/* A translator on the way (NAT64, a 6to4 relay) turns 64:ff9b::a00:1 into 10.0.0.1: what denies
 * 10.0.0.0/8 must deny that as well. The reverse is not granted: who allows an IPv4 address has
 * not allowed a detour to it through somebody's translator. */
static bool embedded_v4_in_prefix(const struct tci_address *address,
                                  const struct tci_address *network, unsigned prefix)
{
    struct tci_address v4[TCI_ADDRESS_EMBEDDED_MAX];
    unsigned count = tci_address_embedded_v4_all(address, v4);

    for (unsigned i = 0; i < count; i++)
        if (tci_address_in_prefix(&v4[i], network, prefix))
            return true;
    return false;
}

static bool host_matches(const struct tci_netrule *rule, const struct tci_host *destination)
{
    const struct tci_host *host = &rule->host;

    switch (host->kind) {
    case TCI_HOST_NAME:
        return destination->kind == TCI_HOST_NAME && strcmp(destination->name, host->name) == 0;
    case TCI_HOST_WILDCARD:
        return destination->kind == TCI_HOST_NAME && name_is_below(destination->name, host->name);
    case TCI_HOST_ADDRESS:
        if (destination->kind != TCI_HOST_ADDRESS)
            return false;
        return tci_address_in_prefix(&destination->address, &host->address, host->prefix) ||
               (rule->deny &&
                embedded_v4_in_prefix(&destination->address, &host->address, host->prefix));
    }
    return false;
}

bool tci_netrule_matches(const struct tci_netrule *rule, const struct tci_host *destination,
                         uint16_t port)
{
    return port >= rule->port_low && port <= rule->port_high && host_matches(rule, destination);
}

static bool host_covers(const struct tci_host *outer, const struct tci_host *inner)
{
    switch (outer->kind) {
    case TCI_HOST_NAME:
        return inner->kind == TCI_HOST_NAME && strcmp(outer->name, inner->name) == 0;
    case TCI_HOST_WILDCARD:
        if (inner->kind == TCI_HOST_WILDCARD && strcmp(outer->name, inner->name) == 0)
            return true;
        return inner->kind != TCI_HOST_ADDRESS && name_is_below(inner->name, outer->name);
    case TCI_HOST_ADDRESS:
        return inner->kind == TCI_HOST_ADDRESS && outer->prefix <= inner->prefix &&
               tci_address_in_prefix(&inner->address, &outer->address, outer->prefix);
    }
    return false;
}

bool tci_netrule_covers(const struct tci_netrule *outer, const struct tci_netrule *inner)
{
    return outer->port_low <= inner->port_low && inner->port_high <= outer->port_high &&
           host_covers(&outer->host, &inner->host);
}

bool tci_netrule_equal(const struct tci_netrule *a, const struct tci_netrule *b)
{
    return a->deny == b->deny && a->host.kind == b->host.kind && tci_netrule_covers(a, b) &&
           tci_netrule_covers(b, a);
}
