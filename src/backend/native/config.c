/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: writing the plan down for init: one sealed file of memory, the same for every call. */
#include "backend/native/native.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "backend/sealed.h"

static void put_mounts(struct tci_buf *out, const struct tc_plan *plan,
                       struct tci_sealed_array *ret)
{
    const struct tci_mounts_list *list = &plan->mounts;
    uint32_t handed = 0;
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
            .target = tci_sealed_text(out, m->target),
            .text = (uint32_t)out->length,
            .text_length = (uint32_t)m->text_length,
            .handed = m->kind == TCI_MOUNT_HANDED ? handed++ : 0,
            .attributes = m->attributes,
            .device = m->device,
            .inode = m->inode,
        };
        tci_buf_append(out, m->text, m->text_length + 1); /* arena texts have a NUL behind them */
    }
    *ret = tci_sealed_put(out, all, list->count, sizeof *all);
}

static void put_rules(struct tci_buf *out, const struct tc_plan *plan, struct tci_sealed_array *ret)
{
    const struct tci_rules_list *list = &plan->rules;
    struct tci_init_rule *all = tci_arena_new_array(plan->arena, list->count ? list->count : 1,
                                                    struct tci_init_rule);
    if (!all) {
        out->no_memory = true;
        return;
    }
    for (size_t i = 0; i < list->count; i++)
        all[i] = (struct tci_init_rule){ .path = tci_sealed_text(out, list->items[i].path),
                                         .flags = list->items[i].flags,
                                         .rights = list->items[i].rights,
                                         .device = list->items[i].device,
                                         .inode = list->items[i].inode };
    *ret = tci_sealed_put(out, all, list->count, sizeof *all);
}

static void put_all(struct tci_buf *out, const struct tc_plan *plan, struct tci_init_config *header)
{
    char map[64];
    tci_buf_append(out, (const char *)header, sizeof *header); /* its place; filled in below */
    put_mounts(out, plan, &header->mounts);
    if (plan->is_jail)
        put_rules(out, plan, &header->rules);
    header->filter = tci_sealed_put(out, plan->filter.code, plan->filter.count,
                                    sizeof plan->filter.code[0]);
    (void)snprintf(map, sizeof map, "%d %u 1", TCI_INIT_ID, geteuid());
    header->uid_map = tci_sealed_text(out, map);
    (void)snprintf(map, sizeof map, "%d %u 1", TCI_INIT_ID, getegid());
    header->gid_map = tci_sealed_text(out, map);
    header->directory = tci_sealed_text(out, plan->directory);
    if (plan->has_gate)
        tci_sealed_put_gate(out, &plan->spec.settings->network, &plan->gate_ports,
                            plan->gate_has_v6, &header->gate);
    header->size = (uint32_t)out->length;
    if (!out->no_memory && !out->too_large)
        memcpy(out->data, header, sizeof *header);
}

int tci_native_config(struct tc_plan *plan, struct tc_error *reterr)
{
    struct tci_buf out = TCI_BUF_INIT(TCI_SEALED_MAX);
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
        plan->config_fd = tci_sealed_store(&out, "toolcage-config", "the cage's configuration",
                                           reterr);
    tci_buf_free(&out);
    return plan->config_fd < 0 ? -1 : 0;
}
