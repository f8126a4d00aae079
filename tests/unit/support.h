/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the unit tests share. */
#ifndef TCI_TESTS_SUPPORT_H
#define TCI_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <cmocka.h>
#include <string.h>
#include "policy/load.h"

/* A policy from text that must load; relative paths start at /policy. */
static inline struct tc_policy *load_text(const char *text)
{
    struct tci_findings *findings = tci_findings_new("test.toml");
    struct tc_policy *policy = NULL;
    struct tc_error error = { 0 };
    assert_non_null(findings);
    if (tci_policy_parse(text, strlen(text), TCI_FORMAT_TOML, "/policy", findings, &policy,
                         &error) < 0)
        fail_msg("%u:%u: %s (%s)", error.line, error.column, error.message, error.remedy);
    tci_findings_free(findings);
    return policy;
}

/* The first error of a policy that must not load. */
static inline struct tc_error load_error(const char *text)
{
    struct tci_findings *findings = tci_findings_new("test.toml");
    struct tc_policy *policy = NULL;
    struct tc_error error = { 0 };
    assert_non_null(findings);
    if (tci_policy_parse(text, strlen(text), TCI_FORMAT_TOML, "/policy", findings, &policy,
                         &error) == 0)
        fail_msg("loaded: %s", text);
    tci_findings_free(findings);
    return error;
}

#endif
