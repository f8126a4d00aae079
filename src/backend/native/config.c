/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: writing the plan down for init: one sealed file of memory, the same for every call. */
#include "backend/native/native.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "backend/program.h"
#include "base/buf.h"
#include "base/fd.h"
#include "gate/inside.h"
#include "gate/setup.h"

enum { config_max = 16 << 20 };

static uint32_t put(struct tci_buf *out, const void *bytes, size_t length)
{
    static const char zeros[8];
    uint32_t offset;
    if (out->length % 8)
        tci_buf_append(out, zeros, 8 - out->length % 8);
    offset = (uint32_t)out->length;
    tci_buf_append(out, bytes, length);
    return offset;
}

static uint32_t put_text(struct tci_buf *out, const char *text)
{
    uint32_t offset = (uint32_t)out->length;
    tci_buf_append(out, text, strlen(text) + 1);
    return offset;
}

static void put_mounts(struct tci_buf *out, const struct tc_plan *plan, struct tci_init_array *ret)
{
    const struct tci_mounts_list *list = &plan->mounts;
    uint32_t handed = 0, offset;
    struct tci_init_mount *all = tci_arena_new_array(plan->arena, list->count ? list->count : 1,
                                                     struct tci_init_mount);
    if (!all) {
        out->no_memory = true;
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        const struct tci_mount *m = &list->items[i];
        all[i] = (struct tci_init_mount){
            .kind = m->kind,
            .flags = m->flags,
            .target = put_text(out, m->target),
            .text = (uint32_t)out->length,
            .text_length = (uint32_t)m->text_length,
            .handed = m->kind == TCI_MOUNT_HANDED ? handed++ : 0,
            .attributes = m->attributes,
            .device = m->device,
            .inode = m->inode,
        };
        tci_buf_append(out, m->text, m->text_length + 1); /* arena texts have a NUL behind them */
    }
    offset = put(out, all, list->count * sizeof *all);
    *ret = (struct tci_init_array){ offset, (uint32_t)list->count };
}

static void put_rules(struct tci_buf *out, const struct tc_plan *plan, struct tci_init_array *ret)
{
    const struct tci_rules_list *list = &plan->rules;
    uint32_t offset;
    struct tci_init_rule *all = tci_arena_new_array(plan->arena, list->count ? list->count : 1,
                                                    struct tci_init_rule);
    if (!all) {
        out->no_memory = true;
        return;
    }
    for (size_t i = 0; i < list->count; i++)
        all[i] = (struct tci_init_rule){ .path = put_text(out, list->items[i].path),
                                         .flags = list->items[i].flags,
                                         .rights = list->items[i].rights,
                                         .device = list->items[i].device,
                                         .inode = list->items[i].inode };
    offset = put(out, all, list->count * sizeof *all);
    *ret = (struct tci_init_array){ offset, (uint32_t)list->count };
}

static struct tci_init_array put_messages(struct tci_buf *out, const struct tci_netlink_batch *b)
{
    return (struct tci_init_array){ put(out, b->bytes, b->used), (uint32_t)b->used };
}

static void put_gate(struct tci_buf *out, const struct tc_plan *plan, struct tci_init_gate *ret)
{
    static const uint16_t catcher = TCI_GATE_CATCH_PORT, dns = TCI_GATE_DNS_PORT;
    const struct tci_gate_ports *ports = &plan->gate_ports;
    struct tci_gate_setup setup;
    tci_gate_setup(ports->every, tci_gate_catches_loopback(&plan->spec.settings->network), &setup);
    ret->is_there = 1;
    ret->has_v6 = plan->gate_has_v6;
    ret->v4 = put_messages(out, &setup.v4);
    ret->v6 = put_messages(out, &setup.v6);
    if (ports->every) {
        ret->catcher = put_messages(out, &setup.catcher);
        ret->ports = (struct tci_init_array){ put(out, &catcher, sizeof catcher), 1 };
        return;
    }
    ret->ports.offset = put(out, ports->items, ports->count * sizeof ports->items[0]);
    ret->ports.count = ports->count;
    if (tci_gate_ports_has(ports, dns))
        return;
    tci_buf_append(out, (const char *)&dns, sizeof dns); /* right behind them */
    ret->ports.count++;
}

static void put_all(struct tci_buf *out, const struct tc_plan *plan, struct tci_init_config *header)
{
    char map[64];
    tci_buf_append(out, (const char *)header, sizeof *header); /* its place; filled in below */
    put_mounts(out, plan, &header->mounts);
    if (plan->is_jail)
        put_rules(out, plan, &header->rules);
    header->filter = (struct tci_init_array){ put(out, plan->filter.code,
                                                  plan->filter.count * sizeof plan->filter.code[0]),
                                              plan->filter.count };
    (void)snprintf(map, sizeof map, "%d %u 1", TCI_INIT_ID, geteuid());
    header->uid_map = put_text(out, map);
    (void)snprintf(map, sizeof map, "%d %u 1", TCI_INIT_ID, getegid());
    header->gid_map = put_text(out, map);
    header->directory = put_text(out, plan->directory);
    if (plan->has_gate)
        put_gate(out, plan, &header->gate);
    header->size = (uint32_t)out->length;
    if (!out->no_memory && !out->too_large)
        memcpy(out->data, header, sizeof *header);
}

/* Sealed: what init reads is what was checked, even if somebody gets hold of the descriptor. */
static int store(const struct tci_buf *out, struct tc_error *reterr)
{
    tc_cleanup(tci_closep) int fd = memfd_create("toolcage-config",
                                                 MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || tci_write_all(fd, out->data, out->length) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return tci_program_no_memory_file(reterr, "the cage's configuration");
    return tci_take_fd(&fd);
}

int tci_native_config(struct tc_plan *plan, struct tc_error *reterr)
{
    struct tci_buf out = TCI_BUF_INIT(config_max);
    struct tci_init_config header = {
        .magic = TCI_INIT_MAGIC,
        .limit_count = plan->limit_count,
        .pinned = plan->pinned,
        .loopback = plan->spec.settings->network.mode != TCI_NETWORK_HOST,
        .time = 1,
        .handled_fs = plan->rules.handled_fs,
        .handled_net = plan->rules.handled_net,
        .scoped = plan->rules.scoped,
        .landlock_size = plan->rules.attr_size,
    };
    memcpy(header.limits, plan->limits, sizeof header.limits);
    memcpy(header.processors, plan->processors, sizeof header.processors);
    put_all(&out, plan, &header);
    if (tci_buf_check(&out, reterr) == 0)
        plan->config_fd = store(&out, reterr);
    tci_buf_free(&out);
    return plan->config_fd < 0 ? -1 : 0;
}
