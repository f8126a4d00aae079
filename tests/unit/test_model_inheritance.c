/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of what a tool gets that it does not say itself: inherited and built-in values, and
 * what capabilities compile to.
 */
#include "model_support.h"

#include <stdio.h>
#include "policy/limits.h"
#include "policy/value.h"

/* ---- inheritance and built-in values ---------------------------------------------------------- */

static void test_builtin_values_of_the_documentation(void **state)
{
    struct tc_policy *policy = load_text("[tool.t]\n");
    const struct tci_tool *tool = only_tool(policy);
    const struct tci_settings *s = &tool->settings;
    (void)state;
    assert_int_equal(s->backend, TCI_BACKEND_JAIL);
    assert_int_equal(s->network.mode, TCI_NETWORK_NONE);
    assert_int_equal(s->filesystem.count, 0);
    assert_int_equal(s->filesystem.scratch, 64000000);
    assert_true(s->system);
    assert_null(s->rootfs);
    assert_null(s->image);
    assert_int_equal(s->timeout, 30000);
    assert_int_equal(s->memory, 256000000);
    assert_int_equal(s->cpu, 1000);
    assert_int_equal(s->cpu_time, TCI_UNLIMITED);
    assert_int_equal(s->pids, 64);
    assert_int_equal(s->files, 256);
    assert_int_equal(s->disk, 256000000);
    assert_int_equal(s->output, 1000000);
    assert_int_equal(s->syscalls.profile, TCI_SYSCALLS_DEFAULT);
    assert_true(s->commands.any);
    assert_int_equal(s->env.count + s->env_pass.count + s->command.count, 0);
    assert_string_equal(s->parameters.json, "{}");
    assert_null(s->returns.json);
    assert_int_equal(s->outputs.globs.count, 0);
    assert_int_equal(s->record, TCI_RECORD_TRUE);
    assert_int_equal(s->warm, 0);
    assert_false(s->allow_host_network);
    assert_int_equal(s->network_limits.connections, 256);
    assert_int_equal(
        s->network_limits.bytes_in | s->network_limits.bytes_out | s->network_limits.rate, 0);
    assert_false(s->inspect_strict);
    for (int key = 0; key < TCI_KEY_COUNT; key++)
        assert_int_equal(tool->source[key], TCI_FROM_BUILTIN);
    tc_policy_free(policy);
}

static void test_builtin_values_depend_on_the_backend(void **state)
{
    static const struct {
        const char *name;
        bool system, image, container;
        enum tci_syscall_profile profile;
    } backends[] = {
        { "process", true, false, false, TCI_SYSCALLS_PURE },
        { "jail", true, false, false, TCI_SYSCALLS_DEFAULT },
        { "oci", false, true, true, TCI_SYSCALLS_DEFAULT },
        { "gvisor", false, true, true, TCI_SYSCALLS_DEFAULT },
        { "wasm", false, false, false, TCI_SYSCALLS_DEFAULT },
        { "microvm", false, false, false, TCI_SYSCALLS_DEFAULT },
    };
    static const char *const tables[] = { "[tool.t]\nbackend = \"%s\"\n",
                                          "[defaults]\nbackend = \"%s\"\n[tool.t]\n" };
    (void)state;
    for (size_t i = 0; i < tci_array_size(backends) * 2; i++) {
        size_t b = i / 2;
        char text[200];
        struct tc_policy *policy;
        const struct tci_settings *s;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        (void)snprintf(text, sizeof text, tables[i % 2], backends[b].name);
#pragma GCC diagnostic pop
        policy = load_text(text);
        s = &only_tool(policy)->settings;
        assert_int_equal(s->system, backends[b].system);
        assert_int_equal(s->image != NULL, backends[b].image);
        assert_int_equal(s->syscalls.profile, backends[b].profile);
        assert_int_equal(tci_value_is_set(s, TCI_KEY_CONTAINER), backends[b].container);
        assert_true(s->container.read_only_rootfs && s->container.no_new_privileges);
        assert_int_equal(s->container.cap_drop.count, 1);
        assert_string_equal(s->container.cap_drop.items[0].text, "ALL");
        assert_int_equal(s->container.cap_add.count, 0);
        tc_policy_free(policy);
    }
}

