/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what each backend could keep on this host, concluded from a report of its features. About
 * the host, not about this build: that a backend's code is there is for its registry to say.
 *
 * Rule: a feature that was not found out counts as missing, and a clause for which nobody is sure
 * that it is kept is not kept.
 */
#ifndef TCI_BACKEND_READY_H
#define TCI_BACKEND_READY_H

#include <stdbool.h>
#include <stddef.h>
#include "backend/host.h"
#include "policy/clauses.h"
#include "policy/model.h"

enum { TCI_KEEPING_TEXT_MAX = 256 };

/* "process", "jail", "oci/crun", "oci/runc", "oci/podman", "oci/docker", "gvisor", "wasm", "microvm";
 * NULL beyond the last. What makes containers has one for each way to do so (tci_oci_ready_name). */
size_t tci_backend_count(void);
const char *tci_backend_name(size_t index);

/* Adds to the report what ready.def says that the backend's answers depend on, and nothing else:
 * for a jail no container engine of the host is started. What was asked before is not asked again.
 * Begin with tci_host_report_init(). An unknown name adds nothing. */
void tci_backend_probe(const char *backend, struct tci_host_report *report);

struct tci_missing {
    size_t count;
    enum tci_feature features[TCI_FEATURE_COUNT];
};

/* Can the backend build cages here? If not, `ret` lists what the way to it that is nearest lacks.
 * An unknown name is never ready, and lacks nothing. */
bool tci_backend_ready(const struct tci_host_report *report, const char *backend,
                       struct tci_missing *ret);

/* Some clauses can be kept only for some tools. These are what the caller must know of a tool. */
enum tci_fact {
    TCI_FACT_ALONE = 1,            /* its system calls let it start neither process nor thread */
    TCI_FACT_NOTHING_WRITABLE = 2, /* no path of the host is granted for writing */
    TCI_FACT_WHOLE_CORES = 4,      /* its share of processors is a whole number of them */
    TCI_FACT_FEW_PORTS = 8,        /* its network rules name so few that each has a listener */
};
enum { TCI_FACT_COUNT = 4 };
unsigned tci_settings_facts(const struct tci_settings *settings); /* bits of enum tci_fact */
const char *tci_fact_name(enum tci_fact fact); /* "alone", "nothing_writable", ... */

enum tci_keeps { TCI_KEEPS_NO, TCI_KEEPS_IF, TCI_KEEPS_YES };

struct tci_keeping {
    enum tci_keeps keeps;
    enum tci_fact fact;                /* IF: kept for tools for which this is true */
    char why[TCI_KEEPING_TEXT_MAX];    /* NO, IF: what is missing; YES: a remark, or empty */
    char remedy[TCI_KEEPING_TEXT_MAX]; /* NO, IF: what to do */
};

/* How well `backend` keeps `clause` here. A backend that is not ready keeps nothing. */
void tci_backend_keeps(const struct tci_host_report *report, const char *backend,
                       enum tci_clause clause, struct tci_keeping *ret);

/* The same as one answer for a tool of which `facts` (bits of enum tci_fact) are true. */
bool tci_backend_can_for(const struct tci_host_report *report, const char *backend,
                         enum tci_clause clause, unsigned facts, char *ret_why, size_t why_size,
                         char *ret_remedy, size_t remedy_size);

/* The same for a tool of which nothing is known. */
bool tci_backend_can(const struct tci_host_report *report, const char *backend,
                     enum tci_clause clause, char *ret_why, size_t why_size, char *ret_remedy,
                     size_t remedy_size);

#endif
