/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of which path a tool may read or write, with the clause that gives the answer. */
#include "decide_support.h"

#include <stdio.h>

/* "r PATH" or "w PATH". */
static void check_paths(const char *settings, const char *agent, const struct question *questions,
                        size_t count)
{
    char text[2000];
    struct tc_policy *policy;
    (void)snprintf(text, sizeof text, "[tool.t]\n%s\n", settings);
    policy = load_text(text);
    for (size_t i = 0; i < count; i++) {
        const char *target = questions[i].target;
        struct tc_decision d = decide_path(policy, agent, target + 2,
                                           *target == 'w' ? TC_ACCESS_WRITE : TC_ACCESS_READ);
        assert_well_formed(&d);
        if (d.allowed != questions[i].allowed)
            fail_msg("%s with %s: %s", target, settings, d.reason);
    }
    tc_policy_free(policy);
}

#define path_table(settings, ...) path_table_for(settings, NULL, __VA_ARGS__)
#define path_table_for(settings, agent, ...)                                                       \
    do {                                                                                           \
        static const struct question questions_[] = { __VA_ARGS__ };                               \
        check_paths(settings, agent, questions_, tci_array_size(questions_));                      \
    } while (0)

/* ---- paths ------------------------------------------------------------------------------------ */

static void test_most_specific_path_wins(void **state)
{
    (void)state;
    path_table("filesystem = { readable = [\"/d\"], writable = [\"/d/w\"], hidden = [\"/d/w/h\"] }",
               { "r /d", true }, { "w /d", false }, { "r /d/x", true }, { "w /d/x", false },
               { "r /d/w", true }, { "w /d/w", true }, { "w /d/w/x/y", true },
               { "r /d/w/h", false }, { "w /d/w/h", false }, { "r /d/w/h/x", false },
               { "w /d/w/hh", true }, { "r /", false }, { "r /x", false });
    path_table("filesystem = { writable = [\"/a\"], hidden = [\"/a/b\"], readable = [\"/a/b/c\"] }",
               { "w /a/x", true }, { "r /a/b/x", false }, { "r /a/b/c/x", true },
               { "w /a/b/c/x", false });
    path_table("filesystem = { hidden = [\"/\"], writable = [\"/a\"] }", { "w /a/x", true },
               { "r /b", false }, { "r /usr/bin/env", false }, { "r /tmp", false });
    path_table("filesystem = { hidden = [\"/etc\"] }", { "r /etc/passwd", false },
               { "r /usr/bin/env", true });
}

static void test_at_one_path_hidden_beats_readable_beats_writable(void **state)
{
    (void)state;
    path_table("filesystem = { readable = [\"/p\"], writable = [\"/p\"] }", { "r /p/x", true },
               { "w /p/x", false });
    path_table("filesystem = { writable = [\"/p\"], hidden = [\"/p\"] }", { "r /p", false },
               { "w /p/x", false });
    path_table("filesystem = { hidden = [\"/p\"], readable = [\"/p\"], writable = [\"/p\"] }",
               { "r /p", false }, { "w /p", false });
}

static void test_prefix_of_a_name_is_no_directory(void **state)
{
    (void)state;
    path_table("filesystem = { writable = [\"/workspace\"] }", { "w /workspace", true },
               { "w /workspace/x", true }, { "r /workspacefoo", false },
               { "w /workspacefoo/x", false }, { "r /workspac", false }, { "r /Workspace", false });
}

static void test_dots_in_the_asked_path_do_not_escape(void **state)
{
    (void)state;
    path_table("filesystem = { writable = [\"/w\"], hidden = [\"/w/h\"] }",
               { "r /w/../etc/shadow", false }, { "r /w/x/../../root", false },
               { "w /w/x/../y", true }, { "w /x/../w/y", true }, { "r /w/./h", false },
               { "r /w/x/../h/y", false }, { "r /w/h/../x", true }, { "r /../w", false },
               { "r /w/../../w", false }, { "r //w", false }, { "r /w//x", false },
               { "r w", false }, { "r ", false }, { "r .", false }, { "r ../w", false },
               { "r /w/\n", false }, { "r /w/\177", false }, { "r /w/x/", true },
               { "r ~/x", false });
}

static void test_mapped_path_is_asked_for_by_its_name_in_the_cage(void **state)
{
    (void)state;
    path_table("filesystem = { readable = [\"/srv/data:/data\"] }", { "r /data/x", true },
               { "r /srv/data/x", false });
    path_table("filesystem = { readable = [\"rel\"] }", { "r /policy/rel", true },
               { "r /rel", false });
}

