/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what happens without memory. Each scenario is run with its first allocation failing, then
 * its second, and so on until none fails: every time there must be an error and no crash, and
 * afterwards not one allocation more than before.
 *
 * The arena is compiled into this program with one malloc for each piece of memory, so that every
 * single one can fail; the linker then takes no arena from the library.
 */
#define TCI_ARENA_EXACT
#include "base/arena.c"

#include "alloc_support.h"
#include "support.h"

#include <jansson.h>
#include <sys/stat.h>
#include <unistd.h>
#include "json/canonical.h"
#include "policy/dump.h"
#include "policy/explain.h"
#include "policy/lint.h"
#include "policy/parse.h"
#include "policy/report.h"

/* ---- scenarios -------------------------------------------------------------------------------- */

static const char rich_toml[] =
    "version = 1\n"
    "[defaults]\n"
    "backend = \"L2\"\n"
    "timeout = \"unlimited\"\n"
    "env = { A = \"1\", TOKEN = \"secret\" }\n"
    "[tool.web_fetch]\n"
    "description = \"Fetch \\\"one\\\" page\"\n"
    "backend = \"oci\"\n"
    "image = \"debian:12\"\n"
    "network = [\"api.example.com:443\", \"*.com:*\", \"deny:10.0.0.0/8:*\", \"[fd00::1]:80\",\n"
    "           \"api.example.com:443\"]\n"
    "filesystem = { readable = [\"/data\", \"rel\", { host = \"~/.ssh\", cage = \"/s\", "
    "optional = true }], writable = [\"/\", \"/data\"], hidden = [\"/data/h\"], cwd = \"/data\" }\n"
    "command = [\"bash\", \"-c\", \"{script}\", \"{more...}\"]\n"
    "parameters = { type = \"object\", properties = { script = { type = \"string\" },\n"
    "               a_parameter_with_a_long_name = { enum = [1, 2.5, \"three\", true] } } }\n"
    "returns = '{\"type\": [\"object\", \"null\"], \"default\": null, \"a\": {\"b\": [1e300]}}'\n"
    "redact = [\"/token\", \"/script\"]\n"
    "approval = \"ask\"\n"
    "outputs = { globs = [\"/data/*.png\"], max_file = \"1MB\" }\n"
    "syscalls = { profile = \"strict\", allow = [\"openat\"], deny = [\"ptrace\"] }\n"
    "container = { user = \"root\", cap_add = [\"cap_net_raw\"], mounts = [\"/h:/m:rw\"] }\n"
    "mcp = { tools = [\"a*\"], features = [\"prompts\"], message = \"1MB\", pin = \"p\" }\n"
    "env_pass = [\"LD_PRELOAD\"]\n"
    "[tool.git]\n"
    "capabilities = [\"fs_read\", \"net_http\", \"exec_run\"]\n"
    "allowed_paths = [\"/srv\"]\n"
    "allowed_hosts = [\"git.example.com\"]\n"
    "allowed_commands = [\"git\", \"/usr/bin/ssh\"]\n"
    "command = [\"git\", \"status\"]\n"
    "memory = \"1B\"\n"
    "[tool.\"dotted.name\"]\n"
    "network = \"host\"\n"
    "rootfs = \"root\"\n"
    "[tool.nobody]\n"
    "[tool.shell]\n"
    "builtin = \"bash\"\n"
    "[tool.fetch]\n"
    "builtin = \"http_fetch\"\n"
    "[agent.child]\n"
    "parent = \"a\"\n"
    "grants = [\"nobody\", { tool = \"web_fetch\", approval = \"never\" }]\n"
    "[agent.a]\n"
    "description = \"somebody\"\n"
    "grants = [\"web_fetch\", \"missing_tool\", { tool = \"git\", network = [\"x.example:1\"],\n"
    "          filesystem = { readable = [\"/srv\"] }, memory = \"5GB\", max_calls = 3,\n"
    "          expires = \"2020-01-01\" }]\n";

