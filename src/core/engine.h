/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what lives as long as an engine: the policy, the plans that were compiled from it, and how
 * often each grant was used. Everything behind the lock is short; plans are compiled outside it.
 */
#ifndef TCI_CORE_ENGINE_H
#define TCI_CORE_ENGINE_H

#include <pthread.h>
#include "backend/backend.h"
#include "core/narrow.h"

/* Beyond this many plans the one that was used longest ago is freed. */
enum { TCI_PLANS_MAX = 64 };

typedef const struct tc_backend *tci_backend_finder(enum tci_backend_kind kind);

/* A compiled plan and what it was compiled from. A call holds it from start to end. */
struct tci_plan_entry {
    const struct tci_tool *tool;   /* of the policy */
    const struct tci_grant *grant; /* that narrows it; NULL: none does */
    struct tci_limits limits;
    struct tci_arena *arena; /* of `narrowed` */
    struct tci_tool narrowed;
    struct tc_spec spec;
    const struct tc_backend *backend;
    struct tc_plan *plan;
    unsigned users;
    bool cached;
    uint64_t last_used;
};

struct tci_grant_use {
    const struct tci_grant *grant;
    uint64_t calls;
};

struct tc_engine {
    const struct tc_policy *policy;
    struct tc_policy *own_policy; /* NULL: the caller's */
    tci_backend_finder *find_backend;
    int null; /* /dev/null, for calls without input; -1: there is none, and they get a pipe */
    pthread_mutex_t lock;
    struct tci_plan_entry *plans[TCI_PLANS_MAX];
    size_t plan_count;
    uint64_t clock;
    struct tci_grant_use *uses; /* of grants with "max_calls" */
    size_t use_count;
};

/* tc_engine_open with another set of backends: for tests, which run without a cage. */
int tci_engine_open_with(const struct tc_engine_options *options, tci_backend_finder *find_backend,
                         struct tc_engine **ret_engine, struct tc_error *reterr);

/* May the agent call the tool now? If so it counts as a call: two threads cannot both use the last
 * one. -1: out of memory. */
int tci_engine_decide(struct tc_engine *engine, const char *agent, const char *tool,
                      struct tc_decision *ret, struct tc_error *reterr);

/* The plan for a tool under a grant and limits, compiled now or before. Give it back with
 * tci_engine_release. -1: *reterr says why there is none; without memory, its code does. */
int tci_engine_plan(struct tc_engine *engine, const struct tci_tool *tool,
                    const struct tci_grant *grant, const struct tci_limits *limits,
                    struct tci_plan_entry **ret, struct tc_error *reterr);
void tci_engine_release(struct tc_engine *engine, struct tci_plan_entry *entry);

#endif
