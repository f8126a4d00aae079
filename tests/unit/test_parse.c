/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of tools and grants that come as texts (parse.h), of built-in tools, child agents, the
 * policy's hash, and tool files.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "support.h"
#include "base/sha256.h"
#include "json/canonical.h"
#include "policy/lint.h"
#include "policy/parse.h"

static const char small[] = "version = 1\n"
                            "[defaults]\nmemory = \"64MB\"\n"
                            "[tool.fetch]\nnetwork = [\"a.example:443\"]\n"
                            "[tool.open]\nnetwork = \"host\"\n";

/* ---- single tools ------------------------------------------------------------------------- */

static struct tci_tool *parse_tool(struct tc_policy *policy, const char *name, const char *text,
                                   struct tc_error *error)
{
    struct tci_tool *tool = NULL;
    *error = (struct tc_error){ 0 };
    if (tci_tool_parse(policy, policy->arena, name, text, strlen(text), "here", &tool, error) < 0)
        assert_null(tool);
    return tool;
}

static void test_single_tool_inherits_from_the_policy(void **state)
{
    struct tc_policy *policy = load_text(small);
    struct tc_error error;
    struct tci_tool *tool = parse_tool(
        policy, "new", "timeout = \"2s\"\nfilesystem = { readable = [\"data\"] }\n", &error);
    (void)state;
    assert_non_null(tool);
    assert_string_equal(tool->name, "new");
    assert_int_equal(tool->settings.memory, 64000000);
    assert_int_equal(tool->settings.timeout, 2000);
    assert_string_equal(tool->settings.filesystem.rules[0].host, "/policy/data");
    assert_int_equal(tool->source[TCI_KEY_MEMORY], TCI_FROM_DEFAULTS);
    assert_int_equal(tool->settings.pos[TCI_KEY_TIMEOUT].file, TCI_FILE_NONE);
    assert_int_equal(tool->settings.pos[TCI_KEY_MEMORY].file, 0);
    assert_string_equal(tci_policy_file(policy, tool->pos), "(made by the program)");
    assert_null(tci_policy_tool(policy, "new"));
    tc_policy_free(policy);
}

static void test_bad_single_tools_are_errors_with_a_place(void **state)
{
    static const struct {
        const char *name, *text, *id;
        unsigned line, column;
    } cases[] = {
        { "new", "timeout = 5\n", "TC-P014", 1, 11 },
        { "new", "\nnonsense = 1\n", "TC-P010", 2, 1 },
        { "new", "[tool.new]\n", "TC-P010", 1, 2 },
        { "new", "timeout = \n", "TC-P005", 1, 11 },
        { "-new", "", "TC-P016", 1, 1 },
        { "", "", "TC-P016", 1, 1 },
        { "fetch", "", "TC-P018", 1, 1 },
        { "new", "builtin = \"bash\"\ncommand = [\"ls\"]\n", "TC-P019", 2, 11 },
    };
    struct tc_policy *policy = load_text(small);
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        struct tc_error error;
        if (parse_tool(policy, cases[i].name, cases[i].text, &error))
            fail_msg("accepted: %s", cases[i].text);
        assert_string_equal(error.id, cases[i].id);
        assert_string_equal(error.file, "here");
        assert_int_equal(error.line, cases[i].line);
        assert_int_equal(error.column, cases[i].column);
        assert_true(error.remedy[0]);
    }
    tc_policy_free(policy);
}

static void test_text_of_a_tool_has_a_maximum(void **state)
{
    struct tc_policy *policy = load_text(small);
    size_t length = TCI_TOOL_TEXT_MAX + 1;
    char *text = malloc(length);
    struct tc_error error = { 0 };
    struct tci_tool *tool = NULL;
    (void)state;
    assert_non_null(text);
    memset(text, '\n', length);
    assert_int_equal(
        tci_tool_parse(policy, policy->arena, "new", text, length, NULL, &tool, &error), -1);
    assert_int_equal(error.code, TC_ERROR_TOO_LARGE);
    error = (struct tc_error){ 0 };
    assert_int_equal(
        tci_tool_parse(policy, policy->arena, "new", text, length - 1, NULL, &tool, &error), 0);
    free(text);
    tc_policy_free(policy);
}

/* ---- single grants ------------------------------------------------------------------------ */

