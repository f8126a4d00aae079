/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: one call, from request to result. Its epoll holds everything that it waits for: output,
 * input, the timer, and the backend's descriptor; a caller waits for that one epoll.
 */
#ifndef TCI_CORE_CALL_H
#define TCI_CORE_CALL_H

#include "base/uuid.h"
#include "core/denials.h"
#include "core/engine.h"
#include "core/network.h"
#include "core/result.h"
#include "core/streams.h"

/* Why we ended the tree ourselves; the first reason counts. */
enum tci_cause {
    TCI_CAUSE_NONE,
    TCI_CAUSE_CANCEL,
    TCI_CAUSE_CALLER, /* on_output said so */
    TCI_CAUSE_TIMEOUT,
    TCI_CAUSE_OUTPUT,
    TCI_CAUSE_NO_MEMORY,
};

/*
 * Who does the work. SERVER: a cage that answers calls of others. It has no deadline and no limit of
 * output in all; its start is no call, so no grant counts it and nobody is asked. RELAYED: such a server,
 * which runs already, so that no cage is made. NOTED: the same for what is no call of the tool (relayed.h).
 */
enum tci_call_kind { TCI_CALL_CAGED, TCI_CALL_SERVER, TCI_CALL_RELAYED, TCI_CALL_NOTED };

struct tc_call {
    struct tc_engine *engine;
    enum tci_call_kind kind;
    const struct tci_relayed_refusal *refusal; /* while it begins; NULL: none */
    struct tci_result *result;                 /* taken by the step that ends the call */
    bool over;                                 /* the verdict stands */
    int fd;         /* an epoll; for a call that was over at once, always readable */
    bool blocking;  /* the caller waits in tc_call: no timer descriptor is needed */
    int timer, out; /* -1: none */
    const char *out_path;
    const char *program; /* argv[0] */
    struct tci_plan_entry *plan;
    uint64_t terminal_output;           /* bytes that a terminal has shown */
    const struct tci_tool *tool;        /* of the policy or of the host; NULL: none may be called */
    struct tci_grants grants;           /* that allow it; each narrows it */
    struct json_t *arguments;           /* NULL: the request has argv, or they are not JSON */
    const char *arguments_text;         /* canonical; NULL like them */
    struct tci_recorded *recorded;      /* record.h: what the journal gets; NULL: nothing */
    struct tc_call *next_live;          /* engine->live, under the engine's lock */
    const char *agents[TCI_GRANTS_MAX]; /* for whom it is made: its agent first; none: the owner */
    size_t agent_count;
    unsigned depth;                 /* how many calls it is made in */
    char around[TCI_UUID_TEXT_MAX]; /* id of the innermost of them; "": none */
    struct tci_plan_entry *within;  /* of the call around it, held; NULL: none */
    uint64_t end_by;                /* tci_clock_us: when that one ends; UINT64_MAX: never */
    struct tc_run *run;
    struct tci_trace *trace;         /* with TC_REQUEST_EXPLAIN_DENIALS */
    tc_network_function *on_network; /* the request's; NULL: none */
    void *network_context;
    struct tci_streams streams;
    enum tci_cause cause;
    bool in_step;               /* of the backend */
    enum tc_error_code refused; /* why no cage was built; 0: one was, or the policy said no */
    uint64_t started, deadline; /* tci_clock_us; deadline UINT64_MAX: none, or it has passed */
};

/* What a call runs; everything is in the result's arena. */
struct tci_command {
    const char *const *argv;
    const void *input; /* for stdin; NULL: what the request says */
    size_t input_length;
};

struct tci_relayed_refusal;
/* call_start.c: a call that runs, or is over because it was refused. NULL: *reterr says why. `refusal`:
 * relayed.h; NULL: none. */
struct tc_call *tci_call_begin(struct tc_engine *engine, const struct tc_request *request,
                               enum tci_call_kind kind, bool blocking,
                               const struct tci_relayed_refusal *refusal, struct tc_error *reterr);
/* call.c: gives a call that was begun (NULL: it was not) to an event loop. */
int tci_call_hand_over(struct tc_call *call, struct tc_call **ret_call, struct tc_error *reterr);
/* call.c: gives back everything of the cage, in the order in which it can be done without. */
void tci_call_leave(struct tc_call *call);

