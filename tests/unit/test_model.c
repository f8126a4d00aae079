/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of what a policy means: every key with good and bad values, inheritance, built-in
 * values, capabilities, and that TOML and YAML say the same. Tables are checked against keys.def, so
 * that a new key without a test fails here.
 */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/sys.h"
#include "policy/dump.h"
#include "policy/limits.h"
#include "policy/reader.h"
#include "policy/template.h"
#include "policy/units.h"
#include "policy/value.h"

enum { text_max = 65536 };

/* ---- helpers ---------------------------------------------------------------------------------- */

tci_printf_like(2, 3) static void format_text(char text[text_max], const char *format, ...)
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

static struct broken load_broken(const char *text, enum tci_format format)
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

static void assert_finding(const struct tci_finding *f, const char *id, unsigned line,
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
static void assert_one_error(const char *text, const char *id, unsigned line, unsigned column)
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

static char *dump_text(const struct tc_policy *policy)
{
    struct tc_error error = { 0 };
    char *text = NULL;
    if (tc_policy_dump(policy, &text, &error) < 0)
        fail_msg("%s", error.message);
    return text;
}

static char *dump_of(const char *text)
{
    struct tc_policy *policy = load_text(text);
    char *dump = dump_text(policy);
    tc_policy_free(policy);
    return dump;
}

static void assert_same_dump(const char *a, const char *b)
{
    char *dump_a = dump_of(a), *dump_b = dump_of(b);
    assert_string_equal(dump_a, dump_b);
    free(dump_a);
    free(dump_b);
}

/* The only tool of a policy. */
static const struct tci_tool *only_tool(const struct tc_policy *policy)
{
    assert_int_equal(policy->tool_count, 1);
    return &policy->tools[0];
}

static char *written(const struct tci_tool *tool, enum tci_key key)
{
    struct tci_buf buf = TCI_BUF_INIT(text_max);
    struct tci_json json = { .out = &buf, .syntax = TCI_SYNTAX_TOML };
    char *text;
    tci_value_write(&json, NULL, &tool->settings, key);
    text = tci_buf_take(&buf, NULL);
    assert_non_null(text);
    return text;
}

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

/* ---- what contradicts, stands in the wrong place, or is not known ----------------------------- */

static void test_conflicting_keys_are_refused(void **state)
{
    static const struct {
        const char *text;
        unsigned line, column;
    } cases[] = {
        { "[tool.t]\ncapabilities = []\nnetwork = \"none\"\n", 3, 11 },
        { "[tool.t]\nfilesystem = \"none\"\nallowed_paths = []\n", 2, 14 },
        { "[tool.t]\nallowed_hosts = []\ncommands = []\n", 3, 12 },
        { "[tool.t]\nallowed_commands = []\ncommands = []\n", 3, 12 },
        { "[defaults]\ncapabilities = []\nnetwork = \"none\"\n", 3, 11 },
        { "[tool.t]\nbackend = \"jail\"\ncontainer = {}\n", 3, 13 },
        { "[tool.t]\nbackend = \"wasm\"\nimage = \"a\"\n", 3, 9 },
        { "[tool.t]\nbackend = \"process\"\nrootfs = \"/x\"\n", 3, 10 },
        { "[tool.t]\nimage = \"a\"\n", 2, 9 }, /* the backend is jail by default */
        { "[tool.t]\nbackend = \"oci\"\nimage = \"a\"\nrootfs = \"/x\"\n", 3, 9 },
        { "[tool.t]\nbackend = \"oci\"\nfilesystem = { readable = [\"/x\"] }\n"
          "container = { mounts = [\"/x:/x:ro\"] }\n",
          4, 25 },
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++)
        assert_one_error(cases[i].text, "TC-P019", cases[i].line, cases[i].column);
}

static void test_mounts_join_the_file_system(void **state)
{
    (void)state;
    assert_same_dump("[tool.t]\nbackend = \"oci\"\nfilesystem = { readable = [\"/r\"] }\n"
                     "container = { mounts = [\"/a:/b\", \"/c:/d:rw\", \"/e:ro\", { host = \"/f\", "
                     "read_only = false, optional = true }, { host = \"/g\" }] }\n",
                     "[tool.t]\nbackend = \"oci\"\nfilesystem = { readable = [\"/r\", \"/a:/b\", "
                     "\"/e\", \"/g\"], writable = [\"/c:/d\", { host = \"/f\", optional = true }] "
                     "}\n");
}

static void test_keys_out_of_place_are_refused(void **state)
{
    char text[text_max];
    unsigned refused = 0;
    (void)state;
    for (int k = 0; k < TCI_KEY_COUNT; k++) {
        enum tci_key key = (enum tci_key)k;
        if (!(tci_key_where(key) & TCI_IN_DEFAULTS)) {
            format_text(text, "[defaults]\n%s = 1\n", tci_key_name(key));
            assert_one_error(text, "TC-P011", 2, 1);
            refused++;
        }
        if (!(tci_key_where(key) & TCI_IN_GRANT)) {
            format_text(text, "[agent.a]\ngrants = [{ tool = \"t\", %s = 1 }]\n",
                        tci_key_name(key));
            assert_one_error(text, "TC-P011", 2, 25);
            refused++;
        }
    }
    assert_true(refused > TCI_KEY_COUNT / 2);
    assert_one_error("[agent.a]\ngrants = [{ tool = \"t\", isolation = \"jail\" }]\n", "TC-P011", 2,
                     25);
}

static void test_unknown_keys_suggest_the_nearest(void **state)
{
    static const struct {
        const char *text;
        unsigned line, column;
        const char *remedy;
    } cases[] = {
        { "verson = 1\n", 1, 1, "\"version\"" },
        { "[tools.t]\n", 1, 2, "\"tool\"" },
        { "[default]\n", 1, 2, "\"defaults\"" },
        { "[agents.a]\n", 1, 2, "\"agent\"" },
        { "[tool.t]\ntimout = \"1s\"\n", 2, 1, "\"timeout\"" },
        { "[tool.t]\n  netwrok = \"none\"\n", 2, 3, "\"network\"" },
        { "[tool.t]\nenv-pass = []\n", 2, 1, "\"env_pass\"" },
        { "[tool.t]\nISOLATION = \"jail\"\n", 2, 1, "\"isolation\"" },
        { "[defaults]\nmemroy = \"1MB\"\n", 2, 1, "\"memory\"" },
        { "[agent.a]\ngrant = []\n", 2, 1, "\"grants\"" },
        { "[agent.a]\ngrants = [{ tool = \"t\", expire = \"2027-01-01\" }]\n", 2, 25,
          "\"expires\"" },
        { "[agent.a]\ngrants = [{ tool = \"t\", maxcalls = 1 }]\n", 2, 25, "\"max_calls\"" },
        { "[tool.t]\nfilesystem = { writeable = [] }\n", 2, 16, "\"writable\"" },
        { "[tool.t]\nfilesystem = { readable = [{ hots = \"/x\" }] }\n", 2, 30, "\"host\"" },
        { "[tool.t]\nsyscalls = { profil = \"pure\" }\n", 2, 14, "\"profile\"" },
        { "[tool.t]\noutputs = { max_flie = \"1MB\" }\n", 2, 13, "\"max_file\"" },
        { "[tool.t]\nbackend = \"oci\"\ncontainer = { no_new_privs = true }\n", 3, 15,
          "no_new_privileges" },
        { "[tool.t]\nsandboxing_engine = 1\n", 2, 1, "known keys:" },
        { "[tool.t]\n\"\" = 1\n", 2, 1, "known keys:" },
        { "[tool.t]\n\"net\\u0000work\" = 1\n", 2, 1, "" },
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        struct tc_error error;
        assert_one_error(cases[i].text, "TC-P010", cases[i].line, cases[i].column);
        error = load_error(cases[i].text);
        if (!strstr(error.remedy, cases[i].remedy))
            fail_msg("%s says: %s", cases[i].text, error.remedy);
    }
}

static void test_bad_words_suggest_the_nearest(void **state)
{
    (void)state;
    assert_non_null(strstr(load_error("[tool.t]\nbackend = \"OCI\"\n").remedy, "\"oci\"?"));
    assert_non_null(strstr(load_error("[tool.t]\nbackend = \"gviser\"\n").remedy, "\"gvisor\"?"));
    assert_non_null(strstr(load_error("[tool.t]\nnetwork = \"pubilc\"\n").remedy, "\"public\"?"));
    assert_non_null(strstr(load_error("[tool.t]\nsyscalls = \"strickt\"\n").remedy, "\"strict\"?"));
    assert_non_null(
        strstr(load_error("[tool.t]\ncapabilities = [\"fs-read\"]\n").remedy, "\"fs_read\"?"));
    /* Without a near one, all that is accepted is listed. */
    assert_non_null(strstr(load_error("[tool.t]\nbackend = \"qqqqqq\"\n").remedy, "\"microvm\""));
}

static void test_top_level_is_checked(void **state)
{
    (void)state;
    assert_one_error("version = 2\n", "TC-P007", 1, 11);
    assert_one_error("version = \"1\"\n", "TC-P012", 1, 11);
    assert_one_error("version = 1.0\n", "TC-P012", 1, 11);
    assert_one_error("tool = 1\n", "TC-P012", 1, 8);
    assert_one_error("tool = []\n", "TC-P012", 1, 8);
    assert_one_error("[[tool]]\nname = \"x\"\n", "TC-P012", 1, 1);
    assert_one_error("[tool]\nt = 1\n", "TC-P012", 2, 5);
    assert_one_error("defaults = \"none\"\n", "TC-P012", 1, 12);
    assert_one_error("agent = true\n", "TC-P012", 1, 9);
    assert_one_error("", "TC-P006", 1, 1);
    assert_one_error(" \n\t\r\n# only a comment\n", "TC-P006", 1, 1);
}

static void test_names_of_tools_and_agents(void **state)
{
    static const char *const good_names[] = { "a", "web_fetch", "A-1", "\"a.b\"", "_x", "9" };
    static const char *const bad_names[] = {
        "\"\"",   "\"a b\"",         "\"-x\"",    "\".x\"",       "\"a/b\"",
        "\"..\"", "\"caf\xc3\xa9\"", "\"a\\nb\"", "\"a\\u0000b\""
    };
    char text[text_max], longest[66];
    (void)state;
    for (size_t i = 0; i < tci_array_size(good_names); i++) {
        format_text(text, "[tool.%s]\n[agent.%s]\n", good_names[i], good_names[i]);
        tc_policy_free(load_text(text));
    }
    for (size_t i = 0; i < tci_array_size(bad_names); i++) {
        format_text(text, "[tool.%s]\n", bad_names[i]);
        assert_one_error(text, "TC-P016", 1, 7);
        format_text(text, "[agent.%s]\n", bad_names[i]);
        assert_one_error(text, "TC-P016", 1, 8);
    }
    memset(longest, 'n', 65);
    longest[65] = '\0';
    format_text(text, "[tool.%s]\n", longest);
    assert_one_error(text, "TC-P016", 1, 7);
    longest[64] = '\0';
    format_text(text, "[tool.%s]\n", longest);
    tc_policy_free(load_text(text));
}

static void test_misspelt_name_is_not_blamed_on_the_tool_before(void **state)
{
    struct broken broken = load_broken("[tool.good]\n[tool.\"bad name\"]\n", TCI_FORMAT_TOML);
    (void)state;
    assert_null(broken.findings->first->tool);
    tci_findings_free(broken.findings);
}

/* ---- grants ----------------------------------------------------------------------------------- */

static void test_bad_grants_are_refused(void **state)
{
    static const struct {
        const char *grants, *id;
        unsigned column;
    } cases[] = {
        { "\"t\"", "TC-P012", 10 },
        { "[1]", "TC-P012", 11 },
        { "[\"\"]", "TC-P013", 11 },
        { "[\"a\\u001b\"]", "TC-P017", 11 },
        { "[{}]", "TC-P013", 11 },
        { "[{ max_calls = 1 }]", "TC-P013", 11 },
        { "[{ tool = 1 }]", "TC-P012", 20 },
        { "[\"t\", \"t\"]", "TC-P018", 16 },
        { "[\"t\", { tool = \"t\", network = false }]", "TC-P018", 16 },
        { "[{ tool = \"t\", network = true }]", "TC-P013", 35 },
        { "[{ tool = \"t\", network = [\"x\"] }]", "TC-P020", 36 },
        { "[{ tool = \"t\", memory = 5 }]", "TC-P014", 34 },
        { "[{ tool = \"t\", filesystem = \"all\" }]", "TC-P012", 38 },
        { "[{ tool = \"t\", network_limits = { rate = \"0B\" } }]", "TC-P015", 51 },
        { "[{ tool = \"t\", network_limits = { x = 1 } }]", "TC-P010", 44 },
        { "[{ tool = \"t\", inspect = false }]", "TC-P012", 35 },
        { "[{ tool = \"t\", max_calls = -1 }]", "TC-P015", 37 },
        { "[{ tool = \"t\", max_calls = \"5\" }]", "TC-P012", 37 },
        { "[{ tool = \"t\", max_calls = \"unlimited\" }]", "TC-P012", 37 },
        { "[{ tool = \"t\", expires = 5 }]", "TC-P012", 35 },
        { "[{ tool = \"t\", expires = \"tomorrow\" }]", "TC-P026", 35 },
        { "[{ tool = \"t\", expires = \"2027-02-29\" }]", "TC-P026", 35 },
        { "[{ tool = \"t\", expires = \"2027-01-01T00:00:00\" }]", "TC-P026", 35 },
        { "[{ tool = \"t\", expires = 2027-01-01T00:00:00 }]", "TC-P026", 35 },
        { "[{ tool = \"t\", expires = 00:00:00 }]", "TC-P012", 35 },
        /* Moments whose year in UTC cannot be written with four digits from 0001. */
        { "[{ tool = \"t\", expires = 0000-01-01 }]", "TC-P026", 35 },
        { "[{ tool = \"t\", expires = 0001-01-01T00:00:00+00:01 }]", "TC-P026", 35 },
        { "[{ tool = \"t\", expires = \"0001-01-01T00:00:00+00:01\" }]", "TC-P026", 35 },
        { "[{ tool = \"t\", expires = 9999-12-31T23:59:59-00:01 }]", "TC-P026", 35 },
        { "[{ tool = \"t\", expires = \"9999-12-31T23:59:59-00:01\" }]", "TC-P026", 35 },
        { "[{ tool = \"t\", expires = \"9999-12-31T23:59:60Z\" }]", "TC-P026", 35 },
    };
    char text[text_max];
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        format_text(text, "[agent.a]\ngrants = %s\n", cases[i].grants);
        assert_one_error(text, cases[i].id, 2, cases[i].column);
    }
}