static struct tci_grant *parse_grant(struct tc_policy *policy, const char *text,
                                     struct tc_error *error)
{
    struct tci_grant *grant = NULL;
    *error = (struct tc_error){ 0 };
    if (tci_grant_parse(policy, policy->arena, text, strlen(text), &grant, error) < 0)
        assert_null(grant);
    return grant;
}

static char *written(const struct tci_grant *grant)
{
    struct tci_buf out = TCI_BUF_INIT(65536);
    char *text;
    tci_grant_write(grant, &out);
    text = tci_buf_take(&out, NULL);
    assert_non_null(text);
    return text;
}

/* TOML and JSON of the same grant are written as the same canonical JSON, which reads as itself. */
static void test_grants_are_read_from_toml_and_json_and_written_canonically(void **state)
{
    static const struct {
        const char *text, *json;
    } cases[] = {
        { "{ tool = \"x\" }", "{\"tool\":\"x\"}" },
        { " \n{\"tool\": \"x\"}\n", "{\"tool\":\"x\"}" },
        { "{ \"tool\" = \"x\" }", "{\"tool\":\"x\"}" },
        { "{ tool = \"x\", max_calls = 3 }", "{\"max_calls\":3,\"tool\":\"x\"}" },
        { "{\"tool\":\"x\",\"max_calls\":3.0}", "{\"max_calls\":3,\"tool\":\"x\"}" },
        { "{ tool = \"x\", expires = 2027-01-01, network = false, timeout = \"1.5s\" }",
          "{\"expires\":\"2027-01-01T00:00:00Z\",\"network\":\"none\",\"timeout\":\"1500ms\","
          "\"tool\":\"x\"}" },
        { "{\"tool\":\"fetch\",\"filesystem\":{\"readable\":[\"rel\",\"/a\\u2028b\"]},\"cpu\":0.5,"
          "\"network\":[\"A.example:443\"]}",
          "{\"cpu\":0.5,\"filesystem\":{\"readable\":[\"/policy/rel\",\"/a\xe2\x80\xa8"
          "b\"]},\"network\":[\"a.example:443\"],\"tool\":\"fetch\"}" },
        { "{ tool = \"x\", approval = \"ask\", approval_timeout = \"5s\" }",
          "{\"approval\":\"ask\",\"approval_timeout\":\"5s\",\"tool\":\"x\"}" },
    };
    struct tc_policy *policy = load_text(small);
    struct tc_error error;
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        const struct tci_grant *grant = parse_grant(policy, cases[i].text, &error);
        char *first, *second;
        if (!grant)
            fail_msg("%s: %s", cases[i].text, error.message);
        first = written(grant);
        assert_string_equal(first, cases[i].json);
        grant = parse_grant(policy, first, &error);
        if (!grant)
            fail_msg("%s: %s", first, error.message);
        second = written(grant);
        assert_string_equal(second, first);
        free(first);
        free(second);
    }
    tc_policy_free(policy);
}

static void test_bad_grants_are_refused(void **state)
{
    static const struct {
        const char *text, *id;
    } cases[] = {
        { "", "TC-P005" },
        { "x", "TC-P005" },
        { "\"x\"", "TC-P005" },
        { "[]", "TC-P005" },
        { "{}", "TC-P013" },
        { "{ tool = \"x\" }\ntool = 1", "TC-P005" },
        { "{ tool = \"x\" } # a comment\n[tool]", "TC-P005" },
        { "{\"tool\":\"x\",\"tool\":\"y\"}", "TC-P005" },
        { "{\"tool\":\"x\"} {}", "TC-P005" },
        { "{\"tool\":null}", "TC-P012" },
        { "{\"tool\":\"x\",\"filesystem\":[[[[[[[[[[[]]]]]]]]]]]}", "TC-P012" },
        { "{\"tool\":\"x\",\"nonsense\":1}", "TC-P010" },
        { "{\"tool\":\"x\",\"command\":[\"ls\"]}", "TC-P011" },
        { "{\"tool\":\"x\\u0000y\"}", "TC-P005" },
        { "{\"tool\":\"x\",\"max_calls\":-1}", "TC-P015" },
        { "{\"tool\":\"x\",\"max_calls\":1e300}", "TC-P012" },
        { "{\"tool\":\"x\",\"filesystem\":{\"readable\":[\"/a:/b\"]}}", "TC-P021" },
        { "{ tool = \"open\", inspect = \"strict\" }", "TC-P019" },
    };
    struct tc_policy *policy = load_text(small);
    struct tc_error error;
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        if (parse_grant(policy, cases[i].text, &error))
            fail_msg("accepted: %s", cases[i].text);
        if (strcmp(error.id, cases[i].id) != 0)
            fail_msg("%s: %s %s", cases[i].text, error.id, error.message);
        assert_true(error.message[0] && error.remedy[0]);
    }
    tc_policy_free(policy);
}

