/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of what values mean: typed values, the example of the design, empty lists, units and
 * templates.
 */
#include "model_support.h"

#include <stdlib.h>
#include "base/buf.h"
#include "policy/limits.h"
#include "policy/template.h"
#include "policy/units.h"
#include "policy/value.h"

/* ---- typed values ----------------------------------------------------------------------------- */

static void test_limits_have_the_written_value_in_base_units(void **state)
{
    struct tc_policy *policy = load_text("[tool.t]\n"
                                         "timeout = \"1.5s\"\ncpu_time = \"2m\"\n"
                                         "memory = \"1MiB\"\ndisk = \"2GB\"\noutput = \"3kB\"\n"
                                         "cpu = 0.25\npids = 7\nfiles = \"unlimited\"\nwarm = 2\n");
    const struct tci_tool *tool = only_tool(policy);
    (void)state;
    assert_int_equal(tool->settings.timeout, 1500);
    assert_int_equal(tool->settings.cpu_time, 120000);
    assert_int_equal(tool->settings.memory, 1048576);
    assert_int_equal(tool->settings.disk, 2000000000);
    assert_int_equal(tool->settings.output, 3000);
    assert_int_equal(tool->settings.cpu, 250);
    assert_int_equal(tool->settings.pids, 7);
    assert_int_equal(tool->settings.files, TCI_UNLIMITED);
    assert_int_equal(tool->settings.warm, 2);
    for (int key = 0; key < TCI_KEY_COUNT; key++)
        assert_true(!tci_key_is_limit((enum tci_key)key) ||
                    tci_limit(&tool->settings, (enum tci_key)key) > 0);
    tc_policy_free(policy);
}

static void test_network_limits_are_kept_and_replaced_as_a_whole(void **state)
{
    struct tc_policy *policy = load_text(
        "[defaults]\nnetwork_limits = { bytes_out = \"10MB\" }\ninspect = \"strict\"\n"
        "[tool.a]\nnetwork = [\"a.example:443\"]\n"
        "[tool.b]\nnetwork_limits = { connections = 5, rate = \"2kB\" }\ninspect = \"names\"\n"
        "[agent.x]\ngrants = [{ tool = \"a\", network_limits = { bytes_in = \"1B\", "
        "connections = \"unlimited\" } }]\n");
    const struct tci_settings *s = &tci_policy_tool(policy, "a")->settings;
    (void)state;
    assert_int_equal(s->network_limits.connections, 256);
    assert_int_equal(s->network_limits.bytes_in, 0);
    assert_int_equal(s->network_limits.bytes_out, 10000000);
    assert_int_equal(s->network_limits.rate, 0);
    assert_true(s->inspect_strict);
    assert_true(tci_value_is_set(s, TCI_KEY_NETWORK_LIMITS) &&
                tci_value_is_set(s, TCI_KEY_INSPECT));
    s = &tci_policy_tool(policy, "b")->settings;
    assert_int_equal(s->network_limits.connections, 5);
    assert_int_equal(s->network_limits.bytes_out, 0);
    assert_int_equal(s->network_limits.rate, 2000);
    assert_false(s->inspect_strict);
    /* Without a network they are no part of the normal form. */
    assert_false(tci_value_is_set(s, TCI_KEY_NETWORK_LIMITS) ||
                 tci_value_is_set(s, TCI_KEY_INSPECT));
    s = tci_agent_grant(tci_policy_agent(policy, "x"), "a")->narrow;
    assert_int_equal(s->network_limits.bytes_in, 1);
    assert_int_equal(s->network_limits.connections, 0);
    assert_int_equal(s->network_limits.rate, TCI_UNLIMITED);
    tc_policy_free(policy);
}