/* Its grants would be counted on from the broken one's, past the end of their array. */
static void test_agent_after_a_broken_one_starts_from_nothing(void **state)
{
    static const char text[] = "[agent.broken]\n"
                               "grants = [\"a\", 5]\n"
                               "[agent.sound]\n"
                               "grants = [{ tool = \"x\", pids = 1 }]\n"
                               "[tool.t]\npids = 0\n";
    struct broken broken = load_broken(text, TCI_FORMAT_TOML);
    (void)state;
    assert_finding(broken.findings->first, "TC-P012", 2, 16, text);
    assert_finding(broken.findings->first->next, "TC-P015", 6, 8, text);
    if (broken.findings->first->next->next)
        fail_msg("%s", broken.findings->first->next->next->message);
    tci_findings_free(broken.findings);
}

static void test_dump_keeps_all_of_a_grant(void **state)
{
    char *dump = dump_of("[agent.a]\ndescription = \"who\"\n"
                         "grants = [\"plain\", { tool = \"full\", pids = 3, timeout = \"1.5s\",\n"
                         "  network = false, filesystem = { readable = [\"/r\"] }, cpu = 0.5,\n"
                         "  network_limits = { rate = \"1000B\" }, inspect = \"strict\",\n"
                         "  memory = \"1000kB\", max_calls = 0, expires = 2027-01-01 }]\n");
    (void)state;
    assert_string_equal(dump,
                        "version = 1\n"
                        "\n"
                        "[agent.a]\n"
                        "description = \"who\"\n"
                        "grants = [\n"
                        "    \"plain\",\n"
                        "    { tool = \"full\", expires = \"2027-01-01T00:00:00Z\", max_calls = 0, "
                        "network = \"none\", network_limits = { rate = \"1kB\" }, "
                        "inspect = \"strict\", filesystem = { readable = [\"/r\"] }, "
                        "timeout = \"1500ms\", memory = \"1MB\", cpu = 0.5, pids = 3 },\n"
                        "]\n");
    free(dump);
}

