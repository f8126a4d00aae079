/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the contract of a tool: which arguments get in and as what, and which output gets out. */
#include "engine_support.h"

#include <jansson.h>
#include <pthread.h>
#include "core/contract.h"
#include "json/canonical.h"

static const char policy_text[] =
    "version = 1\n"
    "[defaults]\n"
    "timeout = \"20s\"\n"
    "output = \"8MB\"\n"
    "[tool.fetch]\n"
    "description = 'Fetch \"a\" page'\n"
    "command = [\"printf\", \"<%s>\", \"{url}\", \"--depth={depth}\", \"{headers...}\"]\n"
    "parameters = { required = [\"url\"], additionalProperties = false, properties = "
    "{ url = { type = \"string\", minLength = 1 }, depth = { type = \"integer\", maximum = 5 }, "
    "headers = { type = \"array\", items = { type = \"string\" } } } }\n"
    "[tool.dashes]\n"
    "command = [\"printf\", \"<%s>\", \"{a}{b}\", \"--\", \"{c}\", \"{list...}\"]\n"
    "[tool.behind]\n"
    "command = [\"printf\", \"<%s>\", \"-C\", \"{dir}\", \"--include={glob}\", \"./{file}\", "
    "\"--\", \"{files...}\"]\n"
    "[tool.behind_list]\n"
    "command = [\"printf\", \"<%s>\", \"--opt\", \"{list...}\", \"{a}\"]\n"
    "[tool.at_end]\n"
    "command = [\"printf\", \"<%s>\", \"-C\", \"{dir}\"]\n"
    "[tool.not_behind]\n"
    "command = [\"printf\", \"<%s>\", \"--color=auto\", \"{a}\", \"-C{b}\", \"{c}\", \"--\", "
    "\"{d}\", \"-\", \"{e}\", \"end\"]\n"
    "[tool.run]\n"
    "command = [\"printf\", \"<%s>\", \"-o\", \"--x={x}\", \"-y{y}\", \"{out}\", \"{in}\"]\n"
    "[tool.letter]\n"
    "command = [\"printf\", \"<%s>\", \"-{letter}\", \"{value}\", \"end\"]\n"
    "[tool.eight]\n"
    "command = [\"true\", \"{a}\", \"{a}\", \"{a}\", \"{a}\", \"{a}\", \"{a}\", \"{a}\", \"{a}\", "
    "\"--b={b}{b}\", \"{c...}\"]\n"
    "[tool.stdin]\n"
    "command = [\"cat\"]\n"
    "[tool.typed_stdin]\n"
    "command = [\"cat\"]\n"
    "parameters = { properties = { when = { format = \"date-time\" } } }\n"
    "returns = { type = \"object\", properties = { when = { format = \"date\" } } }\n"
    "[tool.json]\n"
    "command = [\"sh\", \"-c\", \"eval \\\"$1\\\"\", \"--\", \"{code}\"]\n"
    "returns = { type = \"object\", required = [\"n\"], properties = { n = { type = \"integer\" } "
    "} "
    "}\n"
    "[tool.anything]\n"
    "command = [\"sh\", \"-c\", \"eval \\\"$1\\\"\", \"--\", \"{code}\"]\n"
    "returns = true\n"
    "[tool.broken]\n"
    "command = [\"true\"]\n"
    "parameters = { type = \"objekt\" }\n"
    "[tool.broken_returns]\n"
    "command = [\"echo\", \"1\"]\n"
    "returns = { type = \"objekt\" }\n"
    "[tool.slow]\n"
    "command = [\"true\"]\n"
    "parameters = { properties = { x = { pattern = '^(a+)+$' } } }\n"
    "[tool.never]\n"
    "command = [\"true\"]\n"
    "parameters = false\n"
    "[tool.'dotted.name']\n"
    "command = [\"true\"]\n"
    "[tool.only_exec]\n"
    "[agent.reader]\n"
    "grants = [\"fetch\", { tool = \"json\", expires = \"2001-01-01\" }, \"only_exec\"]\n";

