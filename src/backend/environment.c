/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the environment of a cage, built from nothing: PATH, HOME, LANG, TMPDIR, then what the policy
 * sets and passes. Later ones replace earlier ones. */
#include "backend/environment.h"

#include <stdlib.h>
#include <string.h>

const char tci_search_path[] = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

struct list {
    struct tci_arena *arena;
    const char **all;
    size_t count;
};

static bool put(struct list *list, const char *name, const char *value)
{
    size_t length = strlen(name), i = 0;
    char *text = tci_arena_printf(list->arena, "%s=%s", name, value);
    while (i < list->count &&
           (strncmp(list->all[i], name, length) != 0 || list->all[i][length] != '='))
        i++;
    list->all[i] = text;
    if (text && i == list->count)
        list->count++;
    return text != NULL;
}

const char **tci_environment(struct tci_arena *arena, const struct tci_settings *s)
{
    const size_t room = 5 + s->env.count + s->env_pass.count;
    struct list list = { .arena = arena, .all = tci_arena_new_array(arena, room, const char *) };
    const bool scratch = s->filesystem.scratch != 0;
    if (!list.all || !put(&list, "PATH", tci_search_path) ||
        !put(&list, "HOME", scratch ? "/tmp" : "/") || !put(&list, "LANG", "C.UTF-8") ||
        (scratch && !put(&list, "TMPDIR", "/tmp")))
        return NULL;
    for (size_t i = 0; i < s->env_pass.count; i++) {
        const char *name = s->env_pass.items[i].text, *value = getenv(name);
        if (value && !put(&list, name, value))
            return NULL;
    }
    for (size_t i = 0; i < s->env.count; i++)
        if (!put(&list, s->env.items[i].name, s->env.items[i].value))
            return NULL;
    return list.all;
}

const char *tci_start_directory(const struct tci_settings *s)
{
    if (s->filesystem.cwd)
        return s->filesystem.cwd;
    return s->filesystem.scratch ? "/tmp" : "/";
}
