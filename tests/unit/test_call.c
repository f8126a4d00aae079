/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what a call decides: who may call, what is run, and how the end is named. */
#include "engine_support.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/builtin.h"

static const char policy_text[] =
    "version = 1\n"
    "[defaults]\n"
    "timeout = \"20s\"\n"
    "output = \"1kB\"\n"
    "[tool.plain]\n"
    "memory = \"100MB\"\n"
    "[tool.echo]\n"
    "command = [\"printf\", \"<%s>\", \"--word={word}\", \"{{\", \"{more...}\", \"{a}{b}\"]\n"
    "[tool.stdin]\n"
    "command = [\"cat\"]\n"
    "[tool.schema]\n"
    "command = [\"true\", \"{x}\"]\n"
    "parameters = { type = \"object\" }\n"
    "[tool.returning]\n"
    "command = [\"true\"]\n"
    "returns = { type = \"number\" }\n"
    "[tool.any_arguments]\n"
    "command = [\"true\"]\n"
    "parameters = true\n"
    "[tool.listed]\n"
    "commands = [\"git\", \"/usr/bin/env\"]\n"
    "command = [\"own-program\"]\n"
    "[tool.closed]\n"
    "system = false\n"
    "[tool.named]\n"
    "network = [\"a.example:443\"]\n"
    "[tool.boxed]\n"
    "backend = \"oci\"\n"
    "[agent.reader]\n"
    "grants = [\"plain\", { tool = \"echo\", max_calls = 5 }, { tool = \"stdin\", timeout = \"5s\" "
    "},\n"
    "          { tool = \"boxed\", expires = \"2001-01-01\" }]\n";

static int open_engine(void **state)
{
    return open_engine_over(state, policy_text);
}

static struct tc_result *run(void **state, const char *const *argv)
{
    return call(engine_of(state), &(struct tc_request){ .argv = argv });
}

static struct tc_result *run_tool(void **state, const char *tool, const char *const *argv)
{
    return call(engine_of(state), &(struct tc_request){ .tool = tool, .argv = argv });
}

static void expect(struct tc_result *result, enum tc_verdict verdict, const char *reason,
                   const char *fix)
{
    if (result->verdict != verdict || !strstr(result->reason, reason) || !strstr(result->fix, fix))
        fail_msg("%s: %s (%s)", tc_verdict_name(result->verdict), result->reason, result->fix);
    /* Whatever the verdict, there is JSON, and every text is there. */
    assert_non_null(tc_result_json(result));
    assert_true(result->backend && result->layers && result->stdout_data && result->stderr_data);
    tc_result_free(result);
}

/* ---- verdicts --------------------------------------------------------------------------------- */

static void test_exit_zero_is_ok(void **state)
{
    struct tc_result *r = run(state, SH("echo out; echo err >&2"));
    assert_string_equal(r->stdout_data, "out\n");
    assert_string_equal(r->stderr_data, "err\n");
    assert_int_equal(r->stdout_bytes, 4);
    assert_int_equal(r->exit_code, 0);
    assert_int_equal(r->signal, 0);
    assert_string_equal(r->backend, "jail");
    assert_string_equal(r->layers, "none");
    assert_true(strncmp(r->sandbox_id, "double-", 7) == 0);
    assert_int_equal(strlen(r->call_id), 36);
    assert_int_equal(strlen(r->trace_id), 32);
    assert_true(r->usage.duration_us > 0);
    assert_null(r->tool);
    assert_int_equal(tc_result_exit_status(r), 0);
    assert_string_equal(r->reason, "");
    expect(r, TC_VERDICT_OK, "", "");
}

static void test_exit_status_and_signal(void **state)
{
    struct tc_result *r = run(state, SH("exit 3"));
    assert_int_equal(r->exit_code, 3);
    assert_int_equal(tc_result_exit_status(r), 3);
    expect(r, TC_VERDICT_FAILED, "exit status 3", "");
    r = run(state, SH("kill -TERM $$"));
    assert_int_equal(r->exit_code, -1);
    assert_int_equal(r->signal, SIGTERM);
    assert_int_equal(tc_result_exit_status(r), 128 + SIGTERM);
    expect(r, TC_VERDICT_SIGNALED, "SIGTERM", "");
}

