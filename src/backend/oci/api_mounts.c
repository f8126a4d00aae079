/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the plan's mounts, lists and the names of runtimes, in the words that both engines understand.
 *
 * Volumes of an image: Docker mounts something at each of them, whatever it is told (Podman is told
 * not to). Where that is a place of the image, it is empty memory; within a granted path it is what
 * is there anyway.
 */
#include "backend/oci/api.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "backend/oci/mounts.h"
#include "base/fd.h"
#include "base/path.h"

int tci_api_write_binds(struct tci_json *json, const struct tci_api_body *what,
                        tci_api_bind_writer *write, struct tc_error *reterr)
{
    const struct tci_oci_plan *plan = what->plan;
    const bool rootless = plan->choice.engine_is_rootless;
    const char *own = tci_arena_printf(plan->arena, "%s/" TCI_API_CAGE_MARK, what->place->path);
    if (!own)
        return tci_error_no_memory(reterr);
    write(json, &(struct tci_api_bind){ .host = own, .cage = TCI_API_ENTRY_DIRECTORY });
    for (size_t i = 0; i < plan->mount_count; i++) {
        const struct tci_oci_mount *m = &plan->mounts[i];
        struct tci_api_bind bind = { .host = m->host, .cage = m->cage, .recursive = rootless };
        if (m->kind == TCI_OCI_MOUNT_TMPFS)
            continue;
        if (m->kind == TCI_OCI_MOUNT_FILE) {
            bind.host = tci_arena_printf(plan->arena, "%s/f%zu", what->place->path, i);
            bind.no_exec = true;
        } else {
            bind.writable = m->writable;
            /* In a user namespace the kernel does not bind a directory without what is mounted
             * below it: that would uncover what lies beneath. */
            bind.recursive = m->writable || rootless;
            bind.no_exec = m->no_exec;
        }
        if (!bind.host)
            return tci_error_no_memory(reterr);
        write(json, &bind);
    }
    return 0;
}

/* ---- volumes of an image --------------------------------------------------------------------- */

static int refuse_volume(const char *image, const char *volume, const char *why,
                         struct tc_error *reterr)
{
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                  "the image \"%.200s\" has VOLUME %.200s, where Docker mounts something of its "
                  "own: %s",
                  image, volume, why);
    tci_error_remedy(reterr, "grant another path of the container (\"HOST:CAGE\"), or use an image "
                             "without this VOLUME, or container.engine = \"podman\"");
    return -1;
}

/* The directory of the host that a volume within a granted one covers. No link: the attack is one that
 * an earlier call has put there, and that leads to /etc. Negative: an errno. */
static int open_within(const struct tci_oci_mount *m, const char *rest)
{
    struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
    tc_cleanup(tci_closep) int top = open(m->host, O_PATH | O_CLOEXEC);
    uint64_t device, inode;
    bool is_directory;
    int fd;
    if (top < 0)
        return -errno;
    if (tci_granted_identify(top, &device, &inode, &is_directory) < 0 || device != m->device ||
        inode != m->inode)
        return -ESTALE;
    fd = (int)syscall(SYS_openat2, top, rest, &how, sizeof how);
    return fd < 0 ? -errno : fd;
}

/* What is granted there becomes a bind of its own, in the volume's place, and is checked like any other
 * (driver_api_ready.c). */
static int bind_volume(const struct tci_oci_plan *plan, const struct tci_oci_mount *m,
                       const char *image, const char *volume, struct tci_oci_mount *ret,
                       struct tc_error *reterr)
{
    const char *rest = volume + strlen(m->cage) + 1; /* no plan has a mount at "/" */
    tc_cleanup(tci_closep) int fd = -1;
    bool is_directory;
    int r;
    *ret = *m;
    r = fd = open_within(m, rest);
    if (r >= 0)
        r = tci_granted_identify(fd, &ret->device, &ret->inode, &is_directory);
    if (r < 0)
        return refuse_volume(image, volume,
                             r == -ENOENT ? "it would make a directory in the path that is granted "
                                            "there"
                                          : "it is within a granted path, and no directory there",
                             reterr);
    ret->host = tci_arena_printf(plan->arena, "%s/%s", strcmp(m->host, "/") == 0 ? "" : m->host,
                                 rest);
    ret->cage = volume;
    ret->source = -1;
    return ret->host ? 0 : tci_error_no_memory(reterr);
}

int tci_api_volumes(struct tci_oci_plan *plan, const char *name, const struct tci_api_image *image,
                    struct tc_error *reterr)
{
    struct tci_oci_mount *all = tci_arena_new_array(
        plan->arena, plan->mount_count + image->volume_count, struct tci_oci_mount);
    size_t count = plan->mount_count;
    if (!all)
        return tci_error_no_memory(reterr);
    if (count)
        memcpy(all, plan->mounts, count * sizeof *all);
    for (size_t i = 0; i < image->volume_count; i++) {
        const char *volume = image->volumes[i];
        const struct tci_oci_mount *m = tci_oci_mount_around(plan, volume);
        if (tci_path_is_within(volume, TCI_ENTRY_DIRECTORY))
            return refuse_volume(name, volume, "toolcage's own program is there", reterr);
        if (!m || strcmp(m->cage, volume) == 0 || (m->kind == TCI_OCI_MOUNT_TMPFS && m->writable))
            continue;
        if (m->kind != TCI_OCI_MOUNT_BIND || m->is_file)
            return refuse_volume(name, volume, "it is within what the policy hides or replaces",
                                 reterr);
        if (bind_volume(plan, m, name, volume, &all[count], reterr) < 0)
            return -1;
        count++;
    }
    plan->mounts = all;
    plan->mount_count = count;
    return 0;
}

bool tci_api_covers(const struct tci_api_body *what, const char *volume, bool *ret_read_only)
{
    const struct tci_oci_plan *plan = what->plan;
    *ret_read_only = true;
    for (size_t i = 0; i < plan->mount_count; i++) {
        if (strcmp(plan->mounts[i].cage, volume) == 0)
            return false;
        /* Places for mounts of ours have to be made in it. */
        if (tci_path_is_within(plan->mounts[i].cage, volume))
            *ret_read_only = false;
    }
    return true;
}

void tci_api_write_list(struct tci_json *json, const char *key, const struct tci_strings *list)
{
    tci_json_array_begin(json, key);
    for (size_t i = 0; i < list->count; i++)
        tci_json_string(json, NULL, list->items[i].text);
    tci_json_array_end(json);
}

const char *tci_api_runtime(enum tci_oci_runtime runtime)
{
    switch (runtime) {
    case TCI_OCI_CRUN:
        return "crun";
    case TCI_OCI_RUNC:
        return "runc";
    case TCI_OCI_RUNSC:
        return "runsc";
    default:
        return NULL;
    }
}
