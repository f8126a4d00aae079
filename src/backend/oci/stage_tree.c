/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: everything that the runtime finds, in the stage's mount namespace: its own /proc, no control
 * groups, and one file system in memory at TCI_STAGE_DIRECTORY with the bundle, the granted paths, the
 * runtime's state and the root directory; in another is what is written to that.
 *
 * Paths of the host are opened before anything is mounted (TCI_STAGE_DIRECTORY hides what is there), and
 * are what was checked, or the cage is not built. The root directory is an overlay, nosuid and nodev: a
 * setuid program or a device node of an image is a file like any other.
 */
#include "backend/oci/stage_program.h"

#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <linux/stat.h>

enum { cloexec = 1, mounts_max = 512, path_room = 64 };

static const uint64_t private_propagation = 1 << 18; /* MS_PRIVATE */

/* ---- file systems ---------------------------------------------------------------------------------------- */

struct option {
    const char *name, *value; /* NULL: a flag */
};

static long new_filesystem(const char *type, const struct option *options, size_t count,
                           uint64_t attributes)
{
    long context = CALL(fsopen, type, cloexec, 0, 0, 0), result = 0, mount;
    if (context < 0)
        return context;
    for (size_t i = 0; i < count && result >= 0; i++)
        result = CALL(fsconfig, context, options[i].value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG,
                      options[i].name, options[i].value, 0);
    if (result >= 0)
        result = CALL(fsconfig, context, FSCONFIG_CMD_CREATE, 0, 0, 0);
    mount = result < 0 ? result : CALL(fsmount, context, cloexec, attributes, 0, 0);
    (void)CALL(close, context, 0, 0, 0, 0);
    return mount;
}

static long attach(long mount, long directory, const char *path)
{
    return CALL(move_mount, mount, "", directory, path, MOVE_MOUNT_F_EMPTY_PATH);
}

long memory_filesystem(const char *size, const char *inodes, const char *mode, uint64_t attributes)
{
    const struct option options[] = { { "size", size }, { "nr_inodes", inodes }, { "mode", mode } };
    return new_filesystem("tmpfs", options, 3, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | attributes);
}

/*
 * The runtimes look at /proc for themselves and for control groups. These are the supervisor's business:
 * a runtime that finds the unified hierarchy, read-only, and is told to do without, leaves them alone. It
 * is seen from a control group namespace of the stage's own, in which our group is the top.
 */
static void cover_host(void)
{
    const uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
    struct mount_attr alone = { .propagation = private_propagation };
    long mount;
    must(TCI_STAGE_STEP_PRIVATE, 0,
         CALL(mount_setattr, STAGE_AT_CWD, "/", STAGE_AT_RECURSIVE, &alone, sizeof alone));
    must(TCI_STAGE_STEP_CGROUP, 0, CALL(unshare, CLONE_NEWCGROUP, 0, 0, 0, 0));
    mount = must(TCI_STAGE_STEP_CGROUP, 1,
                 new_filesystem("cgroup2", NULL, 0, attributes | MOUNT_ATTR_RDONLY));
    must(TCI_STAGE_STEP_CGROUP, 2, attach(mount, STAGE_AT_CWD, "/sys/fs/cgroup"));
    (void)CALL(close, mount, 0, 0, 0, 0);
    mount = must(TCI_STAGE_STEP_PROC, 0, new_filesystem("proc", NULL, 0, attributes));
    must(TCI_STAGE_STEP_PROC, 1, attach(mount, STAGE_AT_CWD, "/proc"));
    (void)CALL(close, mount, 0, 0, 0, 0);
}

/* ---- paths of the host --------------------------------------------------------------------------------------- */

/* O_PATH, if it still is what was checked; -ESTALE: it is not. */
static long open_checked(const char *path, uint64_t device, uint64_t inode)
{
    struct open_how how = { .flags = STAGE_O_PATH | STAGE_O_CLOEXEC,
                            .resolve = RESOLVE_NO_MAGICLINKS };
    struct statx found = { 0 };
    long fd = CALL(openat2, STAGE_AT_CWD, path, &how, sizeof how, 0), result;
    if (fd < 0)
        return fd;
    result = CALL(statx, fd, "", STAGE_AT_EMPTY_PATH, STATX_INO, &found);
    if (result == 0 && (found.stx_ino != inode ||
                        ((uint64_t)found.stx_dev_major << 32 | found.stx_dev_minor) != device))
        result = -ESTALE;
    return result < 0 ? result : fd;
}