static void test_values_replace_inherited_ones_whole(void **state)
{
    struct tc_policy *policy = load_text(
        "[defaults]\n"
        "backend = \"oci\"\n"
        "env = { A = \"1\", B = \"2\" }\n"
        "network = [\"a.example:1\", \"deny:b.example:2\"]\n"
        "filesystem = { readable = [\"/r\"], scratch = \"1MB\", cwd = \"/r\" }\n"
        "syscalls = { profile = \"strict\", allow = [\"bpf\"] }\n"
        "container = { user = \"5\", cap_drop = [] }\n"
        "outputs = { globs = [\"/r/*\"], max_files = 1 }\n"
        "[tool.t]\n"
        "env = { C = \"3\" }\n"
        "network = [\"c.example:3\"]\n"
        "filesystem = { writable = [\"/w\"] }\n"
        "syscalls = { deny = [\"ptrace\"] }\n"
        "container = { engine = \"docker\" }\n"
        "outputs = [\"/w/*\"]\n");
    const struct tci_settings *s = &only_tool(policy)->settings;
    (void)state;
    assert_int_equal(s->env.count, 1);
    assert_string_equal(s->env.items[0].name, "C");
    assert_int_equal(s->network.count, 1);
    assert_int_equal(s->filesystem.count, 1);
    assert_int_equal(s->filesystem.scratch, 64000000);
    assert_null(s->filesystem.cwd);
    assert_int_equal(s->syscalls.profile, TCI_SYSCALLS_DEFAULT);
    assert_int_equal(s->syscalls.allow.count, 0);
    assert_null(s->container.user);
    assert_int_equal(s->container.cap_drop.count, 1);
    assert_int_equal(s->outputs.max_files, 32);
    tc_policy_free(policy);
}

static void test_tools_do_not_inherit_from_each_other(void **state)
{
    struct tc_policy *policy = load_text("[tool.a]\nnetwork = \"public\"\nmemory = \"1GB\"\n"
                                         "commands = [\"x\"]\nenv = { A = \"1\" }\n"
                                         "[tool.b]\n[defaults]\ntimeout = \"7s\"\n");
    const struct tci_tool *b = tci_policy_tool(policy, "b");
    (void)state;
    assert_int_equal(b->settings.network.mode, TCI_NETWORK_NONE);
    assert_int_equal(b->settings.memory, 256000000);
    assert_true(b->settings.commands.any);
    assert_int_equal(b->settings.env.count, 0);
    assert_int_equal(b->settings.timeout, 7000); /* [defaults] may stand anywhere */
    tc_policy_free(policy);
}

static void test_inherited_value_without_meaning_for_the_backend_is_dropped(void **state)
{
    struct tc_policy *policy = load_text("[defaults]\n"
                                         "backend = \"oci\"\nimage = \"debian:12\"\n"
                                         "container = { user = \"5\", read_only_rootfs = false }\n"
                                         "[tool.oci]\n"
                                         "[tool.jail]\nbackend = \"jail\"\n"
                                         "[tool.own_root]\nrootfs = \"/srv\"\n");
    const struct tci_settings *s = &tci_policy_tool(policy, "oci")->settings;
    (void)state;
    assert_string_equal(s->image, "debian:12");
    assert_string_equal(s->container.user, "5");
    s = &tci_policy_tool(policy, "jail")->settings;
    assert_null(s->image);
    assert_null(s->container.user);
    assert_true(s->container.read_only_rootfs); /* or paths of the jail would count as writable */
    s = &tci_policy_tool(policy, "own_root")->settings;
    assert_null(s->image);
    assert_string_equal(s->rootfs, "/srv");
    tc_policy_free(policy);
}

