/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what time it is. Durations are differences of the monotonic clock, never of the other. */
#ifndef TCI_BASE_CLOCK_H
#define TCI_BASE_CLOCK_H

#include <stdint.h>

/* Microseconds since an unknown moment; never goes back, stands still while the machine sleeps. */
uint64_t tci_clock_us(void);

/* Milliseconds since 1970, as the host believes: for ids and records, not for durations. */
uint64_t tci_clock_realtime_ms(void);

#endif
