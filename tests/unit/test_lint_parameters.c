/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of the findings about what a tool is given: parameters in its command, its
 * environment, and the schemas of its contract.
 */
#include "lint_support.h"

#include <stdio.h>
#include <stdlib.h>
#include "base/attr.h"

/* ---- parameters ----------------------------------------------------------------------------- */

#define PARAMETERS(x) "\nparameters = { properties = { x = " x " } }"

static void test_text_that_can_be_taken_for_an_option(void **state)
{
    static const struct row rows[] = {
        { "command = ['curl', '{x}']" PARAMETERS("{ type = 'string' }"), 1 },
        { "command = ['curl', '{x}']" PARAMETERS("{}"), 1 },
        { "command = ['curl', '--', '{x}']" PARAMETERS("{}"), 0 },
        { "command = ['curl', '{x}', '--']" PARAMETERS("{}"), 1 },
        { "command = ['curl', '--', 'a', '{x}']" PARAMETERS("{}"), 0 },
        { "command = ['curl', '--url={x}']" PARAMETERS("{}"), 0 },
        { "command = ['curl', 'https://example.com/{x}']" PARAMETERS("{}"), 0 },
        { "command = ['curl', './{x}']" PARAMETERS("{}"), 0 },
        { "command = ['curl', '{x}.txt']" PARAMETERS("{}"), 1 },
        { "command = ['curl', '{x...}']" PARAMETERS("{ type = 'array' }"), 1 },
        { "command = ['curl', '--', '{x...}']" PARAMETERS("{ type = 'array' }"), 0 },
        { "command = ['curl', '{x}', '{x}']" PARAMETERS("{}"), 2 },
        { "command = ['curl', '{{x}}']", 0 },
    };
    (void)state;
    CHECK(rows, OPTION_INJECTION);
}

static void test_dashes_of_a_wrapper_protect_nothing(void **state)
{
    static const struct row rows[] = {
        { "command = ['env', '--', 'git', 'log', '{x}']" PARAMETERS("{}"), 1 },
        { "command = ['sudo', '-u', 'n', '--', 'git', 'log', '{x}']" PARAMETERS("{}"), 1 },
        { "command = ['env', '--', 'git', 'log', '--', '{x}']" PARAMETERS("{}"), 0 },
        { "command = ['timeout', '5', 'git', 'log', '--', '{x}']" PARAMETERS("{}"), 0 },
        { "command = ['kubectl', 'exec', 'p', '--', 'git', 'log', '{x}']" PARAMETERS("{}"), 1 },
        { "command = ['kubectl', 'exec', 'p', '--', 'git', 'log', '--', '{x}']" PARAMETERS("{}"),
          0 },
        { "command = ['cargo', 'run', '--', '{x}']" PARAMETERS("{}"), 1 },
        /* These do not know "--". */
        { "command = ['find', '--', '{x}']" PARAMETERS("{}"), 1 },
        { "command = ['find', './{x}']" PARAMETERS("{}"), 0 },
    };
    (void)state;
    CHECK(rows, OPTION_INJECTION);
    check_message("[tool.t]\ncommand = ['find', '--', '{x}']\n", TCI_FINDING_OPTION_INJECTION,
                  "{x}", "does not know \"--\"");
}

static void test_arguments_behind_code_are_no_options(void **state)
{
    static const struct row rows[] = {
        { "command = ['bash', '-c', 'echo \"$1\"', 'sh', '{x}']" PARAMETERS("{}"), 0 },
        { "command = ['python3', '-c', 'import sys', '{x}']" PARAMETERS("{}"), 0 },
        /* perl and node go on reading options behind the code. */
        { "command = ['perl', '-e', 'print shift', '{x}']" PARAMETERS("{}"), 1 },
        { "command = ['node', '-e', 'f()', '{x}']" PARAMETERS("{}"), 1 },
        /* Code is a finding of its own. */
        { "command = ['bash', '-c', '{x}']" PARAMETERS("{}"), 0 },
        { "command = ['bash', 'script.sh', '{x}']" PARAMETERS("{}"), 1 },
    };
    (void)state;
    CHECK(rows, OPTION_INJECTION);
}

