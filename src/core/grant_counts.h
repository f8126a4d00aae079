/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: how often grants of the policy were used, for engines without a journal. Known by agent and tool,
 * not by the grant: a policy that is loaded again has other grants, and the same agents.
 */
#ifndef TCI_CORE_GRANT_COUNTS_H
#define TCI_CORE_GRANT_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tci_grant_counts;

/* NULL: no memory. */
struct tci_grant_counts *tci_counts_new(void);
struct tci_grant_counts *tci_counts_hold(struct tci_grant_counts *counts);
void tci_counts_release(struct tci_grant_counts *counts);

/* Keys are AGENT \x1f TOOL \x1f PLACE, as in the journal; the place of the policy does not matter here. -1:
 * no memory. */
int tci_counts_get(struct tci_grant_counts *counts, const char *key, uint64_t *ret);
/* Counts a call of each, or of none: when one of them has reached its maximum, or there is no memory. */
bool tci_counts_add(struct tci_grant_counts *counts, const char *const *keys, const uint64_t *max,
                    size_t count);

#endif
