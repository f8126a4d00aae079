/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what a call was refused while it ran, in its result. */
#ifndef TCI_CORE_DENIALS_H
#define TCI_CORE_DENIALS_H

#include "backend/native/trace.h"
#include "core/result.h"

/* Adds what the trace has seen to the denials of the result. The tree is gone. */
int tci_denials_add(struct tci_result *result, struct tci_trace *trace, struct tc_error *reterr);

/*
 * When all denials are there. The verdict stands; it does not change. A command that failed has the
 * first denial named in its reason, and in its fix if there was none: that it failed because of it,
 * nobody can know.
 */
void tci_denials_name(struct tci_result *result);

#endif
