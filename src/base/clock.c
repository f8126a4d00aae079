/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the two clocks. Both calls cannot fail with these clocks, and stay out of the kernel. */
#include "base/clock.h"

#include <time.h>

uint64_t tci_clock_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

uint64_t tci_clock_realtime_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    /* A host whose clock stands before 1970 has no date: 0, not a number beyond all dates. */
    if (now.tv_sec < 0)
        return 0;
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
