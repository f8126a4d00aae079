/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the tests of the three questions that a policy answers share. */
#ifndef TCI_TESTS_DECIDE_SUPPORT_H
#define TCI_TESTS_DECIDE_SUPPORT_H

#include "support.h"

static inline struct tc_decision decide_call(const struct tc_policy *policy, const char *agent,
                                             const char *tool, int64_t now, uint64_t calls_made)
{
    struct tc_decision d;
    memset(&d, 'x', sizeof d);
    tc_decide_call(policy, agent, tool, now, calls_made, &d);
    return d;
}

static inline struct tc_decision decide_network(const struct tc_policy *policy, const char *agent,
                                                const char *host, unsigned port)
{
    struct tc_decision d;
    memset(&d, 'x', sizeof d);
    tc_decide_network(policy, agent, "t", host, port, &d);
    return d;
}

static inline struct tc_decision decide_path(const struct tc_policy *policy, const char *agent,
                                             const char *path, enum tc_access access)
{
    struct tc_decision d;
    memset(&d, 'x', sizeof d);
    tc_decide_path(policy, agent, "t", path, access, &d);
    return d;
}

/* What every answer has. */
static inline void assert_well_formed(const struct tc_decision *d)
{
    assert_true(d->allowed == 0 || d->allowed == 1);
    assert_true(d->key[0] && d->reason[0]);
    assert_int_equal(d->fix[0] == '\0', d->allowed);
}

struct question {
    const char *target;
    bool allowed;
};

#endif
