/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of where a policy comes from: files and their errors, relative paths, and that TOML
 * and YAML say the same.
 */
#include "model_support.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/sys.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yaml_and_toml_of_one_policy_mean_the_same),
        cmocka_unit_test(test_yaml_errors_have_their_place),
        cmocka_unit_test(test_relative_paths_start_at_the_file),
        cmocka_unit_test(test_ending_of_the_name_chooses_the_syntax),
        cmocka_unit_test(test_file_errors_name_the_file),
        cmocka_unit_test(test_error_struct_of_the_caller_may_hold_anything),
        cmocka_unit_test(test_directory_of_a_policy_is_found_by_its_name),
        cmocka_unit_test(test_working_directory_that_is_gone_is_an_error),
        cmocka_unit_test(test_yaml_past_its_maximum_is_too_large_and_not_malformed),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
