/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the stage of a bare runtime, from its start to its end. It is pid 1 of a pid namespace and has a
 * mount namespace of its own, so that whatever the runtime makes (processes, mounts, state, bundle) is
 * gone when the stage is: nothing is written to the host's file systems, and SIGKILL cleans up.
 *
 * Trusts its configuration, which is sealed; nothing of the image, and nothing that the runtime says.
 */
#include "backend/oci/stage_program.h"

#include <linux/mman.h>
#include <linux/mount.h>
#include <linux/nsfs.h>
#include <linux/sched.h>
#include "backend/furnish.h"
#include "base/bare.h"

void stage_main(long *stack);
BARE_START("stage_main");

size_t length_of(const char *text)
{
    size_t n = 0;
    while (text[n])
        n++;
    return n;
}

void numbered(char *room, const char *prefix, uint32_t number)
{
    size_t at = length_of(prefix), digits = 1;
    for (uint32_t rest = number; rest > 9; rest /= 10)
        digits++;
    memcpy(room, prefix, at);
    room[at + digits] = '\0';
    for (; digits; number /= 10)
        room[at + --digits] = (char)('0' + number % 10);
}

/* ---- reporting ------------------------------------------------------------------------------------- */

_Noreturn void leave(void)
{
    (void)CALL(exit_group, 0, 0, 0, 0, 0);
    __builtin_unreachable();
}

void send_report(const struct tci_stage_report *report)
{
    (void)CALL(write, TCI_STAGE_FD_REPORT, report,
               offsetof(struct tci_stage_report, text) + report->text_length, 0, 0);
}

_Noreturn void broken(enum tci_stage_step step, uint32_t item, long result)
{
    struct tci_stage_report report;
    report.magic = TCI_STAGE_MAGIC;
    report.end = TCI_STAGE_BROKEN;
    report.status = (int32_t)-result;
    report.step = step;
    report.item = item;
    report.text_length = 0;
    send_report(&report);
    leave();
}

long must(enum tci_stage_step step, uint32_t item, long result)
{
    if (result < 0)
        broken(step, item, result);
    return result;
}

/* ---- the gate ----------------------------------------------------------------------------------------- */

static void furnish(const struct stage *stage)
{
    uint32_t item = 0;
    long result = tci_furnish_network(stage->config, &stage->config->gate, TCI_STAGE_FD_GATE,
                                      &item);
    must(TCI_STAGE_STEP_GATE, item, result);
    (void)CALL(close, TCI_STAGE_FD_GATE, 0, 0, 0, 0);
}

/* A namespace that an engine has made. What may be done in it is decided by the user namespace that owns
 * it: that is entered first, unless it is our own (EINVAL). */
static void enter_owner(enum tci_stage_step step, int namespace)
{
    long owner = must(step, 0, CALL(ioctl, namespace, NS_GET_USERNS, 0, 0, 0)), result;
    result = CALL(setns, owner, CLONE_NEWUSER, 0, 0, 0);
    if (result != -EINVAL)
        must(step, 1, result);
    (void)CALL(close, owner, 0, 0, 0, 0);
}

static void set_attributes(uint32_t item, long mount, long flags, uint64_t set, uint64_t clear)
{
    struct mount_attr attr = { .attr_set = set, .attr_clr = clear };
    must(TCI_STAGE_STEP_SEAL, item,
         CALL(mount_setattr, mount, "", STAGE_AT_EMPTY_PATH | flags, &attr, sizeof attr));
}

static void take_away(uint32_t item, long mount)
{
    must(TCI_STAGE_STEP_SEAL, item, CALL(fchdir, mount, 0, 0, 0, 0));
    must(TCI_STAGE_STEP_SEAL, item, CALL(umount2, ".", STAGE_UMOUNT_DETACH, 0, 0, 0));
}

/*
 * Handles on mounts of this very namespace, which nobody can exchange: no path is followed. The attacks:
 * a device node in an image, or in a granted directory under Docker, that the command may open; and a
 * file system that the host has mounted below a path that is granted for reading, which a rootless engine
 * brings along and leaves writable.
 */
static void seal_tree(const char *how)
{
    must(TCI_STAGE_STEP_TREE, 2, CALL(setns, TCI_STAGE_FD_TREE, CLONE_NEWNS, 0, 0, 0));
    set_attributes(0, TCI_STAGE_FD_ROOTFS, 0, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID, 0);
    for (uint32_t i = 0; how[i]; i++) {
        const int bits = how[i] - TCI_STAGE_SEAL;
        if (how[i] == TCI_STAGE_TAKE_AWAY) {
            take_away(i + 1, TCI_STAGE_FD_MOUNTS + i);
            continue;
        }
        set_attributes(i + 1, TCI_STAGE_FD_MOUNTS + i, STAGE_AT_RECURSIVE,
                       MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID |
                           (bits & TCI_STAGE_SEAL_READ_ONLY ? MOUNT_ATTR_RDONLY : 0) |
                           (bits & TCI_STAGE_SEAL_NO_EXEC ? MOUNT_ATTR_NOEXEC : 0),
                       0);
    }
    /* Grants that lie within others, and may do more. */
    for (uint32_t i = 0; how[i]; i++) {
        const int bits = how[i] - TCI_STAGE_SEAL;
        if (how[i] != TCI_STAGE_TAKE_AWAY && bits & (TCI_STAGE_SEAL_WRITABLE | TCI_STAGE_SEAL_EXEC))
            set_attributes(i + 1, TCI_STAGE_FD_MOUNTS + i, 0, 0,
                           (bits & TCI_STAGE_SEAL_WRITABLE ? MOUNT_ATTR_RDONLY : 0) |
                               (bits & TCI_STAGE_SEAL_EXEC ? MOUNT_ATTR_NOEXEC : 0));
    }
}

