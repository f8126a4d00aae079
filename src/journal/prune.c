/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: prune. In one transaction: the old rows go, a checkpoint says where the chain goes on, the
 * grants that are still in force are recorded again, and, with a key, the new head is signed. Then the
 * file is cleaned: SQLite leaves deleted text in free pages and in its log, where anybody finds it.
 */
#include "journal/prune.h"

#include <string.h>
#include "journal/bases.h"
#include "journal/head.h"
#include "journal/journal_internal.h"

/* One number, or 0 for none. */
static int number(struct tci_journal *journal, enum tci_journal_sql which, int64_t value,
                  uint64_t *ret, struct tc_error *reterr)
{
    sqlite3_stmt *statement = tci_journal_statement(journal, which, reterr);
    int more;
    *ret = 0;
    if (!statement)
        return -1;
    if (sqlite3_bind_parameter_count(statement))
        (void)sqlite3_bind_int64(statement, 1, value);
    more = tci_journal_step(journal, statement, reterr);
    if (more > 0)
        *ret = (uint64_t)sqlite3_column_int64(statement, 0);
    (void)sqlite3_reset(statement);
    return more < 0 ? -1 : 0;
}

static int run_with(struct tci_journal *journal, enum tci_journal_sql which, uint64_t value,
                    struct tc_error *reterr)
{
    sqlite3_stmt *statement = tci_journal_statement(journal, which, reterr);
    if (!statement)
        return -1;
    if (sqlite3_bind_parameter_count(statement))
        (void)sqlite3_bind_int64(statement, 1, (sqlite3_int64)value);
    return tci_journal_run(journal, statement, reterr);
}

/* Up to which row everything goes. Only a beginning can go: a young row keeps those behind it. */
static int find_cut(struct tci_journal *journal, const struct tci_prune *options, uint64_t last,
                    uint64_t *ret, struct tc_error *reterr)
{
    uint64_t young;
    *ret = 0;
    if (options->keep != UINT64_MAX) {
        *ret = last > options->keep ? last - options->keep : 0;
        return 0;
    }
    if (number(journal, TCI_SQL_FIRST_YOUNG, options->before_us, &young, reterr) < 0)
        return -1;
    *ret = young ? young - 1 : last;
    return 0;
}

static int append_checkpoint(struct tci_journal *journal, uint64_t cut, struct tc_error *reterr)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    struct tci_journal_checkpoint checkpoint = { .rows = cut };
    struct tci_journal_entry entry = { .kind = "checkpoint",
                                       .session = "",
                                       .call_id = "",
                                       .tool = "",
                                       .agent = "",
                                       .verdict = "",
                                       .policy_hash = "",
                                       .grants = "[]" };
    struct tci_journal_row row;
    int r;

    if (!arena)
        return tci_error_no_memory(reterr);
    r = tci_journal_row_get(journal, cut, arena, &row, reterr);
    if (r != 0)
        return r < 0 ? -1 : tci_journal_damaged(journal, reterr, "a row is missing");
    memcpy(checkpoint.state_hash, row.state_hash, sizeof checkpoint.state_hash);
    if (tci_journal_bases(journal, cut, arena, &checkpoint, reterr) < 0 ||
        tci_journal_checkpoint_write(&checkpoint, arena, &entry.request, reterr) < 0)
        return -1;
    entry.started_us = entry.ended_us = tci_journal_now();
    tci_sha256_text(entry.request, strlen(entry.request), entry.request_hash);
    if (tci_journal_entry_check(&entry, reterr) < 0)
        return -1;
    return tci_journal_append_row(journal, &entry, NULL, reterr);
}

static int remove_rows(struct tci_journal *journal, const struct tci_prune *options, uint64_t cut,
                       struct tc_error *reterr)
{
    struct tci_head head;
    uint64_t carried;
    if (append_checkpoint(journal, cut, reterr) < 0 ||
        tci_journal_grants_carry(journal, cut, &carried, reterr) < 0 ||
        run_with(journal, TCI_SQL_PRUNE_ROWS, cut, reterr) < 0 ||
        run_with(journal, TCI_SQL_PRUNE_SIGNATURES, cut, reterr) < 0 ||
        run_with(journal, TCI_SQL_PRUNE_SESSIONS, 0, reterr) < 0 ||
        run_with(journal, TCI_SQL_PRUNE_CURSORS, 0, reterr) < 0)
        return -1;
    return options->key ? tci_head_sign_within(journal, options->key, &head, reterr) : 0;
}

