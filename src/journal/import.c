/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: reading an export into an empty journal, in one transaction. Every row is checked before it is
 * put in: its own hash, its place behind the row before it, its place in its session. One line is kept
 * in memory at a time; where sessions stand is in the journal's own tables, so that a file with a
 * million sessions needs no more than one with a single one.
 */
#include "journal/transfer.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "base/fd.h"
#include "journal/head.h"
#include "journal/journal_internal.h"
#include "journal/transfer_internal.h"
#include "json/canonical.h"

enum { read_size = 256 * 1024, progress_every = 5000 };

struct import {
    struct tci_journal *journal;
    int fd;
    const struct tci_transfer *options;
    struct tci_transfer_report *report;
    struct tci_transfer_header header;
    uint64_t line;                  /* of the file, from 1 */
    char last[TCI_SHA256_TEXT_MAX]; /* state hash of the row before */
    struct tci_buf bytes, scratch;
    size_t used; /* of bytes: the lines that were given out */
    bool ended;
};

/* ---- lines -------------------------------------------------------------------------------- */

/* What is wrong with the present line. */
static int bad_line(const struct import *import, const char *problem, struct tc_error *reterr)
{
    tci_error_set(reterr, TC_ERROR_SYNTAX, "line %" PRIu64 " of the export: %s", import->line,
                  problem);
    tci_error_place(reterr, NULL, import->line > UINT32_MAX ? 0 : (unsigned)import->line,
                    import->line > UINT32_MAX ? 0 : 1);
    tci_error_remedy(reterr, "nothing was imported; export the journal again");
    return -1;
}

static int read_more(struct import *import, struct tc_error *reterr)
{
    char *chunk;
    ssize_t got;
    /* What was given out goes; what is left of the next line moves to the front. */
    if (import->used) {
        import->bytes.length -= import->used;
        memmove(import->bytes.data, import->bytes.data + import->used, import->bytes.length);
        import->used = 0;
    }
    chunk = malloc(read_size);
    if (!chunk)
        return tci_error_no_memory(reterr);
    got = tci_read_some(import->fd, chunk, read_size);
    if (got < 0)
        tci_error_errno(reterr, errno, "cannot read the export");
    else if (got == 0)
        import->ended = true;
    else
        tci_buf_append(&import->bytes, chunk, (size_t)got);
    free(chunk);
    if (got < 0)
        return -1;
    return import->bytes.too_large ? bad_line(import, "it is too long", reterr)
                                   : tci_buf_check(&import->bytes, reterr);
}

/* The next line, without its end. 0; 1: there is no more. */
static int next_line(struct import *import, const char **ret, size_t *ret_length,
                     struct tc_error *reterr)
{
    size_t searched = 0;
    import->line++;
    for (;;) {
        size_t left = import->bytes.length - import->used;
        const char *start = left ? import->bytes.data + import->used : NULL;
        const char *end = left > searched ? memchr(start + searched, '\n', left - searched) : NULL;
        if (end) {
            *ret = start;
            *ret_length = (size_t)(end - start);
            import->used += *ret_length + 1;
            return 0;
        }
        searched = left;
        if (import->ended && left)
            return bad_line(import, "it is cut off", reterr);
        if (import->ended)
            return 1;
        if (left > TCI_TRANSFER_LINE_MAX)
            return bad_line(import, "it is too long", reterr);
        if (read_more(import, reterr) < 0)
            return -1;
    }
}

static int expect_line(struct import *import, const char **ret, size_t *ret_length,
                       struct tc_error *reterr)
{
    int r = next_line(import, ret, ret_length, reterr);
    return r > 0 ? bad_line(import, "it is missing: the export is cut off", reterr) : r;
}

/* ---- rows --------------------------------------------------------------------------------- */

/* Does the row follow the last one of its session? Behind a checkpoint a session may begin anywhere:
 * that is compared with the checkpoint when all rows are there. */
static int check_session(struct import *import, const struct tci_journal_row *row,
                         const char **ret_problem, struct tc_error *reterr)
{
    sqlite3_stmt *statement = tci_journal_statement(import->journal, TCI_SQL_SESSION, reterr);
    const char *state_hash = tci_journal_no_state;
    uint64_t step = 0;
    int more;

    if (!statement)
        return -1;
    tci_journal_bind_text(statement, 1, row->entry.session);
    more = tci_journal_step(import->journal, statement, reterr);
    if (more < 0)
        return -1;
    if (more > 0) {
        step = (uint64_t)sqlite3_column_int64(statement, 0);
        state_hash = (const char *)sqlite3_column_text(statement, 1);
    }
    if (more == 0 && import->header.first_row > 1 && row->step > 1)
        return 0;
    if (row->step != step + 1)
        *ret_problem = "it is not the next step of its session";
    else if (!state_hash || strcmp(row->previous, state_hash) != 0)
        *ret_problem = "it does not follow the step before it in its session";
    (void)sqlite3_reset(statement);
    return 0;
}

