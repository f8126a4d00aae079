/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the counters themselves. Invariant: looking and counting is one step, under one lock. */
#include "core/grant_counts.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct use {
    char *key;
    uint64_t calls;
};

struct tci_grant_counts {
    pthread_mutex_t lock;
    unsigned users;
    struct use *uses;
    size_t count;
};

struct tci_grant_counts *tci_counts_new(void)
{
    struct tci_grant_counts *counts = calloc(1, sizeof *counts);
    if (!counts)
        return NULL;
    (void)pthread_mutex_init(&counts->lock, NULL); /* cannot fail without attributes */
    counts->users = 1;
    return counts;
}

struct tci_grant_counts *tci_counts_hold(struct tci_grant_counts *counts)
{
    (void)pthread_mutex_lock(&counts->lock);
    counts->users++;
    (void)pthread_mutex_unlock(&counts->lock);
    return counts;
}

void tci_counts_release(struct tci_grant_counts *counts)
{
    unsigned left;
    if (!counts)
        return;
    (void)pthread_mutex_lock(&counts->lock);
    left = --counts->users;
    (void)pthread_mutex_unlock(&counts->lock);
    if (left)
        return;
    for (size_t i = 0; i < counts->count; i++)
        free(counts->uses[i].key);
    free(counts->uses);
    (void)pthread_mutex_destroy(&counts->lock);
    free(counts);
}

/* With the lock held. NULL: no memory. */
static uint64_t *calls_of(struct tci_grant_counts *counts, const char *key)
{
    const char *place = strrchr(key, '\x1f');
    size_t length = place ? (size_t)(place - key) : strlen(key);
    struct use *uses;
    char *copy;

    for (size_t i = 0; i < counts->count; i++)
        if (strncmp(counts->uses[i].key, key, length) == 0 && !counts->uses[i].key[length])
            return &counts->uses[i].calls;
    uses = reallocarray(counts->uses, counts->count + 1, sizeof *uses);
    if (!uses)
        return NULL;
    counts->uses = uses;
    copy = strndup(key, length);
    if (!copy)
        return NULL;
    uses[counts->count] = (struct use){ .key = copy };
    return &uses[counts->count++].calls;
}

int tci_counts_get(struct tci_grant_counts *counts, const char *key, uint64_t *ret)
{
    const uint64_t *calls;
    (void)pthread_mutex_lock(&counts->lock);
    calls = calls_of(counts, key);
    *ret = calls ? *calls : 0;
    (void)pthread_mutex_unlock(&counts->lock);
    return calls ? 0 : -1;
}

bool tci_counts_add(struct tci_grant_counts *counts, const char *const *keys, const uint64_t *max,
                    size_t count)
{
    bool counted = true;
    (void)pthread_mutex_lock(&counts->lock);
    for (size_t i = 0; i < count; i++) {
        const uint64_t *calls = calls_of(counts, keys[i]);
        counted = counted && calls && *calls < max[i];
    }
    for (size_t i = 0; counted && i < count; i++)
        ++*calls_of(counts, keys[i]);
    (void)pthread_mutex_unlock(&counts->lock);
    return counted;
}
