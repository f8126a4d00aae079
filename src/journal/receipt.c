/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: writing and checking receipts. Everything that is hashed or signed is in a receipt as a text,
 * byte for byte, so that any language checks it with SHA-256 and Ed25519 alone:
 *
 *   state_hash = SHA-256(previous || record), request_hash = SHA-256(request), and so on.
 *
 * Trusts nothing of a receipt that is checked: it comes from a stranger.
 */
#include "journal/receipt.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "journal/head.h"
#include "journal/journal_internal.h"
#include "journal/statement.h"
#include "json/canonical.h"

static const char format_name[] = "toolcage receipt";

enum { record_members = 17 }; /* of a canonical record */

/* ---- writing ------------------------------------------------------------------------------ */

/* One member of canonical JSON; the caller adds them in their order. */
static void add_text(struct tci_buf *out, const char *name, const char *value)
{
    tci_buf_printf(out, "%c\"%s\":", out->length ? ',' : '{', name);
    tci_json_canonical_string(out, value, strlen(value));
}

struct writing {
    struct tci_journal *journal;
    bool texts, found;
    const struct tci_sign_key *key;
    struct tci_buf *out;
};

static int write_signature(const struct writing *writing, const struct tci_journal_row *row,
                           struct tc_error *reterr)
{
    struct tci_statement statement = { .purpose = TCI_PURPOSE_RECEIPT,
                                       .row = row->row,
                                       .signed_us = tci_journal_now() };
    struct tci_signature signature;
    tci_journal_id(writing->journal, statement.journal);
    memcpy(statement.state_hash, row->state_hash, sizeof statement.state_hash);
    if (tci_statement_sign(&statement, writing->key, &signature, reterr) < 0)
        return -1;
    tci_buf_printf(writing->out,
                   ",\"signature\":{\"key\":\"%s\",\"signature\":\"%s\",\"statement\":",
                   signature.key, signature.signature);
    tci_json_canonical_string(writing->out, signature.statement, strlen(signature.statement));
    tci_buf_char(writing->out, '}');
    return 0;
}

static int write_row(void *context, const struct tci_journal_row *row, struct tc_error *reterr)
{
    struct writing *writing = context;
    tc_cleanup(tci_buf_free) struct tci_buf record = TCI_BUF_INIT(TCI_RECEIPT_MAX),
                                            scratch = TCI_BUF_INIT(TCI_RECEIPT_MAX);
    struct tci_buf *out = writing->out;
    const char *problem;

    if (strcmp(row->entry.kind, "call") != 0)
        return 0;
    problem = tci_journal_row_check(row, &scratch, reterr);
    if (problem)
        return tci_journal_damaged(writing->journal, reterr, "row %llu: %s",
                                   (unsigned long long)row->row, problem);
    if (tci_buf_check(&scratch, reterr) < 0 ||
        tci_journal_row_linked(writing->journal, row, reterr) < 0)
        return -1;
    tci_journal_canonical(row, &record);
    if (tci_buf_check(&record, reterr) < 0)
        return -1;
    writing->found = true;
    out->length = 0; /* the last one counts, if an id was used twice */
    add_text(out, "format", format_name);
    add_text(out, "previous", row->previous);
    add_text(out, "record", record.data);
    if (writing->texts && row->entry.request)
        add_text(out, "request", row->entry.request);
    if (writing->texts && row->entry.result)
        add_text(out, "result", row->entry.result);
    if (writing->key && write_signature(writing, row, reterr) < 0)
        return -1;
    add_text(out, "state_hash", row->state_hash);
    tci_buf_string(out, ",\"version\":1}\n");
    return tci_buf_check(out, reterr);
}

int tci_receipt_write(struct tci_journal *journal, const char *call_id, bool texts,
                      const struct tci_sign_key *key, struct tci_buf *out, struct tc_error *reterr)
{
    struct writing writing = { .journal = journal, .texts = texts, .key = key, .out = out };
    struct tci_journal_query query = { .call_id = call_id };
    if (!*call_id)
        return 1;
    /* A row that says the truth about itself may still have been put in. */
    if (key &&
        tci_journal_require_good(journal, "a signature would vouch for what is wrong", reterr) < 0)
        return -1;
    if (tci_journal_each(journal, &query, write_row, &writing, reterr) < 0)
        return -1;
    return writing.found ? 0 : 1;
}

