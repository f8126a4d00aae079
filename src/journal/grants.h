/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the table of grants, for the files of this folder that read it. */
#ifndef TCI_JOURNAL_GRANTS_H
#define TCI_JOURNAL_GRANTS_H

#include "journal/journal_internal.h"

struct tci_grant_row {
    struct tci_journal_grant grant;
    uint64_t row, revoked_row; /* of the records; revoked_row 0: not revoked */
};

#define TCI_GRANT_COLUMNS                                                                          \
    "id, row, agent, tool, text, created_us, revoked_us, revoked_row, "                            \
    "ifnull((SELECT calls FROM grant_count WHERE key = id), 0)"

/* Inside a transaction: leaves a record of kind "grant" or "revoke"; puts a grant into the table;
 * marks it as revoked there. */
int tci_journal_grant_record(struct tci_journal *journal, const char *kind,
                             const struct tci_journal_grant *grant, uint64_t *ret_row,
                             struct tc_error *reterr) tci_must_check;
int tci_journal_grant_insert(struct tci_journal *journal, const struct tci_journal_grant *grant,
                             uint64_t row, struct tc_error *reterr) tci_must_check;
int tci_journal_grant_mark(struct tci_journal *journal, const char *id, int64_t revoked_us,
                           uint64_t row, struct tc_error *reterr) tci_must_check;

/* The row of the table on which a statement stands, copied into the arena. */
int tci_journal_grant_read(struct tci_journal *journal, sqlite3_stmt *statement,
                           struct tci_arena *arena, struct tci_grant_row *ret,
                           struct tc_error *reterr) tci_must_check;
/* grants_revoked.c: the records that revoke, found without asking for a kind or an id, both of which an
 * index could hide. Sorted by id and row; in the arena. */
struct tci_revokes {
    struct tci_revoke {
        char id[TCI_UUID_TEXT_MAX];
        uint64_t row;
    } * items;
    size_t count;
};
int tci_journal_revokes(struct tci_journal *journal, struct tci_arena *arena,
                        struct tci_revokes *ret, struct tc_error *reterr) tci_must_check;
/* The first row that revokes a grant, whatever the table of grants says; 0: there is none. Fails when
 * the indexes do not agree about it. */
int tci_journal_revoked_by(struct tci_journal *journal, const struct tci_revokes *revokes,
                           const char *id, uint64_t *ret, struct tc_error *reterr) tci_must_check;

/* Does it say what its records say? *ret_problem: NULL, or the rest of "grant ID ...". */
int tci_journal_grant_check(struct tci_journal *journal, const struct tci_grant_row *row,
                            const struct tci_revokes *revokes, struct tci_arena *arena,
                            const char **ret_problem, struct tc_error *reterr) tci_must_check;

/* A list of rows of the table in the order in which they were made, each in the arena. */
struct tci_grant_list {
    struct tci_grant_row *rows;
    size_t count;
};
int tci_journal_grant_list(struct tci_journal *journal, const char *agent, bool revoked,
                           struct tci_arena *arena, struct tci_grant_list *ret,
                           struct tc_error *reterr) tci_must_check;

#endif
