/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the tests of what a policy means share: policies that must not load, with their
 * errors, and policies as text.
 */
#ifndef TCI_TESTS_MODEL_SUPPORT_H
#define TCI_TESTS_MODEL_SUPPORT_H

#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include "base/buf.h"
#include "policy/value.h"

enum { text_max = 65536 };

tci_printf_like(2, 3) static inline void format_text(char text[text_max], const char *format, ...)
{
    va_list args;
    int length;
    va_start(args, format);
    length = vsnprintf(text, text_max, format, args);
    va_end(args);
    assert_in_range(length, 0, text_max - 1);
}

/* A policy that must not load, with everything that is wrong with it. Free both with free_broken. */
struct broken {
    struct tci_findings *findings;
    struct tc_error error;
};

static inline struct broken load_broken(const char *text, enum tci_format format)
{
    struct broken broken = { .findings = tci_findings_new("test.toml") };
    struct tc_policy *policy = NULL;
    assert_non_null(broken.findings);
    if (tci_policy_parse(text, strlen(text), format, "/policy", broken.findings, &policy,
                         &broken.error) == 0)
        fail_msg("this was accepted:\n%s", text);
    assert_null(policy);
    return broken;
}

static inline void assert_finding(const struct tci_finding *f, const char *id, unsigned line,
                                  unsigned column, const char *text)
{
    assert_non_null(f);
    if (strcmp(tci_finding_name(f->id), id) != 0 || f->pos.line != line || f->pos.column != column)
        fail_msg("expected %s at %u:%u, found %s at %u:%u (%s) in:\n%s", id, line, column,
                 tci_finding_name(f->id), f->pos.line, f->pos.column, f->message, text);
    assert_true(f->message[0]);
    if (!f->remedy[0])
        fail_msg("%s has no remedy", f->message);
}

/* Exactly one thing is wrong with the policy: this one, here. */
static inline void assert_one_error(const char *text, const char *id, unsigned line,
                                    unsigned column)
{
    struct broken broken = load_broken(text, TCI_FORMAT_TOML);
    assert_finding(broken.findings->first, id, line, column, text);
    if (broken.findings->first->next)
        fail_msg("also found \"%s\" in:\n%s", broken.findings->first->next->message, text);
    assert_string_equal(broken.error.id, id);
    assert_int_equal(broken.error.line, line);
    assert_int_equal(broken.error.column, column);
    assert_string_equal(broken.error.file, "test.toml");
    tci_findings_free(broken.findings);
}

static inline char *dump_text(const struct tc_policy *policy)
{
    struct tc_error error = { 0 };
    char *text = NULL;
    if (tc_policy_dump(policy, &text, &error) < 0)
        fail_msg("%s", error.message);
    return text;
}

static inline char *dump_of(const char *text)
{
    struct tc_policy *policy = load_text(text);
    char *dump = dump_text(policy);
    tc_policy_free(policy);
    return dump;
}

static inline void assert_same_dump(const char *a, const char *b)
{
    char *dump_a = dump_of(a), *dump_b = dump_of(b);
    assert_string_equal(dump_a, dump_b);
    free(dump_a);
    free(dump_b);
}

/* The only tool of a policy. */
static inline const struct tci_tool *only_tool(const struct tc_policy *policy)
{
    assert_int_equal(policy->tool_count, 1);
    return &policy->tools[0];
}

static inline char *written(const struct tci_tool *tool, enum tci_key key)
{
    struct tci_buf buf = TCI_BUF_INIT(text_max);
    struct tci_json json = { .out = &buf, .syntax = TCI_SYNTAX_TOML };
    char *text;
    tci_value_write(&json, NULL, &tool->settings, key);
    text = tci_buf_take(&buf, NULL);
    assert_non_null(text);
    return text;
}

#endif
