/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the file system of a tool under a grant that has one of its own. Both must allow
 * (policy/decide_path.c says the same about single paths).
 *
 * The attack: a grant for "/work/sub" of a tool that has "/work" would have to be mounted from the
 * host's path of "/work" with "/sub" behind it. A call with the wider grant can make that a link to
 * any path of the host, and the mount would follow it. So no source is ever made up here: what a
 * grant leaves must be sources that the policy itself names, with less access, or hidden places in
 * them. Everything else is refused, and the remedy is an entry of the tool's own.
 */
#include "core/narrow.h"

#include <string.h>
#include "base/path.h"
#include "core/narrow_view.h"
#include "policy/cage_paths.h"

static enum tci_level smaller(enum tci_level a, enum tci_level b)
{
    return a < b ? a : b;
}

/* Each place that the tool's own rules name, with what the grant leaves of it. What somebody hides
 * stays hidden, also where nothing seems to be: it covers the built-in places below it, too. */
static void keep_places_of_tool(const struct tci_settings *tool, const struct tci_settings *granted,
                                struct tci_filesystem *fs)
{
    for (size_t i = 0; i < tool->filesystem.count; i++) {
        const struct tci_path_rule *rule = &tool->filesystem.rules[i];
        struct tci_view before = tci_view_at(tool, rule->cage),
                        after = tci_view_at(granted, rule->cage);
        enum tci_level level = smaller(before.level, after.level);
        if (before.rule != rule)
            continue; /* a stronger rule of the tool speaks about the same place */
        /* Where the grant has no rule it has none for anything around this place, either. */
        if (level == TCI_LEVEL_NONE && before.level != TCI_LEVEL_NONE && !after.rule)
            continue;
        tci_view_keep(fs, rule, level);
    }
}

static int cannot_express(const struct tci_path_rule *rule, struct tc_error *reterr)
{
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                  "the grant gives %s of %.300s, which is only a part of what the tool has",
                  rule->access == TCI_ACCESS_WRITABLE ? "writing" : "reading", rule->cage);
    tci_error_remedy(reterr,
                     "give the tool an entry of its own for \"%.200s\" in \"filesystem\", or grant "
                     "what the tool's entry names",
                     rule->cage);
    return -1;
}

static bool names_place(const struct tci_filesystem *fs, const char *path)
{
    const struct tci_path_rule *rule = tci_path_rule_find(fs, path);
    return rule && strcmp(rule->cage, path) == 0;
}

/* Each place that the grant names and the tool does not. */
static int keep_places_of_grant(const struct tci_settings *tool, const struct tci_settings *granted,
                                struct tci_settings *ret, struct tc_error *reterr)
{
    for (size_t i = 0; i < granted->filesystem.count; i++) {
        const struct tci_path_rule *rule = &granted->filesystem.rules[i];
        enum tci_level wanted = smaller(tci_view_at(tool, rule->cage).level,
                                        tci_view_at(granted, rule->cage).level);
        if (names_place(&ret->filesystem, rule->cage))
            continue; /* done above, or hidden by this grant */
        if (rule->access == TCI_ACCESS_HIDDEN)
            tci_view_keep(&ret->filesystem, rule, TCI_LEVEL_NONE);
        else if (wanted != TCI_LEVEL_NONE && wanted != tci_view_at(ret, rule->cage).level)
            return cannot_express(rule, reterr);
    }
    return 0;
}

/* Without its private /tmp, a tool that sees "/" would see the host's: that was never granted. */
static void hide_host_scratch(const struct tci_settings *tool, struct tci_settings *ret)
{
    static const struct tci_path_rule host_scratch = { .cage = "/tmp", .as_given = "/tmp" };
    if (tool->filesystem.scratch && !ret->filesystem.scratch &&
        tci_view_at(ret, host_scratch.cage).level != TCI_LEVEL_NONE &&
        !names_place(&ret->filesystem, "/tmp"))
        tci_view_keep(&ret->filesystem, &host_scratch, TCI_LEVEL_NONE);
}

/* The directory to start in: the grant's, else the tool's as long as it can still be seen. */
static int choose_cwd(const struct tci_filesystem *tool, const struct tci_filesystem *granted,
                      struct tci_settings *ret, struct tc_error *reterr)
{
    const char *cwd = granted->cwd ? granted->cwd : tool->cwd;
    ret->filesystem.cwd = NULL;
    if (!cwd)
        return 0;
    if (tci_view_at(ret, cwd).level != TCI_LEVEL_NONE) {
        ret->filesystem.cwd = cwd;
        return 0;
    }
    if (!granted->cwd)
        return 0;
    tci_error_set(reterr, TC_ERROR_POLICY, "\"cwd\" of the grant is outside the granted paths: %s",
                  cwd);
    tci_error_remedy(reterr, "choose a path that the grant leaves readable, or remove it");
    return -1;
}

int tci_narrow_filesystem(struct tci_arena *arena, const struct tci_tool *tool,
                          const struct tci_grant *grant, struct tci_filesystem *ret,
                          struct tc_error *reterr)
{
    const struct tci_settings *own = &tool->settings;
    const struct tci_filesystem *narrow = &grant->narrow->filesystem;
    struct tci_settings granted = *own, result = *own;

    granted.filesystem = *narrow;
    result.filesystem = (struct tci_filesystem){ .scratch = own->filesystem.scratch };
    if (narrow->scratch != TCI_SCRATCH_UNSET && narrow->scratch < own->filesystem.scratch)
        result.filesystem.scratch = narrow->scratch;
    result.filesystem.rules = tci_arena_new_array(arena, own->filesystem.count + narrow->count + 1,
                                                  struct tci_path_rule);
    if (!result.filesystem.rules)
        return tci_error_no_memory(reterr);
    keep_places_of_tool(own, &granted, &result.filesystem);
    if (keep_places_of_grant(own, &granted, &result, reterr) < 0)
        return -1;
    hide_host_scratch(own, &result);
    if (choose_cwd(&own->filesystem, narrow, &result, reterr) < 0)
        return -1;
    *ret = result.filesystem;
    return 0;
}