/* Nobody would keep them. */
static void test_host_network_refuses_limits_of_the_network(void **state)
{
    static const struct {
        const char *text;
        unsigned line, column;
    } cases[] = {
        { "[tool.t]\nnetwork = \"host\"\nnetwork_limits = { rate = \"1MB\" }\n", 3, 18 },
        { "[tool.t]\ninspect = \"strict\"\nnetwork = \"host\"\n", 2, 11 },
        { "[defaults]\nnetwork = \"host\"\ninspect = \"names\"\n", 3, 11 },
        { "[defaults]\nnetwork = \"host\"\n[tool.t]\ninspect = \"names\"\n", 4, 11 },
        { "[tool.t]\nnetwork = \"host\"\n[agent.a]\n"
          "grants = [{ tool = \"t\", inspect = \"strict\" }]\n",
          4, 35 },
        { "[tool.t]\nnetwork = \"host\"\n[agent.a]\n"
          "grants = [{ tool = \"t\", network = \"host\", network_limits = {} }]\n",
          4, 60 },
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++)
        assert_one_error(cases[i].text, "TC-P019", cases[i].line, cases[i].column);
    /* Where the grant takes the host's network away, somebody does. */
    tc_policy_free(load_text("[tool.t]\nnetwork = \"host\"\n[agent.a]\n"
                             "grants = [{ tool = \"t\", network = [\"a.example:1\"], "
                             "network_limits = { rate = \"1kB\" } }]\n"));
    /* What [defaults] says about other tools is no mistake; lint mentions it. */
    tc_policy_free(load_text("[defaults]\ninspect = \"strict\"\n"
                             "[tool.t]\nnetwork = \"host\"\n"));
}

static void test_path_rules_keep_source_place_and_spelling(void **state)
{
    struct tc_policy *policy = load_text(
        "[tool.t]\n"
        "filesystem = { readable = [\"data/./x\", \"/h:/c\"],\n"
        "               writable = [{ host = \"~/w\", cage = \"/w\", optional = true }],\n"
        "               hidden = [\"/c/secret\"], scratch = \"1MB\" }\n");
    const struct tci_filesystem *fs = &only_tool(policy)->settings.filesystem;
    (void)state;
    assert_int_equal(fs->count, 4);
    /* In the order of precedence: hidden, readable, writable. */
    assert_int_equal(fs->rules[0].access, TCI_ACCESS_HIDDEN);
    assert_null(fs->rules[0].host);
    assert_string_equal(fs->rules[0].cage, "/c/secret");
    assert_int_equal(fs->rules[0].pos.line, 4);
    assert_int_equal(fs->rules[1].access, TCI_ACCESS_READABLE);
    assert_string_equal(fs->rules[1].host, "/policy/data/x");
    assert_string_equal(fs->rules[1].cage, "/policy/data/x");
    assert_string_equal(fs->rules[1].as_given, "data/./x");
    assert_string_equal(fs->rules[2].host, "/h");
    assert_string_equal(fs->rules[2].cage, "/c");
    assert_string_equal(fs->rules[2].as_given, "/h:/c");
    assert_int_equal(fs->rules[2].pos.line, 2);
    assert_int_equal(fs->rules[2].pos.column, 40);
    assert_int_equal(fs->rules[3].access, TCI_ACCESS_WRITABLE);
    assert_string_equal(fs->rules[3].host, "/policy/~/w"); /* never expanded */
    assert_string_equal(fs->rules[3].as_given, "~/w");
    assert_true(fs->rules[3].optional);
    assert_int_equal(fs->scratch, 1000000);
    assert_null(fs->cwd);
    tc_policy_free(policy);
}

static void test_backend_has_all_its_names(void **state)
{
    static const struct {
        const char *name;
        enum tci_backend_kind kind;
    } names[] = {
        { "process", TCI_BACKEND_PROCESS },
        { "L1", TCI_BACKEND_PROCESS },
        { "L1_PROCESS", TCI_BACKEND_PROCESS },
        { "jail", TCI_BACKEND_JAIL },
        { "L2", TCI_BACKEND_JAIL },
        { "L2_CHROOT", TCI_BACKEND_JAIL },
        { "oci", TCI_BACKEND_OCI },
        { "L3", TCI_BACKEND_OCI },
        { "L3_DOCKER", TCI_BACKEND_OCI },
        { "gvisor", TCI_BACKEND_GVISOR },
        { "wasm", TCI_BACKEND_WASM },
        { "microvm", TCI_BACKEND_MICROVM },
        { "firecracker", TCI_BACKEND_MICROVM },
    };
    static const char *const keys[] = { "backend", "isolation" };
    char text[text_max];
    (void)state;
    for (size_t i = 0; i < tci_array_size(names); i++) {
        for (size_t k = 0; k < tci_array_size(keys); k++) {
            struct tc_policy *policy;
            format_text(text, "[tool.t]\n%s = \"%s\"\n", keys[k], names[i].name);
            policy = load_text(text);
            assert_int_equal(only_tool(policy)->settings.backend, names[i].kind);
            tc_policy_free(policy);
        }
        assert_non_null(tci_backend_kind_spelling(i));
    }
    assert_null(tci_backend_kind_spelling(tci_array_size(names)));
    assert_one_error("[tool.t]\nbackend = \"jail\"\nisolation = \"jail\"\n", "TC-P018", 3, 1);
}

