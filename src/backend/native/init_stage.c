/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the way from fresh namespaces into the cage: who we are, a root directory made only of what
 * the plan lists, and no way back to the host's. Runs as pid 1 with all capabilities in the cage's
 * user namespace and none outside; before the command exists, so nobody races with it inside.
 *
 * Every mount gets its attributes while it is detached: there is no moment at which a path is
 * attached and not yet read-only. Mount points are looked up beneath the new root, links refused.
 */
#include "backend/native/init.h"

#include <linux/capability.h>
#include <linux/fcntl.h>
#include <linux/if.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/socket.h>
#include <linux/sockios.h>
#include <linux/stat.h>

enum {
    at_cwd = -100,
    at_empty_path = 0x1000,
    at_recursive = 0x8000,
    o_path = 010000000,
    o_cloexec = 02000000,
    o_create = 0100,
    o_exclusive = 0200,
    o_write = 01,
    o_directory = 0200000,
    detach = 2, /* MNT_DETACH */
    family_unix = 1,
    socket_datagram = 2,
    regular_file = 0100000,
    close_after = 64, /* mounts, after which handles are not left to the end */
};
static const uint64_t private_propagation = 1 << 18; /* MS_PRIVATE */

#if defined(__aarch64__)
enum { arch_o_directory = 040000 };
#else
enum { arch_o_directory = o_directory };
#endif

static size_t length_of(const char *text)
{
    size_t n = 0;
    while (text[n])
        n++;
    return n;
}

static void write_file(const char *path, const char *text, enum tci_init_step step)
{
    long fd = must(step, 0, CALL(openat, at_cwd, path, o_write | o_cloexec, 0, 0));
    must(step, 0, CALL(write, fd, text, length_of(text), 0, 0));
    (void)CALL(close, fd, 0, 0, 0, 0);
}

/* ---- who we are ---------------------------------------------------------------------------- */

static void map_ids(const struct init *init)
{
    char byte;
    if (init->is_mapped) {
        /* The supervisor is root: only it can map the cage to a user that is not root. */
        if (CALL(read, TCI_INIT_FD_GO, &byte, 1, 0, 0) != 1)
            broken(TCI_INIT_STEP_GO, 0, -EPIPE);
    } else {
        write_file("/proc/self/setgroups", "deny", TCI_INIT_STEP_ID_MAP);
        write_file("/proc/self/uid_map", config_at(init, init->config->uid_map),
                   TCI_INIT_STEP_ID_MAP);
        write_file("/proc/self/gid_map", config_at(init, init->config->gid_map),
                   TCI_INIT_STEP_ID_MAP);
    }
    become_user(init);
}

/* Programs that talk to themselves over 127.0.0.1 work; nothing else is on this network. */
static void bring_up_loopback(void)
{
    struct ifreq request = { .ifr_name = "lo" };
    long fd = must(TCI_INIT_STEP_LOOPBACK, 0,
                   CALL(socket, family_unix, socket_datagram | o_cloexec, 0, 0, 0));
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    must(TCI_INIT_STEP_LOOPBACK, 0, CALL(ioctl, fd, SIOCSIFFLAGS, &request, 0, 0));
    (void)CALL(close, fd, 0, 0, 0, 0);
}

/* ---- mounts -------------------------------------------------------------------------------- */

static long new_filesystem(const char *type, const char *options, size_t length, uint32_t item)
{
    long context = must(TCI_INIT_STEP_MOUNT, item, CALL(fsopen, type, 1 /* CLOEXEC */, 0, 0, 0));
    long mount;
    const char *end = options + length;
    while (options < end) {
        const char *value = options + length_of(options) + 1;
        must(TCI_INIT_STEP_MOUNT, item,
             CALL(fsconfig, context, FSCONFIG_SET_STRING, options, value, 0));
        options = value + length_of(value) + 1;
    }
    must(TCI_INIT_STEP_MOUNT, item, CALL(fsconfig, context, FSCONFIG_CMD_CREATE, 0, 0, 0));
    mount = must(TCI_INIT_STEP_MOUNT, item, CALL(fsmount, context, 1 /* CLOEXEC */, 0, 0, 0));
    return mount;
}

