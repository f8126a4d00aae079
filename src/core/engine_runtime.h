/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the engine's copies of grants that were made at run time. The journal has the truth; it is asked
 * on each decision whether anything has changed, so that a grant that somebody revokes is gone at once
 * in every process.
 */
#ifndef TCI_CORE_ENGINE_RUNTIME_H
#define TCI_CORE_ENGINE_RUNTIME_H

#include "base/uuid.h"
#include "core/engine.h"

/* It lives as long as the engine: plans and calls point to `grant`. */
struct tci_run_grant {
    char id[TCI_UUID_TEXT_MAX];
    const char *agent;
    const struct tci_grant *grant;
    bool gone; /* revoked */
};

/* Brings the copies up to date. Without a journal there are none. */
int tci_engine_refresh(struct tc_engine *engine, struct tc_error *reterr) tci_must_check;

/* The next one that is not gone, in the order in which they were made; NULL: no more. *cursor is 0 at
 * first. */
const struct tci_run_grant *tci_engine_next_grant(struct tc_engine *engine, const char *agent,
                                                  const char *tool, size_t *cursor);

/* When the next grant expires, of the agent or of one that it works for: seconds since 1970, after `now`;
 * INT64_MAX: none does. Of those that are known since the last tci_engine_refresh. */
int64_t tci_engine_next_expiry(struct tc_engine *engine, const char *agent, int64_t now);

#endif
