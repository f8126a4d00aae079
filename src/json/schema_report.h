/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: places in schemas as text. */
#ifndef TCI_JSON_SCHEMA_REPORT_H
#define TCI_JSON_SCHEMA_REPORT_H

#include "json/schema_program.h"

enum { TCI_SCHEMA_PATH_MAX = 64 * 1024 };

/* "https://example.com/a#/properties/b/type"; `keyword` may be NULL. */
void tci_schema_path(const struct tci_schema_node *node, const char *keyword, struct tci_buf *out);

#endif
