/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what is unwise in a policy that loads. Lint never changes what a policy means. What the
 * host can do comes in through a function, since hosts are below policies in the layers.
 */
#ifndef TCI_POLICY_LINT_H
#define TCI_POLICY_LINT_H

#include "policy/findings.h"
#include "policy/model.h"

struct tci_own_place;

enum { TCI_LINT_TEXT_MAX = 256 };

/* Can the tool's backend keep the clause on this host? If not, why not and what to do. */
typedef bool tci_host_can(void *context, const struct tci_tool *tool, enum tci_clause clause,
                          char ret_why[TCI_LINT_TEXT_MAX], char ret_remedy[TCI_LINT_TEXT_MAX]);

struct tci_lint_options {
    int64_t now;            /* seconds since 1970, for expiry; 0: do not look at expiry */
    bool look_at_files;     /* see whether granted directories hold known secrets */
    const char *home;       /* the caller's home directory in normal form, or NULL */
    tci_host_can *host_can; /* NULL: do not look at the host */
    void *host_context;
    const struct tci_own_place *places; /* where no tool may write, on this host */
    size_t place_count;
};

/* Adds what it finds, in the order of the file. -1 only when memory ran out. */
int tci_lint(const struct tc_policy *policy, const struct tci_lint_options *options,
             struct tci_findings *findings, struct tc_error *reterr) tci_must_check;

#endif
