/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the groups of one cage, from their making to their removal: one directory of the same name
 * in each hierarchy that is needed.
 *
 * Invariants: a group that could not be made whole leaves nothing. Descriptors are closed on exec.
 * A directory that does not go away is kept in mind and tried again.
 */
#include "backend/cgroup/cgroup_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy/model.h"

enum { REMOVE_PATIENCE_MS = 20 };

/* ---- all groups of a process ---------------------------------------------------------------- */

int tci_cgroups_open(struct tci_cgroups **ret, struct tc_error *reterr)
{
    struct tci_cgroups *groups = calloc(1, sizeof *groups);
    if (!groups)
        return tci_error_no_memory(reterr);
    (void)pthread_mutex_init(&groups->lock, NULL);
    groups->kind = "none";
    /* Without /proc nobody can tell whose groups they would be, and there is nothing to see. */
    if (tci_cgroup_owner_self(&groups->owner) == 0) {
        tci_cgroups_place(groups);
        tci_cgroups_sweep(groups);
    }
    *ret = groups;
    return 0;
}

/* Tries to remove what was left before. Holds the lock. */
static void retry_left(struct tci_cgroups *groups)
{
    for (unsigned i = 0; i < groups->left_count;) {
        struct tci_cgroup_left *left = &groups->left[i];
        const struct tci_cgroup_hierarchy *h = &groups->hierarchies[left->hierarchy];
        (void)tci_cgroup_kill_named(h, left->name, 0);
        if (tci_cgroup_remove_named(h, left->name, 0))
            *left = groups->left[--groups->left_count];
        else
            i++;
    }
}

/* What does not fit is collected when this process is gone, by its name. */
static void keep_left(struct tci_cgroups *groups, unsigned hierarchy, const char *name)
{
    struct tci_cgroup_left *left;
    if (groups->left_count == TCI_CGROUP_LEFT_MAX)
        return;
    left = &groups->left[groups->left_count++];
    left->hierarchy = hierarchy;
    memcpy(left->name, name, sizeof left->name);
}

void tci_cgroups_free(struct tci_cgroups *groups)
{
    if (!groups)
        return;
    tci_cgroup_pool_clear(groups, groups->owner.pid != getpid());
    retry_left(groups);
    for (unsigned i = 0; i < groups->count; i++)
        (void)close(groups->hierarchies[i].base);
    (void)pthread_mutex_destroy(&groups->lock);
    free(groups);
}

unsigned tci_cgroups_has(const struct tci_cgroups *groups)
{
    return groups->has;
}

const char *tci_cgroups_kind(const struct tci_cgroups *groups)
{
    return groups->kind;
}

/* ---- one cage ------------------------------------------------------------------------------- */

struct whole {
    struct tci_cgroup group;
    struct tci_cgroup_state state;
};

/* Limits that are asked for and that nothing here can keep. */
static int check_limits(const struct tci_cgroups *groups, const struct tci_cgroup_limits *limits,
                        struct tc_error *reterr)
{
    const struct {
        unsigned bit;
        uint64_t value;
        const char *name;
    } wanted[] = {
        { TCI_CGROUP_HAS_MEMORY, limits->memory, "memory" },
        { TCI_CGROUP_HAS_PIDS, limits->pids, "pids" },
        { TCI_CGROUP_HAS_CPU, limits->cpu, "cpu" },
    };
    for (size_t i = 0; i < tci_array_size(wanted); i++) {
        if (wanted[i].value == 0)
            return tci_error_set(reterr, TC_ERROR_USAGE, "control group: a %s limit of 0",
                                 wanted[i].name);
        if (wanted[i].value == TCI_UNLIMITED || groups->has & wanted[i].bit)
            continue;
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                      "control group: no %s controller that this process may use (%s)",
                      wanted[i].name, groups->kind);
        tci_error_remedy(reterr, "toolcage doctor says how to get one");
        return -1;
    }
    return 0;
}

/* A group is needed where something is limited or measured. */
static bool is_needed(const struct tci_cgroup_hierarchy *h, const struct tci_cgroup_limits *limits)
{
    unsigned use = TCI_CGROUP_HAS_MEMORY | TCI_CGROUP_HAS_CPU_USAGE;
    if (limits->pids != TCI_UNLIMITED)
        use |= TCI_CGROUP_HAS_PIDS;
    if (limits->cpu != TCI_UNLIMITED)
        use |= TCI_CGROUP_HAS_CPU;
    return h->v2 || h->controllers & use;
}

int tci_cgroup_make_in(struct tci_cgroup *group, unsigned index, struct tc_error *reterr)
{
    const struct tci_cgroup_hierarchy *h = &group->groups->hierarchies[index];
    struct tci_cgroup_state *state = group->state;
    /* Nobody else needs to look into it. */
    if (mkdirat(h->base, group->name, 0700) < 0)
        return tci_error_errno(reterr, errno, "control group: making %s", group->name);
    state->made |= 1U << index;
    if (tci_cgroup_set_limits(h, group->name, &state->limits, reterr) < 0)
        return -1;
    if (h->controllers & TCI_CGROUP_HAS_MEMORY && state->limits.memory != TCI_UNLIMITED)
        group->events = tci_cgroup_watch(h, group->name, &group->events_mask);
    return 0;
}

/*
 * Version 1 has `tasks`, which moves the calling thread and so needs no lock on all processes of
 * the host: a write to cgroup.procs takes 10 ms on an idle host, for it waits until every processor
 * has seen that lock. Version 2 has clone3() instead.
 */
