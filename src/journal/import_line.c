/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the lines of an export, read strictly: every member that must be there is, with its type, and
 * no other. Duplicate keys and depth are jansson's to refuse. It trusts nothing: an import may be a
 * stranger's file.
 */
#include <jansson.h>
#include <string.h>
#include "journal/journal_internal.h"
#include "journal/transfer_internal.h"
#include "json/canonical.h"

static void decref(json_t **value)
{
    json_decref(*value);
}

/* An object with exactly so many members. Which ones, those show who look for them. */
static const char *read_object(const char *line, size_t length, json_t **ret,
                               struct tc_error *reterr)
{
    struct tc_error why = { 0 };
    json_t *value = tci_json_read(line, length, &why);
    if (!value && why.code == TC_ERROR_NO_MEMORY)
        tci_error_no_memory(reterr);
    if (!value)
        return "it is not JSON, is too deep, or has a key twice";
    if (!json_is_object(value)) {
        json_decref(value);
        return "it is not a JSON object";
    }
    *ret = value;
    return NULL;
}

/* NULL without one; a text with a NUL inside is none, since what is behind it would go unread. */
static const char *text_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    const char *text = json_string_value(value);
    return text && strlen(text) == json_string_length(value) ? text : NULL;
}

static bool number_of(const json_t *object, const char *name, uint64_t *ret)
{
    const json_t *value = json_object_get(object, name);
    double number = json_number_value(value);
    if (!json_is_number(value) || !(number >= 0 && number <= (double)TCI_JOURNAL_INTEGER_MAX))
        return false;
    *ret = (uint64_t)number;
    return (double)*ret == number;
}

static bool hash_of(const json_t *object, const char *name, bool may_be_empty,
                    char ret[TCI_SHA256_TEXT_MAX])
{
    const char *text = text_of(object, name);
    unsigned char bytes[TCI_SHA256_SIZE];
    if (!text || (*text ? !tci_unhex(text, bytes, sizeof bytes) : !may_be_empty))
        return false;
    memcpy(ret, text, strlen(text) + 1);
    return true;
}

const char *tci_transfer_read_header(const char *line, size_t length,
                                     struct tci_transfer_header *ret, struct tc_error *reterr)
{
    tc_cleanup(decref) json_t *object = NULL;
    const char *problem = read_object(line, length, &object, reterr), *format;
    char journal[TCI_SHA256_TEXT_MAX];
    uint64_t version;

    *ret = (struct tci_transfer_header){ 0 };
    if (problem)
        return problem;
    format = text_of(object, "format");
    if (!format || strcmp(format, TCI_TRANSFER_FORMAT) != 0 ||
        !number_of(object, "version", &version))
        return "it is not the header of an export of a journal";
    if (version != 1)
        return "the export has a version that is not known here";
    ret->has_salt = json_object_get(object, "salt");
    if (json_object_size(object) != (ret->has_salt ? 8 : 7) ||
        !number_of(object, "first_row", &ret->first_row) ||
        !number_of(object, "rows", &ret->rows) ||
        !number_of(object, "signatures", &ret->signatures) ||
        !hash_of(object, "head", false, ret->head) || !hash_of(object, "journal", false, journal) ||
        (ret->has_salt && !tci_unhex(text_of(object, "salt"), ret->salt, sizeof ret->salt)) ||
        (ret->first_row == 0) != (ret->rows == 0))
        return "the header has other members than it must";
    return NULL;
}

/* A member that may be null. */
static bool optional_text(const json_t *object, const char *name, const char **ret)
{
    *ret = text_of(object, name);
    return *ret || json_is_null(json_object_get(object, name));
}

static const char *fill_row(const json_t *object, struct tci_journal_row *ret)
{
    struct tci_journal_entry *entry = &ret->entry;
    const struct {
        const char *name, **place;
    } texts[] = {
        { "agent", &entry->agent },     { "call_id", &entry->call_id },
        { "grants", &entry->grants },   { "kind", &entry->kind },
        { "session", &entry->session }, { "policy_hash", &entry->policy_hash },
        { "tool", &entry->tool },       { "verdict", &entry->verdict },
    };
    uint64_t started = 0, ended = 0;

    for (size_t i = 0; i < tci_array_size(texts); i++)
        if (!(*texts[i].place = text_of(object, texts[i].name)))
            return "a text of the row is missing or is not one";
    if (!number_of(object, "row", &ret->row) || !number_of(object, "step", &ret->step) ||
        !number_of(object, "started_us", &started) || !number_of(object, "ended_us", &ended))
        return "a number of the row is missing or is not one";
    if (!hash_of(object, "request_hash", true, entry->request_hash) ||
        !hash_of(object, "result_hash", true, entry->result_hash) ||
        !hash_of(object, "row_before", false, ret->row_before) ||
        !hash_of(object, "previous", false, ret->previous) ||
        !hash_of(object, "state_hash", false, ret->state_hash))
        return "a hash of the row is missing or is not one";
    if (!optional_text(object, "request", &entry->request) ||
        !optional_text(object, "result", &entry->result))
        return "the request or the result is neither a text nor null";
    if (json_object_size(object) != 19)
        return "the row has a member that no row has";
    entry->started_us = (int64_t)started;
    entry->ended_us = (int64_t)ended;
    return NULL;
}

const char *tci_transfer_read_row(const char *line, size_t length, json_t **ret_value,
                                  struct tci_journal_row *ret, struct tc_error *reterr)
{
    tc_cleanup(decref) json_t *object = NULL;
    const char *problem = read_object(line, length, &object, reterr);
    *ret = (struct tci_journal_row){ 0 };
    if (!problem)
        problem = fill_row(object, ret);
    if (!problem)
        *ret_value = tc_take(object);
    return problem;
}

const char *tci_transfer_read_signature(const char *line, size_t length, struct tci_signature *ret,
                                        struct tc_error *reterr)
{
    tc_cleanup(decref) json_t *object = NULL;
    const char *problem = read_object(line, length, &object, reterr);
    const char *key, *signature, *statement;
    if (problem)
        return problem;
    key = text_of(object, "public_key");
    signature = text_of(object, "signature");
    statement = text_of(object, "statement");
    if (json_object_size(object) != 3 || !key || strlen(key) >= sizeof ret->key || !signature ||
        strlen(signature) >= sizeof ret->signature || !statement ||
        strlen(statement) >= sizeof ret->statement)
        return "it is not a signature";
    *ret = (struct tci_signature){ 0 };
    memcpy(ret->key, key, strlen(key));
    memcpy(ret->signature, signature, strlen(signature));
    memcpy(ret->statement, statement, strlen(statement));
    return NULL;
}