static void test_clauses_follow_from_the_settings(void **state)
{
    struct tc_policy *policy = load_text(
        "[tool.plain]\n"
        "[tool.writes]\nfilesystem = { writable = [\"/w\"] }\n"
        "[tool.bare]\nmemory = \"unlimited\"\ncpu = \"unlimited\"\npids = \"unlimited\"\n"
        "files = \"unlimited\"\ndisk = \"unlimited\"\noutput = \"unlimited\"\n"
        "timeout = \"unlimited\"\nfilesystem = { scratch = \"0B\" }\n"
        "[tool.rules]\nnetwork = [\"a.example:1\"]\ncommands = []\ncpu_time = \"1s\"\n"
        "[tool.public]\nnetwork = \"public\"\n"
        "[tool.host]\nnetwork = \"host\"\n");
    tci_clauses plain = tci_tool_clauses(tci_policy_tool(policy, "plain"));
    tci_clauses rules = tci_tool_clauses(tci_policy_tool(policy, "rules"));
    (void)state;
#define CLAUSE(id) tci_clause_bit(TCI_CLAUSE_##id)
    assert_int_equal(plain, CLAUSE(FILESYSTEM) | CLAUSE(NETWORK_NONE) | CLAUSE(SYSCALLS) |
                                CLAUSE(MEMORY) | CLAUSE(CPU) | CLAUSE(PIDS) | CLAUSE(FILES) |
                                CLAUSE(SCRATCH) | CLAUSE(TIMEOUT) | CLAUSE(OUTPUT));
    assert_int_equal(tci_tool_clauses(tci_policy_tool(policy, "bare")),
                     CLAUSE(FILESYSTEM) | CLAUSE(NETWORK_NONE) | CLAUSE(SYSCALLS));
    assert_int_equal(tci_tool_clauses(tci_policy_tool(policy, "writes")) ^ plain, CLAUSE(DISK));
    assert_int_equal(rules ^ plain, CLAUSE(NETWORK_NONE) | CLAUSE(NETWORK_NAMES) |
                                        CLAUSE(EXEC_ALLOWLIST) | CLAUSE(CPU_TIME));
    assert_int_equal(tci_tool_clauses(tci_policy_tool(policy, "public")) ^ plain,
                     CLAUSE(NETWORK_NONE) | CLAUSE(NETWORK_PUBLIC));
    assert_int_equal(tci_tool_clauses(tci_policy_tool(policy, "host")) ^ plain,
                     CLAUSE(NETWORK_NONE) | CLAUSE(NETWORK_HOST));
    tc_policy_free(policy);
}

static void test_grant_limit_only_lowers(void **state)
{
    struct tc_policy *policy = load_text(
        "[tool.t]\nmemory = \"100MB\"\ntimeout = \"10s\"\npids = \"unlimited\"\n"
        "[agent.a]\n"
        "grants = [{ tool = \"t\", memory = \"50MB\", timeout = \"1h\", pids = 5 }]\n");
    const struct tci_tool *tool = only_tool(policy);
    const struct tci_grant *grant = tci_agent_grant(tci_policy_agent(policy, "a"), "t");
    (void)state;
    assert_int_equal(tci_effective_limit(tool, grant, TCI_KEY_MEMORY), 50000000);
    assert_int_equal(tci_effective_limit(tool, grant, TCI_KEY_TIMEOUT), 10000);
    assert_int_equal(tci_effective_limit(tool, grant, TCI_KEY_PIDS), 5);
    assert_int_equal(tci_effective_limit(tool, grant, TCI_KEY_FILES), 256);
    assert_int_equal(tci_effective_limit(tool, NULL, TCI_KEY_MEMORY), 100000000);
    tc_policy_free(policy);
}

/* ---- capabilities ----------------------------------------------------------------------------- */

static void test_capabilities_compile_to_the_plain_keys(void **state)
{
    static const char *const pairs[][2] = {
        { "capabilities = [\"fs_read\"]\nallowed_paths = [\"/data\", \"/h:/c\"]\n",
          "filesystem = { readable = [\"/data\", \"/h:/c\"] }\ncommands = []\n" },
        { "capabilities = [\"fs_write\"]\nallowed_paths = [\"/data\"]\n",
          "filesystem = { writable = [\"/data\"] }\ncommands = []\n" },
        { "capabilities = [\"fs_read\", \"fs_write\"]\nallowed_paths = [\"/data\"]\n",
          "filesystem = { writable = [\"/data\"] }\ncommands = []\n" },
        { "capabilities = [\"net_http\"]\nallowed_hosts = [\"a.example\", \"b.example:8080\"]\n",
          "network = [\"a.example:443\", \"a.example:80\", \"b.example:8080\"]\ncommands = []\n" },
        { "capabilities = [\"exec_run\"]\nallowed_commands = [\"git\", \"/bin/ls\"]\n",
          "commands = [\"git\", \"/bin/ls\"]\n" },
        { "capabilities = []\n", "commands = []\n" },
        { "capabilities = [\"fs_read\", \"fs_write\", \"net_http\", \"exec_run\"]\n",
          "network = \"none\"\nfilesystem = \"none\"\ncommands = []\n" },
        /* A list without its capability grants nothing. */
        { "allowed_paths = [\"/data\"]\nallowed_hosts = [\"a.example\"]\n"
          "allowed_commands = [\"git\"]\n",
          "commands = []\n" },
        { "capabilities = [\"fs_read\"]\nallowed_hosts = [\"a.example\"]\n", "commands = []\n" },
    };
    char a[text_max], b[text_max];
    (void)state;
    for (size_t i = 0; i < tci_array_size(pairs); i++) {
        format_text(a, "[tool.t]\n%s", pairs[i][0]);
        format_text(b, "[tool.t]\n%s", pairs[i][1]);
        assert_same_dump(a, b);
        /* The same from [defaults]. */
        format_text(a, "[defaults]\n%s[tool.t]\n", pairs[i][0]);
        assert_same_dump(a, b);
    }
}

