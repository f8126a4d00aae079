/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: one meaning of "what is there" for grants and for calls inside calls. */
#include "core/narrow_view.h"

#include <string.h>
#include "policy/cage_paths.h"

enum tci_level tci_level_of(enum tci_access access)
{
    switch (access) {
    case TCI_ACCESS_READABLE:
        return TCI_LEVEL_READABLE;
    case TCI_ACCESS_WRITABLE:
        return TCI_LEVEL_WRITABLE;
    case TCI_ACCESS_HIDDEN:
        break;
    }
    return TCI_LEVEL_NONE;
}

/* A path of the policy beats a built-in one unless that one lies deeper; hidden beats even those. */
struct tci_view tci_view_at(const struct tci_settings *settings, const char *path)
{
    const struct tci_path_rule *rule = tci_path_rule_find(&settings->filesystem, path);
    const struct tci_cage_path *own = tci_cage_path_find(settings, path);
    if (rule &&
        (!own || rule->access == TCI_ACCESS_HIDDEN || strlen(own->path) <= strlen(rule->cage)))
        return (struct tci_view){ tci_level_of(rule->access), rule };
    return (struct tci_view){ own ? tci_level_of(own->access) : TCI_LEVEL_NONE, NULL };
}

void tci_view_keep(struct tci_filesystem *fs, const struct tci_path_rule *from,
                   enum tci_level level)
{
    struct tci_path_rule *rule = &fs->rules[fs->count++];
    *rule = *from;
    rule->access = level == TCI_LEVEL_WRITABLE   ? TCI_ACCESS_WRITABLE
                   : level == TCI_LEVEL_READABLE ? TCI_ACCESS_READABLE
                                                 : TCI_ACCESS_HIDDEN;
    if (level == TCI_LEVEL_NONE)
        rule->host = NULL;
}
