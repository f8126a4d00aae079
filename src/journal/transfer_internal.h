/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what writing and reading an export share. */
#ifndef TCI_JOURNAL_TRANSFER_INTERNAL_H
#define TCI_JOURNAL_TRANSFER_INTERNAL_H

#include "journal/journal.h"
#include "journal/statement.h"

#define TCI_TRANSFER_FORMAT "toolcage journal export"

/* Bytes of a line. A reader keeps one line at a time. */
enum { TCI_TRANSFER_LINE_MAX = 96 * 1024 * 1024 };

struct tci_transfer_header {
    uint64_t first_row, rows, signatures; /* first_row is 0 without rows */
    char head[TCI_SHA256_TEXT_MAX];
    unsigned char salt[32];
    bool has_salt;
};

/* import_line.c: reading a line. What is wrong with it as a sentence, or NULL; *reterr is set when
 * memory ran out. Texts of a row live in `value`, which the caller frees with json_decref. */
struct json_t;
const char *tci_transfer_read_header(const char *line, size_t length,
                                     struct tci_transfer_header *ret, struct tc_error *reterr);
const char *tci_transfer_read_row(const char *line, size_t length, struct json_t **ret_value,
                                  struct tci_journal_row *ret, struct tc_error *reterr);
const char *tci_transfer_read_signature(const char *line, size_t length, struct tci_signature *ret,
                                        struct tc_error *reterr);

#endif
