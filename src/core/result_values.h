/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: how single values of a result are written: for readers, or in canonical form for the hash. */
#ifndef TCI_CORE_RESULT_VALUES_H
#define TCI_CORE_RESULT_VALUES_H

#include <stdbool.h>
#include "core/result.h"
#include "json/write.h"

struct tci_result_writer {
    struct tci_json json;
    bool canonical; /* RFC 8785: keys must come in their order */
};

void tci_put_bytes(struct tci_result_writer *to, const char *key, const char *text, size_t length);
void tci_put_text(struct tci_result_writer *to, const char *key, const char *text);
/* NULL and "" are null: there is none. */
void tci_put_name(struct tci_result_writer *to, const char *key, const char *name);
void tci_put_count(struct tci_result_writer *to, const char *key, uint64_t count);
/* 0 is null: it is not known. */
void tci_put_known_count(struct tci_result_writer *to, const char *key, uint64_t count);
void tci_put_milliseconds(struct tci_result_writer *to, const char *key, uint64_t microseconds);

#endif
