/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: new rows. A row, the head of the file and the head of its session change in one transaction
 * that holds the lock for writers from its first read on: two writers cannot both follow the same row.
 */
#include "journal/journal_internal.h"

#include <string.h>
#include "base/utf8.h"

static bool is_utf8(const char *text, size_t length)
{
    for (size_t i = 0; i < length;) {
        uint32_t code_point;
        size_t size;
        if ((unsigned char)text[i] < 0x80) {
            i++;
            continue;
        }
        size = tci_utf8_decode(text + i, length - i, &code_point);
        if (!size)
            return false;
        i += size;
    }
    return true;
}

static int check_text(const char *name, const char *text, size_t maximum, struct tc_error *reterr)
{
    size_t length = strlen(text);
    if (length > maximum) {
        tci_error_set(reterr, TC_ERROR_TOO_LARGE, "%s of %zu bytes: the journal takes at most %zu",
                      name, length, maximum);
        tci_error_remedy(reterr, "make it shorter, or record only hashes (record = \"hash-only\")");
        return -1;
    }
    if (!is_utf8(text, length)) {
        tci_error_set(reterr, TC_ERROR_USAGE, "%s for the journal is not UTF-8", name);
        tci_error_remedy(reterr, "give a name in UTF-8");
        return -1;
    }
    return 0;
}

static int check_hash(const char *name, const char *text, const char *hash, struct tc_error *reterr)
{
    char expected[TCI_SHA256_TEXT_MAX];
    size_t length = strlen(hash);
    if (!text) {
        if (length == 0 ||
            (length == TCI_SHA256_TEXT_MAX - 1 && strspn(hash, "0123456789abcdef") == length))
            return 0;
        return tci_error_set(reterr, TC_ERROR_INTERNAL, "the %s_hash for the journal is no hash",
                             name);
    }
    tci_sha256_text(text, strlen(text), expected);
    if (strcmp(expected, hash) != 0)
        return tci_error_set(reterr, TC_ERROR_INTERNAL,
                             "the %s_hash for the journal is not that of the %s", name, name);
    return 0;
}

int tci_journal_entry_check(const struct tci_journal_entry *entry, struct tc_error *reterr)
{
    const struct {
        const char *name, *text;
        size_t maximum;
    } texts[] = {
        { "a kind", entry->kind, TCI_JOURNAL_NAME_MAX },
        { "a session", entry->session, TCI_JOURNAL_NAME_MAX },
        { "a call id", entry->call_id, TCI_JOURNAL_NAME_MAX },
        { "a tool", entry->tool, TCI_JOURNAL_NAME_MAX },
        { "an agent", entry->agent, TCI_JOURNAL_NAME_MAX },
        { "a verdict", entry->verdict, TCI_JOURNAL_NAME_MAX },
        { "a hash of a policy", entry->policy_hash, TCI_JOURNAL_NAME_MAX },
        { "a list of grants", entry->grants, TCI_JOURNAL_TEXT_MAX },
        { "a request", entry->request ? entry->request : "", TCI_JOURNAL_TEXT_MAX },
        { "a result", entry->result ? entry->result : "", TCI_JOURNAL_TEXT_MAX },
    };
    for (size_t i = 0; i < tci_array_size(texts); i++)
        if (check_text(texts[i].name, texts[i].text, texts[i].maximum, reterr) < 0)
            return -1;
    if (entry->started_us < 0 || entry->started_us > TCI_JOURNAL_INTEGER_MAX ||
        entry->ended_us < 0 || entry->ended_us > TCI_JOURNAL_INTEGER_MAX)
        return tci_error_set(reterr, TC_ERROR_USAGE,
                             "a time for the journal is before 1970 or too far away");
    if (check_hash("request", entry->request, entry->request_hash, reterr) < 0)
        return -1;
    return check_hash("result", entry->result, entry->result_hash, reterr);
}

/* A number and a hash, from the head of the file or of a session. */
static int read_head(struct tci_journal *journal, sqlite3_stmt *statement, const char *what,
                     bool *ret_found, uint64_t *ret_number, char ret_hash[TCI_SHA256_TEXT_MAX],
                     struct tc_error *reterr)
{
    const char *text;
    int64_t number;
    int r = tci_journal_step(journal, statement, reterr);
    *ret_found = r > 0;
    if (r <= 0)
        return r;
    number = sqlite3_column_int64(statement, 0);
    text = (const char *)sqlite3_column_text(statement, 1);
    if (!text && sqlite3_errcode(journal->db) == SQLITE_NOMEM)
        r = tci_error_no_memory(reterr);
    else if (!text || strlen(text) != TCI_SHA256_TEXT_MAX - 1 || number < 0 ||
             number >= TCI_JOURNAL_INTEGER_MAX)
        r = tci_journal_damaged(journal, reterr, "the head of the %s is not one", what);
    else {
        memcpy(ret_hash, text, TCI_SHA256_TEXT_MAX);
        *ret_number = (uint64_t)number;
    }
    (void)sqlite3_reset(statement);
    return r < 0 ? -1 : 0;
}

