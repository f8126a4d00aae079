/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: refusing what a backend cannot keep here, before anything is made. The costly probes of
 * `toolcage doctor` are not run for that: a backend begins with tci_host_report_init() and answers what is
 * cheap to ask, and what building the cage itself would find out; the rest counts as missing.
 */
#ifndef TCI_BACKEND_REFUSE_H
#define TCI_BACKEND_REFUSE_H

#include "backend/backend.h"
#include "backend/ready.h"

/* `detail` and `remedy` are for a feature that is missing. */
void tci_refuse_answer(struct tci_host_report *report, enum tci_feature feature, bool has,
                       const char *detail, const char *remedy);
/* The same for control groups, of which `has` (bits of cgroup.h) are there. All of them? */
bool tci_refuse_answer_groups(struct tci_host_report *report, unsigned has, const char *detail,
                              const char *remedy);
/* Holds every clause that the spec asks for against ready.def; `backend` is a name of ready.h. */
int tci_refuse(const struct tci_host_report *report, const char *backend,
               const struct tc_spec *spec, struct tc_error *reterr);

#endif
