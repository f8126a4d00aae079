/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what a cage sees at a path, as narrowing compares it, and rules with less access. */
#ifndef TCI_CORE_NARROW_VIEW_H
#define TCI_CORE_NARROW_VIEW_H

#include "policy/model.h"

/* Access as a number that grows: nothing and hidden are the same for whoever looks. */
enum tci_level { TCI_LEVEL_NONE, TCI_LEVEL_READABLE, TCI_LEVEL_WRITABLE };

struct tci_view {
    enum tci_level level;
    const struct tci_path_rule *rule; /* that decides; NULL: what every cage has, or nothing */
};

enum tci_level tci_level_of(enum tci_access access);
struct tci_view tci_view_at(const struct tci_settings *settings, const char *path);

/* Appends the rule with this access; there is room for it. */
void tci_view_keep(struct tci_filesystem *fs, const struct tci_path_rule *from,
                   enum tci_level level);

#endif
