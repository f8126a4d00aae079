/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: fuzzing the whole way: load, lint, explain, dump. Whatever loads must dump, the dump must
 * load, and its dump must be itself. The first byte chooses TOML or YAML.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "policy/dump.h"
#include "policy/explain.h"
#include "policy/lint.h"
#include "policy/load.h"
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tci_lint_options options = { .now = 1800000000, .home = "/home/somebody" };
    struct tci_buf out = TCI_BUF_INIT(64 * 1024 * 1024);
    struct tc_error error = { 0 };
    struct tci_findings *findings;
    struct tc_policy *policy;

    if (size == 0)
        return 0;
    findings = tci_findings_new("input");
    check(findings != NULL);
    policy = load((const char *)data + 1, size - 1,
                  data[0] == 'y' ? TCI_FORMAT_YAML : TCI_FORMAT_TOML, findings);
    if (policy) {
        check(tci_lint(policy, &options, findings, &error) == 0);
        tci_explain_text(policy, NULL, &out);
        tci_explain_json(policy, NULL, &out);
        tci_tools_json(policy, &out);
        check_fixpoint(policy);
    }
    tci_report_json(findings, &out);
    tci_report_sarif(findings, &out);
    check(tci_buf_check(&out, NULL) == 0);
    tci_buf_free(&out);
    tc_policy_free(policy);
    tci_findings_free(findings);
    return 0;
}
