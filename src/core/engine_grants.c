/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: which grants allow a call, and that each use of them is counted once.
 *
 * Every agent that the call is made for needs a grant that allows it now: the policy's, or the first of
 * those made at run time. They are counted together or not at all. Between looking and counting another
 * process may take the last call: then everything is looked at again.
 */
#include "core/call.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/path.h"
#include "core/engine_runtime.h"
#include "core/grant_counts.h"
#include "core/grants_list.h"
#include "journal/journal.h"
#include "policy/decide_grant.h"
#include "policy/decide_internal.h"

enum { tries_max = 64 };

struct choice {
    struct tci_grants grants;
    const char *keys[TCI_GRANTS_MAX]; /* that it is counted under; NULL: it is not counted */
};

size_t tci_engine_chain(const struct tc_engine *engine, const char *agent,
                        const char *ret[TCI_GRANTS_MAX])
{
    const struct tci_agent *a = tci_policy_agent(engine->policy, agent);
    size_t count = 0;
    ret[count++] = agent;
    for (a = a ? a->parent : NULL; a && count < TCI_GRANTS_MAX; a = a->parent)
        ret[count++] = a->name;
    return a ? TCI_GRANTS_MAX + 1 : count; /* whoever is left out would not be asked */
}

/* ---- counters ----------------------------------------------------------------------------- */

int tci_engine_counts_new(struct tc_engine *engine, struct tc_error *reterr)
{
    engine->counts = tci_counts_new();
    return engine->counts ? 0 : tci_error_no_memory(reterr);
}

void tci_engine_counts_free(struct tc_engine *engine)
{
    tci_counts_release(tc_take(engine->counts));
}

void tci_engine_replace(struct tc_engine *before, struct tc_engine *engine)
{
    tci_counts_release(engine->counts);
    engine->counts = tci_counts_hold(before->counts);
    atomic_store(&before->replaced, true);
}

/* Where the policy's file is, links followed: "./a.toml" or a link to it must not count anew what
 * "a.toml" has used up. */
int tci_engine_find_policy(struct tc_engine *engine, struct tc_error *reterr)
{
    const struct tc_policy *policy = engine->policy;
    const char *file = policy->file ? policy->file : "-", *slash = strrchr(file, '/');
    const char *directory = policy->directory ? policy->directory : "";
    bool is_file = *directory && strcmp(file, "-") != 0;
    char path[TCI_PATH_MAX + NAME_MAX + 2], real[PATH_MAX];

    (void)snprintf(path, sizeof path, "%s/%s", directory, slash ? slash + 1 : file);
    /* If the file is gone its name must do. */
    engine->policy_place = strdup(is_file && realpath(path, real) ? real : path);
    return engine->policy_place ? 0 : tci_error_no_memory(reterr);
}

/* The name of a policy's grant in the journal: by the file's place, not by the name somebody gave it. */
static const char *key_of(const struct tc_engine *engine, struct tci_arena *arena,
                          const char *agent, const char *tool)
{
    return tci_arena_printf(arena, "%s\x1f%s\x1f%s", agent, tool, engine->policy_place);
}

static int calls_made(struct tc_engine *engine, const struct tci_grant *grant, const char *key,
                      uint64_t *ret, struct tc_error *reterr)
{
    *ret = 0;
    if (!grant->has_max_calls)
        return 0;
    if (engine->journal)
        return tci_journal_counted(engine->journal, key, ret, reterr);
    return tci_counts_get(engine->counts, key, ret) < 0 ? tci_error_no_memory(reterr) : 0;
}

int tci_engine_calls(struct tc_engine *engine, const char *agent, const struct tci_grant *grant,
                     uint64_t *ret, struct tc_error *reterr)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    const char *key = arena ? key_of(engine, arena, agent, grant->tool) : NULL;
    return key ? calls_made(engine, grant, key, ret, reterr) : tci_error_no_memory(reterr);
}

static uint64_t max_of(const struct tci_grant *grant)
{
    return grant->has_max_calls ? grant->max_calls : UINT64_MAX;
}

static int count(struct tc_engine *engine, const struct choice *choice, bool *ret_counted,
                 struct tc_error *reterr)
{
    const char *keys[TCI_GRANTS_MAX];
    uint64_t max[TCI_GRANTS_MAX];
    size_t n = 0;

