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

void stage_main(long *stack);
BARE_START("stage_main");

/* The compiler writes calls of these two, also into a program without a C library. */
void *memset(void *to, int value, size_t size);
void *memcpy(void *restrict to, const void *restrict from, size_t size);

void *memset(void *to, int value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((char *)to)[i] = (char)value;
    return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((char *)to)[i] = ((const char *)from)[i];
    return to;
}

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

static struct tci_furnish_messages messages(const struct stage *stage,
                                            const struct tci_stage_array *array)
{
    return (struct tci_furnish_messages){ config_at(stage, array->offset), array->count };
}

static void furnish(const struct stage *stage)
{
    const struct tci_stage_gate *gate = &stage->config->gate;
    const struct tci_furnish what = { .v4 = messages(stage, &gate->v4),
                                      .v6 = messages(stage, &gate->v6),
                                      .catcher = messages(stage, &gate->catcher),
                                      .ports = config_at(stage, gate->ports.offset),
                                      .port_count = gate->ports.count,
                                      .has_v6 = gate->has_v6 };
    uint32_t item = 0;
    long result = tci_furnish_network(&what, TCI_STAGE_FD_GATE, &item);
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

/* Handles on mounts of this very namespace, which nobody can exchange: no path is followed. The attack: a
 * device node in an image, or in a granted directory under Docker, that the command may open. */
static void seal_tree(uint32_t count)
{
    struct mount_attr attr = { .attr_set = MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID };
    must(TCI_STAGE_STEP_TREE, 2, CALL(setns, TCI_STAGE_FD_TREE, CLONE_NEWNS, 0, 0, 0));
    must(TCI_STAGE_STEP_SEAL, 0,
         CALL(mount_setattr, TCI_STAGE_FD_ROOTFS, "", STAGE_AT_EMPTY_PATH, &attr, sizeof attr));
    for (uint32_t i = 0; i < count; i++)
        must(TCI_STAGE_STEP_SEAL, i + 1,
             CALL(mount_setattr, TCI_STAGE_FD_MOUNTS + i, "",
                  STAGE_AT_EMPTY_PATH | STAGE_AT_RECURSIVE, &attr, sizeof attr));
}

static uint32_t number_of(const char *digits)
{
    uint32_t number = 0;
    for (; *digits >= '0' && *digits <= '9'; digits++)
        number = number * 10 + (uint32_t)(*digits - '0');
    return number;
}

static _Noreturn void furnish_other(const struct stage *stage, const char *sealed)
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
    if (sealed)
        seal_tree(number_of(sealed));
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
    (void)CALL(umask, 0, 0, 0, 0, 0); /* modes are what we say, whatever the host has set */
    make_tree(&stage);
    (void)CALL(umask, 022, 0, 0, 0, 0);
    if (stage.config->gate.is_there)
        furnish(&stage);
    run_runtime(&stage);
}