/* A copy of the mount, attached nowhere; it gets its attributes before anybody can see it. */
static long detach(const struct stage *stage, const struct tci_stage_mount *m, uint32_t item)
{
    struct mount_attr attr = { .attr_set = m->attributes, .propagation = private_propagation };
    const long flags = STAGE_AT_EMPTY_PATH | STAGE_AT_RECURSIVE;
    long source = open_checked(config_at(stage, m->host), m->device, m->inode), mount;
    must(source == -ESTALE ? TCI_STAGE_STEP_SOURCE_CHANGED : TCI_STAGE_STEP_SOURCE, item, source);
    mount = must(TCI_STAGE_STEP_SOURCE, item,
                 CALL(open_tree, source, "", OPEN_TREE_CLONE | STAGE_O_CLOEXEC | flags, 0, 0));
    (void)CALL(close, source, 0, 0, 0, 0);
    must(TCI_STAGE_STEP_ATTRIBUTES, item,
         CALL(mount_setattr, mount, "", flags, &attr, sizeof attr));
    return mount;
}

static void open_sources(struct stage *stage, int *sources)
{
    const struct tci_stage_config *config = stage->config;
    const struct tci_stage_mount *mounts = config_at(stage, config->mounts.offset);
    long root = TCI_STAGE_FD_ROOTFS;
    if (!config->is_mapped)
        root = open_checked(config_at(stage, config->rootfs), config->rootfs_device,
                            config->rootfs_inode);
    stage->rootfs = must(root == -ESTALE ? TCI_STAGE_STEP_ROOTFS_CHANGED : TCI_STAGE_STEP_ROOTFS, 0,
                         root);
    /* A missing one is reported when it is started. */
    stage->program = CALL(openat, STAGE_AT_CWD, config_at(stage, config->program),
                          STAGE_O_PATH | STAGE_O_CLOEXEC, 0, 0);
    if (config->mounts.count > mounts_max)
        broken(TCI_STAGE_STEP_SOURCE, 0, -E2BIG);
    for (uint32_t i = 0; i < config->mounts.count; i++)
        sources[i] = mounts[i].kind == TCI_STAGE_MOUNT_BIND ? (int)detach(stage, &mounts[i], i)
                     : mounts[i].kind == TCI_STAGE_MOUNT_HANDED
                         ? TCI_STAGE_FD_MOUNTS + (int)mounts[i].handed
                         : -1;
}

/* ---- files of ours ------------------------------------------------------------------------------------------- */

static void make_directory(const struct stage *stage, const char *path)
{
    must(TCI_STAGE_STEP_FILES, 0, CALL(mkdirat, stage->memory, path, 0755, 0, 0));
}

static long make_file(const struct stage *stage, const char *path, int mode)
{
    return must(TCI_STAGE_STEP_FILES, 1,
                CALL(openat, stage->memory, path,
                     STAGE_O_WRITE | STAGE_O_CREATE | STAGE_O_EXCLUSIVE | STAGE_O_CLOEXEC, mode,
                     0));
}

static void write_file(const struct stage *stage, const char *path, int mode, const char *text,
                       size_t length)
{
    long fd = make_file(stage, path, mode), n;
    for (; length; text += n, length -= (size_t)n) {
        n = must(TCI_STAGE_STEP_FILES, 2, CALL(write, fd, text, length, 0, 0));
        if (n == 0)
            broken(TCI_STAGE_STEP_FILES, 2, -EIO);
    }
    (void)CALL(close, fd, 0, 0, 0, 0);
}

/* Programs of ours: from the sealed files that the library has. */
static void copy_program(const struct stage *stage, int from, const char *path)
{
    const long whole = 1L << 30;
    long fd = make_file(stage, path, 0555);
    long long at = 0;
    while (must(TCI_STAGE_STEP_FILES, 3, CALL(sendfile, fd, from, &at, whole, 0)) > 0)
        ;
    (void)CALL(close, fd, 0, 0, 0, 0);
}

static void make_files(struct stage *stage)
{
    static const char *const directories[] = { "bundle", "rootfs", "m", "state", "own", "view" };
    const struct tci_stage_config *config = stage->config;
    for (size_t i = 0; i < sizeof directories / sizeof directories[0]; i++)
        make_directory(stage, directories[i]);
    if (config->is_mapped)
        make_directory(stage, "lower");
    write_file(stage, "bundle/config.json", 0444, config_at(stage, config->bundle.offset),
               config->bundle.count);
    copy_program(stage, TCI_STAGE_FD_ENTRY, "own/entry");
    if (config->has_program)
        copy_program(stage, TCI_STAGE_FD_PROGRAM, "own/program");
}