static _Noreturn void furnish_other(const struct stage *stage, const char *how)
{
    struct tci_stage_report report;
    const bool has_gate = stage->config->gate.is_there;
    /* Of a container's namespaces there is one owner. */
    enter_owner(has_gate ? TCI_STAGE_STEP_NETWORK : TCI_STAGE_STEP_TREE,
                has_gate ? TCI_STAGE_FD_NETWORK : TCI_STAGE_FD_TREE);
    if (has_gate) {
        must(TCI_STAGE_STEP_NETWORK, 2, CALL(setns, TCI_STAGE_FD_NETWORK, CLONE_NEWNET, 0, 0, 0));
        furnish(stage);
    }
    if (how)
        seal_tree(how);
    report.magic = TCI_STAGE_MAGIC;
    report.end = TCI_STAGE_FURNISHED;
    report.status = 0;
    report.step = report.item = report.text_length = 0;
    send_report(&report);
    leave();
}

/* ---- start ---------------------------------------------------------------------------------------------- */

static void map_config(struct stage *stage)
{
    struct tci_stage_config header = { 0 };
    long n = CALL(pread64, TCI_STAGE_FD_CONFIG, &header, sizeof header, 0, 0), address;
    if (n != (long)sizeof header || header.magic != TCI_STAGE_MAGIC)
        broken(TCI_STAGE_STEP_CONFIG, 0, n < 0 ? n : -EINVAL);
    address = CALL6(mmap, 0, header.size, PROT_READ, MAP_PRIVATE, TCI_STAGE_FD_CONFIG, 0);
    must(TCI_STAGE_STEP_CONFIG, 1, address);
    stage->config = (const struct tci_stage_config *)address;
}

/* 0, 1 and 2 are nobody's: nothing that is opened later may come to lie there. */
static void fill_streams(void)
{
    for (int i = 0; i < 3; i++)
        must(TCI_STAGE_STEP_CONFIG, 2,
             CALL(openat, STAGE_AT_CWD, "/dev/null", STAGE_O_READ_WRITE, 0, 0));
}

/* Root has made the user namespace, and only it can say who is who in there. Until then we are nobody, with
 * the few capabilities that we were started with; then its root, which on the host is nobody. */
static void become_user(void)
{
    char byte;
    if (CALL(read, TCI_STAGE_FD_GO, &byte, 1, 0, 0) != 1)
        broken(TCI_STAGE_STEP_GO, 0, -EPIPE);
    /* Root's other groups (disk, shadow, docker) would stay with the sandbox, and with who breaks out of it. */
    must(TCI_STAGE_STEP_GO, 3, CALL(setgroups, 0, 0, 0, 0, 0));
    must(TCI_STAGE_STEP_GO, 1, CALL(setresgid, 0, 0, 0, 0, 0));
    must(TCI_STAGE_STEP_GO, 2, CALL(setresuid, 0, 0, 0, 0, 0));
}

/* The attack: the kernel counts inotify instances for each user (128), and a tool that takes them all leaves none to
 * its user's other programs. Here is a user namespace of the cage's own, with a share of its own, as in a jail; what a
 * runtime makes inside counts here as well. Where /proc/sys cannot be written (within a container of others), the
 * user's limit holds alone. */
static void limit_watchers(void)
{
    static const struct {
        const char *path, *share;
    } shares[] = { { "/proc/sys/user/max_inotify_instances", "16" },
                   { "/proc/sys/user/max_inotify_watches", "8192" } };
    for (unsigned i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        long fd = CALL(openat, STAGE_AT_CWD, shares[i].path, STAGE_O_WRITE | STAGE_O_CLOEXEC, 0, 0);
        if (fd < 0)
            continue;
        (void)CALL(write, fd, shares[i].share, length_of(shares[i].share), 0, 0);
        (void)CALL(close, fd, 0, 0, 0, 0);
    }
}

__attribute__((used)) void stage_main(long *stack)
{
    char **argv = (char **)(stack + 1);
    struct stage stage = { .rootfs = -1 };
    fill_streams();
    map_config(&stage);
    if (argv[0][0] == 'f')
        furnish_other(&stage, argv[1]);
    stage.id = argv[1];
    if (stage.config->is_mapped)
        become_user();
    if (stage.config->is_user)
        limit_watchers();
    (void)CALL(umask, 0, 0, 0, 0, 0); /* modes are what we say, whatever the host has set */
    make_tree(&stage);
    (void)CALL(umask, 022, 0, 0, 0, 0);
    if (stage.config->gate.is_there)
        furnish(&stage);
    run_runtime(&stage);
}
