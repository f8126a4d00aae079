/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the search for many secrets in one pass: an automaton of Aho and Corasick, with its edges
 * in a hash table. The attack that it stops: a call with thousands of secrets and a large output, whose
 * product would keep the host busy for minutes. Time and memory grow with their sum.
 * Trusts: the sum of all lengths, which redact_secrets.c bounds.
 */
#include "core/redact.h"

#include <stdlib.h>

struct node {
    uint32_t parent;
    uint32_t fallback; /* the longest end of this text that begins a secret, too */
    uint32_t depth;    /* the length of this text */
    uint32_t whole;    /* the longest secret with which this text ends */
    unsigned char byte;
};

struct tci_search {
    struct node *nodes; /* the first one is the empty text */
    uint32_t *table;    /* of edges, by parent and byte: the node; 0: free */
    uint32_t count, deepest;
    unsigned bits;
    uint32_t root[256];
};

static size_t slot_of(const struct tci_search *search, uint32_t parent, unsigned char byte)
{
    uint64_t mixed = ((uint64_t)parent << 8 | byte) * UINT64_C(0x9e3779b97f4a7c15);
    return mixed >> (64 - search->bits);
}

/* The slot of an edge, or the free one where it belongs. At most half of them are used. */
static uint32_t *edge(const struct tci_search *search, uint32_t parent, unsigned char byte)
{
    size_t slot = slot_of(search, parent, byte), mask = ((size_t)1 << search->bits) - 1;
    for (;; slot = (slot + 1) & mask) {
        const struct node *node = &search->nodes[search->table[slot]];
        if (!search->table[slot] || (node->parent == parent && node->byte == byte))
            return &search->table[slot];
    }
}

static uint32_t child_of(const struct tci_search *search, uint32_t parent, unsigned char byte)
{
    return parent ? *edge(search, parent, byte) : search->root[byte];
}

static void add(struct tci_search *search, const struct tci_secret *secret)
{
    uint32_t at = 0;
    for (size_t i = 0; i < secret->length; i++) {
        unsigned char byte = (unsigned char)secret->text[i];
        uint32_t next = child_of(search, at, byte);
        if (!next) {
            next = ++search->count;
            search->nodes[next] =
                (struct node){ .parent = at, .depth = (uint32_t)i + 1, .byte = byte };
            *(at ? edge(search, at, byte) : &search->root[byte]) = next;
            if (search->deepest <= i)
                search->deepest = (uint32_t)i + 1;
        }
        at = next;
    }
    search->nodes[at].whole = (uint32_t)secret->length;
}

/* All nodes, the shallow ones first. */
static uint32_t *by_depth(const struct tci_search *search)
{
    uint32_t *order = calloc((size_t)search->count + 1, sizeof *order);
    uint32_t *ends = calloc((size_t)search->deepest + 2, sizeof *ends);

    if (!order || !ends) {
        free(order);
        free(ends);
        return NULL;
    }
    for (uint32_t i = 1; i <= search->count; i++)
        ends[search->nodes[i].depth + 1]++;
    for (uint32_t i = 1; i <= search->deepest + 1; i++)
        ends[i] += ends[i - 1];
    for (uint32_t i = 1; i <= search->count; i++)
        order[ends[search->nodes[i].depth]++] = i;
    free(ends);
    return order;
}

static int connect_fallbacks(struct tci_search *search)
{
    uint32_t *order = by_depth(search);
    if (!order)
        return -1;
    for (uint32_t i = 0; i < search->count; i++) {
        struct node *node = &search->nodes[order[i]];
        if (node->parent)
            node->fallback = tci_search_step(search, search->nodes[node->parent].fallback,
                                             node->byte);
        if (!node->whole)
            node->whole = search->nodes[node->fallback].whole;
    }
    free(order);
    return 0;
}

struct tci_search *tci_search_new(const struct tci_secrets *secrets)
{
    struct tci_search *search = calloc(1, sizeof *search);
    size_t bytes = 0;

    if (!search)
        return NULL;
    for (size_t i = 0; i < secrets->count; i++)
        bytes += secrets->items[i].length;
    search->bits = 4;
    while ((size_t)1 << search->bits < 2 * bytes)
        search->bits++;
    search->nodes = calloc(bytes + 1, sizeof *search->nodes);
    search->table = calloc((size_t)1 << search->bits, sizeof *search->table);
    if (search->nodes && search->table) {
        for (size_t i = 0; i < secrets->count; i++)
            add(search, &secrets->items[i]);
        if (connect_fallbacks(search) == 0)
            return search;
    }
    tci_search_free(search);
    return NULL;
}

void tci_search_free(struct tci_search *search)
{
    if (!search)
        return;
    free(search->nodes);
    free(search->table);
    free(search);
}

uint32_t tci_search_step(const struct tci_search *search, uint32_t state, unsigned char byte)
{
    uint32_t next;
    while (!(next = child_of(search, state, byte)) && state)
        state = search->nodes[state].fallback;
    return next;
}

uint32_t tci_search_whole(const struct tci_search *search, uint32_t state)
{
    return search->nodes[state].whole;
}

uint32_t tci_search_part(const struct tci_search *search, uint32_t state)
{
    return search->nodes[state].depth;
}