/* A file system of its own: what is written to the root directory has `disk` for its limit, and what the
 * stage has written is not part of it. */
static void make_upper(struct stage *stage)
{
    const struct tci_stage_config *config = stage->config;
    const uint32_t owner = config->upper_owner;
    long mount = must(TCI_STAGE_STEP_MEMORY, config->mounts.count,
                      memory_filesystem(config_at(stage, config->upper_size),
                                        config_at(stage, config->upper_inodes), "0755", 0));
    make_directory(stage, "top");
    must(TCI_STAGE_STEP_MEMORY, config->mounts.count, attach(mount, stage->memory, "top"));
    (void)CALL(close, mount, 0, 0, 0, 0);
    make_directory(stage, "top/work");
    make_directory(stage, "top/upper");
    if (owner)
        must(TCI_STAGE_STEP_FILES, 5, CALL(fchownat, stage->memory, "top/upper", owner, owner, 0));
    stage->upper = must(
        TCI_STAGE_STEP_FILES, 4,
        CALL(openat, stage->memory, "top/upper", STAGE_O_PATH | STAGE_O_CLOEXEC, 0, 0));
}

/* ---- the root directory and what is granted -------------------------------------------------------------------- */

static void lay_over(const struct stage *stage)
{
    char lower[path_room] = TCI_STAGE_PLACE "/lower";
    const struct option options[] = { { "lowerdir", lower },
                                      { "upperdir", TCI_STAGE_PLACE "/top/upper" },
                                      { "workdir", TCI_STAGE_PLACE "/top/work" },
                                      { "userxattr", NULL } };
    long mount;
    /* By its handle: what lies at the path may be hidden by now, and colons mean something. */
    if (stage->config->is_mapped) /* an overlay takes only what is attached */
        must(TCI_STAGE_STEP_OVERLAY, 2, attach(stage->rootfs, stage->memory, "lower"));
    else
        numbered(lower, "/proc/self/fd/", (uint32_t)stage->rootfs);
    mount = must(TCI_STAGE_STEP_OVERLAY, 0,
                 new_filesystem("overlay", options, stage->config->is_user ? 4 : 3,
                                MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                    (stage->config->seal_root ? MOUNT_ATTR_RDONLY : 0)));
    must(TCI_STAGE_STEP_OVERLAY, 1, attach(mount, stage->memory, "rootfs"));
    (void)CALL(close, mount, 0, 0, 0, 0);
}

static void stage_mount(const struct stage *stage, const struct tci_stage_mount *m, int source,
                        uint32_t item)
{
    char path[path_room];
    long mount = source;
    numbered(path, "m/", m->number);
    if (m->kind == TCI_STAGE_MOUNT_FILE) {
        write_file(stage, path, (int)m->file_mode, config_at(stage, m->text.offset), m->text.count);
        return;
    }
    if (m->kind == TCI_STAGE_MOUNT_TMPFS)
        mount = must(TCI_STAGE_STEP_MEMORY, item,
                     memory_filesystem(config_at(stage, m->size), config_at(stage, m->inodes),
                                       config_at(stage, m->mode), m->attributes));
    if (m->flags & TCI_STAGE_IS_FILE)
        (void)CALL(close, make_file(stage, path, 0444), 0, 0, 0, 0);
    else
        make_directory(stage, path);
    must(TCI_STAGE_STEP_ATTACH, item, attach(mount, stage->memory, path));
    (void)CALL(close, mount, 0, 0, 0, 0);
}

void make_tree(struct stage *stage)
{
    const struct tci_stage_config *config = stage->config;
    const struct tci_stage_mount *mounts = config_at(stage, config->mounts.offset);
    int sources[mounts_max] = { 0 };
    open_sources(stage, sources);
    cover_host();
    stage->memory = must(TCI_STAGE_STEP_MEMORY, config->mounts.count,
                         memory_filesystem(config_at(stage, config->memory_size),
                                           config_at(stage, config->memory_inodes), "0755", 0));
    must(TCI_STAGE_STEP_MEMORY, config->mounts.count,
         attach(stage->memory, STAGE_AT_CWD, TCI_STAGE_PLACE));
    make_files(stage);
    make_upper(stage);
    make_points(stage);
    lay_over(stage);
    for (uint32_t i = 0; i < config->mounts.count; i++)
        if (mounts[i].kind != TCI_STAGE_MOUNT_NONE)
            stage_mount(stage, &mounts[i], sources[i], i);
    mount_inner(stage);
    if (config->has_view)
        make_view(stage);
}
