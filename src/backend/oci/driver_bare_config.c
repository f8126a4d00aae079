/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what a stage reads (stage_abi.h), written once for each plan: a sealed file of memory. */
#include "backend/oci/stage.h"

#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backend/sealed.h"
#include "base/path.h"

/* The stage's own memory holds the bundle, programs of ours and the runtime's state. */
enum { own_memory = 32 << 20, page = 4096, own_inodes = 4096, size_text_max = 24 };

/* ---- mounts ------------------------------------------------------------------------------------------ */

/* Does it lie in the root directory itself, and not in what the stage puts there? In a granted directory
 * the mount point must be there. In memory that the runtime mounts it makes the point itself; gVisor's file
 * server does not know of that memory, and looks for the point in the root directory, too. */
static bool is_in_root(const struct tci_oci_plan *plan, size_t index)
{
    const char *path = plan->mounts[index].cage;
    for (size_t i = 0; i < plan->mount_count; i++) {
        const struct tci_oci_mount *m = &plan->mounts[i];
        if (i != index && (m->kind != TCI_OCI_MOUNT_TMPFS || m->staged) &&
            strcmp(path, m->cage) != 0 && tci_path_is_within(path, m->cage))
            return false;
    }
    return true;
}

/* What lies in a granted directory the stage mounts there, if the mount point is what the plan saw. */
static void put_over(const struct tci_oci_plan *plan, size_t index, struct tci_stage_mount *ret)
{
    const struct tci_oci_mount *m = &plan->mounts[index];
    size_t longest = 0;
    if (!m->inner)
        return;
    for (size_t i = 0; i < index; i++) { /* parents come first */
        const size_t length = strlen(plan->mounts[i].cage);
        if (length < longest || !tci_path_is_within(m->cage, plan->mounts[i].cage))
            continue;
        longest = length;
        ret->within = (uint32_t)i + 1;
    }
    ret->over_device = m->over_device;
    ret->over_inode = m->over_inode;
}

uint64_t tci_stage_attributes(const struct tci_oci_mount *m)
{
    return MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (m->writable ? 0 : MOUNT_ATTR_RDONLY) |
           (m->no_exec ? MOUNT_ATTR_NOEXEC : 0);
}

static void fill_mount(struct tci_buf *out, const struct tci_oci_plan *plan, size_t index,
                       uint32_t *handed, struct tci_stage_mount *ret)
{
    const struct tci_oci_mount *m = &plan->mounts[index];
    char size[size_text_max];
    ret->number = (uint32_t)index;
    ret->cage = tci_sealed_text(out, m->cage + 1);
    ret->flags = (m->is_file || m->kind == TCI_OCI_MOUNT_FILE ? TCI_STAGE_IS_FILE : 0) |
                 (is_in_root(plan, index) ? TCI_STAGE_MAKE_POINT : 0) |
                 (m->unlisted && !m->inner ? TCI_STAGE_IN_ROOT : 0);
    put_over(plan, index, ret);
    switch (m->kind) {
    case TCI_OCI_MOUNT_BIND:
        ret->kind = m->source >= 0 ? TCI_STAGE_MOUNT_HANDED : TCI_STAGE_MOUNT_BIND;
        ret->handed = m->source >= 0 ? (*handed)++ : 0;
        ret->host = tci_sealed_text(out, m->host);
        ret->attributes = tci_stage_attributes(m);
        ret->device = m->device;
        ret->inode = m->inode;
        break;
    case TCI_OCI_MOUNT_TMPFS:
        ret->kind = m->staged ? TCI_STAGE_MOUNT_TMPFS : TCI_STAGE_MOUNT_NONE;
        (void)snprintf(size, sizeof size, "%llu",
                       m->size == TCI_UNLIMITED ? 0ULL : (unsigned long long)m->size);
        ret->size = tci_sealed_text(out, size);
        /* An inode costs memory that the size does not count: one for each page, as in spec_mounts.c. */
        (void)snprintf(size, sizeof size, "%llu",
                       m->size == TCI_UNLIMITED ? 0ULL : (unsigned long long)m->size / 4096 + 64);
        ret->inodes = tci_sealed_text(out, size);
        ret->mode = tci_sealed_text(out, m->mode ? m->mode : "1777");
        ret->attributes = tci_stage_attributes(m);
        /* runc gives the file system the mode of the directory below it. */
        ret->point_mode = m->mode ? (uint32_t)strtoul(m->mode, NULL, 8) : 01777;
        break;
    case TCI_OCI_MOUNT_FILE:
        ret->kind = TCI_STAGE_MOUNT_FILE;
        ret->file_mode = m->mode ? (uint32_t)strtoul(m->mode, NULL, 8) : 0444;
        ret->text = tci_sealed_put(out, m->bytes, m->length, 1);
        break;
    }
}

