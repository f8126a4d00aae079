/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints what the host probes find, one line each with fields separated by tabs, for eyes and for
 * tests/e2e/test_doctor_probes.py:
 *
 *   feature <name> <state> <detail> <remedy>
 *   backend <name> <ready|not-ready> <missing features, separated by commas>
 *   clause  <backend> <clause> <yes|if:FACT|no> <why> <remedy>
 *
 * With names of features as arguments: probes these alone. With --for and a name of a backend:
 * probes what that one needs, and prints the features.
 */
#include <stdio.h>
#include <string.h>
#include "backend/host.h"
#include "backend/ready.h"

static void print_feature(const struct tci_host_feature *f)
{
    printf("feature\t%s\t%s\t%s\t%s\n", tci_feature_name(f->id), tci_feature_state_name(f->state),
           f->detail, f->remedy);
}

static void print_backend(const struct tci_host_report *report, const char *backend)
{
    struct tci_missing missing;
    bool ready = tci_backend_ready(report, backend, &missing);
    printf("backend\t%s\t%s\t", backend, ready ? "ready" : "not-ready");
    for (size_t i = 0; i < missing.count; i++)
        printf("%s%s", i ? "," : "", tci_feature_name(missing.features[i]));
    printf("\n");
    for (size_t i = 0; i < TCI_CLAUSE_COUNT; i++) {
        static const char *const words[] = { "no", "if:", "yes" };
        struct tci_keeping k;
        tci_backend_keeps(report, backend, (enum tci_clause)i, &k);
        printf("clause\t%s\t%s\t%s%s\t%s\t%s\n", backend, tci_clause_name((enum tci_clause)i),
               words[k.keeps], k.keeps == TCI_KEEPS_IF ? tci_fact_name(k.fact) : "", k.why,
               k.remedy);
    }
}

static int probe_named(char **names)
{
    for (; *names; names++) {
        struct tci_host_feature feature;
        int id = 0;
        while (id < TCI_FEATURE_COUNT &&
               strcmp(tci_feature_name((enum tci_feature)id), *names) != 0)
            id++;
        if (id == TCI_FEATURE_COUNT) {
            fprintf(stderr, "host_probe: no feature is called %s\n", *names);
            return 2;
        }
        tci_host_probe_feature((enum tci_feature)id, &feature);
        print_feature(&feature);
    }
    return 0;
}

int main(int argc, char **argv)
{
    static struct tci_host_report report;
    if (argc == 3 && strcmp(argv[1], "--for") == 0) {
        tci_host_report_init(&report);
        tci_backend_probe(argv[2], &report);
        for (size_t i = 0; i < TCI_FEATURE_COUNT; i++)
            print_feature(&report.features[i]);
        return 0;
    }
    if (argc > 1)
        return probe_named(argv + 1);
    tci_host_probe(&report);
    for (size_t i = 0; i < TCI_FEATURE_COUNT; i++)
        print_feature(&report.features[i]);
    for (size_t i = 0; i < tci_backend_count(); i++)
        print_backend(&report, tci_backend_name(i));
    return 0;
}
