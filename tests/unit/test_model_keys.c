/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of every key with good and bad values, alone and inherited. Tables are checked
 * against keys.def, so that a new key without a test fails here.
 */
#include "model_support.h"

#include <stdlib.h>

static enum tci_key key_of(const char *name)
{
    for (int key = 0; key < TCI_KEY_COUNT; key++)
        if (strcmp(tci_key_name((enum tci_key)key), name) == 0)
            return (enum tci_key)key;
    fail_msg("there is no key %s", name);
    return TCI_KEY_COUNT;
}

/* Lines that a key needs before it. */
static const char *needed_before(const char *key)
{
    if (strcmp(key, "container") == 0 || strcmp(key, "image") == 0)
        return "backend = \"oci\"\n";
    return "";
}

/* ---- every key -------------------------------------------------------------------------------- */

static const struct {
    const char *key, *value, *normal; /* normal NULL: the same text */
} good[] = {
    { "description", "\"Fetch a page\"", NULL },
    { "description", "\"\"", NULL },
    { "description", "\"tab\\tand \\u001b \xc3\xa9\"", "\"tab\\tand \\u001b \xc3\xa9\"" },
    { "description", "'''two\nlines'''", "\"two\\nlines\"" },
    { "backend", "\"process\"", NULL },
    { "backend", "\"wasm\"", NULL },
    { "backend", "\"L3_DOCKER\"", "\"oci\"" },
    { "network", "\"none\"", NULL },
    { "network", "\"public\"", NULL },
    { "network", "\"bridge\"", "\"public\"" },
    { "network", "\"host\"", NULL },
    { "network", "[]", "\"none\"" },
    { "network", "[\"allowlist:API.Example.com.:443\", \"*.b.example:80-90\"]",
      "[\"api.example.com:443\", \"*.b.example:80-90\"]" },
    { "network", "[\"deny:10.0.0.0/8:*\", \"[2001:DB8::1]:22\"]",
      "[\"deny:10.0.0.0/8:*\", \"[2001:db8::1]:22\"]" },
    { "network", "[\"a.example:443\", \"allowlist:A.example:443\"]", "[\"a.example:443\"]" },
    { "allow_host_network", "true", NULL },
    { "network_limits", "{}", "{ connections = 256 }" },
    { "network_limits", "{ connections = 1 }", NULL },
    { "network_limits",
      "{ rate = \"1.5kB\", bytes_out = \"10 MB\", bytes_in = \"1GiB\", connections = 100 }",
      "{ connections = 100, bytes_in = \"1GiB\", bytes_out = \"10MB\", rate = \"1500B\" }" },
    { "network_limits", "{ connections = \"unlimited\", bytes_in = \"unlimited\" }",
      "{ connections = \"unlimited\" }" },
    { "inspect", "\"names\"", NULL },
    { "inspect", "\"strict\"", NULL },
    { "filesystem", "\"none\"", "{ scratch = \"64MB\" }" },
    { "filesystem", "{}", "{ scratch = \"64MB\" }" },
    { "filesystem", "{ scratch = \"0B\" }", NULL },
    { "filesystem",
      "{ writable = [\"/w/\", \"rel/./x\"], readable = [\"/r\"], hidden = [\"/w/h\"] }",
      "{ readable = [\"/r\"], writable = [\"/w\", \"/policy/rel/x\"], hidden = [\"/w/h\"], "
      "scratch = \"64MB\" }" },
    { "filesystem",
      "{ readable = [\"/h:/c\", { host = \"/o\", optional = true }], cwd = \"/c/d\" }",
      "{ readable = [{ host = \"/h\", cage = \"/c\" }, "
      "{ host = \"/o\", cage = \"/o\", optional = true }], scratch = \"64MB\", cwd = \"/c/d\" }" },
    { "filesystem", "{ readable = [{ host = \"/a:b\" }] }",
      "{ readable = [{ host = \"/a:b\", cage = \"/a:b\" }], scratch = \"64MB\" }" },
    { "filesystem", "{ cwd = \"/tmp/x\", scratch = \"1.5MB\" }",
      "{ scratch = \"1500kB\", cwd = \"/tmp/x\" }" },
    { "system", "false", NULL },
    { "rootfs", "\"/srv/root/\"", "\"/srv/root\"" },
    { "rootfs", "\"../root\"", "\"/root\"" },
    { "image", "\"debian:12\"", NULL },
    { "image", "\"registry.example:5000/a/b@sha256:00ff\"", NULL },
    { "timeout", "\"500ms\"", NULL },
    { "timeout", "\"90s\"", NULL },
    { "timeout", "\"120s\"", "\"2m\"" },
    { "timeout", "\"unlimited\"", NULL },
    { "memory", "\"128MB\"", NULL },
    { "memory", "\"128MiB\"", NULL },
    { "memory", "\"1B\"", NULL },
    { "memory", "\"unlimited\"", NULL },
    { "cpu", "0.5", NULL },
    { "cpu", "2", NULL },
    { "cpu", "2.0", "2" },
    { "cpu", "0.001", NULL },
    { "cpu", "100000", NULL },
    { "cpu", "\"unlimited\"", NULL },
    { "cpu_time", "\"10s\"", NULL },
    { "cpu_time", "\"unlimited\"", NULL },
    { "pids", "1", NULL },
    { "pids", "2147483647", NULL },
    { "pids", "\"unlimited\"", NULL },
    { "files", "16", NULL },
    { "files", "\"unlimited\"", NULL },
    { "disk", "\"1GiB\"", NULL },
    { "output", "\"64kB\"", NULL },
    { "syscalls", "\"strict\"", NULL },
    { "syscalls", "{}", "\"default\"" },
    { "syscalls", "{ profile = \"pure\", allow = [\"openat\"], deny = [\"ptrace\", \"bpf\"] }",
      NULL },
    { "commands", "[\"git\", \"/usr/bin/../bin/python3\"]", "[\"git\", \"/usr/bin/python3\"]" },
    { "commands", "[]", NULL },
    { "capabilities", "[\"exec_run\", \"fs_read\", \"fs_read\"]", "[\"fs_read\", \"exec_run\"]" },
    { "capabilities", "[]", NULL },
    { "allowed_paths", "[\"/data\", \"/h:/c\"]", "[\"/data\", { host = \"/h\", cage = \"/c\" }]" },
    { "allowed_hosts", "[\"a.example\", \"b.example:8080\"]",
      "[\"a.example:443\", \"a.example:80\", \"b.example:8080\"]" },
    { "allowed_commands", "[\"git\"]", NULL },
    { "env", "{ A = \"1\", _b2 = \"two words\", EMPTY = \"\" }", NULL },
    { "env_pass", "[\"LANG\", \"TERM\"]", NULL },
    { "command", "[\"curl\", \"--\", \"{url}\"]", NULL },
    { "command", "[\"ls\", \"\", \"{{x}}\", \"{files...}\"]", NULL },
    { "parameters", "{ type = \"object\", properties = { b = {}, a = { minimum = 1.50 } } }",
      "'{\"properties\":{\"a\":{\"minimum\":1.5},\"b\":{}},\"type\":\"object\"}'" },
    { "parameters", "' {\"b\":null, \"a\":[1E2]}'", "'{\"a\":[100],\"b\":null}'" },
    { "parameters", "{ const = \"it's\" }", "\"{\\\"const\\\":\\\"it's\\\"}\"" },
    { "parameters", "{ maximum = 1e19 }", "'{\"maximum\":10000000000000000000}'" },
    { "parameters", "true", NULL },
    { "returns", "false", NULL },
    { "returns", "{ type = \"string\" }", "'{\"type\":\"string\"}'" },
    { "outputs", "[\"/workspace/*.png\"]",
      "{ globs = [\"/workspace/*.png\"], max_file = \"10MB\", max_files = 32 }" },
    { "outputs", "{ globs = [\"/a/**\"], max_file = \"unlimited\", max_files = 1 }", NULL },
    { "container", "{}",
      "{ cap_drop = [\"ALL\"], cap_add = [], read_only_rootfs = true, no_new_privileges = true }" },
    { "container",
      "{ engine = \"podman\", runtime = \"crun\", user = \"1000:1000\", cap_drop = [], "
      "cap_add = [\"cap_net_raw\", \"CHOWN\"], read_only_rootfs = false, "
      "no_new_privileges = false }",
      "{ engine = \"podman\", runtime = \"crun\", user = \"1000:1000\", cap_drop = [], "
      "cap_add = [\"NET_RAW\", \"CHOWN\"], read_only_rootfs = false, "
      "no_new_privileges = false }" },
    { "mcp", "{}", "{ message = \"4MB\", rate = 600, calls = 16 }" },
    { "mcp",
      "{ tools = [\"read_*\"], features = [\"roots\", \"sampling\"], message = \"1MiB\", "
      "rate = \"unlimited\", calls = 1024, pin = \"p.json\" }",
      "{ tools = [\"read_*\"], features = [\"sampling\", \"roots\"], message = \"1MiB\", "
      "rate = \"unlimited\", calls = 1024, pin = \"/policy/p.json\" }" },
    { "mcp", "{ tools = [], features = [] }",
      "{ tools = [], features = [], message = \"4MB\", rate = 600, calls = 16 }" },
    { "record", "true", NULL },
    { "record", "false", NULL },
    { "record", "\"hash-only\"", NULL },
    { "redact", "[]", "[]" },
    { "redact", "[\"/token\", \"/a/b/0\", \"/a~1b/~0c\", \"/\"]", NULL },
    { "approval", "\"never\"", NULL },
    { "approval", "\"ask\"", NULL },
    { "approval_timeout", "\"90s\"", NULL },
    { "approval_timeout", "\"1.5 h\"", "\"90m\"" },
    { "builtin", "\"read_file\"", NULL },
    { "builtin", "\"bash\"", NULL },
    { "warm", "0", NULL },
    { "warm", "3", NULL },
};

