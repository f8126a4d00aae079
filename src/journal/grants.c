/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: grants that were made at run time. The table is a list for fast reading of what the chain says:
 * each row of it must be word for word what its record says, so that nobody gets a grant by writing
 * into the table alone. A grant's record has its id as call_id, and so has the record that revokes it.
 */
#include "journal/journal_internal.h"

#include <errno.h>
#include <string.h>
#include "journal/grants.h"
#include "json/canonical.h"

static void add_member(struct tci_buf *out, const char *key, const char *value)
{
    tci_buf_string(out, key);
    tci_json_canonical_string(out, value, strlen(value));
}

static void write_grant(const struct tci_journal_grant *grant, struct tci_buf *out)
{
    add_member(out, "{\"agent\":", grant->agent);
    tci_buf_printf(out, ",\"created_us\":%lld,\"grant\":%s", (long long)grant->created_us,
                   grant->text);
    add_member(out, ",\"id\":", grant->id);
    add_member(out, ",\"tool\":", grant->tool);
    tci_buf_char(out, '}');
}

static void write_revoke(const struct tci_journal_grant *grant, struct tci_buf *out)
{
    add_member(out, "{\"id\":", grant->id);
    tci_buf_printf(out, ",\"revoked_us\":%lld}", (long long)grant->revoked_us);
}

/* What the records of a grant say, as canonical JSON. */
static int write_text(const char *kind, const struct tci_journal_grant *grant, struct tci_buf *out,
                      struct tc_error *reterr)
{
    if (strcmp(kind, "grant") == 0)
        write_grant(grant, out);
    else
        write_revoke(grant, out);
    return tci_buf_check(out, reterr);
}

int tci_journal_grant_record(struct tci_journal *journal, const char *kind,
                             const struct tci_journal_grant *grant, uint64_t *ret_row,
                             struct tc_error *reterr)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(TCI_JOURNAL_TEXT_MAX);
    struct tci_journal_entry entry = { .kind = kind,
                                       .session = "",
                                       .call_id = grant->id,
                                       .tool = grant->tool,
                                       .agent = grant->agent,
                                       .verdict = "",
                                       .policy_hash = "",
                                       .grants = "[]" };
    struct tci_journal_row row;
    entry.started_us = entry.ended_us = tci_journal_now();
    if (write_text(kind, grant, &text, reterr) < 0)
        return -1;
    entry.request = text.data;
    tci_sha256_text(text.data, text.length, entry.request_hash);
    if (tci_journal_entry_check(&entry, reterr) < 0 ||
        tci_journal_append_row(journal, &entry, &row, reterr) < 0)
        return -1;
    *ret_row = row.row;
    return 0;
}

int tci_journal_grant_insert(struct tci_journal *journal, const struct tci_journal_grant *grant,
                             uint64_t row, struct tc_error *reterr)
{
    sqlite3_stmt *statement = tci_journal_statement(journal, TCI_SQL_GRANT_ADD, reterr);
    if (!statement)
        return -1;
    tci_journal_bind_text(statement, 1, grant->id);
    (void)sqlite3_bind_int64(statement, 2, (int64_t)row);
    tci_journal_bind_text(statement, 3, grant->agent);
    tci_journal_bind_text(statement, 4, grant->tool);
    tci_journal_bind_text(statement, 5, grant->text);
    (void)sqlite3_bind_int64(statement, 6, grant->created_us);
    return tci_journal_run(journal, statement, reterr);
}

int tci_journal_grant_mark(struct tci_journal *journal, const char *id, int64_t revoked_us,
                           uint64_t row, struct tc_error *reterr)
{
    sqlite3_stmt *statement = tci_journal_statement(journal, TCI_SQL_GRANT_REVOKE, reterr);
    if (!statement)
        return -1;
    tci_journal_bind_text(statement, 1, id);
    (void)sqlite3_bind_int64(statement, 2, revoked_us);
    (void)sqlite3_bind_int64(statement, 3, (int64_t)row);
    return tci_journal_run(journal, statement, reterr);
}

static int add(struct tci_journal *journal, const struct tci_journal_grant *grant,
               struct tc_error *reterr)
{
    uint64_t row;
    if (tci_journal_grant_record(journal, "grant", grant, &row, reterr) < 0)
        return -1;
    return tci_journal_grant_insert(journal, grant, row, reterr);
}

int tci_journal_grant_add(struct tci_journal *journal, const char *agent, const char *tool,
                          const char *text, char ret_id[TCI_UUID_TEXT_MAX], struct tc_error *reterr)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    struct tci_journal_grant grant = { .agent = agent,
                                       .tool = tool,
                                       .created_us = tci_journal_now() };
    if (!arena)
        return tci_error_no_memory(reterr);
    if (tci_json_canonical(arena, text, strlen(text), &grant.text, reterr) < 0)
        return tci_error_wrap(reterr, "a grant for the journal");
    if (tci_uuid7(grant.id) < 0)
        return tci_error_errno(reterr, errno, "an id for the grant");
    if (tci_journal_begin(journal, reterr) < 0)
        return -1;
    if (tci_journal_end(journal, add(journal, &grant, reterr), reterr) < 0)
        return -1;
    memcpy(ret_id, grant.id, sizeof grant.id);
    return 0;
}

/* ---- reading ------------------------------------------------------------------------------ */

static const char *column(sqlite3_stmt *statement, int index)
{
    const char *text = (const char *)sqlite3_column_text(statement, index);
    return text && strlen(text) == (size_t)sqlite3_column_bytes(statement, index) ? text : NULL;
}

