/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the files of one cage's life (run.c, run_start.c, run_end.c) share. */
#ifndef TCI_BACKEND_NATIVE_RUN_INTERNAL_H
#define TCI_BACKEND_NATIVE_RUN_INTERNAL_H

#include "backend/native/run.h"

/* Writes one byte to init, which may wait for it. 0, or -1 with errno: it is dead. run.c */
int tci_native_tell(const struct tc_run *run, const char *byte);
/* Takes what init has reported until now. run.c */
void tci_native_read_reports(struct tc_run *run);
/* Has init ended? It is collected then. run_end.c */
bool tci_native_has_ended(struct tc_run *run);

#endif
