/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: writing an export. Texts of a row are in it as strings, byte for byte: what is hashed can be
 * hashed again without a writer of canonical JSON.
 */
#include "journal/transfer.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "base/fd.h"
#include "base/uuid.h"
#include "journal/head.h"
#include "journal/journal_internal.h"
#include "journal/transfer_internal.h"
#include "json/canonical.h"

enum { flush_at = 256 * 1024, progress_every = 10000 };

struct export
{
    struct tci_journal *journal;
    int fd;
    const struct tci_transfer *options;
    struct tci_transfer_report *report;
    uint64_t all, first_row;
    struct tci_buf out, scratch;
};

static int flush(struct export *export, size_t unless, struct tc_error *reterr)
{
    if (tci_buf_check(&export->out, reterr) < 0)
        return -1;
    if (export->out.length < unless || !export->out.length)
        return 0;
    if (tci_write_all(export->fd, export->out.data, export->out.length) < 0) {
        tci_error_errno(reterr, errno, "cannot write the export");
        tci_error_remedy(reterr, "check where it goes: is there space?");
        return -1;
    }
    export->out.length = 0;
    return 0;
}

/* ---- lines -------------------------------------------------------------------------------- */

static void add_text(struct tci_buf *out, const char *name, const char *value)
{
    tci_buf_printf(out, "\"%s\":", name);
    if (value)
        tci_json_canonical_string(out, value, strlen(value));
    else
        tci_buf_string(out, "null");
    tci_buf_char(out, ',');
}

/* Members in the order of RFC 8785. */
static int write_row(void *context, const struct tci_journal_row *row, struct tc_error *reterr)
{
    const struct tci_journal_entry *entry = &row->entry;
    struct export *export = context;
    struct tci_buf *out = &export->out;
    size_t before = out->length;
    struct tc_error failed = { 0 };
    const char *problem = tci_journal_row_check(row, &export->scratch, &failed);

    /* Whoever gets it would take it for what was recorded. */
    if (problem)
        return tci_journal_damaged(export->journal, reterr, "row %" PRIu64 ": %s", row->row,
                                   problem);
    if (failed.code != TC_ERROR_NONE)
        return tci_error_no_memory(reterr);
    tci_buf_char(out, '{');
    add_text(out, "agent", entry->agent);
    add_text(out, "call_id", entry->call_id);
    tci_buf_printf(out, "\"ended_us\":%" PRId64 ",", entry->ended_us);
    add_text(out, "grants", entry->grants);
    add_text(out, "kind", entry->kind);
    add_text(out, "policy_hash", entry->policy_hash);
    add_text(out, "previous", row->previous);
    add_text(out, "request", entry->request);
    add_text(out, "request_hash", entry->request_hash);
    add_text(out, "result", entry->result);
    add_text(out, "result_hash", entry->result_hash);
    tci_buf_printf(out, "\"row\":%" PRIu64 ",", row->row);
    add_text(out, "row_before", row->row_before);
    add_text(out, "session", entry->session);
    tci_buf_printf(out, "\"started_us\":%" PRId64 ",", entry->started_us);
    add_text(out, "state_hash", row->state_hash);
    tci_buf_printf(out, "\"step\":%" PRIu64 ",", row->step);
    add_text(out, "tool", entry->tool);
    add_text(out, "verdict", entry->verdict);
    out->length -= out->length ? 1 : 0; /* the last comma */
    tci_buf_string(out, "}\n");
    if (out->length - before > TCI_TRANSFER_LINE_MAX) {
        tci_error_set(reterr, TC_ERROR_TOO_LARGE, "row %" PRIu64 " is too large to be exported",
                      row->row);
        tci_error_remedy(reterr, "copy the journal's file instead, with sqlite3's .backup");
        return -1;
    }
    export->report->grants += strcmp(entry->kind, "grant") == 0;
    if (++export->report->rows % progress_every == 0 && export->options->progress)
        export->options->progress(export->options->context, export->report->rows, export->all);
    return flush(export, flush_at, reterr);
}

