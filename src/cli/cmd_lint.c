/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: `toolcage lint`. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "backend/oci/own_places.h"
#include "backend/ready.h"
#include "base/path.h"
#include "journal/journal.h"
#include "policy/lint.h"
#include "policy/report.h"

enum format { FORMAT_HUMAN, FORMAT_JSON, FORMAT_SARIF };

static int choose_format(const struct cli_call *call, enum format *ret)
{
    const char *name = call->values[CLI_FORMAT];
    if (cli_given(call, CLI_JSON) && name)
        return cli_usage("keep one of them", "both --json and --format are given");
    if (cli_given(call, CLI_JSON) || (name && strcmp(name, "json") == 0))
        *ret = FORMAT_JSON;
    else if (!name || strcmp(name, "human") == 0)
        *ret = FORMAT_HUMAN;
    else if (strcmp(name, "sarif") == 0)
        *ret = FORMAT_SARIF;
    else
        return cli_usage("use human, json or sarif", "there is no such format");
    return CLI_EXIT_OK;
}

static void write_document(const struct tci_findings *findings, enum format format,
                           struct tci_buf *out)
{
    if (format == FORMAT_SARIF)
        tci_report_sarif(findings, out);
    else
        tci_report_json(findings, out);
}

static int print_human(const struct tci_findings *findings, int status)
{
    size_t errors = findings->count[TCI_SEVERITY_ERROR];
    size_t warnings = findings->count[TCI_SEVERITY_WARNING];
    size_t notes = findings->count[TCI_SEVERITY_NOTE];
    struct tci_buf out = TCI_BUF_INIT(4096);
    cli_print_findings(stdout, findings);
    cli_print_line(stdout, findings->file);
    tci_buf_printf(&out, ": %zu error%s, %zu warning%s, %zu note%s\n", errors,
                   errors == 1 ? "" : "s", warnings, warnings == 1 ? "" : "s", notes,
                   notes == 1 ? "" : "s");
    return cli_output(&out, true, status);
}

/* The policy did not load: stdout stays empty, the same document goes to stderr. */
static int report_failure(const struct tci_findings *findings, enum format format,
                          const struct tc_error *error)
{
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(TCI_REPORT_MAX);
    if (!findings->first || findings->no_memory)
        return cli_fail(error);
    if (format == FORMAT_HUMAN) {
        cli_print_findings(stderr, findings);
        return tc_error_exit_status(error->code);
    }
    write_document(findings, format, &out);
    if (tci_buf_check(&out, NULL) < 0)
        return cli_fail(error);
    (void)fwrite(out.data, 1, out.length, stderr);
    return tc_error_exit_status(error->code);
}

/* The host is looked at for a backend when the first tool that uses it is met: linting somebody's
 * policy for the jail starts no container engine that happens to be in PATH. */
struct host {
    bool begun;
    const struct tci_tool *tool; /* the one that was asked about last */
    const char *backend;         /* its name in backend/ready.h; NULL: `error` */
    struct tc_error error;       /* that nobody makes them, or that there is no image for them */
    struct tci_host_report report;
};

static bool tell(const struct tc_error *error, char ret_why[TCI_LINT_TEXT_MAX],
                 char ret_remedy[TCI_LINT_TEXT_MAX])
{
    (void)snprintf(ret_why, TCI_LINT_TEXT_MAX, "%.250s", error->message);
    (void)snprintf(ret_remedy, TCI_LINT_TEXT_MAX, "%.250s", error->remedy);
    return false;
}

static bool host_can(void *context, const struct tci_tool *tool, enum tci_clause clause,
                     char ret_why[TCI_LINT_TEXT_MAX], char ret_remedy[TCI_LINT_TEXT_MAX])
{
    struct host *host = context;
    const char *backend = host->backend;
    /* One tool is asked about clause by clause: who makes its cages is found out once. */
    if (host->tool != tool) {
        host->error = (struct tc_error){ 0 };
        backend = host->backend = cli_ready_name(&tool->settings, &host->error);
        host->tool = tool;
        if (backend)
            (void)cli_find_image(&tool->settings, &host->error);
    }
    if (!backend)
        return tell(&host->error, ret_why, ret_remedy);
    /* The image is what a cage without any grant can read. */
    if (clause == TCI_CLAUSE_FILESYSTEM && host->error.code)
        return tell(&host->error, ret_why, ret_remedy);
    if (!host->begun)
        tci_host_report_init(&host->report);
    host->begun = true;
    tci_backend_probe(backend, &host->report);
    return tci_backend_can_for(&host->report, backend, clause, tci_settings_facts(&tool->settings),
                               ret_why, TCI_LINT_TEXT_MAX, ret_remedy, TCI_LINT_TEXT_MAX);
}

static const char *home_directory(char buffer[TCI_PATH_MAX + 1])
{
    const char *home = getenv("HOME");
    if (!home || tci_path_normalise(NULL, home, strlen(home), buffer) != TCI_PATH_OK)
        return NULL;
    return buffer;
}

/* What containers run, and what was recorded. */
static int find_places(struct tci_arena *arena, struct tci_own_places *ret)
{
    struct tc_error ignored = { 0 };
    char path[TCI_PATH_MAX + 1];
    struct tci_own_place *journal;
    if (tci_own_places(arena, TCI_OWN_ALL, ret) < 0)
        return -1;
    if (tci_journal_default_path(path, &ignored) < 0 || ret->count == TCI_OWN_PLACES_MAX)
        return 0;
    journal = &ret->items[ret->count++];
    journal->what = "journal";
    journal->path = tci_arena_strdup(arena, path);
    return journal->path ? 0 : -1;
}

static int lint(const struct cli_call *call, const struct tc_policy *policy,
                struct tci_findings *findings, struct tc_error *reterr)
{
    static struct host host; /* large */
    static struct tci_own_places places;
    char home[TCI_PATH_MAX + 1];
    struct tci_lint_options options = { .now = (int64_t)time(NULL) };
    if (!cli_given(call, CLI_NO_HOST)) {
        options.look_at_files = true;
        options.home = home_directory(home);
        options.host_can = host_can;
        options.host_context = &host;
        if (find_places(findings->arena, &places) < 0)
            return tci_error_no_memory(reterr);
        options.places = places.items;
        options.place_count = places.count;
    }
    return tci_lint(policy, &options, findings, reterr);
}

int cli_run_lint(const struct cli_call *call)
{
    tc_cleanup(tci_findings_freep) struct tci_findings *findings = NULL;
    tc_cleanup(tci_policy_freep) struct tc_policy *policy = NULL;
    struct tci_buf out = TCI_BUF_INIT(TCI_REPORT_MAX);
    struct tc_error error = { 0 };
    enum format format = FORMAT_HUMAN;
    const char *path;
    int status;

    if (choose_format(call, &format) != CLI_EXIT_OK || !(path = cli_policy_path(call, true)))
        return CLI_EXIT_REFUSED;
    findings = tci_findings_new(path);
    if (!findings) {
        tci_error_no_memory(&error);
        return cli_fail(&error);
    }
    if (tci_policy_load(path, findings, &policy, &error) < 0)
        return report_failure(findings, format, &error);
    if (lint(call, policy, findings, &error) < 0)
        return cli_fail(&error);
    status = findings->count[TCI_SEVERITY_ERROR] ||
                     (cli_given(call, CLI_STRICT) && findings->count[TCI_SEVERITY_WARNING])
                 ? CLI_EXIT_FINDINGS
                 : CLI_EXIT_OK;
    if (format == FORMAT_HUMAN)
        return print_human(findings, status);
    write_document(findings, format, &out);
    return cli_output(&out, false, status);
}
