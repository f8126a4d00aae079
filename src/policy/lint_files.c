/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: who can change the files of a policy. The attack: another user of the host writes into the
 * policy, or puts a file into a directory of tools, and so decides what agents may do. Loading does not
 * refuse such files, since groups that share a directory are common; lint says so.
 * Only on this host, and only what the kernel's plain permissions say: access lists are not read.
 */
#include "policy/lint_internal.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/sys.h"

enum { quoted_max = 300 };

/* `what`: "the policy". `shared`: in this directory only the owner of a file can replace it. */
static void check(struct tci_lint *lint, const char *what, const char *path, struct tci_pos pos,
                  bool shared)
{
    struct stat st;
    if (tci_sys.lstat(path, &st) < 0)
        return; /* it was there when the policy was read */
    if (st.st_uid != geteuid() && st.st_uid != 0)
        tci_lint_add(lint, TCI_FINDING_FOREIGN_FILE, pos, "give it to this user or to root (chown)",
                     "%s belongs to another user: \"%.*s\"", what, quoted_max, path);
    if (shared && st.st_mode & S_ISVTX)
        return;
    if (st.st_mode & S_IWOTH)
        tci_lint_add(lint, TCI_FINDING_FOREIGN_FILE, pos, "take the permission away (chmod o-w)",
                     "%s can be changed by every user: \"%.*s\"", what, quoted_max, path);
    else if (st.st_mode & S_IWGRP)
        tci_lint_add(lint, TCI_FINDING_GROUP_FILE, pos,
                     "take the permission away (chmod g-w), unless everybody in the group may "
                     "decide what agents can do",
                     "%s can be changed by a group: \"%.*s\"", what, quoted_max, path);
}

/* The policy and its directory, behind all links. */
static void check_policy(struct tci_lint *lint)
{
    const struct tc_policy *policy = lint->policy;
    struct tci_pos pos = { .line = 1, .column = 1 };
    char path[PATH_MAX], *slash;
    if (!policy->directory || strcmp(policy->file, "-") == 0 ||
        !tci_sys.realpath(policy->file, path))
        return;
    check(lint, "the policy", path, pos, false);
    slash = strrchr(path, '/');
    slash[slash == path] = '\0';
    check(lint, "the policy's directory", path, pos, true);
}

void tci_lint_files(struct tci_lint *lint)
{
    const struct tc_policy *policy = lint->policy;
    if (!lint->options->look_at_files)
        return;
    check_policy(lint);
    for (size_t i = 0; i < policy->tool_directory_count; i++)
        check(lint, "the directory of tools", policy->tool_directories[i].path,
              policy->tool_directories[i].pos, false);
    for (size_t i = 0; i < policy->tool_file_count; i++) {
        struct tci_pos pos = { .line = 1, .column = 1, .file = (uint32_t)i + 1 };
        check(lint, "the tool file", policy->tool_files[i].path, pos, false);
    }
}
