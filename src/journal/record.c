/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a record as bytes that are hashed, and rows as they come from the file. All columns are in the
 * canonical record but `previous`, which is hashed before it, and the texts, which are in it by their
 * hashes and by whether they are kept: to remove a text is a change, too.
 */
#include "journal/journal_internal.h"

#include <string.h>
#include "json/canonical.h"

/* Digits without printf: verify does this for every row. */
static void append_integer(struct tci_buf *out, int64_t value)
{
    char digits[24], *at = digits + sizeof digits;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (value < 0)
        *--at = '-';
    tci_buf_append(out, at, (size_t)(digits + sizeof digits - at));
}

#define literal(out, text) tci_buf_append((out), (text), sizeof(text) - 1)

/* Is there a byte in these eight that JSON escapes: below 0x20, a quote, a backslash? A byte of `x`
 * is zero where it is looked for; borrowing makes its highest bit one. It may also say so of a byte
 * behind one that is: no harm, since then all of the text is looked at closely. */
static bool has_escapes(uint64_t eight)
{
    const uint64_t ones = 0x0101010101010101, tops = 0x8080808080808080;
    uint64_t quote = eight ^ ones * '"', backslash = eight ^ ones * '\\';
    return (((eight - ones * 0x20) & ~eight) | ((quote - ones) & ~quote) |
            ((backslash - ones) & ~backslash)) &
           tops;
}

/* Nearly all texts need no escape, and verify has a dozen for every row. */
static void append_string(struct tci_buf *out, const char *text)
{
    size_t length = strlen(text), i = 0;
    for (; i + 8 <= length; i += 8) {
        uint64_t eight;
        memcpy(&eight, text + i, sizeof eight);
        if (has_escapes(eight)) {
            tci_json_canonical_string(out, text, length);
            return;
        }
    }
    for (; i < length; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == '"' || text[i] == '\\') {
            tci_json_canonical_string(out, text, length);
            return;
        }
    tci_buf_char(out, '"');
    tci_buf_append(out, text, length);
    tci_buf_char(out, '"');
}

/* Keys are in the order that RFC 8785 wants. */
void tci_journal_canonical(const struct tci_journal_row *row, struct tci_buf *out)
{
    const struct tci_journal_entry *entry = &row->entry;
    literal(out, "{\"agent\":");
    append_string(out, entry->agent);
    literal(out, ",\"call_id\":");
    append_string(out, entry->call_id);
    literal(out, ",\"ended_us\":");
    append_integer(out, entry->ended_us);
    literal(out, ",\"grants\":");
    append_string(out, entry->grants);
    literal(out, ",\"kind\":");
    append_string(out, entry->kind);
    literal(out, ",\"policy_hash\":");
    append_string(out, entry->policy_hash);
    literal(out, ",\"request_hash\":");
    append_string(out, entry->request_hash);
    if (entry->request)
        literal(out, ",\"request_kept\":true,\"result_hash\":");
    else
        literal(out, ",\"request_kept\":false,\"result_hash\":");
    append_string(out, entry->result_hash);
    if (entry->result)
        literal(out, ",\"result_kept\":true,\"row\":");
    else
        literal(out, ",\"result_kept\":false,\"row\":");
    append_integer(out, (int64_t)row->row);
    literal(out, ",\"row_before\":");
    append_string(out, row->row_before);
    literal(out, ",\"session\":");
    append_string(out, entry->session);
    literal(out, ",\"started_us\":");
    append_integer(out, entry->started_us);
    literal(out, ",\"step\":");
    append_integer(out, (int64_t)row->step);
    literal(out, ",\"tool\":");
    append_string(out, entry->tool);
    literal(out, ",\"verdict\":");
    append_string(out, entry->verdict);
    tci_buf_char(out, '}');
}

/* Digits by their bytes; 0xff: none. */
static unsigned nibble(char c)
{
    return c >= '0' && c <= '9'   ? (unsigned)(c - '0')
           : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                                  : 0xff;
}

static bool from_hex(const char *text, unsigned char ret[TCI_SHA256_SIZE])
{
    for (size_t i = 0; i < TCI_SHA256_SIZE; i++) {
        unsigned high = nibble(text[2 * i]), low = high > 15 ? high : nibble(text[2 * i + 1]);
        if (low > 15)
            return false;
        ret[i] = (unsigned char)(high << 4 | low);
    }
    return text[TCI_SHA256_TEXT_MAX - 1] == '\0';
}

