/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: could a tool write the policy that it runs under? The attack: a model that talks a tool into
 * changing its own policy is free at the next call, because the new one comes into force at once.
 *
 * Lint compares names (TC-L104). Here the host is asked, because one directory has many names: place.h walks to
 * each file of the policy, and reach.h says of each link on the way, and of the file, whether a tool's cage can
 * write it.
 */
#include <stdlib.h>
#include <string.h>
#include "mcp/watch.h"
#include "policy/model.h"
#include "policy/place.h"
#include "toolcage/toolcage.h"

struct look {
    struct tci_reach *reach;
    bool found;
};

static bool by_lint(const struct tc_policy *policy)
{
    struct tc_error error = { 0 };
    char *findings = NULL;
    bool found = tc_policy_lint(policy, &findings, &error) < 0 || strstr(findings, "\"TC-L104\"");
    free(findings);
    return found;
}

/* Files may be gone since the policy was read: they are no reason to believe anything. */
static void look_at_file(void *context, const char *path)
{
    struct look *look = context;
    const struct tci_place place = { .what = "policy",
                                     .reach = look->reach,
                                     .may_be_missing = true };
    struct tc_error error = { 0 };
    if (!look->found)
        look->found = tci_place_open(path, &place, NULL, &error) != 0;
}

static bool has_writable(const struct tc_policy *policy)
{
    for (size_t i = 0; i < policy->tool_count; i++) {
        const struct tci_filesystem *fs = &policy->tools[i].settings.filesystem;
        for (size_t k = 0; k < fs->count; k++)
            if (fs->rules[k].access == TCI_ACCESS_WRITABLE)
                return true;
    }
    return false;
}

bool tci_watch_is_writable(const struct tc_policy *policy, const char *path)
{
    struct look look = { 0 };
    if (!has_writable(policy))
        return false;
    if (by_lint(policy))
        return true;
    look.reach = tci_reach_of_policy(policy);
    if (!look.reach)
        return true;
    tci_watch_each_file(policy, path, look_at_file, &look);
    tci_reach_free(look.reach);
    return look.found;
}