static int put_mounts(struct tci_buf *out, const struct tci_oci_plan *plan,
                      struct tci_sealed_array *ret)
{
    struct tci_stage_mount *all = calloc(plan->mount_count + 1, sizeof *all);
    uint32_t handed = 0;
    if (!all)
        return -1;
    for (size_t i = 0; i < plan->mount_count; i++)
        fill_mount(out, plan, i, &handed, &all[i]);
    *ret = tci_sealed_put(out, all, plan->mount_count, sizeof *all);
    free(all);
    return 0;
}

/* Where every bundle mounts something. */
static struct tci_sealed_array put_points(struct tci_buf *out)
{
    static const char *const points[] = { "proc", "dev", "sys", &TCI_ENTRY_DIRECTORY[1] };
    uint32_t texts[tci_array_size(points)];
    for (size_t i = 0; i < tci_array_size(points); i++)
        texts[i] = tci_sealed_text(out, points[i]);
    return tci_sealed_put(out, texts, tci_array_size(points), sizeof texts[0]);
}

/* ---- the runtime's command line ----------------------------------------------------------------------- */

struct words {
    struct tci_buf *out;
    uint32_t texts[TCI_STAGE_WORDS_MAX];
    size_t count;
};

static void add(struct words *words, const char *text)
{
    if (words->count < TCI_STAGE_WORDS_MAX)
        words->texts[words->count++] = tci_sealed_text(words->out, text);
}

/* Control groups are ours: no runtime touches them. */
static void add_plain(struct words *words, bool is_runc)
{
    add(words, is_runc ? "runc" : "crun");
    add(words, "--root");
    add(words, TCI_STAGE_STATE);
    add(words, is_runc ? "--rootless=true" : "--cgroup-manager=disabled");
    add(words, "run");
    add(words, "--bundle");
    add(words, TCI_STAGE_BUNDLE);
    add(words, "--preserve-fds");
    add(words, "1");
    add(words, "--no-new-keyring"); /* the stage has made it */
}

/* gVisor's own network has nothing but loopback; the gate's namespace is used as a host's would be. */
static void add_runsc(struct words *words, const struct tci_oci_plan *plan)
{
    const struct tci_settings *s = plan->spec.settings;
    const bool shares = plan->has_gate || s->network.mode == TCI_NETWORK_HOST;
    char platform[sizeof plan->choice.platform + 16];
    add(words, "runsc");
    add(words, "--root");
    add(words, TCI_STAGE_STATE);
    add(words, "--ignore-cgroups");
    add(words, shares ? "--network=host" : "--network=none");
    if (plan->choice.platform[0]) {
        (void)snprintf(platform, sizeof platform, "--platform=%s", plan->choice.platform);
        add(words, platform);
    }
    add(words, "--rootless"); /* in a user namespace of the stage's, always */
    /* The root that may be written is the stage's overlay in memory, where `disk` is its limit. With
     * gVisor's own (root:memory) `disk` would bound each file and no sum: of 8 MB a tool made 147, and
     * 60,000 empty files; with memory = "unlimited" it could take all that the host has. */
    add(words, "--overlay2=none");
    add(words, "run");
    add(words, "--bundle");
    add(words, TCI_STAGE_BUNDLE);
}