static void test_parameter_that_cannot_begin_with_a_dash(void **state)
{
    static const char *const good[] = {
        "{ type = 'integer' }",
        "{ type = 'number' }",
        "{ type = 'boolean' }",
        "{ type = ['integer', 'boolean'] }",
        "{ enum = ['a', 'b'] }",
        "{ const = 'a' }",
        "{ type = 'string', pattern = '^[a-z]+$' }",
        "{ pattern = '^[A-Za-z0-9_][A-Za-z0-9_-]*$' }",
        "{ pattern = '^https?://' }",
        "{ pattern = '^/data/' }",
        "{ pattern = '^\\d{4}' }",
        "{ pattern = '^\\w' }",
        "{ pattern = '^[\\w.]' }",
        "{ pattern = '^[^-]' }",
        "{ pattern = '^[^/-]' }",
        "{ pattern = '^[a-z]{1,8}$' }",
    };
    static const char *const bad[] = {
        "{ type = 'string' }",     "{ type = ['integer', 'string'] }",
        "{ enum = ['a', '-b'] }",  "{ enum = [] }",
        "{ const = '-rf' }",       "{ pattern = '[a-z]' }",
        "{ pattern = '^.' }",      "{ pattern = '^[a-z]*' }",
        "{ pattern = '^[a-z]?' }", "{ pattern = '^[a-z]{0,8}' }",
        "{ pattern = '^a?-x' }",   "{ pattern = '^[a-z-]' }",
        "{ pattern = '^[-a-z]' }", "{ pattern = '^[+-9]' }",
        "{ pattern = '^[^/]' }",   "{ pattern = '^[\\W]' }",
        "{ pattern = '^[\\-a]' }", "{ pattern = '^\\S' }",
        "{ pattern = '^-' }",      "{ pattern = '^(a|-b)' }",
        "{ pattern = '^a|-b' }",   "{ pattern = '^(a)?' }",
        "{ pattern = '^[a-z' }",   "{ pattern = '^[' }",
        "{ pattern = '^[^' }",     "{ pattern = '^\\' }",
        "{ pattern = '^' }",       "{ pattern = '' }",
        "{ minLength = 1 }",
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(good) + tci_array_size(bad); i++) {
        bool is_good = i < tci_array_size(good);
        char lines[256];
        struct row row = { lines, !is_good };
        (void)snprintf(lines, sizeof lines,
                       "command = ['tool', '{x}']\nparameters = { properties = { x = %s } }",
                       is_good ? good[i] : bad[i - tci_array_size(good)]);
        check_rows(&row, 1, TCI_FINDING_OPTION_INJECTION);
        (void)snprintf(lines, sizeof lines,
                       "command = ['tool', '{x...}']\n"
                       "parameters = { properties = { x = { type = 'array', items = %s } } }",
                       is_good ? good[i] : bad[i - tci_array_size(good)]);
        check_rows(&row, 1, TCI_FINDING_OPTION_INJECTION);
    }
}

static void test_placeholder_without_a_parameter(void **state)
{
    static const struct row rows[] = {
        { "command = ['tool', '--', '{x}']", 1 },
        { "command = ['tool', '--', '{x}']\nparameters = true", 1 },
        { "command = ['tool', '--', '{x}']" PARAMETERS("{}"), 0 },
        { "command = ['tool', '--', '{x}', '{y}']" PARAMETERS("{}"), 1 },
        { "command = ['tool', '--', '{X}']" PARAMETERS("{}"), 1 },
        { "command = ['tool', '--', '{xx}']" PARAMETERS("{}"), 1 },
        { "command = ['tool', '--', '{x}']\nparameters = { properties = [] }", 1 },
        { "command = ['tool', '--', '{x}']\nparameters = { properties = 'x' }", 1 },
        { "command = ['tool', '{{x}}']", 0 },
        { "command = ['tool']", 0 },
    };
    (void)state;
    CHECK(rows, UNDECLARED_PLACEHOLDER);
}

