/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of the findings about paths: too wide, writable, hidden in vain, or not expanded;
 * and a tool that can rewrite its policy or its program.
 */
#include "lint_support.h"

#include <stdio.h>
#include "base/attr.h"
#include "policy/lint.h"

/* ---- wide and writable paths ---------------------------------------------------------------- */

static void test_writable_root_and_homes(void **state)
{
    static const struct row rows[] = {
        { "filesystem = { writable = ['/'] }", 1 },
        { "filesystem = { writable = ['/:/host'] }", 1 },
        { "filesystem = { writable = ['/root'] }", 1 },
        { "filesystem = { writable = ['/home'] }", 1 },
        { "filesystem = { writable = ['/home/user'] }", 1 },
        { "filesystem = { writable = ['/home/user/.'] }", 1 },
        { "filesystem = { writable = ['/home/user:/work'] }", 1 },
        { "filesystem = { writable = ['/var/home/user'] }", 1 },
        { "filesystem = { writable = ['/Users/user'] }", 1 },
        { "filesystem = { writable = ['..'] }", 1 }, /* of /policy */
        { "filesystem = { writable = ['/home/user/project'] }", 0 },
        { "filesystem = { writable = ['/homes/user'] }", 0 },
        { "filesystem = { writable = ['/srv/root'] }", 0 },
        { "filesystem = { writable = ['/data:/home/user'] }", 0 },
        { "filesystem = { readable = ['/home/user'] }", 0 },
    };
    (void)state;
    CHECK(rows, ROOT_WRITABLE);
}

static void test_readable_root_and_homes(void **state)
{
    static const struct row rows[] = {
        { "filesystem = { readable = ['/'] }", 1 },
        { "filesystem = { readable = ['/root'] }", 1 },
        { "filesystem = { readable = ['/home'] }", 1 },
        { "filesystem = { readable = ['/home/user:/me'] }", 1 },
        { "filesystem = { readable = ['/home/user/project'] }", 0 },
        { "filesystem = { writable = ['/home/user'] }", 0 }, /* that is an error already */
        { "filesystem = { hidden = ['/home/user'] }", 0 },
    };
    (void)state;
    CHECK(rows, HOME_READABLE);
}

static void test_callers_home_is_a_home_wherever_it_is(void **state)
{
    struct tci_lint_options options = { .home = "/data/people/eve" };
    static const struct row rows[] = {
        { "filesystem = { writable = ['/data/people/eve'] }", 1 },
        { "filesystem = { writable = ['/data/people'] }", 1 },
        { "filesystem = { writable = ['/data/people/eve/project'] }", 0 },
        { "filesystem = { writable = ['/data/people/eve2'] }", 0 },
    };
    (void)state;
    check_rows_with(rows, tci_array_size(rows), TCI_FINDING_ROOT_WRITABLE, &options);
    options.home = "/";
    check_rows_with(&(struct row){ "filesystem = { writable = ['/data'] }", 0 }, 1,
                    TCI_FINDING_ROOT_WRITABLE, &options);
}

