/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what `exec` says about a call when the command itself cannot: why it ended, and what helps. */
#include "cli/exec.h"

#include <string.h>
#include "backend/ready.h"

/* A command that ran and failed has said why itself. One that could not be started comes with a fix. */
static bool speaks_for_itself(const struct tc_result *result)
{
    return result->verdict == TC_VERDICT_OK ||
           (result->verdict == TC_VERDICT_FAILED && !result->fix[0]);
}

static void print_labelled(const char *label, const char *text)
{
    (void)fprintf(stderr, "    %s: ", label);
    cli_print_line(stderr, text);
    (void)fputc('\n', stderr);
}

static void print_denials(const struct tc_result *result)
{
    for (size_t i = 0; i < result->denial_count; i++) {
        const struct tc_denial *denial = &result->denials[i];
        (void)fputs("    refused: ", stderr);
        cli_print_line(stderr, denial->kind);
        (void)fputc(' ', stderr);
        cli_print_line(stderr, denial->target);
        (void)fputs(" (", stderr);
        cli_print_line(stderr, denial->rule);
        (void)fputs(")\n", stderr);
    }
}

/* What exactly is missing for the backend, found out by trying. */
static void print_missing(const char *backend)
{
    static struct tci_host_report report; /* large */
    struct tci_missing missing = { 0 };
    tci_host_report_init(&report);
    tci_backend_probe(backend, &report);
    if (tci_backend_ready(&report, backend, &missing))
        return;
    for (size_t i = 0; i < missing.count; i++) {
        const struct tci_host_feature *feature = &report.features[missing.features[i]];
        (void)fprintf(stderr, "    missing: %s: ", tci_feature_name(feature->id));
        cli_print_line(stderr, feature->remedy[0] ? feature->remedy : feature->detail);
        (void)fputc('\n', stderr);
    }
}

void exec_report(const struct tc_result *result, bool all_denials, bool probe)
{
    bool silent = speaks_for_itself(result);
    if (!silent) {
        (void)fprintf(stderr, "toolcage: %s: ", tc_verdict_name(result->verdict));
        cli_print_line(stderr, result->reason);
        (void)fputc('\n', stderr);
        if (result->fix[0])
            print_labelled("fix", result->fix);
    } else if (result->denial_count && all_denials) {
        (void)fputs("toolcage: the cage refused:\n", stderr);
    }
    if (all_denials)
        print_denials(result);
    if (probe)
        print_missing(result->backend);
}
