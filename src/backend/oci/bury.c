/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the end of containers whose call is over. Nobody in them lives any more, but runtimes and engines
 * take their time to take them apart, and no caller waits for that: a thread of the plan does. What it
 * cannot keep up with is ended by the caller, so that the dead never pile up.
 */
#include "backend/oci/oci.h"

#include <signal.h>
#include <time.h>

enum {
    waiting_max = 8,
    room_s = 10, /* an engine that takes longer to remove one does not hold up the calls */
};

static void *work(void *argument)
{
    struct tci_oci_grave *grave = argument;
    (void)pthread_mutex_lock(&grave->lock);
    for (;;) {
        struct tci_oci_cage *cage = grave->first;
        if (!cage && grave->closing)
            break;
        if (!cage) {
            (void)pthread_cond_wait(&grave->changed, &grave->lock);
            continue;
        }
        grave->first = cage->next;
        (void)pthread_mutex_unlock(&grave->lock);
        tci_oci_cage_free(cage);
        (void)pthread_mutex_lock(&grave->lock);
        grave->count--;
    }
    (void)pthread_mutex_unlock(&grave->lock);
    return NULL;
}

int tci_oci_start_thread(pthread_t *ret, void *(*function)(void *), void *argument)
{
    sigset_t all, before;
    int r;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(ret, NULL, function, argument);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}

void tci_oci_bury(struct tci_oci_cage *cage)
{
    struct tci_oci_grave *grave = &cage->plan->grave;
    bool taken = false;
    (void)pthread_mutex_lock(&grave->lock);
    if (!grave->has_thread && !grave->closing)
        grave->has_thread = tci_oci_start_thread(&grave->thread, work, grave) == 0;
    if (grave->has_thread && grave->count < waiting_max) {
        taken = true;
        cage->next = grave->first;
        grave->first = cage;
        grave->count++;
        (void)pthread_cond_signal(&grave->changed);
    }
    (void)pthread_mutex_unlock(&grave->lock);
    if (!taken)
        tci_oci_cage_free(cage);
}

void tci_oci_bury_all(struct tci_oci_plan *plan)
{
    struct tci_oci_grave *grave = &plan->grave;
    bool has_thread;
    (void)pthread_mutex_lock(&grave->lock);
    grave->closing = true;
    has_thread = grave->has_thread;
    grave->has_thread = false;
    (void)pthread_cond_signal(&grave->changed);
    (void)pthread_mutex_unlock(&grave->lock);
    if (has_thread)
        (void)pthread_join(grave->thread, NULL);
    (void)pthread_mutex_destroy(&grave->lock);
    (void)pthread_cond_destroy(&grave->changed);
    (void)pthread_cond_destroy(&grave->emptier);
}

/* ---- how many there may be ------------------------------------------------------------------------ */

void tci_oci_count_call(struct tci_oci_plan *plan, int change)
{
    struct tci_oci_grave *grave = &plan->grave;
    (void)pthread_mutex_lock(&grave->lock);
    grave->calls = change < 0 ? grave->calls - 1 : grave->calls + 1;
    (void)pthread_mutex_unlock(&grave->lock);
}

void tci_oci_uncount_cage(struct tci_oci_plan *plan)
{
    struct tci_oci_grave *grave = &plan->grave;
    (void)pthread_mutex_lock(&grave->lock);
    grave->cages--;
    (void)pthread_cond_broadcast(&grave->emptier);
    if (plan->pool)
        tci_oci_pool_wake(plan->pool);
    (void)pthread_mutex_unlock(&grave->lock);
}

/* With the lock held. Calls have one each, and the pool `warm`: whoever is beyond that is on its way out. */
static bool has_room(const struct tci_oci_plan *plan)
{
    return plan->grave.cages < plan->grave.calls + (plan->pool ? plan->spec.warm : 0);
}

bool tci_oci_count_cage(struct tci_oci_plan *plan, bool wait)
{
    struct tci_oci_grave *grave = &plan->grave;
    struct timespec until;
    bool room;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += room_s;
    (void)pthread_mutex_lock(&grave->lock);
    while (!(room = has_room(plan)) && wait &&
           pthread_cond_timedwait(&grave->emptier, &grave->lock, &until) == 0)
        ;
    if (room || wait)
        grave->cages++;
    (void)pthread_mutex_unlock(&grave->lock);
    return room || wait;
}