static void test_expiry_may_be_a_date_of_the_file_or_a_text(void **state)
{
    static const struct {
        const char *text;
        int64_t moment;
    } cases[] = {
        { "2027-01-01", 1798761600 },
        { "\"2027-01-01\"", 1798761600 },
        { "2027-01-01T00:00:00Z", 1798761600 },
        { "\"2027-01-01T02:00:00+02:00\"", 1798761600 },
        { "2027-01-01 02:00:00.9+02:00",
          1798761600 }, /* fractions are dropped: sooner, not later */
        { "0001-01-01", -62135596800 },
        { "\"9999-12-31T23:59:59Z\"", 253402300799 },
    };
    char text[text_max];
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        struct tc_policy *policy;
        const struct tci_grant *grant;
        char *once, *twice;
        format_text(text, "[agent.a]\ngrants = [{ tool = \"t\", expires = %s }]\n", cases[i].text);
        policy = load_text(text);
        grant = tci_agent_grant(tci_policy_agent(policy, "a"), "t");
        assert_non_null(grant);
        assert_int_equal(grant->expires, cases[i].moment);
        assert_int_equal(grant->expires_pos.column, 35);
        once = dump_text(policy);
        twice = dump_of(once);
        assert_string_equal(once, twice);
        free(once);
        free(twice);
        tc_policy_free(policy);
    }
}