/* ---- built-in tools ----------------------------------------------------------------------- */

static void assert_canonical(struct tci_arena *arena, const char *json)
{
    struct tc_error error = { 0 };
    const char *text = NULL;
    assert_int_equal(tci_json_canonical(arena, json, strlen(json), &text, &error), 0);
    assert_string_equal(json, text);
}

static void test_built_in_tools_have_canonical_schemas(void **state)
{
    static const char *const wanted[] = { "read_file",    "write_file", "edit_file", "list_dir",
                                          "search_files", "http_fetch", "bash",      "python" };
    struct tci_arena *arena = tci_arena_new();
    (void)state;
    assert_non_null(arena);
    for (size_t i = 0; i < tci_array_size(wanted); i++)
        assert_non_null(tci_builtin_find(wanted[i]));
    assert_null(tci_builtin_find("sh"));
    for (const char *const *name = tci_builtin_names(); *name; name++) {
        const struct tci_builtin *builtin = tci_builtin_find(*name);
        assert_non_null(builtin);
        assert_true(builtin->description[0] && builtin->command[0]);
        assert_canonical(arena, builtin->parameters);
        if (builtin->returns)
            assert_canonical(arena, builtin->returns);
    }
    tci_arena_free(arena);
}

/* Every built-in tool, with what it needs, has no error or warning. */
static void test_built_in_tools_pass_lint(void **state)
{
    struct tci_lint_options options = { .now = 0 };
    (void)state;
    for (const char *const *name = tci_builtin_names(); *name; name++) {
        struct tci_findings *findings = tci_findings_new("test.toml");
        struct tc_policy *policy;
        char text[256];
        (void)snprintf(text, sizeof text,
                       "version = 1\n[tool.t]\nbuiltin = \"%s\"\nfilesystem = { writable = "
                       "[\"/srv\"] }\nnetwork = [\"a.example:443\"]\n[agent.a]\ngrants = [\"t\"]\n",
                       *name);
        policy = load_text(text);
        assert_int_equal(tci_lint(policy, &options, findings, NULL), 0);
        if (findings->count[TCI_SEVERITY_ERROR] || findings->count[TCI_SEVERITY_WARNING])
            fail_msg("%s: %s", *name, findings->first->message);
        assert_true(findings->count[TCI_SEVERITY_NOTE] <= 1);
        tci_findings_free(findings);
        tc_policy_free(policy);
    }
}

static void test_built_in_tool_brings_command_and_schemas(void **state)
{
    struct tc_policy *policy = load_text(
        "[tool.sh]\nbuiltin = \"bash\"\n"
        "[tool.py]\nbuiltin = \"python\"\ndescription = \"mine\"\n");
    const struct tci_tool *sh = tci_policy_tool(policy, "sh"), *py = tci_policy_tool(policy, "py");
    (void)state;
    for (size_t i = 0; i < sh->settings.command.count; i++)
        assert_string_equal(sh->settings.command.items[i].text,
                            tci_builtin_find("bash")->command[i]);
    assert_null(tci_builtin_find("bash")->command[sh->settings.command.count]);
    assert_string_equal(sh->settings.description, tci_builtin_find("bash")->description);
    assert_string_equal(sh->settings.parameters.json, tci_builtin_find("bash")->parameters);
    assert_int_equal(sh->source[TCI_KEY_COMMAND], TCI_FROM_BUILTIN_TOOL);
    assert_int_equal(sh->source[TCI_KEY_DESCRIPTION], TCI_FROM_BUILTIN_TOOL);
    assert_int_equal(sh->settings.pos[TCI_KEY_COMMAND].line, 2);
    assert_string_equal(py->settings.description, "mine");
    assert_int_equal(py->source[TCI_KEY_DESCRIPTION], TCI_FROM_TOOL);
    tc_policy_free(policy);
}

