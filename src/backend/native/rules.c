/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the Landlock rules of a plan. In a jail they repeat what the mounts say, so that one mistake
 * is not enough; for the process backend they are the file system clause itself. In both they keep
 * `commands`, and no signal or abstract socket leaves the cage where the kernel can say so (ABI 6).
 */
#include "backend/native/native.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "policy/cage_paths.h"

/* Rights by the ABI that brought them; older headers do not name the newer ones. */
enum {
    FS_EXECUTE = 1 << 0,
    FS_WRITE_FILE = 1 << 1,
    FS_READ_FILE = 1 << 2,
    FS_READ_DIR = 1 << 3,
    FS_MAKE_CHAR = 1 << 6,
    FS_MAKE_BLOCK = 1 << 11,
    FS_REFER = 1 << 13,     /* ABI 2 */
    FS_TRUNCATE = 1 << 14,  /* ABI 3 */
    FS_IOCTL_DEV = 1 << 15, /* ABI 5 */
    FS_ABI_1 = (1 << 13) - 1,
    NET_BOTH = 3,   /* ABI 4: bind and connect over TCP */
    SCOPE_BOTH = 3, /* ABI 6: abstract sockets and signals */
    FILE_RIGHTS = FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV,
    READ = FS_READ_FILE | FS_READ_DIR,
    DEVICE = FS_READ_FILE | FS_WRITE_FILE | FS_IOCTL_DEV,
};

static uint64_t all_rights(int abi)
{
    return FS_ABI_1 | (abi >= 2 ? FS_REFER : 0) | (abi >= 3 ? FS_TRUNCATE : 0) |
           (abi >= 5 ? FS_IOCTL_DEV : 0);
}

static struct tci_rule *add(struct tc_plan *plan, const char *path, uint64_t rights,
                            struct tc_error *reterr)
{
    struct tci_rules_list *list = &plan->rules;
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 32;
        struct tci_rule *items = tci_arena_new_array(plan->arena, capacity, struct tci_rule);
        if (!items) {
            tci_error_no_memory(reterr);
            return NULL;
        }
        if (list->count)
            memcpy(items, list->items, list->count * sizeof *items);
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count] = (struct tci_rule){ .path = path,
                                                  .rights = rights & list->handled_fs };
    return &list->items[list->count++];
}

/* No device nodes, whatever the path. */
static uint64_t writing(const struct tc_plan *plan, uint64_t execute)
{
    return (plan->rules.handled_fs & ~(uint64_t)(FS_MAKE_CHAR | FS_MAKE_BLOCK | FS_EXECUTE)) |
           execute;
}

static int add_programs(struct tc_plan *plan, struct tc_error *reterr)
{
    for (size_t i = 0; i < plan->programs.count; i++) {
        const struct tci_native_program *program = &plan->programs.items[i];
        struct tci_rule *rule = add(plan, program->path, FS_EXECUTE | FS_READ_FILE, reterr);
        if (!rule)
            return -1;
        /* The attack: a link to "/" put in the program's place before init opens it. */
        rule->flags = TCI_MOUNT_CHECKED;
        rule->device = program->device;
        rule->inode = program->inode;
    }
    return 0;
}

/* ---- jail ---------------------------------------------------------------------------------------- */

/* One may write to /dev/null; /dev/urandom would take it, too, and mix it into the host's numbers. */
static bool is_writable_device(const char *path)
{
    static const char *const devices[] = { "/dev/null", "/dev/zero", "/dev/full" };
    for (size_t i = 0; i < tci_array_size(devices); i++)
        if (strcmp(path, devices[i]) == 0)
            return true;
    return false;
}

/* Paths as the finished cage has them: what is read-only there is read-only here. */
static int jail_rules(struct tc_plan *plan, struct tc_error *reterr)
{
    const uint64_t execute = plan->programs.any ? FS_EXECUTE : 0;
    if (!add(plan, "/", READ | execute, reterr) || add_programs(plan, reterr) < 0)
        return -1;
    for (size_t i = 0; i < plan->mounts.count; i++) {
        const struct tci_mount *m = &plan->mounts.items[i];
        const char *path = m->target - 1; /* its slash */
        bool is_file = m->flags & TCI_MOUNT_IS_FILE;
        bool is_scratch = m->kind == TCI_MOUNT_TMPFS &&
                          (strcmp(path, "/tmp") == 0 || strcmp(path, "/dev/shm") == 0);
        uint64_t rights = 0;
        if (m->writable || is_scratch)
            rights = writing(plan, execute) & (is_file ? (uint64_t)FILE_RIGHTS : ~UINT64_C(0));
        else if (is_writable_device(path))
            rights = DEVICE;
        if (rights && *m->target && !add(plan, path, rights, reterr))
            return -1;
        if (m->writable && !*m->target) /* "/" itself is granted for writing */
            plan->rules.items[0].rights |= rights & plan->rules.handled_fs;
    }
    return 0;
}

