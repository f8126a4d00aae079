/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: may this path of the cage be read or written? The most specific path decides; what every
 * cage has besides (cage_paths.c) is part of the answer.
 */
#include "policy/decide_internal.h"

#include <stdio.h>
#include <string.h>
#include "base/path.h"
#include "policy/cage_paths.h"

struct path_answer {
    bool found;
    enum tci_access access;
    const char *path, *key;
    bool mapped; /* it comes from another path of the host */
    struct tci_pos pos;
};

/* A path of the policy beats a built-in one unless that one lies deeper; hidden beats even those. */
static struct path_answer find_path(const struct tci_settings *s, const char *path)
{
    const struct tci_path_rule *rule = tci_path_rule_find(&s->filesystem, path);
    const struct tci_cage_path *own = tci_cage_path_find(s, path);
    if (rule &&
        (!own || rule->access == TCI_ACCESS_HIDDEN || strlen(own->path) <= strlen(rule->cage)))
        return (struct path_answer){
            .found = true,
            .access = rule->access,
            .path = rule->cage,
            .key = "filesystem",
            .mapped = rule->host && strcmp(rule->host, rule->cage) != 0,
            .pos = rule->pos,
        };
    if (own)
        return (struct path_answer){
            .found = true, .access = own->access, .path = own->path, .key = own->key
        };
    return (struct path_answer){ .found = false };
}

/*
 * /proc is full of links that lead to any file that a process has open or could reach. What is
 * behind one cannot be told from its name, so a question about it has no other answer than no.
 */
static bool leads_elsewhere(const char *path)
{
    static const char *const links[] = { "/root", "/cwd", "/exe", "/fd", "/map_files", "/task" };
    if (strncmp(path, "/dev/fd/", 8) == 0)
        return strlen(path) != 9 || path[8] > '2';
    if (!tci_path_is_within(path, "/proc"))
        return false;
    for (size_t i = 0; i < tci_array_size(links); i++) {
        size_t length = strlen(links[i]);
        for (const char *p = path; (p = strstr(p, links[i])) != NULL; p++)
            if (p[length] == '\0' || p[length] == '/')
                return true;
    }
    return false;
}

static void decide_path(const struct tci_settings *s, const char *path, enum tc_access access,
                        struct tc_decision *d)
{
    const char *wanted = access == TC_ACCESS_WRITE ? "writable" : "readable";
    struct path_answer answer = find_path(s, path);

    if (leads_elsewhere(path)) {
        tci_decide(d, false, "filesystem", "%.380s is a link that leads to another path", path);
        tci_decide_fix(d, "ask about the path that it leads to");
        return;
    }
    if (!answer.found) {
        tci_decide_place(d, s->pos[TCI_KEY_FILESYSTEM]);
        tci_decide(d, false, "filesystem", "%.380s is not granted", path);
        tci_decide_fix(d, "add \"%.380s\" to \"%s\" of \"filesystem\"", path, wanted);
        return;
    }
    tci_decide_place(d, answer.pos);
    (void)snprintf(d->rule, sizeof d->rule, "%s: %.300s", tci_access_name(answer.access),
                   answer.path);
    if (answer.access == TCI_ACCESS_HIDDEN) {
        tci_decide(d, false, *answer.key ? answer.key : "filesystem", "%.380s is hidden%s", path,
                   *answer.key ? "" : " in every cage");
        if (*answer.key)
            tci_decide_fix(d, "remove \"%.380s\" from \"hidden\"", answer.path);
        else
            tci_decide_fix(d, "nothing in a policy shows it");
    } else if (access == TC_ACCESS_WRITE && answer.access != TCI_ACCESS_WRITABLE) {
        tci_decide(d, false, *answer.key ? answer.key : "filesystem", "%.380s is only readable",
                   path);
        if (answer.mapped)
            tci_decide_fix(d, "move the entry for \"%.380s\" from \"readable\" to \"writable\"",
                           answer.path);
        else
            tci_decide_fix(d, "add \"%.380s\" to \"writable\" of \"filesystem\"", path);
    } else {
        tci_decide(d, true, *answer.key ? answer.key : "filesystem", "%.380s is %s%s", path,
                   tci_access_name(answer.access), *answer.key ? "" : " in every cage");
    }
}

void tc_decide_path(const struct tc_policy *policy, const char *agent, const char *tool,
                    const char *path, enum tc_access access, struct tc_decision *ret)
{
    char normal[TCI_PATH_MAX + 1], text[TCI_QUOTE_MAX];
    const struct tci_tool *t;
    const struct tci_grant *grant;
    struct tc_decision by_tool;
    struct tci_settings narrowed;
    enum tci_path_problem problem;

    if (!tci_decide_find(policy, agent, tool, &t, &grant, ret))
        return;
    if (!path || (access != TC_ACCESS_READ && access != TC_ACCESS_WRITE)) {
        tci_decide(ret, false, "filesystem",
                   "no path, or no known kind of access, was asked about");
        tci_decide_fix(ret, "ask whether a path may be read or written");
        return;
    }
    problem = tci_path_normalise(NULL, path, strlen(path), normal);
    if (problem != TCI_PATH_OK) {
        tci_decide(ret, false, "filesystem", "%s %s", tci_decide_quote(path, text),
                   tci_path_problem_text(problem));
        tci_decide_fix(ret, "name an absolute path in the cage");
        return;
    }
    decide_path(&t->settings, normal, access, ret);
    if (!ret->allowed || !grant || !(grant->narrow->present & tci_key_bit(TCI_KEY_FILESYSTEM)))
        return;
    /* The tool with the grant's file system, its scratch included: without scratch, no /tmp. */
    narrowed = t->settings;
    narrowed.filesystem = grant->narrow->filesystem;
    narrowed.pos[TCI_KEY_FILESYSTEM] = grant->narrow->pos[TCI_KEY_FILESYSTEM];
    by_tool = *ret;
    memset(ret, 0, sizeof *ret);
    decide_path(&narrowed, normal, access, ret);
    if (ret->allowed)
        *ret = by_tool;
}