/* ---- several errors --------------------------------------------------------------------------- */

static void test_errors_of_all_tables_are_reported_in_file_order(void **state)
{
    static const char text[] = "version = 9\n"
                               "[defaults]\ntimeout = 5\n"
                               "[tool.a]\nmemory = \"x\"\nnetwork = [\"bad\", \"also bad\"]\n"
                               "[tool.fine]\n"
                               "[tool.b]\nunknown_thing = 1\ncommand = []\n"
                               "[agent.z]\ngrants = [1, 2]\n"
                               "[agent.y]\nwhatever = 1\n";
    static const struct {
        const char *id;
        unsigned line, column;
        const char *tool;
    } expected[] = {
        { "TC-P007", 1, 11, NULL }, { "TC-P014", 3, 11, NULL },  { "TC-P014", 5, 10, "a" },
        { "TC-P020", 6, 12, "a" },  { "TC-P020", 6, 19, "a" },   { "TC-P010", 9, 1, "b" },
        { "TC-P013", 10, 11, "b" }, { "TC-P012", 12, 11, NULL }, { "TC-P012", 12, 14, NULL },
        { "TC-P010", 14, 1, NULL },
    };
    struct broken broken = load_broken(text, TCI_FORMAT_TOML);
    const struct tci_finding *f = broken.findings->first;
    (void)state;
    for (size_t i = 0; i < tci_array_size(expected); i++, f = f->next) {
        assert_finding(f, expected[i].id, expected[i].line, expected[i].column, text);
        if (f->tool && expected[i].tool)
            assert_string_equal(f->tool, expected[i].tool);
        else
            assert_ptr_equal(f->tool, expected[i].tool);
    }
    assert_null(f);
    assert_int_equal(broken.findings->count[TCI_SEVERITY_ERROR], tci_array_size(expected));
    tci_findings_free(broken.findings);
}