static int open_engine(void **state)
{
    return open_engine_over(state, policy_text);
}

static struct tc_result *call_with(void **state, const char *tool, const char *arguments)
{
    return call(engine_of(state),
                &(struct tc_request){ .tool = tool, .arguments_json = arguments });
}

static void expect(struct tc_result *result, enum tc_verdict verdict, const char *reason,
                   const char *fix)
{
    json_t *json = json_loads(tc_result_json(result), JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL,
                              NULL);
    if (result->verdict != verdict || !strstr(result->reason, reason) || !strstr(result->fix, fix))
        fail_msg("%s: %s (%s)", tc_verdict_name(result->verdict), result->reason, result->fix);
    assert_non_null(json);
    /* Only what was checked is the output. */
    if (!result->output_json)
        assert_true(json_is_null(json_object_get(json, "output")));
    json_decref(json);
    tc_result_free(result);
}

static void expect_invalid(void **state, const char *tool, const char *arguments,
                           const char *reason)
{
    expect(call_with(state, tool, arguments), TC_VERDICT_INVALID_INPUT, reason, "");
}

static void expect_printed(struct tc_result *result, const char *printed)
{
    assert_string_equal(result->stdout_data, printed);
    expect(result, TC_VERDICT_OK, "", "");
}

/* ---- arguments -------------------------------------------------------------------------------- */

static void test_arguments_that_break_the_schema_are_named_one_by_one(void **state)
{
    struct tc_result *r = call_with(state, "fetch", "{\"url\":\"\",\"depth\":9,\"x\":1}");
    assert_non_null(strstr(r->reason, "arguments/url "));
    assert_non_null(strstr(r->reason, "arguments/depth "));
    assert_non_null(strstr(r->reason, "; "));
    assert_string_equal(r->layers, "");
    assert_string_equal(r->sandbox_id, "");
    assert_int_equal(tc_result_exit_status(r), 125);
    expect(r, TC_VERDICT_INVALID_INPUT, "", "call again");
    expect_invalid(state, "fetch", "{}", "url");
    expect_invalid(state, "fetch", "{\"url\":1}", "arguments/url must be a string");
    expect_invalid(state, "never", "{}", "arguments ");
}

static void test_report_of_many_errors_is_cut_between_sentences(void **state)
{
    char arguments[4096] = "{\"url\":\"u\",\"headers\":[";
    struct tc_result *r;
    for (int i = 0; i < 200; i++)
        strcat(arguments, i ? ",1" : "1");
    strcat(arguments, "]}");
    r = call_with(state, "fetch", arguments);
    assert_true(strlen(r->reason) < 512);
    assert_string_equal(r->reason + strlen(r->reason) - strlen("; and more"), "; and more");
    expect(r, TC_VERDICT_INVALID_INPUT, "arguments/headers/0 must be a string", "");
}

