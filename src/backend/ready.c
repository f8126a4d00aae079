/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: reading the table in ready.def against a report. Knows no backend and no clause itself.
 */
#include "backend/ready.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "backend/probe.h"
#include "gate/rules.h"

#define NAME_process    "process"
#define NAME_jail       "jail"
#define NAME_oci_crun   "oci/crun"
#define NAME_oci_runc   "oci/runc"
#define NAME_oci_podman "oci/podman"
#define NAME_oci_docker "oci/docker"
#define NAME_gvisor     "gvisor"
#define NAME_wasm       "wasm"
#define NAME_microvm    "microvm"

static const char *const backends[] = { NAME_process,  NAME_jail,       NAME_oci_crun,
                                        NAME_oci_runc, NAME_oci_podman, NAME_oci_docker,
                                        NAME_gvisor,   NAME_wasm,       NAME_microvm };

enum { CLAUSE_READY = -1 }; /* not a clause: what the backend needs at all */

struct way {
    const char *backend;
    int clause;
    bool never;
    unsigned fact; /* 0: for every tool */
    uint64_t needs;
    const char *text, *remedy; /* a remark, or why it is not kept (for other tools) */
};

#define BIT(id)          TCI_FEATURE_BIT(id)
#define TCI_CLAUSE_READY CLAUSE_READY
#define WAY(backend, clause, needs)                                                                \
    { NAME_##backend, TCI_CLAUSE_##clause, false, 0, needs, NULL, NULL },
#define WAY_NOTE(backend, clause, needs, remark)                                                   \
    { NAME_##backend, TCI_CLAUSE_##clause, false, 0, needs, remark, NULL },
#define IF(backend, clause, fact, needs, why, remedy)                                              \
    { NAME_##backend, TCI_CLAUSE_##clause, false, TCI_FACT_##fact, needs, why, remedy },
#define NEVER(backend, clause, why, remedy)                                                        \
    { NAME_##backend, TCI_CLAUSE_##clause, true, 0, 0, why, remedy },
static const struct way ways[] = {
#include "backend/ready.def"
};

size_t tci_backend_count(void)
{
    return tci_array_size(backends);
}

const char *tci_backend_name(size_t index)
{
    return index < tci_array_size(backends) ? backends[index] : NULL;
}

unsigned tci_settings_facts(const struct tci_settings *s)
{
    unsigned facts = TCI_FACT_NOTHING_WRITABLE;
    struct tci_gate_ports ports;
    for (size_t i = 0; i < s->filesystem.count; i++)
        if (s->filesystem.rules[i].access == TCI_ACCESS_WRITABLE)
            facts &= ~(unsigned)TCI_FACT_NOTHING_WRITABLE;
    /* What is written to the root of a container that keeps it is on the host's disk, too. */
    if ((s->backend == TCI_BACKEND_OCI || s->backend == TCI_BACKEND_GVISOR) &&
        !s->container.read_only_rootfs)
        facts &= ~(unsigned)TCI_FACT_NOTHING_WRITABLE;
    if (s->syscalls.profile == TCI_SYSCALLS_PURE && s->syscalls.allow.count == 0)
        facts |= TCI_FACT_ALONE;
    if (s->cpu % 1000 == 0)
        facts |= TCI_FACT_WHOLE_CORES;
    tci_gate_ports(&s->network, &ports);
    if (!ports.every)
        facts |= TCI_FACT_FEW_PORTS;
    return facts;
}

const char *tci_fact_name(enum tci_fact fact)
{
    switch (fact) {
    case TCI_FACT_ALONE:
        return "alone";
    case TCI_FACT_NOTHING_WRITABLE:
        return "nothing_writable";
    case TCI_FACT_WHOLE_CORES:
        return "whole_cores";
    case TCI_FACT_FEW_PORTS:
        return "few_ports";
    }
    return "unknown";
}

void tci_backend_probe(const char *backend, struct tci_host_report *report)
{
    uint64_t needs = 0;
    for (size_t i = 0; i < tci_array_size(ways); i++)
        if (strcmp(ways[i].backend, backend) == 0)
            needs |= ways[i].needs;
    tci_host_probe_features(needs, report);
}

static void missing_list(const struct tci_host_report *report, uint64_t needs,
                         struct tci_missing *ret)
{
    ret->count = 0;
    for (size_t i = 0; i < TCI_FEATURE_COUNT; i++)
        if ((needs >> i & 1) && report->features[i].state != TCI_FEATURE_YES)
            ret->features[ret->count++] = (enum tci_feature)i;
}

static bool is_way_for(const struct way *w, const char *backend, int clause)
{
    return w->clause == clause && strcmp(w->backend, backend) == 0;
}

/* The best of the ways that hold for every tool, or of those for some: with nothing missing, or else
 * the least. NULL if there is none. */
static const struct way *best_way(const struct tci_host_report *report, const char *backend,
                                  int clause, bool for_some, struct tci_missing *ret)
{
    const struct way *best = NULL;
    ret->count = 0;
    for (size_t i = 0; i < tci_array_size(ways); i++) {
        struct tci_missing missing;
        if (!is_way_for(&ways[i], backend, clause) || ways[i].never ||
            (ways[i].fact != 0) != for_some)
            continue;
        missing_list(report, ways[i].needs, &missing);
        if (!best || missing.count < ret->count) {
            best = &ways[i];
            *ret = missing;
        }
    }
    return best;
}

bool tci_backend_ready(const struct tci_host_report *report, const char *backend,
                       struct tci_missing *ret)
{
    return best_way(report, backend, CLAUSE_READY, false, ret) && ret->count == 0;
}

static const struct way *find_never(const char *backend, int clause)
{
    for (size_t i = 0; i < tci_array_size(ways); i++)
        if (is_way_for(&ways[i], backend, clause) && ways[i].never)
            return &ways[i];
    return NULL;
}

static void set_text(char to[TCI_KEEPING_TEXT_MAX], const char *text)
{
    (void)snprintf(to, TCI_KEEPING_TEXT_MAX, "%s", text ? text : "");
}

/* The first missing feature speaks for all: its remedy comes first anyway. */
static void set_missing(const struct tci_host_report *report, const struct tci_missing *missing,
                        struct tci_keeping *ret)
{
    const struct tci_host_feature *f = &report->features[missing->features[0]];
    int n = snprintf(ret->why, sizeof ret->why, "%s is %s: %.150s", tci_feature_name(f->id),
                     f->state == TCI_FEATURE_NO ? "missing" : "not certain", f->detail);
    for (size_t i = 1; i < missing->count && n > 0 && (size_t)n < sizeof ret->why; i++)
        n += snprintf(ret->why + n, sizeof ret->why - (size_t)n, "%s%s",
                      i == 1 ? "; also missing: " : ", ", tci_feature_name(missing->features[i]));
    if (f->remedy[0])
        set_text(ret->remedy, f->remedy);
    else
        (void)snprintf(ret->remedy, sizeof ret->remedy, "see %s in toolcage doctor",
                       tci_feature_name(f->id));
}

void tci_backend_keeps(const struct tci_host_report *report, const char *backend,
                       enum tci_clause clause, struct tci_keeping *ret)
{
    struct tci_missing lacking, missing, unmet;
    const struct way *need = best_way(report, backend, CLAUSE_READY, false, &lacking);
    const struct way *never = find_never(backend, (int)clause);
    const struct way *always = best_way(report, backend, (int)clause, false, &missing);
    const struct way *sometimes = best_way(report, backend, (int)clause, true, &unmet);
    *ret = (struct tci_keeping){ .keeps = TCI_KEEPS_NO };
    if (!need || (!never && !always && !sometimes)) {
        set_text(ret->why, need ? "there is no such clause" : "there is no such backend");
        set_text(ret->remedy,
                 need ? ""
                      : "use process, jail, oci/crun, oci/runc, oci/podman, oci/docker, "
                        "gvisor, wasm or microvm");
    } else if (never) {
        set_text(ret->why, never->text);
        set_text(ret->remedy, never->remedy);
    } else if (lacking.count) {
        set_missing(report, &lacking, ret);
    } else if (always && !missing.count) {
        ret->keeps = TCI_KEEPS_YES;
        set_text(ret->why, always->text);
    } else if (sometimes && !unmet.count) {
        ret->keeps = TCI_KEEPS_IF;
        ret->fact = (enum tci_fact)sometimes->fact;
        set_text(ret->why, sometimes->text);
        set_text(ret->remedy, sometimes->remedy);
    } else {
        set_missing(report, always ? &missing : &unmet, ret);
    }
}

bool tci_backend_can_for(const struct tci_host_report *report, const char *backend,
                         enum tci_clause clause, unsigned facts, char *ret_why, size_t why_size,
                         char *ret_remedy, size_t remedy_size)
{
    struct tci_keeping k;
    bool can;
    tci_backend_keeps(report, backend, clause, &k);
    can = k.keeps == TCI_KEEPS_YES || (k.keeps == TCI_KEEPS_IF && (k.fact & facts));
    /* For this tool the objection does not hold. */
    if (k.keeps == TCI_KEEPS_IF && can)
        k.why[0] = k.remedy[0] = '\0';
    if (why_size)
        (void)snprintf(ret_why, why_size, "%s", k.why);
    if (remedy_size)
        (void)snprintf(ret_remedy, remedy_size, "%s", k.remedy);
    return can;
}

bool tci_backend_can(const struct tci_host_report *report, const char *backend,
                     enum tci_clause clause, char *ret_why, size_t why_size, char *ret_remedy,
                     size_t remedy_size)
{
    return tci_backend_can_for(report, backend, clause, 0, ret_why, why_size, ret_remedy,
                               remedy_size);
}