static void test_more_than_a_hundred_errors_are_counted_but_not_kept(void **state)
{
    static const unsigned totals[] = { 99, 100, 101, 102, 5000 };
    (void)state;
    for (size_t i = 0; i < tci_array_size(totals); i++) {
        struct tci_buf buf = TCI_BUF_INIT(1 << 20);
        struct broken broken;
        unsigned kept = 0;
        char *text;
        tci_buf_string(&buf, "[tool.t]\n");
        for (unsigned j = 0; j < totals[i]; j++)
            tci_buf_printf(&buf, "nonsense_%u = 1\n", j);
        text = tci_buf_take(&buf, NULL);
        assert_non_null(text);
        broken = load_broken(text, TCI_FORMAT_TOML);
        for (const struct tci_finding *f = broken.findings->first; f; f = f->next, kept++)
            assert_int_equal(f->id, kept < 100 ? TCI_FINDING_UNKNOWN_KEY : TCI_FINDING_TOO_MANY);
        assert_int_equal(kept, totals[i] < 101 ? totals[i] : 101);
        assert_int_equal(broken.findings->count[TCI_SEVERITY_ERROR], totals[i]);
        tci_findings_free(broken.findings);
        free(text);
    }
}

static void test_syntax_error_is_told_from_a_policy_error(void **state)
{
    struct broken broken = load_broken("[tool.t\n", TCI_FORMAT_TOML);
    (void)state;
    assert_int_equal(broken.error.code, TC_ERROR_SYNTAX);
    assert_string_equal(broken.error.id, "TC-P005");
    assert_true(broken.error.line == 1 && broken.error.column > 1 && broken.error.remedy[0]);
    tci_findings_free(broken.findings);
    broken = load_broken("tool: {t: [}\n", TCI_FORMAT_YAML);
    assert_int_equal(broken.error.code, TC_ERROR_SYNTAX);
    tci_findings_free(broken.findings);
    assert_int_equal(load_error("[tool.t]\nx = 1\n").code, TC_ERROR_POLICY);
}

static void test_lists_have_a_maximum(void **state)
{
    static const struct {
        const char *before, *item, *after;
    } lists[] = {
        { "[tool.t]\nnetwork = [", "\"a%u.example:443\", ", "]\n" },
        { "[tool.t]\nallowed_hosts = [", "\"a%u.example\", ", "]\n" },
        { "[tool.t]\nallowed_paths = [", "\"/a%u\", ", "]\n" },
        { "[tool.t]\nfilesystem = { readable = [", "\"/a%u\", ", "] }\n" },
        { "[tool.t]\nfilesystem = { hidden = [", "\"/a%u\", ", "] }\n" },
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(lists) * 2; i++) {
        unsigned count = TCI_LIST_MAX + (unsigned)(i % 2);
        struct tci_buf buf = TCI_BUF_INIT(1 << 20);
        char *text;
        tci_buf_string(&buf, lists[i / 2].before);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        for (unsigned j = 0; j < count; j++)
            tci_buf_printf(&buf, lists[i / 2].item, j);
#pragma GCC diagnostic pop
        tci_buf_string(&buf, lists[i / 2].after);
        text = tci_buf_take(&buf, NULL);
        assert_non_null(text);
        if (i % 2)
            assert_string_equal(load_error(text).id, "TC-P015");
        else
            tc_policy_free(load_text(text));
        free(text);
    }
}

