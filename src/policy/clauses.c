/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: names of clauses. */
#include "policy/clauses.h"

static const char *const names[] = {
#define X(id, name, promise) name,
#include "policy/clauses.def"
#undef X
};

const char *tci_clause_name(enum tci_clause clause)
{
    return names[clause];
}
