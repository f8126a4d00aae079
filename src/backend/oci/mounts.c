/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: which mounts a container has besides its image, in the words of no engine: parents first, the same
 * order of precedence as in a jail (native/mounts.c). The most specific path wins; at one path hidden
 * beats readable beats writable; the policy beats what every container has.
 */
#include "backend/oci/mounts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "backend/etc_files.h"
#include "base/path.h"
#include "policy/cage_paths.h"

/* What every container has: the generated files, and with scratch these two. */
static const char *const scratch[] = { "/tmp", "/dev/shm" };
enum { own_max = TCI_ETC_FILES + tci_array_size(scratch) };

/* ---- who speaks about a path ------------------------------------------------------------------------ */

static int compare_places(const void *a, const void *b)
{
    const struct tci_oci_place *x = a, *y = b;
    int order = strcmp(x->path, y->path);
    if (order)
        return order;
    if (!x->rule != !y->rule)
        return x->rule ? -1 : 1; /* the policy first */
    if (!x->rule || x->rule->access == y->rule->access)
        return 0;
    return x->rule->access < y->rule->access ? -1 : 1;
}

/* What every container has disappears inside what the policy hides. */
static void add_own(struct tci_oci_mount_build *b, const char *path)
{
    const struct tci_path_rule *rule = tci_path_rule_find(&b->plan->spec.settings->filesystem,
                                                          path);
    if (!rule || rule->access != TCI_ACCESS_HIDDEN)
        b->places[b->place_count++] = (struct tci_oci_place){ .path = path };
}

/* The handler's shared object: no rule of the policy, and so no grant can take it away. */
static int add_library(struct tci_oci_mount_build *b)
{
    struct tci_path_rule *rule = tci_arena_new_of(b->plan->arena, struct tci_path_rule);
    if (!rule)
        return tci_error_no_memory(b->reterr);
    rule->access = TCI_ACCESS_READABLE;
    rule->host = rule->cage = b->plan->spec.library;
    b->places[b->place_count++] = (struct tci_oci_place){ .path = rule->cage, .rule = rule };
    return 0;
}

static int collect_places(struct tci_oci_mount_build *b)
{
    const struct tci_settings *s = b->plan->spec.settings;
    size_t kept = 0;
    b->places = tci_arena_new_array(b->plan->arena, s->filesystem.count + own_max + 1,
                                    struct tci_oci_place);
    if (!b->places)
        return tci_error_no_memory(b->reterr);
    for (size_t i = 0; i < s->filesystem.count; i++)
        b->places[b->place_count++] = (struct tci_oci_place){ .path = s->filesystem.rules[i].cage,
                                                              .rule = &s->filesystem.rules[i] };
    if (b->plan->spec.library && add_library(b) < 0)
        return -1;
    for (unsigned i = 0; i < TCI_ETC_FILES; i++)
        add_own(b, tci_etc_path(i));
    for (size_t i = 0; i < tci_array_size(scratch); i++)
        add_own(b, scratch[i]);
    qsort(b->places, b->place_count, sizeof *b->places, compare_places);
    for (size_t i = 0; i < b->place_count; i++)
        if (!kept || strcmp(b->places[i].path, b->places[kept - 1].path) != 0)
            b->places[kept++] = b->places[i];
    b->place_count = kept;
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
    for (size_t i = 0; i < b.place_count; i++) {
        const struct tci_oci_place *p = &b.places[i];
        if ((p->rule ? tci_oci_place_rule(&b, p->rule) : place_own(&b, p->path)) < 0)
            return -1;
    }
    settle(plan);
    return 0;
}