/* ---- TOML and YAML ---------------------------------------------------------------------------- */

static void test_yaml_and_toml_of_one_policy_mean_the_same(void **state)
{
    static const char toml[] =
        "version = 1\n"
        "[defaults]\ntimeout = \"5s\"\ncpu = 0.5\nrecord = \"hash-only\"\n"
        "[tool.web]\n"
        "description = \"two\\nlines \xc3\xa9\"\n"
        "backend = \"L3\"\n"
        "network = [\"a.example:443\", \"deny:10.0.0.0/8:*\"]\n"
        "filesystem = { readable = [\"/data\", { host = \"h\", cage = \"/c\", optional = true }],"
        " scratch = \"0B\", cwd = \"/c\" }\n"
        "pids = 10\nsystem = true\n"
        "env = { A = \"1\", B = \"yes\" }\n"
        "command = [\"curl\", \"{url}\"]\n"
        "parameters = { type = \"object\", properties = { url = { maxLength = 10, default = 1.5 } "
        "},"
        " required = [\"url\"], additionalProperties = false }\n"
        "container = { user = \"1000\", cap_drop = [] }\n"
        "[agent.a]\ndescription = \"x\"\n"
        "grants = [\"web\", { tool = \"other\", network = false, max_calls = 2, "
        "expires = 2027-01-01 }]\n";
    static const char yaml[] = "version: 1\n"
                               "defaults: {timeout: 5s, cpu: 0.5, record: hash-only}\n"
                               "tool:\n"
                               "  web:\n"
                               "    description: \"two\\nlines \xc3\xa9\"\n"
                               "    backend: L3\n"
                               "    network:\n"
                               "      - a.example:443\n"
                               "      - deny:10.0.0.0/8:*\n"
                               "    filesystem:\n"
                               "      readable:\n"
                               "        - /data\n"
                               "        - {host: h, cage: /c, optional: true}\n"
                               "      scratch: 0B\n"
                               "      cwd: /c\n"
                               "    pids: 10\n"
                               "    system: true\n"
                               "    env:\n"
                               "      A: \"1\"\n"
                               "      B: \"yes\"\n"
                               "    command: [curl, \"{url}\"]\n"
                               "    parameters:\n"
                               "      type: object\n"
                               "      properties:\n"
                               "        url: {maxLength: 10, default: 1.5}\n"
                               "      required: [url]\n"
                               "      additionalProperties: false\n"
                               "    container: {user: \"1000\", cap_drop: []}\n"
                               "agent:\n"
                               "  a:\n"
                               "    description: x\n"
                               "    grants:\n"
                               "      - web\n"
                               "      - tool: other\n"
                               "        network: false\n"
                               "        max_calls: 2\n"
                               "        expires: 2027-01-01\n";
    struct tci_findings *findings = tci_findings_new("test.yaml");
    struct tc_policy *policy = NULL;
    struct tc_error error = { 0 };
    char *from_yaml, *from_toml;
    (void)state;
    assert_non_null(findings);
    if (tci_policy_parse(yaml, strlen(yaml), TCI_FORMAT_YAML, "/policy", findings, &policy,
                         &error) < 0)
        fail_msg("%u:%u: %s", error.line, error.column, error.message);
    from_yaml = dump_text(policy);
    from_toml = dump_of(toml);
    assert_string_equal(from_yaml, from_toml);
    assert_int_equal(policy->tools[0].pos.line, 4);
    assert_int_equal(policy->tools[0].settings.pos[TCI_KEY_PIDS].line, 16);
    free(from_yaml);
    free(from_toml);
    tc_policy_free(policy);
    tci_findings_free(findings);
}

static void test_yaml_errors_have_their_place(void **state)
{
    struct broken broken = load_broken("tool:\n  t:\n    timout: 5s\n    pids: many\n",
                                       TCI_FORMAT_YAML);
    (void)state;
    assert_finding(broken.findings->first, "TC-P010", 3, 5, "");
    assert_finding(broken.findings->first->next, "TC-P012", 4, 11, "");
    tci_findings_free(broken.findings);
}

/* ---- files ------------------------------------------------------------------------------------ */

static char directory[] = "/tmp/toolcage-test-model-XXXXXX";

static int make_directory(void **state)
{
    (void)state;
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
    (void)state;
    return rmdir(directory);
}