/* ---- the example of the design ---------------------------------------------------------------- */

static const char three_tools[] =
    "version = 1\n"
    "\n"
    "[defaults]                       # every tool starts from here; unset keys have the built-in"
    " values below\n"
    "backend = \"jail\"\n"
    "timeout = \"30s\"\n"
    "memory  = \"256MB\"\n"
    "\n"
    "[tool.web_fetch]\n"
    "description = \"Fetch one page of the example API\"\n"
    "backend     = \"oci\"\n"
    "network     = [\"allowlist:api.example.com:443\"]\n"
    "filesystem  = \"none\"\n"
    "timeout     = \"30s\"\n"
    "memory      = \"128MB\"\n"
    "command     = [\"curl\", \"-sS\", \"--\", \"{url}\"]\n"
    "parameters  = { type = \"object\", required = [\"url\"], properties = { url = { type = "
    "\"string\" } } }\n"
    "\n"
    "[tool.code_execute]\n"
    "backend    = \"gvisor\"\n"
    "network    = \"none\"\n"
    "filesystem = { writable = [\"/workspace\"], readable = [\"/data\"] }\n"
    "timeout    = \"60s\"\n"
    "memory     = \"512MB\"\n"
    "\n"
    "[tool.file_edit]\n"
    "backend    = \"wasm\"\n"
    "filesystem = { writable = [\"/workspace/project\"] }\n"
    "network    = \"none\"\n"
    "timeout    = \"10s\"\n"
    "\n"
    "[agent.researcher]\n"
    "grants = [\"web_fetch\", { tool = \"code_execute\", network = false, max_calls = 20, expires "
    "= "
    "\"2027-01-01\" }]\n";

static void check_code_execute(const struct tci_settings *s)
{
    assert_int_equal(s->backend, TCI_BACKEND_GVISOR);
    assert_int_equal(s->network.mode, TCI_NETWORK_NONE);
    assert_int_equal(s->timeout, 60000);
    assert_int_equal(s->memory, 512000000);
    assert_int_equal(s->filesystem.count, 2);
    assert_string_equal(s->filesystem.rules[0].cage, "/data");
    assert_int_equal(s->filesystem.rules[0].access, TCI_ACCESS_READABLE);
    assert_string_equal(s->filesystem.rules[1].cage, "/workspace");
    assert_int_equal(s->filesystem.rules[1].access, TCI_ACCESS_WRITABLE);
    assert_int_equal(s->command.count, 0);
}

static void check_researcher(const struct tc_policy *policy)
{
    const struct tci_agent *agent = tci_policy_agent(policy, "researcher");
    const struct tci_grant *grant;
    assert_non_null(agent);
    assert_int_equal(agent->grant_count, 2);
    grant = tci_agent_grant(agent, "web_fetch");
    assert_non_null(grant);
    assert_false(grant->has_expiry || grant->has_max_calls || grant->narrow->present);
    grant = tci_agent_grant(agent, "code_execute");
    assert_non_null(grant);
    assert_int_equal(grant->narrow->present, tci_key_bit(TCI_KEY_NETWORK));
    assert_int_equal(grant->narrow->network.mode, TCI_NETWORK_NONE);
    assert_true(grant->has_max_calls && grant->has_expiry);
    assert_int_equal(grant->max_calls, 20);
    assert_int_equal(grant->expires, 1798761600);
    assert_null(tci_agent_grant(agent, "file_edit"));
    assert_null(tci_policy_agent(policy, "someone"));
}

