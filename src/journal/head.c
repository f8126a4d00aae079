/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the table of signatures. What is in it is believed only when the signature is good and the row
 * that it names has the state hash that it names: verify looks at every one.
 */
#include "journal/head.h"

#include <stdio.h>
#include <string.h>
#include "base/quote.h"
#include "journal/journal_internal.h"

/* The state hash of a row; 1: there is no such row. */
static int row_state(struct tci_journal *journal, uint64_t row, char ret[TCI_SHA256_TEXT_MAX],
                     struct tc_error *reterr)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    struct tci_journal_row found;
    int r;
    if (!arena)
        return tci_error_no_memory(reterr);
    r = tci_journal_row_get(journal, row, arena, &found, reterr);
    if (r == 0)
        memcpy(ret, found.state_hash, sizeof found.state_hash);
    return r;
}

/* ---- signing ------------------------------------------------------------------------------ */

static int read_head(struct tci_journal *journal, struct tci_head *ret, struct tc_error *reterr)
{
    sqlite3_stmt *statement = tci_journal_statement(journal, TCI_SQL_HEAD, reterr);
    int more = statement ? tci_journal_step(journal, statement, reterr) : -1;
    if (more < 0)
        return -1;
    ret->row = more > 0 ? (uint64_t)sqlite3_column_int64(statement, 0) : 0;
    (void)sqlite3_reset(statement);
    if (ret->row == 0) {
        tci_error_set(reterr, TC_ERROR_USAGE, "the journal is empty: there is nothing to sign");
        tci_error_remedy(reterr, "record a call first");
        return -1;
    }
    /* Of the row itself, which was checked, and not of the table of heads. */
    more = row_state(journal, ret->row, ret->state_hash, reterr);
    if (more > 0)
        return tci_journal_damaged(journal, reterr, "its last row is missing");
    return more;
}

static int insert(struct tci_journal *journal, const struct tci_statement *says,
                  const struct tci_signature *signature, struct tc_error *reterr)
{
    sqlite3_stmt *statement = tci_journal_statement(journal, TCI_SQL_SIGNATURE_SET, reterr);
    if (!statement)
        return -1;
    (void)sqlite3_bind_int64(statement, 1, (sqlite3_int64)says->row);
    tci_journal_bind_text(statement, 2, says->state_hash);
    tci_journal_bind_text(statement, 3, signature->key);
    tci_journal_bind_text(statement, 4, signature->statement);
    tci_journal_bind_text(statement, 5, signature->signature);
    return tci_journal_run(journal, statement, reterr);
}

int tci_head_sign_within(struct tci_journal *journal, const struct tci_sign_key *key,
                         struct tci_head *ret, struct tc_error *reterr)
{
    struct tci_statement says = { .purpose = TCI_PURPOSE_HEAD, .signed_us = tci_journal_now() };
    struct tci_signature signature;
    if (read_head(journal, ret, reterr) < 0)
        return -1;
    says.row = ret->row;
    memcpy(says.state_hash, ret->state_hash, sizeof says.state_hash);
    tci_journal_id(journal, says.journal);
    if (tci_statement_sign(&says, key, &signature, reterr) < 0)
        return -1;
    return insert(journal, &says, &signature, reterr);
}

int tci_journal_require_good(struct tci_journal *journal, const char *why, struct tc_error *reterr)
{
    struct tci_journal_report report;
    if (tci_journal_verify(journal, &report, NULL, NULL, reterr) < 0)
        return -1;
    if (report.good)
        return 0;
    tci_error_set(reterr, TC_ERROR_USAGE, "the journal does not verify (row %llu: %s)",
                  (unsigned long long)report.bad_row, report.problem);
    tci_error_remedy(reterr, "see toolcage journal verify; %s", why);
    return -1;
}

int tci_head_sign(struct tci_journal *journal, const struct tci_sign_key *key, struct tci_head *ret,
                  struct tc_error *reterr)
{
    if (tci_journal_require_good(journal, "a signature would vouch for what is wrong", reterr) <
            0 ||
        tci_journal_begin(journal, reterr) < 0)
        return -1;
    return tci_journal_end(journal, tci_head_sign_within(journal, key, ret, reterr), reterr);
}

int tci_head_insert(struct tci_journal *journal, const struct tci_signature *signature,
                    struct tc_error *reterr)
{
    char state_hash[TCI_SHA256_TEXT_MAX];
    struct tci_statement says;
    int r = tci_statement_check(signature, TCI_PURPOSE_HEAD, &says, reterr);
    if (r == 0)
        r = row_state(journal, says.row, state_hash, reterr);
    if (r == 0 && strcmp(state_hash, says.state_hash) != 0)
        r = 1;
    return r == 0 ? insert(journal, &says, signature, reterr) : r;
}

/* ---- reading ------------------------------------------------------------------------------ */

static bool copy_column(sqlite3_stmt *statement, int column, char *to, size_t size)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    if (!text || strlen(text) >= size ||
        strlen(text) != (size_t)sqlite3_column_bytes(statement, column))
        return false;
    memcpy(to, text, strlen(text) + 1);
    return true;
}