static const char rich_yaml[] =
    "version: 1\n"
    "defaults: {timeout: 5s, env: {A: \"1\"}}\n"
    "tool:\n"
    "  web_fetch:\n"
    "    description: |\n"
    "      Fetch one\n"
    "      page\n"
    "    backend: L3_DOCKER\n"
    "    network: [api.example.com:443, \"*.example.org:80-90\"]\n"
    "    filesystem:\n"
    "      readable: [/data, {host: rel, cage: /c, optional: true}]\n"
    "      scratch: 0B\n"
    "    command: [curl, \"--\", \"{url}\"]\n"
    "    parameters:\n"
    "      type: object\n"
    "      properties: {url: {type: string, title: a_text_of_some_length, maxLength: 10, default: "
    "1.5}}\n"
    "    container: {user: \"1000\", cap_drop: []}\n"
    "  other: {network: public, cpu: 0.5, pids: 7, record: hash-only}\n"
    "agent:\n"
    "  a:\n"
    "    grants:\n"
    "      - web_fetch\n"
    "      - {tool: other, network: false, max_calls: 2, expires: 2020-01-01}\n";

/* One mistake of most kinds, and how many they are. */
enum { broken_errors = 21 };
static const char broken_toml[] =
    "version = 2\nunknown = 1\n"
    "[defaults]\nmemory = 5\ncommand = []\n"
    "[tool.a]\nbackend = \"dokcer\"\nnetwork = [\"bad\", 1]\nfilesystem = { readable = [\"//\"] }\n"
    "[tool.b]\nsyscalls = { allow = [\"nonsense\"] }\ncommand = [\"ls\", \"{\"]\n"
    "parameters = { a = inf }\nreturns = \"{\"\nenv = { \"1\" = \"\" }\noutputs = [\"x\"]\n"
    "[tool.c]\ncapabilities = []\nnetwork = \"none\"\n"
    "[tool.d]\nbackend = \"oci\"\ncontainer = { engine = \"x\", cap_add = [\"X\"] }\n"
    "[tool.\"e e\"]\n"
    "[agent.a]\ngrants = [1, { tool = \"x\", expires = \"never\" }, \"y\", \"y\"]\n";

static bool host_can_nothing(void *context, const struct tci_tool *tool, enum tci_clause clause,
                             char ret_why[TCI_LINT_TEXT_MAX], char ret_remedy[TCI_LINT_TEXT_MAX])
{
    (void)context;
    (void)tool;
    (void)strcpy(ret_why, tci_clause_name(clause));
    (void)strcpy(ret_remedy, "use another host");
    return false;
}

/* Everything that can be written about a policy. */
static int write_all(const struct tc_policy *policy, const struct tci_findings *findings,
                     struct tc_error *error)
{
    for (int document = 0; document < 6; document++) {
        tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(1 << 24);
        switch (document) {
        case 0:
            tci_policy_dump(policy, &out);
            break;
        case 1:
            tci_explain_text(policy, NULL, NULL, &out);
            break;
        case 2:
            tci_explain_json(policy, NULL, NULL, &out);
            break;
        case 3:
            tci_tools_text(policy, &out);
            break;
        case 4:
            tci_report_json(findings, &out);
            break;
        default:
            tci_report_sarif(findings, &out);
            break;
        }
        if (tci_buf_check(&out, error) < 0)
            return -1;
    }
    return 0;
}

static int load_and_tell(const char *text, enum tci_format format, struct tc_error *error)
{
    tc_cleanup(tci_findings_freep) struct tci_findings *findings = tci_findings_new("policy file");
    tc_cleanup(tci_policy_freep) struct tc_policy *policy = NULL;
    struct tci_lint_options options = {
        .now = 2000000000, .look_at_files = true, .home = "/root", .host_can = host_can_nothing
    };
    if (!findings)
        return tci_error_no_memory(error);
    if (tci_policy_parse(text, strlen(text), format, "/policy", findings, &policy, error) < 0 ||
        tci_lint(policy, &options, findings, error) < 0)
        return -1;
    return write_all(policy, findings, error);
}

static int toml_scenario(struct tc_error *error)
{
    return load_and_tell(rich_toml, TCI_FORMAT_TOML, error);
}