/* ---- checking ----------------------------------------------------------------------------- */

static void decref(json_t **value)
{
    json_decref(*value);
}

tci_printf_like(2, 3) static int bad(struct tci_receipt_report *report, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(report->problem, sizeof report->problem, format, args);
    va_end(args);
    report->good = false;
    return 1;
}

/* A text of an object, without NUL inside; NULL: there is none. */
static const char *text_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    const char *text = json_string_value(value);
    return text && strlen(text) == json_string_length(value) ? text : NULL;
}

static bool is_hash(const char *text)
{
    unsigned char bytes[TCI_SHA256_SIZE];
    return tci_unhex(text, bytes, sizeof bytes);
}

/* Nothing may be in it that nobody checks. */
static int check_members(const json_t *root, struct tci_receipt_report *report)
{
    static const char *const known[] = { "format", "previous",  "record",     "request",
                                         "result", "signature", "state_hash", "version" };
    const char *format = text_of(root, "format");
    const json_t *version = json_object_get(root, "version");
    const char *name;
    json_t *value, *object = (json_t *)(uintptr_t)root; /* the macro takes no const */

    if (!json_is_object(root) || !format || strcmp(format, format_name) != 0)
        return bad(report, "this is not a receipt of toolcage");
    if (!json_is_number(version) || json_number_value(version) != 1.0)
        return bad(report, "it is a receipt of a version that is not known here");
    json_object_foreach(object, name, value)
    {
        size_t i = 0;
        while (i < tci_array_size(known) && strcmp(known[i], name) != 0)
            i++;
        if (i == tci_array_size(known))
            return bad(report, "it has a member that no receipt has");
    }
    return 0;
}

/* state_hash = SHA-256(previous || record) */
static int check_state(const json_t *root, struct tci_receipt_report *report)
{
    const char *record = text_of(root, "record"), *previous = text_of(root, "previous");
    const char *state_hash = text_of(root, "state_hash");
    unsigned char before[TCI_SHA256_SIZE];
    struct tci_sha256 hash;

    if (!record || !tci_unhex(previous, before, sizeof before) || !is_hash(state_hash))
        return bad(report, "\"record\", \"previous\" or \"state_hash\" is missing or malformed");
    tci_sha256_begin(&hash);
    tci_sha256_add(&hash, before, sizeof before);
    tci_sha256_add(&hash, record, strlen(record));
    tci_sha256_end_text(&hash, report->state_hash);
    if (strcmp(report->state_hash, state_hash) != 0)
        return bad(report, "the record does not give the state hash: one of them was changed");
    return 0;
}

/* false: it is longer than there is room for, and was cut. */
static bool copy(char *to, size_t size, const json_t *record, const char *name)
{
    const char *text = text_of(record, name);
    int length = snprintf(to, size, "%s", text ? text : "");
    return length >= 0 && (size_t)length < size;
}

/* For people: a name that was cut must not look like one that is so short. */
static void copy_name(char *to, size_t size, const json_t *record, const char *name)
{
    if (!copy(to, size, record, name))
        memcpy(to + size - 4, "...", 4);
}

/* What the record says, for people. false: it is not of the form of a record. */
static bool read_record(const json_t *record, struct tci_receipt_report *report)
{
    static const char *const texts[] = { "agent",       "call_id",      "grants",  "kind",
                                         "policy_hash", "request_hash", "session", "result_hash",
                                         "row_before",  "tool",         "verdict" };
    const json_t *started = json_object_get(record, "started_us");
    double number = json_number_value(started);

    for (size_t i = 0; i < tci_array_size(texts); i++)
        if (!text_of(record, texts[i]))
            return false;
    if (json_object_size(record) != record_members || !json_is_number(started) ||
        !(number >= 0 && number <= (double)TCI_JOURNAL_INTEGER_MAX))
        return false;
    copy_name(report->call_id, sizeof report->call_id, record, "call_id");
    copy_name(report->tool, sizeof report->tool, record, "tool");
    copy_name(report->agent, sizeof report->agent, record, "agent");
    copy_name(report->session, sizeof report->session, record, "session");
    copy_name(report->verdict, sizeof report->verdict, record, "verdict");
    report->started_us = (int64_t)number;
    return strcmp(text_of(record, "kind"), "call") == 0;
}

