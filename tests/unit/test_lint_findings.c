/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of findings as such: their order, place, remedy and number, that an inherited value
 * is reported once, and odd input. Whole policies with their findings are in docs/lint.md, and run
 * too.
 */
#include "lint_support.h"

#include <stdio.h>
#include <stdlib.h>
#include "base/attr.h"
#include "policy/lint.h"

/* ---- the whole ------------------------------------------------------------------------------ */

static void test_good_policy_has_no_finding(void **state)
{
    struct tci_findings *findings = lint("version = 1\n"
                                         "[tool.fetch]\n"
                                         "network = ['api.example.com:443']\n"
                                         "command = ['curl', '-sS', '--', '{url}']\n"
                                         "parameters = { properties = { url = {} } }\n"
                                         "[tool.edit]\n"
                                         "filesystem = { writable = ['/workspace'] }\n"
                                         "[agent.a]\n"
                                         "grants = ['fetch', 'edit']\n");
    (void)state;
    print_all(findings);
    assert_null(findings->first);
    tci_findings_free(findings);
}

static void test_findings_come_in_the_order_of_the_file(void **state)
{
    struct tci_findings *findings = lint("[tool.b]\n"
                                         "memory = 'unlimited'\n"
                                         "network = 'host'\n"
                                         "[agent.a]\n"
                                         "grants = ['nothing']\n"
                                         "[tool.a]\n"
                                         "timeout = 'unlimited'\n");
    uint32_t line = 0;
    (void)state;
    assert_non_null(findings->first);
    for (const struct tci_finding *f = findings->first; f; f = f->next) {
        assert_true(f->pos.line >= line);
        line = f->pos.line;
    }
    assert_int_equal(line, 7);
    tci_findings_free(findings);
}

static void test_finding_names_its_tool_and_place(void **state)
{
    struct tci_findings *findings = lint("version = 1\n[tool.alpha]\n[tool.beta]\n"
                                         "network = 'host'\n");
    const struct tci_finding *f = first_of(findings, TCI_FINDING_HOST_NETWORK);
    (void)state;
    assert_string_equal(f->tool, "beta");
    assert_int_equal(f->pos.line, 4);
    assert_int_equal(f->pos.column, 11);
    tci_findings_free(findings);
}

static void test_every_finding_has_a_remedy_and_one_line(void **state)
{
    struct tci_lint_options options = { .now = 4102444800 };
    struct tci_findings *findings = lint_with(
        "[defaults]\nnetwork = 'host'\nmemory = 'unlimited'\nenv = { LD_PRELOAD = 'x', A_TOKEN = "
        "'y' }\n"
        "[tool.t]\nfilesystem = { readable = ['/etc', '/root'], writable = ['~/.ssh', '/', '/usr'] "
        "}\n"
        "command = ['bash', '-c', '{x}', '{y}']\nparameters = { properties = { z = {} } }\n"
        "pids = 99999\n"
        "[tool.u]\nnetwork = ['*.com:*', '10.0.0.1:1', '169.254.169.254:80', 'deny:x.org:1']\n"
        "backend = 'oci'\ncontainer = { user = 'root', cap_add = ['SYS_ADMIN'] }\n"
        "[tool.v]\ncapabilities = ['fs_read']\n"
        "[agent.a]\ngrants = ['w', { tool = 't', memory = '1GB', expires = '2001-01-01' }]\n",
        &options);
    (void)state;
    for (const struct tci_finding *f = findings->first; f; f = f->next) {
        assert_int_not_equal(f->remedy[0], '\0');
        assert_int_not_equal(f->message[0], '\0');
        assert_null(strchr(f->message, '\n'));
        assert_null(strchr(f->remedy, '\n'));
        assert_true(f->pos.line > 0 && f->pos.column > 0);
    }
    tci_findings_free(findings);
}

