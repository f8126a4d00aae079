/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of the findings about a tool as a whole: limits, capabilities, containers, built-in
 * tools, and what this host cannot keep.
 */
#include "lint_support.h"

#include <stdio.h>
#include "policy/lint.h"

/* ---- limits --------------------------------------------------------------------------------- */

static void test_unlimited_is_an_error(void **state)
{
    static const struct row rows[] = {
        { "timeout = 'unlimited'", 1 },
        { "memory = 'unlimited'", 1 },
        { "cpu = 'unlimited'", 1 },
        { "pids = 'unlimited'", 1 },
        { "files = 'unlimited'", 1 },
        { "disk = 'unlimited'", 1 },
        { "output = 'unlimited'", 1 },
        { "memory = 'unlimited'\npids = 'unlimited'", 2 },
        { "cpu_time = 'unlimited'", 0 }, /* the timeout still holds */
        { "outputs = { globs = ['/w/*'], max_file = 'unlimited' }", 1 },
        { "outputs = { globs = ['/w/*'], max_files = 'unlimited' }", 1 },
        { "outputs = ['/w/*']", 0 },
        { "network_limits = { connections = 'unlimited' }", 1 },
        { "network_limits = { bytes_in = 'unlimited', rate = 'unlimited' }", 0 },
        { "memory = '1GB'", 0 },
    };
    (void)state;
    CHECK(rows, NO_LIMIT);
}

static void test_absurd_limits(void **state)
{
    static const struct row rows[] = {
        { "timeout = '9ms'", 1 },
        { "timeout = '10ms'", 0 },
        { "timeout = '24h'", 0 },
        { "timeout = '25h'", 1 },
        { "cpu_time = '25h'", 1 },
        { "memory = '999kB'", 1 },
        { "memory = '1MB'", 0 },
        { "memory = '1TB'", 0 },
        { "memory = '1TiB'", 1 },
        { "cpu = 0.005", 1 },
        { "cpu = 0.01", 0 },
        { "cpu = 1024", 0 },
        { "cpu = 2000", 1 },
        { "pids = 32768", 0 },
        { "pids = 32769", 1 },
        { "files = 7", 1 },
        { "files = 8", 0 },
        { "disk = '11TB'", 1 },
        { "output = '2GB'", 1 },
        { "filesystem = { scratch = '2TB' }", 1 },
        { "filesystem = { scratch = '0B' }", 0 },
        { "warm = 1000", 0 },
        { "warm = 1001", 1 },
        { "outputs = { globs = ['/w/*'], max_file = '2TB' }", 1 },
        { "outputs = { globs = ['/w/*'], max_files = 2000000 }", 1 },
        { "network_limits = { connections = 10000, bytes_in = '1kB', rate = '100GB' }", 0 },
        { "network_limits = { connections = 10001 }", 1 },
        { "network_limits = { bytes_in = '999B', bytes_out = '11TB', rate = '100B' }", 3 },
        { "network_limits = { connections = 'unlimited' }", 0 },
        { "memory = 'unlimited'", 0 }, /* a finding of its own */
    };
    (void)state;
    CHECK(rows, ABSURD_LIMIT);
}

/* ---- capabilities --------------------------------------------------------------------------- */

static void test_capability_and_list_need_each_other(void **state)
{
    static const struct row rows[] = {
        { "capabilities = ['fs_read']\nallowed_paths = ['/data']", 0 },
        { "capabilities = ['fs_read', 'fs_write']\nallowed_paths = ['/data']", 0 },
        { "capabilities = ['fs_read']", 1 },
        { "capabilities = ['fs_read']\nallowed_paths = []", 1 },
        { "capabilities = ['net_http']", 1 },
        { "capabilities = ['exec_run']", 1 },
        { "capabilities = ['fs_read', 'net_http', 'exec_run']", 3 },
        { "capabilities = []", 0 },
        { "allowed_paths = ['/data']", 1 },
        { "allowed_paths = []", 0 },
        { "capabilities = ['net_http']\nallowed_paths = ['/data']\nallowed_hosts = ['a.org']", 1 },
        { "capabilities = ['exec_run']\nallowed_commands = ['git']", 0 },
        { "network = 'none'", 0 },
    };
    (void)state;
    CHECK(rows, CAPABILITY_WITHOUT_LIST);
}

