/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the Landlock rules of a cage, made from paths of the finished root. They are the second wall
 * of a jail, the only one of the process backend (which hands them over: rules.c), and in both the
 * list of programs that may start. */
#include "backend/native/init.h"

#include <linux/fcntl.h>
#include <linux/landlock.h>
#include <linux/openat2.h>
#include <linux/stat.h>

enum { at_cwd = -100, at_empty_path = 0x1000, o_path = 010000000, o_cloexec = 02000000 };

/* A newer kernel's struct: what this one does not know is 0, or the plan would not ask for it. */
struct ruleset {
    uint64_t fs, net, scoped;
};

long open_checked(int directory, const char *path, uint32_t flags, uint64_t device, uint64_t inode)
{
    struct open_how how = { .flags = o_path | o_cloexec, .resolve = RESOLVE_NO_MAGICLINKS };
    struct statx found = { 0 };
    long fd, result;
    fd = CALL(openat2, directory, path, &how, sizeof how, 0);
    if (fd < 0 || !(flags & TCI_MOUNT_CHECKED))
        return fd;
    result = CALL(statx, fd, "", at_empty_path, STATX_INO, &found);
    if (result == 0 && (found.stx_ino != inode ||
                        ((uint64_t)found.stx_dev_major << 32 | found.stx_dev_minor) != device))
        result = -ESTALE;
    if (result < 0) {
        (void)CALL(close, fd, 0, 0, 0, 0);
        return result;
    }
    return fd;
}

int make_ruleset(const struct init *init)
{
    const struct tci_init_config *config = init->config;
    const struct tci_init_rule *rules = config_at(init, config->rules.offset);
    struct ruleset attr = { config->handled_fs, config->handled_net, config->scoped };
    long ruleset;
    if (!config->landlock_size)
        return -1;
    if (!init->is_jail)
        return TCI_INIT_FD_RULESET;
    ruleset = must(TCI_INIT_STEP_RULESET, 0,
                   CALL(landlock_create_ruleset, &attr, config->landlock_size, 0, 0, 0));
    for (uint32_t i = 0; i < config->rules.count; i++) {
        const struct tci_init_rule *rule = &rules[i];
        long fd = open_checked(at_cwd, config_at(init, rule->path), rule->flags, rule->device,
                               rule->inode);
        struct landlock_path_beneath_attr beneath = { .allowed_access = rule->rights,
                                                      .parent_fd = (int)fd };
        must(fd == -ESTALE ? TCI_INIT_STEP_MOUNT_CHANGED : TCI_INIT_STEP_RULESET, i, fd);
        must(TCI_INIT_STEP_RULESET, i,
             CALL(landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0, 0));
        (void)CALL(close, fd, 0, 0, 0, 0);
    }
    return (int)ruleset;
}