static void test_writable_system_directories(void **state)
{
    static const struct row rows[] = {
        { "filesystem = { writable = ['/etc'] }", 1 },
        { "filesystem = { writable = ['/etc/cron.d'] }", 1 },
        { "filesystem = { writable = ['/usr/local/bin'] }", 1 },
        { "filesystem = { writable = ['/usr/local/bin:/bin'] }", 1 },
        { "filesystem = { writable = ['/var'] }", 1 },
        { "filesystem = { writable = ['/var/lib'] }", 1 },
        { "filesystem = { writable = ['/var/lib/dpkg/info'] }", 1 },
        { "filesystem = { writable = ['/var/spool/cron'] }", 1 },
        { "filesystem = { writable = ['/run/systemd'] }", 1 },
        { "filesystem = { writable = ['/boot/efi'] }", 1 },
        { "filesystem = { writable = ['/opt'] }", 1 },
        /* What somebody's next login, editor or commit runs. */
        { "filesystem = { writable = ['/home/u/.bashrc'] }", 1 },
        { "filesystem = { writable = ['/home/u/.local/bin'] }", 1 },
        { "filesystem = { writable = ['/home/u/.config/autostart/x.desktop'] }", 1 },
        { "filesystem = { writable = ['/srv/p/.git'] }", 1 },
        { "filesystem = { writable = ['/srv/p/.git/hooks'] }", 1 },
        { "filesystem = { readable = ['/srv/p/.git', '/home/u/.bashrc'] }", 0 },
        { "filesystem = { writable = ['/srv/p/.github', '/srv/p/git'] }", 0 },
        /* A service's own state. */
        { "filesystem = { writable = ['/var/lib/agent/work'] }", 0 },
        { "filesystem = { writable = ['/run/agent'] }", 0 },
        { "filesystem = { writable = ['/srv', '/workspace', '/opt/agent/data'] }", 0 },
        { "filesystem = { writable = ['/data:/usr/local'] }", 0 },
        { "filesystem = { readable = ['/usr'] }", 0 },
        { "filesystem = { writable = ['/'] }", 0 }, /* a finding of its own */
        { "filesystem = { writable = ['/library'] }", 0 },
    };
    (void)state;
    CHECK(rows, SYSTEM_WRITABLE);
}

static void test_path_in_both_lists(void **state)
{
    static const struct row rows[] = {
        { "filesystem = { readable = ['/data'], writable = ['/data'] }", 1 },
        { "filesystem = { readable = ['/data/'], writable = ['/data/x/..'] }", 1 },
        { "filesystem = { readable = ['/srv:/data'], writable = ['/srv:/data'] }", 1 },
        { "filesystem = { readable = ['/data'], writable = ['/data/out'] }", 0 },
        { "filesystem = { readable = ['/data/in'], writable = ['/data'] }", 0 },
        { "filesystem = { readable = ['/data'], writable = ['/data2'] }", 0 },
    };
    (void)state;
    CHECK(rows, READABLE_AND_WRITABLE);
}

static void test_path_that_is_writable_at_another_place_of_the_cage(void **state)
{
    static const struct row rows[] = {
        { "filesystem = { readable = ['/data:/in'], writable = ['/data:/out'] }", 1 },
        { "filesystem = { readable = ['/data/ro:/in'], writable = ['/data:/work'] }", 1 },
        { "filesystem = { readable = ['/data/ro:/in'], writable = ['/data:/work'], "
          "hidden = ['/work/ro'] }",
          0 },
        { "filesystem = { readable = ['/data:/in'], writable = ['/data/out:/out'] }", 0 },
    };
    (void)state;
    CHECK(rows, READABLE_AND_WRITABLE);
}

static void test_tool_that_can_rewrite_its_policy(void **state)
{
    static const struct row rows[] = {
        { "filesystem = { writable = ['/policy'] }", 1 },
        { "filesystem = { writable = ['.'] }", 1 },
        { "filesystem = { writable = ['test.toml'] }", 1 },
        { "filesystem = { writable = ['/policy:/work'] }", 1 },
        { "filesystem = { writable = ['/'] }", 1 },
        /* A cover is lost when the file is replaced. */
        { "filesystem = { writable = ['.'], hidden = ['test.toml'] }", 1 },
        { "filesystem = { writable = ['.'], readable = ['test.toml'] }", 1 },
        { "filesystem = { writable = ['/policy:/work'], hidden = ['/work/test.toml'] }", 1 },
        { "filesystem = { writable = ['/policy:/work'], hidden = ['/policy/test.toml'] }", 1 },
        { "filesystem = { writable = ['data'] }", 0 },
        { "filesystem = { writable = ['/policy2'] }", 0 },
        { "filesystem = { readable = ['.'] }", 0 },
        { "backend = 'oci'\ncontainer = { mounts = ['/policy:/p:rw'] }", 1 },
        { "backend = 'oci'\ncontainer = { mounts = ['/policy:/p:ro'] }", 0 },
    };
    (void)state;
    CHECK(rows, POLICY_WRITABLE);
}