static void test_list_in_defaults_is_for_those_who_have_the_capability(void **state)
{
    static const struct row rows[] = {
        { "[defaults]\nallowed_hosts = ['a.org']\nallowed_paths = ['/data']\n"
          "[tool.a]\ncapabilities = ['fs_read']\n[tool.b]\ncapabilities = ['net_http']\n",
          0 },
        { "[defaults]\nallowed_hosts = ['a.org']\n[tool.a]\n[tool.b]\n", 1 },
        { "[defaults]\ncapabilities = ['fs_read']\n[tool.a]\n[tool.b]\nallowed_paths = ['/data']\n",
          0 },
        { "[defaults]\ncapabilities = ['fs_read']\n[tool.a]\n[tool.b]\n", 1 },
    };
    (void)state;
    CHECK_POLICIES(rows, CAPABILITY_WITHOUT_LIST);
}

/* ---- containers ----------------------------------------------------------------------------- */

static void test_weak_containers(void **state)
{
    static const struct row rows[] = {
        { "backend = 'oci'\ncontainer = { read_only_rootfs = false }", 1 },
        { "backend = 'oci'\ncontainer = { no_new_privileges = false }", 1 },
        { "backend = 'gvisor'\ncontainer = { cap_drop = ['NET_RAW'] }", 1 },
        { "backend = 'oci'\ncontainer = { cap_drop = [] }", 1 },
        { "backend = 'oci'\ncontainer = { cap_drop = ['all'] }", 0 },
        { "backend = 'oci'\ncontainer = { cap_add = ['NET_BIND_SERVICE'] }", 1 },
        { "backend = 'oci'\ncontainer = { user = 'root' }", 1 },
        { "backend = 'oci'\ncontainer = { user = '0' }", 1 },
        { "backend = 'oci'\ncontainer = { user = '0:0' }", 1 },
        { "backend = 'oci'\ncontainer = { user = 'root:users' }", 1 },
        { "backend = 'oci'\ncontainer = { user = '00:100' }", 1 },
        { "backend = 'oci'\ncontainer = { user = '4294967296' }", 1 },
        { "backend = 'oci'\ncontainer = { user = '0x' }", 0 },
        { "backend = 'oci'\ncontainer = { user = '1000:1000' }", 0 },
        { "backend = 'oci'\ncontainer = { user = 'rooted' }", 0 },
        { "backend = 'oci'\ncontainer = { read_only_rootfs = true, no_new_privileges = true }", 0 },
        { "backend = 'oci'\ncontainer = { user = '0', cap_add = ['ALL'], cap_drop = [], "
          "read_only_rootfs = false, no_new_privileges = false }",
          5 },
    };
    (void)state;
    CHECK(rows, WEAK_CONTAINER);
}

static void test_dangerous_system_calls(void **state)
{
    static const struct row rows[] = {
        { "syscalls = { allow = ['ptrace', 'mount', 'read'] }", 2 },
        { "syscalls = { deny = ['ptrace'] }", 0 },
        { "syscalls = 'strict'", 0 },
    };
    (void)state;
    CHECK(rows, DANGEROUS_SYSCALL);
}

/* ---- the host ------------------------------------------------------------------------------- */

/* A host that cannot keep some clauses, for a reason each. */
struct fake_host {
    const char *why[TCI_CLAUSE_COUNT];
    size_t asked;
    tci_clauses clauses;
};

