/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the text of a checkpoint: where a chain goes on whose beginning was removed. */
#include "journal/journal_internal.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "json/canonical.h"

static void decref(json_t **value)
{
    json_decref(*value);
}

int tci_journal_checkpoint_write(struct tci_journal_checkpoint *checkpoint, struct tci_arena *arena,
                                 const char **ret_text, struct tc_error *reterr)
{
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(TCI_JOURNAL_TEXT_MAX);
    if (checkpoint->session_count)
        qsort(checkpoint->sessions, checkpoint->session_count, sizeof *checkpoint->sessions,
              tci_json_compare_keys);
    tci_buf_printf(&out, "{\"rows\":%llu,\"sessions\":{", (unsigned long long)checkpoint->rows);
    for (size_t i = 0; i < checkpoint->session_count; i++) {
        const struct tci_journal_checkpoint_session *session = &checkpoint->sessions[i];
        if (i)
            tci_buf_char(&out, ',');
        tci_json_canonical_string(&out, session->name, strlen(session->name));
        tci_buf_printf(&out, ":{\"state_hash\":\"%s\",\"step\":%llu}", session->state_hash,
                       (unsigned long long)session->step);
    }
    tci_buf_printf(&out, "},\"state_hash\":\"%s\"}", checkpoint->state_hash);
    if (tci_buf_check(&out, reterr) < 0)
        return -1;
    *ret_text = tci_arena_strndup(arena, out.data, out.length);
    return *ret_text ? 0 : tci_error_no_memory(reterr);
}

static bool read_number(const json_t *object, const char *key, uint64_t *ret)
{
    const json_t *value = json_object_get(object, key);
    double number = json_number_value(value);
    if (!json_is_number(value) || !(number >= 0) || number > (double)TCI_JOURNAL_INTEGER_MAX)
        return false;
    *ret = (uint64_t)number;
    return (double)*ret == number;
}

static bool read_hash(const json_t *object, const char *key, char ret[TCI_SHA256_TEXT_MAX])
{
    const char *text = json_string_value(json_object_get(object, key));
    if (!text || strlen(text) != TCI_SHA256_TEXT_MAX - 1)
        return false;
    memcpy(ret, text, TCI_SHA256_TEXT_MAX);
    return true;
}

/* 1: not of this form. */
static int read_sessions(json_t *object, struct tci_arena *arena,
                         struct tci_journal_checkpoint *ret, struct tc_error *reterr)
{
    size_t count = 0;
    if (!json_is_object(object))
        return 1;
    ret->sessions = tci_arena_array(arena, json_object_size(object), sizeof *ret->sessions);
    if (!ret->sessions)
        return tci_error_no_memory(reterr);
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
        struct tci_journal_checkpoint_session *session = &ret->sessions[count++];
        const json_t *value = json_object_iter_value(i);
        session->name = tci_arena_strdup(arena, json_object_iter_key(i));
        if (!session->name)
            return tci_error_no_memory(reterr);
        if (json_object_size(value) != 2 || !read_number(value, "step", &session->step) ||
            !read_hash(value, "state_hash", session->state_hash))
            return 1;
    }
    ret->session_count = count;
    return 0;
}

/* Fails on anything that is not of this form. */
static int read_checkpoint(const char *text, struct tci_arena *arena,
                           struct tci_journal_checkpoint *ret, struct tc_error *reterr)
{
    tc_cleanup(decref) json_t *object = tci_json_read(text, strlen(text), reterr);
    int r;
    if (!object)
        return -1;
    r = json_object_size(object) == 3 && read_number(object, "rows", &ret->rows) &&
                read_hash(object, "state_hash", ret->state_hash)
            ? read_sessions(json_object_get(object, "sessions"), arena, ret, reterr)
            : 1;
    if (r > 0)
        tci_error_set(reterr, TC_ERROR_SYNTAX, "a checkpoint of the journal is not of its form");
    return r == 0 ? 0 : -1;
}

int tci_journal_checkpoint_last(struct tci_journal *journal, struct tci_arena *arena,
                                struct tci_journal_checkpoint *ret, struct tc_error *reterr)
{
    sqlite3_stmt *statement = tci_journal_statement(journal, TCI_SQL_LAST_CHECKPOINT, reterr);
    struct tci_journal_row row;
    int64_t number;
    int r;
    if (!statement)
        return -1;
    r = tci_journal_step(journal, statement, reterr);
    if (r <= 0)
        return r < 0 ? -1 : 1;
    number = sqlite3_column_int64(statement, 0);
    (void)sqlite3_reset(statement);
    r = tci_journal_row_get(journal, (uint64_t)number, arena, &row, reterr);
    if (r < 0)
        return -1;
    if (r > 0 || !row.entry.request || strcmp(row.entry.kind, "checkpoint") != 0)
        return tci_journal_damaged(journal, reterr, "row %lld: a checkpoint without its text",
                                   (long long)number);
    return read_checkpoint(row.entry.request, arena, ret, reterr);
}