    *ret_counted = true;
    for (size_t i = 0; i < choice->grants.count; i++)
        if (choice->keys[i]) {
            keys[n] = choice->keys[i];
            max[n++] = max_of(choice->grants.items[i]);
        }
    if (!engine->journal) {
        *ret_counted = !n || tci_counts_add(engine->counts, keys, max, n);
        return 0;
    }
    return n ? tci_journal_count_all(engine->journal, keys, max, n, ret_counted, reterr) : 0;
}

/* ---- choosing ----------------------------------------------------------------------------- */

struct candidate {
    const struct tci_grant *grant;
    const char *id, *key;
};

/* The agent's grants for the tool, one after the other: the policy's first. *cursor is 0 at first. */
static int next_candidate(struct tc_engine *engine, struct tci_arena *arena, const char *agent,
                          const char *tool, size_t *cursor, struct candidate *ret,
                          struct tc_error *reterr)
{
    const struct tci_agent *a = tci_policy_agent(engine->policy, agent);
    const struct tci_grant *grant = a ? tci_agent_grant(a, tool) : NULL;
    const struct tci_run_grant *made;
    size_t at = *cursor ? *cursor - 1 : 0;

    *ret = (struct candidate){ .grant = NULL };
    if (*cursor == 0) {
        *cursor = 1;
        if (grant) {
            ret->grant = grant;
            ret->key = grant->has_max_calls ? key_of(engine, arena, a->name, grant->tool) : NULL;
            return grant->has_max_calls && !ret->key ? tci_error_no_memory(reterr) : 0;
        }
    }
    made = tci_engine_next_grant(engine, agent, tool, &at);
    *cursor = at + 1;
    if (made)
        *ret = (struct candidate){ made->grant, made->id, made->id };
    return 0;
}

/* The first that allows a call of this agent. 0; 1: none does, and *d says why; 2: it has none. */
static int choose_one(struct tc_engine *engine, struct tci_arena *arena, const char *agent,
                      const char *tool, int64_t now, struct candidate *ret, struct tc_decision *d,
                      struct tc_error *reterr)
{
    size_t cursor = 0;
    int result = 2;
    for (;;) {
        uint64_t calls;
        if (next_candidate(engine, arena, agent, tool, &cursor, ret, reterr) < 0)
            return -1;
        if (!ret->grant)
            return result;
        if (calls_made(engine, ret->grant, ret->key, &calls, reterr) < 0)
            return -1;
        memset(d, 0, sizeof *d);
        tci_decide_grant(ret->grant, agent, now, calls, d);
        if (d->allowed)
            return 0;
        result = 1;
    }
}

/* One for every agent. 0; 1: refused, *d says why. An agent that holds none, or that works for one that
 * holds none, learns nothing else: not that another's has expired, nor that there is such a tool. */
static int choose(struct tc_engine *engine, struct tci_arena *arena, const char *const *agents,
                  size_t agent_count, const char *tool, struct choice *ret, struct tc_decision *d,
                  struct tc_error *reterr)
{
    int64_t now = (int64_t)(tci_clock_realtime_ms() / 1000);
    struct tc_decision one;
    bool refused = false;

    ret->grants = (struct tci_grants){ .count = agent_count };
    for (size_t i = 0; i < agent_count; i++) {
        struct candidate found;
        int r = choose_one(engine, arena, agents[i], tool, now, &found, &one, reterr);
        if (r < 0)
            return -1;
        if (r == 2) {
            memset(d, 0, sizeof *d);
            tci_decide_no_grant(agents[0], tool, agent_count > 1, d);
            return 1;
        }
        if (!refused && (r == 1 || i == 0))
            *d = one;
        refused |= r == 1;
        ret->grants.items[i] = found.grant;
        ret->grants.agents[i] = agents[i];
        ret->grants.ids[i] = found.id;
        ret->keys[i] = found.key;
    }
    return refused ? 1 : 0;
}