static bool fake_host_can(void *context, const struct tci_tool *tool, enum tci_clause clause,
                          char ret_why[TCI_LINT_TEXT_MAX], char ret_remedy[TCI_LINT_TEXT_MAX])
{
    struct fake_host *host = context;
    host->asked++;
    host->clauses |= tci_clause_bit(clause);
    assert_non_null(tool);
    if (!host->why[clause])
        return true;
    (void)snprintf(ret_why, TCI_LINT_TEXT_MAX, "%s", host->why[clause]);
    (void)snprintf(ret_remedy, TCI_LINT_TEXT_MAX, "get %s", host->why[clause]);
    return false;
}

static void test_clauses_that_fail_for_one_reason_are_one_finding(void **state)
{
    struct fake_host host = { .why = { [TCI_CLAUSE_MEMORY] = "no cgroup",
                                       [TCI_CLAUSE_PIDS] = "no cgroup",
                                       [TCI_CLAUSE_NETWORK_NAMES] = "no gate",
                                       [TCI_CLAUSE_NETWORK_PUBLIC] = "not asked for" } };
    struct tci_lint_options options = { .host_can = fake_host_can, .host_context = &host };
    struct tci_findings *findings = lint_with("version = 1\n[tool.t]\nmemory = '1GB'\n"
                                              "network = ['a.example.com:443']\n",
                                              &options);
    const struct tci_finding *f = first_of(findings, TCI_FINDING_CANNOT_ENFORCE);
    (void)state;
    assert_int_equal(count_of(findings, TCI_FINDING_CANNOT_ENFORCE), 2);
    /* In the order of the file; a reason is placed at the key of its first clause. */
    assert_int_equal(f->pos.line, 3);
    assert_non_null(strstr(f->message, "memory, pids"));
    assert_non_null(strstr(f->message, "no cgroup"));
    assert_string_equal(f->remedy, "get no cgroup");
    f = f->next;
    assert_int_equal(f->pos.line, 4);
    assert_non_null(strstr(f->message, "network_names"));
    tci_findings_free(findings);
}

static void test_missing_backend_is_one_finding_at_the_tool(void **state)
{
    struct fake_host host = { .asked = 0 };
    struct tci_lint_options options = { .host_can = fake_host_can, .host_context = &host };
    struct tci_findings *findings;
    const struct tci_finding *f;
    (void)state;
    for (size_t i = 0; i < TCI_CLAUSE_COUNT; i++)
        host.why[i] = "runsc is not installed";
    findings = lint_with("version = 1\n[tool.t]\nbackend = 'gvisor'\n", &options);
    f = first_of(findings, TCI_FINDING_CANNOT_ENFORCE);
    assert_int_equal(count_of(findings, TCI_FINDING_CANNOT_ENFORCE), 1);
    assert_non_null(strstr(f->message, "\"gvisor\""));
    assert_string_equal(f->tool, "t");
    assert_int_equal(f->pos.line, 2);
    tci_findings_free(findings);
}

static void test_host_is_asked_only_for_what_the_tool_asks(void **state)
{
    struct fake_host host = { .asked = 0 };
    struct tci_lint_options options = { .host_can = fake_host_can, .host_context = &host };
    (void)state;
    check_count("[tool.t]\nmemory = 'unlimited'\nfilesystem = { scratch = '0B' }\n", &options,
                TCI_FINDING_CANNOT_ENFORCE, 0);
    assert_false(host.clauses & tci_clause_bit(TCI_CLAUSE_MEMORY));
    assert_false(host.clauses & tci_clause_bit(TCI_CLAUSE_SCRATCH));
    assert_false(host.clauses & tci_clause_bit(TCI_CLAUSE_EXEC_ALLOWLIST));
    assert_false(host.clauses & tci_clause_bit(TCI_CLAUSE_NETWORK_HOST));
    assert_true(host.clauses & tci_clause_bit(TCI_CLAUSE_NETWORK_NONE));
    assert_true(host.clauses & tci_clause_bit(TCI_CLAUSE_FILESYSTEM));
}