/* A policy in the directory, with a schema in its folder "s". */
static size_t count_rewritable(const struct directory *directory, const char *text)
{
    struct tci_findings *findings = tci_findings_new("test.toml");
    struct tci_lint_options options = { .now = 0 };
    struct tc_policy *policy = NULL;
    struct tc_error error = { 0 };
    size_t count;
    assert_non_null(findings);
    if (tci_policy_parse(text, strlen(text), TCI_FORMAT_TOML, directory->path, findings, &policy,
                         &error) < 0 ||
        tci_lint(policy, &options, findings, &error) < 0)
        fail_msg("%s", error.message);
    count = count_of(findings, TCI_FINDING_POLICY_WRITABLE);
    tc_policy_free(policy);
    tci_findings_free(findings);
    return count;
}

static void test_tool_that_can_rewrite_a_schema_of_the_policy(void **state)
{
    static const struct row rows[] = {
        { "[tool.t]\nfilesystem = { writable = ['s'] }\nparameters = 's/x.json'\n", 1 },
        { "[tool.t]\nfilesystem = { writable = ['s/x.json'] }\nparameters = 's/x.json'\n", 1 },
        { "[tool.t]\nfilesystem = { writable = ['s'] }\n[tool.u]\nreturns = 's/x.json'\n", 1 },
        { "[tool.t]\nfilesystem = { readable = ['s'] }\nparameters = 's/x.json'\n", 0 },
        { "[tool.t]\nfilesystem = { writable = ['s'] }\nparameters = { type = 'object' }\n", 0 },
    };
    const struct directory *directory = *state;
    char path[256];
    FILE *file;
    make_folder(directory, "s");
    (void)snprintf(path, sizeof path, "%s/s/x.json", directory->path);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs("{}", file) >= 0);
    assert_int_equal(fclose(file), 0);
    for (size_t i = 0; i < tci_array_size(rows); i++)
        if (count_rewritable(directory, rows[i].lines) != rows[i].expected)
            fail_msg("%s", rows[i].lines);
}

static void test_program_that_the_tool_can_rewrite(void **state)
{
    static const struct row rows[] = {
        { "filesystem = { writable = ['/w'] }\ncommand = ['/w/bin/run']", 1 },
        { "filesystem = { writable = ['/w'] }\ncommand = ['timeout', '5', '/w/bin/run']", 1 },
        { "filesystem = { writable = ['/w'] }\ncommand = ['python3', '/w/run.py']", 1 },
        { "filesystem = { writable = ['/w'] }\ncommands = ['/w/git']\ncommand = ['run']", 1 },
        { "filesystem = { writable = ['/srv:/w'] }\ncommand = ['/w/run']", 1 },
        { "filesystem = { writable = ['/w'] }\ncommand = ['run', '/w/data']", 0 },
        { "filesystem = { writable = ['/w'], readable = ['/w/bin'] }\ncommand = ['/w/bin/run']",
          0 },
        { "filesystem = { writable = ['/w'] }\ncommand = ['/usr/bin/run']", 0 },
        { "filesystem = { writable = ['/w'] }\ncommand = ['w/run']", 0 },
    };
    (void)state;
    CHECK(rows, POLICY_WRITABLE);
}

static void test_hidden_path_that_shows_at_another_place(void **state)
{
    static const struct row rows[] = {
        { "filesystem = { readable = ['/data', '/data:/mirror'], hidden = ['/data/x'] }", 1 },
        { "filesystem = { readable = ['/data', '/data/x:/s'], hidden = ['/data/x'] }", 1 },
        { "filesystem = { readable = ['/srv/d', '/srv:/srv2'], hidden = ['/srv/d/x'] }", 1 },
        { "filesystem = { readable = ['/data', '/data:/m'], hidden = ['/data/x', '/m/x'] }", 0 },
        { "filesystem = { readable = ['/data', '/data/y:/m'], hidden = ['/data/x'] }", 0 },
        { "filesystem = { readable = ['/data', '/other:/m'], hidden = ['/data/x'] }", 0 },
        { "filesystem = { readable = ['/data', '/data/x/ok'], hidden = ['/data/x'] }", 0 },
        { "filesystem = { hidden = ['/data/x'] }", 0 },
    };
    (void)state;
    CHECK(rows, SECRET_READABLE);
}

