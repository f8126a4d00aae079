/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what `exec` says about a call when the command itself cannot: why it ended, and what helps. */
#include "cli/exec.h"

#include <inttypes.h>
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
        if (result->denial_times[i] > 1)
            (void)fprintf(stderr, ", %" PRIu64 " times", result->denial_times[i]);
        (void)fputs(" (", stderr);
        cli_print_line(stderr, denial->rule);
        (void)fputs(")\n", stderr);
    }
}

static const char *remedy_of(const struct tci_host_feature *feature)
{
    return feature->remedy[0] ? feature->remedy : feature->detail;
}

/* What is in a set of features and known to be missing: a machine that is too busy to be asked lacks
 * nothing. Those that one command brings share its line. */
static void print_features(const struct tci_host_report *report, bool wanted[TCI_FEATURE_COUNT])
{
    for (int first = 0; first < TCI_FEATURE_COUNT; first++) {
        const char *remedy = remedy_of(&report->features[first]), *before = "    missing: ";
        for (int id = first; wanted[first] && id < TCI_FEATURE_COUNT; id++) {
            const struct tci_host_feature *feature = &report->features[id];
            if (!wanted[id] || feature->state != TCI_FEATURE_NO ||
                strcmp(remedy_of(feature), remedy) != 0)
                continue;
            (void)fprintf(stderr, "%s%s", before, tci_feature_name(feature->id));
            before = ", ";
            wanted[id] = id == first; /* which ends the loop if it is taken away */
        }
        if (*before != ',')
            continue;
        (void)fputs(": ", stderr);
        cli_print_line(stderr, remedy);
        (void)fputc('\n', stderr);
    }
}

/* A clause that is not kept although cages can be built: mostly a controller that is not there. */
static void find_missing_clauses(const struct tci_host_report *report, const char *backend,
                                 const struct tci_tool *tool, bool wanted[TCI_FEATURE_COUNT])
{
    static const struct {
        enum tci_clause clause;
        enum tci_feature feature;
    } needs[] = {
        { TCI_CLAUSE_MEMORY, TCI_FEATURE_CGROUP_MEMORY },
        { TCI_CLAUSE_PIDS, TCI_FEATURE_CGROUP_PIDS },
        { TCI_CLAUSE_CPU, TCI_FEATURE_CGROUP_CPU },
        { TCI_CLAUSE_CPU_TIME, TCI_FEATURE_CGROUP_CPU_USAGE },
        { TCI_CLAUSE_EXEC_ALLOWLIST, TCI_FEATURE_LANDLOCK },
        { TCI_CLAUSE_NETWORK_NAMES, TCI_FEATURE_GATE_LOCAL_ROUTE },
        { TCI_CLAUSE_NETWORK_PUBLIC, TCI_FEATURE_GATE_LOCAL_ROUTE },
        { TCI_CLAUSE_NETWORK_PUBLIC, TCI_FEATURE_GATE_REDIRECT },
    };
    char why[TCI_KEEPING_TEXT_MAX], remedy[TCI_KEEPING_TEXT_MAX];
    for (size_t i = 0; i < tci_array_size(needs); i++)
        if ((tci_tool_clauses(tool) & tci_clause_bit(needs[i].clause)) &&
            !tci_backend_can_for(report, backend, needs[i].clause,
                                 tci_settings_facts(&tool->settings), why, sizeof why, remedy,
                                 sizeof remedy))
            wanted[needs[i].feature] = true;
}

/* What exactly the host lacks for this tool, found out by trying. It takes a moment, and forks. */
static void print_missing(const struct tci_tool *tool)
{
    static struct tci_host_report report; /* large */
    struct tci_missing missing = { 0 };
    bool wanted[TCI_FEATURE_COUNT] = { false };
    const char *backend = cli_ready_name(&tool->settings, NULL);
    if (!backend)
        return; /* nobody makes such containers here: the result has said so */
    tci_host_report_init(&report);
    tci_backend_probe(backend, &report);
    if (tci_backend_ready(&report, backend, &missing))
        find_missing_clauses(&report, backend, tool, wanted);
    for (size_t i = 0; i < missing.count; i++)
        wanted[missing.features[i]] = true;
    print_features(&report, wanted);
}

void exec_report(const struct tc_result *result, bool all_denials, const struct tci_tool *lacking)
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
    if (lacking)
        print_missing(lacking);
}