static int prune(struct tci_journal *journal, const struct tci_prune *options, uint64_t verified,
                 struct tci_prune_report *ret, struct tc_error *reterr)
{
    uint64_t before, cut;
    if (number(journal, TCI_SQL_ROW_COUNT, 0, &before, reterr) < 0 ||
        find_cut(journal, options, verified, &cut, reterr) < 0)
        return -1;
    if (number(journal, TCI_SQL_FIRST_ROW, 0, &ret->first_row, reterr) < 0)
        return -1;
    ret->left = before;
    if (ret->first_row == 0 || cut < ret->first_row)
        return 0;
    ret->removed = cut - ret->first_row + 1;
    if (remove_rows(journal, options, cut, reterr) < 0 ||
        number(journal, TCI_SQL_ROW_COUNT, 0, &ret->left, reterr) < 0 ||
        number(journal, TCI_SQL_FIRST_ROW, 0, &ret->first_row, reterr) < 0)
        return -1;
    return number(journal, TCI_SQL_GRANTS_IN_FORCE, 0, &ret->grants, reterr);
}

/* ---- cleaning ----------------------------------------------------------------------------- */

static int still_there(struct tc_error *reterr)
{
    tci_error_set(reterr, TC_ERROR_IO,
                  "the rows are removed, but their texts are still in the journal's log, since "
                  "another process is reading it");
    tci_error_remedy(reterr, "prune again when nobody uses the journal");
    return -1;
}

/* Moves the log into the file and cuts it to nothing. */
static int empty_log(struct tci_journal *journal, struct tc_error *reterr)
{
    int frames = 0, moved = 0;
    int code = sqlite3_wal_checkpoint_v2(journal->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, &frames,
                                         &moved);
    if ((code & 0xff) == SQLITE_BUSY || (code == SQLITE_OK && frames > 0))
        return still_there(reterr);
    return code == SQLITE_OK ? 0 : tci_journal_fail(journal, code, reterr);
}

/* The log first: then nothing of the removed rows is left, whatever becomes of the rest. VACUUM attaches
 * a database of its own, on disk: what is left may be larger than memory. */
static int clean(struct tci_journal *journal, struct tc_error *reterr)
{
    uint64_t free_pages;
    int attached, r;
    if (empty_log(journal, reterr) < 0 ||
        number(journal, TCI_SQL_FREE_PAGES, 0, &free_pages, reterr) < 0)
        return -1;
    if (free_pages == 0)
        return 0;
    attached = sqlite3_limit(journal->db, SQLITE_LIMIT_ATTACHED, 1);
    r = tci_journal_exec(journal, "PRAGMA temp_store = FILE; VACUUM; PRAGMA temp_store = MEMORY",
                         reterr);
    (void)sqlite3_limit(journal->db, SQLITE_LIMIT_ATTACHED, attached);
    if (r < 0)
        return tci_error_wrap(reterr,
                              "the rows are removed, but the file could not be made smaller");
    return empty_log(journal, reterr);
}

/* What is removed is overwritten, and that goes through the log first; then what is left is copied. */
static void say_what_it_needs(struct tc_error *reterr)
{
    if (!reterr || !strstr(reterr->message, TCI_JOURNAL_NO_SPACE))
        return;
    reterr->remedy[0] = '\0';
    tci_error_remedy(reterr, "prune needs as much free space as the journal has, where it is and "
                             "where temporary files are (SQLITE_TMPDIR, else /var/tmp)");
}

int tci_journal_prune(struct tci_journal *journal, const struct tci_prune *options,
                      struct tci_prune_report *ret, struct tc_error *reterr)
{
    int r;

    *ret = (struct tci_prune_report){ 0 };
    if (tci_journal_require_good(journal, "a checkpoint would hide what is wrong", reterr) < 0 ||
        tci_journal_lock(journal, reterr) < 0)
        return -1;
    /* Deleted cells and pages are overwritten with zeros. */
    r = tci_journal_exec(journal, "PRAGMA secure_delete = ON", reterr);
    if (r == 0 && (r = tci_journal_begin(journal, reterr)) == 0) {
        uint64_t last;
        r = number(journal, TCI_SQL_LAST_ROW, 0, &last, reterr);
        if (r == 0)
            r = prune(journal, options, last, ret, reterr);
        r = tci_journal_end(journal, r, reterr);
    }
    if (r == 0)
        r = clean(journal, reterr);
    if (r < 0)
        say_what_it_needs(reterr);
    tci_journal_unlock(journal);
    return r;
}
