/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the tests of policy/lint.h share: policies with the findings that they must make, and
 * a directory of its own for a test that wants files.
 */
#ifndef TCI_TESTS_LINT_SUPPORT_H
#define TCI_TESTS_LINT_SUPPORT_H

#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "base/attr.h"
#include "policy/lint.h"

/* Lints a policy; the caller frees the findings. */
static inline struct tci_findings *lint_with(const char *text,
                                             const struct tci_lint_options *options)
{
    struct tc_policy *policy = load_text(text);
    struct tci_findings *findings = tci_findings_new("test.toml");
    struct tc_error error = { 0 };
    assert_non_null(findings);
    if (tci_lint(policy, options, findings, &error) < 0)
        fail_msg("%s", error.message);
    tc_policy_free(policy);
    return findings;
}

static inline struct tci_findings *lint(const char *text)
{
    struct tci_lint_options options = { .now = 0 };
    return lint_with(text, &options);
}

static inline size_t count_of(const struct tci_findings *findings, enum tci_finding_id id)
{
    size_t count = 0;
    for (const struct tci_finding *f = findings->first; f; f = f->next)
        count += f->id == id;
    return count;
}

static inline const struct tci_finding *first_of(const struct tci_findings *findings,
                                                 enum tci_finding_id id)
{
    const struct tci_finding *f = findings->first;
    while (f && f->id != id)
        f = f->next;
    if (!f) {
        fail_msg("no %s", tci_finding_name(id));
        abort(); /* not reached, but the compiler does not know */
    }
    return f;
}

static inline void print_all(const struct tci_findings *findings)
{
    for (const struct tci_finding *f = findings->first; f; f = f->next)
        print_error("  %u:%u %s %s (%s)\n", f->pos.line, f->pos.column, tci_finding_name(f->id),
                    f->message, f->remedy);
}

static inline void check_count(const char *text, const struct tci_lint_options *options,
                               enum tci_finding_id id, size_t expected)
{
    struct tci_findings *findings = lint_with(text, options);
    size_t count = count_of(findings, id);
    if (count != expected) {
        print_error("%s\n", text);
        print_all(findings);
        fail_msg("%zu of %s, not %zu", count, tci_finding_name(id), expected);
    }
    tci_findings_free(findings);
}

/* Lines of a tool, and how many findings of the id at hand they make. */
struct row {
    const char *lines;
    size_t expected;
};

static inline void check_rows_with(const struct row *rows, size_t count, enum tci_finding_id id,
                                   const struct tci_lint_options *options)
{
    for (size_t i = 0; i < count; i++) {
        char text[8192];
        (void)snprintf(text, sizeof text, "version = 1\n[tool.t]\n%s\n[agent.a]\ngrants = ['t']\n",
                       rows[i].lines);
        check_count(text, options, id, rows[i].expected);
    }
}

static inline void check_rows(const struct row *rows, size_t count, enum tci_finding_id id)
{
    struct tci_lint_options options = { .now = 0 };
    check_rows_with(rows, count, id, &options);
}
#define CHECK(rows, id) check_rows(rows, tci_array_size(rows), TCI_FINDING_##id)

/* Whole policies. */
static inline void check_policies(const struct row *rows, size_t count, enum tci_finding_id id)
{
    struct tci_lint_options options = { .now = 0 };
    for (size_t i = 0; i < count; i++)
        check_count(rows[i].lines, &options, id, rows[i].expected);
}
#define CHECK_POLICIES(rows, id) check_policies(rows, tci_array_size(rows), TCI_FINDING_##id)

static inline void check_message(const char *text, enum tci_finding_id id, const char *message,
                                 const char *remedy)
{
    struct tci_findings *findings = lint(text);
    const struct tci_finding *f = first_of(findings, id);
    if (!strstr(f->message, message) || !strstr(f->remedy, remedy)) {
        print_all(findings);
        fail_msg("expected \"%s\" and \"%s\"", message, remedy);
    }
    tci_findings_free(findings);
}

/* ---- files on this host --------------------------------------------------------------------- */

struct directory {
    char path[64];
};

static inline int make_directory(void **state)
{
    struct directory *directory = calloc(1, sizeof *directory);
    if (!directory)
        return -1;
    (void)strcpy(directory->path, "/tmp/test_lint.XXXXXX");
    *state = directory;
    return mkdtemp(directory->path) ? 0 : -1;
}

static inline int remove_directory(void **state)
{
    struct directory *directory = *state;
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", directory->path);
    int r = system(command);
    free(directory);
    return r;
}

static inline void make_folder(const struct directory *directory, const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", directory->path, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)

#endif