static void test_value_of_an_option_that_can_be_left_out(void **state)
{
#define XY "\nparameters = { required = ['y'], properties = { x = {}, y = {} } }"
    static const struct row rows[] = {
        { "command = ['tool', '-C', '{x}', '--', '{y}']" XY, 1 },
        { "command = ['tool', '-C', '{x}', '{x}', '{y}']" XY, 1 },
        { "command = ['tool', '--include', './{x}', '{y}']" XY, 1 },
        { "command = ['tool', '-o', '{x...}', '{y}']" XY, 1 },
        { "command = ['tool', '-o', '{y}{x}', '{y}']" XY, 1 },
        { "command = ['tool', '-o', '--x={x}', '{x}', '{y}']" XY, 1 },
        { "command = ['tool', '-{y}', '{x}', '{y}']" XY, 1 },
        { "command = ['tool', '-C', '{y}', '{x}', '--', '{y}']" XY, 0 },
        { "command = ['tool', '-C', '{y}', '--', '{x}']" XY, 0 },
        { "command = ['tool', '{y}', '-C', '{x}']" XY, 0 },
        { "command = ['tool', '-C{x}', '--', '{y}']" XY, 0 },
        { "command = ['tool', '-r', '--include={x}', '--', '{y}']" XY, 0 },
        { "command = ['tool', '--color=auto', '{x}', '{y}']" XY, 0 },
        { "command = ['tool', '--', '{x}', '{y}']" XY, 0 },
        { "command = ['tool', '-', '{x}', '{y}']" XY, 0 },
        /* That it has no parameter is a finding of its own. */
        { "command = ['tool', '-C', '{z}', '--', '{y}']" XY, 0 },
    };
    (void)state;
    CHECK(rows, OPTIONAL_VALUE);
#undef XY
}

static void test_parameter_that_is_never_used(void **state)
{
    static const struct row rows[] = {
        { "command = ['tool', '--', '{x}']" PARAMETERS("{}, y = {}, z = {}"), 2 },
        { "command = ['tool', '--', '{x}', '{x}']" PARAMETERS("{}"), 0 },
        { "command = ['tool', '--x={x}']" PARAMETERS("{}"), 0 },
        /* Without any placeholder all arguments arrive on stdin. */
        { "command = ['tool']" PARAMETERS("{}"), 0 },
        { "command = ['tool', '{{x}}']" PARAMETERS("{}"), 0 },
        { "description = 'no command'" PARAMETERS("{}"), 0 },
    };
    (void)state;
    CHECK(rows, UNUSED_PARAMETER);
}

/* ---- environment ---------------------------------------------------------------------------- */

static void test_variables_that_look_like_secrets(void **state)
{
    static const struct row rows[] = {
        { "env = { GITHUB_TOKEN = 'x' }", 1 },
        { "env = { token = 'x' }", 1 },
        { "env = { OPENAI_API_KEY = 'x' }", 1 },
        { "env = { STRIPE_KEY = 'x' }", 1 },
        { "env = { DB_PASS = 'x', MYSQL_PWD = 'x', PGPASSWORD = 'x' }", 3 },
        { "env = { AWS_SECRET_ACCESS_KEY = 'x' }", 1 },
        { "env = { GOOGLE_APPLICATION_CREDENTIALS = '/x' }", 1 },
        { "env_pass = ['SSH_AUTH_SOCK', 'KUBECONFIG', 'DATABASE_URL', 'KRB5CCNAME']", 4 },
        { "env_pass = ['LANG', 'TZ']", 0 },
        { "env = { MAX_TOKENS = '5', TOKENIZERS_PARALLELISM = 'false' }", 0 },
        { "env = { PASSAGE = 'x', KEYBOARD = 'x', MONKEY = 'x', PWD = '/', COMPASS = 'n' }", 0 },
    };
    (void)state;
    CHECK(rows, SECRET_ENVIRONMENT);
}

static void test_values_that_are_secrets(void **state)
{
    static const struct row rows[] = {
        { "env = { A = 'ghp_0123456789abcdef0123456789abcdef0123' }", 1 },
        { "env = { A = 'AKIAIOSFODNN7EXAMPLE' }", 1 },
        { "env = { A = 'sk-proj-0123456789abcdef0123456789' }", 1 },
        { "env = { A = '-----BEGIN OPENSSH PRIVATE KEY-----' }", 1 },
        { "env = { A = 'postgres://me:hunter2@db.example.com/x' }", 1 },
        { "env = { A = 'https://example.com/a:b@c' }", 0 },
        { "env = { A = 'https://me@example.com/' }", 0 },
        { "env = { A = 'https://example.com:8080/' }", 0 },
        { "env = { A = 'sk-short', B = 'AKIA', C = 'ghp_' }", 0 },
        { "env = { A = 'hello' }", 0 },
    };
    (void)state;
    CHECK(rows, SECRET_ENVIRONMENT);
}