/* A container that did not come in time is not a command that took too long. */
static void test_cage_that_never_came_is_an_error_and_not_a_timeout(void **state)
{
    struct tc_request request = { .argv = ARGV("double:never"), .limits.timeout_ms = 50 };
    expect(call(engine_of(state), &request), TC_VERDICT_ERROR, "lost its root", "");
}

static void test_timeout_names_the_limit_and_where_it_stands(void **state)
{
    struct tc_request request = { .argv = SH("echo first; sleep 60"), .limits.timeout_ms = 500 };
    struct tc_result *r = call(engine_of(state), &request);
    assert_string_equal(r->stdout_data, "first\n");
    assert_true(r->usage.duration_us >= 500000 && r->usage.duration_us < 10000000);
    assert_int_equal(tc_result_exit_status(r), 124);
    expect(r, TC_VERDICT_TIMEOUT, "stopped after 500ms: timeout",
           "ask for a higher timeout (the policy allows 20s), or do less");
    request =
        (struct tc_request){ .tool = "stdin", .agent = "reader", .argv = ARGV("double:memory") };
    expect(call(engine_of(state), &request), TC_VERDICT_MEMORY, "256MB",
           "set memory = \"512MB\" for tool \"stdin\" and its grant");
}

static void test_each_limit_of_the_kernel_has_its_verdict(void **state)
{
    expect(run(state, ARGV("double:memory")), TC_VERDICT_MEMORY, "256MB of memory",
           "set memory = \"512MB\" in [defaults] of a policy");
    expect(run_tool(state, "plain", ARGV("double:memory")), TC_VERDICT_MEMORY, "100MB",
           "set memory = \"200MB\" for tool \"plain\", or work on less");
    expect(run(state, ARGV("double:cpu")), TC_VERDICT_CPU, "cpu_time", "");
    expect(run(state, ARGV("double:disk")), TC_VERDICT_DISK, "256MB", "disk = \"512MB\"");
    expect(run(state, ARGV("double:pids", "1")), TC_VERDICT_PIDS, "64 at a time", "pids = 128");
    /* A program that got along without the process that was refused has done its work. */
    expect(run(state, ARGV("double:pids", "0")), TC_VERDICT_OK, "", "");
}

static void test_broken_cage_is_an_error_of_its_own(void **state)
{
    expect(run(state, ARGV("double:broken")), TC_VERDICT_ERROR, "lost its root", "");
    expect(run(state, ARGV("double:fails")), TC_VERDICT_ERROR, "cannot look", "");
    expect(run(state, ARGV("double:refused")), TC_VERDICT_ERROR, "no namespaces", "switch them on");
    expect(run_tool(state, "named", ARGV("true")), TC_VERDICT_ERROR, "network_names",
           "use a backend");
    expect(run_tool(state, "boxed", ARGV("true")), TC_VERDICT_ERROR, "no backend \"oci\"", "jail");
}

static void test_missing_program_is_127(void **state)
{
    struct tc_result *r = run(state, ARGV("no-such-program-at-all"));
    assert_int_equal(r->exit_code, 127);
    assert_int_equal(tc_result_exit_status(r), 127);
    expect(r, TC_VERDICT_FAILED, "no program \"no-such-program-at-all\"", "/usr or /bin");
    expect(run_tool(state, "closed", ARGV("double:errno", "2")), TC_VERDICT_FAILED, "no program",
           "system = true");
}

static void test_program_that_cannot_start_is_126(void **state)
{
    struct tc_result *r = run(state, ARGV("/etc/passwd"));
    assert_int_equal(r->exit_code, 126);
    assert_int_equal(tc_result_exit_status(r), 126);
    expect(r, TC_VERDICT_FAILED, "Permission denied", "executable");
    expect(run(state, ARGV("double:errno", "7")), TC_VERDICT_FAILED, "Argument list too long",
           "arguments");
}

