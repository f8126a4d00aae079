/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what a policy grants and hides, as mounts of a container.
 *
 * Nothing is made on a file system of the host: a mount point inside a granted directory must be there
 * already, or the runtime would make it there.
 */
#include "backend/oci/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"

enum { cover_size = 65536 };

/* ---- granted ---------------------------------------------------------------------------------------- */

static int check_place(struct tci_oci_mount_build *b, const char *cage)
{
    static const char *const kernel[] = { "/proc", "/dev" };
    if (strcmp(cage, "/") == 0) {
        tci_error_set(b->reterr, TC_ERROR_UNSUPPORTED,
                      "a path of the host cannot be the root directory of a container: that is its "
                      "image's");
        tci_error_remedy(b->reterr, "give it another path in the container, or set rootfs");
        return -1;
    }
    if (tci_path_is_within(cage, TCI_ENTRY_DIRECTORY)) {
        tci_error_set(b->reterr, TC_ERROR_UNSUPPORTED, "%s is toolcage's own in a container",
                      TCI_ENTRY_DIRECTORY);
        tci_error_remedy(b->reterr, "use another path");
        return -1;
    }
    for (size_t i = 0; i < tci_array_size(kernel); i++)
        if (tci_path_is_within(cage, kernel[i])) {
            tci_error_set(b->reterr, TC_ERROR_UNSUPPORTED,
                          "%.300s cannot be granted: a container has a %s of its own", cage,
                          kernel[i]);
            tci_error_remedy(b->reterr, "leave it out, or give it another path in the container");
            return -1;
        }
    return 0;
}

static int point_missing(struct tci_oci_mount_build *b, const char *cage, int problem)
{
    tci_error_set(
        b->reterr, TC_ERROR_UNSUPPORTED,
        "%.300s cannot be a place of its own inside %.200s, which the cage takes from the "
        "host: %s",
        cage, tci_oci_mount_around(b->plan, cage)->host, strerrordesc_np(-problem));
    tci_error_remedy(b->reterr, "create it on the host (toolcage makes nothing there), or grant "
                                "another path");
    return -1;
}

/* Can a mount go there? In the image and in memory of ours whoever mounts makes the place. */
static int prepare(struct tci_oci_mount_build *b, const char *cage, bool is_file)
{
    const struct tci_oci_mount *around = tci_oci_mount_around(b->plan, cage);
    int found;
    if (!around || around->kind == TCI_OCI_MOUNT_TMPFS)
        return 0;
    found = around->kind == TCI_OCI_MOUNT_FILE ? -ENOTDIR : tci_oci_mount_look(b->plan, cage);
    if (found >= 0 && found != !is_file)
        found = is_file ? -EISDIR : -ENOTDIR;
    return found < 0 ? point_missing(b, cage, found) : 0;
}

static int grant_missing(struct tci_oci_mount_build *b, const struct tci_path_rule *rule,
                         int problem)
{
    tci_error_errno(b->reterr, -problem, "the granted path %.300s", rule->host);
    tci_error_remedy(b->reterr,
                     problem == -ENOSYS
                         ? "use Linux 5.6 or newer; see openat2 and statx in toolcage doctor"
                     : problem == -ELOOP ? "a link lies at a place that this policy lets a tool "
                                           "write to: replace it by the directory itself"
                                         : "create it, or mark the entry with optional = true");
    return -1;
}

/* Only root's bare runtimes get handles: a mount of them is made with other owners (idmap.h). */
static bool keeps_handles(const struct tci_oci_plan *plan)
{
    return plan->choice.engine == TCI_OCI_ENGINE_NONE && plan->choice.is_root;
}

/* The attack: a read-only mount of a named pipe keeps nobody from writing to it, and somebody on the host
 * reads. Landlock does; where entry cannot have it (message.c), such a grant is refused. */
