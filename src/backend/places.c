/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the order of what is said about the paths of a cage (places.h). */
#include "backend/places.h"

#include <stdlib.h>
#include <string.h>
#include "base/path.h"

int tci_places_add_library(struct tci_places *places, struct tci_arena *arena, const char *library,
                           const char *cage)
{
    struct tci_path_rule *rule = tci_arena_new_of(arena, struct tci_path_rule);
    if (!rule || !cage)
        return -1;
    rule->access = TCI_ACCESS_READABLE;
    rule->host = library;
    rule->cage = cage;
    places->items[places->count++] = (struct tci_place){ .path = cage, .rule = rule };
    return 0;
}

bool tci_places_is_hidden(const struct tci_filesystem *fs, const char *path)
{
    const struct tci_path_rule *rule = tci_path_rule_find(fs, path);
    return rule && rule->access == TCI_ACCESS_HIDDEN;
}

static int compare(const void *a, const void *b)
{
    const struct tci_place *x = a, *y = b;
    int order = strcmp(x->path, y->path);
    if (order)
        return order;
    if (!x->rule != !y->rule)
        return x->rule ? -1 : 1; /* the policy first */
    if (!x->rule || x->rule->access == y->rule->access)
        return 0;
    return x->rule->access < y->rule->access ? -1 : 1;
}

void tci_places_settle(struct tci_places *places)
{
    struct tci_place *items = places->items;
    size_t kept = 0;
    qsort(items, places->count, sizeof *items, compare);
    for (size_t i = 0; i < places->count; i++)
        if (!kept || strcmp(items[i].path, items[kept - 1].path) != 0)
            items[kept++] = items[i];
    places->count = kept;
}

bool tci_places_has_inside(const struct tci_places *places, const char *path)
{
    for (size_t i = 0; i < places->count; i++)
        if (strcmp(places->items[i].path, path) != 0 &&
            tci_path_is_within(places->items[i].path, path))
            return true;
    return false;
}