static int yaml_scenario(struct tc_error *error)
{
    return load_and_tell(rich_yaml, TCI_FORMAT_YAML, error);
}

static char policy_path[100], schema_path[100], tools_path[100], tool_path[120];

/* The public functions, on files. */
static int public_scenario(struct tc_error *error)
{
    tc_cleanup(tci_policy_freep) struct tc_policy *policy = NULL;
    char *text = NULL;
    if (tc_policy_load(policy_path, &policy, error) < 0 || tc_policy_dump(policy, &text, error) < 0)
        return -1;
    free(text);
    if (tc_policy_lint(policy, &text, error) < 0)
        return -1;
    free(text);
    return 0;
}

/* Single tools and grants, and a grant written out. */
static int parts_scenario(struct tc_error *error)
{
    static const char tool_text[] = "builtin = \"python\"\nfilesystem = { readable = [\"x\"] }\n";
    static const char *const grant_texts[] = {
        "{ tool = \"t\", max_calls = 3, filesystem = { readable = [\"/srv\"] } }",
        "{\"tool\":\"t\",\"expires\":\"2027-01-01\",\"network\":[\"a.example:443\"],\"cpu\":0.5}",
    };
    tc_cleanup(tci_policy_freep) struct tc_policy *policy = NULL;
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    struct tci_grant *grant = NULL;
    struct tci_tool *tool = NULL;

    if (!arena)
        return tci_error_no_memory(error);
    if (tc_policy_load(policy_path, &policy, error) < 0 ||
        tci_tool_parse(policy, arena, "new", tool_text, strlen(tool_text), "text", &tool, error) <
            0)
        return -1;
    for (size_t i = 0; i < tci_array_size(grant_texts); i++) {
        tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(1 << 20);
        if (tci_grant_parse(policy, arena, grant_texts[i], strlen(grant_texts[i]), &grant, error) <
            0)
            return -1;
        tci_grant_write(grant, &out);
        if (tci_buf_check(&out, error) < 0)
            return -1;
    }
    return 0;
}

static int canonical_scenario(struct tc_error *error)
{
    static const char json[] =
        "{\"b\":[1,2.5,-0,1e300,\"\\u00e9\\n\",true,false,null,{}],\"a\":{\"d\":\"a long enough "
        "string to be grown several times while it is read, or so one may hope\",\"c\":[[[]]]}}";
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    const char *text = NULL;
    if (!arena)
        return tci_error_no_memory(error);
    return tci_json_canonical(arena, json, strlen(json), &text, error);
}

/* The policy is refused either way: for its mistakes, and then with all of them, or for memory. */
static int broken_scenario(struct tc_error *error)
{
    tc_cleanup(tci_findings_freep) struct tci_findings *findings = tci_findings_new("policy file");
    tc_cleanup(tci_policy_freep) struct tc_policy *policy = NULL;
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(1 << 20);
    if (!findings)
        return tci_error_no_memory(error);
    if (tci_policy_parse(broken_toml, strlen(broken_toml), TCI_FORMAT_TOML, "/policy", findings,
                         &policy, error) == 0)
        fail_msg("the broken policy was loaded");
    if (error->code == TC_ERROR_NO_MEMORY)
        return -1;
    assert_int_equal(error->code, TC_ERROR_POLICY);
    assert_int_equal(findings->count[TCI_SEVERITY_ERROR], broken_errors);
    *error = (struct tc_error){ 0 };
    tci_report_json(findings, &out);
    return tci_buf_check(&out, error);
}

/* ---- the rounds ------------------------------------------------------------------------------- */

typedef int scenario(struct tc_error *error);