static void check_good(size_t i, const char *text, enum tci_origin source, unsigned line)
{
    enum tci_key key = key_of(good[i].key);
    struct tc_policy *policy = load_text(text);
    const struct tci_tool *tool = only_tool(policy);
    char *value = written(tool, key);
    assert_string_equal(value, good[i].normal ? good[i].normal : good[i].value);
    assert_int_equal(tool->source[key], source);
    assert_int_equal(tool->settings.pos[key].line, line);
    assert_int_equal(tool->settings.pos[key].column, strlen(good[i].key) + 4);
    free(value);
    tc_policy_free(policy);
}

static void test_every_key_takes_its_good_values(void **state)
{
    char text[text_max];
    (void)state;
    for (size_t i = 0; i < tci_array_size(good); i++) {
        const char *before = needed_before(good[i].key);
        format_text(text, "[tool.t]\n%s%s = %s\n", before, good[i].key, good[i].value);
        check_good(i, text, TCI_FROM_TOOL, *before ? 3 : 2);
    }
}

static void test_every_key_is_inherited_from_defaults(void **state)
{
    char text[text_max];
    (void)state;
    for (size_t i = 0; i < tci_array_size(good); i++) {
        const char *before = needed_before(good[i].key);
        if (!(tci_key_where(key_of(good[i].key)) & TCI_IN_DEFAULTS))
            continue;
        format_text(text, "[defaults]\n%s%s = %s\n[tool.t]\n", before, good[i].key, good[i].value);
        check_good(i, text, TCI_FROM_DEFAULTS, *before ? 3 : 2);
    }
}

