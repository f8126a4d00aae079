/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: from a record of the journal to the result that it holds. Trusts: nothing about the record. One
 * that does not fit its own hashes was changed after it was made, and is no result.
 */
#include "core/record.h"

#include <string.h>
#include "journal/journal.h"

/* Are the texts those that the hashes, and so the chain, were made from? */
static int is_genuine(const struct tci_journal_row *row, bool *ret, struct tc_error *reterr)
{
    char hash[TCI_SHA256_TEXT_MAX];
    tci_sha256_text(row->entry.result, strlen(row->entry.result), hash);
    *ret = false;
    if (strcmp(hash, row->entry.result_hash) != 0)
        return 0;
    if (tci_journal_hash(row, hash, reterr) < 0)
        return -1;
    *ret = strcmp(hash, row->state_hash) == 0;
    return 0;
}

int tci_record_read(const struct tci_journal_row *row, struct tci_result *result,
                    const char **ret_why, const char **ret_fix, struct tc_error *reterr)
{
    struct tc_result *public = &result->public;
    bool genuine;

    if (!row->entry.result) {
        *ret_why = "the record holds only hashes";
        *ret_fix = "set record = true for the tool, and record a new session";
        return 1;
    }
    if (is_genuine(row, &genuine, reterr) < 0)
        return -1;
    if (!genuine) {
        *ret_why = "the record does not fit its hash: it was changed";
        *ret_fix = "run toolcage journal verify, which names the first bad row";
        return 1;
    }
    memcpy(public->state_hash, row->state_hash, sizeof public->state_hash);
    return tci_result_read(result, row->entry.result, reterr);
}