static void set_attributes(long mount, uint64_t attributes, uint32_t flags, uint32_t item)
{
    struct mount_attr attr = { .attr_set = attributes, .propagation = private_propagation };
    must(TCI_INIT_STEP_ATTRIBUTES, item,
         CALL(mount_setattr, mount, "", at_empty_path | flags, &attr, sizeof attr));
}

/* A copy of a part of the host's tree. What was checked is opened first and compared; what belongs to
 * the system is taken by its name. */
static long clone_tree(const struct tci_init_mount *m, const char *path, uint32_t item)
{
    const unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | at_recursive;
    long source;
    if (!(m->flags & TCI_MOUNT_CHECKED))
        return must(TCI_INIT_STEP_MOUNT_SOURCE, item, CALL(open_tree, at_cwd, path, flags, 0, 0));
    source = open_checked(at_cwd, path, m->flags, m->device, m->inode);
    must(source == -ESTALE ? TCI_INIT_STEP_MOUNT_CHANGED : TCI_INIT_STEP_MOUNT_SOURCE, item,
         source);
    return must(TCI_INIT_STEP_MOUNT, item,
                CALL(open_tree, source, "", flags | at_empty_path, 0, 0));
}

static long detached_mount(const struct init *init, const struct tci_init_mount *m, uint32_t item)
{
    const char *text = config_at(init, m->text);
    long mount;
    switch (m->kind) {
    case TCI_MOUNT_HANDED:
        return TCI_INIT_FD_MOUNTS + (long)m->handed;
    case TCI_MOUNT_TMPFS:
        mount = new_filesystem("tmpfs", text, m->text_length, item);
        break;
    case TCI_MOUNT_PROC:
        mount = new_filesystem("proc", text, m->text_length, item);
        break;
    default:
        mount = clone_tree(m, text, item);
    }
    set_attributes(mount, m->attributes, at_recursive, item);
    return mount;
}

/* The mount point beneath the new root; a link on the way, planted in a granted directory, is
 * refused. */
static long open_target(long root, const char *path, uint32_t item)
{
    struct open_how how = { .flags = o_path | o_cloexec,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                                       RESOLVE_NO_MAGICLINKS };
    return must(TCI_INIT_STEP_MOUNT_POINT, item, CALL(openat2, root, path, &how, sizeof how, 0));
}

static void make_file(long root, const char *path, const char *text, uint32_t length, uint32_t item)
{
    long fd = must(TCI_INIT_STEP_MOUNT_POINT, item,
                   CALL(openat, root, path, o_write | o_create | o_exclusive | o_cloexec, 0444, 0));
    if (length && CALL(write, fd, text, length, 0, 0) != (long)length)
        broken(TCI_INIT_STEP_MOUNT_POINT, item, -EIO);
    (void)CALL(close, fd, 0, 0, 0, 0);
}

static void make_directory(long root, const char *path, uint32_t item)
{
    long result = CALL(mkdirat, root, path, 0755, 0, 0);
    if (result != -EEXIST)
        must(TCI_INIT_STEP_MOUNT_POINT, item, result);
}

static void make_point(long root, const char *path, bool is_file, uint32_t item)
{
    if (is_file)
        must(TCI_INIT_STEP_MOUNT_POINT, item, CALL(mknodat, root, path, regular_file | 0444, 0, 0));
    else
        make_directory(root, path, item);
}

