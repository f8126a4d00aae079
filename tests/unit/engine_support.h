/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: one engine for all tests of a file, as the state that cmocka hands them. */
#ifndef TCI_TESTS_ENGINE_SUPPORT_H
#define TCI_TESTS_ENGINE_SUPPORT_H

#include "call_support.h"

/* For a setup, which knows its policy. */
static inline int open_engine_over(void **state, const char *policy)
{
    static struct fixture fixture;
    open_fixture(&fixture, policy);
    *state = &fixture;
    return 0;
}

/* A teardown. */
static inline int close_engine(void **state)
{
    close_fixture(*state);
    return 0;
}

static inline struct tc_engine *engine_of(void **state)
{
    return ((struct fixture *)*state)->engine;
}

#endif
