/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: from the tracer's list to the result's, and the sentence that names the first denial. */
#include "core/denials.h"

#include <stdio.h>
#include <string.h>

/* Not the policy's doing: worth a line in the list, but not the first thing to say. */
static bool is_of_host(const struct tc_denial *denial)
{
    return strncmp(denial->rule, "permissions:", strlen("permissions:")) == 0;
}

static const struct tc_denial *choose(const struct tc_result *public)
{
    for (size_t i = 0; i < public->denial_count; i++)
        if (!is_of_host(&public->denials[i]))
            return &public->denials[i];
    return &public->denials[0];
}

void tci_denials_name(struct tci_result *result)
{
    struct tc_result *public = &result->public;
    const struct tc_denial *first;
    char reason[sizeof public->reason], fix[sizeof public->fix];

    if (public->denial_count == 0 ||
        (public->verdict != TC_VERDICT_FAILED && public->verdict != TC_VERDICT_SIGNALED))
        return;
    first = choose(public);
    (void)snprintf(reason, sizeof reason, "%s", public->reason);
    (void)snprintf(fix, sizeof fix, "%s", public->fix);
    tci_result_verdict(result, public->verdict, *fix ? fix : first->rule,
                       "%s; it was refused: %s %s%s", reason, first->kind, first->target,
                       public->denial_count > 1 ? ", and more" : "");
}

int tci_denials_add(struct tci_result *result, struct tci_trace *trace, struct tc_error *reterr)
{
    const struct tc_denial *denials = NULL;
    size_t count = 0;
    int r = tci_trace_finish(trace, &denials, &count, reterr);
    for (size_t i = 0; i < count; i++)
        if (tci_result_deny(result, denials[i].kind, denials[i].target, denials[i].rule) < 0)
            return tci_error_no_memory(reterr);
    return r;
}
