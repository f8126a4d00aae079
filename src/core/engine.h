/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what lives as long as an engine: the policy, the plans that were compiled from it, and how
 * often each grant was used. Everything behind the lock is short; plans are compiled outside it.
 */
#ifndef TCI_CORE_ENGINE_H
#define TCI_CORE_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include "backend/backend.h"
#include "core/narrow.h"

/* Beyond this many plans the one that was used longest ago is freed. */
enum { TCI_PLANS_MAX = 64 };

typedef const struct tc_backend *tci_backend_finder(enum tci_backend_kind kind);

/* A compiled plan and what it was compiled from. A call holds it from start to end. */
struct tci_plan_entry {
    const struct tci_tool *tool; /* of the policy, or of the host */
    struct tci_grants grants;    /* that narrow it */
    struct tci_limits limits;
    struct tci_plan_entry *within; /* of the call around it, held; NULL: none */
    struct tci_arena *arena;       /* of `narrowed` */
    struct tci_tool narrowed;
    struct tc_spec spec;
    const struct tc_backend *backend;
    struct tc_plan *plan;
    unsigned users;
    bool cached;
    uint64_t last_used;
};

/* How often grants with "max_calls" were used, when there is no journal to count in. Engines that follow
 * each other share them: else a policy that is loaded again would give all calls anew. */
struct tci_grant_counts;

struct tc_engine {
    const struct tc_policy *policy;
    struct tc_policy *own_policy; /* NULL: the caller's */
    tci_backend_finder *find_backend;
    int null; /* /dev/null, for calls without input; -1: there is none, and they get a pipe */
    pthread_mutex_t lock;
    struct tci_plan_entry *plans[TCI_PLANS_MAX];
    size_t plan_count;
    uint64_t clock;
    char *policy_place;              /* engine_grants.c: by it grants are counted in a journal */
    struct tci_grant_counts *counts; /* engine_grants.c; behind its own lock */
    atomic_bool replaced; /* by one with another policy: a person's yes does not count any more */
    struct tci_journal *journal; /* NULL: nothing is recorded */
    enum tc_mode mode;
    unsigned flags;
    tc_approval_function *on_approval;
    void *approval_context;
    struct tc_call *live;               /* calls that are under way */
    struct tci_defined *defined;        /* engine_tools.c: tools of the host's own */
    int program_fds[4];                 /* and ours, by enum tci_program; 0: not made yet */
    struct tci_engine_grants *granted;  /* engine_runtime.c: copies of the journal's grants */
    struct tci_engine_replay *replays;  /* call_replay.c: sessions that are being read */
    struct tci_engine_schemas *schemas; /* contract_schema.c: compiled once */
};

struct tc_call;

/* engine_tools.c: a tool of the policy, or of the host; NULL: there is none. */
const struct tci_tool *tci_engine_tool(struct tc_engine *engine, const char *name);
void tci_engine_tools_free(struct tc_engine *engine);
/* engine_grants.c */
int tci_engine_find_policy(struct tc_engine *engine, struct tc_error *reterr) tci_must_check;
int tci_engine_counts_new(struct tc_engine *engine, struct tc_error *reterr) tci_must_check;
void tci_engine_counts_free(struct tc_engine *engine);
/* `engine` takes the place of `before`, which may still have calls: they count together from now on, and
 * who is asked in `before` is asked in vain. Before the first call of `engine`. */
void tci_engine_replace(struct tc_engine *before, struct tc_engine *engine);
/* engine_runtime.c */
void tci_engine_grants_free(struct tc_engine *engine);
/* call_nest.c */
void tci_engine_enter(struct tc_call *call); /* it is under way, and others may be made in it */
void tci_engine_leave(struct tc_call *call); /* harmless when repeated */
/* engine_journal.c */
int tci_engine_open_journal(struct tc_engine *engine, const struct tc_engine_options *options,
                            struct tc_error *reterr);
void tci_engine_close_journal(struct tc_engine *engine);
/* call_replay.c */
void tci_engine_replays_free(struct tc_engine *engine);
/* contract_schema.c */
void tci_engine_schemas_free(struct tc_engine *engine);

/* tc_engine_open with another set of backends: for tests, which run without a cage. */
int tci_engine_open_with(const struct tc_engine_options *options, tci_backend_finder *find_backend,
                         struct tc_engine **ret_engine, struct tc_error *reterr);

/*
 * engine_grants.c: may all these agents (none: the policy's owner) call the tool now? If so it counts
 * as a call of each, or else of none: two callers cannot both use the last one. *ret_grants are those
 * that allow it, in the order of the agents. -1: an error.
 */
int tci_engine_decide(struct tc_engine *engine, const char *const *agents, size_t agent_count,
                      const char *tool, struct tci_grants *ret_grants, struct tc_decision *ret,
                      struct tc_error *reterr);

/* The same for a server that is to answer their calls, or a call that is not made: nothing is counted. */
int tci_engine_decide_start(struct tc_engine *engine, const char *const *agents, size_t agent_count,
                            const char *tool, struct tci_grants *ret_grants,
                            struct tc_decision *ret, struct tc_error *reterr);

/* Does the agent hold a grant that allows the tool now, and everybody that it works for? Nothing is
 * counted. */
int tci_engine_is_granted(struct tc_engine *engine, const char *agent, const char *tool, bool *ret,
                          struct tc_error *reterr);
/* The same for lists, after tci_engine_refresh: the journal is not asked anew for each tool. */
int tci_engine_is_granted_known(struct tc_engine *engine, const char *agent, const char *tool,
                                bool *ret, struct tc_error *reterr);
/* Do grants that allowed a call a while ago still do? It was counted then. *ret says why not. */
int tci_engine_still_granted(struct tc_engine *engine, const struct tci_grants *grants,
                             const char *tool, struct tc_decision *ret, struct tc_error *reterr);
/* The agent and those that it works for. Returns how many: more than TCI_GRANTS_MAX are not in *ret. */
size_t tci_engine_chain(const struct tc_engine *engine, const char *agent,
                        const char *ret[TCI_GRANTS_MAX]);

/*
 * The plan for a tool under grants and limits, compiled now or before, and inside another one, which
 * the caller holds (NULL: none). Give it back with tci_engine_release. -1: *reterr says why there is
 * none; without memory, its code does. 1: the tool has something that `within` has not, and that
 * cannot be taken away from it; *reterr says what.
 */
int tci_engine_plan(struct tc_engine *engine, const struct tci_tool *tool,
                    const struct tci_grants *grants, const struct tci_limits *limits,
                    struct tci_plan_entry *within, struct tci_plan_entry **ret,
                    struct tc_error *reterr);
void tci_engine_release(struct tc_engine *engine, struct tci_plan_entry *entry);

#endif