static void test_what_a_built_in_tool_brings_may_not_stand_beside_it(void **state)
{
    static const char *const beside[] = { "command = [\"ls\"]", "parameters = {}", "returns = {}" };
    (void)state;
    for (size_t i = 0; i < tci_array_size(beside); i++) {
        char text[128];
        struct tc_error error;
        (void)snprintf(text, sizeof text, "[tool.t]\nbuiltin = \"bash\"\n%s\n", beside[i]);
        error = load_error(text);
        assert_string_equal(error.id, "TC-P019");
        assert_int_equal(error.line, 3);
    }
}

/* ---- child agents ------------------------------------------------------------------------- */

static void test_child_agents_know_their_parents(void **state)
{
    struct tc_policy *policy = load_text("[agent.kid]\nparent = \"boss\"\n[agent.boss]\n"
                                         "[agent.grandkid]\nparent = \"kid\"\n");
    const struct tci_agent *kid = tci_policy_agent(policy, "kid");
    (void)state;
    assert_ptr_equal(kid->parent, tci_policy_agent(policy, "boss"));
    assert_null(kid->parent->parent);
    assert_ptr_equal(tci_policy_agent(policy, "grandkid")->parent, kid);
    tc_policy_free(policy);
}

static void test_parents_that_cannot_be_are_errors(void **state)
{
    static const struct {
        const char *text, *id;
        unsigned line;
    } cases[] = {
        { "[agent.a]\nparent = \"nobody\"\n", "TC-P029", 2 },
        { "[agent.a]\nparent = \"a\"\n", "TC-P029", 2 },
        { "[agent.a]\nparent = \"b\"\n[agent.b]\nparent = \"a\"\n", "TC-P029", 2 },
        { "[agent.a]\nparent = 1\n", "TC-P012", 2 },
        { "[agent.a]\nparent = \"\"\n", "TC-P013", 2 },
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        struct tc_error error = load_error(cases[i].text);
        assert_string_equal(error.id, cases[i].id);
        assert_int_equal(error.line, cases[i].line);
        assert_int_equal(error.column, 10);
    }
}

/* a1 below a2 below ... */
static void chain_of(int agents, char *text, size_t size)
{
    int used = 0;
    for (int i = 1; i <= agents; i++) {
        used += snprintf(text + used, size - (size_t)used, "[agent.a%d]\n", i);
        if (i < agents)
            used += snprintf(text + used, size - (size_t)used, "parent = \"a%d\"\n", i + 1);
    }
}

static void test_chain_of_agents_has_a_maximum(void **state)
{
    char text[1024];
    struct tc_error error;
    (void)state;
    chain_of(TCI_AGENT_CHAIN_MAX, text, sizeof text);
    tc_policy_free(load_text(text));
    chain_of(TCI_AGENT_CHAIN_MAX + 1, text, sizeof text);
    error = load_error(text);
    assert_string_equal(error.id, "TC-P029");
    assert_int_equal(error.line, 2);
}

/* ---- files -------------------------------------------------------------------------------- */

static char directory[] = "/tmp/toolcage-test-parse-XXXXXX";