/* Who shows a row pastes these texts into JSON. Those of our own records are canonical; a stranger's
 * could close the object around them and add members of its choice. */
static bool holds_json(const struct tci_journal_entry *entry, struct tc_error *reterr)
{
    const char *texts[] = { entry->grants, entry->request, entry->result };
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    struct tc_error why = { 0 };
    bool good = arena;

    for (size_t i = 0; good && i < tci_array_size(texts); i++) {
        const char *text = texts[i], *canonical;
        good = !text || (tci_json_canonical(arena, text, strlen(text), &canonical, &why) == 0 &&
                         strcmp(canonical, text) == 0);
    }
    if (!arena || why.code == TC_ERROR_NO_MEMORY)
        tci_error_no_memory(reterr);
    return good;
}

static bool is_kind(const char *kind)
{
    return strcmp(kind, "call") == 0 || strcmp(kind, "grant") == 0 || strcmp(kind, "revoke") == 0 ||
           strcmp(kind, "checkpoint") == 0;
}

static int check_row(struct import *import, const struct tci_journal_row *row,
                     const char **ret_problem, struct tc_error *reterr)
{
    bool first = import->report->rows == 0;
    struct tc_error why = { 0 }, failed = { 0 };

    if (row->row != import->header.first_row + import->report->rows)
        *ret_problem = "it is not the next row";
    else if (!(first && row->row > 1) && strcmp(row->row_before, import->last) != 0)
        *ret_problem = "it does not follow the row before it";
    else if (!is_kind(row->entry.kind) || tci_journal_entry_check(&row->entry, &why) < 0)
        *ret_problem = "it holds what no record can hold";
    else if (!holds_json(&row->entry, &failed))
        *ret_problem = "its grants, request or result is not canonical JSON";
    else
        *ret_problem = tci_journal_row_check(row, &import->scratch, reterr);
    if (failed.code != TC_ERROR_NONE)
        return tci_error_no_memory(reterr);
    if (*ret_problem)
        return 0;
    if (reterr && reterr->code != TC_ERROR_NONE)
        return -1;
    return check_session(import, row, ret_problem, reterr);
}

static int take_row(struct import *import, const struct tci_journal_row *row,
                    struct tc_error *reterr)
{
    const char *problem = NULL;
    if (check_row(import, row, &problem, reterr) < 0)
        return -1;
    if (problem)
        return bad_line(import, problem, reterr);
    if (tci_journal_insert_row(import->journal, row, reterr) < 0)
        return -1;
    memcpy(import->last, row->state_hash, sizeof import->last);
    import->report->rows++;
    if (import->report->rows % progress_every == 0 && import->options->progress)
        import->options->progress(import->options->context, import->report->rows,
                                  import->header.rows);
    return 0;
}

static int import_row(struct import *import, struct tc_error *reterr)
{
    struct tci_journal_row row;
    json_t *value = NULL;
    const char *line = "", *problem;
    size_t length = 0;
    int r;
    if (expect_line(import, &line, &length, reterr) < 0)
        return -1;
    problem = tci_transfer_read_row(line, length, &value, &row, reterr);
    r = problem ? bad_line(import, problem, reterr) : take_row(import, &row, reterr);
    json_decref(value);
    return r;
}

static int import_signature(struct import *import, struct tc_error *reterr)
{
    struct tci_signature signature;
    const char *line = "", *problem;
    size_t length = 0;
    int r;
    if (expect_line(import, &line, &length, reterr) < 0)
        return -1;
    problem = tci_transfer_read_signature(line, length, &signature, reterr);
    if (problem)
        return bad_line(import, problem, reterr);
    r = tci_head_insert(import->journal, &signature, reterr);
    if (r > 0)
        return bad_line(import, "the signature is not a good one of a row of this journal", reterr);
    import->report->signatures += r == 0;
    return r;
}

/* ---- the whole ---------------------------------------------------------------------------- */

static int check_empty(struct tci_journal *journal, struct tc_error *reterr)
{
    sqlite3_stmt *statement = tci_journal_statement(journal, TCI_SQL_USED, reterr);
    int more = statement ? tci_journal_step(journal, statement, reterr) : -1;
    bool used;
    if (more < 0)
        return -1;
    used = more == 0 || sqlite3_column_int64(statement, 0) != 0;
    (void)sqlite3_reset(statement);
    if (!used)
        return 0;
    tci_error_set(reterr, TC_ERROR_USAGE, "the journal has records already: two chains do not mix");
    tci_error_remedy(reterr, "import into a new file: --journal FILE");
    return -1;
}