static void test_program_outside_the_allowlist_is_denied(void **state)
{
    struct tc_result *r = run_tool(state, "listed", ARGV("double:errno", "13"));
    assert_int_equal(r->denial_count, 1);
    assert_string_equal(r->denials[0].kind, "exec");
    assert_string_equal(r->denials[0].target, "double:errno");
    assert_non_null(strstr(r->denials[0].rule, "commands"));
    assert_int_equal(tc_result_exit_status(r), 126);
    expect(r, TC_VERDICT_DENIED, "\"commands\" does not list", "add \"double:errno\"");
    /* Not there at all: nobody knows whether it would have been refused. */
    expect(run_tool(state, "listed", ARGV("double:errno", "2")), TC_VERDICT_FAILED, "no program",
           "");
}

/* ---- who may call ----------------------------------------------------------------------------- */

static void test_agent_cannot_tell_a_secret_tool_from_none(void **state)
{
    struct tc_result *r[2];
    const char *tools[] = { "schema", "absent" };
    for (int i = 0; i < 2; i++) {
        r[i] = call(
            engine_of(state),
            &(struct tc_request){ .tool = tools[i], .agent = "reader", .arguments_json = "{}" });
        assert_int_equal(r[i]->verdict, TC_VERDICT_DENIED);
        assert_string_equal(r[i]->backend, "");
        assert_string_equal(r[i]->sandbox_id, "");
        assert_int_equal(r[i]->denial_count, 1);
        assert_string_equal(r[i]->denials[0].kind, "grant");
        assert_int_equal(tc_result_exit_status(r[i]), 125);
    }
    assert_int_equal(strlen(r[0]->reason), strlen(r[1]->reason));
    assert_int_equal(strlen(r[0]->fix), strlen(r[1]->fix));
    tc_result_free(r[0]);
    tc_result_free(r[1]);
}

static void test_calls_that_the_policy_denies(void **state)
{
    struct tc_engine *engine = engine_of(state);
    const char *const *argv = ARGV("true");
    struct tc_request request = { .tool = "absent", .argv = argv };
    expect(call(engine, &request), TC_VERDICT_DENIED, "no tool named \"absent\"", "define");
    request = (struct tc_request){ .agent = "reader", .argv = argv };
    request.tool = "boxed";
    expect(call(engine, &request), TC_VERDICT_DENIED, "expired", "expires");
    request.agent = "stranger";
    expect(call(engine, &request), TC_VERDICT_DENIED, "holds no grant", "");
}

static void test_agent_may_not_use_the_defaults(void **state)
{
    struct tc_result *result = NULL;
    struct tc_error error = { 0 };
    struct tc_request request = { .agent = "reader", .argv = ARGV("true") };
    assert_int_equal(tc_call(engine_of(state), &request, &result, &error), 0);
    expect(result, TC_VERDICT_DENIED, "holds no grant", "");
}

static void *use_grant(void *context)
{
    int *allowed = calloc(1, sizeof *allowed);
    for (int i = 0; i < 10; i++) {
        struct tc_request request = { .tool = "echo",
                                      .agent = "reader",
                                      .argv = ARGV("double:exit", "0") };
        struct tc_result *result = NULL;
        if (tc_call(context, &request, &result, NULL) == 0)
            *allowed += result->verdict == TC_VERDICT_OK;
        tc_result_free(result);
    }
    return allowed;
}

static void test_number_of_calls_is_kept_by_all_threads_together(void **state)
{
    pthread_t threads[4];
    int total = 0;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_grant, engine_of(state)), 0);
    for (int i = 0; i < 4; i++) {
        void *allowed = NULL;
        assert_int_equal(pthread_join(threads[i], &allowed), 0);
        total += *(int *)allowed;
        free(allowed);
    }
    assert_int_equal(total, 5);
}

/* ---- limits ----------------------------------------------------------------------------------- */