/* ---- process ------------------------------------------------------------------------------------- */

static int refuse(struct tc_error *reterr, const char *path, const char *why)
{
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "the process backend cannot keep \"%.300s\": %s",
                  path, why);
    tci_error_remedy(reterr, "use backend = \"jail\"");
    return -1;
}

/* Landlock adds rights on the way down and never takes any away. */
static int check_expressible(const struct tci_settings *s, struct tc_error *reterr)
{
    const struct tci_filesystem *fs = &s->filesystem;
    if (!s->commands.any && fs->count)
        return refuse(reterr, fs->rules[0].cage,
                      "with \"commands\", the loader could start programs that lie in it");
    for (size_t i = 0; i < fs->count; i++) {
        const struct tci_path_rule *rule = &fs->rules[i];
        const struct tci_cage_path *own = tci_cage_path_find(s, rule->cage);
        if (rule->host && strcmp(rule->host, rule->cage) != 0)
            return refuse(reterr, rule->cage, "it has no mounts to show a path under another name");
        if (rule->access == TCI_ACCESS_HIDDEN && own)
            return refuse(reterr, rule->cage, "it cannot hide a part of a path that it grants");
        for (size_t j = 0; j < fs->count; j++) {
            const struct tci_path_rule *outer = &fs->rules[j];
            if (outer == rule || outer->access <= rule->access ||
                !tci_path_is_within(rule->cage, outer->cage))
                continue;
            return refuse(reterr, rule->cage,
                          rule->access == TCI_ACCESS_HIDDEN
                              ? "it cannot hide a part of a path that it grants"
                              : "it cannot make a part of a writable path read-only");
        }
    }
    return 0;
}

/*
 * Without mounts of its own a cage has the host's paths: so the ruleset is made once, in the plan, of
 * the very files that were checked, and every call gets it. What is exchanged later is not in it.
 */
static int make_ruleset(struct tc_plan *plan, struct tc_error *reterr)
{
    const struct tci_rules_list *list = &plan->rules;
    /* struct landlock_ruleset_attr, as far as the kernel knows it. */
    const uint64_t handled[] = { list->handled_fs, list->handled_net, list->scoped };
    plan->ruleset_fd = (int)syscall(SYS_landlock_create_ruleset, handled, list->attr_size, 0);
    return plan->ruleset_fd < 0 ? tci_error_errno(reterr, errno, "making Landlock rules") : 0;
}

static int allow(const struct tc_plan *plan, int fd, const struct tci_rule *rule,
                 struct tc_error *reterr)
{
    struct landlock_path_beneath_attr beneath = { .allowed_access = rule->rights, .parent_fd = fd };
    if (syscall(SYS_landlock_add_rule, plan->ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) <
        0)
        return tci_error_errno(reterr, errno, "making a Landlock rule for %.300s", rule->path);
    return 0;
}

/* The attack: a link to "/" put in a program's place since it was looked at. */
static int allow_programs(const struct tc_plan *plan, struct tc_error *reterr)
{
    for (size_t i = 0; i < plan->rules.count; i++) {
        const struct tci_rule *rule = &plan->rules.items[i];
        uint64_t device = 0, inode = 0;
        bool is_directory;
        tc_cleanup(tci_closep) int fd = open(rule->path, O_PATH | O_CLOEXEC);
        if (fd < 0 || tci_granted_identify(fd, &device, &inode, &is_directory) < 0 ||
            device != rule->device || inode != rule->inode) {
            tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "%.300s was exchanged meanwhile",
                          rule->path);
            tci_error_remedy(reterr, "find out who exchanged it, and call again");
            return -1;
        }
        if (allow(plan, fd, rule, reterr) < 0)
            return -1;
    }
    return 0;
}