static void test_scratch_is_there_unless_switched_off(void **state)
{
    (void)state;
    path_table("", { "w /tmp", true }, { "w /tmp/x", true }, { "w /dev/shm/x", true },
               { "r /tmpx", false }, { "w /var/tmp", false });
    path_table("filesystem = { scratch = \"0B\" }", { "r /tmp", false }, { "w /tmp/x", false },
               { "w /dev/shm/x", false });
    path_table("filesystem = { hidden = [\"/tmp/h\"], readable = [\"/tmp/r\"] }",
               { "r /tmp/h", false }, { "w /tmp/r/x", false }, { "w /tmp/x", true });
    path_table("filesystem = { hidden = [\"/tmp\"] }", { "r /tmp", false }, { "r /tmp/x", false });
}

static void test_system_directories_are_readable_unless_switched_off(void **state)
{
    (void)state;
    path_table("", { "r /usr/bin/env", true }, { "w /usr/bin/env", false }, { "r /bin/sh", true },
               { "r /lib64/x", true }, { "r /etc/passwd", true }, { "w /etc/passwd", false },
               { "r /etc/shadow", false }, { "r /etc", false }, { "r /etc/ssl/certs/x.pem", true },
               { "r /etc/ssl/private/x", false }, { "r /root", false }, { "r /home/u", false },
               { "r /var/lib", false }, { "r /usrx", false }, { "r /", false });
    path_table("system = false", { "r /usr/bin/env", false }, { "r /bin/sh", false },
               { "r /etc/passwd", false }, { "r /lib/x", false });
    path_table("filesystem = { hidden = [\"/usr/share\"], writable = [\"/usr/local\"] }",
               { "r /usr/share/x", false }, { "w /usr/local/x", true }, { "w /usr/x", false });
    path_table("backend = \"wasm\"", { "r /usr/bin/env", false });
}

static void test_every_cage_has_its_own_devices(void **state)
{
    (void)state;
    path_table("system = false\nfilesystem = { scratch = \"0B\" }", { "w /dev/null", true },
               { "r /dev/urandom", true }, { "w /dev/urandom", false }, { "r /proc/self", true },
               { "w /proc/self/mem", false }, { "r /dev/sda", false }, { "r /dev/mem", false },
               { "r /dev", false }, { "r /sys", false });
    /* Links out of the cage's own trees lead anywhere: no name can answer for them. */
    path_table("filesystem = { readable = [\"/\"] }", { "r /proc/self/root/etc/shadow", false },
               { "r /proc/1/cwd", false }, { "r /proc/self/fd/5", false },
               { "r /proc/self/exe", false }, { "r /proc/self/status", true },
               { "r /dev/fd/1", true }, { "r /dev/fd/3", false }, { "r /dev/fd/10", false },
               { "r /proc/thread-self/root", false }, { "r /proc/self/task/1/root", false });
    path_table("filesystem = { writable = [\"/\"] }", { "w /proc/sys/kernel", false },
               { "w /dev/null", true }, { "w /usr/x", false }, { "w /home", true });
}

static void test_image_and_rootfs_give_a_readable_root(void **state)
{
    (void)state;
    path_table("backend = \"oci\"", { "r /", true }, { "r /any/thing", true }, { "w /any", false },
               { "w /tmp/x", true });
    path_table("rootfs = \"/srv/root\"", { "r /opt/x", true }, { "w /opt/x", false });
    path_table("backend = \"oci\"\ncontainer = { read_only_rootfs = false }", { "w /any", true },
               { "w /proc/x", false });
    path_table("backend = \"oci\"\nfilesystem = { hidden = [\"/opt\"], writable = [\"/w\"] }",
               { "r /opt/x", false }, { "w /w/x", true }, { "r /x", true });
    path_table("backend = \"oci\"\ncontainer = { mounts = [\"/h:/m\", \"/i:/n:rw\"] }",
               { "w /m/x", false }, { "w /n/x", true });
    /* Inherited container settings do not open a jail's root. */
    path_table("rootfs = \"/srv\"\n[defaults]\ncontainer = { read_only_rootfs = false }",
               { "w /opt/x", false });
}

static void test_grant_narrows_the_file_system_and_never_widens(void **state)
{
    (void)state;
    path_table_for("filesystem = { writable = [\"/w\"], readable = [\"/r\"] }\n[agent.a]\n"
                   "grants = [{ tool = \"t\", filesystem = { readable = [\"/w\"], "
                   "writable = [\"/r\", \"/z\"] } }]\n",
                   "a", { "r /w/x", true }, { "w /w/x", false }, { "r /r/x", true },
                   { "w /r/x", false }, { "r /z", false }, { "w /tmp/x", true },
                   { "r /usr/bin/env", true });
    path_table_for("filesystem = { writable = [\"/w\"] }\n[agent.a]\n"
                   "grants = [{ tool = \"t\", filesystem = \"none\" }]\n",
                   "a", { "r /w", false }, { "w /tmp/x", true });
    path_table_for("filesystem = { writable = [\"/w\"] }\n[agent.a]\n"
                   "grants = [{ tool = \"t\", filesystem = { writable = [\"/w\"], "
                   "hidden = [\"/w/h\", \"/usr/bin\"] } }]\n",
                   "a", { "w /w/x", true }, { "r /w/h", false }, { "r /usr/bin/env", false });
    /* Without scratch in the grant, the agent has no /tmp; with it, none that the tool lacks. */
    path_table_for("[agent.a]\ngrants = [{ tool = \"t\", filesystem = { scratch = \"0B\" } }]\n",
                   "a", { "w /tmp/x", false }, { "r /tmp", false }, { "w /dev/shm/x", false },
                   { "r /usr/bin/env", true });
    path_table_for("filesystem = { scratch = \"0B\" }\n[agent.a]\n"
                   "grants = [{ tool = \"t\", filesystem = \"none\" }]\n",
                   "a", { "w /tmp/x", false });
    path_table_for("filesystem = { writable = [\"/w\"] }\n[agent.a]\n"
                   "grants = [{ tool = \"t\", filesystem = \"none\" }]\n[agent.b]\n"
                   "grants = [\"t\"]\n",
                   "b", { "w /w", true });
}