int tci_head_each(struct tci_journal *journal, tci_head_visitor *each, void *context,
                  struct tc_error *reterr)
{
    sqlite3_stmt *statement;
    int more, r = 0;
    if (tci_journal_lock(journal, reterr) < 0)
        return -1;
    statement = tci_journal_statement(journal, TCI_SQL_SIGNATURES, reterr);
    more = statement ? 0 : -1;
    while (statement && r == 0 && (more = tci_journal_step(journal, statement, reterr)) > 0) {
        struct tci_signature signature;
        char state_hash[TCI_SHA256_TEXT_MAX] = "";
        if (!copy_column(statement, 1, state_hash, sizeof state_hash) ||
            !copy_column(statement, 2, signature.key, sizeof signature.key) ||
            !copy_column(statement, 3, signature.statement, sizeof signature.statement) ||
            !copy_column(statement, 4, signature.signature, sizeof signature.signature))
            signature = (struct tci_signature){ 0 }; /* which is not a good one */
        r = each(context, (uint64_t)sqlite3_column_int64(statement, 0), state_hash, &signature,
                 reterr);
    }
    if (statement)
        (void)sqlite3_reset(statement);
    tci_journal_unlock(journal);
    return more < 0 ? -1 : r;
}

/* ---- checking ----------------------------------------------------------------------------- */

struct check {
    struct tci_journal *journal;
    struct tci_journal_report *report;
};

static int check_one(void *context, uint64_t row, const char *state_hash,
                     const struct tci_signature *signature, struct tc_error *reterr)
{
    const struct check *check = context;
    char found[TCI_SHA256_TEXT_MAX] = "";
    struct tci_statement says;
    int r = tci_statement_check(signature, TCI_PURPOSE_HEAD, &says, reterr);

    if (r < 0)
        return -1;
    if (r > 0 || says.row != row || strcmp(says.state_hash, state_hash) != 0) {
        tci_journal_finding(check->report, row, "", 0, "the signature of this row is not good");
        return 1;
    }
    r = row_state(check->journal, row, found, reterr);
    if (r < 0)
        return -1;
    if (r > 0 || strcmp(found, state_hash) != 0) {
        tci_journal_finding(check->report, row, "", 0,
                            "this row was signed with another state hash than it has now");
        return 1;
    }
    check->report->signatures++;
    return 0;
}

int tci_journal_check_signatures(struct tci_journal *journal, struct tci_journal_report *report,
                                 struct tc_error *reterr)
{
    struct check check = { .journal = journal, .report = report };
    return tci_head_each(journal, check_one, &check, reterr) < 0 ? -1 : 0;
}

struct search {
    char key[TCI_SIGN_KEY_TEXT_MAX];
    uint64_t row;
};

static int search_one(void *context, uint64_t row, const char *state_hash,
                      const struct tci_signature *signature, struct tc_error *reterr)
{
    struct search *search = context;
    (void)state_hash;
    (void)reterr;
    if (strcmp(search->key, signature->key) == 0)
        search->row = row;
    return 0;
}

/* The row of the last checkpoint, when rows before the first one that is left were removed; else 0. */
static int removal(struct tci_journal *journal, uint64_t *ret, struct tc_error *reterr)
{
    sqlite3_stmt *first = tci_journal_statement(journal, TCI_SQL_FIRST_ROW, reterr);
    sqlite3_stmt *last = first ? tci_journal_statement(journal, TCI_SQL_LAST_CHECKPOINT, reterr)
                               : NULL;
    int more = last ? tci_journal_step(journal, first, reterr) : -1;
    bool removed = more > 0 && sqlite3_column_int64(first, 0) > 1;
    *ret = 0;
    if (more >= 0 && removed && (more = tci_journal_step(journal, last, reterr)) > 0)
        *ret = (uint64_t)sqlite3_column_int64(last, 0);
    if (first)
        (void)sqlite3_reset(first);
    if (last)
        (void)sqlite3_reset(last);
    return more < 0 ? -1 : 0;
}

int tci_head_signed_by(struct tci_journal *journal, const struct tci_sign_key *key,
                       struct tci_journal_report *report, uint64_t *ret_row,
                       struct tc_error *reterr)
{
    struct search search = { .row = 0 };
    uint64_t checkpoint = 0;
    int r;
    tci_hex(key->public_key, sizeof key->public_key, search.key);
    if (tci_journal_lock(journal, reterr) < 0)
        return -1;
    r = tci_head_each(journal, search_one, &search, reterr);
    if (r == 0)
        r = removal(journal, &checkpoint, reterr);
    tci_journal_unlock(journal);
    if (r < 0)
        return -1;
    *ret_row = search.row;
    if (search.row == 0)
        tci_journal_finding(report, 0, "", 0, "the given key has signed no head of this journal");
    else if (checkpoint > search.row) /* whoever can write the file can prune it */
        tci_journal_finding(report, checkpoint, "", 0,
                            "rows were removed, and the given key has not signed this checkpoint");
    return 0;
}
