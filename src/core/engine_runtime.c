/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: copies of the journal's grants. A grant never changes, it is only revoked: so each is read once
 * and known by its id. A row that the chain does not confirm is an error of the journal's, and then no
 * agent may call anything; a text that this version cannot read is no grant.
 */
#include "core/engine_runtime.h"

#include <stdlib.h>
#include <string.h>
#include "journal/journal.h"
#include "policy/parse.h"

struct tci_engine_grants {
    pthread_mutex_t lock;
    struct tci_arena *arena;
    bool loaded;
    uint64_t version;
    struct tci_run_grant **items; /* in the order in which they were made */
    size_t count, room;
};

void tci_engine_grants_free(struct tc_engine *engine)
{
    struct tci_engine_grants *granted = tc_take(engine->granted);
    if (!granted)
        return;
    (void)pthread_mutex_destroy(&granted->lock);
    tci_arena_free(granted->arena);
    free(granted->items);
    free(granted);
}

static struct tci_engine_grants *new_granted(void)
{
    struct tci_engine_grants *granted = calloc(1, sizeof *granted);
    if (!granted)
        return NULL;
    granted->arena = tci_arena_new();
    if (!granted->arena) {
        free(granted);
        return NULL;
    }
    (void)pthread_mutex_init(&granted->lock, NULL);
    return granted;
}

/* The engine's, made when it is first needed. NULL: no memory. */
static struct tci_engine_grants *granted_of(struct tc_engine *engine)
{
    struct tci_engine_grants *granted;
    (void)pthread_mutex_lock(&engine->lock);
    if (!engine->granted)
        engine->granted = new_granted();
    granted = engine->granted;
    (void)pthread_mutex_unlock(&engine->lock);
    return granted;
}

/* Both lists are in the same order: the search begins where the last one ended. */
static struct tci_run_grant *find(struct tci_engine_grants *granted, const char *id, size_t *hint)
{
    for (size_t i = 0; i < granted->count; i++) {
        size_t at = (*hint + i) % granted->count;
        if (strcmp(granted->items[at]->id, id) == 0) {
            *hint = at + 1;
            return granted->items[at];
        }
    }
    return NULL;
}

static int add(struct tc_engine *engine, struct tci_engine_grants *granted,
               const struct tci_journal_grant *row, struct tc_error *reterr)
{
    struct tci_run_grant *made = tci_arena_new_of(granted->arena, struct tci_run_grant);
    struct tci_grant *grant = NULL;
    struct tc_error problem = { 0 };

    if (granted->count == granted->room) {
        size_t room = granted->room ? granted->room * 2 : 16;
        struct tci_run_grant **items = reallocarray(granted->items, room, sizeof *items);
        if (!items)
            return tci_error_no_memory(reterr);
        granted->items = items;
        granted->room = room;
    }
    if (!made)
        return tci_error_no_memory(reterr);
    memcpy(made->id, row->id, sizeof made->id);
    made->agent = tci_arena_strdup(granted->arena, row->agent);
    if (!made->agent)
        return tci_error_no_memory(reterr);
    if (tci_grant_parse(engine->policy, granted->arena, row->text, strlen(row->text), &grant,
                        &problem) < 0) {
        if (problem.code == TC_ERROR_NO_MEMORY)
            return tci_error_no_memory(reterr);
        return 0;
    }
    /* The columns are what people see in lists: a text that says otherwise would deceive them. */
    if (strcmp(grant->tool, row->tool) != 0)
        return 0;
    made->grant = grant;
    granted->items[granted->count++] = made;
    return 0;
}

static int load(struct tc_engine *engine, struct tci_engine_grants *granted,
                struct tc_error *reterr)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    struct tci_journal_grant *rows = NULL;
    size_t count = 0, hint = 0;

    if (!arena)
        return tci_error_no_memory(reterr);
    if (tci_journal_grants(engine->journal, NULL, false, arena, &rows, &count, reterr) < 0)
        return -1;
    for (size_t i = 0; i < granted->count; i++)
        granted->items[i]->gone = true;
    for (size_t i = 0; i < count; i++) {
        struct tci_run_grant *known = find(granted, rows[i].id, &hint);
        if (known)
            known->gone = false;
        else if (add(engine, granted, &rows[i], reterr) < 0)
            return -1;
    }
    return 0;
}

int tci_engine_refresh(struct tc_engine *engine, struct tc_error *reterr)
{
    struct tci_engine_grants *granted;
    uint64_t version = 0;
    int r;

    if (!engine->journal)
        return 0;
    granted = granted_of(engine);
    if (!granted)
        return tci_error_no_memory(reterr);
    (void)pthread_mutex_lock(&granted->lock);
    r = tci_journal_grants_version(engine->journal, &version, reterr);
    if (r == 0 && (!granted->loaded || granted->version != version)) {
        /* The version is older than what is read: what comes between is read again, never missed. */
        granted->loaded = false;
        r = load(engine, granted, reterr);
        granted->loaded = r == 0;
        granted->version = version;
    }
    (void)pthread_mutex_unlock(&granted->lock);
    return r;
}

const struct tci_run_grant *tci_engine_next_grant(struct tc_engine *engine, const char *agent,
                                                  const char *tool, size_t *cursor)
{
    struct tci_engine_grants *granted = engine->journal ? granted_of(engine) : NULL;
    const struct tci_run_grant *found = NULL;
    if (!granted)
        return NULL;
    (void)pthread_mutex_lock(&granted->lock);
    while (!found && *cursor < granted->count) {
        const struct tci_run_grant *item = granted->items[(*cursor)++];
        if (!item->gone && strcmp(item->agent, agent) == 0 && strcmp(item->grant->tool, tool) == 0)
            found = item;
    }
    (void)pthread_mutex_unlock(&granted->lock);
    return found;
}

/* ---- expiry ------------------------------------------------------------------------------- */

static void take_expiry(const struct tci_grant *grant, int64_t now, int64_t *ret)
{
    if (grant->has_expiry && grant->expires > now && grant->expires < *ret)
        *ret = grant->expires;
}

int64_t tci_engine_next_expiry(struct tc_engine *engine, const char *agent, int64_t now)
{
    struct tci_engine_grants *granted = engine->journal ? granted_of(engine) : NULL;
    const char *agents[TCI_GRANTS_MAX];
    size_t count = tci_engine_chain(engine, agent, agents);
    int64_t next = INT64_MAX;

    if (count > TCI_GRANTS_MAX)
        return next; /* nothing is granted to it */
    for (size_t i = 0; i < count; i++) {
        const struct tci_agent *a = tci_policy_agent(engine->policy, agents[i]);
        for (size_t j = 0; a && j < a->grant_count; j++)
            take_expiry(&a->grants[j], now, &next);
    }
    if (!granted)
        return next;
    (void)pthread_mutex_lock(&granted->lock);
    for (size_t k = 0; k < granted->count; k++)
        for (size_t i = 0; i < count && !granted->items[k]->gone; i++)
            if (strcmp(granted->items[k]->agent, agents[i]) == 0)
                take_expiry(granted->items[k]->grant, now, &next);
    (void)pthread_mutex_unlock(&granted->lock);
    return next;
}