static void write_file(const char *name, const char *text)
{
    char path[256];
    FILE *file;
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static struct tc_policy *load_file(const char *name, struct tc_error *error)
{
    struct tc_policy *policy = NULL;
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    *error = (struct tc_error){ 0 };
    if (tc_policy_load(path, &policy, error) < 0)
        assert_null(policy);
    return policy;
}

static void hash_of(const char *name, char ret[65])
{
    struct tc_error error;
    struct tc_policy *policy = load_file(name, &error);
    if (!policy)
        fail_msg("%s", error.message);
    memcpy(ret, policy->hash, 65);
    tc_policy_free(policy);
}

static void test_hash_of_a_single_file_is_its_sha256(void **state)
{
    static const char text[] = "version = 1\n[tool.t]\n";
    char expected[TCI_SHA256_TEXT_MAX], found[65];
    (void)state;
    tci_sha256_text(text, strlen(text), expected);
    write_file("plain.toml", text);
    hash_of("plain.toml", found);
    assert_string_equal(found, expected);
}

static void test_hash_covers_tool_files_and_schemas(void **state)
{
    char first[65], second[65];
    (void)state;
    write_file("p.toml", "version = 1\ntools = \"tools.d\"\n");
    write_file("tools.d/one.toml", "parameters = \"one.json\"\n");
    write_file("tools.d/one.json", "{}");
    hash_of("p.toml", first);
    hash_of("p.toml", second);
    assert_string_equal(first, second);
    write_file("tools.d/one.toml", "parameters = \"one.json\" \n");
    hash_of("p.toml", second);
    assert_string_not_equal(first, second);
    write_file("tools.d/one.toml", "parameters = \"one.json\"\n");
    write_file("tools.d/one.json", "{ }");
    hash_of("p.toml", second);
    assert_string_not_equal(first, second);
}

static void test_tool_files_are_tools_with_their_own_places(void **state)
{
    struct tc_error error;
    struct tc_policy *policy;
    const struct tci_tool *tool;
    struct tc_decision decision;
    char data[256];
    (void)state;
    write_file("p.toml", "version = 1\ntools = [\"tools.d\"]\n[tool.last]\n[agent.a]\n"
                         "grants = [\"one\"]\n");
    write_file("tools.d/one.toml", "\nfilesystem = { readable = [\"data\"] }\n");
    write_file("tools.d/ignored.yaml", "nonsense");
    write_file("tools.d/.hidden.toml", "nonsense");
    policy = load_file("p.toml", &error);
    if (!policy)
        fail_msg("%s", error.message);
    assert_int_equal(policy->tool_count, 2);
    assert_string_equal(policy->tools[0].name, "last");
    tool = tci_policy_tool(policy, "one");
    assert_non_null(tool);
    (void)snprintf(data, sizeof data, "%s/tools.d/data", directory);
    assert_string_equal(tool->settings.filesystem.rules[0].host, data);
    assert_int_equal(tool->pos.file, 1);
    tc_decide_path(policy, "a", "one", data, TC_ACCESS_READ, &decision);
    assert_int_equal(decision.allowed, 1);
    assert_int_equal(decision.line, 2);
    assert_non_null(strstr(tc_policy_file_name(policy, decision.file), "tools.d/one.toml"));
    assert_non_null(strstr(tc_policy_file_name(policy, 0), "p.toml"));
    tc_policy_free(policy);
}

static void test_error_in_a_tool_file_names_that_file(void **state)
{
    struct tc_error error;
    char path[256];
    (void)state;
    write_file("p.toml", "version = 1\ntools = \"tools.d\"\n");
    write_file("tools.d/one.toml", "\ntimeout = 5\n");
    assert_null(load_file("p.toml", &error));
    (void)snprintf(path, sizeof path, "%s/tools.d/one.toml", directory);
    assert_string_equal(error.file, path);
    assert_int_equal(error.line, 2);
    assert_int_equal(error.column, 11);
    assert_string_equal(error.id, "TC-P014");
}

static int make_directory(void **state)
{
    char path[256];
    (void)state;
    if (!mkdtemp(directory))
        return -1;
    (void)snprintf(path, sizeof path, "%s/tools.d", directory);
    return mkdir(path, 0700);
}

static int remove_directory(void **state)
{
    static const char *const files[] = {
        "tools.d/one.toml",     "tools.d/one.json", "tools.d/ignored.yaml",
        "tools.d/.hidden.toml", "p.toml",           "plain.toml"
    };
    char path[256];
    (void)state;
    for (size_t i = 0; i < tci_array_size(files); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", directory, files[i]);
        (void)unlink(path);
    }
    (void)snprintf(path, sizeof path, "%s/tools.d", directory);
    return rmdir(path) | rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single_tool_inherits_from_the_policy),
        cmocka_unit_test(test_bad_single_tools_are_errors_with_a_place),
        cmocka_unit_test(test_text_of_a_tool_has_a_maximum),
        cmocka_unit_test(test_grants_are_read_from_toml_and_json_and_written_canonically),
        cmocka_unit_test(test_bad_grants_are_refused),
        cmocka_unit_test(test_built_in_tools_have_canonical_schemas),
        cmocka_unit_test(test_built_in_tools_pass_lint),
        cmocka_unit_test(test_built_in_tool_brings_command_and_schemas),
        cmocka_unit_test(test_what_a_built_in_tool_brings_may_not_stand_beside_it),
        cmocka_unit_test(test_child_agents_know_their_parents),
        cmocka_unit_test(test_parents_that_cannot_be_are_errors),
        cmocka_unit_test(test_chain_of_agents_has_a_maximum),
        cmocka_unit_test(test_hash_of_a_single_file_is_its_sha256),
        cmocka_unit_test(test_hash_covers_tool_files_and_schemas),
        cmocka_unit_test(test_tool_files_are_tools_with_their_own_places),
        cmocka_unit_test(test_error_in_a_tool_file_names_that_file),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