/* false: `previous` is no hash. */
static bool hash_row(const struct tci_journal_row *row, struct tci_buf *scratch,
                     char ret[TCI_SHA256_TEXT_MAX])
{
    struct tci_sha256 hash;
    unsigned char previous[TCI_SHA256_SIZE];
    if (!from_hex(row->previous, previous))
        return false;
    scratch->length = 0;
    tci_journal_canonical(row, scratch);
    tci_sha256_begin(&hash);
    tci_sha256_add(&hash, previous, sizeof previous);
    tci_sha256_add(&hash, scratch->data, scratch->length);
    tci_sha256_end_text(&hash, ret);
    return true;
}

int tci_journal_hash(const struct tci_journal_row *row, char ret[TCI_SHA256_TEXT_MAX],
                     struct tc_error *reterr)
{
    tc_cleanup(tci_buf_free) struct tci_buf scratch = TCI_BUF_INIT(TCI_JOURNAL_RECORD_MAX);
    char hash[TCI_SHA256_TEXT_MAX];
    if (!hash_row(row, &scratch, hash))
        return tci_error_set(reterr, TC_ERROR_USAGE,
                             "the hash before row %llu is not one of 64 hexadecimal digits",
                             (unsigned long long)row->row);
    if (tci_buf_check(&scratch, reterr) < 0)
        return -1;
    memcpy(ret, hash, sizeof hash);
    return 0;
}

static bool text_has_hash(const char *text, const char *expected)
{
    char hash[TCI_SHA256_TEXT_MAX];
    tci_sha256_text(text, strlen(text), hash);
    return strcmp(hash, expected) == 0;
}

const char *tci_journal_row_check(const struct tci_journal_row *row, struct tci_buf *scratch,
                                  struct tc_error *reterr)
{
    const struct tci_journal_entry *entry = &row->entry;
    char hash[TCI_SHA256_TEXT_MAX];
    if (entry->request && !text_has_hash(entry->request, entry->request_hash))
        return "its request is not the one that its request_hash is of";
    if (entry->result && !text_has_hash(entry->result, entry->result_hash))
        return "its result is not the one that its result_hash is of";
    if (!hash_row(row, scratch, hash))
        return "its previous is not a hash";
    if (tci_buf_check(scratch, reterr) < 0)
        return NULL;
    return strcmp(hash, row->state_hash) == 0 ? NULL
                                              : "its state_hash is not the one of its columns";
}

/* ---- reading ------------------------------------------------------------------------------ */

/* Text as we write it: of this type, and without a NUL behind which more could hide. */
static bool read_text(sqlite3_stmt *statement, int column, const char **ret)
{
    if (sqlite3_column_type(statement, column) != SQLITE_TEXT)
        return false;
    *ret = (const char *)sqlite3_column_text(statement, column);
    return *ret && strlen(*ret) == (size_t)sqlite3_column_bytes(statement, column);
}

static bool read_optional(sqlite3_stmt *statement, int column, const char **ret)
{
    *ret = NULL;
    return sqlite3_column_type(statement, column) == SQLITE_NULL ||
           read_text(statement, column, ret);
}

/* 64 bytes, or none. */
static bool read_hash(sqlite3_stmt *statement, int column, char ret[TCI_SHA256_TEXT_MAX])
{
    const char *text;
    size_t length;
    if (!read_text(statement, column, &text))
        return false;
    length = strlen(text);
    if (length != 0 && length != TCI_SHA256_TEXT_MAX - 1)
        return false;
    memcpy(ret, text, length + 1);
    return true;
}

static bool read_integer(sqlite3_stmt *statement, int column, int64_t *ret)
{
    if (sqlite3_column_type(statement, column) != SQLITE_INTEGER)
        return false;
    *ret = sqlite3_column_int64(statement, column);
    return *ret >= 0 && *ret <= TCI_JOURNAL_INTEGER_MAX;
}