static void test_many_nested_paths_are_compared_within_bounds(void **state)
{
    static char text[400000];
    size_t used = (size_t)snprintf(text, sizeof text, "[tool.t]\nfilesystem = { readable = [");
    struct tci_findings *findings;
    (void)state;
    for (int list = 0; list < 2; list++) {
        for (int i = 1; i <= 400; i++) {
            used += (size_t)snprintf(text + used, sizeof text - used, "'/a");
            for (int j = 0; j < i; j++)
                used += (size_t)snprintf(text + used, sizeof text - used, "/b");
            used += (size_t)snprintf(text + used, sizeof text - used, ":/%c%d',", "rw"[list], i);
        }
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 list ? "] }\n" : "], writable = [");
    }
    findings = lint(text);
    assert_true(count_of(findings, TCI_FINDING_READABLE_AND_WRITABLE) > 0);
    assert_true(count_of(findings, TCI_FINDING_READABLE_AND_WRITABLE) <= 30000);
    assert_int_equal(count_of(findings, TCI_FINDING_TOO_MANY_RULES), 1);
    tci_findings_free(findings);
}

static void test_tilde_and_variables_are_said_not_to_be_expanded(void **state)
{
    static const struct row rows[] = {
        { "filesystem = { readable = ['~/data'] }", 1 },
        { "filesystem = { readable = ['~'] }", 1 },
        { "filesystem = { readable = ['~bob/data'] }", 1 },
        { "filesystem = { writable = ['${HOME}/data'] }", 1 },
        { "filesystem = { writable = ['$HOME/data'] }", 1 },
        { "filesystem = { writable = ['/home/$USER/data'] }", 1 },
        { "filesystem = { readable = ['~/data:/data'] }", 1 },
        { "filesystem = { readable = [{ host = '~/data', cage = '/data' }] }", 1 },
        { "filesystem = { readable = ['/data'], hidden = ['~/.ssh'] }", 1 },
        { "capabilities = ['fs_read']\nallowed_paths = ['~/data']", 1 },
        { "filesystem = { readable = ['/data/file~'] }", 0 },
        { "filesystem = { readable = ['/data/100$'] }", 0 },
        { "filesystem = { readable = ['/data/a$1'] }", 0 },
        { "filesystem = { readable = ['./~'] }", 0 },
    };
    (void)state;
    CHECK(rows, NOT_EXPANDED);
}

static void test_command_and_environment_are_not_expanded_either(void **state)
{
    static const struct row rows[] = {
        { "command = ['tool', '~/config']", 1 },
        { "command = ['tool', '$HOME/config']", 1 },
        { "command = ['tool', '$1']", 0 },
        { "command = ['tool', 'cost: $HOME']", 0 },
        { "command = ['sh', '-c', '$HOME/bin/x']", 0 },
        { "command = ['tool', '~']", 0 },
        { "env = { CONFIG = '~/x' }", 1 },
        { "env = { CONFIG = '${HOME}/x' }", 1 },
        { "env = { PATH = '/opt/bin:$PATH' }", 1 },
        { "env = { GREETING = 'it costs $5 ~ roughly' }", 0 },
    };
    (void)state;
    CHECK(rows, NOT_EXPANDED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writable_root_and_homes),
        cmocka_unit_test(test_readable_root_and_homes),
        cmocka_unit_test(test_callers_home_is_a_home_wherever_it_is),
        cmocka_unit_test(test_writable_system_directories),
        cmocka_unit_test(test_path_in_both_lists),
        cmocka_unit_test(test_path_that_is_writable_at_another_place_of_the_cage),
        cmocka_unit_test(test_tool_that_can_rewrite_its_policy),
        IN_DIRECTORY(test_tool_that_can_rewrite_a_schema_of_the_policy),
        cmocka_unit_test(test_program_that_the_tool_can_rewrite),
        cmocka_unit_test(test_hidden_path_that_shows_at_another_place),
        cmocka_unit_test(test_many_nested_paths_are_compared_within_bounds),
        cmocka_unit_test(test_tilde_and_variables_are_said_not_to_be_expanded),
        cmocka_unit_test(test_command_and_environment_are_not_expanded_either),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