static void test_three_tools_of_the_design_load_unchanged(void **state)
{
    struct tc_policy *policy = load_text(three_tools);
    const struct tci_settings *s;
    char *value;
    (void)state;
    assert_true(policy->has_version);
    assert_int_equal(policy->tool_count, 3);
    assert_string_equal(policy->tools[0].name, "web_fetch");
    assert_int_equal(policy->tools[0].pos.line, 8);
    s = &tci_policy_tool(policy, "web_fetch")->settings;
    assert_int_equal(s->backend, TCI_BACKEND_OCI);
    assert_string_equal(s->description, "Fetch one page of the example API");
    assert_int_equal(s->network.mode, TCI_NETWORK_RULES);
    assert_int_equal(s->network.count, 1);
    value = written(tci_policy_tool(policy, "web_fetch"), TCI_KEY_NETWORK);
    assert_string_equal(value, "[\"api.example.com:443\"]");
    free(value);
    assert_int_equal(s->filesystem.count, 0);
    assert_int_equal(s->filesystem.scratch, 64000000);
    assert_int_equal(s->memory, 128000000);
    assert_int_equal(s->command.count, 4);
    assert_string_equal(s->command.items[3].text, "{url}");
    assert_string_equal(s->parameters.json, "{\"properties\":{\"url\":{\"type\":\"string\"}},"
                                            "\"required\":[\"url\"],\"type\":\"object\"}");
    assert_string_equal(s->image, "toolcage/tool-sandbox");
    check_code_execute(&tci_policy_tool(policy, "code_execute")->settings);
    s = &tci_policy_tool(policy, "file_edit")->settings;
    assert_int_equal(s->backend, TCI_BACKEND_WASM);
    assert_int_equal(s->timeout, 10000);
    assert_int_equal(s->memory, 256000000); /* from [defaults] */
    assert_int_equal(tci_policy_tool(policy, "file_edit")->source[TCI_KEY_MEMORY],
                     TCI_FROM_DEFAULTS);
    assert_null(s->image);
    check_researcher(policy);
    tc_policy_free(policy);
}

/* ---- an empty list ---------------------------------------------------------------------------- */

/* Everything that could be taken for "no restriction" when its list is empty. */
static void test_empty_allowlist_grants_nothing(void **state)
{
    static const char *const empty[] = {
        "network = []\nfilesystem = { readable = [], writable = [], hidden = [] }\n"
        "commands = []\nenv = {}\nenv_pass = []\noutputs = []\n",
        "filesystem = {}\nnetwork = []\ncommands = []\noutputs = { globs = [] }\n",
        "capabilities = []\nallowed_paths = []\nallowed_hosts = []\nallowed_commands = []\n",
        "capabilities = [\"fs_read\", \"fs_write\", \"net_http\", \"exec_run\"]\n"
        "allowed_paths = []\nallowed_hosts = []\nallowed_commands = []\n",
        "capabilities = [\"fs_read\", \"fs_write\", \"net_http\", \"exec_run\"]\n",
        "allowed_hosts = []\n",
    };
    char text[text_max];
    (void)state;
    for (size_t i = 0; i < tci_array_size(empty) * 2; i++) {
        struct tc_policy *policy;
        const struct tci_settings *s;
        struct tc_decision d;
        format_text(text, i % 2 ? "[defaults]\n%s[tool.t]\n" : "[tool.t]\n%s", empty[i / 2]);
        policy = load_text(text);
        s = &only_tool(policy)->settings;
        assert_int_equal(s->network.mode, TCI_NETWORK_NONE);
        assert_int_equal(s->network.count, 0);
        assert_int_equal(s->filesystem.count, 0);
        assert_false(s->commands.any);
        assert_int_equal(s->commands.list.count, 0);
        assert_true(tci_tool_clauses(only_tool(policy)) & tci_clause_bit(TCI_CLAUSE_NETWORK_NONE));
        assert_true(tci_tool_clauses(only_tool(policy)) &
                    tci_clause_bit(TCI_CLAUSE_EXEC_ALLOWLIST));
        tc_decide_network(policy, NULL, "t", "a.example", 443, &d);
        assert_false(d.allowed);
        tc_decide_network(policy, NULL, "t", "127.0.0.1", 80, &d);
        assert_false(d.allowed);
        tc_decide_path(policy, NULL, "t", "/data", TC_ACCESS_READ, &d);
        assert_false(d.allowed);
        tc_decide_path(policy, NULL, "t", "/", TC_ACCESS_READ, &d);
        assert_false(d.allowed);
        tc_policy_free(policy);
    }
}

