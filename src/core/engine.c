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
#include "core/streams.h"

/* ---- plans -------------------------------------------------------------------------------- */

static void free_entry(struct tci_plan_entry *entry)
{
    if (!entry)
        return;
    if (entry->plan)
        entry->backend->plan_free(entry->plan);
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

static int compile(struct tc_engine *engine, struct tci_plan_entry *entry, struct tc_error *reterr)
{
    entry->arena = tci_arena_new();
    if (!entry->arena)
        return tci_error_no_memory(reterr);
    if (tci_narrow_tool(entry->arena, entry->tool, entry->grant, &entry->limits, &entry->narrowed,
                        reterr) < 0)
        return -1;
    entry->spec = (struct tc_spec){
        .tool = *entry->tool->name ? entry->tool->name : "[defaults]",
        .settings = &entry->narrowed.settings,
        .clauses = tci_tool_clauses(&entry->narrowed),
        .policy = engine->policy,
    };
    entry->backend = engine->find_backend(entry->narrowed.settings.backend);
    if (!entry->backend || entry->backend->abi != TC_BACKEND_ABI)
        return no_backend(&entry->narrowed.settings, reterr);
    return entry->backend->plan(&entry->spec, &entry->plan, reterr);
}

static bool is_for(const struct tci_plan_entry *entry, const struct tci_tool *tool,
                   const struct tci_grant *grant, const struct tci_limits *limits)
{
    return entry->tool == tool && entry->grant == grant &&
           memcmp(&entry->limits, limits, sizeof *limits) == 0;
}

/* With the lock held. */
static struct tci_plan_entry *find_entry(struct tc_engine *engine, const struct tci_tool *tool,
                                         const struct tci_grant *grant,
                                         const struct tci_limits *limits)
{
    for (size_t i = 0; i < engine->plan_count; i++) {
        struct tci_plan_entry *entry = engine->plans[i];
        if (is_for(entry, tool, grant, limits)) {
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
    found = find_entry(engine, entry->tool, entry->grant, &entry->limits);
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
    free_entry(superfluous);
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

int tci_engine_plan(struct tc_engine *engine, const struct tci_tool *tool,
                    const struct tci_grant *grant, const struct tci_limits *limits,
                    struct tci_plan_entry **ret, struct tc_error *reterr)
{
    struct tci_plan_entry *entry;

    if (!tci_grant_narrows(grant))
        grant = NULL; /* its limits are in `limits`: agents share plans */
    (void)pthread_mutex_lock(&engine->lock);
    *ret = find_entry(engine, tool, grant, limits);
    (void)pthread_mutex_unlock(&engine->lock);
    if (*ret && (!(*ret)->backend->is_stale || !(*ret)->backend->is_stale((*ret)->plan)))
        return 0;
    if (*ret)
        retire(engine, *ret); /* a granted path is another one than it was */
    entry = calloc(1, sizeof *entry);
    if (!entry)
        return tci_error_no_memory(reterr);
    entry->tool = tool;
    entry->grant = grant;
    entry->limits = *limits;
    if (compile(engine, entry, reterr) < 0) {
        free_entry(entry);
        return -1;
    }
    *ret = keep_entry(engine, entry);
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
        free_entry(entry);
}

/* ---- grants ------------------------------------------------------------------------------- */

/* With the lock held: the counter of a grant; NULL without memory. */
static uint64_t *calls_of(struct tc_engine *engine, const struct tci_grant *grant)
{
    struct tci_grant_use *uses;
    for (size_t i = 0; i < engine->use_count; i++)
        if (engine->uses[i].grant == grant)
            return &engine->uses[i].calls;
    uses = reallocarray(engine->uses, engine->use_count + 1, sizeof *uses);
    if (!uses)
        return NULL;
    engine->uses = uses;
    uses[engine->use_count] = (struct tci_grant_use){ .grant = grant };
    return &uses[engine->use_count++].calls;
}

int tci_engine_decide(struct tc_engine *engine, const char *agent, const char *tool,
                      struct tc_decision *ret, struct tc_error *reterr)
{
    const struct tci_agent *a = agent ? tci_policy_agent(engine->policy, agent) : NULL;
    const struct tci_grant *grant = a && tool ? tci_agent_grant(a, tool) : NULL;
    int64_t now = (int64_t)(tci_clock_realtime_ms() / 1000);
    uint64_t *calls;

    if (!grant || !grant->has_max_calls) {
        tc_decide_call(engine->policy, agent, tool, now, 0, ret);
        return 0;
    }
    (void)pthread_mutex_lock(&engine->lock);
    calls = calls_of(engine, grant);
    if (calls) {
        tc_decide_call(engine->policy, agent, tool, now, *calls, ret);
        *calls += ret->allowed ? 1 : 0;
    }
    (void)pthread_mutex_unlock(&engine->lock);
    return calls ? 0 : tci_error_no_memory(reterr);
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
    if (take_policy(engine, options ? options : &nothing, reterr) < 0) {
        free(engine);
        return -1;
    }
    (void)pthread_mutex_init(&engine->lock, NULL); /* cannot fail without attributes */
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
        free_entry(engine->plans[i]);
    free(engine->uses);
    tci_close(engine->null);
    tc_policy_free(engine->own_policy);
    (void)pthread_mutex_destroy(&engine->lock);
    free(engine);
}
