/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: looking at what a call uses, for jails and containers (watch.h). */
#include "backend/watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/fd.h"

enum { look_ns = 5000000 };

void tci_watch_init(struct tci_watch *watch, bool at_once)
{
    *watch = (struct tci_watch){ .timer = -1, .at_once = at_once };
}

void tci_watch_end(struct tci_watch *watch)
{
    tci_disk_watch_free(watch->disk);
    watch->disk = NULL;
    watch->timer = tci_close(watch->timer);
}

int tci_watch_timer(struct tci_watch *watch, int epoll, struct tc_error *reterr)
{
    const struct itimerspec when = { .it_interval = { .tv_nsec = look_ns },
                                     .it_value = { .tv_nsec = watch->at_once ? 1 : look_ns } };
    struct epoll_event event = { .events = EPOLLIN };
    if (watch->timer >= 0)
        return 0;
    watch->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (watch->timer < 0 || timerfd_settime(watch->timer, 0, &when, NULL) < 0 ||
        epoll_ctl(epoll, EPOLL_CTL_ADD, watch->timer, &event) < 0)
        return tci_error_errno(reterr, errno, "making a timer");
    return 0;
}

bool tci_watch_ticked(struct tci_watch *watch)
{
    uint64_t ticks;
    return watch->timer >= 0 && read(watch->timer, &ticks, sizeof ticks) == (ssize_t)sizeof ticks;
}

/* Version 1 of control groups says so a moment before it kills, kills one process and lets the rest go on:
 * we look again until it has happened, and the caller ends the rest. */
bool tci_watch_memory(struct tci_watch *watch, const struct tci_cgroup *group, int epoll)
{
    struct pollfd p = { .fd = group ? group->events : -1,
                        .events = group ? group->events_mask : (short)0 };
    if (p.fd < 0 || watch->hit & TCI_HIT_MEMORY || (!watch->starving && poll(&p, 1, 0) <= 0))
        return false;
    watch->starving = true;
    if (tci_cgroup_look(group)) {
        watch->hit |= TCI_HIT_MEMORY;
        return true;
    }
    (void)tci_watch_timer(watch, epoll, NULL);
    return false;
}

static uint64_t above(uint64_t value, uint64_t before)
{
    return value > before ? value - before : 0;
}

uint64_t tci_watch_cpu_us(const struct tci_watch *watch, const struct tci_cgroup *group)
{
    return above(group ? tci_cgroup_cpu_us(group) : 0, watch->cpu_us_before);
}

void tci_watch_written(struct tci_watch *watch, int pid)
{
    uint64_t written;
    if (!watch->disk || pid <= 0)
        return;
    written = above(tci_disk_watch_look(watch->disk, pid), watch->written_before);
    if (written > watch->written)
        watch->written = written;
}

bool tci_watch_reached(struct tci_watch *watch, const struct tci_settings *s)
{
    if (watch->disk && watch->written > s->disk)
        watch->hit |= TCI_HIT_DISK;
    return watch->hit & (TCI_HIT_CPU | TCI_HIT_DISK);
}

static unsigned limits_hit(const struct tci_watch *watch, const struct tci_settings *s,
                           const struct tci_watch_said *said, const struct tc_usage *usage)
{
    unsigned hit = 0;
    if (s->cpu_time != TCI_UNLIMITED && usage->cpu_us / 1000 >= s->cpu_time)
        hit |= TCI_HIT_CPU;
    if (watch->disk && usage->bytes_written > s->disk)
        hit |= TCI_HIT_DISK;
    /* The kernel's own word for "this file grew beyond the limit"; anybody can say it, so that
     * something must have been written, too. */
    if (watch->disk && usage->bytes_written && said->has_ended && WIFSIGNALED(said->status) &&
        WTERMSIG(said->status) == SIGXFSZ)
        hit |= TCI_HIT_DISK;
    return hit;
}

void tci_watch_usage(const struct tci_watch *watch, const struct tci_settings *s,
                     const struct tci_cgroup *group, const struct tci_watch_said *said,
                     struct tc_outcome *ret)
{
    struct tci_cgroup_usage counted = { 0 };
    struct tc_usage *usage = &ret->usage;
    const bool has_group = group && tci_cgroup_usage(group, &counted, NULL) == 0;
    const uint64_t cpu = above(counted.cpu_us, watch->cpu_us_before);
    usage->cpu_us = cpu ? cpu : said->cpu_us;
    usage->memory_peak_bytes = counted.memory_peak ? counted.memory_peak : said->memory_peak;
    /* Without the first process, which is ours. */
    usage->processes_peak = counted.pids_peak > 1 ? counted.pids_peak - 1 : 0;
    usage->bytes_written = said->bytes_written > watch->written ? said->bytes_written
                                                                : watch->written;
    if (has_group && counted.oom_kills)
        ret->hit |= TCI_HIT_MEMORY;
    if (has_group && counted.pids_refused)
        ret->hit |= TCI_HIT_PIDS;
    ret->hit |= limits_hit(watch, s, said, usage);
}