static void test_built_in_values_are_never_reported(void **state)
{
    static const char *const backends[] = { "process", "jail", "oci", "gvisor", "wasm", "microvm" };
    (void)state;
    for (size_t i = 0; i < tci_array_size(backends); i++) {
        char text[200];
        (void)snprintf(text, sizeof text,
                       "version = 1\n[tool.t]\nbackend = '%s'\n[agent.a]\ngrants = ['t']\n",
                       backends[i]);
        struct tci_findings *findings = lint(text);
        print_all(findings);
        assert_null(findings->first);
        tci_findings_free(findings);
    }
}

static void test_lint_as_library_call_gives_json(void **state)
{
    struct tc_policy *policy = load_text("[tool.t]\nnetwork = 'host'\n");
    struct tc_error error = { 0 };
    char *json = NULL;
    (void)state;
    assert_int_equal(tc_policy_lint(policy, &json, &error), 0);
    assert_non_null(strstr(json, "\"TC-L120\""));
    assert_non_null(strstr(json, "\"errors\": 1"));
    free(json);
    tc_policy_free(policy);
}

static void test_more_errors_than_anybody_reads_are_cut(void **state)
{
    static char text[32768];
    size_t used = (size_t)snprintf(text, sizeof text, "version = 1\n");
    struct tci_findings *findings;
    (void)state;
    for (int i = 0; i < 150; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "[tool.t%d]\nnetwork = 'host'\n",
                                 i);
    findings = lint(text);
    assert_int_equal(count_of(findings, TCI_FINDING_HOST_NETWORK), TCI_ERRORS_MAX);
    assert_int_equal(count_of(findings, TCI_FINDING_TOO_MANY), 1);
    assert_int_equal(findings->count[TCI_SEVERITY_ERROR], 150);
    tci_findings_free(findings);
}

static void test_missing_version_is_a_note(void **state)
{
    static const struct row rows[] = {
        { "[tool.t]\n", 1 },
        { "version = 1\n[tool.t]\n", 0 },
    };
    (void)state;
    CHECK_POLICIES(rows, NO_VERSION);
}

static void test_hidden_text_is_found_where_it_is(void **state)
{
    static const struct row rows[] = {
        { "version = 1 # \xe2\x80\xae reversed\n[tool.t]\n", 1 },
        { "version = 1\n[tool.t]\ndescription = \"a\xe2\x81\xa6z\xe2\x80\x8b\"\n", 2 },
        { "version = 1\n[tool.t]\ndescription = \"Gr\xc3\xbc\xc3\x9f dich \xe2\x82\xac\"\n", 0 },
        { "version = 1\n[tool.t]\ndescription = \"\\u202E\"\n", 0 },
    };
    (void)state;
    CHECK_POLICIES(rows, HIDDEN_TEXT);
}

/* ---- inheritance ---------------------------------------------------------------------------- */

static void test_inherited_value_is_reported_once(void **state)
{
    struct tci_findings *findings = lint("version = 1\n"
                                         "[defaults]\n"
                                         "filesystem = { readable = ['/etc'] }\n"
                                         "network = ['*.com:*']\n"
                                         "memory = 'unlimited'\n"
                                         "env = { LD_PRELOAD = 'x' }\n"
                                         "[tool.a]\n[tool.b]\n[tool.c]\n[tool.d]\n");
    (void)state;
    assert_int_equal(count_of(findings, TCI_FINDING_SECRET_READABLE), 1);
    assert_int_equal(count_of(findings, TCI_FINDING_WIDE_WILDCARD), 1);
    assert_int_equal(count_of(findings, TCI_FINDING_WILDCARD_PORT), 1);
    assert_int_equal(count_of(findings, TCI_FINDING_NO_LIMIT), 1);
    assert_int_equal(count_of(findings, TCI_FINDING_LOADER_ENVIRONMENT), 1);
    assert_int_equal(first_of(findings, TCI_FINDING_SECRET_READABLE)->pos.line, 3);
    tci_findings_free(findings);
}

