/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: which mounts a container has besides its image, in the words of no engine: parents first, the same
 * order of precedence as in a jail (backend/places.h).
 */
#include "backend/oci/mounts.h"

#include <errno.h>
#include <string.h>
#include "backend/etc_files.h"
#include "base/path.h"

/* What every container has: the generated files, and with scratch these two. */
static const char *const scratch[] = { "/tmp", "/dev/shm" };
enum { own_max = TCI_ETC_FILES + tci_array_size(scratch) };

/* ---- who speaks about a path ------------------------------------------------------------------------ */

static void add_own(struct tci_oci_mount_build *b, const char *path)
{
    if (!tci_places_is_hidden(&b->plan->spec.settings->filesystem, path))
        b->places.items[b->places.count++] = (struct tci_place){ .path = path };
}

static int collect_places(struct tci_oci_mount_build *b)
{
    const struct tci_settings *s = b->plan->spec.settings;
    const char *library = b->plan->spec.library;
    struct tci_places *places = &b->places;
    places->items = tci_arena_new_array(b->plan->arena, s->filesystem.count + own_max + 1,
                                        struct tci_place);
    if (!places->items)
        return tci_error_no_memory(b->reterr);
    for (size_t i = 0; i < s->filesystem.count; i++)
        places->items[places->count++] = (struct tci_place){ .path = s->filesystem.rules[i].cage,
                                                             .rule = &s->filesystem.rules[i] };
    if (library && tci_places_add_library(places, b->plan->arena, library, library) < 0)
        return tci_error_no_memory(b->reterr);
    for (unsigned i = 0; i < TCI_ETC_FILES; i++)
        add_own(b, tci_etc_path(i));
    for (size_t i = 0; i < tci_array_size(scratch); i++)
        add_own(b, scratch[i]);
    tci_places_settle(places);
    return 0;
}

/* ---- what every container has ------------------------------------------------------------------------ */

/* Memory with a size. An engine gives every container a /dev/shm, wanted or not: then an empty one
 * of ours, that nobody can write to, is put there. */
static int place_scratch(struct tci_oci_mount_build *b, const char *path)
{
    const struct tci_settings *s = b->plan->spec.settings;
    const bool is_shm = strcmp(path, "/dev/shm") == 0, wanted = s->filesystem.scratch != 0;
    struct tci_oci_mount *m;
    if (!wanted && (!is_shm || b->plan->choice.engine == TCI_OCI_ENGINE_NONE))
        return 0;
    m = tci_oci_mount_add(b, TCI_OCI_MOUNT_TMPFS, path);
    if (!m)
        return -1;
    m->size = wanted ? s->filesystem.scratch : 4096;
    m->mode = wanted ? "1777" : "0555";
    m->writable = wanted;
    m->no_exec = is_shm || !s->commands.any;
    m->staged = tci_oci_stages_memory(b->plan);
    /* gVisor's own memory cannot be reached from outside when files are to be brought back. */
    if (b->plan->choice.engine == TCI_OCI_ENGINE_NONE && !is_shm &&
        b->plan->choice.runtime == TCI_OCI_RUNSC && s->outputs.globs.count)
        m->staged = true;
    return 0;
}

bool tci_oci_brings_accounts(const struct tci_oci_plan *plan)
{
    return !plan->user || (plan->user[0] >= '0' && plan->user[0] <= '9');
}

/*
 * Somebody granted a directory of the host as /etc. The runtimes read passwd and group there, outside of
 * the tool's limits. The attack: a tool that may write there makes passwd a sparse file of gigabytes, a link
 * to /dev/zero or a named pipe, and the next call's runtime reads on. So ours lie over them. Where there is
 * none, there is nothing to read.
 */
static int look_at_granted(struct tci_oci_mount_build *b, const char *path)
{
    int found = tci_oci_mount_look(b->plan, path);
    if (found == 0 || found == -ENOENT)
        return found == 0;
    tci_error_set(b->reterr, TC_ERROR_UNSUPPORTED,
                  "%s in a granted directory is %s: the container's own cannot lie over it", path,
                  found == -ELOOP ? "a link"
                  : found > 0     ? "a directory"
                                  : strerrordesc_np(-found));
    tci_error_remedy(b->reterr, "put a file there, or grant another directory as /etc");
    return -1;
}