/* A path of the host, links followed now. */
static int add_host(struct tc_plan *plan, const char *path, uint64_t rights, bool optional,
                    struct tc_error *reterr)
{
    bool is_directory = false;
    uint64_t device = 0, inode = 0;
    struct tci_rule *rule;
    tc_cleanup(tci_closep) int fd = -1;
    int r = tci_granted_open(&plan->writables, path);
    if (r >= 0) {
        fd = r;
        r = tci_granted_identify(fd, &device, &inode, &is_directory);
    }
    if (r == -ENOENT && optional)
        return 0;
    if (r < 0) {
        tci_error_errno(reterr, -r, "the granted path %.300s", path);
        tci_error_remedy(reterr, "create it, or mark the entry with optional = true");
        return -1;
    }
    rule = add(plan, path, is_directory ? rights : rights & FILE_RIGHTS, reterr);
    if (!rule)
        return -1;
    rule->flags = TCI_MOUNT_CHECKED;
    rule->device = device;
    rule->inode = inode;
    return allow(plan, fd, rule, reterr);
}

static bool holds_programs(const char *path)
{
    return strcmp(path, "/usr") == 0 || strcmp(path, "/bin") == 0 || strcmp(path, "/sbin") == 0 ||
           strncmp(path, "/lib", 4) == 0;
}

static int process_system(struct tc_plan *plan, struct tc_error *reterr)
{
    const struct tci_settings *s = plan->spec.settings;
    const struct tci_cage_path *own;
    const uint64_t execute = plan->programs.any ? FS_EXECUTE : 0;
    for (size_t i = 0; (own = tci_cage_path_at(s, i)); i++) {
        uint64_t rights = READ | execute;
        if (strncmp(own->path, "/dev/", 5) == 0)
            rights = own->access == TCI_ACCESS_WRITABLE ? DEVICE : FS_READ_FILE | FS_IOCTL_DEV;
        if (strcmp(own->path, "/dev/fd") == 0 || strncmp(own->path, "/dev/std", 8) == 0)
            continue; /* links into /proc, which is not granted */
        /* With a list of programs the rest of /usr/bin cannot be read, or the loader would start it. */
        if (!plan->programs.any && holds_programs(own->path))
            continue;
        if (add_host(plan, own->path, rights, true, reterr) < 0)
            return -1;
    }
    if (plan->programs.any || !s->system)
        return 0;
    for (size_t i = 0; i < plan->programs.library_count; i++)
        if (add_host(plan, plan->programs.libraries[i], READ, true, reterr) < 0)
            return -1;
    return add_host(plan, "/usr/share", READ, true, reterr);
}

static int process_rules(struct tc_plan *plan, struct tc_error *reterr)
{
    const struct tci_filesystem *fs = &plan->spec.settings->filesystem;
    const uint64_t execute = plan->programs.any ? FS_EXECUTE : 0;
    if (check_expressible(plan->spec.settings, reterr) < 0 || make_ruleset(plan, reterr) < 0 ||
        add_programs(plan, reterr) < 0 || allow_programs(plan, reterr) < 0 ||
        process_system(plan, reterr) < 0)
        return -1;
    for (size_t i = 0; i < fs->count; i++) {
        const struct tci_path_rule *rule = &fs->rules[i];
        uint64_t rights = rule->access == TCI_ACCESS_WRITABLE ? writing(plan, execute)
                                                              : READ | execute;
        if (rule->access != TCI_ACCESS_HIDDEN &&
            add_host(plan, rule->host, rights, rule->optional, reterr) < 0)
            return -1;
    }
    return plan->spec.library ? add_host(plan, plan->spec.library, READ, false, reterr) : 0;
}

int tci_native_rules(struct tc_plan *plan, struct tc_error *reterr)
{
    struct tci_rules_list *list = &plan->rules;
    const int abi = plan->landlock_abi;
    /* ABI 1 forbids every move between directories. As a second wall that would cost more than it
     * gives; where Landlock is the clause itself, it stays. */
    if (abi < 1 || (abi < 2 && plan->is_jail && plan->programs.any))
        return 0;
    list->handled_fs = all_rights(abi);
    list->handled_net = !plan->is_jail && abi >= 4 &&
                                plan->spec.settings->network.mode == TCI_NETWORK_NONE
                            ? NET_BOTH
                            : 0;
    list->scoped = abi >= 6 ? SCOPE_BOTH : 0;
    list->attr_size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
    return plan->is_jail ? jail_rules(plan, reterr) : process_rules(plan, reterr);
}
