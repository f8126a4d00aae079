/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what a backend knows of its host, and the refusals that follow from it (refuse.h). */
#include "backend/refuse.h"

#include <stdio.h>
#include "backend/cgroup/cgroup.h"

void tci_refuse_answer(struct tci_host_report *report, enum tci_feature feature, bool has,
                       const char *detail, const char *remedy)
{
    struct tci_host_feature *f = &report->features[feature];
    report->asked |= UINT64_C(1) << feature;
    f->state = has ? TCI_FEATURE_YES : TCI_FEATURE_NO;
    (void)snprintf(f->detail, sizeof f->detail, "%s", detail);
    (void)snprintf(f->remedy, sizeof f->remedy, "%s", has ? "" : remedy);
}

bool tci_refuse_answer_groups(struct tci_host_report *report, unsigned has, const char *detail,
                              const char *remedy)
{
    static const struct {
        enum tci_feature feature;
        unsigned bit;
    } groups[] = {
        { TCI_FEATURE_CGROUP_MEMORY, TCI_CGROUP_HAS_MEMORY },
        { TCI_FEATURE_CGROUP_PIDS, TCI_CGROUP_HAS_PIDS },
        { TCI_FEATURE_CGROUP_CPU, TCI_CGROUP_HAS_CPU },
        { TCI_FEATURE_CGROUP_CPU_USAGE, TCI_CGROUP_HAS_CPU_USAGE },
    };
    bool all = true;
    for (size_t i = 0; i < tci_array_size(groups); i++) {
        tci_refuse_answer(report, groups[i].feature, has & groups[i].bit, detail, remedy);
        all = all && (has & groups[i].bit);
    }
    return all;
}

int tci_refuse(const struct tci_host_report *report, const char *backend,
               const struct tc_spec *spec, struct tc_error *reterr)
{
    const unsigned facts = tci_settings_facts(spec->settings);
    char why[TCI_KEEPING_TEXT_MAX], remedy[TCI_KEEPING_TEXT_MAX];
    for (int clause = 0; clause < TCI_CLAUSE_COUNT; clause++) {
        if (!(spec->clauses & tci_clause_bit(clause)) ||
            tci_backend_can_for(report, backend, (enum tci_clause)clause, facts, why, sizeof why,
                                remedy, sizeof remedy))
            continue;
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "%s cannot keep %s here: %s", backend,
                      tci_clause_name((enum tci_clause)clause), why);
        tci_error_remedy(reterr, "%s", remedy);
        return -1;
    }
    return 0;
}
