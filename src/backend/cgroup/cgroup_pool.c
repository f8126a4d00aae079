/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: groups that are used again. A version 1 or hybrid host has four directories per cage, and
 * the kernel takes longer to make and to destroy them than for everything else that is done with
 * them. So a group whose cage ended well is kept for the next one with the same limits.
 *
 * Invariants: a cage cannot tell, and its result does not show, that somebody was there before. So
 * a group is kept only if it is empty, no limit of it was hit, and next to no memory is still
 * charged to it. What the kernel cannot set back is subtracted (processor time), or made anew: the
 * most processes that there were (pids), unless that is the number that every cage has. Version 2
 * cannot set back the peak of memory before Linux 6.12, and has one directory only: there nothing is
 * kept.
 */
#include "backend/cgroup/cgroup_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policy/model.h"

/* Pages that the kernel holds ready per processor are charged, too, and a few slabs. */
#define RESIDUE_MAX UINT64_C(4194304)

/* Every cage has its init and its command: the next one cannot stay below that. */
enum { PROCESSES_LEAST = 2 };

static bool is_made_anew(const struct tci_cgroup_hierarchy *h)
{
    return h->controllers & TCI_CGROUP_HAS_PIDS;
}

struct tci_cgroup *tci_cgroup_pool_take(struct tci_cgroups *groups,
                                        const struct tci_cgroup_limits *limits)
{
    for (unsigned i = groups->pool_count; i-- > 0;) {
        struct tci_cgroup *group = groups->pool[i];
        const struct tci_cgroup_state *state = group->state;
        if (memcmp(&state->limits, limits, sizeof *limits) != 0)
            continue;
        groups->pool_count--;
        memmove(&groups->pool[i], &groups->pool[i + 1],
                (groups->pool_count - i) * sizeof(struct tci_cgroup *));
        return group;
    }
    return NULL;
}

int tci_cgroup_pool_refresh(struct tci_cgroup *group)
{
    struct tci_cgroup_state *state = group->state;
    uint64_t count;
    state->cpu_before = 0;
    state->cpu_before = tci_cgroup_cpu_us(group);
    for (unsigned i = 0; i < group->groups->count; i++) {
        const struct tci_cgroup_hierarchy *h = &group->groups->hierarchies[i];
        if (is_made_anew(h) && state->limits.pids != TCI_UNLIMITED && !(state->made >> i & 1) &&
            tci_cgroup_make_in(group, i, NULL) < 0)
            return -1;
        if (state->made >> i & 1 && h->controllers & TCI_CGROUP_HAS_MEMORY &&
            tci_cgroup_write(h->base, group->name, "memory.max_usage_in_bytes", "0"))
            return -1;
    }
    /* A group above may have run out of memory meanwhile, which every group below it is told. */
    if (group->events >= 0)
        (void)!read(group->events, &count, sizeof count);
    return !group->enter_count && tci_cgroup_open_entries(group) ? -1 : 0;
}

/* Did its cage end without having come near a limit? Then the counters of hits are still 0. */
static bool ended_well(const struct tci_cgroup_state *state)
{
    uint64_t limit = state->limits.memory;
    return state->counted && !state->killed && !state->last.oom_kills &&
           !state->last.pids_refused &&
           (limit == TCI_UNLIMITED || state->last.memory_peak < limit - limit / 8);
}

/* Empty, and nothing but crumbs in its memory. Removes what is made anew. What the next cage needs to
 * come in stays open if it is still good. */
static bool is_clean(struct tci_cgroup *group)
{
    struct tci_cgroup_state *state = group->state;
    uint64_t residue = state->limits.memory / 8 < RESIDUE_MAX ? state->limits.memory / 8
                                                              : RESIDUE_MAX;
    bool known_empty = false;
    for (unsigned i = 0; i < group->groups->count; i++) {
        const struct tci_cgroup_hierarchy *h = &group->groups->hierarchies[i];
        if (!(state->made >> i & 1))
            continue;
        if (h->v2 &&
            (h->controllers & TCI_CGROUP_LIMITS || !tci_cgroup_wait_empty(h, group->name, 0)))
            return false;
        if (is_made_anew(h) && !(known_empty && state->last.pids_peak <= PROCESSES_LEAST)) {
            if (!tci_cgroup_remove_named(h, group->name, 0))
                return false;
            state->made &= ~(1U << i);
            tci_cgroup_entered(group);
        }
        /* A cage enters these two first, so nobody is in the others. */
        known_empty = known_empty || h->v2 || is_made_anew(h);
        if (state->made >> i & 1 && h->controllers & TCI_CGROUP_HAS_MEMORY &&
            tci_cgroup_number(h->base, group->name, "memory.usage_in_bytes") > residue)
            return false;
    }
    return known_empty;
}

bool tci_cgroup_pool_put(struct tci_cgroup *group)
{
    struct tci_cgroups *groups = group->groups;
    struct tci_cgroup_state *state = group->state;
    struct tci_cgroup *oldest = NULL;
    bool kept = false;
    if (!ended_well(state) || !is_clean(group))
        return false;
    state->counted = false;
    (void)pthread_mutex_lock(&groups->lock);
    /* Not what the process that forked us has made. */
    if (groups->owner.pid == getpid()) {
        if (groups->pool_count == TCI_CGROUP_POOL_MAX) {
            oldest = groups->pool[0];
            groups->pool_count--;
            memmove(&groups->pool[0], &groups->pool[1],
                    groups->pool_count * sizeof(struct tci_cgroup *));
        }
        groups->pool[groups->pool_count++] = group;
        kept = true;
    }
    (void)pthread_mutex_unlock(&groups->lock);
    if (oldest)
        tci_cgroup_destroy(oldest);
    return kept;
}

void tci_cgroup_pool_clear(struct tci_cgroups *groups, bool forget)
{
    while (groups->pool_count) {
        struct tci_cgroup *group = groups->pool[--groups->pool_count];
        if (!forget) {
            tci_cgroup_destroy(group);
            continue;
        }
        tci_cgroup_entered(group);
        if (group->events >= 0)
            (void)close(group->events);
        free(group);
    }
}
