/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: engines and their plans. A plan is compiled without the lock, so that a slow one holds up
 * nobody; of two threads that compile the same one, the second throws its own away.
 * Invariants: an entry with users is never freed; an entry is in `plans` exactly when `cached`.
 */
#include "core/engine.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/fd.h"
#include "core/builtin.h"
#include "core/engine_tools.h"
#include "core/streams.h"

/* ---- plans -------------------------------------------------------------------------------- */

static void free_entry(struct tc_engine *engine, struct tci_plan_entry *entry)
{
    if (!entry)
        return;
    if (entry->plan)
        entry->backend->plan_free(entry->plan);
    tci_engine_release(engine, entry->within);
    tci_arena_free(entry->arena);
    free(entry);
}

static int no_backend(const struct tci_settings *settings, struct tc_error *reterr)
{
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "this version has no backend \"%s\"",
                  tci_backend_kind_name(settings->backend));
    tci_error_remedy(reterr, "set backend = \"jail\" or \"process\" if that is enough");
    return -1;
}

/* One grant after the other, and then the call around it: each can only take away from what the one
 * before has left. */
static int narrow(struct tci_plan_entry *entry, struct tc_error *reterr)
{
    struct tci_tool before = *entry->tool;
    if (tci_narrow_tool(entry->arena, &before, NULL, &entry->limits, &entry->narrowed, reterr) < 0)
        return -1;
    for (size_t i = 0; i < entry->grants.count; i++) {
        before = entry->narrowed;
        if (tci_narrow_tool(entry->arena, &before, entry->grants.items[i], &entry->limits,
                            &entry->narrowed, reterr) < 0)
            return -1;
    }
    before = entry->narrowed;
    return entry->within
               ? tci_narrow_nested(entry->arena, &before, &entry->within->narrowed.settings,
                                   &entry->narrowed, reterr)
               : 0;
}

static int compile(struct tc_engine *engine, struct tci_plan_entry *entry, struct tc_error *reterr)
{
    int r;
    entry->arena = tci_arena_new();
    if (!entry->arena)
        return tci_error_no_memory(reterr);
    r = narrow(entry, reterr);
    if (r != 0)
        return r;
    entry->spec = (struct tc_spec){
        .tool = *entry->tool->name ? entry->tool->name : "[defaults]",
        .settings = &entry->narrowed.settings,
        .clauses = tci_tool_clauses(&entry->narrowed),
        .policy = engine->policy,
        .warm = engine->flags & TC_ENGINE_WARM ? entry->narrowed.settings.warm : 0,
    };
    tci_engine_brings(engine, entry->tool, &entry->spec);
    entry->backend = engine->find_backend(entry->narrowed.settings.backend);
    if (!entry->backend || entry->backend->abi != TC_BACKEND_ABI)
        return no_backend(&entry->narrowed.settings, reterr);
    return entry->backend->plan(&entry->spec, &entry->plan, reterr);
}

static bool is_for(const struct tci_plan_entry *entry, const struct tci_tool *tool,
                   const struct tci_grants *grants, const struct tci_limits *limits)
{
    return entry->tool == tool && entry->grants.count == grants->count &&
           memcmp(entry->grants.items, grants->items, grants->count * sizeof *grants->items) == 0 &&
           memcmp(&entry->limits, limits, sizeof *limits) == 0;
}

/* With the lock held. */
static struct tci_plan_entry *find_entry(struct tc_engine *engine, const struct tci_tool *tool,
                                         const struct tci_grants *grants,
                                         const struct tci_limits *limits)
{
    for (size_t i = 0; i < engine->plan_count; i++) {
        struct tci_plan_entry *entry = engine->plans[i];
        if (is_for(entry, tool, grants, limits)) {
            entry->users++;
            entry->last_used = ++engine->clock;
            return entry;
        }
    }
    return NULL;
}

/* With the lock held: a place for one more plan, and what had it before, for the caller to free. */
static struct tci_plan_entry **make_room(struct tc_engine *engine, struct tci_plan_entry **ret_old)
{
    struct tci_plan_entry **oldest = NULL;
    *ret_old = NULL;
    if (engine->plan_count < TCI_PLANS_MAX)
        return &engine->plans[engine->plan_count++];
    for (size_t i = 0; i < engine->plan_count; i++) {
        struct tci_plan_entry **entry = &engine->plans[i];
        if (!(*entry)->users && (!oldest || (*entry)->last_used < (*oldest)->last_used))
            oldest = entry;
    }
    if (oldest)
        *ret_old = *oldest;
    return oldest;
}

/* Puts a new entry where others find it. Returns the one to use: another thread may have been
 * faster. When all places are in use it stays the caller's alone. */
static struct tci_plan_entry *keep_entry(struct tc_engine *engine, struct tci_plan_entry *entry)
{
    struct tci_plan_entry *found, **place, *superfluous;

    entry->users = 1;
    (void)pthread_mutex_lock(&engine->lock);
    found = find_entry(engine, entry->tool, &entry->grants, &entry->limits);
    if (found) {
        superfluous = entry;
    } else {
        found = entry;
        place = make_room(engine, &superfluous);
        if (place) {
            entry->cached = true;
            entry->last_used = ++engine->clock;
            *place = entry;
        }
    }
    (void)pthread_mutex_unlock(&engine->lock);
    free_entry(engine, superfluous);
    return found;
}

/* Takes a plan out of the list: nobody finds it any more, and its last user frees it. */
static void retire(struct tc_engine *engine, struct tci_plan_entry *entry)
{
    (void)pthread_mutex_lock(&engine->lock);
    for (size_t i = 0; i < engine->plan_count; i++)
        if (engine->plans[i] == entry) {
            engine->plans[i] = engine->plans[--engine->plan_count];
            entry->cached = false;
            break;
        }
    (void)pthread_mutex_unlock(&engine->lock);
    tci_engine_release(engine, entry);
}

