/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: whether a tool may write where toolcage keeps what it runs and what it has recorded. Plans of containers
 * refuse that for what they use; here it is said before, and for every tool of the policy. */
#include "policy/lint_internal.h"

#include <string.h>
#include "policy/place.h"

static struct tci_pos pos_of(const struct tci_filesystem *fs, const char *host)
{
    for (size_t i = 0; i < fs->count; i++)
        if (fs->rules[i].access == TCI_ACCESS_WRITABLE && strcmp(fs->rules[i].host, host) == 0)
            return fs->rules[i].pos;
    return (struct tci_pos){ .line = 1, .column = 1 };
}

void tci_lint_own(struct tci_lint *lint)
{
    const struct tci_lint_options *options = lint->options;
    const struct tci_filesystem *fs = &lint->tool->settings.filesystem;
    tc_cleanup(tci_reach_freep) struct tci_reach *reach = NULL;
    if (!options->place_count || !tci_lint_wants(lint, TCI_KEY_FILESYSTEM))
        return;
    reach = tci_reach_of_cage_in(tci_lint_mounts(lint), fs);
    lint->findings->no_memory |= !reach;
    for (size_t i = 0; reach && i < options->place_count; i++) {
        struct tc_error error = { 0 };
        const char *host = "";
        int r = tci_place_check_tree(&options->places[i], reach, &host, &error);
        lint->findings->no_memory |= error.code == TC_ERROR_NO_MEMORY;
        if (r != 1)
            continue;
        tci_lint_add(lint, TCI_FINDING_SYSTEM_WRITABLE, pos_of(fs, host),
                     "grant a directory that does not hold it",
                     "the tool can change the %s \"%.300s\" through \"%.300s\"",
                     options->places[i].what, options->places[i].path, host);
    }
}
