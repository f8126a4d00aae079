/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the list of what a policy can ask for and a backend can keep. A tool asks for a set of
 * clauses; a backend that cannot keep one of them on this host must refuse the tool.
 */
#ifndef TCI_POLICY_CLAUSES_H
#define TCI_POLICY_CLAUSES_H

#include <stdint.h>

enum tci_clause {
#define X(id, name, promise) TCI_CLAUSE_##id,
#include "policy/clauses.def"
#undef X
    TCI_CLAUSE_COUNT
};

/* A set of clauses, one bit each. */
typedef uint32_t tci_clauses;
#define tci_clause_bit(clause) ((tci_clauses)1 << (clause))

const char *tci_clause_name(enum tci_clause clause);

#endif