int tci_cgroup_open_entries(struct tci_cgroup *group)
{
    const struct tci_cgroup_state *state = group->state;
    for (unsigned i = 0; i < group->groups->count; i++) {
        const struct tci_cgroup_hierarchy *h = &group->groups->hierarchies[i];
        int problem = 0;
        if (!(state->made >> i & 1))
            continue;
        problem = tci_cgroup_open_file(h->base, group->name, h->v2 ? "cgroup.procs" : "tasks",
                                       O_WRONLY, &group->enter[group->enter_count]);
        if (problem)
            return problem;
        group->enter_count++;
        if (!h->v2)
            continue;
        problem = tci_cgroup_open_file(h->base, group->name, ".", O_RDONLY | O_DIRECTORY,
                                       &group->into);
        if (problem)
            return problem;
        group->enter_after_clone = group->enter_count;
    }
    return 0;
}

/* The directories in all hierarchies. */
static int make_all(struct tci_cgroup *group, struct tc_error *reterr)
{
    const struct tci_cgroup_state *state = group->state;
    int problem;
    for (unsigned i = 0; i < group->groups->count; i++)
        if (is_needed(&group->groups->hierarchies[i], &state->limits) &&
            tci_cgroup_make_in(group, i, reterr) < 0)
            return -1;
    problem = tci_cgroup_open_entries(group);
    if (problem)
        return tci_error_errno(reterr, problem, "control group: opening %s", group->name);
    return 0;
}

/* Are we still who opened it? A process that has forked must leave its parent's groups alone. Holds
 * the lock. */
static bool renew_owner(struct tci_cgroups *groups)
{
    if (groups->owner.pid == getpid())
        return true;
    tci_cgroup_pool_clear(groups, true);
    groups->left_count = 0;
    return tci_cgroup_owner_self(&groups->owner) == 0;
}

/* One from the pool that is as good as new, or NULL; and a name for a new one. 0 or an errno. */
static int begin(struct tci_cgroups *groups, const char *id, const struct tci_cgroup_limits *limits,
                 char *name, struct tci_cgroup **ret)
{
    bool named;
    (void)pthread_mutex_lock(&groups->lock);
    named = renew_owner(groups) && tci_cgroup_name(&groups->owner, id, name, TCI_CGROUP_NAME_MAX);
    *ret = named ? tci_cgroup_pool_take(groups, limits) : NULL;
    (void)pthread_mutex_unlock(&groups->lock);
    if (*ret && tci_cgroup_pool_refresh(*ret) < 0) {
        tci_cgroup_destroy(*ret);
        *ret = NULL;
    }
    return named ? 0 : EINVAL;
}

int tci_cgroup_make(struct tci_cgroups *groups, const char *sandbox_id,
                    const struct tci_cgroup_limits *limits, struct tci_cgroup **ret,
                    struct tc_error *reterr)
{
    struct tci_cgroup *ready;
    struct whole *whole;
    char name[TCI_CGROUP_NAME_MAX];
    if (check_limits(groups, limits, reterr) < 0)
        return -1;
    if (begin(groups, sandbox_id, limits, name, &ready))
        return tci_error_set(reterr, TC_ERROR_USAGE,
                             "control group: no name for a sandbox_id %.64s", sandbox_id);
    if (ready) {
        *ret = ready;
        return 0;
    }
    whole = calloc(1, sizeof *whole);
    if (!whole)
        return tci_error_no_memory(reterr);
    whole->group = (struct tci_cgroup){ .into = -1, .events = -1, .groups = groups };
    whole->group.state = &whole->state;
    whole->state.limits = *limits;
    memcpy(whole->group.name, name, sizeof name);
    if (make_all(&whole->group, reterr) < 0) {
        tci_cgroup_destroy(&whole->group);
        return -1;
    }
    *ret = &whole->group;
    return 0;
}

void tci_cgroup_entered(struct tci_cgroup *group)
{
    if (group->into >= 0)
        (void)close(group->into);
    for (unsigned i = 0; i < group->enter_count; i++)
        (void)close(group->enter[i]);
    group->into = -1;
    group->enter_count = group->enter_after_clone = 0;
}

/* Not beyond `until_ms`, for all hierarchies together. */
static bool remove_from(const struct tci_cgroup_hierarchy *h, const char *name, int64_t until_ms)
{
    int64_t left;
    if (tci_cgroup_remove_named(h, name, REMOVE_PATIENCE_MS))
        return true;
    /* Somebody is in there who should not be. */
    left = until_ms - tci_cgroup_now_ms();
    (void)tci_cgroup_kill_named(h, name, left > 0 ? (int)left : 0);
    left = until_ms - tci_cgroup_now_ms();
    return tci_cgroup_remove_named(h, name, left > 0 ? (int)left : 0);
}

void tci_cgroup_destroy(struct tci_cgroup *group)
{
    struct tci_cgroups *groups = group->groups;
    struct tci_cgroup_state *state = group->state;
    int64_t until_ms = tci_cgroup_now_ms() + TCI_CGROUP_REMOVE_MS;
    tci_cgroup_entered(group);
    if (group->events >= 0)
        (void)close(group->events);
    for (unsigned i = 0; i < groups->count; i++)
        if (state->made >> i & 1 && remove_from(&groups->hierarchies[i], group->name, until_ms))
            state->made &= ~(1U << i);
    (void)pthread_mutex_lock(&groups->lock);
    if (groups->left_count)
        retry_left(groups);
    for (unsigned i = 0; i < groups->count; i++)
        if (state->made >> i & 1)
            keep_left(groups, i, group->name);
    (void)pthread_mutex_unlock(&groups->lock);
    free((struct whole *)group); /* its private parts are in one piece with it */
}

void tci_cgroup_free(struct tci_cgroup *group)
{
    if (!group)
        return;
    if (!tci_cgroup_pool_put(group))
        tci_cgroup_destroy(group);
}