static struct tci_sealed_array put_words(struct tci_buf *out, const struct tci_oci_plan *plan)
{
    struct words words = { .out = out };
    if (plan->choice.runtime == TCI_OCI_RUNSC)
        add_runsc(&words, plan);
    else
        add_plain(&words, plan->choice.runtime == TCI_OCI_RUNC);
    return tci_sealed_put(out, words.texts, words.count, sizeof words.texts[0]);
}

/* ---- the whole ------------------------------------------------------------------------------------------- */

static uint32_t put_number(struct tci_buf *out, uint64_t number)
{
    char text[size_text_max];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    return tci_sealed_text(out, text);
}

/* What the command writes to a root directory that it may write to lies in memory. An inode costs some that the
 * size does not count: one for each page, and some for directories and mount points. */
static void put_sizes(struct tci_buf *out, const struct tci_settings *s,
                      struct tci_stage_config *header)
{
    const bool unlimited = !s->container.read_only_rootfs && s->disk == TCI_UNLIMITED;
    uint64_t size = s->container.read_only_rootfs ? own_memory : s->disk;
    if (size < page)
        size = page; /* 0 would be no limit */
    header->memory_size = put_number(out, own_memory);
    header->memory_inodes = put_number(out, own_memory / page);
    header->upper_size = put_number(out, unlimited ? 0 : size);
    header->upper_inodes = put_number(out, unlimited ? 0 : size / page + own_inodes);
}

static int put_container(struct tci_buf *out, const struct tci_oci_plan *plan,
                         struct tci_stage_config *header)
{
    header->is_user = tci_oci_stage_is_mapped(&plan->choice);
    header->is_mapped = header->is_user && plan->choice.is_root;
    header->control_at = plan->choice.runtime == TCI_OCI_RUNSC ? 0 : 3;
    /* runc and crun do it themselves. runsc's file server tries, forgets that the mount is nosuid and nodev,
     * and is refused; the bundle tells it that nothing is to be done. */
    header->seal_root = plan->choice.runtime == TCI_OCI_RUNSC &&
                        plan->spec.settings->container.read_only_rootfs;
    /* The image's files are root's, whom the container does not know; what is new at the top is the command's. */
    if (plan->choice.is_root && !header->is_mapped &&
        !plan->spec.settings->container.read_only_rootfs)
        header->upper_owner = plan->host_uid;
    header->has_view = plan->choice.runtime == TCI_OCI_RUNSC;
    header->has_program = plan->spec.program != TCI_PROGRAM_NONE;
    header->rootfs = tci_sealed_text(out, plan->rootfs);
    header->rootfs_device = plan->rootfs_device;
    header->rootfs_inode = plan->rootfs_inode;
    put_sizes(out, plan->spec.settings, header);
    header->program = tci_sealed_text(out, plan->choice.program);
    header->points = put_points(out);
    header->words = put_words(out, plan);
    header->bundle = tci_sealed_put(out, plan->config_json, strlen(plan->config_json), 1);
    return put_mounts(out, plan, &header->mounts);
}

int tci_stage_config(const struct tci_oci_plan *plan, bool only_gate, struct tc_error *reterr)
{
    struct tci_buf out = TCI_BUF_INIT(TCI_SEALED_MAX);
    struct tci_stage_config header = { .magic = TCI_STAGE_MAGIC };
    int fd = -1;
    tci_buf_append(&out, (const char *)&header, sizeof header); /* its place; filled in below */
    if (!only_gate && put_container(&out, plan, &header) < 0)
        out.no_memory = true;
    if (plan->has_gate)
        tci_sealed_put_gate(&out, &plan->spec.settings->network, &plan->gate_ports,
                            plan->gate_has_v6, &header.gate);
    header.size = (uint32_t)out.length;
    if (tci_buf_check(&out, reterr) == 0) {
        memcpy(out.data, &header, sizeof header);
        fd = tci_sealed_store(&out, "toolcage-stage-config", "the stage's configuration", reterr);
    }
    tci_buf_free(&out);
    return fd;
}