static int check_pipe(struct tci_oci_mount_build *b, const struct tci_path_rule *rule, int fd)
{
    const struct tci_container *container = &b->plan->spec.settings->container;
    struct stat status;
    if (rule->access == TCI_ACCESS_WRITABLE ||
        (container->read_only_rootfs && container->no_new_privileges) || fstat(fd, &status) < 0 ||
        !S_ISFIFO(status.st_mode))
        return 0;
    tci_error_set(b->reterr, TC_ERROR_UNSUPPORTED,
                  "the named pipe %.300s cannot be granted for reading alone here", rule->host);
    tci_error_remedy(b->reterr, "leave out container.read_only_rootfs = false and "
                                "container.no_new_privileges = false, or grant it as writable");
    return -1;
}

static int place_grant(struct tci_oci_mount_build *b, const struct tci_path_rule *rule)
{
    const struct tci_oci_plan *plan = b->plan;
    const bool writable = rule->access == TCI_ACCESS_WRITABLE;
    const bool is_library = plan->spec.library && strcmp(rule->host, plan->spec.library) == 0;
    bool is_directory = false;
    uint64_t device = 0, inode = 0;
    struct tci_oci_mount *m;
    tc_cleanup(tci_closep) int fd = tci_granted_open(&plan->writables, rule->host);
    int r = fd < 0 ? fd : tci_granted_identify(fd, &device, &inode, &is_directory);
    if (r == -ENOENT && rule->optional)
        return 0; /* tci_oci_is_stale looks again */
    if (r < 0)
        return grant_missing(b, rule, r);
    if (check_pipe(b, rule, fd) < 0 || prepare(b, rule->cage, !is_directory) < 0 ||
        !(m = tci_oci_mount_add(b, TCI_OCI_MOUNT_BIND, rule->cage)))
        return -1;
    m->host = rule->host;
    m->device = device;
    m->inode = inode;
    m->is_file = !is_directory;
    m->writable = writable;
    /* With a list of programs, nothing that the tool could have written may run; a handler is code. */
    m->no_exec = !plan->spec.settings->commands.any && (writable || !is_library);
    if (keeps_handles(plan))
        m->source = tci_take_fd(&fd); /* kept for every call */
    return 0;
}

/*
 * The attack: the policy lets a tool write to /work and hides /work/keys/private. One call renames
 * /work/keys and makes another; the next call hides the wrong one. A mount point cannot be renamed:
 * so every directory on the way from a writable grant to a rule inside it becomes one, laid over
 * itself.
 */
