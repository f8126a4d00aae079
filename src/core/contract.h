/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the two sides of a contract share: how JSON of strangers is read (contract_text.c), and
 * the compiled schemas of an engine (contract_schema.c).
 */
#ifndef TCI_CORE_CONTRACT_H
#define TCI_CORE_CONTRACT_H

#include "core/engine.h"
#include "json/schema.h"

enum {
    TCI_ARGUMENTS_MAX = 1024 * 1024,       /* bytes of arguments_json */
    TCI_OUTPUT_JSON_MAX = 4 * 1024 * 1024, /* bytes of stdout that is checked by `returns` */
    TCI_CONTRACT_DEPTH_MAX = 128,          /* arrays and objects inside one another */
    TCI_CONTRACT_VALUES_MAX = 200000,      /* in one text */
};

/* Whose text it is, for sentences. */
struct tci_contract_side {
    const char *name; /* "arguments" */
    const char *are;  /* "the arguments are" */
    const char *have; /* "the arguments have" */
    size_t maximum;   /* bytes */
};
extern const struct tci_contract_side tci_side_arguments, tci_side_output;

struct tci_contract_problem {
    char reason[512], fix[256];
};

/*
 * Reads one JSON value: strict UTF-8, no duplicate keys, everything bounded, and no integer that would
 * arrive as another one. 0: *ret is the value (json_decref it) and *ret_text its canonical form, in the
 * arena. 1: *problem says what is wrong. -1: no memory.
 */
int tci_contract_read(struct tci_arena *arena, const struct tci_contract_side *side,
                      const char *text, size_t length, struct json_t **ret, const char **ret_text,
                      struct tci_contract_problem *problem, struct tc_error *reterr);

/* Is the value what the tool's schema says? 0, 1 and -1 like above, with *problem for both sides; an
 * -1 that is not NO_MEMORY: the schema itself is wrong. `key` is TCI_KEY_PARAMETERS or
 * TCI_KEY_RETURNS. The schema is compiled once for an engine. */
int tci_contract_check(struct tc_engine *engine, const struct tci_tool *tool, enum tci_key key,
                       const struct tci_contract_side *side, const struct json_t *value,
                       struct tci_contract_problem *problem, struct tc_error *reterr);

#endif
