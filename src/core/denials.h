/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what a traced call was refused, in its result. */
#ifndef TCI_CORE_DENIALS_H
#define TCI_CORE_DENIALS_H

#include "backend/native/trace.h"
#include "core/result.h"

/*
 * Adds what the trace has seen to the denials of the result. The tree is gone, and the verdict
 * stands; it does not change. A command that failed has the first denial named in its reason, and in
 * its fix if there was none: that it failed because of it, nobody can know.
 */
int tci_denials_add(struct tci_result *result, struct tci_trace *trace, struct tc_error *reterr);

#endif