static void test_empty_list_in_a_grant_takes_everything_away(void **state)
{
    struct tc_policy *policy = load_text(
        "[tool.t]\nnetwork = \"host\"\nfilesystem = { writable = [\"/w\"] }\n"
        "[agent.a]\ngrants = [{ tool = \"t\", network = [], filesystem = {} }]\n"
        "[agent.none]\ngrants = []\n[agent.blank]\n");
    struct tc_decision d;
    (void)state;
    tc_decide_network(policy, NULL, "t", "a.example", 443, &d);
    assert_true(d.allowed);
    tc_decide_network(policy, "a", "t", "a.example", 443, &d);
    assert_false(d.allowed);
    tc_decide_path(policy, "a", "t", "/w/x", TC_ACCESS_READ, &d);
    assert_false(d.allowed);
    tc_decide_call(policy, "none", "t", 0, 0, &d);
    assert_false(d.allowed);
    tc_decide_call(policy, "blank", "t", 0, 0, &d);
    assert_false(d.allowed);
    tc_policy_free(policy);
}

/* ---- units ------------------------------------------------------------------------------------ */

static void test_sizes(void **state)
{
    static const struct {
        const char *text;
        enum tci_unit_problem problem;
        uint64_t bytes;
    } cases[] = {
        { "0B", TCI_UNIT_OK, 0 },
        { "1B", TCI_UNIT_OK, 1 },
        { "1kB", TCI_UNIT_OK, 1000 },
        { "1KB", TCI_UNIT_OK, 1000 },
        { "1KiB", TCI_UNIT_OK, 1024 },
        { "128MB", TCI_UNIT_OK, 128000000 },
        { "128 MB", TCI_UNIT_OK, 128000000 },
        { "128MiB", TCI_UNIT_OK, 134217728 },
        { "2GB", TCI_UNIT_OK, 2000000000 },
        { "2GiB", TCI_UNIT_OK, 2147483648 },
        { "3TB", TCI_UNIT_OK, 3000000000000 },
        { "3TiB", TCI_UNIT_OK, 3298534883328 },
        { "1.5kB", TCI_UNIT_OK, 1500 },
        { "0.5KiB", TCI_UNIT_OK, 512 },
        { "1.0B", TCI_UNIT_OK, 1 },
        { "007MB", TCI_UNIT_OK, 7000000 },
        { "1.123456789TB", TCI_UNIT_OK, 1123456789000 },
        { "0.500000000TiB", TCI_UNIT_OK, 549755813888 },
        { "18446744073709551614B", TCI_UNIT_OK, UINT64_MAX - 1 },
        { "16777215TiB", TCI_UNIT_OK, 16777215ULL << 40 },
        { "18446744073709551615B", TCI_UNIT_TOO_LARGE, 0 }, /* that is "unlimited" */
        { "18446744073709551616B", TCI_UNIT_TOO_LARGE, 0 },
        { "99999999999999999999B", TCI_UNIT_TOO_LARGE, 0 },
        { "16777216TiB", TCI_UNIT_TOO_LARGE, 0 },
        { "18446744073709551614.5kB", TCI_UNIT_TOO_LARGE, 0 },
        { "0.5B", TCI_UNIT_FRACTION, 0 },
        { "0.0001kB", TCI_UNIT_FRACTION, 0 },
        { "0.123456789TiB", TCI_UNIT_FRACTION, 0 },
        { "1.0000000001GB", TCI_UNIT_FRACTION, 0 },
        { "", TCI_UNIT_NO_NUMBER, 0 },
        { "MB", TCI_UNIT_NO_NUMBER, 0 },
        { " 1MB", TCI_UNIT_NO_NUMBER, 0 },
        { "-1MB", TCI_UNIT_NO_NUMBER, 0 },
        { "+1MB", TCI_UNIT_NO_NUMBER, 0 },
        { ".5MB", TCI_UNIT_NO_NUMBER, 0 },
        { "\xd9\xa1MB", TCI_UNIT_NO_NUMBER, 0 },
        { "128", TCI_UNIT_NO_UNIT, 0 },
        { "128 ", TCI_UNIT_NO_UNIT, 0 },
        { "1.5", TCI_UNIT_NO_UNIT, 0 },
        { "128mb", TCI_UNIT_UNKNOWN, 0 },
        { "128M", TCI_UNIT_UNKNOWN, 0 },
        { "128K", TCI_UNIT_UNKNOWN, 0 },
        { "128MBs", TCI_UNIT_UNKNOWN, 0 },
        { "128 parsecs", TCI_UNIT_UNKNOWN, 0 },
        { "128  MB", TCI_UNIT_UNKNOWN, 0 },
        { "128MB ", TCI_UNIT_UNKNOWN, 0 },
        { "1,5MB", TCI_UNIT_UNKNOWN, 0 },
        { "1.MB", TCI_UNIT_UNKNOWN, 0 },
        { "1e3MB", TCI_UNIT_UNKNOWN, 0 },
        { "0x10MB", TCI_UNIT_UNKNOWN, 0 },
        { "1_000MB", TCI_UNIT_UNKNOWN, 0 },
        { "1s", TCI_UNIT_UNKNOWN, 0 },
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        uint64_t bytes = 0;
        enum tci_unit_problem problem = tci_size_parse(cases[i].text, strlen(cases[i].text),
                                                       &bytes);
        if (problem != cases[i].problem || (problem == TCI_UNIT_OK && bytes != cases[i].bytes))
            fail_msg("\"%s\": problem %d, %llu bytes", cases[i].text, (int)problem,
                     (unsigned long long)bytes);
    }
    uint64_t bytes;
    assert_int_equal(tci_size_parse("1MB\0", 4, &bytes), TCI_UNIT_UNKNOWN);
    assert_int_equal(tci_size_parse("1\0MB", 4, &bytes), TCI_UNIT_UNKNOWN);
}

