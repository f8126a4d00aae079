/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the files that choose an engine and a runtime share. */
#ifndef TCI_BACKEND_OCI_CHOOSE_H
#define TCI_BACKEND_OCI_CHOOSE_H

#include "backend/oci/oci.h"

struct tci_oci_answer {
    int problem; /* 0: ended by itself with status 0 in time; else an errno (EIO: another end) */
    size_t length;
};
/* choose_ask.c: runs a trusted program that answers at once ("--version"), and keeps what it writes
 * on both outputs as text. Starts it without a copy of this process; after `limit_ms` it is killed. */
struct tci_oci_answer tci_oci_ask(const char *path, char *const argv[], int limit_ms, char *output,
                                  size_t size);

/* choose_runsc.c: version gate and platform, for a choice whose program is runsc. */
int tci_oci_runsc(struct tci_oci_choice *choice, struct tc_error *reterr);

#endif