int tci_journal_grant_read(struct tci_journal *journal, sqlite3_stmt *statement,
                           struct tci_arena *arena, struct tci_grant_row *ret,
                           struct tc_error *reterr)
{
    struct tci_journal_grant *grant = &ret->grant;
    const char *id = column(statement, 0), *agent = column(statement, 2);
    const char *tool = column(statement, 3), *text = column(statement, 4);
    if (sqlite3_errcode(journal->db) == SQLITE_NOMEM)
        return tci_error_no_memory(reterr);
    if (!id || strlen(id) >= sizeof grant->id || !agent || !tool || !text)
        return tci_journal_damaged(journal, reterr, "a grant is not what it can be");
    memcpy(grant->id, id, strlen(id) + 1);
    grant->agent = tci_arena_strdup(arena, agent);
    grant->tool = tci_arena_strdup(arena, tool);
    grant->text = tci_arena_strdup(arena, text);
    if (!grant->agent || !grant->tool || !grant->text)
        return tci_error_no_memory(reterr);
    ret->row = (uint64_t)sqlite3_column_int64(statement, 1);
    grant->created_us = sqlite3_column_int64(statement, 5);
    grant->revoked_us = sqlite3_column_int64(statement, 6);
    ret->revoked_row = (uint64_t)sqlite3_column_int64(statement, 7);
    grant->calls = (uint64_t)sqlite3_column_int64(statement, 8);
    return 0;
}

/* Is row `number` a record of this kind that says exactly `text` about the grant? */
static int says(struct tci_journal *journal, uint64_t number, const char *kind,
                const struct tci_journal_grant *grant, struct tci_arena *arena, bool *ret,
                struct tc_error *reterr)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(TCI_JOURNAL_TEXT_MAX);
    struct tci_journal_row row;
    int r = tci_journal_row_get(journal, number, arena, &row, reterr);
    *ret = false;
    if (r != 0)
        return r < 0 ? -1 : 0;
    if (write_text(kind, grant, &text, reterr) < 0)
        return -1;
    *ret = strcmp(row.entry.kind, kind) == 0 && strcmp(row.entry.call_id, grant->id) == 0 &&
           strcmp(row.entry.agent, grant->agent) == 0 && strcmp(row.entry.tool, grant->tool) == 0 &&
           row.entry.request && strcmp(row.entry.request, text.data) == 0;
    return 0;
}

int tci_journal_grant_check(struct tci_journal *journal, const struct tci_grant_row *row,
                            const struct tci_revokes *revokes, struct tci_arena *arena,
                            const char **ret_problem, struct tc_error *reterr)
{
    uint64_t revoked = 0;
    bool same;
    *ret_problem = NULL;
    if (says(journal, row->row, "grant", &row->grant, arena, &same, reterr) < 0 ||
        tci_journal_revoked_by(journal, revokes, row->grant.id, &revoked, reterr) < 0)
        return -1;
    if (!same)
        *ret_problem = "is not what its record says";
    else if (revoked != row->revoked_row)
        *ret_problem = "was revoked, or not, against what its records say";
    else if (!revoked && row->grant.revoked_us)
        *ret_problem = "was revoked without a record";
    if (*ret_problem || !revoked)
        return 0;
    if (says(journal, revoked, "revoke", &row->grant, arena, &same, reterr) < 0)
        return -1;
    if (!same)
        *ret_problem = "was revoked otherwise than its record says";
    return 0;
}

/* ---- revoking and listing ----------------------------------------------------------------- */

static int get(struct tci_journal *journal, const char *id, struct tci_arena *arena,
               struct tci_grant_row *ret, struct tc_error *reterr)
{
    sqlite3_stmt *statement = tci_journal_statement(journal, TCI_SQL_GRANT_GET, reterr);
    int r;
    if (!statement)
        return -1;
    tci_journal_bind_text(statement, 1, id);
    r = tci_journal_step(journal, statement, reterr);
    if (r <= 0)
        return r < 0 ? -1 : 1;
    r = tci_journal_grant_read(journal, statement, arena, ret, reterr);
    (void)sqlite3_reset(statement);
    return r;
}

static int revoke(struct tci_journal *journal, const char *id, struct tci_arena *arena,
                  struct tc_error *reterr)
{
    struct tci_grant_row row = { 0 };
    uint64_t number;
    int r = get(journal, id, arena, &row, reterr);
    if (r != 0)
        return r;
    if (row.revoked_row)
        return 1;
    row.grant.revoked_us = tci_journal_now();
    if (tci_journal_grant_record(journal, "revoke", &row.grant, &number, reterr) < 0)
        return -1;
    return tci_journal_grant_mark(journal, id, row.grant.revoked_us, number, reterr);
}

int tci_journal_grant_revoke(struct tci_journal *journal, const char *id, struct tc_error *reterr)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    if (!arena)
        return tci_error_no_memory(reterr);
    if (tci_journal_begin(journal, reterr) < 0)
        return -1;
    return tci_journal_end(journal, revoke(journal, id, arena, reterr), reterr);
}

int tci_journal_grants_version(struct tci_journal *journal, uint64_t *ret, struct tc_error *reterr)
{
    sqlite3_stmt *statement;
    int r = -1;
    if (tci_journal_lock(journal, reterr) < 0)
        return -1;
    /* Whoever removes the file, or puts another there, has given and revoked other grants. */
    statement = tci_journal_place_check(journal, false, reterr) == 0
                    ? tci_journal_statement(journal, TCI_SQL_GRANTS_VERSION, reterr)
                    : NULL;
    if (statement)
        r = tci_journal_step(journal, statement, reterr);
    if (r > 0) {
        *ret = (uint64_t)sqlite3_column_int64(statement, 0);
        (void)sqlite3_reset(statement);
    }
    tci_journal_unlock(journal);
    return r < 0 ? -1 : 0;
}