/* One that was compiled before, and is still right. */
static struct tci_plan_entry *find_fresh(struct tc_engine *engine, const struct tci_tool *tool,
                                         const struct tci_grants *grants,
                                         const struct tci_limits *limits)
{
    struct tci_plan_entry *found;
    (void)pthread_mutex_lock(&engine->lock);
    found = find_entry(engine, tool, grants, limits);
    (void)pthread_mutex_unlock(&engine->lock);
    if (found && found->backend->is_stale && found->backend->is_stale(found->plan)) {
        retire(engine, found); /* a granted path is another one than it was */
        return NULL;
    }
    return found;
}

/* Those that change more than limits. The others' are in `limits`, so that plans are shared. */
static struct tci_grants narrowing_of(const struct tci_grants *grants)
{
    struct tci_grants narrowing = { .count = 0 };
    for (size_t i = 0; i < grants->count; i++)
        if (tci_grant_narrows(grants->items[i]))
            narrowing.items[narrowing.count++] = grants->items[i];
    return narrowing;
}

/* One more user of a plan that somebody holds already (NULL: nothing to hold). */
static struct tci_plan_entry *hold(struct tc_engine *engine, struct tci_plan_entry *entry)
{
    if (!entry)
        return NULL;
    (void)pthread_mutex_lock(&engine->lock);
    entry->users++;
    (void)pthread_mutex_unlock(&engine->lock);
    return entry;
}

int tci_engine_plan(struct tc_engine *engine, const struct tci_tool *tool,
                    const struct tci_grants *grants, const struct tci_limits *limits,
                    struct tci_plan_entry *within, struct tci_plan_entry **ret,
                    struct tc_error *reterr)
{
    struct tci_grants narrowing = narrowing_of(grants);
    struct tci_plan_entry *entry;
    int r;

    if (!within && (*ret = find_fresh(engine, tool, &narrowing, limits)) != NULL)
        return 0;
    entry = calloc(1, sizeof *entry);
    if (!entry)
        return tci_error_no_memory(reterr);
    entry->tool = tool;
    entry->grants = narrowing;
    entry->limits = *limits;
    entry->within = hold(engine, within); /* it shares lists with that one */
    r = compile(engine, entry, reterr);
    if (r != 0) {
        free_entry(engine, entry);
        return r;
    }
    /* Nobody else finds a nested one: another call has another time left, and other walls. */
    entry->users = 1;
    *ret = within ? entry : keep_entry(engine, entry);
    return 0;
}

void tci_engine_release(struct tc_engine *engine, struct tci_plan_entry *entry)
{
    bool last;
    if (!entry)
        return;
    (void)pthread_mutex_lock(&engine->lock);
    last = --entry->users == 0 && !entry->cached;
    (void)pthread_mutex_unlock(&engine->lock);
    if (last)
        free_entry(engine, entry);
}

/* ---- engines ------------------------------------------------------------------------------ */

static int take_policy(struct tc_engine *engine, const struct tc_engine_options *options,
                       struct tc_error *reterr)
{
    int r = 0;
    if (options->policy && options->policy_path)
        return tci_error_set(reterr, TC_ERROR_USAGE, "two policies are given: a file and a policy");
    if (options->policy_path)
        r = tc_policy_load(options->policy_path, &engine->own_policy, reterr);
    else if (!options->policy)
        r = tci_builtin_policy(&engine->own_policy, reterr);
    engine->policy = options->policy ? options->policy : engine->own_policy;
    return r;
}

int tci_engine_open_with(const struct tc_engine_options *options, tci_backend_finder *find_backend,
                         struct tc_engine **ret_engine, struct tc_error *reterr)
{
    static const struct tc_engine_options nothing;
    struct tc_engine *engine = calloc(1, sizeof *engine);

    tci_error_clear(reterr);
    if (!engine)
        return tci_error_no_memory(reterr);
    engine->find_backend = find_backend;
    options = options ? options : &nothing;
    (void)pthread_mutex_init(&engine->lock, NULL); /* cannot fail without attributes */
    engine->null = -1;
    engine->mode = options->mode;
    engine->flags = options->flags;
    engine->on_approval = options->on_approval;
    engine->approval_context = options->approval_context;
    if (take_policy(engine, options, reterr) < 0 || tci_engine_find_policy(engine, reterr) < 0 ||
        tci_engine_counts_new(engine, reterr) < 0 ||
        tci_engine_open_journal(engine, options, reterr) < 0) {
        tc_engine_close(engine);
        return -1;
    }
    /* One for all cages: unlike a pipe, it carries nothing from one to the other. */
    engine->null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (engine->null >= 0)
        (void)tci_above_standard(&engine->null);
    *ret_engine = engine;
    return 0;
}

int tc_engine_open(const struct tc_engine_options *options, struct tc_engine **ret_engine,
                   struct tc_error *reterr)
{
    return tci_engine_open_with(options, tci_backend_for, ret_engine, reterr);
}

void tc_engine_close(struct tc_engine *engine)
{
    if (!engine)
        return;
    for (size_t i = 0; i < engine->plan_count; i++)
        free_entry(engine, engine->plans[i]);
    tci_engine_schemas_free(engine);
    tci_engine_grants_free(engine);
    tci_engine_tools_free(engine);
    tci_engine_close_journal(engine);
    tci_engine_counts_free(engine);
    free(engine->policy_place);
    tci_close(engine->null);
    tc_policy_free(engine->own_policy);
    (void)pthread_mutex_destroy(&engine->lock);
    free(engine);
}
