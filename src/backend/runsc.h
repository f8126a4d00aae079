/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: which runsc is new enough, and trying its platform kvm. */
#ifndef TCI_BACKEND_RUNSC_H
#define TCI_BACKEND_RUNSC_H

#include <stdbool.h>

enum {
    TCI_RUNSC_OLDEST = 20221219, /* the oldest that was tried: Debian 12 */
    TCI_RUNSC_KVM_LIMIT_MS = 3000,
};

/* The day of a release as it says it itself ("release-20240729.0", "0.0~20221219.0"): 20221219; 0:
 * there is none in the text. */
unsigned tci_runsc_date(const char *version);

/* Does a sandbox on the platform kvm start and end in time? It must be tried: where /dev/kvm cannot run
 * gVisor's guest it hangs. Everything that was started for it is gone afterwards. Forks. */
bool tci_runsc_kvm_works(const char *runsc);

#endif
