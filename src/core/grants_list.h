/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: all grants of an engine, as rows: those of the policy, then those of the journal. */
#ifndef TCI_CORE_GRANTS_LIST_H
#define TCI_CORE_GRANTS_LIST_H

#include "base/buf.h"
#include "core/engine.h"
#include "json/write.h"

struct tci_listed_grant {
    const char *id; /* in the journal; NULL: it is the policy's */
    const char *agent, *tool;
    const char *parent;            /* whom the agent works for; NULL: nobody */
    const char *text;              /* canonical JSON, as the journal has it; NULL: the policy's */
    const struct tci_grant *grant; /* NULL: this version cannot read it */
    bool is_counted;
    uint64_t calls;
    int64_t created_us, revoked_us; /* 0: not known; not revoked */
    const char *state;              /* "active", "expired", "used_up", "revoked", "no_tool" */
};
typedef void tci_grant_visitor(void *context, const struct tci_listed_grant *row);

/* Of one agent (NULL: of all). What a row points to lives until the visitor returns. */
int tci_grants_each(struct tc_engine *engine, const char *agent, tci_grant_visitor *each,
                    void *context, struct tc_error *reterr) tci_must_check;
/* The same as JSON (schemas/grants.json). */
int tci_grants_json(struct tc_engine *engine, const char *agent, struct tci_buf *out,
                    struct tc_error *reterr) tci_must_check;

/* engine_grants.c: how often a grant of the policy was used; 0 for one that is not counted. */
int tci_engine_calls(struct tc_engine *engine, const char *agent, const struct tci_grant *grant,
                     uint64_t *ret, struct tc_error *reterr) tci_must_check;

#endif