static int check_text(const json_t *root, const json_t *record, const char *name,
                      const char *hash_name, bool *ret_there, struct tci_receipt_report *report)
{
    const char *text = text_of(root, name), *hash = text_of(record, hash_name);
    char found[TCI_SHA256_TEXT_MAX];
    if (!json_object_get(root, name))
        return 0;
    if (!text || !hash)
        return bad(report, "the %s is malformed", name);
    tci_sha256_text(text, strlen(text), found);
    if (strcmp(found, hash) != 0)
        return bad(report, "the %s is not the one of the record", name);
    *ret_there = true;
    return 0;
}

static int check_record(const json_t *root, struct tci_receipt_report *report,
                        struct tc_error *reterr)
{
    const char *text = text_of(root, "record");
    struct tc_error why = { 0 };
    tc_cleanup(decref) json_t *record = tci_json_read(text, strlen(text), &why);

    if (!record && why.code == TC_ERROR_NO_MEMORY)
        return tci_error_no_memory(reterr);
    if (!json_is_object(record))
        return bad(report, "the record is not a JSON object");
    if (!read_record(record, report))
        return bad(report, "the record is not one of a call");
    if (check_text(root, record, "request", "request_hash", &report->has_request, report) != 0 ||
        check_text(root, record, "result", "result_hash", &report->has_result, report) != 0)
        return 1;
    return 0;
}

static int check_signature(const json_t *root, const struct tci_sign_key *key,
                           struct tci_receipt_report *report, struct tc_error *reterr)
{
    const json_t *object = json_object_get(root, "signature");
    struct tci_signature signature = { 0 };
    struct tci_statement statement;
    int r;

    if (!object)
        return key ? bad(report, "it is not signed") : 0;
    /* Cut to their length, many keys and signatures would be the one that is good. */
    if (json_object_size(object) != 3 ||
        !copy(signature.key, sizeof signature.key, object, "key") ||
        !copy(signature.signature, sizeof signature.signature, object, "signature") ||
        !copy(signature.statement, sizeof signature.statement, object, "statement"))
        return bad(report, "the signature is malformed");
    r = tci_statement_check(&signature, TCI_PURPOSE_RECEIPT, &statement, reterr);
    if (r != 0)
        return r < 0 ? -1 : bad(report, "the signature is not good");
    if (strcmp(statement.state_hash, report->state_hash) != 0)
        return bad(report, "the signature is for another record");
    report->is_signed = true;
    report->signed_us = statement.signed_us;
    memcpy(report->key, signature.key, sizeof report->key);
    if (key) {
        char text_of_key[TCI_SIGN_KEY_TEXT_MAX];
        tci_hex(key->public_key, sizeof key->public_key, text_of_key);
        report->by_given_key = strcmp(text_of_key, signature.key) == 0;
        if (!report->by_given_key)
            return bad(report, "it is signed by another key");
    }
    return 0;
}

int tci_receipt_check(const char *text, size_t length, const struct tci_sign_key *key,
                      struct tci_receipt_report *ret, struct tc_error *reterr)
{
    struct tc_error why = { 0 };
    tc_cleanup(decref) json_t *root = tci_json_read(text, length, &why);
    int r;

    *ret = (struct tci_receipt_report){ 0 };
    if (!root && why.code == TC_ERROR_NO_MEMORY)
        return tci_error_no_memory(reterr);
    if (!root) {
        bad(ret, "it is not JSON: %s", why.message);
        return 0;
    }
    r = check_members(root, ret);
    if (r == 0)
        r = check_state(root, ret);
    if (r == 0)
        r = check_record(root, ret, reterr);
    if (r == 0)
        r = check_signature(root, key, ret, reterr);
    ret->good = r == 0;
    return r < 0 ? -1 : 0;
}