static int decide(struct tc_engine *engine, const char *const *agents, size_t agent_count,
                  const char *tool, bool counts, struct tci_grants *ret_grants,
                  struct tc_decision *ret, struct tc_error *reterr)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = NULL;
    const struct tci_tool *t = tool ? tci_engine_tool(engine, tool) : NULL;
    bool counted = !counts;

    *ret_grants = (struct tci_grants){ .count = 0 };
    memset(ret, 0, sizeof *ret);
    tool = tool ? tool : "";
    if (!agent_count) {
        tci_decide_owner(t, tool, ret);
        return 0;
    }
    if (tci_engine_refresh(engine, reterr) < 0)
        return -1;
    if (!t) {
        tci_decide_no_grant(agents[0], tool, agent_count > 1, ret);
        return 0;
    }
    arena = tci_arena_new();
    if (!arena)
        return tci_error_no_memory(reterr);
    for (int i = 0; i < tries_max; i++) {
        struct choice choice;
        int r = choose(engine, arena, agents, agent_count, tool, &choice, ret, reterr);
        if (r != 0)
            return r < 0 ? -1 : 0;
        if (counts && count(engine, &choice, &counted, reterr) < 0)
            return -1;
        if (counted) {
            *ret_grants = choice.grants;
            return 0;
        }
    }
    memset(ret, 0, sizeof *ret);
    tci_decide(ret, false, "max_calls", "others took the calls of %s that were left", t->name);
    tci_decide_fix(ret, "try again");
    return 0;
}

int tci_engine_decide(struct tc_engine *engine, const char *const *agents, size_t agent_count,
                      const char *tool, struct tci_grants *ret_grants, struct tc_decision *ret,
                      struct tc_error *reterr)
{
    return decide(engine, agents, agent_count, tool, true, ret_grants, ret, reterr);
}

int tci_engine_decide_start(struct tc_engine *engine, const char *const *agents, size_t agent_count,
                            const char *tool, struct tci_grants *ret_grants,
                            struct tc_decision *ret, struct tc_error *reterr)
{
    return decide(engine, agents, agent_count, tool, false, ret_grants, ret, reterr);
}

int tci_engine_is_granted_known(struct tc_engine *engine, const char *agent, const char *tool,
                                bool *ret, struct tc_error *reterr)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    const char *agents[TCI_GRANTS_MAX];
    size_t count = tci_engine_chain(engine, agent, agents);
    struct choice choice;
    struct tc_decision decision;
    int r;

    *ret = false;
    if (!arena)
        return tci_error_no_memory(reterr);
    if (count > TCI_GRANTS_MAX || !tci_engine_tool(engine, tool))
        return 0;
    r = choose(engine, arena, agents, count, tool, &choice, &decision, reterr);
    *ret = r == 0;
    return r < 0 ? -1 : 0;
}

int tci_engine_is_granted(struct tc_engine *engine, const char *agent, const char *tool, bool *ret,
                          struct tc_error *reterr)
{
    *ret = false;
    if (tci_engine_refresh(engine, reterr) < 0)
        return -1;
    return tci_engine_is_granted_known(engine, agent, tool, ret, reterr);
}

/* A grant of the policy is there as long as the engine, but it may expire; one of the journal may also
 * be revoked. */
static bool is_there(struct tc_engine *engine, const char *agent, const char *tool, const char *id)
{
    const struct tci_run_grant *made;
    size_t cursor = 0;
    if (!id)
        return true;
    while ((made = tci_engine_next_grant(engine, agent, tool, &cursor)))
        if (strcmp(made->id, id) == 0)
            return true;
    return false;
}

int tci_engine_still_granted(struct tc_engine *engine, const struct tci_grants *grants,
                             const char *tool, struct tc_decision *ret, struct tc_error *reterr)
{
    int64_t now = (int64_t)(tci_clock_realtime_ms() / 1000);

    memset(ret, 0, sizeof *ret);
    ret->allowed = true;
    if (grants->count && tci_engine_refresh(engine, reterr) < 0)
        return -1;
    for (size_t i = 0; i < grants->count; i++) {
        memset(ret, 0, sizeof *ret);
        if (!is_there(engine, grants->agents[i], tool, grants->ids[i]))
            tci_decide_no_grant(grants->agents[0], tool, grants->count > 1, ret);
        else
            tci_decide_grant(grants->items[i], grants->agents[i], now, 0, ret);
        if (!ret->allowed)
            return 0;
    }
    return 0;
}