static void test_request_may_only_narrow(void **state)
{
    struct tc_engine *engine = engine_of(state);
    struct tc_request request = { .argv = ARGV("true"), .limits.timeout_ms = 20001 };
    struct tc_result *r = call(engine, &request);
    assert_int_equal(r->denial_count, 1);
    assert_string_equal(r->denials[0].target, "timeout");
    assert_string_equal(r->denials[0].rule, "timeout = \"20s\"");
    expect(r, TC_VERDICT_DENIED, "timeout = \"20001ms\"", "ask for \"20s\" or less");
    request.limits = (struct tc_limits){ .pids = 65 };
    expect(call(engine, &request), TC_VERDICT_DENIED, "pids = 65", "64 or less");
    request.limits = (struct tc_limits){ .cpu_millis = 1500 };
    expect(call(engine, &request), TC_VERDICT_DENIED, "cpu = 1.500", "1.000 or less");
    request.limits = (struct tc_limits){ .timeout_ms = 20000, .cpu_time_ms = 7, .memory = 1000 };
    expect(call(engine, &request), TC_VERDICT_OK, "", "");
    assert_int_equal(double_settings.timeout, 20000);
    assert_int_equal(double_settings.cpu_time, 7);
    assert_int_equal(double_settings.memory, 1000);
    assert_int_equal(double_settings.pids, 64);
    assert_true(double_clauses & tci_clause_bit(TCI_CLAUSE_CPU_TIME));
}

static void test_grant_narrows_limits(void **state)
{
    struct tc_request request = { .tool = "stdin", .agent = "reader", .argv = ARGV("true") };
    request.limits.files = 77; /* so that no plan of another test fits */
    expect(call(engine_of(state), &request), TC_VERDICT_OK, "", "");
    assert_int_equal(double_settings.timeout, 5000);
    request.limits.timeout_ms = 6000;
    expect(call(engine_of(state), &request), TC_VERDICT_DENIED, "\"5s\"", "the grant");
}

/* ---- what is run ------------------------------------------------------------------------------ */

static struct tc_result *call_with(void **state, const char *tool, const char *arguments)
{
    return call(engine_of(state),
                &(struct tc_request){ .tool = tool, .arguments_json = arguments });
}

