/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: calls that are under way, and a call inside one of them: who it is made for, how deep it is, and
 * how long it may take. What it may do besides is in narrow_nested.c.
 *
 * The call around it may end at any moment, in another thread. So what is needed of it is copied or
 * held under the engine's lock; a call is in the list exactly as long as its plan and its result are
 * its own.
 */
#include "core/call.h"

#include <string.h>
#include "base/clock.h"

enum { depth_max = 8 };

void tci_engine_enter(struct tc_call *call)
{
    struct tc_engine *engine = call->engine;
    (void)pthread_mutex_lock(&engine->lock);
    call->next_live = engine->live;
    engine->live = call;
    (void)pthread_mutex_unlock(&engine->lock);
}

void tci_engine_leave(struct tc_call *call)
{
    struct tc_engine *engine = call->engine;
    (void)pthread_mutex_lock(&engine->lock);
    for (struct tc_call **place = &engine->live; *place; place = &(*place)->next_live)
        if (*place == call) {
            *place = call->next_live;
            break;
        }
    (void)pthread_mutex_unlock(&engine->lock);
}

/* With the lock held. */
static const struct tc_call *find_live(const struct tc_engine *engine, const char *id)
{
    for (const struct tc_call *call = engine->live; call; call = call->next_live)
        if (strcmp(call->result->public.call_id, id) == 0)
            return call;
    return NULL;
}

static uint64_t end_of(const struct tc_call *call)
{
    uint64_t ms = call->plan->narrowed.settings.timeout;
    uint64_t end = ms >= (UINT64_MAX - call->started) / 1000 ? UINT64_MAX
                                                             : call->started + ms * 1000;
    return end < call->end_by ? end : call->end_by;
}

static int copy_agents(struct tc_call *call, const struct tc_call *around)
{
    struct tci_arena *arena = call->result->arena;
    for (size_t i = 0; i < around->agent_count; i++) {
        call->agents[i] = tci_arena_strdup(arena, around->agents[i]);
        if (!call->agents[i])
            return -1;
        call->agent_count = i + 1;
    }
    /* Without an agent of its own it is made by the agent of the other, and never by the owner. */
    if (!call->result->public.agent && around->result->public.agent) {
        call->result->public.agent = tci_arena_strdup(arena, around->result->public.agent);
        if (!call->result->public.agent)
            return -1;
    }
    return 0;
}

/* With the lock held. NULL, or why not. */
static const char *take_around(struct tc_call *call, const struct tc_call *around, int *ret_status)
{
    if (!around)
        return "the call in which it was to be made is not under way";
    if (around->depth + 1 >= depth_max)
        return "calls are made in calls eight deep already";
    call->depth = around->depth + 1;
    memcpy(call->around, around->result->public.call_id, sizeof call->around);
    call->end_by = end_of(around);
    if (call->end_by <= tci_clock_us())
        return "the call in which it was to be made has no time left";
    if (copy_agents(call, around) < 0) {
        *ret_status = -1;
        return NULL;
    }
    call->within = around->plan;
    call->within->users++;
    return NULL;
}

static int deny(struct tc_call *call, const char *id, const char *why, struct tc_error *reterr)
{
    tci_result_verdict(call->result, TC_VERDICT_DENIED,
                       "make the call by itself, or within a call that is under way", "%s", why);
    if (tci_result_deny(call->result, "parent", id, why) < 0)
        return tci_error_no_memory(reterr);
    return 1;
}

int tci_call_nest(struct tc_call *call, const struct tc_request *request, struct tc_error *reterr)
{
    struct tc_engine *engine = call->engine;
    const char *why;
    int status = 0;

    call->end_by = UINT64_MAX;
    if (!request->parent)
        return 0;
    (void)pthread_mutex_lock(&engine->lock);
    why = take_around(call, find_live(engine, request->parent), &status);
    (void)pthread_mutex_unlock(&engine->lock);
    if (status < 0)
        return tci_error_no_memory(reterr);
    return why ? deny(call, request->parent, why, reterr) : 0;
}

/* By its own copy of the id: the caller's may have gone with the call that it names. */
int tci_call_still_nested(struct tc_call *call, struct tc_error *reterr)
{
    struct tc_engine *engine = call->engine;
    bool live;

    if (!*call->around)
        return 0;
    (void)pthread_mutex_lock(&engine->lock);
    live = find_live(engine, call->around) != NULL;
    (void)pthread_mutex_unlock(&engine->lock);
    if (live && tci_call_time(call) > 0)
        return 0;
    return deny(call, call->around, "the call in which it was to be made has ended", reterr);
}

uint64_t tci_call_time(const struct tc_call *call)
{
    uint64_t ms = call->plan->narrowed.settings.timeout, now = tci_clock_us(), left;
    if (call->end_by == UINT64_MAX)
        return ms;
    left = now < call->end_by ? (call->end_by - now) / 1000 : 0;
    return left < ms ? left : ms;
}

int tci_call_plan(struct tc_call *call, const struct tci_limits *limits, struct tc_error *reterr)
{
    struct tc_error why = { 0 };
    int r = tci_engine_plan(call->engine, call->tool, &call->grants, limits, call->within,
                            &call->plan, &why);
    if (r < 0 && reterr)
        *reterr = why;
    if (r <= 0)
        return r;
    tci_result_verdict(call->result, TC_VERDICT_DENIED, why.remedy, "%s", why.message);
    if (tci_result_deny(call->result, "parent", call->tool->name, why.message) < 0)
        return tci_error_no_memory(reterr);
    return 1;
}
