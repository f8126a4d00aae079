/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the files of decisions share. */
#ifndef TCI_POLICY_DECIDE_INTERNAL_H
#define TCI_POLICY_DECIDE_INTERNAL_H

#include "base/quote.h"
#include "policy/model.h"

/* The answer and its reason; what would change it; the place that it comes from. */
void tci_decide(struct tc_decision *d, bool allowed, const char *key, const char *format, ...)
    tci_printf_like(4, 5);
void tci_decide_fix(struct tc_decision *d, const char *format, ...) tci_printf_like(2, 3);
void tci_decide_place(struct tc_decision *d, struct tci_pos pos);

/* What an address is that is not public, or public and this machine's: in words. */
const char *tci_decide_class(enum tci_address_class address_class);

/* Words of the caller, safe to show. */
const char *tci_decide_quote(const char *text, char buffer[TCI_QUOTE_MAX]);

/* The tool, and the grant that narrows it (NULL for the owner). False: denied, *d says why. */
bool tci_decide_find(const struct tc_policy *policy, const char *agent, const char *tool,
                     const struct tci_tool **ret_tool, const struct tci_grant **ret_grant,
                     struct tc_decision *d);

#endif