static void test_own_value_is_reported_for_each_tool(void **state)
{
    static const struct row rows[] = {
        { "[defaults]\nmemory = 'unlimited'\n[tool.a]\nmemory = 'unlimited'\n[tool.b]\n[tool.c]\n"
          "memory = 'unlimited'\n",
          3 },
    };
    (void)state;
    CHECK_POLICIES(rows, NO_LIMIT);
}

static void test_default_that_every_tool_replaces_is_not_reported(void **state)
{
    static const struct row rows[] = {
        { "[defaults]\nmemory = 'unlimited'\n[tool.a]\nmemory = '1MB'\n", 0 },
        { "[defaults]\nmemory = 'unlimited'\n[tool.a]\nmemory = '1MB'\n[tool.b]\n", 1 },
    };
    (void)state;
    CHECK_POLICIES(rows, NO_LIMIT);
}

static void test_own_container_does_not_repeat_inherited_paths(void **state)
{
    static const struct row rows[] = {
        { "[defaults]\nbackend = 'oci'\nfilesystem = { readable = ['/etc'] }\n"
          "[tool.a]\ncontainer = { user = '1000' }\n[tool.b]\ncontainer = { user = '1001' }\n",
          1 },
        /* But what the container itself mounts is reported for each. */
        { "[defaults]\nbackend = 'oci'\nfilesystem = { readable = ['/etc'] }\n"
          "[tool.a]\ncontainer = { mounts = ['/root/.ssh:/a'] }\n"
          "[tool.b]\ncontainer = { mounts = ['/root/.ssh:/b'] }\n",
          3 },
    };
    (void)state;
    CHECK_POLICIES(rows, SECRET_READABLE);
}

static void test_inherited_container_is_reported_though_the_first_tool_has_none(void **state)
{
    static const struct row rows[] = {
        { "[defaults]\ncontainer = { user = 'root' }\n[tool.a]\n[tool.b]\nbackend = 'oci'\n"
          "[tool.c]\nbackend = 'oci'\n",
          1 },
        { "[defaults]\ncontainer = { user = 'root' }\n[tool.a]\n", 0 },
    };
    (void)state;
    CHECK_POLICIES(rows, WEAK_CONTAINER);
}

static void test_inherited_paths_are_judged_by_each_tools_capability(void **state)
{
    static const char text[] = "[defaults]\nallowed_paths = ['/home/u']\n"
                               "[tool.none]\ncapabilities = ['net_http']\n"
                               "[tool.reads]\ncapabilities = ['fs_read']\n"
                               "[tool.writes]\ncapabilities = ['fs_write']\n"
                               "[tool.writes_too]\ncapabilities = ['fs_write']\n";
    struct tci_lint_options options = { .now = 0 };
    (void)state;
    check_count(text, &options, TCI_FINDING_HOME_READABLE, 1);
    check_count(text, &options, TCI_FINDING_ROOT_WRITABLE, 1);
}

static void test_what_one_tool_mounts_over_a_secret_does_not_hide_it_for_the_next(void **state)
{
    static const struct row rows[] = {
        { "[defaults]\nfilesystem = { readable = ['/etc/ssl'] }\n[tool.a]\nbackend = 'oci'\n"
          "container = { mounts = ['/empty:/etc/ssl/private'] }\n[tool.b]\n",
          1 },
    };
    (void)state;
    CHECK_POLICIES(rows, SECRET_READABLE);
}

static void test_inherited_root_is_judged_by_each_tools_right_to_it(void **state)
{
    static const char text[] =
        "[defaults]\nbackend = 'oci'\nrootfs = '/home/u'\n[tool.a]\n[tool.b]\n"
        "container = { read_only_rootfs = false }\n[tool.c]\n"
        "container = { read_only_rootfs = false }\n";
    struct tci_lint_options options = { .now = 0 };
    (void)state;
    check_count(text, &options, TCI_FINDING_HOME_READABLE, 1);
    check_count(text, &options, TCI_FINDING_ROOT_WRITABLE, 1);
}

