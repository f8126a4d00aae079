/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: where each session of a journal stands, by its name. */
#include "journal/verify_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/siphash.h"

enum { slots_first = 64 };

int tci_verify_sessions_init(struct tci_verify_sessions *sessions, struct tc_error *reterr)
{
    if (tci_random(sessions->key, sizeof sessions->key) < 0)
        return tci_error_errno(reterr, errno, "random numbers");
    sessions->slots = calloc(slots_first, sizeof *sessions->slots);
    if (!sessions->slots)
        return tci_error_no_memory(reterr);
    sessions->capacity = slots_first;
    return 0;
}

void tci_verify_sessions_free(struct tci_verify_sessions *sessions)
{
    for (size_t i = 0; i < sessions->capacity; i++)
        free(sessions->slots[i]);
    free(sessions->slots);
}

/* The slot that holds the name, or the empty one where it belongs. */
static size_t slot_of(const struct tci_verify_sessions *sessions, const char *name, uint64_t hash)
{
    size_t at = (size_t)hash & (sessions->capacity - 1);
    while (sessions->slots[at] &&
           (sessions->slots[at]->hash != hash || strcmp(sessions->slots[at]->name, name) != 0))
        at = (at + 1) & (sessions->capacity - 1);
    return at;
}

static int grow(struct tci_verify_sessions *sessions)
{
    struct tci_verify_session **old = sessions->slots, **slots;
    size_t count = sessions->capacity;
    slots = calloc(2 * count, sizeof *slots);
    if (!slots)
        return -1;
    sessions->slots = slots;
    sessions->capacity = 2 * count;
    for (size_t i = 0; i < count; i++)
        if (old[i])
            slots[slot_of(sessions, old[i]->name, old[i]->hash)] = old[i];
    free(old);
    return 0;
}

struct tci_verify_session *tci_verify_session_find(struct tci_verify_sessions *sessions,
                                                   const char *name)
{
    uint64_t hash = tci_siphash(sessions->key, name, strlen(name));
    return sessions->slots[slot_of(sessions, name, hash)];
}

struct tci_verify_session *tci_verify_session(struct tci_verify_sessions *sessions,
                                              const char *name)
{
    struct tci_verify_session *session = sessions->last;
    size_t length, at;
    uint64_t hash;
    /* Most rows follow one of their own session. */
    if (session && strcmp(session->name, name) == 0)
        return session;
    length = strlen(name);
    hash = tci_siphash(sessions->key, name, length);
    at = slot_of(sessions, name, hash);
    if (sessions->slots[at])
        return sessions->last = sessions->slots[at];
    if (2 * (sessions->count + 1) > sessions->capacity) {
        if (grow(sessions) < 0)
            return NULL;
        at = slot_of(sessions, name, hash);
    }
    session = calloc(1, sizeof *session + length + 1);
    if (!session)
        return NULL;
    session->hash = hash;
    memcpy(session->name, name, length + 1);
    memcpy(session->state_hash, tci_journal_no_state, sizeof session->state_hash);
    sessions->slots[at] = session;
    sessions->count++;
    return sessions->last = session;
}