static int pin_parents(struct tci_oci_mount_build *b, const char *cage)
{
    const struct tci_oci_mount *outer = tci_oci_mount_around(b->plan, cage);
    const char *slash;
    if (!outer || outer->kind != TCI_OCI_MOUNT_BIND || !outer->writable)
        return 0;
    for (slash = strchr(cage + strlen(outer->cage) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        char buffer[TCI_PATH_MAX + 1];
        struct tci_path_rule rule = { .access = TCI_ACCESS_WRITABLE };
        rule.cage = tci_arena_strndup(b->plan->arena, cage, (size_t)(slash - cage));
        if (!rule.cage)
            return tci_error_no_memory(b->reterr);
        if (!tci_oci_host_path(b->plan, rule.cage, buffer, sizeof buffer))
            return 0;
        rule.host = tci_arena_strdup(b->plan->arena, buffer);
        if (!rule.host)
            return tci_error_no_memory(b->reterr);
        if (place_grant(b, &rule) < 0)
            return -1;
    }
    return 0;
}

/* ---- hidden ----------------------------------------------------------------------------------------- */

/* An empty directory that can be passed through and not be listed, for what is granted inside it. */
static int cover_directory(struct tci_oci_mount_build *b, const char *cage)
{
    struct tci_oci_mount *m = tci_oci_mount_add(b, TCI_OCI_MOUNT_TMPFS, cage);
    if (!m)
        return -1;
    m->size = cover_size;
    m->mode = "0111";
    m->no_exec = true;
    /* Places inside it are made after it is mounted: by the stage in a granted directory, elsewhere by the
     * runtime, and then it must be the runtime's. */
    m->writable = tci_places_has_inside(&b->places, cage);
    m->staged = m->inner || (!m->writable && tci_oci_stages_memory(b->plan));
    return 0;
}

static int cover_file(struct tci_oci_mount_build *b, const char *cage)
{
    struct tci_oci_mount *m = tci_oci_mount_add(b, TCI_OCI_MOUNT_FILE, cage);
    if (!m)
        return -1;
    m->bytes = "";
    m->mode = "0000";
    m->is_file = m->no_exec = true;
    return 0;
}

static int cannot_hide(struct tci_oci_mount_build *b, const char *cage, int problem)
{
    tci_error_set(b->reterr, TC_ERROR_UNSUPPORTED, "%.400s cannot be hidden: %s", cage,
                  strerrordesc_np(-problem));
    tci_error_remedy(b->reterr,
                     problem == -ENOENT
                         ? "create it (what is not there cannot be covered, and could appear while "
                           "the call runs), or mark the entry with optional = true"
                         : "name the path that the link leads to");
    return -1;
}

/*
 * Something of the image. (The policy's reader lets nobody hide what is in /proc or /dev.) Where the image
 * is a directory, it is covered like anything else. Behind a link of the image, or in an engine's
 * store, nobody knows what is there before it runs: that is for the runtime's own masking, which
 * comes after every mount, so that no later one lies over it.
 */
static int hide_in_image(struct tci_oci_mount_build *b, const struct tci_path_rule *rule)
{
    int found = b->plan->rootfs ? tci_oci_mount_look(b->plan, rule->cage) : -ELOOP;
    if (found > 0 || tci_places_has_inside(&b->places, rule->cage))
        return cover_directory(b, rule->cage);
    if (found == 0)
        return cover_file(b, rule->cage);
    /* An image does not change. In a directory of the user's it could appear while the call runs. */
    if (found == -ENOENT)
        return b->plan->spec.settings->rootfs && !rule->optional ? cannot_hide(b, rule->cage, found)
                                                                 : 0;
    if (b->plan->choice.runtime != TCI_OCI_RUNSC)
        return tci_oci_mask(b, rule->cage);
    tci_error_set(b->reterr, TC_ERROR_UNSUPPORTED,
                  "%.400s cannot be hidden: gVisor's runtime masks no paths", rule->cage);
    tci_error_remedy(b->reterr, b->plan->rootfs ? "name the path that the link leads to"
                                                : "set container.engine = \"none\"");
    return -1;
}

/* Something unreadable over it. What is not there cannot be covered, and could appear later. */
static int place_hidden(struct tci_oci_mount_build *b, const struct tci_path_rule *rule)
{
    const struct tci_oci_mount *around = tci_oci_mount_around(b->plan, rule->cage);
    int found;
    if (strcmp(rule->cage, "/") == 0 || tci_path_is_within(rule->cage, TCI_ENTRY_DIRECTORY))
        return check_place(b, rule->cage);
    if (!around)
        return hide_in_image(b, rule);
    if (around->kind == TCI_OCI_MOUNT_TMPFS) {
        /* Nothing is there, and nobody can make it except in memory that the command may write. */
        bool nobody = !around->writable;
        return nobody && !tci_places_has_inside(&b->places, rule->cage)
                   ? 0
                   : cover_directory(b, rule->cage);
    }
    found = tci_oci_mount_look(b->plan, rule->cage);
    if (found == -ENOENT && rule->optional)
        return 0;
    if (found < 0)
        return cannot_hide(b, rule->cage, found);
    return found ? cover_directory(b, rule->cage) : cover_file(b, rule->cage);
}

/* An optional path that is not there: then its parents need not be there either. */
static bool is_absent(const struct tci_oci_plan *plan, const struct tci_path_rule *rule)
{
    return rule->optional && tci_oci_mount_look(plan, rule->cage) == -ENOENT;
}

int tci_oci_place_rule(struct tci_oci_mount_build *b, const struct tci_path_rule *rule)
{
    if (!is_absent(b->plan, rule) && pin_parents(b, rule->cage) < 0)
        return -1;
    if (rule->access == TCI_ACCESS_HIDDEN)
        return place_hidden(b, rule);
    return check_place(b, rule->cage) < 0 ? -1 : place_grant(b, rule);
}
