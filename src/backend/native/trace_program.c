/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what is said about a program that the kernel would not start, or not map as code. */
#include "backend/native/trace_internal.h"

#include <stdio.h>
#include <string.h>

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* A bare name stands for any path; a link may have another name than the file that it leads to. */
static bool is_listed(const struct tc_plan *plan, const char *path)
{
    const struct tci_settings *s = plan->spec.settings;
    for (size_t i = 0; i < plan->programs.count; i++)
        if (strcmp(plan->programs.items[i].path, path) == 0)
            return true;
    for (size_t i = 0; i < s->commands.list.count; i++) {
        const char *listed = s->commands.list.items[i].text;
        if (strcmp(listed, strchr(listed, '/') ? path : last_part(path)) == 0)
            return true;
    }
    return false;
}

void tci_trace_program_rule(const struct tc_plan *plan, const char *path,
                            char rule[TCI_TRACE_RULE_MAX])
{
    char name[4 * TCI_COMPONENT_MAX + 8];
    const char *last = last_part(path);
    if (plan->programs.any)
        (void)snprintf(rule, TCI_TRACE_RULE_MAX,
                       "permissions: any program may start; it is not an executable file, or lies "
                       "where none may start, such as /dev/shm");
    else if (is_listed(plan, path))
        (void)snprintf(rule, TCI_TRACE_RULE_MAX,
                       "commands: it is listed; it is not an executable file, or its interpreter "
                       "is not listed");
    else if (strlen(tci_trace_clean(last, strlen(last), name, sizeof name)) <= TCI_TRACE_SHOWN_MAX)
        (void)snprintf(rule, TCI_TRACE_RULE_MAX,
                       "commands: the program is not listed; add \"%.300s\" to \"commands\"", name);
    else
        (void)snprintf(rule, TCI_TRACE_RULE_MAX, "commands: the program is not listed");
}