/* Returns the new root if this was it. */
static long place(const struct init *init, long root, const struct tci_init_mount *m, uint32_t item)
{
    const char *target = config_at(init, m->target), *text = config_at(init, m->text);
    long mount, point;
    switch (m->kind) {
    case TCI_MOUNT_DIRECTORY:
        make_directory(root, target, item);
        return root;
    case TCI_MOUNT_FILE:
        make_file(root, target, text, m->text_length, item);
        return root;
    case TCI_MOUNT_LINK:
        must(TCI_INIT_STEP_MOUNT_POINT, item, CALL(symlinkat, text, root, target, 0, 0));
        return root;
    default:
        break;
    }
    mount = detached_mount(init, m, item);
    if (!*target) {
        must(TCI_INIT_STEP_ROOT, item,
             CALL(move_mount, mount, "", at_cwd, "/", MOVE_MOUNT_F_EMPTY_PATH));
        return mount;
    }
    if (m->flags & TCI_MOUNT_MAKE) {
        /* On a file system of ours there is nobody else's link. */
        make_point(root, target, m->flags & TCI_MOUNT_IS_FILE, item);
        must(TCI_INIT_STEP_MOUNT, item,
             CALL(move_mount, mount, "", root, target, MOVE_MOUNT_F_EMPTY_PATH));
        if (item > close_after)
            (void)CALL(close, mount, 0, 0, 0, 0);
        return root;
    }
    point = open_target(root, target, item);
    must(TCI_INIT_STEP_MOUNT, item,
         CALL(move_mount, mount, "", point, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
    return root;
}

/* The host's root is not hidden, it is gone: pivot_root lays it over the new one, where no path of
 * ours leads, and then it is taken away. */
static void pivot(long root)
{
    must(TCI_INIT_STEP_PIVOT, 0, CALL(fchdir, root, 0, 0, 0, 0));
    must(TCI_INIT_STEP_PIVOT, 1, CALL(pivot_root, ".", ".", 0, 0, 0));
}

void leave_host(void)
{
    must(TCI_INIT_STEP_PIVOT, 2, CALL(umount2, ".", detach, 0, 0, 0));
    must(TCI_INIT_STEP_PIVOT, 3, CALL(chdir, "/", 0, 0, 0, 0));
}

static void make_root(const struct init *init)
{
    const struct tci_sealed_array *list = &init->config->mounts;
    const struct tci_init_mount *mounts = config_at(init, list->offset);
    /* Nothing that is mounted on the host from now on may appear in here, nor the other way. */
    struct mount_attr alone = { .propagation = private_propagation };
    long root = -1;
    must(TCI_INIT_STEP_ROOT, 0,
         CALL(mount_setattr, at_cwd, "/", at_recursive, &alone, sizeof alone));
    for (uint32_t i = 0; i < list->count; i++)
        root = place(init, root, &mounts[i], i);
    for (uint32_t i = 0; i < list->count; i++)
        if (mounts[i].flags & TCI_MOUNT_SEAL)
            set_attributes(open_target(root, config_at(init, mounts[i].target), i),
                           MOUNT_ATTR_RDONLY, 0, i);
    /* The root itself was open for making mount points. */
    set_attributes(root, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0, 0);
    pivot(root);
    /* Every handle that was opened on the way, all at once. */
    (void)CALL(close_range, TCI_INIT_FD_MOUNTS, ~0U, 0, 0, 0);
}

/* Objects that a user namespace takes from its maker's share: a cage could use up what the user's
 * editors and servers need. Where it cannot be set, the host's own numbers hold. */
static void limit_share(void)
{
    static const struct {
        const char *path, *value;
    } shares[] = { { "/proc/sys/user/max_inotify_instances", "16" },
                   { "/proc/sys/user/max_inotify_watches", "8192" } };
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        long fd = CALL(openat, at_cwd, shares[i].path, o_write | o_cloexec, 0, 0);
        if (fd >= 0)
            (void)CALL(write, fd, shares[i].value, length_of(shares[i].value), 0, 0);
        if (fd >= 0)
            (void)CALL(close, fd, 0, 0, 0, 0);
    }
}

void enter_cage(const struct init *init)
{
    const struct tci_init_config *config = init->config;
    map_ids(init);
    limit_share();
    must(TCI_INIT_STEP_NAMESPACES, 0,
         CALL(unshare, CLONE_NEWCGROUP | (config->time ? CLONE_NEWTIME : 0), 0, 0, 0, 0));
    must(TCI_INIT_STEP_HOST_NAME, 0, CALL(sethostname, "cage", 4, 0, 0, 0));
    if (config->gate.is_there)
        furnish_network(init);
    else if (config->loopback)
        bring_up_loopback();
    make_root(init);
}