/* 1: a place for it; 0: none is wanted. */
static int has_etc_place(struct tci_oci_mount_build *b, unsigned index)
{
    const char *path = tci_etc_path(index);
    const struct tci_oci_mount *around = tci_oci_mount_around(b->plan, path);
    const bool is_account = index < TCI_OCI_ACCOUNTS;
    if (is_account && !tci_oci_brings_accounts(b->plan))
        return 0; /* the image knows the user, and we do not */
    if (!around)
        return 1;
    return is_account && around->kind == TCI_OCI_MOUNT_BIND ? look_at_granted(b, path) : 0;
}

static int place_etc(struct tci_oci_mount_build *b, unsigned index)
{
    const struct tci_oci_plan *plan = b->plan;
    const struct tci_etc_cage cage = {
        .uid = plan->uid,
        .gid = plan->gid,
        .has_gate = plan->has_gate,
        .host_network = plan->spec.settings->network.mode == TCI_NETWORK_HOST,
    };
    struct tci_etc_file file;
    struct tci_oci_mount *m;
    int r = has_etc_place(b, index);
    if (r <= 0)
        return r;
    if (tci_etc_file(plan->arena, &cage, index, &file, b->reterr) < 0 ||
        !(m = tci_oci_mount_add(b, TCI_OCI_MOUNT_FILE, file.path)))
        return -1;
    m->bytes = file.bytes;
    m->length = file.length;
    m->mode = "0444";
    m->is_file = m->no_exec = true;
    return 0;
}

static int place_own(struct tci_oci_mount_build *b, const char *path)
{
    for (unsigned i = 0; i < TCI_ETC_FILES; i++)
        if (strcmp(path, tci_etc_path(i)) == 0)
            return place_etc(b, i);
    return place_scratch(b, path);
}

/* ---- who mounts it ------------------------------------------------------------------------------------ */

static bool is_below(const struct tci_oci_mount *m, const struct tci_oci_mount *outer)
{
    return m != outer && tci_path_is_within(m->cage, outer->cage);
}

/* crun takes a directory without what is mounted in it: covers of ours would be missing, and what lies beneath
 * a mount of the host would be seen. The root directory it takes with everything: so there the stage puts
 * them. In memory of the runtime's own it cannot. */
static bool goes_to_root(const struct tci_oci_plan *plan, const struct tci_oci_mount *m)
{
    if (m->kind != TCI_OCI_MOUNT_BIND || m->is_file || plan->choice.runtime != TCI_OCI_CRUN)
        return false;
    for (size_t i = 0; i < plan->mount_count; i++)
        if (is_below(m, &plan->mounts[i]))
            return false;
    return true;
}

static bool comes_with_outer(const struct tci_oci_plan *plan, const struct tci_oci_mount *m)
{
    if (plan->choice.runtime != TCI_OCI_CRUN)
        return true;
    for (size_t i = 0; i < plan->mount_count; i++)
        if (plan->mounts[i].unlisted && !plan->mounts[i].inner && is_below(m, &plan->mounts[i]))
            return true;
    return false;
}

/* Parents first, so that the outermost is settled before what lies in it. */
static void settle(struct tci_oci_plan *plan)
{
    if (plan->choice.engine != TCI_OCI_ENGINE_NONE)
        return;
    for (size_t i = 0; i < plan->mount_count; i++) {
        struct tci_oci_mount *m = &plan->mounts[i];
        m->unlisted = m->inner ? comes_with_outer(plan, m) : goes_to_root(plan, m);
    }
}

int tci_oci_mounts(struct tci_oci_plan *plan, struct tc_error *reterr)
{
    struct tci_oci_mount_build b = { .plan = plan, .reterr = reterr };
    if (collect_places(&b) < 0)
        return -1;
    for (size_t i = 0; i < b.places.count; i++) {
        const struct tci_place *p = &b.places.items[i];
        if ((p->rule ? tci_oci_place_rule(&b, p->rule) : place_own(&b, p->path)) < 0)
            return -1;
    }
    settle(plan);
    return 0;
}
