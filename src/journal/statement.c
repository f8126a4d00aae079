/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the text of a statement and reading it back. A statement that is read is written again and
 * must give the same bytes: so there is one text for each meaning, and nothing in it goes unread.
 */
#include "journal/statement.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "base/uuid.h"
#include "journal/journal_internal.h"
#include "json/canonical.h"

void tci_journal_id(const struct tci_journal *journal, char ret[TCI_SHA256_TEXT_MAX])
{
    static const char prefix[] = "toolcage journal id\n";
    struct tci_sha256 hash;
    tci_sha256_begin(&hash);
    tci_sha256_add(&hash, prefix, sizeof prefix - 1);
    tci_sha256_add(&hash, tci_journal_salt(journal), TCI_JOURNAL_SALT_SIZE);
    tci_sha256_end_text(&hash, ret);
}

static void write_statement(const struct tci_statement *statement, char ret[TCI_STATEMENT_MAX])
{
    (void)snprintf(ret, TCI_STATEMENT_MAX,
                   "{\"journal\":\"%s\",\"purpose\":\"%s\",\"row\":%" PRIu64
                   ",\"signed_us\":%" PRId64 ",\"state_hash\":\"%s\"}",
                   statement->journal, statement->purpose, statement->row, statement->signed_us,
                   statement->state_hash);
}

int tci_statement_sign(const struct tci_statement *statement, const struct tci_sign_key *key,
                       struct tci_signature *ret, struct tc_error *reterr)
{
    write_statement(statement, ret->statement);
    tci_hex(key->public_key, sizeof key->public_key, ret->key);
    return tci_sign(key, ret->statement, strlen(ret->statement), ret->signature, reterr);
}

static void decref(json_t **value)
{
    json_decref(*value);
}

static bool copy_hash(char ret[TCI_SHA256_TEXT_MAX], const json_t *value)
{
    unsigned char bytes[TCI_SHA256_SIZE];
    if (!tci_unhex(json_string_value(value), bytes, sizeof bytes))
        return false;
    memcpy(ret, json_string_value(value), TCI_SHA256_TEXT_MAX);
    return true;
}

static bool copy_number(uint64_t *ret, const json_t *value)
{
    double number = json_number_value(value);
    if (!json_is_number(value) || !(number >= 0 && number <= (double)TCI_JOURNAL_INTEGER_MAX))
        return false;
    *ret = (uint64_t)number;
    return true;
}

static bool read_statement(const json_t *object, const char *purpose, struct tci_statement *ret)
{
    uint64_t signed_us = 0;
    *ret = (struct tci_statement){ .purpose = purpose };
    if (!json_is_object(object) || !copy_hash(ret->journal, json_object_get(object, "journal")) ||
        !copy_hash(ret->state_hash, json_object_get(object, "state_hash")) ||
        !copy_number(&ret->row, json_object_get(object, "row")) ||
        !copy_number(&signed_us, json_object_get(object, "signed_us")))
        return false;
    ret->signed_us = (int64_t)signed_us;
    return true;
}

int tci_statement_check(const struct tci_signature *signature, const char *purpose,
                        struct tci_statement *ret, struct tc_error *reterr)
{
    struct tc_error why = { 0 };
    struct tci_sign_key key;
    char again[TCI_STATEMENT_MAX];
    tc_cleanup(decref)
        json_t *object = tci_json_read(signature->statement, strlen(signature->statement), &why);

    if (!object && why.code == TC_ERROR_NO_MEMORY)
        return tci_error_no_memory(reterr);
    if (!object || !read_statement(object, purpose, ret) ||
        !tci_sign_key_from_text(signature->key, &key))
        return 1;
    write_statement(ret, again); /* with the purpose that is asked for: another one differs */
    if (strcmp(again, signature->statement) != 0)
        return 1;
    return tci_sign_check(&key, again, strlen(again), signature->signature, reterr);
}