/* For each key, the table's first value is overridden by each of its other ones. */
static void test_tool_beats_defaults_for_every_key(void **state)
{
    char text[text_max];
    (void)state;
    for (size_t i = 1; i < tci_array_size(good); i++) {
        const char *before = needed_before(good[i].key);
        if (strcmp(good[i - 1].key, good[i].key) != 0 ||
            !(tci_key_where(key_of(good[i].key)) & TCI_IN_DEFAULTS))
            continue;
        format_text(text, "[defaults]\n%s%s = %s\n[tool.t]\n%s = %s\n", before, good[i].key,
                    good[i - 1].value, good[i].key, good[i].value);
        check_good(i, text, TCI_FROM_TOOL, *before ? 5 : 4);
    }
}

static void test_good_table_covers_every_key(void **state)
{
    (void)state;
    for (int key = 0; key < TCI_KEY_COUNT; key++) {
        bool found = false;
        for (size_t i = 0; i < tci_array_size(good); i++)
            found |= key_of(good[i].key) == (enum tci_key)key;
        if (!found)
            fail_msg("no good value for %s", tci_key_name((enum tci_key)key));
    }
}

static const struct {
    const char *key, *value, *id;
    unsigned offset; /* of the mistake from the value's first character */
} bad[] = {
    { "description", "1", "TC-P012", 0 },
    { "description", "[\"a\"]", "TC-P012", 0 },
    { "description", "\"a\\u0000b\"", "TC-P017", 0 },
    { "backend", "1", "TC-P012", 0 },
    { "backend", "\"docker\"", "TC-P013", 0 },
    { "backend", "\"Jail\"", "TC-P013", 0 },
    { "backend", "\"\"", "TC-P013", 0 },
    { "backend", "\"jail\\u0000\"", "TC-P013", 0 },
    { "network", "1", "TC-P012", 0 },
    { "network", "true", "TC-P012", 0 },
    { "network", "false", "TC-P012", 0 },
    { "network", "\"all\"", "TC-P013", 0 },
    { "network", "\"api.example.com:443\"", "TC-P012", 0 },
    { "network", "[1]", "TC-P012", 1 },
    { "network", "[\"x\"]", "TC-P020", 1 },
    { "network", "[\"a.example:443\", \"b.example:0\"]", "TC-P020", 18 },
    { "network", "[\"a.example:443\\u0000\"]", "TC-P020", 1 },
    { "network", "[\"\"]", "TC-P020", 1 },
    { "allow_host_network", "\"yes\"", "TC-P012", 0 },
    { "network_limits", "100", "TC-P012", 0 },
    { "network_limits", "\"unlimited\"", "TC-P012", 0 },
    { "network_limits", "{ connections = 0 }", "TC-P015", 16 },
    { "network_limits", "{ connections = -1 }", "TC-P015", 16 },
    { "network_limits", "{ connections = \"100\" }", "TC-P012", 16 },
    { "network_limits", "{ bytes_in = 100 }", "TC-P014", 13 },
    { "network_limits", "{ bytes_out = \"0B\" }", "TC-P015", 14 },
    { "network_limits", "{ rate = \"5MB/s\" }", "TC-P014", 9 },
    { "network_limits", "{ byte_in = \"1MB\" }", "TC-P010", 2 },
    { "inspect", "\"none\"", "TC-P013", 0 },
    { "inspect", "\"Strict\"", "TC-P013", 0 },
    { "inspect", "true", "TC-P012", 0 },
    { "filesystem", "\"all\"", "TC-P012", 0 },
    { "filesystem", "[\"/x\"]", "TC-P012", 0 },
    { "filesystem", "{ readable = \"/x\" }", "TC-P012", 13 },
    { "filesystem", "{ readabel = [\"/x\"] }", "TC-P010", 2 },
    { "filesystem", "{ readable = [1] }", "TC-P012", 14 },
    { "filesystem", "{ readable = [\"\"] }", "TC-P021", 14 },
    { "filesystem", "{ readable = [\"//x\"] }", "TC-P021", 14 },
    { "filesystem", "{ readable = [\"/..\"] }", "TC-P021", 14 },
    { "filesystem", "{ readable = [\"/a\\u0000b\"] }", "TC-P021", 14 },
    { "filesystem", "{ readable = [\"/a\\n\"] }", "TC-P021", 14 },
    { "filesystem", "{ readable = [\"/a:b\"] }", "TC-P021", 14 },
    { "filesystem", "{ readable = [\"/a:\"] }", "TC-P021", 14 },
    { "filesystem", "{ readable = [\":/a\"] }", "TC-P021", 14 },
    { "filesystem", "{ readable = [\"/a:/b:/c\"] }", "TC-P021", 14 },
    { "filesystem", "{ readable = [\"/proc\"] }", "TC-P021", 14 },
    { "filesystem", "{ readable = [\"/x:/dev/shm\"] }", "TC-P021", 14 },
    { "filesystem", "{ readable = [\"/a/../proc/1\"] }", "TC-P021", 14 },
    { "filesystem", "{ readable = [\"/a\", \"/a/\"] }", "TC-P018", 20 },
    { "filesystem", "{ readable = [{ cage = \"/x\" }] }", "TC-P013", 14 },
    { "filesystem", "{ readable = [{ host = \"/x\", cage = \"y\" }] }", "TC-P021", 36 },
    { "filesystem", "{ readable = [{ host = \"/x\", read_only = true }] }", "TC-P010", 29 },
    { "filesystem", "{ readable = [{ host = \"/x\", optional = 1 }] }", "TC-P012", 40 },
    { "filesystem", "{ readable = [\"/a:/x\"], writable = [\"/b:/x\"] }", "TC-P019", 36 },
    { "filesystem", "{ hidden = [\"/a:/b\"] }", "TC-P021", 12 },
    { "filesystem", "{ scratch = \"64\" }", "TC-P014", 12 },
    { "filesystem", "{ scratch = 64 }", "TC-P014", 12 },
    { "filesystem", "{ scratch = \"unlimited\" }", "TC-P013", 12 },
    { "filesystem", "{ cwd = \"rel\" }", "TC-P021", 8 },
    { "filesystem", "{ cwd = \"/nowhere\" }", "TC-P022", 0 },
    { "filesystem", "{ cwd = \"/tmp\", scratch = \"0B\" }", "TC-P022", 0 },
    { "filesystem", "{ cwd = \"/h\", hidden = [\"/h\"] }", "TC-P022", 0 },
    { "filesystem", "{ cwd = \"/workspacefoo\", writable = [\"/workspace\"] }", "TC-P022", 0 },
    { "system", "1", "TC-P012", 0 },
    { "rootfs", "1", "TC-P012", 0 },
    { "rootfs", "\"\"", "TC-P021", 0 },
    { "rootfs", "\"/a//b\"", "TC-P021", 0 },
    { "image", "1", "TC-P012", 0 },
    { "image", "\"\"", "TC-P013", 0 },
    { "image", "\"--privileged\"", "TC-P016", 0 },
    { "image", "\"a b\"", "TC-P016", 0 },
    { "image", "\"a/../b\"", "TC-P016", 0 },
    { "image", "\"a\\u001bb\"", "TC-P017", 0 },
    { "timeout", "30", "TC-P014", 0 },
    { "timeout", "\"30\"", "TC-P014", 0 },
    { "timeout", "\"s\"", "TC-P014", 0 },
    { "timeout", "\"\"", "TC-P014", 0 },
    { "timeout", "\"-1s\"", "TC-P014", 0 },
    { "timeout", "\"30S\"", "TC-P014", 0 },
    { "timeout", "\"30 parsecs\"", "TC-P014", 0 },
    { "timeout", "\"0.5ms\"", "TC-P014", 0 },
    { "timeout", "\"99999999999999999999h\"", "TC-P014", 0 },
    { "timeout", "\"0s\"", "TC-P015", 0 },
    { "timeout", "-5", "TC-P012", 0 },
    { "timeout", "1.5", "TC-P012", 0 },
    { "timeout", "12:00:00", "TC-P012", 0 },
    { "memory", "128", "TC-P014", 0 },
    { "memory", "\"128\"", "TC-P014", 0 },
    { "memory", "\"MB\"", "TC-P014", 0 },
    { "memory", "\"128mb\"", "TC-P014", 0 },
    { "memory", "\"0B\"", "TC-P015", 0 },
    { "memory", "\"1s\"", "TC-P014", 0 },
    { "memory", "true", "TC-P012", 0 },
    { "cpu", "0", "TC-P015", 0 },
    { "cpu", "-1", "TC-P015", 0 },
    { "cpu", "0.0009", "TC-P015", 0 },
    { "cpu", "100001", "TC-P015", 0 },
    { "cpu", "nan", "TC-P015", 0 },
    { "cpu", "inf", "TC-P015", 0 },
    { "cpu", "-inf", "TC-P015", 0 },
    { "cpu", "\"1\"", "TC-P012", 0 },
    { "cpu_time", "10", "TC-P014", 0 },
    { "cpu_time", "\"0ms\"", "TC-P015", 0 },
    { "pids", "0", "TC-P015", 0 },
    { "pids", "-1", "TC-P015", 0 },
    { "pids", "2147483648", "TC-P015", 0 },
    { "pids", "1.5", "TC-P012", 0 },
    { "pids", "\"64\"", "TC-P012", 0 },
    { "files", "0", "TC-P015", 0 },
    { "files", "true", "TC-P012", 0 },
    { "disk", "1", "TC-P014", 0 },
    { "disk", "\"0MB\"", "TC-P015", 0 },
    { "output", "\"1\"", "TC-P014", 0 },
    { "output", "[]", "TC-P012", 0 },
    { "syscalls", "1", "TC-P012", 0 },
    { "syscalls", "\"none\"", "TC-P013", 0 },
    { "syscalls", "{ profile = 1 }", "TC-P012", 12 },
    { "syscalls", "{ alow = [] }", "TC-P010", 2 },
    { "syscalls", "{ allow = [\"nosuchcall\"] }", "TC-P025", 11 },
    { "syscalls", "{ deny = [\"read\", \"\"] }", "TC-P013", 18 },
    { "syscalls", "{ allow = [\"read\"], deny = [\"read\"] }", "TC-P019", 28 },
    { "commands", "\"git\"", "TC-P012", 0 },
    { "commands", "[1]", "TC-P012", 1 },
    { "commands", "[\"\"]", "TC-P013", 1 },
    { "commands", "[\"..\"]", "TC-P013", 1 },
    { "commands", "[\"bin/git\"]", "TC-P021", 1 },
    { "commands", "[\"/../git\"]", "TC-P021", 1 },
    { "commands", "[\"g\\u001bit\"]", "TC-P017", 1 },
    { "capabilities", "\"fs_read\"", "TC-P012", 0 },
    { "capabilities", "[\"fs_read\", \"fs_exec\"]", "TC-P013", 12 },
    { "capabilities", "[true]", "TC-P012", 1 },
    { "allowed_paths", "\"/x\"", "TC-P012", 0 },
    { "allowed_paths", "[\"/a//b\"]", "TC-P021", 1 },
    { "allowed_hosts", "\"a.example\"", "TC-P012", 0 },
    { "allowed_hosts", "[\"a b\"]", "TC-P020", 1 },
    { "allowed_hosts", "[\"a.example:99999\"]", "TC-P020", 1 },
    { "allowed_hosts", "[\"https://a.example/\"]", "TC-P020", 1 },
    { "allowed_commands", "\"git\"", "TC-P012", 0 },
    { "allowed_commands", "[\"a/b\"]", "TC-P021", 1 },
    { "env", "[]", "TC-P012", 0 },
    { "env", "{ 1A = \"x\" }", "TC-P016", 2 },
    { "env", "{ \"A=B\" = \"x\" }", "TC-P016", 2 },
    { "env", "{ \"\" = \"x\" }", "TC-P016", 2 },
    { "env", "{ A = 1 }", "TC-P012", 6 },
    { "env", "{ A = \"a\\u0000b\" }", "TC-P017", 6 },
    { "env_pass", "\"A\"", "TC-P012", 0 },
    { "env_pass", "[\"A-B\"]", "TC-P016", 1 },
    { "env_pass", "[\"LD_*\"]", "TC-P016", 1 },
    { "command", "\"ls -l\"", "TC-P012", 0 },
    { "command", "1", "TC-P012", 0 },
    { "command", "[]", "TC-P013", 0 },
    { "command", "[\"\"]", "TC-P013", 0 },
    { "command", "[\"ls\", 1]", "TC-P012", 7 },
    { "command", "[\"{program}\"]", "TC-P023", 1 },
    { "command", "[\"l{{s\"]", "TC-P023", 1 },
    { "command", "[\"ls\", \"{x\"]", "TC-P023", 7 },
    { "command", "[\"ls\", \"x}\"]", "TC-P023", 7 },
    { "command", "[\"ls\", \"{}\"]", "TC-P023", 7 },
    { "command", "[\"ls\", \"{a b}\"]", "TC-P023", 7 },
    { "command", "[\"ls\", \"{x..}\"]", "TC-P023", 7 },
    { "command", "[\"ls\", \"--{x...}\"]", "TC-P023", 7 },
    { "command", "[\"ls\", \"{x...}{y}\"]", "TC-P023", 7 },
    { "command", "[\"ls\", \"a\\u0000b\"]", "TC-P017", 7 },
    { "parameters", "1", "TC-P012", 0 },
    { "parameters", "[]", "TC-P012", 0 },
    { "parameters", "\"{\"", "TC-P024", 0 },
    { "parameters", "'{\"a\":1,\"a\":2}'", "TC-P024", 0 },
    { "parameters", "{ a = 2027-01-01 }", "TC-P024", 6 },
    { "parameters", "{ a = inf }", "TC-P024", 6 },
    { "parameters", "{ a = \"\\u0000\" }", "TC-P024", 6 },
    { "parameters", "\"/nonexistent/schema.json\"", "TC-P024", 0 },
    { "parameters", "\"\"", "TC-P021", 0 },
    { "returns", "1", "TC-P012", 0 },
    { "returns", "\"{]\"", "TC-P024", 0 },
    { "outputs", "1", "TC-P012", 0 },
    { "outputs", "[\"out/*\"]", "TC-P027", 1 },
    { "outputs", "[\"/a/../b\"]", "TC-P027", 1 },
    { "outputs", "[\"/a/\"]", "TC-P027", 1 },
    { "outputs", "{ globs = [\"/a\"], max_file = \"0B\" }", "TC-P015", 29 },
    { "outputs", "{ max_files = 0 }", "TC-P015", 14 },
    { "outputs", "{ glob = [] }", "TC-P010", 2 },
    { "mcp", "\"x\"", "TC-P012", 0 },
    { "mcp", "{ tool = [] }", "TC-P010", 2 },
    { "mcp", "{ tools = \"x\" }", "TC-P012", 10 },
    { "mcp", "{ features = [\"tools\"] }", "TC-P013", 14 },
    { "mcp", "{ message = \"1B\" }", "TC-P015", 12 },
    { "mcp", "{ message = \"65MiB\" }", "TC-P015", 12 },
    { "mcp", "{ rate = 0 }", "TC-P015", 9 },
    { "mcp", "{ calls = 0 }", "TC-P015", 10 },
    { "mcp", "{ calls = 1025 }", "TC-P015", 10 },
    { "mcp", "{ pin = 1 }", "TC-P012", 8 },
    { "container", "1", "TC-P012", 0 },
    { "container", "{ engine = \"lxc\" }", "TC-P013", 11 },
    { "container", "{ runtime = \"/usr/bin/evil\" }", "TC-P013", 12 },
    { "container", "{ user = \"a b\" }", "TC-P016", 9 },
    { "container", "{ user = \"-u0\" }", "TC-P016", 9 },
    { "container", "{ cap_add = [\"SYS_EVERYTHING\"] }", "TC-P013", 13 },
    { "container", "{ cap_drop = \"ALL\" }", "TC-P012", 13 },
    { "container", "{ read_only_rootfs = \"no\" }", "TC-P012", 21 },
    { "container", "{ privileged = true }", "TC-P010", 2 },
    { "container", "{ mounts = [\"/proc:/host\", \"/x:/proc\"] }", "TC-P021", 27 },
    { "container", "{ mounts = [{ host = \"/x\", mode = \"rw\" }] }", "TC-P010", 27 },
    { "record", "\"hash\"", "TC-P013", 0 },
    { "record", "1", "TC-P013", 0 },
    { "redact", "\"/token\"", "TC-P012", 0 },
    { "redact", "[\"/token\", \"token\"]", "TC-P013", 11 },
    { "redact", "[\"/a~\"]", "TC-P013", 1 },
    { "redact", "[\"/a~2b\"]", "TC-P013", 1 },
    { "redact", "[\"\"]", "TC-P013", 1 },
    { "redact", "[1]", "TC-P012", 1 },
    { "approval", "\"always\"", "TC-P013", 0 },
    { "approval", "true", "TC-P012", 0 },
    { "approval_timeout", "60", "TC-P014", 0 },
    { "approval_timeout", "\"unlimited\"", "TC-P013", 0 },
    { "approval_timeout", "\"0s\"", "TC-P015", 0 },
    { "builtin", "\"sh\"", "TC-P013", 0 },
    { "builtin", "true", "TC-P012", 0 },
    { "builtin", "[\"bash\"]", "TC-P012", 0 },
    { "warm", "-1", "TC-P015", 0 },
    { "warm", "\"1\"", "TC-P012", 0 },
    { "warm", "\"unlimited\"", "TC-P012", 0 },
};