static void test_capabilities_of_a_tool_replace_plain_defaults(void **state)
{
    (void)state;
    assert_same_dump("[defaults]\nnetwork = \"public\"\nfilesystem = { writable = [\"/w\"] }\n"
                     "commands = [\"git\"]\n[tool.t]\ncapabilities = [\"fs_read\"]\n"
                     "allowed_paths = [\"/data\"]\n",
                     "[tool.t]\nfilesystem = { readable = [\"/data\"] }\ncommands = []\n");
}

static void test_plain_keys_of_a_tool_replace_inherited_capabilities(void **state)
{
    static const char defaults[] = "[defaults]\n"
                                   "capabilities = [\"fs_read\", \"net_http\", \"exec_run\"]\n"
                                   "allowed_paths = [\"/data\"]\nallowed_hosts = [\"a.example\"]\n"
                                   "allowed_commands = [\"git\"]\n[tool.t]\n";
    char text[text_max];
    (void)state;
    format_text(text, "%snetwork = [\"b.example:22\"]\n", defaults);
    assert_same_dump(text, "[tool.t]\nnetwork = [\"b.example:22\"]\n"
                           "filesystem = { readable = [\"/data\"] }\ncommands = [\"git\"]\n");
    format_text(text, "%sfilesystem = \"none\"\ncommands = []\n", defaults);
    assert_same_dump(text, "[tool.t]\nnetwork = [\"a.example:443\", \"a.example:80\"]\n"
                           "commands = []\n");
}

static void test_tool_may_replace_one_inherited_list(void **state)
{
    (void)state;
    assert_same_dump("[defaults]\ncapabilities = [\"fs_read\", \"exec_run\"]\n"
                     "allowed_paths = [\"/data\"]\nallowed_commands = [\"git\"]\n"
                     "[tool.t]\nallowed_paths = [\"/other\"]\n",
                     "[tool.t]\nfilesystem = { readable = [\"/other\"] }\ncommands = [\"git\"]\n");
}

static void test_compiled_values_point_at_what_gave_them(void **state)
{
    struct tc_policy *policy = load_text("[defaults]\n"
                                         "capabilities = [\"fs_read\", \"net_http\"]\n"
                                         "[tool.t]\n"
                                         "allowed_paths = [\"/data\"]\n");
    const struct tci_tool *tool = only_tool(policy);
    (void)state;
    assert_int_equal(tool->source[TCI_KEY_FILESYSTEM], TCI_FROM_TOOL);
    assert_int_equal(tool->settings.pos[TCI_KEY_FILESYSTEM].line, 4);
    assert_int_equal(tool->source[TCI_KEY_NETWORK], TCI_FROM_DEFAULTS);
    assert_int_equal(tool->settings.pos[TCI_KEY_NETWORK].line, 2);
    tc_policy_free(policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_builtin_values_of_the_documentation),
        cmocka_unit_test(test_builtin_values_depend_on_the_backend),
        cmocka_unit_test(test_values_replace_inherited_ones_whole),
        cmocka_unit_test(test_tools_do_not_inherit_from_each_other),
        cmocka_unit_test(test_inherited_value_without_meaning_for_the_backend_is_dropped),
        cmocka_unit_test(test_clauses_follow_from_the_settings),
        cmocka_unit_test(test_grant_limit_only_lowers),
        cmocka_unit_test(test_capabilities_compile_to_the_plain_keys),
        cmocka_unit_test(test_capabilities_of_a_tool_replace_plain_defaults),
        cmocka_unit_test(test_plain_keys_of_a_tool_replace_inherited_capabilities),
        cmocka_unit_test(test_tool_may_replace_one_inherited_list),
        cmocka_unit_test(test_compiled_values_point_at_what_gave_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
