/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the environment of a cage, built from nothing: PATH, HOME, LANG, TMPDIR, then what the policy
 * sets and passes. Later ones replace earlier ones. */
#include "backend/native/native.h"

#include <stdlib.h>
#include <string.h>

struct list {
    struct tc_plan *plan;
    size_t count;
};

static int put(struct list *list, const char *name, const char *value, struct tc_error *reterr)
{
    const char **all = list->plan->environment;
    size_t length = strlen(name), i = 0;
    char *text = tci_arena_printf(list->plan->arena, "%s=%s", name, value);
    if (!text)
        return tci_error_no_memory(reterr);
    while (i < list->count && (strncmp(all[i], name, length) != 0 || all[i][length] != '='))
        i++;
    all[i] = text;
    if (i == list->count)
        list->count++;
    return 0;
}

int tci_native_environment(struct tc_plan *plan, struct tc_error *reterr)
{
    const struct tci_settings *s = plan->spec.settings;
    struct list list = { .plan = plan };
    const char *home = s->filesystem.scratch ? "/tmp" : "/";
    plan->environment = tci_arena_new_array(plan->arena, 5 + s->env.count + s->env_pass.count,
                                            const char *);
    if (!plan->environment)
        return tci_error_no_memory(reterr);
    if (put(&list, "PATH", tci_native_search_path, reterr) < 0 ||
        put(&list, "HOME", home, reterr) < 0 || put(&list, "LANG", "C.UTF-8", reterr) < 0 ||
        (s->filesystem.scratch && put(&list, "TMPDIR", "/tmp", reterr) < 0))
        return -1;
    for (size_t i = 0; i < s->env_pass.count; i++) {
        const char *name = s->env_pass.items[i].text, *value = getenv(name);
        if (value && put(&list, name, value, reterr) < 0)
            return -1;
    }
    for (size_t i = 0; i < s->env.count; i++)
        if (put(&list, s->env.items[i].name, s->env.items[i].value, reterr) < 0)
            return -1;
    return 0;
}
