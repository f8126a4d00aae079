/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the files of lint share. */
#ifndef TCI_POLICY_LINT_INTERNAL_H
#define TCI_POLICY_LINT_INTERNAL_H

#include "policy/lint.h"

struct tci_lint {
    const struct tc_policy *policy;
    const struct tci_lint_options *options;
    struct tci_findings *findings;
    bool has_schema_files;       /* some tool's schema was read from a file */
    const struct tci_tool *tool; /* being looked at; NULL for agents and the whole */
    uint64_t seen_in_defaults;   /* keys of [defaults] that were reported with an earlier tool */
    /* Inherited values that mean something else from tool to tool: what was reported so far. */
    bool seen_host_network[2]; /* without and with the tool's confirmation */
    bool seen_paths[3];        /* as they are, for fs_read, for fs_write */
    bool seen_root[2];         /* writable, and read-only */
    const struct tci_network_entry *seen_rules;
    struct json_t *schema; /* the last one that tci_lint_command read, or NULL */
    const char *schema_text;
    struct tci_node *good_schemas[2]; /* texts that compiled: `parameters`, `returns`; or NULL */
    size_t compared;                  /* rules, with each other */
    struct tci_mount_table *mounts;   /* the host's, once they were asked for */
};

/* Should the tool's value of this key be looked at? Built-in values are known to be good, and an
 * inherited one is looked at once and not once a tool. */
bool tci_lint_wants(const struct tci_lint *lint, enum tci_key key);

/* Rules are compared with each other. A policy that a person wrote has few; somebody who wants lint
 * to run for hours gets no more than so many comparisons, and a note. True: `count` more are fine. */
bool tci_lint_may_compare(struct tci_lint *lint, size_t count);

void tci_lint_add(struct tci_lint *lint, enum tci_finding_id id, struct tci_pos pos,
                  const char *remedy, const char *format, ...) tci_printf_like(5, 6);

/* A path as it was written, which may have something in it that a shell would expand. */
void tci_lint_not_expanded(struct tci_lint *lint, const char *given, struct tci_pos pos);

/* The host's, read once. NULL: they cannot be read. */
const struct tci_mount_table *tci_lint_mounts(struct tci_lint *lint);

void tci_lint_own(struct tci_lint *lint);
void tci_lint_dropped(struct tci_lint *lint);
void tci_lint_filesystem(struct tci_lint *lint);
void tci_lint_network(struct tci_lint *lint);
void tci_lint_limits(struct tci_lint *lint);
void tci_lint_command(struct tci_lint *lint);
/* The schema of the tool's parameters, read; it lives until the next one is asked for. NULL when out
 * of memory (and no_memory): it was valid when it was loaded. */
const struct json_t *tci_lint_read_parameters(struct tci_lint *lint);
void tci_lint_command_end(struct tci_lint *lint); /* frees what it kept */
void tci_lint_contract(struct tci_lint *lint);
void tci_lint_mcp(struct tci_lint *lint);
void tci_lint_clauses(struct tci_lint *lint);
void tci_lint_agents(struct tci_lint *lint);
void tci_lint_files(struct tci_lint *lint);

#endif