static void test_arguments_that_are_not_one_json_object(void **state)
{
    static const struct {
        const char *arguments, *reason;
    } cases[] = {
        { "", "not valid JSON" },
        { "{url:1}", "not valid JSON, at line 1" },
        { "{} {}", "not valid JSON" },
        { "{\"url\":\"a\",\"url\":\"b\"}", "duplicate" },
        { "{\"\\u0075rl\":\"a\",\"url\":\"b\"}", "duplicate" },
        { "{\"url\":\"\xff\"}", "not valid JSON" },
        { "{\"url\":\"\xed\xa0\x80\"}", "not valid JSON" },
        { "{\"url\":\"\\ud800\"}", "not valid JSON" },
        { "{\"url\":\"a\\u0000b\"}", "a NUL character" },
        { "{\"a\\u0000b\":1}", "not valid JSON" },
        { "{\"depth\":1e400}", "not valid JSON" },
        { "{\"depth\":NaN}", "not valid JSON" },
        { "{\"depth\":01}", "not valid JSON" },
        { "[]", "are an array, not an object" },
        { "\"url\"", "are a string, not an object" },
        { "null", "are null, not an object" },
        { "1", "are a number, not an object" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_invalid(state, "fetch", cases[i].arguments, cases[i].reason);
}

/* `head`, `count` times `unit`, `tail`: free() it. */
static char *repeat(const char *head, const char *unit, size_t count, const char *tail)
{
    size_t length = strlen(unit);
    char *text = malloc(strlen(head) + length * count + strlen(tail) + 1), *at;
    assert_non_null(text);
    at = stpcpy(text, head);
    for (size_t i = 0; i < count; i++, at += length)
        memcpy(at, unit, length);
    strcpy(at, tail);
    return text;
}

static void test_arguments_are_bounded(void **state)
{
    char *large = repeat("{\"url\":\"", "a", 1024 * 1024, "\"}");
    char *fits = repeat("{\"x\":\"", "a", 1024 * 1024 - 8, "\"}");
    char *deep = repeat("{\"x\":", "[", 1000, "");
    char *many = repeat("{\"x\":[1", ",1", 250000, "]}");
    char *exponential = repeat("{\"x\":\"", "a", 100, "!\"}");
    struct tc_result *r = call_with(state, "stdin", fits);
    assert_int_equal(r->stdout_length, strlen(fits));
    expect(r, TC_VERDICT_OK, "", "");
    expect_invalid(state, "fetch", large, "larger than 1 MiB");
    expect_invalid(state, "fetch", deep, "nested more than 128 deep");
    expect_invalid(state, "fetch", many, "more than 200000 values");
    expect_invalid(state, "slow", exponential, "takes too long to match");
    free(exponential);
    free(many);
    free(deep);
    free(fits);
    free(large);
}

static void test_integers_arrive_as_they_were_sent_or_not_at_all(void **state)
{
    static const struct {
        const char *number, *arrives; /* NULL: refused */
    } cases[] = {
        { "9007199254740991", "9007199254740991" },
        { "9007199254740992", "9007199254740992" },
        { "9007199254740993", NULL },
        { "-9007199254740993", NULL },
        { "9007199254740993.0", NULL },
        { "90071992547409930e-1", NULL },
        { "0.9007199254740993e16", NULL },
        { "900719925474099.30", "900719925474099.2" }, /* a fraction: as near as a double is */
        { "1152921504606846976", NULL },
        { "12345678901234567890123", NULL },
        { "100000000000000000000", "100000000000000000000" },
        { "1e300", "1e+300" },
        { "6.02214076e23", "6.02214076e+23" },
        { "1.0", "1" },
        { "-0", "0" },
        { "0.1", "0.1" },
        { "000000000000000000001", NULL },
        { "0.30000000000000004", "0.30000000000000004" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char arguments[96], printed[96];
        (void)snprintf(arguments, sizeof arguments, "{\"n\":[%s]}", cases[i].number);
        if (!cases[i].arrives) {
            expect_invalid(state, "stdin", arguments, "");
            continue;
        }
        (void)snprintf(printed, sizeof printed, "{\"n\":[%s]}", cases[i].arrives);
        expect_printed(call_with(state, "stdin", arguments), printed);
    }
    expect_invalid(state, "stdin", "{\"n\":9007199254740993}", "\"9007199254740993\"");
    /* Digits in a text are no number. */
    expect_printed(call_with(state, "stdin", "{\"n\":\"9007199254740993\\\\\\\"1\"}"),
                   "{\"n\":\"9007199254740993\\\\\\\"1\"}");
}

static void test_arguments_without_a_placeholder_are_canonical_on_stdin(void **state)
{
    struct tc_result *result = NULL;
    struct tc_error error = { 0 };
    expect_printed(
        call_with(state, "stdin", " { \"b\" : [ 1.50 , true ] , \"a\" : \"\\u00e9\\n\" } "),
        "{\"a\":\"\xc3\xa9\\n\",\"b\":[1.5,true]}");
    expect_printed(call_with(state, "stdin", NULL), "{}");
    assert_int_equal(tc_call(engine_of(state),
                             &(struct tc_request){ .tool = "stdin",
                                                   .arguments_json = "{\"a\":1}",
                                                   .input = "x",
                                                   .input_length = 1 },
                             &result, &error),
                     -1);
    assert_int_equal(error.code, TC_ERROR_USAGE);
    assert_non_null(strstr(error.message, "takes its arguments on stdin"));
}

static void test_a_schema_that_is_none_is_an_error_of_the_policy(void **state)
{
    expect(call_with(state, "broken", "{}"), TC_VERDICT_ERROR, "\"parameters\" of tool \"broken\"",
           "toolcage lint");
    expect(call_with(state, "broken_returns", "{}"), TC_VERDICT_ERROR, "\"returns\" of tool",
           "toolcage lint");
}

static void test_formats_decide(void **state)
{
    expect_invalid(state, "typed_stdin", "{\"when\":\"yesterday\"}", "arguments/when ");
    expect(call_with(state, "typed_stdin", "{\"when\":\"2027-01-01T00:00:00Z\"}"),
           TC_VERDICT_INVALID_OUTPUT, "output/when ", "");
}

/* An agent without a grant gets one answer, whatever is wrong with its arguments. */
static void test_no_grant_hides_what_is_wrong_with_the_arguments(void **state)
{
    static const char *const tools[] = { "json", "broken", "absent" };
    static const char *const arguments[] = { "{}", "{", "[]", "{\"n\":9007199254740993}" };
    char first[768] = "";
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 4; k++) {
            struct tc_result *r = call(engine_of(state),
                                       &(struct tc_request){ .tool = tools[i],
                                                             .agent = "nobody",
                                                             .arguments_json = arguments[k] });
            assert_int_equal(r->verdict, TC_VERDICT_DENIED);
            if (k == 0)
                (void)snprintf(first, sizeof first, "%s", r->reason);
            assert_string_equal(r->reason, first);
            assert_string_equal(r->backend, "");
            tc_result_free(r);
        }
}

/* ---- argv -------------------------------------------------------------------------------------- */

static void test_hostile_text_stays_one_element(void **state)
{
    static const char *const values[] = {
        "a b",     "a\nb", "'\"",  "$(id)",        "`id`;id|id&&id>x", "*?[a-z]~",
        "{depth}", "%s%n", "\\",   "\xe2\x80\xae", "\xf0\x9f\x90\x9a", "\x7f\x1b[31m",
        " -x",     "",     "=--x",
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char printed[64];
        json_t *arguments = json_pack("{s:s}", "c", values[i]);
        char *text = json_dumps(arguments, 0);
        (void)snprintf(printed, sizeof printed, "<--><%s>", values[i]);
        expect_printed(call_with(state, "dashes", text), printed);
        free(text);
        json_decref(arguments);
    }
}

static void test_long_argument_arrives_whole(void **state)
{
    char *text = repeat("{\"c\":\"", "x", 100000, "\"}");
    struct tc_result *r = call_with(state, "dashes", text);
    assert_int_equal(r->stdout_length, strlen("<--><>") + 100000);
    expect(r, TC_VERDICT_OK, "", "");
    free(text);
}

static void test_no_argument_becomes_an_option(void **state)
{
    static const struct {
        const char *tool, *arguments, *printed; /* NULL: refused */
    } cases[] = {
        { "fetch", "{\"url\":\"--output=/etc/passwd\"}", NULL },
        { "fetch", "{\"url\":\"-\"}", NULL },
        { "fetch", "{\"url\":\"--\"}", NULL },
        { "fetch", "{\"url\":\"u\",\"depth\":-1}", "<u><--depth=-1>" },
        { "fetch", "{\"url\":\"u\",\"headers\":[\"h\",\"-H\"]}", NULL },
        { "fetch", "{\"url\":\"u\",\"headers\":[\"h\",\"i\"]}", "<u><h><i>" },
        { "dashes", "{\"a\":\"\",\"b\":\"-x\"}", NULL },
        { "dashes", "{\"a\":-5,\"b\":1}", NULL },
        { "dashes", "{\"a\":\"x\",\"b\":\"-x\"}", "<x-x><-->" },
        { "dashes", "{\"c\":\"-x\",\"list\":[\"--\",\"-y\",-1]}", "<--><-x><--><-y><-1>" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tc_result *r = call_with(state, cases[i].tool, cases[i].arguments);
        if (cases[i].printed)
            expect_printed(r, cases[i].printed);
        else
            expect(r, TC_VERDICT_INVALID_INPUT, "begins with \"-\"", "does not begin with \"-\"");
    }
}

static void test_absent_argument_drops_its_element(void **state)
{
    expect_printed(call_with(state, "fetch", "{\"url\":\"u\"}"), "<u>");
    expect_printed(call_with(state, "dashes", "{}"), "<-->");
    expect_printed(call_with(state, "dashes", "{\"a\":\"x\",\"c\":null}"), "<-->");
    expect_printed(call_with(state, "dashes", "{\"a\":\"x\",\"b\":\"\",\"list\":[]}"), "<x><-->");
}

/* It would take another's place behind the option, or make it take the "--". */
static void test_value_of_an_option_cannot_be_left_out(void **state)
{
    static const struct {
        const char *tool, *arguments, *name, *option; /* or NULL, and what is printed */
    } cases[] = {
        { "behind", "{\"files\":[\"--x\"],\"file\":\"f\"}", "\"dir\"", "\"-C\"" },
        { "behind", "{\"dir\":null}", "\"dir\"", "\"-C\"" },
        { "behind", "{\"dir\":\"d\"}", NULL, "<-C><d><-->" },
        { "behind", "{\"dir\":\"d\",\"files\":[\"-x\"]}", NULL, "<-C><d><--><-x>" },
        { "behind_list", "{\"a\":\"x\"}", "\"list\"", "\"--opt\"" },
        { "behind_list", "{\"list\":[],\"a\":\"x\"}", "\"list\"", "\"--opt\"" },
        { "behind_list", "{\"list\":[]}", "\"list\"", "\"--opt\"" },
        { "behind_list", "{\"list\":[1]}", NULL, "<--opt><1>" },
        { "at_end", "{}", NULL, "<-C>" },
        { "not_behind", "{}", NULL, "<--color=auto><--><-><end>" },
        { "not_behind", "{\"b\":\"x\"}", NULL, "<--color=auto><-Cx><--><-><end>" },
        /* Options that are left out themselves stand between nothing. */
        { "run", "{\"in\":\"victim\"}", "\"out\"", "\"-o\"" },
        { "run", "{\"in\":\"i\",\"y\":1}", NULL, "<-o><-y1><i>" },
        { "run", "{\"in\":\"i\",\"out\":\"o\"}", NULL, "<-o><o><i>" },
        { "letter", "{\"letter\":\"o\"}", "\"value\"", "\"-{letter}\"" },
        { "letter", "{\"letter\":\"o\",\"value\":1}", NULL, "<-o><1><end>" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tc_result *r = call_with(state, cases[i].tool, cases[i].arguments);
        char reason[128];
        if (!cases[i].name) {
            expect_printed(r, cases[i].option);
            continue;
        }
        (void)snprintf(reason, sizeof reason,
                       "the argument %s cannot be left out: it stands behind %s, ", cases[i].name,
                       cases[i].option);
        expect(r, TC_VERDICT_INVALID_INPUT, reason, "\"--include={glob}\"");
    }
}

static void test_arguments_too_long_for_a_command_line(void **state)
{
    static const struct {
        size_t length;
        const char *tool, *head, *unit, *tail, *reason; /* NULL: it fits */
    } cases[] = {
        { 131071, "dashes", "{\"c\":\"", "x", "\"}", NULL },
        { 131072, "dashes", "{\"c\":\"", "x", "\"}", "the argument \"c\" is too long" },
        { 131072, "dashes", "{\"list\":[1,\"", "x", "\"]}", "the argument \"list\" is too long" },
        { 65532, "eight", "{\"b\":\"", "x", "\"}", NULL },
        { 65534, "eight", "{\"b\":\"", "x", "\"}", "the argument \"b\" is too long" },
        { 1048000, "eight", "{\"b\":\"", "x", "\"}", "the argument \"b\" is too long" },
        { 131050, "eight", "{\"a\":\"", "x", "\"}", NULL },
        { 131064, "eight", "{\"a\":\"", "x", "\"}", "the argument \"a\" makes the command line" },
        { 60000, "eight", "{\"c\":[1", ",1", "]}", NULL },
        { 65000, "eight", "{\"c\":[\"a\"", ",\"12345678\"", "]}", "\"c\" makes the command line" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = repeat(cases[i].head, cases[i].unit, cases[i].length, cases[i].tail);
        struct tc_result *r = call_with(state, cases[i].tool, text);
        if (cases[i].reason)
            expect(r, TC_VERDICT_INVALID_INPUT, cases[i].reason, "on stdin");
        else
            expect(r, TC_VERDICT_OK, "", "");
        free(text);
    }
}

static void test_arrays_expand_only_where_the_template_says_so(void **state)
{
    expect_invalid(state, "dashes", "{\"c\":[\"x\"]}", "is not a string, a number or a boolean");
    expect_invalid(state, "dashes", "{\"c\":{}}", "is not a string, a number or a boolean");
    expect_invalid(state, "dashes", "{\"list\":\"x\"}", "is not a list");
    expect_invalid(state, "dashes", "{\"list\":[[\"x\"]]}", "is not a string");
    expect_printed(call_with(state, "dashes", "{\"list\":[\"a b\",1.50,true]}"),
                   "<--><a b><1.5><true>");
}

/* ---- output ------------------------------------------------------------------------------------ */

static struct tc_result *print(void **state, const char *tool, const char *code)
{
    json_t *arguments = json_pack("{s:s}", "code", code);
    char *text = json_dumps(arguments, 0);
    struct tc_result *result = call_with(state, tool, text);
    free(text);
    json_decref(arguments);
    return result;
}

static void test_output_that_keeps_the_contract_is_parsed(void **state)
{
    struct tc_result *r = print(state, "json", "printf ' {\"x\" : \"\\\\u202e\", \"n\": 1.0}\\n '");
    json_t *json;
    assert_string_equal(r->output_json, "{\"n\":1,\"x\":\"\xe2\x80\xae\"}");
    json = json_loads(tc_result_json(r), 0, NULL);
    assert_int_equal(json_number_value(json_object_get(json_object_get(json, "output"), "n")), 1);
    assert_null(strstr(tc_result_json(r), "\xe2\x80\xae")); /* escaped for whoever shows it */
    assert_int_equal(tc_result_exit_status(r), 0);
    json_decref(json);
    expect(r, TC_VERDICT_OK, "", "");
    r = print(state, "anything", "echo null");
    assert_string_equal(r->output_json, "null");
    expect(r, TC_VERDICT_OK, "", "");
}

static void test_output_that_breaks_the_contract_is_not_handed_out(void **state)
{
    static const struct {
        const char *code, *reason;
    } cases[] = {
        { ":", "printed nothing" },
        { "printf ' \\n'", "not valid JSON" },
        { "echo '{\"n\":\"1\"}'", "output/n must be a whole number" },
        { "echo '{}'", "n" },
        { "echo '[1]'", "output must be an object" },
        { "echo '{\"n\":1} {\"n\":2}'", "not valid JSON" },
        { "echo '{\"n\":1,\"n\":2}'", "duplicate" },
        { "echo 'debug'; echo '{\"n\":1}'", "not valid JSON" },
        { "printf '{\"n\":1,\"x\":\"\\377\"}'", "not valid JSON" },
        { "printf '{\"n\":1}\\000'", "not valid JSON" },
        { "printf '\\357\\273\\277{\"n\":1}'", "not valid JSON" },
        { "echo '{\"n\":9007199254740993}'", "too large to be exact" },
        { "echo '{\"n\":1e400}'", "not valid JSON" },
        { "printf '{\"n\":%s1' \"$(printf '%0500d' 0 | tr 0 '[')\"", "nested more than 128" },
        { "head -c 5000000 /dev/zero | tr '\\000' ' '", "larger than 4 MiB" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tc_result *r = print(state, "json", cases[i].code);
        assert_null(r->output_json);
        assert_int_equal(tc_result_exit_status(r), 125);
        assert_int_equal(r->exit_code, 0);
        expect(r, TC_VERDICT_INVALID_OUTPUT, cases[i].reason, "the tool is at fault");
    }
}

static void test_output_of_a_call_that_failed_is_not_looked_at(void **state)
{
    struct tc_result *r = print(state, "json", "echo '{\"n\":1}'; exit 3");
    assert_null(r->output_json);
    assert_string_equal(r->stdout_data, "{\"n\":1}\n");
    expect(r, TC_VERDICT_FAILED, "exit status 3", "");
}

/* A contract is between a model and the tool's own command. */
static void test_a_command_of_the_callers_has_no_contract(void **state)
{
    struct tc_result *r = call(engine_of(state),
                               &(struct tc_request){ .tool = "json", .argv = ARGV("echo", "x") });
    assert_null(r->output_json);
    expect(r, TC_VERDICT_OK, "", "");
}

static void test_output_that_must_be_checked_is_kept(void **state)
{
    struct tc_result *result = NULL;
    struct tc_error error = { 0 };
    assert_int_equal(tc_call(engine_of(state),
                             &(struct tc_request){ .tool = "json",
                                                   .arguments_json = "{\"code\":\"\"}",
                                                   .flags = TC_REQUEST_KEEP_NOTHING },
                             &result, &error),
                     -1);
    assert_int_equal(error.code, TC_ERROR_USAGE);
    assert_non_null(strstr(error.message, "TC_REQUEST_KEEP_NOTHING"));
}

/* ---- the hash ------------------------------------------------------------------------------------ */

static void test_hash_is_that_of_the_canonical_result(void **state)
{
    struct tc_result *r = print(state, "json", "echo '{\"n\":1}'");
    char *canonical = tci_result_canonical(r), *replayed;
    json_t *json = json_loads(canonical, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    assert_null(json_object_get(json, "mode"));
    assert_null(json_object_get(json, "hash"));
    assert_null(json_object_get(json, "state_hash"));
    assert_true(json_is_object(json_object_get(json, "output")));
    r->mode = TC_MODE_REPLAY;
    (void)snprintf(r->state_hash, sizeof r->state_hash, "%064d", 1);
    replayed = tci_result_canonical(r);
    assert_string_equal(canonical, replayed);
    assert_non_null(strstr(tc_result_json(r), "\"mode\":\"replay\""));
    assert_non_null(strstr(tc_result_json(r), "\"state_hash\":\"000"));
    free(replayed);
    free(canonical);
    json_decref(json);
    tc_result_free(r);
}

/* ---- many threads ---------------------------------------------------------------------------------- */

static void *validate_often(void *engine)
{
    for (int i = 0; i < 20; i++) {
        struct tc_result *result = NULL;
        struct tc_error error;
        if (tc_call(
                engine,
                &(struct tc_request){ .tool = i % 2 ? "fetch" : "never", .arguments_json = "{}" },
                &result, &error) < 0 ||
            result->verdict != TC_VERDICT_INVALID_INPUT)
            return engine;
        tc_result_free(result);
    }
    return NULL;
}

static void test_threads_share_the_compiled_schemas(void **state)
{
    pthread_t threads[8];
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, validate_often, engine_of(state)), 0);
    for (size_t i = 0; i < 8; i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
}

/* ---- definitions ------------------------------------------------------------------------------------ */

static json_t *definitions(void **state, const char *agent, const char *format)
{
    struct tc_error error = { 0 };
    char *text = NULL;
    json_t *json;
    if (tc_engine_tools(engine_of(state), agent, format, &text, &error) < 0)
        fail_msg("%s", error.message);
    json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    free(text);
    return json;
}

static void test_definitions_for_an_agent_are_those_it_may_call(void **state)
{
    json_t *json = definitions(state, "reader", "anthropic");
    json_t *tool = json_array_get(json, 0), *schema = json_object_get(tool, "input_schema");
    assert_int_equal(json_array_size(json), 1); /* one grant is over, one tool cannot be called */
    assert_string_equal(json_string_value(json_object_get(tool, "name")), "fetch");
    assert_string_equal(json_string_value(json_object_get(schema, "type")), "object");
    assert_int_equal(json_object_size(json_object_get(schema, "properties")), 3);
    json_decref(json);
    json = definitions(state, "reader", "json");
    assert_int_equal(json_array_size(json_object_get(json, "tools")), 2);
    json_decref(json);
    json = definitions(state, "nobody", "openai");
    assert_int_equal(json_array_size(json), 0);
    json_decref(json);
}

static void test_schemas_are_completed_for_model_apis(void **state)
{
    json_t *json = definitions(state, NULL, "mcp"), *tool;
    size_t i, seen = 0;
    json_array_foreach(json_object_get(json, "tools"), i, tool)
    {
        json_t *input = json_object_get(tool, "inputSchema");
        const char *name = json_string_value(json_object_get(tool, "name"));
        assert_string_equal(json_string_value(json_object_get(input, "type")), "object");
        assert_true(json_is_object(json_object_get(input, "properties")));
        assert_int_equal(json_object_size(json_object_get(tool, "annotations")), 4);
        assert_int_equal(json_object_get(input, "not") != NULL,
                         strcmp(name, "never") == 0 || strcmp(name, "broken") == 0);
        assert_int_equal(json_object_get(tool, "outputSchema") != NULL,
                         strcmp(name, "json") == 0 || strcmp(name, "typed_stdin") == 0);
        seen++;
    }
    assert_int_equal(seen, 18);
    json_decref(json);
}

static void test_a_name_that_an_api_does_not_take_is_an_error(void **state)
{
    struct tc_error error = { 0 };
    char *text = NULL;
    assert_int_equal(tc_engine_tools(engine_of(state), NULL, "openai", &text, &error), -1);
    assert_int_equal(error.code, TC_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "dotted.name"));
    assert_int_equal(tc_engine_tools(engine_of(state), NULL, "xml", &text, &error), -1);
    assert_int_equal(error.code, TC_ERROR_USAGE);
    assert_null(text);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test(name)
        TEST(test_arguments_that_break_the_schema_are_named_one_by_one),
        TEST(test_report_of_many_errors_is_cut_between_sentences),
        TEST(test_arguments_that_are_not_one_json_object),
        TEST(test_arguments_are_bounded),
        TEST(test_integers_arrive_as_they_were_sent_or_not_at_all),
        TEST(test_arguments_without_a_placeholder_are_canonical_on_stdin),
        TEST(test_a_schema_that_is_none_is_an_error_of_the_policy),
        TEST(test_formats_decide),
        TEST(test_no_grant_hides_what_is_wrong_with_the_arguments),
        TEST(test_hostile_text_stays_one_element),
        TEST(test_long_argument_arrives_whole),
        TEST(test_no_argument_becomes_an_option),
        TEST(test_absent_argument_drops_its_element),
        TEST(test_value_of_an_option_cannot_be_left_out),
        TEST(test_arguments_too_long_for_a_command_line),
        TEST(test_arrays_expand_only_where_the_template_says_so),
        TEST(test_output_that_keeps_the_contract_is_parsed),
        TEST(test_output_that_breaks_the_contract_is_not_handed_out),
        TEST(test_output_of_a_call_that_failed_is_not_looked_at),
        TEST(test_a_command_of_the_callers_has_no_contract),
        TEST(test_output_that_must_be_checked_is_kept),
        TEST(test_hash_is_that_of_the_canonical_result),
        TEST(test_threads_share_the_compiled_schemas),
        TEST(test_definitions_for_an_agent_are_those_it_may_call),
        TEST(test_schemas_are_completed_for_model_apis),
        TEST(test_a_name_that_an_api_does_not_take_is_an_error),
#undef TEST
    };
    return cmocka_run_group_tests(tests, open_engine, close_engine);
}