static void write_file(const char *name, const char *text, char path[200])
{
    FILE *file;
    (void)snprintf(path, 200, "%s/%s", directory, name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void test_relative_paths_start_at_the_file(void **state)
{
    char path[200], schema[200], expected[300];
    struct tc_policy *policy = NULL;
    struct tc_error error = { 0 };
    (void)state;
    write_file("schema.json", " { \"b\": 1,\n\"a\": [] } ", schema);
    write_file("p.toml",
               "[tool.t]\nfilesystem = { readable = [\"data\", \"../up\"] }\n"
               "parameters = \"schema.json\"\n",
               path);
    if (tc_policy_load(path, &policy, &error) < 0)
        fail_msg("%s", error.message);
    (void)snprintf(expected, sizeof expected, "%s/data", directory);
    assert_string_equal(only_tool(policy)->settings.filesystem.rules[0].host, expected);
    assert_string_equal(only_tool(policy)->settings.filesystem.rules[1].host, "/tmp/up");
    assert_string_equal(only_tool(policy)->settings.parameters.json, "{\"a\":[],\"b\":1}");
    assert_string_equal(only_tool(policy)->settings.parameters.file, schema);
    assert_string_equal(policy->directory, directory);
    tc_policy_free(policy);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(schema), 0);
}

static void test_ending_of_the_name_chooses_the_syntax(void **state)
{
    static const struct {
        const char *name;
        bool yaml;
    } names[] = { { "p.yaml", true },  { "p.yml", true },   { "p.toml", false },
                  { "policy", false }, { "p.YAML", false }, { ".yaml", true } };
    (void)state;
    for (size_t i = 0; i < tci_array_size(names) * 2; i++) {
        bool write_yaml = i % 2;
        char path[200];
        struct tc_policy *policy = NULL;
        struct tc_error error = { 0 };
        int r;
        write_file(names[i / 2].name, write_yaml ? "tool: {t: {}}\n" : "[tool.t]\n", path);
        r = tc_policy_load(path, &policy, &error);
        assert_int_equal(r, write_yaml == names[i / 2].yaml ? 0 : -1);
        if (r < 0)
            assert_string_equal(error.file, path);
        tc_policy_free(policy);
        assert_int_equal(unlink(path), 0);
    }
}

static void test_file_errors_name_the_file(void **state)
{
    struct tc_policy *policy = NULL;
    struct tc_error error = { 0 };
    (void)state;
    assert_int_equal(tc_policy_load("/nonexistent/policy.toml", &policy, &error), -1);
    assert_int_equal(error.code, TC_ERROR_IO);
    assert_string_equal(error.id, "TC-P001");
    assert_string_equal(error.file, "/nonexistent/policy.toml");
    error = (struct tc_error){ 0 };
    assert_int_equal(tc_policy_load(directory, &policy, &error), -1);
    assert_string_equal(error.id, "TC-P002");
    assert_int_equal(tc_policy_load(directory, &policy, NULL), -1); /* nobody wants to know */
    assert_null(policy);
    tc_policy_free(NULL);
}

static void test_error_struct_of_the_caller_may_hold_anything(void **state)
{
    struct tc_policy *policy = load_text("[tool.t]\n");
    struct tc_error error;
    char *text = NULL;
    (void)state;
    memset(&error, 'x', sizeof error);
    assert_int_equal(tc_policy_load("/nonexistent/a.toml", &policy, &error), -1);
    assert_string_equal(error.file, "/nonexistent/a.toml");
    assert_string_equal(error.id, "TC-P001");
    assert_int_equal(tc_policy_load("/nonexistent/b.toml", &policy, &error), -1);
    assert_string_equal(error.file, "/nonexistent/b.toml"); /* not the error before */
    memset(&error, 'x', sizeof error);
    assert_int_equal(tc_policy_dump(policy, &text, &error), 0);
    assert_int_equal(error.code, TC_ERROR_NONE);
    free(text);
    tc_policy_free(policy);
}

static char *no_cwd(char *buffer, size_t size)
{
    (void)buffer;
    (void)size;
    errno = ENOENT;
    return NULL;
}

static void test_directory_of_a_policy_is_found_by_its_name(void **state)
{
    static const char *const middles[] = { "/", "//", "/./", "/.//./", "/../%" };
    const char *name = strrchr(directory, '/') + 1;
    char path[200], given[300];
    (void)state;
    write_file("p.toml", "[tool.t]\n", path);
    for (size_t i = 0; i < tci_array_size(middles); i++) {
        struct tc_policy *policy = NULL;
        struct tc_error error;
        if (strchr(middles[i], '%'))
            (void)snprintf(given, sizeof given, "%s/../%s///p.toml", directory, name);
        else
            (void)snprintf(given, sizeof given, "%s%sp.toml", directory, middles[i]);
        if (tc_policy_load(given, &policy, &error) < 0)
            fail_msg("%s: %s", given, error.message);
        assert_string_equal(policy->directory, directory);
        tc_policy_free(policy);
    }
    assert_int_equal(unlink(path), 0);
}

static void test_working_directory_that_is_gone_is_an_error(void **state)
{
    struct tci_sys saved = tci_sys;
    struct tc_policy *policy = NULL;
    struct tc_error error;
    char path[200];
    int here = open(".", O_PATH | O_CLOEXEC);
    (void)state;
    assert_true(here >= 0);
    write_file("p.toml", "[tool.t]\n", path);
    assert_int_equal(chdir(directory), 0);
    tci_sys.getcwd = no_cwd;
    assert_int_equal(tc_policy_load("p.toml", &policy, &error), -1);
    assert_string_equal(error.id, "TC-P001");
    assert_non_null(strstr(error.remedy, "absolute"));
    /* An absolute path does not need it. */
    assert_int_equal(tc_policy_load(path, &policy, &error), 0);
    tc_policy_free(policy);
    tci_sys = saved;
    assert_int_equal(fchdir(here), 0);
    assert_int_equal(close(here), 0);
    assert_int_equal(unlink(path), 0);
}

static void test_yaml_past_its_maximum_is_too_large_and_not_malformed(void **state)
{
    size_t length = 1024 * 1024 + 1;
    char *text = malloc(length + 1);
    struct broken broken;
    (void)state;
    assert_non_null(text);
    memset(text, '#', length);
    text[length] = '\0';
    broken = load_broken(text, TCI_FORMAT_YAML);
    assert_finding(broken.findings->first, "TC-P003", 1, 1, "");
    assert_int_equal(broken.error.code, TC_ERROR_TOO_LARGE);
    tci_findings_free(broken.findings);
    free(text);
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
        cmocka_unit_test(test_every_key_takes_its_good_values),
        cmocka_unit_test(test_every_key_is_inherited_from_defaults),
        cmocka_unit_test(test_tool_beats_defaults_for_every_key),
        cmocka_unit_test(test_good_table_covers_every_key),
        cmocka_unit_test(test_every_key_refuses_its_bad_values_at_their_place),
        cmocka_unit_test(test_defaults_refuse_the_same_bad_values),
        cmocka_unit_test(test_bad_table_covers_every_key),
        cmocka_unit_test(test_columns_count_characters_and_not_bytes),
        cmocka_unit_test(test_limits_have_the_written_value_in_base_units),
        cmocka_unit_test(test_network_limits_are_kept_and_replaced_as_a_whole),
        cmocka_unit_test(test_host_network_refuses_limits_of_the_network),
        cmocka_unit_test(test_path_rules_keep_source_place_and_spelling),
        cmocka_unit_test(test_backend_has_all_its_names),
        cmocka_unit_test(test_three_tools_of_the_design_load_unchanged),
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
        cmocka_unit_test(test_empty_allowlist_grants_nothing),
        cmocka_unit_test(test_empty_list_in_a_grant_takes_everything_away),
        cmocka_unit_test(test_conflicting_keys_are_refused),
        cmocka_unit_test(test_mounts_join_the_file_system),
        cmocka_unit_test(test_keys_out_of_place_are_refused),
        cmocka_unit_test(test_unknown_keys_suggest_the_nearest),
        cmocka_unit_test(test_bad_words_suggest_the_nearest),
        cmocka_unit_test(test_top_level_is_checked),
        cmocka_unit_test(test_names_of_tools_and_agents),
        cmocka_unit_test(test_misspelt_name_is_not_blamed_on_the_tool_before),
        cmocka_unit_test(test_bad_grants_are_refused),
        cmocka_unit_test(test_agent_after_a_broken_one_starts_from_nothing),
        cmocka_unit_test(test_dump_keeps_all_of_a_grant),
        cmocka_unit_test(test_expiry_may_be_a_date_of_the_file_or_a_text),
        cmocka_unit_test(test_errors_of_all_tables_are_reported_in_file_order),
        cmocka_unit_test(test_more_than_a_hundred_errors_are_counted_but_not_kept),
        cmocka_unit_test(test_syntax_error_is_told_from_a_policy_error),
        cmocka_unit_test(test_lists_have_a_maximum),
        cmocka_unit_test(test_yaml_and_toml_of_one_policy_mean_the_same),
        cmocka_unit_test(test_yaml_errors_have_their_place),
        cmocka_unit_test(test_relative_paths_start_at_the_file),
        cmocka_unit_test(test_ending_of_the_name_chooses_the_syntax),
        cmocka_unit_test(test_file_errors_name_the_file),
        cmocka_unit_test(test_error_struct_of_the_caller_may_hold_anything),
        cmocka_unit_test(test_directory_of_a_policy_is_found_by_its_name),
        cmocka_unit_test(test_working_directory_that_is_gone_is_an_error),
        cmocka_unit_test(test_yaml_past_its_maximum_is_too_large_and_not_malformed),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_formatted_units_parse_to_themselves),
        cmocka_unit_test(test_templates_are_cut_into_parts),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