static void test_arguments_fill_the_placeholders(void **state)
{
    static const struct {
        const char *arguments, *printed;
    } cases[] = {
        { "{\"word\":\"x\",\"more\":[\"1\",2,true],\"a\":\"l\",\"b\":-0.5}",
          "<--word=x><{><1><2><true><l-0.5>" },
        { "{}", "<{>" },
        { "{\"word\":null,\"more\":[],\"a\":\"l\"}", "<{>" },
        { "{\"word\":\"a b;$(id) '\\\"\\n*\",\"unknown\":1}", "<--word=a b;$(id) '\"\n*><{>" },
        { "{\"word\":\"\",\"a\":\"\",\"b\":\"\"}", "<--word=><{><>" },
        { "{\"word\":\"{a}\",\"more\":[\"{b}\",\"\"],\"a\":1e3,\"b\":false}",
          "<--word={a}><{><{b}><><1000false>" },
        { "{\"word\":9007199254740992}", "<--word=9007199254740992><{>" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tc_result *r = call_with(state, "echo", cases[i].arguments);
        assert_string_equal(r->stdout_data, cases[i].printed);
        expect(r, TC_VERDICT_OK, "", "");
    }
    expect(call_with(state, "echo", NULL), TC_VERDICT_OK, "", "");
}

static void test_arguments_that_cannot_be_passed_on(void **state)
{
    static const struct {
        const char *arguments, *reason;
    } cases[] = {
        { "{\"word\":\"a\\u0000b\"}", "a NUL character" },
        { "{\"word\":[1]}", "is not a string, a number or a boolean" },
        { "{\"word\":{}}", "is not a string" },
        { "{\"more\":\"x\"}", "is not a list" },
        { "{\"more\":[\"x\",null]}", "is not a string" },
        { "{\"more\":[\"\\u0000\"]}", "a NUL character" },
        { "{\"word\":9007199254740994}", "too large to be exact" },
        { "[1]", "not an object" },
        { "\"x\"", "not an object" },
        { "{\"word\":1,\"word\":2}", "not valid JSON" },
        { "{word:1}", "not valid JSON" },
        { "", "not valid JSON" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect(call_with(state, "echo", cases[i].arguments), TC_VERDICT_INVALID_INPUT,
               cases[i].reason, "");
}

static void test_arguments_without_a_placeholder_go_to_stdin(void **state)
{
    struct tc_result *r = call_with(state, "stdin", "{\"a\": [1, 2]}");
    assert_string_equal(r->stdout_data, "{\"a\":[1,2]}");
    expect(r, TC_VERDICT_OK, "", "");
    r = call_with(state, "stdin", NULL);
    assert_string_equal(r->stdout_data, "{}");
    expect(r, TC_VERDICT_OK, "", "");
}

static void test_schemas_are_not_silently_ignored(void **state)
{
    expect(call_with(state, "schema", "[]"), TC_VERDICT_INVALID_INPUT, "not an object", "");
    expect(call_with(state, "returning", "{}"), TC_VERDICT_INVALID_OUTPUT, "printed nothing", "");
    expect(call_with(state, "any_arguments", "{\"x\":1}"), TC_VERDICT_OK, "", "");
    expect(run_tool(state, "schema", ARGV("true")), TC_VERDICT_OK, "", "");
}

static void test_tool_without_a_command(void **state)
{
    expect(call_with(state, "plain", "{}"), TC_VERDICT_ERROR, "\"plain\" has no command", "add");
}

static void test_requests_that_make_no_sense(void **state)
{
    const char *const *argv = ARGV("true"), *const *empty = (const char *const[]){ NULL };
    const struct tc_request requests[] = {
        { .argv = argv, .arguments_json = "{}", .tool = "echo" },
        { .argv = empty },
        { .argv = NULL },
        { .argv = argv, .input = "x", .input_length = 1, .input_fd = 5 },
        { .argv = argv, .input_length = 1 },
        { .argv = argv, .flags = TC_REQUEST_TERMINAL, .terminal = -1 },
        { .argv = argv, .flags = TC_REQUEST_TERMINAL, .input = "x", .input_length = 1 },
        { .argv = argv, .trace_id = "short" },
        { .tool = "" },
        { .tool = "\xff\xfe" },
        { .tool = "echo", .agent = "" },
        { .tool = "echo", .agent = "a\xc3" },
        { .tool = "no-such-tool", .agent = "\xff" },
        { .argv = argv, .tool = "" },
        { .argv = argv, .session = "" },
        { .argv = argv, .session = "\xff" },
        { .argv = argv, .out_directory = "/dev/null" },
        { .argv = argv, .out_directory = "/no/such/parent" },
    };
    int before = count_descriptors();
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        struct tc_result *result = NULL;
        struct tc_error error = { 0 };
        assert_true(tc_call(engine_of(state), &requests[i], &result, &error) < 0);
        assert_int_equal(error.code, TC_ERROR_USAGE);
        assert_true(error.message[0]);
        assert_null(result);
        assert_true(tc_call(engine_of(state), &requests[i], &result, NULL) < 0);
    }
    assert_int_equal(count_descriptors(), before);
}

static void test_names_of_the_request_are_in_the_result(void **state)
{
    char tool[] = "plain", agent[] = "reader", session[] = "s1";
    struct tc_request request = { .tool = tool,
                                  .agent = agent,
                                  .session = session,
                                  .trace_id = "0123456789abcdef0123456789ABCDEF",
                                  .argv = ARGV("true") };
    struct tc_result *r = call(engine_of(state), &request);
    tool[0] = agent[0] = session[0] = '?';
    assert_string_equal(r->tool, "plain");
    assert_string_equal(r->agent, "reader");
    assert_string_equal(r->session, "s1");
    assert_string_equal(r->trace_id, "0123456789abcdef0123456789abcdef");
    expect(r, TC_VERDICT_OK, "", "");
}

/* ---- plans ------------------------------------------------------------------------------------ */

static void test_plans_are_compiled_once_and_bounded(void **state)
{
    struct tc_engine *engine = engine_of(state);
    struct tc_request request = { .argv = ARGV("double:exit"), .limits.files = 10 };
    int before;
    tc_result_free(call(engine, &request));
    before = double_plans_made;
    for (int i = 0; i < 5; i++)
        tc_result_free(call(engine, &request));
    assert_int_equal(double_plans_made, before);
    for (unsigned i = 0; i < 2 * TCI_PLANS_MAX; i++) {
        struct tc_limits limits = { .files = 20 + i };
        request.limits = limits;
        tc_result_free(call(engine, &request));
        request.limits = (struct tc_limits){ .files = 10 }; /* used all the time: never dropped */
        tc_result_free(call(engine, &request));
    }
    assert_int_equal(double_plans_made, before + 2 * TCI_PLANS_MAX);
    assert_int_equal(double_plans, TCI_PLANS_MAX);
}

static void test_plans_in_use_are_not_dropped(void **state)
{
    enum { many = TCI_PLANS_MAX + 5 };
    struct tc_call *calls[many];
    struct tc_engine *engine = engine_of(state);
    for (unsigned i = 0; i < many; i++) {
        struct tc_request request = { .argv = ARGV("double:exit"), .limits.memory = i + 1 };
        assert_int_equal(tc_call_start(engine, &request, &calls[i], NULL), 0);
    }
    assert_int_equal(double_plans, many);
    for (unsigned i = 0; i < many; i++) {
        struct tc_result *result = NULL;
        assert_int_equal(tc_call_step(calls[i], &result, NULL), 0);
        assert_non_null(result);
        tc_result_free(result);
        tc_call_free(calls[i]);
    }
    assert_int_equal(double_plans, TCI_PLANS_MAX);
}

/* ---- the built-in policy ---------------------------------------------------------------------- */

static void check_builtin(const char *name)
{
    char path[600], base[] = "/tmp/toolcage-test-call-XXXXXX", here[4096];
    struct tc_policy *policy = NULL;
    struct tc_error error = { 0 };
    const struct tci_settings *s;

    assert_non_null(getcwd(here, sizeof here));
    assert_non_null(mkdtemp(base));
    (void)snprintf(path, sizeof path, "%s/%s", base, name);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chdir(path), 0);
    if (tci_builtin_policy(&policy, &error) < 0)
        fail_msg("%s", error.message);
    s = &policy->anonymous->settings;
    assert_int_equal(s->filesystem.count, 1);
    assert_string_equal(s->filesystem.rules[0].host, path);
    assert_string_equal(s->filesystem.rules[0].cage, "/workspace");
    assert_int_equal(s->filesystem.rules[0].access, TCI_ACCESS_READABLE);
    assert_string_equal(s->filesystem.cwd, "/workspace");
    assert_int_equal(s->network.mode, TCI_NETWORK_NONE);
    assert_int_equal(s->backend, TCI_BACKEND_JAIL);
    assert_int_equal(policy->tool_count, 0);
    tc_policy_free(policy);
    assert_int_equal(chdir(here), 0);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(base), 0);
}