static void test_inherited_hosts_are_reported_though_the_first_tool_cannot_use_them(void **state)
{
    static const struct row rows[] = {
        { "[defaults]\nallowed_hosts = ['*.com']\n[tool.a]\ncapabilities = ['fs_read']\n"
          "[tool.b]\ncapabilities = ['net_http']\n[tool.c]\ncapabilities = ['exec_run']\n"
          "[tool.d]\ncapabilities = ['net_http']\n",
          1 },
    };
    (void)state;
    CHECK_POLICIES(rows, WIDE_WILDCARD);
}

/* ---- odd input ------------------------------------------------------------------------------ */

static void test_long_paths_are_cut_in_messages_and_nothing_else_happens(void **state)
{
    static char text[16384];
    char component[252];
    size_t used;
    struct tci_lint_options options = { .look_at_files = true, .home = "/home/u" };
    struct tci_findings *findings;
    (void)state;
    memset(component, 'a', sizeof component - 1);
    component[sizeof component - 1] = '\0';
    used = (size_t)snprintf(text, sizeof text, "[tool.t]\nfilesystem = { readable = ['");
    for (int i = 0; i < 16; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "/%s", component);
    (void)snprintf(text + used, sizeof text - used, "/.ssh'], hidden = ['/x'] }\n");
    findings = lint_with(text, &options);
    assert_int_equal(count_of(findings, TCI_FINDING_SECRET_READABLE), 1);
    tci_findings_free(findings);
}

static void test_many_tools_with_many_grants_take_no_time(void **state)
{
    enum { tools = 1000 };
    static char text[tools * 64];
    size_t used = (size_t)snprintf(
        text, sizeof text, "version = 1\n[defaults]\nfilesystem = { readable = ['/etc'] }\n");
    struct tci_lint_options options = { .look_at_files = true };
    struct tci_findings *findings;
    (void)state;
    for (int i = 0; i < tools; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "[tool.t%d]\n", i);
    used += (size_t)snprintf(text + used, sizeof text - used, "[agent.a]\ngrants = [");
    for (int i = 0; i < tools; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "'t%d',", i);
    (void)snprintf(text + used, sizeof text - used, "]\n");
    findings = lint_with(text, &options);
    assert_int_equal(count_of(findings, TCI_FINDING_SECRET_READABLE), 1);
    assert_ptr_equal(findings->first, findings->last);
    tci_findings_free(findings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_policy_has_no_finding),
        cmocka_unit_test(test_findings_come_in_the_order_of_the_file),
        cmocka_unit_test(test_finding_names_its_tool_and_place),
        cmocka_unit_test(test_every_finding_has_a_remedy_and_one_line),
        cmocka_unit_test(test_built_in_values_are_never_reported),
        cmocka_unit_test(test_lint_as_library_call_gives_json),
        cmocka_unit_test(test_more_errors_than_anybody_reads_are_cut),
        cmocka_unit_test(test_missing_version_is_a_note),
        cmocka_unit_test(test_hidden_text_is_found_where_it_is),
        cmocka_unit_test(test_inherited_value_is_reported_once),
        cmocka_unit_test(test_own_value_is_reported_for_each_tool),
        cmocka_unit_test(test_default_that_every_tool_replaces_is_not_reported),
        cmocka_unit_test(test_own_container_does_not_repeat_inherited_paths),
        cmocka_unit_test(test_inherited_container_is_reported_though_the_first_tool_has_none),
        cmocka_unit_test(test_inherited_paths_are_judged_by_each_tools_capability),
        cmocka_unit_test(test_what_one_tool_mounts_over_a_secret_does_not_hide_it_for_the_next),
        cmocka_unit_test(test_inherited_root_is_judged_by_each_tools_right_to_it),
        cmocka_unit_test(test_inherited_hosts_are_reported_though_the_first_tool_cannot_use_them),
        cmocka_unit_test(test_long_paths_are_cut_in_messages_and_nothing_else_happens),
        cmocka_unit_test(test_many_tools_with_many_grants_take_no_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
