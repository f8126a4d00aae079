/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what this host offers, as a value. Every answer comes from trying the thing in a child of
 * its own, never from a version number. Nothing of a probe outlives it: no process, no mount, no
 * control group, no file.
 *
 * For programs: the probes fork. Call them while the process has one thread.
 */
#ifndef TCI_BACKEND_HOST_H
#define TCI_BACKEND_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tci_feature {
#define X(id, name, purpose) TCI_FEATURE_##id,
#include "backend/features.def"
#undef X
    TCI_FEATURE_COUNT,
};

enum tci_feature_state {
    TCI_FEATURE_UNKNOWN, /* not found out: counts as missing, and the detail says what happened */
    TCI_FEATURE_NO,
    TCI_FEATURE_YES,
};

enum { TCI_FEATURE_DETAIL_MAX = 192, TCI_FEATURE_REMEDY_MAX = 256 };

struct tci_host_feature {
    enum tci_feature id;
    enum tci_feature_state state;
    char detail[TCI_FEATURE_DETAIL_MAX]; /* "ABI 7", "refused: Operation not permitted" */
    char remedy[TCI_FEATURE_REMEDY_MAX]; /* the command or setting that gets it; empty when YES */
};

/* Fixed size, nothing to free, may be copied. Text holds printable ASCII only. */
struct tci_host_report {
    uint64_t asked;                                      /* bits: features that were looked at */
    struct tci_host_feature features[TCI_FEATURE_COUNT]; /* indexed by enum tci_feature */
};

/* Runs every probe, side by side; at most some 4 seconds, usually far below one. */
void tci_host_probe(struct tci_host_report *ret);

/* A report in which nothing was asked yet: every feature is UNKNOWN, and its detail says so. */
void tci_host_report_init(struct tci_host_report *ret);

/* Runs the probes that answer for `features` (bits) and were not asked before, and adds those
 * features, no others, to the report. */
void tci_host_probe_features(uint64_t features, struct tci_host_report *report);

/* Runs the one probe that answers for `feature` and fills in that feature alone. */
void tci_host_probe_feature(enum tci_feature feature, struct tci_host_feature *ret);

/* Root of the host, and not of a user namespace in which somebody else is the real one. May be asked
 * by any thread. */
bool tci_host_is_root(void);
/* Does RLIMIT_NPROC count per user namespace? Without trying it: false where that is not known. */
bool tci_host_has_process_limit(void);

/* The stable name and the purpose from features.def; "unknown" for a number outside the table. */
const char *tci_feature_name(enum tci_feature feature);
const char *tci_feature_purpose(enum tci_feature feature);
const char *tci_feature_state_name(enum tci_feature_state state); /* "yes", "no", "unknown" */

#endif
