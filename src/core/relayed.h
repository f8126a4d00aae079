/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: calls whose work somebody else does: a server that lives in one cage and answers many calls.
 * Grants, `parameters`, approval, `returns`, the journal and replay are as ever; the cage is the
 * server's, which is started once.
 */
#ifndef TCI_CORE_RELAYED_H
#define TCI_CORE_RELAYED_H

#include <stdbool.h>
#include "base/error.h"
#include "toolcage/toolcage.h"

/* tc_call_start for the server itself. It has argv, so no contract; it has no deadline and may print
 * without end: whoever reads it must bound what it keeps. All other limits hold. */
int tci_server_start(struct tc_engine *engine, const struct tc_request *request,
                     struct tc_call **ret_call, struct tc_error *reterr) tci_must_check;

/* Has everything in the server's cage closed its standard input? Then nobody can ask it anything more. Known after
 * a step; a server that ends closes it, too, shortly before. */
bool tci_server_is_deaf(const struct tc_call *server);

/* May beginning a call of the tool take as long as a person needs to answer? */
bool tci_relayed_asks(struct tc_engine *engine, const char *agent, const char *tool);

/* Why the call is not made, whatever the policy says of it: it is recorded, and counts for no grant. An
 * agent without a grant gets the policy's answer, which comes first. */
struct tci_relayed_refusal {
    enum tc_verdict verdict;
    char reason[512], fix[256];
};

/*
 * Decides, checks and asks, as for any call, with `arguments_json` of the request. `refusal` may be NULL.
 * *ret_result is set when the call is over: refused, or replayed; else *ret_call is to be ended. -1:
 * nothing was decided. May wait for a person (tci_relayed_asks), and be called in any thread.
 */
int tci_relayed_begin(struct tc_engine *engine, const struct tc_request *request,
                      const struct tci_relayed_refusal *refusal, struct tc_call **ret_call,
                      struct tc_result **ret_result, struct tc_error *reterr) tci_must_check;

/*
 * The same for a request that is no call of the tool, and for which a server may do something all the same: who
 * reads its resources needs a grant that holds now, and leaves a record. No grant counts it, nobody is asked, and
 * `parameters`, `returns` and `output` do not hold, which are about calls: so its output is to be short.
 */
int tci_relayed_note(struct tc_engine *engine, const struct tc_request *request,
                     struct tc_call **ret_call, struct tc_result **ret_result,
                     struct tc_error *reterr) tci_must_check;

/* What the call may take; TCI_UNLIMITED: no limit. */
uint64_t tci_relayed_timeout(const struct tc_call *call); /* milliseconds, from its beginning */
uint64_t tci_relayed_output(const struct tc_call *call);  /* bytes */

struct tci_relayed_end {
    enum tc_verdict verdict; /* as the one who did the work says; `returns` may still change it */
    const char *reason, *fix;
    int exit_code;      /* as a program of its own would have given it */
    const char *output; /* JSON text: the result; NULL: none */
    size_t output_length;
};
/* It is over: its output is checked by `returns` and recorded. Frees the call in any case. `server`: in
 * whose cage the work was done, for the record; NULL: in none. */
int tci_relayed_end(struct tc_call *call, const struct tc_call *server,
                    const struct tci_relayed_end *end, struct tc_result **ret_result,
                    struct tc_error *reterr) tci_must_check;

#endif