static void test_durations(void **state)
{
    static const struct {
        const char *text;
        enum tci_unit_problem problem;
        uint64_t ms;
    } cases[] = {
        { "500ms", TCI_UNIT_OK, 500 },
        { "30s", TCI_UNIT_OK, 30000 },
        { "2m", TCI_UNIT_OK, 120000 },
        { "1.5h", TCI_UNIT_OK, 5400000 },
        { "0.001s", TCI_UNIT_OK, 1 },
        { "0.25m", TCI_UNIT_OK, 15000 },
        { "0s", TCI_UNIT_OK, 0 },
        { "5124095576030h", TCI_UNIT_OK, 5124095576030ULL * 3600000 },
        { "0.0001s", TCI_UNIT_FRACTION, 0 },
        { "0.1ms", TCI_UNIT_FRACTION, 0 },
        { "5124095576031h", TCI_UNIT_TOO_LARGE, 0 },
        { "30", TCI_UNIT_NO_UNIT, 0 },
        { "s", TCI_UNIT_NO_NUMBER, 0 },
        { "1d", TCI_UNIT_UNKNOWN, 0 },
        { "1us", TCI_UNIT_UNKNOWN, 0 },
        { "1min", TCI_UNIT_UNKNOWN, 0 },
        { "1S", TCI_UNIT_UNKNOWN, 0 },
        { "1M", TCI_UNIT_UNKNOWN, 0 },
        { "1h30m", TCI_UNIT_UNKNOWN, 0 },
        { "1MB", TCI_UNIT_UNKNOWN, 0 },
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        uint64_t ms = 0;
        enum tci_unit_problem problem = tci_duration_parse(cases[i].text, strlen(cases[i].text),
                                                           &ms);
        if (problem != cases[i].problem || (problem == TCI_UNIT_OK && ms != cases[i].ms))
            fail_msg("\"%s\": problem %d, %llu ms", cases[i].text, (int)problem,
                     (unsigned long long)ms);
    }
}