static int set_salt(struct import *import, struct tc_error *reterr)
{
    sqlite3_stmt *statement = tci_journal_statement(import->journal, TCI_SQL_SALT_SET, reterr);
    if (!statement)
        return -1;
    (void)sqlite3_bind_blob(statement, 1, import->header.salt, sizeof import->header.salt,
                            SQLITE_STATIC);
    return tci_journal_run(import->journal, statement, reterr);
}

/* An export that does not begin with row 1 must begin where its last checkpoint says, and so must its
 * sessions. That is known only now, when all rows are there. */
static int check_beginning(struct import *import, struct tc_error *reterr)
{
    struct tci_journal_report report;
    if (import->header.first_row <= 1)
        return 0;
    if (tci_journal_verify(import->journal, &report, NULL, NULL, reterr) < 0)
        return -1;
    if (report.good)
        return 0;
    import->line = report.bad_row > import->header.first_row
                       ? report.bad_row - import->header.first_row + 2
                       : 2;
    return bad_line(import, report.problem, reterr);
}

static int import_grants(struct import *import, struct tc_error *reterr)
{
    struct tci_journal_report report = { .good = true };
    sqlite3_stmt *statement;
    if (tci_journal_grants_rebuild(import->journal, reterr) < 0 ||
        tci_journal_check_grants(import->journal, &report, reterr) < 0)
        return -1;
    if (!report.good || report.bad_row) {
        import->line = report.bad_row - import->header.first_row + 2;
        return bad_line(import, report.problem, reterr);
    }
    statement = tci_journal_statement(import->journal, TCI_SQL_GRANTS_IN_FORCE, reterr);
    if (!statement || tci_journal_step(import->journal, statement, reterr) < 0)
        return -1;
    import->report->grants = (uint64_t)sqlite3_column_int64(statement, 0);
    (void)sqlite3_reset(statement);
    return 0;
}

static int read_header(struct import *import, struct tc_error *reterr)
{
    const char *line = "", *problem;
    size_t length = 0;
    if (expect_line(import, &line, &length, reterr) < 0)
        return -1;
    problem = tci_transfer_read_header(line, length, &import->header, reterr);
    if (problem)
        return bad_line(import, problem, reterr);
    return import->header.has_salt ? set_salt(import, reterr) : 0;
}

static int read_all(struct import *import, struct tc_error *reterr)
{
    const char *line = "";
    size_t length = 0;
    int r;

    if (check_empty(import->journal, reterr) < 0 || read_header(import, reterr) < 0)
        return -1;
    memcpy(import->last, tci_journal_no_state, sizeof import->last);
    for (uint64_t i = 0; i < import->header.rows; i++)
        if (import_row(import, reterr) < 0)
            return -1;
    if (strcmp(import->last, import->header.head) != 0)
        return bad_line(import, "its row is not the head that the first line names", reterr);
    for (uint64_t i = 0; i < import->header.signatures; i++)
        if (import_signature(import, reterr) < 0)
            return -1;
    r = next_line(import, &line, &length, reterr);
    if (r == 0)
        return bad_line(import, "it is more than the first line says", reterr);
    if (r < 0 || import_grants(import, reterr) < 0)
        return -1;
    return check_beginning(import, reterr);
}

int tci_journal_import(struct tci_journal *journal, int fd, const struct tci_transfer *options,
                       struct tci_transfer_report *ret, struct tc_error *reterr)
{
    struct import import = { .journal = journal,
                             .fd = fd,
                             .options = options,
                             .report = ret,
                             .bytes = TCI_BUF_INIT((size_t)TCI_TRANSFER_LINE_MAX +
                                                   (size_t)2 * read_size),
                             .scratch = TCI_BUF_INIT(2 * (size_t)TCI_TRANSFER_LINE_MAX) };
    struct tc_error error = { 0 };
    int r;

    *ret = (struct tci_transfer_report){ 0 };
    if (tci_journal_begin(journal, reterr) < 0)
        return -1;
    r = tci_journal_end(journal, read_all(&import, &error), &error);
    if (r == 0 && import.header.has_salt)
        memcpy(journal->salt, import.header.salt, sizeof journal->salt);
    if (r == 0)
        memcpy(ret->head, import.last, sizeof ret->head);
    if (r < 0 && reterr)
        *reterr = error;
    tci_buf_free(&import.bytes);
    tci_buf_free(&import.scratch);
    return r;
}