/* Number and links of the row that comes next. */
static int find_place(struct tci_journal *journal, struct tci_journal_row *row,
                      struct tc_error *reterr)
{
    sqlite3_stmt *head = tci_journal_statement(journal, TCI_SQL_HEAD, reterr);
    sqlite3_stmt *session = head ? tci_journal_statement(journal, TCI_SQL_SESSION, reterr) : NULL;
    bool found;
    if (!session)
        return -1;
    if (read_head(journal, head, "file", &found, &row->row, row->row_before, reterr) < 0)
        return -1;
    if (!found)
        return tci_journal_damaged(journal, reterr, "the head of the file is missing");
    tci_journal_bind_text(session, 1, row->entry.session);
    if (read_head(journal, session, "session", &found, &row->step, row->previous, reterr) < 0)
        return -1;
    if (!found) {
        row->step = 0;
        memcpy(row->previous, tci_journal_no_state, sizeof row->previous);
    }
    row->row++;
    row->step++;
    return 0;
}

static int insert(struct tci_journal *journal, const struct tci_journal_row *row,
                  struct tc_error *reterr)
{
    const struct tci_journal_entry *entry = &row->entry;
    sqlite3_stmt *statement = tci_journal_statement(journal, TCI_SQL_INSERT, reterr);
    if (!statement)
        return -1;
    (void)sqlite3_bind_int64(statement, 1, (int64_t)row->row);
    tci_journal_bind_text(statement, 2, entry->session);
    (void)sqlite3_bind_int64(statement, 3, (int64_t)row->step);
    tci_journal_bind_text(statement, 4, entry->kind);
    tci_journal_bind_text(statement, 5, entry->call_id);
    tci_journal_bind_text(statement, 6, entry->tool);
    tci_journal_bind_text(statement, 7, entry->agent);
    tci_journal_bind_text(statement, 8, entry->verdict);
    (void)sqlite3_bind_int64(statement, 9, entry->started_us);
    (void)sqlite3_bind_int64(statement, 10, entry->ended_us);
    tci_journal_bind_text(statement, 11, entry->request);
    tci_journal_bind_text(statement, 12, entry->request_hash);
    tci_journal_bind_text(statement, 13, entry->result);
    tci_journal_bind_text(statement, 14, entry->result_hash);
    tci_journal_bind_text(statement, 15, entry->policy_hash);
    tci_journal_bind_text(statement, 16, entry->grants);
    tci_journal_bind_text(statement, 17, row->row_before);
    tci_journal_bind_text(statement, 18, row->previous);
    tci_journal_bind_text(statement, 19, row->state_hash);
    return tci_journal_run(journal, statement, reterr);
}

int tci_journal_insert_row(struct tci_journal *journal, const struct tci_journal_row *row,
                           struct tc_error *reterr)
{
    sqlite3_stmt *head, *session;
    if (insert(journal, row, reterr) < 0)
        return -1;
    head = tci_journal_statement(journal, TCI_SQL_HEAD_SET, reterr);
    session = head ? tci_journal_statement(journal, TCI_SQL_SESSION_SET, reterr) : NULL;
    if (!session)
        return -1;
    (void)sqlite3_bind_int64(head, 1, (int64_t)row->row);
    tci_journal_bind_text(head, 2, row->state_hash);
    tci_journal_bind_text(session, 1, row->entry.session);
    (void)sqlite3_bind_int64(session, 2, (int64_t)row->step);
    tci_journal_bind_text(session, 3, row->state_hash);
    if (tci_journal_run(journal, head, reterr) < 0)
        return -1;
    return tci_journal_run(journal, session, reterr);
}

int tci_journal_append_row(struct tci_journal *journal, const struct tci_journal_entry *entry,
                           struct tci_journal_row *ret, struct tc_error *reterr)
{
    struct tci_journal_row row = { .entry = *entry };
    if (find_place(journal, &row, reterr) < 0 ||
        tci_journal_hash(&row, row.state_hash, reterr) < 0 ||
        tci_journal_insert_row(journal, &row, reterr) < 0)
        return -1;
    if (ret)
        *ret = row;
    return 0;
}

int tci_journal_append(struct tci_journal *journal, const struct tci_journal_entry *entry,
                       char ret_state_hash[TCI_SHA256_TEXT_MAX], struct tc_error *reterr)
{
    struct tci_journal_row row;
    /* Before the lock: other writers do not wait for our hashing. */
    if (tci_journal_entry_check(entry, reterr) < 0 || tci_journal_begin(journal, reterr) < 0)
        return -1;
    if (tci_journal_end(journal, tci_journal_append_row(journal, entry, &row, reterr), reterr) < 0)
        return -1;
    memcpy(ret_state_hash, row.state_hash, sizeof row.state_hash);
    return 0;
}