static void test_secret_value_is_not_in_the_message(void **state)
{
    struct tci_findings *findings = lint(
        "[tool.t]\nenv = { A = 'AKIAIOSFODNN7EXAMPLE', B = 'x:/${Y}/hunter2' }\n");
    (void)state;
    assert_int_equal(count_of(findings, TCI_FINDING_SECRET_ENVIRONMENT), 1);
    for (const struct tci_finding *f = findings->first; f; f = f->next) {
        assert_null(strstr(f->message, "AKIA"));
        assert_null(strstr(f->message, "hunter2"));
        assert_null(strstr(f->remedy, "AKIA"));
    }
    tci_findings_free(findings);
}

static void test_variables_that_decide_what_is_loaded(void **state)
{
    static const struct row rows[] = {
        { "env = { LD_PRELOAD = '/x.so' }", 1 },
        { "env = { LD_LIBRARY_PATH = '/x' }", 1 },
        { "env_pass = ['LD_AUDIT', 'BASH_ENV', 'NODE_OPTIONS', 'GIT_SSH_COMMAND']", 4 },
        { "env = { PYTHONSTARTUP = '/x', PERL5OPT = '-Mx', RUBYOPT = '-rx' }", 3 },
        { "env = { LUA_INIT_5_4 = 'x' }", 1 },
        { "env = { PYTHONINSPECT = '1' }", 1 },
        { "env = { ENVIRONMENT = 'test', OLD_ENV = 'x', BUILD_ID = '1' }", 0 },
        { "env = { ld_preload = 'x' }", 0 },
    };
    (void)state;
    CHECK(rows, LOADER_ENVIRONMENT);
}

static void test_search_path_must_be_fixed(void **state)
{
    static const struct row rows[] = {
        { "filesystem = { readable = ['/w'] }\nenv = { PYTHONPATH = '/w/src' }", 0 },
        { "filesystem = { writable = ['/w'] }\nenv = { PYTHONPATH = '/w/src' }", 1 },
        { "filesystem = { writable = ['/w'], readable = ['/w/src'] }\nenv = { NODE_PATH = '/w/src' "
          "}",
          0 },
        { "env = { PATH = '/usr/local/bin:/usr/bin:/bin' }", 0 },
        { "env = { PATH = '/tmp:/usr/bin' }", 1 },
        { "env = { PATH = '/usr/bin:' }", 1 },
        { "env = { PATH = ':/usr/bin' }", 1 },
        { "env = { PATH = '/usr/bin::/bin' }", 1 },
        { "env = { PATH = 'bin:/usr/bin' }", 1 },
        { "env = { PATH = '' }", 1 },
        { "env = { RUBYLIB = '/not/granted' }", 1 },
        { "env_pass = ['PATH', 'PYTHONPATH']", 2 },
        { "env = { PAGER = 'cat', GIT_CONFIG_GLOBAL = '/dev/null', EDITOR = '/usr/bin/vi -n' }",
          0 },
        { "env = { PAGER = '/tmp/x' }", 1 },
        { "env_pass = ['PAGER', 'EDITOR']", 0 },
        { "backend = 'oci'\nenv = { PATH = '/app/bin:/usr/bin' }", 0 },
    };
    (void)state;
    CHECK(rows, LOADER_ENVIRONMENT);
}

/* ---- contracts ------------------------------------------------------------------------------ */

