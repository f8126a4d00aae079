/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the plan's mounts, and the names of runtimes, in the words that both engines understand.
 *
 * The attack: an engine makes the top of a read-only bind read-only, and what is mounted below it
 * stays writable. So a read-only path is bound without what lies below it, and each mount below
 * becomes a read-only bind of its own. What is mounted there later is not seen.
 */
#include "backend/oci/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/path.h"

enum { BINDS_MAX = 512 };

struct list {
    const struct tci_api_body *what;
    struct tci_api_bind *items;
    size_t count;
};

static int add(struct list *list, struct tci_api_bind bind, struct tc_error *reterr)
{
    if (list->count == BINDS_MAX)
        return tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                             "more than %d mounts lie below what is granted", BINDS_MAX);
    if (!bind.host || !bind.cage)
        return tci_error_no_memory(reterr);
    list->items[list->count++] = bind;
    return 0;
}

/* The mount of the plan that a path of the container belongs to. */
static const struct tci_oci_mount *nearest(const struct tci_oci_plan *plan, const char *cage)
{
    const struct tci_oci_mount *best = NULL;
    for (size_t i = 0; i < plan->mount_count; i++) {
        const struct tci_oci_mount *m = &plan->mounts[i];
        if (tci_path_is_within(cage, m->cage) && (!best || strlen(m->cage) >= strlen(best->cage)))
            best = m;
    }
    return best;
}

/* "\040" and the like, as the kernel writes what would end a field. */
static void unescape(char *text)
{
    char *to = text;
    for (; *text; text++) {
        if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && text[2] && text[3]) {
            *to++ = (char)((text[1] - '0') * 64 + (text[2] - '0') * 8 + (text[3] - '0'));
            text += 3;
        } else {
            *to++ = *text;
        }
    }
    *to = '\0';
}

static bool is_listed(const struct list *list, const char *cage)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].cage, cage) == 0)
            return true;
    return false;
}

/* A mount of the host at `host`: does it show through a read-only bind? Then it becomes one too. */
static int add_below(struct list *list, const char *host, struct tc_error *reterr)
{
    const struct tci_oci_plan *plan = list->what->plan;
    for (size_t i = 0; i < plan->mount_count; i++) {
        const struct tci_oci_mount *m = &plan->mounts[i];
        const char *rest, *cage;
        if (m->kind != TCI_OCI_MOUNT_BIND || m->writable || m->is_file ||
            strcmp(host, m->host) == 0 || !tci_path_is_within(host, m->host))
            continue;
        rest = strcmp(m->host, "/") == 0 ? host : host + strlen(m->host);
        cage = strcmp(m->cage, "/") == 0 ? rest
                                         : tci_arena_printf(plan->arena, "%s%s", m->cage, rest);
        if (!cage)
            return tci_error_no_memory(reterr);
        /* Something else of the plan lies on it or above it: a hidden directory, for one. */
        if (nearest(plan, cage) != m || is_listed(list, cage))
            continue;
        if (add(list,
                (struct tci_api_bind){ .host = tci_arena_strdup(plan->arena, host),
                                       .cage = tci_arena_strdup(plan->arena, cage),
                                       .no_exec = m->no_exec },
                reterr) < 0)
            return -1;
    }
    return 0;
}

static int add_all_below(struct list *list, struct tc_error *reterr)
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    char *line = NULL, *rest, *field;
    size_t size = 0;
    int r = 0;
    if (!file)
        return tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                             "/proc/self/mountinfo cannot be read, and read-only paths depend on "
                             "it");
    while (r == 0 && getline(&line, &size, file) > 0) {
        rest = line;
        field = NULL;
        for (int i = 0; i < 5; i++)
            field = strsep(&rest, " ");
        if (!field)
            continue;
        unescape(field);
        r = add_below(list, field, reterr);
    }
    free(line);
    (void)fclose(file);
    return r;
}

int tci_api_binds(const struct tci_api_body *what, struct tci_api_bind **ret, size_t *ret_count,
                  struct tc_error *reterr)
{
    const struct tci_oci_plan *plan = what->plan;
    struct list list = { .what = what };
    bool read_only = false;
    list.items = tci_arena_new_array(plan->arena, BINDS_MAX, struct tci_api_bind);
    if (!list.items)
        return tci_error_no_memory(reterr);
    for (size_t i = 0; i < plan->mount_count; i++) {
        const struct tci_oci_mount *m = &plan->mounts[i];
        struct tci_api_bind bind = { .host = m->host, .cage = m->cage };
        if (m->kind == TCI_OCI_MOUNT_TMPFS)
            continue;
        if (m->kind == TCI_OCI_MOUNT_FILE) {
            bind.host = tci_arena_printf(plan->arena, "%s/f%zu", what->place->path, i);
            bind.no_exec = true;
        } else {
            bind.writable = bind.recursive = m->writable;
            bind.no_exec = m->no_exec;
            read_only |= !m->writable && !m->is_file;
        }
        if (add(&list, bind, reterr) < 0)
            return -1;
    }
    if (read_only && add_all_below(&list, reterr) < 0)
        return -1;
    /* In a user namespace the kernel does not bind a directory without what is mounted below it:
     * that would uncover what lies beneath. There the mounts come along, and are covered by
     * read-only ones. */
    for (size_t i = 0; plan->choice.engine_is_rootless && i < list.count; i++)
        list.items[i].recursive = true;
    *ret = list.items;
    *ret_count = list.count;
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