static void test_path_answer_names_the_deciding_rule(void **state)
{
    struct tc_policy *policy = load_text(
        "[tool.t]\n"
        "filesystem = { readable = [\"/d\", \"/h:/m\"],\n"
        "               hidden = [\"/d/s\"] }\n"
        "[agent.a]\n"
        "grants = [{ tool = \"t\", filesystem = { hidden = [\"/d/x\"] } }]\n");
    struct tc_decision d = decide_path(policy, NULL, "/d/a/../b", TC_ACCESS_READ);
    (void)state;
    assert_true(d.allowed && d.line == 2 && d.column == 28);
    assert_string_equal(d.key, "filesystem");
    assert_string_equal(d.rule, "readable: /d");
    d = decide_path(policy, NULL, "/d/s/k", TC_ACCESS_READ);
    assert_true(!d.allowed && d.line == 3 && d.column == 26);
    assert_string_equal(d.rule, "hidden: /d/s");
    assert_non_null(strstr(d.fix, "\"/d/s\""));
    d = decide_path(policy, NULL, "/d/b", TC_ACCESS_WRITE);
    assert_true(!d.allowed && d.line == 2);
    assert_non_null(strstr(d.fix, "writable"));
    d = decide_path(policy, NULL, "/nowhere", TC_ACCESS_READ);
    assert_true(!d.allowed && d.line == 2 && d.column == 14);
    assert_string_equal(d.rule, "");
    d = decide_path(policy, NULL, "/usr/bin", TC_ACCESS_READ);
    assert_true(d.allowed && d.line == 0);
    assert_string_equal(d.key, "system");
    d = decide_path(policy, NULL, "/tmp", TC_ACCESS_WRITE);
    assert_true(d.allowed && d.line == 0);
    d = decide_path(policy, "a", "/d/x", TC_ACCESS_READ);
    assert_true(!d.allowed && d.line == 5);
    assert_int_equal(d.column, 50);
    d = decide_path(policy, "a", "/d/y", TC_ACCESS_READ); /* not in the grant's table at all */
    assert_true(!d.allowed && d.line == 5);
    assert_int_equal(d.column, 38);
    tc_policy_free(policy);
}

static void test_longest_paths_are_answered_whole_or_refused(void **state)
{
    struct tc_policy *policy = load_text("[tool.t]\nfilesystem = { writable = [\"/w\"] }\n");
    char path[6000];
    (void)state;
    for (size_t length = 4000; length < 4200; length++) {
        struct tc_decision d;
        memset(path, 'a', length);
        memcpy(path, "/w/", 3);
        for (size_t i = 200; i < length - 1; i += 200)
            path[i] = '/';
        path[length] = '\0';
        d = decide_path(policy, NULL, path, TC_ACCESS_WRITE);
        assert_well_formed(&d);
        assert_int_equal(d.allowed, length <= 4095);
        assert_true(strlen(d.reason) < sizeof d.reason && strlen(d.fix) < sizeof d.fix);
    }
    tc_policy_free(policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_most_specific_path_wins),
        cmocka_unit_test(test_at_one_path_hidden_beats_readable_beats_writable),
        cmocka_unit_test(test_prefix_of_a_name_is_no_directory),
        cmocka_unit_test(test_dots_in_the_asked_path_do_not_escape),
        cmocka_unit_test(test_mapped_path_is_asked_for_by_its_name_in_the_cage),
        cmocka_unit_test(test_scratch_is_there_unless_switched_off),
        cmocka_unit_test(test_system_directories_are_readable_unless_switched_off),
        cmocka_unit_test(test_every_cage_has_its_own_devices),
        cmocka_unit_test(test_image_and_rootfs_give_a_readable_root),
        cmocka_unit_test(test_grant_narrows_the_file_system_and_never_widens),
        cmocka_unit_test(test_path_answer_names_the_deciding_rule),
        cmocka_unit_test(test_longest_paths_are_answered_whole_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
