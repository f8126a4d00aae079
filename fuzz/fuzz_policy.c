/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: fuzzing the whole way: load, lint, explain, dump. Whatever loads must dump, the dump must
 * load, and its dump must be itself. A grant that is written must read as itself. The first byte
 * chooses TOML, YAML ('y'), a single tool ('T') or a single grant ('G').
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "policy/dump.h"
#include "policy/explain.h"
#include "policy/lint.h"
#include "policy/load.h"
#include "policy/parse.h"
#include "policy/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int condition)
{
    if (!condition)
        abort();
}

static struct tc_policy *load(const char *bytes, size_t size, enum tci_format format,
                              struct tci_findings *findings)
{
    struct tc_policy *policy = NULL;
    struct tc_error error = { 0 };
    if (tci_policy_parse(bytes, size, format, "/policy", findings, &policy, &error) < 0) {
        check(error.code != TC_ERROR_NONE && error.message[0] && error.id[0]);
        check(error.code == TC_ERROR_NO_MEMORY || (error.line && error.remedy[0]));
        check(findings->first != NULL);
        return NULL;
    }
    return policy;
}

static char *dump(const struct tc_policy *policy)
{
    struct tc_error error = { 0 };
    char *text = NULL;
    check(tc_policy_dump(policy, &text, &error) == 0);
    return text;
}

static void check_fixpoint(const struct tc_policy *policy)
{
    struct tci_findings *findings = tci_findings_new("dump");
    char *first = dump(policy), *second;
    struct tc_policy *again;

    check(findings != NULL);
    again = load(first, strlen(first), TCI_FORMAT_TOML, findings);
    check(again != NULL);
    second = dump(again);
    check(strcmp(first, second) == 0);
    free(first);
    free(second);
    tc_policy_free(again);
    tci_findings_free(findings);
}

static char *written(const struct tci_grant *grant)
{
    struct tci_buf out = TCI_BUF_INIT(16 * 1024 * 1024);
    char *text;
    tci_grant_write(grant, &out);
    text = tci_buf_take(&out, NULL);
    check(text != NULL);
    return text;
}

static void check_grant(const struct tc_policy *policy, const struct tci_grant *grant)
{
    struct tci_arena *arena = tci_arena_new();
    struct tc_error error = { 0 };
    struct tci_grant *again;
    char *first = written(grant), *second;

    check(arena != NULL);
    if (strlen(first) <= TCI_GRANT_TEXT_MAX) {
        check(tci_grant_parse(policy, arena, first, strlen(first), &again, &error) == 0);
        second = written(again);
        check(strcmp(first, second) == 0);
        free(second);
    }
    free(first);
    tci_arena_free(arena);
}

/* A text that a program hands over while it runs. */
static void check_part(const char *bytes, size_t size, bool is_grant)
{
    static const char none[] = "version = 1\n[tool.t]\nnetwork = \"host\"\n";
    struct tci_findings *findings = tci_findings_new("none");
    struct tc_policy *policy = load(none, strlen(none), TCI_FORMAT_TOML, findings);
    struct tci_arena *arena = tci_arena_new();
    struct tc_error error = { 0 };
    struct tci_grant *grant = NULL;
    struct tci_tool *tool = NULL;

    check(policy && arena);
    if ((is_grant ? tci_grant_parse(policy, arena, bytes, size, &grant, &error)
                  : tci_tool_parse(policy, arena, "new", bytes, size, NULL, &tool, &error)) < 0)
        check(error.code != TC_ERROR_NONE && error.message[0] && error.remedy[0]);
    if (grant)
        check_grant(policy, grant);
    tci_arena_free(arena);
    tc_policy_free(policy);
    tci_findings_free(findings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tci_lint_options options = { .now = 1800000000, .home = "/home/somebody" };
    struct tci_buf out = TCI_BUF_INIT(64 * 1024 * 1024);
    struct tc_error error = { 0 };
    struct tci_findings *findings;
    struct tc_policy *policy;

    if (size == 0)
        return 0;
    if (data[0] == 'T' || data[0] == 'G') {
        check_part((const char *)data + 1, size - 1, data[0] == 'G');
        return 0;
    }
    findings = tci_findings_new("input");
    check(findings != NULL);
    policy = load((const char *)data + 1, size - 1,
                  data[0] == 'y' ? TCI_FORMAT_YAML : TCI_FORMAT_TOML, findings);
    if (policy) {
        check(tci_lint(policy, &options, findings, &error) == 0);
        tci_explain_text(policy, NULL, NULL, &out);
        tci_explain_json(policy, NULL, NULL, &out);
        tci_tools_text(policy, &out);
        check_fixpoint(policy);
        for (size_t i = 0; i < policy->agent_count; i++)
            for (size_t j = 0; j < policy->agents[i].grant_count; j++)
                check_grant(policy, &policy->agents[i].grants[j]);
    }
    tci_report_json(findings, &out);
    tci_report_sarif(findings, &out);
    check(tci_buf_check(&out, NULL) == 0);
    tci_buf_free(&out);
    tc_policy_free(policy);
    tci_findings_free(findings);
    return 0;
}