static void test_formatted_units_parse_to_themselves(void **state)
{
    static const uint64_t steps[] = { 1, 1000, 1024, 3600000, 1000000, 1048576, 999999937 };
    char text[TCI_UNIT_TEXT_MAX];
    uint64_t read = 1;
    (void)state;
    for (size_t s = 0; s < tci_array_size(steps); s++) {
        for (uint64_t n = 0; n < 3000; n++) {
            uint64_t value = n * steps[s];
            tci_size_format(value, text);
            assert_int_equal(tci_size_parse(text, strlen(text), &read), TCI_UNIT_OK);
            assert_int_equal(read, value);
            tci_duration_format(value, text);
            assert_int_equal(tci_duration_parse(text, strlen(text), &read), TCI_UNIT_OK);
            assert_int_equal(read, value);
        }
    }
    assert_string_equal(tci_size_format(0, text), "0B");
    assert_string_equal(tci_size_format(1048576, text), "1MiB");
    assert_string_equal(tci_size_format(1000000, text), "1MB");
    assert_string_equal(tci_size_format(UINT64_MAX - 1, text), "18446744073709551614B");
    assert_string_equal(tci_duration_format(0, text), "0ms");
    assert_string_equal(tci_duration_format(7200000, text), "2h");
    assert_string_equal(tci_duration_format(90000, text), "90s");
}

/* ---- templates -------------------------------------------------------------------------------- */

/* Parts joined as "text|<name>|<name...>", or "!" where the text is malformed. */
static void assert_parts(const char *text, const char *expected)
{
    struct tci_buf buf = TCI_BUF_INIT(1000);
    struct tci_template_part part;
    const char *cursor = text;
    char *joined;
    int r;
    while ((r = tci_template_next(&cursor, &part)) > 0) {
        assert_true(part.length > 0);
        tci_buf_string(&buf, buf.length ? "|" : "");
        tci_buf_printf(&buf, part.is_placeholder ? "<%.*s%s>" : "%.*s%s", (int)part.length,
                       part.text, part.is_list ? "..." : "");
    }
    tci_buf_string(&buf, r < 0 ? "!" : "");
    joined = tci_buf_take(&buf, NULL);
    assert_non_null(joined);
    assert_string_equal(joined, expected);
    free(joined);
}

static void test_templates_are_cut_into_parts(void **state)
{
    (void)state;
    assert_parts("", "");
    assert_parts("plain", "plain");
    assert_parts("{url}", "<url>");
    assert_parts("https://{host}/{path_2}?x", "https://|<host>|/|<path_2>|?x");
    assert_parts("{a}{b}", "<a>|<b>");
    assert_parts("{files...}", "<files...>");
    assert_parts("{a-b}", "<a-b>");
    assert_parts("{_}", "<_>");
    assert_parts("{{", "{");
    assert_parts("}}", "}");
    assert_parts("{{x}}", "{|x|}");
    assert_parts("{{{x}}}", "{|<x>|}");
    assert_parts("${HOME}", "$|<HOME>");
    assert_parts("{", "!");
    assert_parts("}", "!");
    assert_parts("a{", "a!");
    assert_parts("a}b", "a!");
    assert_parts("{}", "!");
    assert_parts("{x", "!");
    assert_parts("{x y}", "!");
    assert_parts("{ x}", "!");
    assert_parts("{1x}", "!");
    assert_parts("{-x}", "!");
    assert_parts("{x.}", "!");
    assert_parts("{x..}", "!");
    assert_parts("{x....}", "!");
    assert_parts("{...}", "!");
    assert_parts("{x.y}", "!");
    assert_parts("{caf\xc3\xa9}", "!");
    assert_parts("{x{y}}", "!");
    assert_parts("{{x}", "{|x!");
    assert_parts("{x}}", "<x>!");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits_have_the_written_value_in_base_units),
        cmocka_unit_test(test_network_limits_are_kept_and_replaced_as_a_whole),
        cmocka_unit_test(test_host_network_refuses_limits_of_the_network),
        cmocka_unit_test(test_path_rules_keep_source_place_and_spelling),
        cmocka_unit_test(test_backend_has_all_its_names),
        cmocka_unit_test(test_three_tools_of_the_design_load_unchanged),
        cmocka_unit_test(test_empty_allowlist_grants_nothing),
        cmocka_unit_test(test_empty_list_in_a_grant_takes_everything_away),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_formatted_units_parse_to_themselves),
        cmocka_unit_test(test_templates_are_cut_into_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
