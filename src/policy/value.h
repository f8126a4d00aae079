/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: a setting's value as text: TOML for `dump` and `explain`, JSON for programs. */
#ifndef TCI_POLICY_VALUE_H
#define TCI_POLICY_VALUE_H

#include "json/write.h"
#include "policy/model.h"

/* Does the setting have a value that can be written? (No image, no command, ...: it has none.) */
bool tci_value_is_set(const struct tci_settings *settings, enum tci_key key);

/* Writes `name` and the value in the writer's syntax; what it writes reads back as the same. */
void tci_value_write(struct tci_json *out, const char *name, const struct tci_settings *settings,
                     enum tci_key key);

/* Is the key one that is compiled to others, and so never part of the normal form? */
bool tci_value_is_compiled(enum tci_key key);

#endif
