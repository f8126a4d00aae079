/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the tests of calls share: an engine over the double, and calls in one line. */
#ifndef TCI_TESTS_CALL_SUPPORT_H
#define TCI_TESTS_CALL_SUPPORT_H

#include "support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include "backend_double.h"
#include "core/call.h"
#include "descriptors.h"

struct fixture {
    struct tc_policy *policy;
    struct tc_engine *engine;
};

static inline void open_fixture(struct fixture *fixture, const char *policy)
{
    struct tc_error error = { 0 };
    fixture->policy = load_text(policy);
    if (tci_engine_open_with(&(struct tc_engine_options){ .policy = fixture->policy }, double_for,
                             &fixture->engine, &error) < 0)
        fail_msg("%s", error.message);
}

static inline void close_fixture(struct fixture *fixture)
{
    tc_engine_close(fixture->engine);
    tc_policy_free(fixture->policy);
    assert_int_equal(double_plans, 0);
    assert_int_equal(double_runs, 0);
}

/* A call that must give a result. */
static inline struct tc_result *call(struct tc_engine *engine, const struct tc_request *request)
{
    struct tc_result *result = NULL;
    struct tc_error error = { 0 };
    if (tc_call(engine, request, &result, &error) < 0)
        fail_msg("%s", error.message);
    assert_non_null(result);
    return result;
}

#define ARGV(...)                                                                                  \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }
#define SH(script) ARGV("sh", "-c", script)

#endif