static int write_signature(void *context, uint64_t row, const char *state_hash,
                           const struct tci_signature *signature, struct tc_error *reterr)
{
    struct export *export = context;
    (void)row;
    (void)state_hash;
    tci_buf_char(&export->out, '{');
    add_text(&export->out, "public_key", signature->key);
    add_text(&export->out, "signature", signature->signature);
    add_text(&export->out, "statement", signature->statement);
    export->out.length -= export->out.length ? 1 : 0;
    tci_buf_string(&export->out, "}\n");
    export->report->signatures++;
    return flush(export, flush_at, reterr);
}

static void write_header(struct export *export, uint64_t signatures)
{
    struct tci_buf *out = &export->out;
    char id[TCI_SHA256_TEXT_MAX], salt[2 * TCI_JOURNAL_SALT_SIZE + 1];
    tci_journal_id(export->journal, id);
    tci_hex(tci_journal_salt(export->journal), TCI_JOURNAL_SALT_SIZE, salt);
    tci_buf_printf(out,
                   "{\"first_row\":%" PRIu64 ",\"format\":\"" TCI_TRANSFER_FORMAT
                   "\",\"head\":\"%s\",\"journal\":\"%s\",\"rows\":%" PRIu64 ",",
                   export->first_row, export->report->head, id, export->all);
    if (export->options->salt)
        add_text(out, "salt", salt);
    tci_buf_printf(out, "\"signatures\":%" PRIu64 ",\"version\":1}\n", signatures);
}

/* ------------------------------------------------------------------------------------------- */

static int count_signature(void *context, uint64_t row, const char *state_hash,
                           const struct tci_signature *signature, struct tc_error *reterr)
{
    (void)row;
    (void)state_hash;
    (void)signature;
    (void)reterr;
    ++*(uint64_t *)context;
    return 0;
}

/* How many rows there are, from which, and the hash of the last: of the rows themselves. */
static int measure(struct export *export, struct tc_error *reterr)
{
    sqlite3_stmt *statement = tci_journal_statement(export->journal, TCI_SQL_EXTENT, reterr);
    const char *head;
    int more = statement ? tci_journal_step(export->journal, statement, reterr) : -1;
    if (more <= 0)
        return more < 0 ? -1 : tci_journal_damaged(export->journal, reterr, "it cannot be counted");
    export->first_row = (uint64_t)sqlite3_column_int64(statement, 0);
    export->all = (uint64_t)sqlite3_column_int64(statement, 1);
    head = (const char *)sqlite3_column_text(statement, 2);
    memcpy(export->report->head, tci_journal_no_state, sizeof export->report->head);
    if (head && strlen(head) == TCI_SHA256_TEXT_MAX - 1)
        memcpy(export->report->head, head, TCI_SHA256_TEXT_MAX);
    (void)sqlite3_reset(statement);
    return 0;
}

static int write_all(struct export *export, struct tc_error *reterr)
{
    struct tci_journal_query everything = { 0 };
    uint64_t signatures = 0;
    if (measure(export, reterr) < 0 ||
        tci_head_each(export->journal, count_signature, &signatures, reterr) < 0)
        return -1;
    write_header(export, signatures);
    if (tci_journal_each(export->journal, &everything, write_row, export, reterr) < 0 ||
        tci_head_each(export->journal, write_signature, export, reterr) < 0)
        return -1;
    return flush(export, 0, reterr);
}

int tci_journal_export(struct tci_journal *journal, int fd, const struct tci_transfer *options,
                       struct tci_transfer_report *ret, struct tc_error *reterr)
{
    struct export export = { .journal = journal,
                             .fd = fd,
                             .options = options,
                             .report = ret,
                             .out = TCI_BUF_INIT(2 * (size_t)TCI_TRANSFER_LINE_MAX),
                             .scratch = TCI_BUF_INIT(TCI_JOURNAL_RECORD_MAX) };
    int r;

    *ret = (struct tci_transfer_report){ 0 };
    if (tci_journal_lock(journal, reterr) < 0)
        return -1;
    r = tci_journal_exec(journal, "BEGIN", reterr); /* one moment of the file, for all of it */
    if (r == 0) {
        r = write_all(&export, reterr);
        (void)sqlite3_exec(journal->db, "ROLLBACK", NULL, NULL, NULL);
    }
    tci_journal_unlock(journal);
    tci_buf_free(&export.out);
    tci_buf_free(&export.scratch);
    return r;
}