static void test_schemas_that_cannot_be_compiled_are_found(void **state)
{
    static const struct row rows[] = {
        { "parameters = { type = 'object' }\nreturns = { type = 'number' }", 0 },
        { "parameters = { '$ref' = '#/$defs/a', '$defs' = { a = { type = 'object' } } }", 0 },
        { "parameters = { '$schema' = 'http://json-schema.org/draft-07/schema#' }", 0 },
        { "parameters = { type = 'text' }", 1 },
        { "returns = { type = 1 }", 1 },
        { "parameters = { minLength = -1 }\nreturns = { pattern = '(' }", 2 },
        { "parameters = { '$ref' = '#/$defs/missing' }", 1 },
        { "parameters = { '$ref' = 'https://example.com/schema.json' }", 1 },
        { "parameters = { '$schema' = 'http://json-schema.org/draft-04/schema#' }", 1 },
        { "parameters = true", 0 },
        { "builtin = 'read_file'", 0 },
    };
    (void)state;
    CHECK(rows, SCHEMA_INVALID);
    check_message("[tool.t]\nparameters = { properties = { x = { type = 'text' } } }\n",
                  TCI_FINDING_SCHEMA_INVALID, "#/properties/x/type", "JSON Schema");
}

static void test_large_schema_is_found(void **state)
{
    enum { size = 250000 };
    char *text = malloc(size + 200);
    size_t used;
    (void)state;
    assert_non_null(text);
    used = (size_t)snprintf(text, size, "[tool.t]\nparameters = '{\"allOf\":[{}");
    while (used < size)
        used += (size_t)snprintf(text + used, 8, ",{}");
    (void)snprintf(text + used, 100, "]}'\n");
    check_message(text, TCI_FINDING_SCHEMA_INVALID, "\"parameters\"", "smaller");
    free(text);
}

static void test_arguments_that_are_no_object_are_found(void **state)
{
    static const struct row rows[] = {
        { "parameters = {}", 0 },
        { "parameters = { type = 'object' }", 0 },
        { "parameters = { properties = {} }", 0 },
        { "parameters = { type = 'string' }", 1 },
        { "parameters = { type = ['object', 'null'] }", 1 },
        { "parameters = true", 1 },
        { "returns = { type = 'string' }", 0 },
    };
    (void)state;
    CHECK(rows, NOT_AN_OBJECT);
}

static void test_pointers_that_lead_nowhere_are_found(void **state)
{
    static const struct row rows[] = {
        { "redact = ['/a']\nparameters = { properties = { a = {} } }", 0 },
        { "redact = ['/a/b/0']\nparameters = { properties = { a = {} } }", 0 },
        { "redact = ['/a~1b', '/c~0d']\nparameters = { properties = { 'a/b' = {}, 'c~d' = {} } }",
          0 },
        { "redact = ['/b', '/a/b', '/c']\nparameters = { properties = { a = {} } }", 2 },
        { "redact = ['/b']\nparameters = { properties = {}, patternProperties = { b = {} } }", 0 },
        { "redact = ['/b']", 0 },
        { "redact = ['/nothing']\nbuiltin = 'bash'", 1 },
        { "redact = ['/command']\nbuiltin = 'bash'", 0 },
    };
    static const struct row policies[] = {
        { "[defaults]\nredact = ['/b']\n[tool.t]\nparameters = { properties = { a = {} } }\n", 0 },
    };
    (void)state;
    CHECK(rows, REDACT_UNKNOWN);
    CHECK_POLICIES(policies, REDACT_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schemas_that_cannot_be_compiled_are_found),
        cmocka_unit_test(test_large_schema_is_found),
        cmocka_unit_test(test_arguments_that_are_no_object_are_found),
        cmocka_unit_test(test_pointers_that_lead_nowhere_are_found),
        cmocka_unit_test(test_text_that_can_be_taken_for_an_option),
        cmocka_unit_test(test_dashes_of_a_wrapper_protect_nothing),
        cmocka_unit_test(test_arguments_behind_code_are_no_options),
        cmocka_unit_test(test_parameter_that_cannot_begin_with_a_dash),
        cmocka_unit_test(test_placeholder_without_a_parameter),
        cmocka_unit_test(test_value_of_an_option_that_can_be_left_out),
        cmocka_unit_test(test_parameter_that_is_never_used),
        cmocka_unit_test(test_variables_that_look_like_secrets),
        cmocka_unit_test(test_values_that_are_secrets),
        cmocka_unit_test(test_secret_value_is_not_in_the_message),
        cmocka_unit_test(test_variables_that_decide_what_is_loaded),
        cmocka_unit_test(test_search_path_must_be_fixed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