static void test_builtin_policy_quotes_the_directory(void **state)
{
    (void)state;
    check_builtin("plain");
    check_builtin("with space:and:colons");
    check_builtin("\"}], cwd = \"");
    check_builtin("back\\slash\\u0041 '''");
    check_builtin("\303\266\342\202\254");
    check_builtin("~ ${HOME} {a}");
}

static void builtin_refuses(const char *directory, const char *reason)
{
    char here[4096];
    struct tc_policy *policy = NULL;
    struct tc_error error = { 0 };
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(directory), 0);
    assert_true(tci_builtin_policy(&policy, &error) < 0);
    assert_int_equal(chdir(here), 0);
    if (!strstr(error.message, reason))
        fail_msg("%s", error.message);
    assert_true(error.remedy[0]);
}

static void test_builtin_policy_refuses_directories(void **state)
{
    char base[] = "/tmp/toolcage-test-call-XXXXXX", path[100];
    (void)state;
    builtin_refuses("/", "the whole host");
    assert_non_null(mkdtemp(base));
    (void)snprintf(path, sizeof path, "%s/\377", base);
    assert_int_equal(mkdir(path, 0700), 0);
    builtin_refuses(path, "not UTF-8");
    assert_int_equal(rmdir(path), 0);
    (void)snprintf(path, sizeof path, "%s/new\nline", base);
    assert_int_equal(mkdir(path, 0700), 0);
    builtin_refuses(path, "plain");
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(base), 0);
}

