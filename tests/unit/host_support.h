/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the tests of probes of this host share. */
#ifndef TCI_TESTS_HOST_SUPPORT_H
#define TCI_TESTS_HOST_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "support.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include "backend/host.h"
#include "backend/probe.h"

static inline void assert_no_children(void)
{
    errno = 0;
    assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
    assert_int_equal(errno, ECHILD);
}

static inline int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Runs one job made of `run` that answers for KERNEL and PIDFD; returns what it left of KERNEL. */
static inline struct tci_host_feature run_job(tci_probe_function *run, tci_probe_function *cleanup,
                                              int limit_ms)
{
    static struct tci_host_report report;
    struct tci_probe_job job = { "test", run, cleanup, limit_ms,
                                 TCI_FEATURE_BIT(KERNEL) | TCI_FEATURE_BIT(PIDFD) };
    memset(&report, 0, sizeof report);
    report.features[TCI_FEATURE_CLONE3].state = TCI_FEATURE_NO; /* not the job's: must stay */
    tci_probe_jobs(&job, 1, &report);
    assert_int_equal(report.features[TCI_FEATURE_CLONE3].state, TCI_FEATURE_NO);
    assert_no_children();
    return report.features[TCI_FEATURE_KERNEL];
}

#endif