static void test_every_key_refuses_its_bad_values_at_their_place(void **state)
{
    char text[text_max];
    (void)state;
    for (size_t i = 0; i < tci_array_size(bad); i++) {
        const char *before = needed_before(bad[i].key);
        unsigned column = (unsigned)strlen(bad[i].key) + 4 + bad[i].offset;
        format_text(text, "[tool.t]\n%s%s = %s\n", before, bad[i].key, bad[i].value);
        assert_one_error(text, bad[i].id, *before ? 3 : 2, column);
    }
}

static void test_defaults_refuse_the_same_bad_values(void **state)
{
    char text[text_max];
    (void)state;
    for (size_t i = 0; i < tci_array_size(bad); i++) {
        unsigned column = (unsigned)strlen(bad[i].key) + 4 + bad[i].offset;
        /* A working directory is judged with the tool's paths, in the end. */
        if (!(tci_key_where(key_of(bad[i].key)) & TCI_IN_DEFAULTS) ||
            strcmp(bad[i].id, "TC-P022") == 0)
            continue;
        format_text(text, "[defaults]\n%s = %s\n", bad[i].key, bad[i].value);
        assert_one_error(text, bad[i].id, 2, column);
    }
}

static void test_bad_table_covers_every_key(void **state)
{
    (void)state;
    for (int key = 0; key < TCI_KEY_COUNT; key++) {
        bool found = false;
        for (size_t i = 0; i < tci_array_size(bad); i++)
            found |= key_of(bad[i].key) == (enum tci_key)key;
        if (!found)
            fail_msg("no bad value for %s", tci_key_name((enum tci_key)key));
    }
}

static void test_columns_count_characters_and_not_bytes(void **state)
{
    (void)state;
    assert_one_error("[tool.t]\n"
                     "env = { A = \"\xf0\x9f\x98\x80\xc3\xa9\", B = 1 }\n",
                     "TC-P012", 2, 23);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_key_takes_its_good_values),
        cmocka_unit_test(test_every_key_is_inherited_from_defaults),
        cmocka_unit_test(test_tool_beats_defaults_for_every_key),
        cmocka_unit_test(test_good_table_covers_every_key),
        cmocka_unit_test(test_every_key_refuses_its_bad_values_at_their_place),
        cmocka_unit_test(test_defaults_refuse_the_same_bad_values),
        cmocka_unit_test(test_bad_table_covers_every_key),
        cmocka_unit_test(test_columns_count_characters_and_not_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
