/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the mounts of a bundle: the kernel's directories first, then the plan's list, in its order. */
#include "backend/oci/spec.h"

#include <inttypes.h>
#include <stdio.h>

static void begin_mount(struct tci_json *json, const char *where, const char *type,
                        const char *source)
{
    tci_json_object_begin(json, NULL);
    tci_json_string(json, "destination", where);
    tci_json_string(json, "type", type);
    tci_json_string(json, "source", source);
    tci_json_array_begin(json, "options");
}

static void end_mount(struct tci_json *json)
{
    tci_json_array_end(json);
    tci_json_object_end(json);
}

static void write_options(struct tci_json *json, const char *const *options)
{
    for (; *options; options++)
        tci_json_string(json, NULL, *options);
}

/* The same for every container. */
static void write_kernel(struct tci_json *json, const struct tci_oci_plan *plan)
{
    static const char *const proc[] = { "ro", "nosuid", "noexec", "nodev", NULL };
    /* Becomes read-only when the runtime's own few devices are in it: an ordinary user owns it. */
    static const char *const dev[] = { "ro", "nosuid", "noexec", "mode=755", "size=65536", NULL };
    /* The attack: a tool opens all pseudo-terminals that the host has for its containers. */
    static const char *const pts[] = { "nosuid",    "noexec", "newinstance", "ptmxmode=0666",
                                       "mode=0620", "max=64", NULL };
    begin_mount(json, "/proc", "proc", "proc");
    write_options(json, proc);
    end_mount(json);
    begin_mount(json, "/dev", "tmpfs", "tmpfs");
    /* gVisor's has devices of its own kernel, is memory of the sandbox, and cannot be read-only: it would
     * refuse `> /dev/null`. */
    write_options(json, plan->choice.runtime == TCI_OCI_RUNSC ? dev + 1 : dev);
    end_mount(json);
    if (plan->choice.runtime == TCI_OCI_RUNSC)
        return;
    begin_mount(json, "/dev/pts", "devpts", "devpts");
    write_options(json, pts);
    end_mount(json);
}

static void write_common(struct tci_json *json, const struct tci_oci_mount *m)
{
    tci_json_string(json, NULL, m->writable ? "rw" : "ro");
    tci_json_string(json, NULL, "nosuid");
    tci_json_string(json, NULL, "nodev");
    if (m->no_exec)
        tci_json_string(json, NULL, "noexec");
}

/* What the stage has put aside. With what is mounted below it: the stage has made all of it read-only,
 * and a part alone cannot be taken into another user namespace. */
static void write_bind(struct tci_json *json, const struct tci_oci_mount *m, size_t index)
{
    char source[64];
    (void)snprintf(source, sizeof source, TCI_STAGE_MOUNTS "/%zu", index);
    begin_mount(json, m->cage, "bind", source);
    tci_json_string(json, NULL, m->is_file ? "bind" : "rbind");
    tci_json_string(json, NULL, "rprivate");
    write_common(json, m);
    end_mount(json);
}

static void write_tmpfs(struct tci_json *json, const struct tci_oci_mount *m)
{
    begin_mount(json, m->cage, "tmpfs", "tmpfs");
    write_common(json, m);
    tci_json_printf(json, NULL, "mode=%s", m->mode);
    if (m->size != TCI_UNLIMITED) {
        tci_json_printf(json, NULL, "size=%" PRIu64, m->size);
        /* Inodes cost memory that the size does not count: one for each 4 KiB, as if each held a page. */
        tci_json_printf(json, NULL, "nr_inodes=%" PRIu64, m->size / 4096 + 64);
    }
    end_mount(json);
}

void tci_oci_spec_mounts(struct tci_json *json, const struct tci_oci_plan *plan)
{
    tci_json_array_begin(json, "mounts");
    write_kernel(json, plan);
    for (size_t i = 0; i < plan->mount_count; i++) {
        const struct tci_oci_mount *m = &plan->mounts[i];
        if (m->unlisted)
            continue;
        if (m->kind == TCI_OCI_MOUNT_TMPFS && !m->staged)
            write_tmpfs(json, m);
        else
            write_bind(json, m, i);
    }
    /* Last: nothing of an image or a grant is visible at it. */
    begin_mount(json, TCI_ENTRY_DIRECTORY, "bind", TCI_STAGE_OWN);
    write_options(json, (const char *const[]){ "bind", "rprivate", "ro", "nosuid", "nodev", NULL });
    end_mount(json);
    tci_json_array_end(json);
}