static void test_host_is_not_asked_without_tools_or_without_a_function(void **state)
{
    struct fake_host host = { .asked = 0 };
    struct tci_lint_options options = { .host_can = fake_host_can, .host_context = &host };
    (void)state;
    check_count("[agent.a]\ngrants = []\n", &options, TCI_FINDING_CANNOT_ENFORCE, 0);
    assert_int_equal(host.asked, 0);
    options.host_can = NULL;
    check_count("[tool.t]\n", &options, TCI_FINDING_CANNOT_ENFORCE, 0);
}

static void test_every_tool_is_judged_by_the_host(void **state)
{
    struct fake_host host = { .why = { [TCI_CLAUSE_MEMORY] = "no cgroup" } };
    struct tci_lint_options options = { .host_can = fake_host_can, .host_context = &host };
    (void)state;
    check_count("[defaults]\nmemory = '1GB'\n[tool.a]\n[tool.b]\n[tool.c]\nmemory = 'unlimited'\n",
                &options, TCI_FINDING_CANNOT_ENFORCE, 2);
}

/* ---- built-in tools ------------------------------------------------------------------------- */

static void test_built_in_tools_without_anything_to_reach_are_found(void **state)
{
    static const struct row rows[] = {
        { "builtin = 'read_file'", 1 },
        { "builtin = 'list_dir'\nfilesystem = { hidden = ['/x'] }", 1 },
        { "builtin = 'read_file'\nfilesystem = { readable = ['/srv/x'] }", 0 },
        { "builtin = 'search_files'\nfilesystem = { writable = ['/srv/x'] }", 0 },
        { "builtin = 'write_file'\nfilesystem = { readable = ['/srv/x'] }", 1 },
        { "builtin = 'edit_file'\nfilesystem = { writable = ['/srv/x'] }", 0 },
        { "builtin = 'read_file'\nrootfs = '/srv/root'", 0 },
        { "builtin = 'http_fetch'", 1 },
        { "builtin = 'http_fetch'\nnetwork = []", 1 },
        { "builtin = 'http_fetch'\nnetwork = 'public'", 0 },
        { "builtin = 'bash'", 0 },
    };
    (void)state;
    CHECK(rows, USELESS_BUILTIN);
}

/* The choice was deliberate: no error about a shell, one note on what it has. */
static void test_built_in_shell_is_a_note_and_not_a_shell_template(void **state)
{
    static const struct row notes[] = { { "builtin = 'bash'", 1 },
                                        { "builtin = 'python'", 1 },
                                        { "builtin = 'python'\napproval = 'ask'", 1 },
                                        { "builtin = 'list_dir'", 0 } };
    static const struct row templates[] = { { "builtin = 'bash'", 0 },
                                            { "builtin = 'python'", 0 } };
    (void)state;
    CHECK(notes, CODE_BUILTIN);
    CHECK(templates, SHELL_TEMPLATE);
    CHECK(templates, OPTION_INJECTION);
    check_message("[tool.t]\nbuiltin = 'bash'\nnetwork = 'public'\n"
                  "filesystem = { readable = ['/a'], writable = ['/b'] }\n",
                  TCI_FINDING_CODE_BUILTIN, "network public, paths to read 2, to write 1",
                  "approval");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_built_in_tools_without_anything_to_reach_are_found),
        cmocka_unit_test(test_built_in_shell_is_a_note_and_not_a_shell_template),
        cmocka_unit_test(test_unlimited_is_an_error),
        cmocka_unit_test(test_absurd_limits),
        cmocka_unit_test(test_capability_and_list_need_each_other),
        cmocka_unit_test(test_list_in_defaults_is_for_those_who_have_the_capability),
        cmocka_unit_test(test_weak_containers),
        cmocka_unit_test(test_dangerous_system_calls),
        cmocka_unit_test(test_clauses_that_fail_for_one_reason_are_one_finding),
        cmocka_unit_test(test_missing_backend_is_one_finding_at_the_tool),
        cmocka_unit_test(test_host_is_asked_only_for_what_the_tool_asks),
        cmocka_unit_test(test_host_is_not_asked_without_tools_or_without_a_function),
        cmocka_unit_test(test_every_tool_is_judged_by_the_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