static void test_engine_without_a_policy_has_the_builtin_one(void **state)
{
    struct tc_engine *engine = NULL;
    struct tc_error error = { 0 };
    (void)state;
    if (tci_engine_open_with(NULL, double_for, &engine, &error) < 0)
        fail_msg("%s", error.message);
    expect(call(engine, &(struct tc_request){ .argv = ARGV("true") }), TC_VERDICT_OK, "", "");
    assert_int_equal(double_settings.filesystem.count, 1);
    tc_engine_close(engine);
}

static void test_engine_options_that_fail(void **state)
{
    struct fixture *fixture = *state;
    struct tc_engine *engine = NULL;
    struct tc_error error = { 0 };
    struct tc_engine_options options = { .policy = fixture->policy, .policy_path = "x.toml" };
    assert_true(tc_engine_open(&options, &engine, &error) < 0);
    assert_int_equal(error.code, TC_ERROR_USAGE);
    options.policy = NULL;
    assert_true(tc_engine_open(&options, &engine, &error) < 0);
    assert_int_equal(error.code, TC_ERROR_IO);
    assert_null(engine);
}

/* ---- [defaults] as a tool --------------------------------------------------------------------- */

static void test_defaults_alone_make_the_anonymous_tool(void **state)
{
    struct tc_policy *policy = load_text(
        "[defaults]\npids = 5\nenv = { A = \"1\" }\n[tool.t]\npids = 9\n");
    struct tc_error error;
    (void)state;
    assert_string_equal(policy->anonymous->name, "");
    assert_int_equal(policy->anonymous->settings.pids, 5);
    assert_int_equal(policy->anonymous->settings.env.count, 1);
    assert_int_equal(policy->tool_count, 1);
    assert_null(tci_policy_tool(policy, ""));
    tc_policy_free(policy);
    error = load_error("[defaults]\nfilesystem = { cwd = \"/nowhere\" }\n");
    assert_non_null(strstr(error.message, "[defaults]"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exit_zero_is_ok),
        cmocka_unit_test(test_exit_status_and_signal),
        cmocka_unit_test(test_cage_that_never_came_is_an_error_and_not_a_timeout),
        cmocka_unit_test(test_timeout_names_the_limit_and_where_it_stands),
        cmocka_unit_test(test_each_limit_of_the_kernel_has_its_verdict),
        cmocka_unit_test(test_broken_cage_is_an_error_of_its_own),
        cmocka_unit_test(test_missing_program_is_127),
        cmocka_unit_test(test_program_that_cannot_start_is_126),
        cmocka_unit_test(test_program_outside_the_allowlist_is_denied),
        cmocka_unit_test(test_agent_cannot_tell_a_secret_tool_from_none),
        cmocka_unit_test(test_calls_that_the_policy_denies),
        cmocka_unit_test(test_agent_may_not_use_the_defaults),
        cmocka_unit_test(test_number_of_calls_is_kept_by_all_threads_together),
        cmocka_unit_test(test_request_may_only_narrow),
        cmocka_unit_test(test_grant_narrows_limits),
        cmocka_unit_test(test_arguments_fill_the_placeholders),
        cmocka_unit_test(test_arguments_that_cannot_be_passed_on),
        cmocka_unit_test(test_arguments_without_a_placeholder_go_to_stdin),
        cmocka_unit_test(test_schemas_are_not_silently_ignored),
        cmocka_unit_test(test_tool_without_a_command),
        cmocka_unit_test(test_requests_that_make_no_sense),
        cmocka_unit_test(test_names_of_the_request_are_in_the_result),
        cmocka_unit_test(test_plans_are_compiled_once_and_bounded),
        cmocka_unit_test(test_plans_in_use_are_not_dropped),
        cmocka_unit_test(test_builtin_policy_quotes_the_directory),
        cmocka_unit_test(test_builtin_policy_refuses_directories),
        cmocka_unit_test(test_engine_without_a_policy_has_the_builtin_one),
        cmocka_unit_test(test_engine_options_that_fail),
        cmocka_unit_test(test_defaults_alone_make_the_anonymous_tool),
    };
    return cmocka_run_group_tests(tests, open_engine, close_engine);
}