/*
 * The stages of a call, in order. 0: go on; 1: the call is over, the result says why; -1: an error.
 */

/* call_contract.c: the arguments as JSON. Nothing is decided yet: what is wrong with them is said by
 * tci_call_check_arguments, to those who may call the tool. -1 only. */
int tci_call_read_arguments(struct tc_call *call, const struct tc_request *request,
                            struct tc_error *reterr);
/* call_replay.c: the request in its canonical form; in replay, the result that was recorded. */
int tci_call_replay(struct tc_call *call, const struct tc_request *request,
                    struct tc_error *reterr);
/* call_replay.c, once it is known whether the call may be made. One that an agent may not make is
 * recorded as [defaults] say, and of the request only the hash: the agent must not learn from the
 * record's absence that there is such a tool, nor the journal get what the tool would keep out of it. */
void tci_call_decided(struct tc_call *call, const struct tc_request *request, bool allowed);
/* call_replay.c, when the caller takes the result: its recorded output, for on_output. */
void tci_call_replay_output(struct tc_call *call);
/* call_nest.c: the call around it, if there is one. */
int tci_call_nest(struct tc_call *call, const struct tc_request *request, struct tc_error *reterr);
/* Is it still under way? */
int tci_call_still_nested(struct tc_call *call, struct tc_error *reterr);
/* Milliseconds that the call may take from now on. It has its plan. */
uint64_t tci_call_time(const struct tc_call *call);
/* The call's plan. */
int tci_call_plan(struct tc_call *call, const struct tci_limits *limits, struct tc_error *reterr);
/* call_decide.c: the tool and the grants, checked. */
int tci_call_decide(struct tc_call *call, const struct tc_request *request,
                    struct tc_error *reterr);
/* The grants say no: 1. `tool` may be NULL. */
int tci_call_deny_grant(struct tc_call *call, const char *tool, const struct tc_decision *decision,
                        struct tc_error *reterr);
/* call_decide.c: the limits of the call; 1: the request wants more than the policy gives. */
int tci_call_limits(struct tc_call *call, const struct tc_request *request, struct tci_limits *ret,
                    struct tc_error *reterr);
/* call_contract.c: are they what `parameters` says? */
int tci_call_check_arguments(struct tc_call *call, const struct tc_request *request,
                             struct tc_error *reterr);
/* call_argv.c: the request's argv, or the tool's `command` with the arguments in it. */
int tci_call_command(struct tc_call *call, const struct tc_request *request,
                     struct tci_command *ret, struct tc_error *reterr);
/* call_approve.c: asks, if the tool or a grant wants that; with the plan made. */
int tci_call_approve(struct tc_call *call, const struct tc_request *request,
                     const struct tci_command *command, struct tc_error *reterr);
/* call_contract.c, at the end: stdout against `returns`. 0 or -1. */
int tci_call_check_output(struct tc_call *call, struct tc_error *reterr);
/* call_record.c, last of all and for refusals too: a record in the journal. 0 or -1. */
int tci_call_record(struct tc_call *call, struct tc_error *reterr);

/* call_verdict.c: from what the kernel said, and what we did, to one word with its reason. */
int tci_call_verdict(struct tc_call *call, const struct tc_outcome *outcome,
                     const struct tc_error *broken, struct tc_error *reterr);
/* The verdict `error` for a cage that could not be built; keeps the error's remedy. */
void tci_call_refuse(struct tci_result *result, const struct tc_error *error);

/* call_finish.c: output, files and usage into the result. */
int tci_call_collect(struct tc_call *call, const struct tc_outcome *outcome,
                     struct tc_error *reterr);
/* The directory for `outputs`, made if it is missing. */
int tci_call_open_out(const char *path, int *ret, struct tc_error *reterr);

/* Counts what came out of the caller's terminal, which does not pass through the call: how much of it
 * may be shown. Beyond the limit the call is ended. */
size_t tci_call_count_output(struct tc_call *call, size_t length);

/* Stops and resumes output: for a caller who cannot write it on at once. Allowed in on_output. */
int tci_call_hold(struct tc_call *call, bool hold);

#endif