const char *tci_journal_row_read(sqlite3_stmt *statement, struct tci_journal_row *ret)
{
    struct tci_journal_entry *entry = &ret->entry;
    int64_t row = 0, step = 0;
    if (!read_integer(statement, 0, &row) || row < 1)
        return "row";
    if (!read_text(statement, 1, &entry->session))
        return "session";
    if (!read_integer(statement, 2, &step) || step < 1)
        return "step";
    if (!read_text(statement, 3, &entry->kind))
        return "kind";
    if (!read_text(statement, 4, &entry->call_id))
        return "call_id";
    if (!read_text(statement, 5, &entry->tool))
        return "tool";
    if (!read_text(statement, 6, &entry->agent))
        return "agent";
    if (!read_text(statement, 7, &entry->verdict))
        return "verdict";
    if (!read_integer(statement, 8, &entry->started_us))
        return "started_us";
    if (!read_integer(statement, 9, &entry->ended_us))
        return "ended_us";
    if (!read_optional(statement, 10, &entry->request))
        return "request";
    if (!read_hash(statement, 11, entry->request_hash))
        return "request_hash";
    if (!read_optional(statement, 12, &entry->result))
        return "result";
    if (!read_hash(statement, 13, entry->result_hash))
        return "result_hash";
    if (!read_text(statement, 14, &entry->policy_hash))
        return "policy_hash";
    if (!read_text(statement, 15, &entry->grants))
        return "grants";
    if (!read_hash(statement, 16, ret->row_before))
        return "row_before";
    if (!read_hash(statement, 17, ret->previous))
        return "previous";
    if (!read_hash(statement, 18, ret->state_hash))
        return "state_hash";
    ret->row = (uint64_t)row;
    ret->step = (uint64_t)step;
    return NULL;
}

int tci_journal_row_take(struct tci_journal *journal, sqlite3_stmt *statement,
                         struct tci_journal_row *ret, struct tc_error *reterr)
{
    const char *problem = tci_journal_row_read(statement, ret);
    if (problem && sqlite3_errcode(journal->db) == SQLITE_NOMEM)
        return tci_error_no_memory(reterr);
    if (problem)
        return tci_journal_damaged(journal, reterr, "row %lld: its %s is not what it can be",
                                   (long long)sqlite3_column_int64(statement, 0), problem);
    return 0;
}

int tci_journal_row_copy(struct tci_arena *arena, struct tci_journal_row *row)
{
    struct tci_journal_entry *entry = &row->entry;
    const char **texts[] = { &entry->kind,        &entry->session, &entry->call_id, &entry->tool,
                             &entry->agent,       &entry->verdict, &entry->request, &entry->result,
                             &entry->policy_hash, &entry->grants };
    for (size_t i = 0; i < tci_array_size(texts); i++) {
        if (!*texts[i])
            continue;
        *texts[i] = tci_arena_strdup(arena, *texts[i]);
        if (!*texts[i])
            return -1;
    }
    return 0;
}

static int get_row(struct tci_journal *journal, sqlite3_stmt *statement, uint64_t number,
                   struct tci_arena *arena, struct tci_journal_row *ret, struct tc_error *reterr)
{
    tc_cleanup(tci_buf_free) struct tci_buf scratch = TCI_BUF_INIT(TCI_JOURNAL_RECORD_MAX);
    const char *problem;
    struct tc_error failed = { 0 };
    int r;
    (void)sqlite3_bind_int64(statement, 1, (int64_t)number);
    r = tci_journal_step(journal, statement, reterr);
    if (r <= 0)
        return r < 0 ? -1 : 1;
    if (tci_journal_row_take(journal, statement, ret, reterr) < 0)
        return -1;
    problem = tci_journal_row_check(ret, &scratch, &failed);
    if (problem)
        return tci_journal_damaged(journal, reterr, "row %llu: %s", (unsigned long long)number,
                                   problem);
    if (failed.code != TC_ERROR_NONE || tci_journal_row_copy(arena, ret) < 0)
        return tci_error_no_memory(reterr);
    return 0;
}

int tci_journal_row_get(struct tci_journal *journal, uint64_t number, struct tci_arena *arena,
                        struct tci_journal_row *ret, struct tc_error *reterr)
{
    sqlite3_stmt *statement = tci_journal_statement(journal, TCI_SQL_ROW, reterr);
    int r;
    if (!statement)
        return -1;
    r = get_row(journal, statement, number, arena, ret, reterr);
    (void)sqlite3_reset(statement);
    return r == 0 ? tci_journal_row_linked(journal, ret, reterr) : r;
}