/* `harmless`: an allocation may be of no consequence, as when a value is refused anyway. */
static void run_rounds(scenario *run, bool keep_failing, bool harmless)
{
    struct tc_error error = { 0 };
    long rounds = 0, baseline, failed;
    if (run(&error) < 0) /* also a warm-up: some libraries allocate once and for all */
        fail_msg("%u:%u: %s", error.line, error.column, error.message);
    allocations.failing_on = keep_failing;
    do {
        int r;
        error = (struct tc_error){ 0 };
        baseline = allocations.live;
        begin_round(++rounds);
        r = run(&error);
        failed = allocations.failed;
        begin_round(0);
        if (allocations.live != baseline)
            fail_msg("allocation %ld failed: %ld left behind", rounds, allocations.live - baseline);
        if (failed && r == 0 && !harmless)
            fail_msg("allocation %ld failed, and nobody noticed", rounds);
        if (failed && r < 0 && (error.code == TC_ERROR_NONE || !error.message[0]))
            fail_msg("allocation %ld failed: an error without a reason", rounds);
        if (failed && r < 0 && error.code != TC_ERROR_NO_MEMORY)
            print_message("# allocation %ld failed: %s\n", rounds, error.message);
        if (!failed && r < 0)
            fail_msg("%s", error.message);
    } while (failed);
    assert_true(rounds > 20);
}

static void check_scenario(scenario *run, bool harmless)
{
    run_rounds(run, false, harmless);
    run_rounds(run, true, harmless);
}

static void test_allocations_of_the_libraries_are_counted_too(void **state)
{
    long before = allocations.live;
    json_t *value = json_loads("[\"text\"]", 0, NULL);
    (void)state;
    assert_non_null(value);
    assert_true(allocations.live >= before + 3);
    json_decref(value);
    assert_int_equal(allocations.live, before);
    allocations.failing_on = true;
    begin_round(1);
    value = json_loads("[\"text\"]", 0, NULL);
    begin_round(0);
    assert_null(value);
    assert_int_equal(allocations.live, before);
}

static void test_toml_policy_without_memory(void **state)
{
    (void)state;
    check_scenario(toml_scenario, false);
}

static void test_yaml_policy_without_memory(void **state)
{
    (void)state;
    check_scenario(yaml_scenario, false);
}

static void test_public_functions_without_memory(void **state)
{
    (void)state;
    check_scenario(public_scenario, false);
}

static void test_single_tools_and_grants_without_memory(void **state)
{
    (void)state;
    check_scenario(parts_scenario, false);
}

static void test_canonical_json_without_memory(void **state)
{
    (void)state;
    check_scenario(canonical_scenario, false);
}

static void test_broken_policy_without_memory(void **state)
{
    (void)state;
    check_scenario(broken_scenario, true);
}

/* ---- files ------------------------------------------------------------------------------------ */

static char directory[] = "/tmp/toolcage-test-alloc-XXXXXX";

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int make_files(void **state)
{
    (void)state;
    if (!mkdtemp(directory))
        return -1;
    (void)snprintf(policy_path, sizeof policy_path, "%s/policy.toml", directory);
    (void)snprintf(schema_path, sizeof schema_path, "%s/schema.json", directory);
    (void)snprintf(tools_path, sizeof tools_path, "%s/tools.d", directory);
    (void)snprintf(tool_path, sizeof tool_path, "%s/other.toml", tools_path);
    if (mkdir(tools_path, 0700) < 0)
        return -1;
    write_file(tool_path, "description = \"in a file\"\nbuiltin = \"read_file\"\n");
    write_file(policy_path,
               "version = 1\ntools = \"tools.d\"\n[tool.t]\nparameters = \"schema.json\"\n"
               "network = [\"a.example:443\"]\ncommand = [\"ls\", \"{x}\"]\n");
    write_file(schema_path, "{ \"properties\": { \"x\": { \"type\": \"string\" } } }");
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    return unlink(tool_path) | rmdir(tools_path) | unlink(policy_path) | unlink(schema_path) |
           rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocations_of_the_libraries_are_counted_too),
        cmocka_unit_test(test_toml_policy_without_memory),
        cmocka_unit_test(test_yaml_policy_without_memory),
        cmocka_unit_test(test_public_functions_without_memory),
        cmocka_unit_test(test_single_tools_and_grants_without_memory),
        cmocka_unit_test(test_canonical_json_without_memory),
        cmocka_unit_test(test_broken_policy_without_memory),
    };
#ifdef SANITIZED
    (void)puts("1..0 # SKIP the sanitizer owns malloc: run this in a build without it");
    return 0;
#endif
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
