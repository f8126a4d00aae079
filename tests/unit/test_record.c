/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what a journal keeps of calls, what it must not keep, and what comes back in replay. */
#include "call_support.h"

#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/sha256.h"
#include "core/record.h"
#include "journal/journal.h"
#include "json/canonical.h"

static const char policy_text[] = "version = 1\n"
                                  "[defaults]\n"
                                  "timeout = \"20s\"\n"
                                  "[tool.echo]\n"
                                  "command = [\"printf\", \"%s\\n\", \"{word}\"]\n"
                                  "[tool.typed]\n"
                                  "command = [\"cat\"]\n"
                                  "returns = { type = \"object\" }\n"
                                  "[tool.quiet]\n"
                                  "record = false\n"
                                  "command = [\"printf\", \"%s\", \"{word}\"]\n"
                                  "[tool.hashed]\n"
                                  "record = \"hash-only\"\n"
                                  "command = [\"printf\", \"%s\", \"{word}\"]\n"
                                  "[tool.secret]\n"
                                  "redact = [\"/token\", \"/absent\", \"/list/1\"]\n"
                                  "returns = { type = \"object\" }\n"
                                  "command = [\"sh\", \"-c\", \"tee /dev/stderr\"]\n"
                                  "[agent.reader]\n"
                                  "grants = [{ tool = \"echo\", max_calls = 3 }]\n";

/* ---- an engine over a journal of its own -------------------------------------------------- */

struct place {
    char directory[32], journal[64];
    struct tc_policy *policy;
    struct tc_engine *engine;
};

static struct tc_engine *open_mode(const struct place *place, enum tc_mode mode, unsigned flags)
{
    struct tc_engine_options options = {
        .policy = place->policy, .journal_path = place->journal, .mode = mode, .flags = flags
    };
    struct tc_engine *engine = NULL;
    struct tc_error error = { 0 };
    if (tci_engine_open_with(&options, double_for, &engine, &error) < 0)
        fail_msg("%s (%s)", error.message, error.remedy);
    return engine;
}

static int open_place(void **state)
{
    static struct place place;
    strcpy(place.directory, "/tmp/test_record.XXXXXX");
    assert_non_null(mkdtemp(place.directory));
    (void)snprintf(place.journal, sizeof place.journal, "%s/journal.db", place.directory);
    place.policy = load_text(policy_text);
    place.engine = open_mode(&place, TC_MODE_LIVE, 0);
    *state = &place;
    return 0;
}

static int close_place(void **state)
{
    struct place *place = *state;
    char command[64];
    tc_engine_close(place->engine);
    tc_policy_free(place->policy);
    (void)snprintf(command, sizeof command, "rm -rf %s", place->directory);
    return system(command);
}

static struct tc_result *call_tool(struct tc_engine *engine, const char *session, const char *tool,
                                   const char *arguments)
{
    return call(engine, &(struct tc_request){
                            .tool = tool, .session = session, .arguments_json = arguments });
}

/* A copy of the JSON, so that the result can go. */
static char *json_of(struct tc_result *result)
{
    char *text = strdup(tc_result_json(result));
    tc_result_free(result);
    return text;
}

/* The JSON of a replayed call, with the one word that may differ put back. */
static char *as_live(char *text)
{
    char *mode = strstr(text, "\"mode\":\"replay\"");
    assert_non_null(mode);
    memmove(mode + 8, "live\"", 5);
    memmove(mode + 13, mode + 15, strlen(mode + 15) + 1);
    return text;
}

static void assert_same(char *live, char *replayed)
{
    assert_string_equal(as_live(replayed), live);
    free(live);
    free(replayed);
}

static int copy_request(void *context, const struct tci_journal_row *row, struct tc_error *reterr)
{
    char **texts = context;
    (void)reterr;
    free(texts[0]);
    free(texts[1]);
    texts[0] = row->entry.request ? strdup(row->entry.request) : NULL;
    texts[1] = row->entry.result ? strdup(row->entry.result) : NULL;
    return 0;
}

/* Request and result of the last record; free both. */
static void last_record(struct place *place, char *texts[2])
{
    struct tci_journal_query query = { .kind = "call", .last = 1 };
    texts[0] = texts[1] = NULL;
    assert_int_equal(tci_journal_each(place->engine->journal, &query, copy_request, texts, NULL),
                     0);
}

static int count_row(void *context, const struct tci_journal_row *row, struct tc_error *reterr)
{
    (void)row, (void)reterr;
    ++*(int *)context;
    return 0;
}

static int count_rows(struct place *place, const char *session)
{
    struct tci_journal_query query = { .kind = "call", .session = session };
    int count = 0;
    assert_int_equal(tci_journal_each(place->engine->journal, &query, count_row, &count, NULL), 0);
    return count;
}

/* Is it anywhere in the files of the journal? */
static bool is_stored(const struct place *place, const char *text)
{
    static const char *const parts[] = { "", "-wal", "-shm" };
    bool found = false;
    for (size_t i = 0; i < tci_array_size(parts); i++) {
        char path[80];
        struct stat stat;
        char *bytes;
        int fd;
        (void)snprintf(path, sizeof path, "%s%s", place->journal, parts[i]);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        assert_int_equal(fstat(fd, &stat), 0);
        bytes = malloc((size_t)stat.st_size + 1);
        assert_int_equal(read(fd, bytes, (size_t)stat.st_size), stat.st_size);
        found |= memmem(bytes, (size_t)stat.st_size, text, strlen(text)) != NULL;
        free(bytes);
        close(fd);
    }
    return found;
}

/* ---- recording ---------------------------------------------------------------------------- */

static void test_request_is_kept_in_canonical_form(void **state)
{
    struct place *place = *state;
    char *texts[2];
    tc_result_free(call(place->engine, &(struct tc_request){
                                           .tool = "echo",
                                           .agent = "reader",
                                           .arguments_json = "{ \"word\" : \"a\", \"b\": 1.0 }",
                                           .input = "in",
                                           .input_length = 2,
                                           .limits = { .timeout_ms = 5000, .memory = 1000000 } }));
    last_record(place, texts);
    assert_string_equal(
        texts[0], "{\"agent\":\"reader\",\"arguments\":{\"b\":1,\"word\":\"a\"},\"input_sha256\":"
                  "\"582967534d0f909d196b97f9e6921342777aea87b46fa52df165389db1fb8ccf\","
                  "\"limits\":{\"memory\":1000000,\"timeout_ms\":5000},\"tool\":\"echo\"}");
    free(texts[0]);
    free(texts[1]);
    tc_result_free(call(place->engine, &(struct tc_request){ .argv = ARGV("true", "\xff") }));
    last_record(place, texts);
    assert_string_equal(texts[0], "{\"argv\":[\"true\",{\"base64\":\"/w==\"}]}");
    free(texts[0]);
    free(texts[1]);
}

static void test_result_has_the_state_of_its_session(void **state)
{
    struct place *place = *state;
    struct tc_result *first = call_tool(place->engine, "state", "echo", "{\"word\":\"a\"}");
    struct tc_result *second = call_tool(place->engine, "state", "echo", "{\"word\":\"a\"}");
    struct tc_result *quiet = call_tool(place->engine, "state", "quiet", "{\"word\":\"a\"}");
    assert_int_equal(strlen(first->state_hash), 64);
    assert_int_equal(strlen(second->state_hash), 64);
    assert_string_not_equal(first->state_hash, second->state_hash);
    assert_string_equal(quiet->state_hash, "");
    assert_string_equal(quiet->stdout_data, "a");
    assert_int_equal(count_rows(place, "state"), 2);
    tc_result_free(first);
    tc_result_free(second);
    tc_result_free(quiet);
}

static void test_call_without_a_journal_makes_no_request_text(void **state)
{
    const struct place *place = *state;
    struct tc_engine_options options = { .policy = place->policy };
    struct tc_engine *engine = NULL;
    struct tc_call *started = NULL;
    struct tc_request request = { .tool = "echo", .arguments_json = "{\"word\":\"a\"}" };
    assert_int_equal(tci_engine_open_with(&options, double_for, &engine, NULL), 0);
    assert_int_equal(tc_call_start(engine, &request, &started, NULL), 0);
    assert_null(started->recorded);
    tc_call_free(started);
    tc_engine_close(engine);
}

static void test_refusals_are_recorded_too(void **state)
{
    struct place *place = *state;
    struct tc_result *result = call_tool(place->engine, "refused", "no-such-tool", "{}");
    assert_int_equal(result->verdict, TC_VERDICT_DENIED);
    assert_int_equal(strlen(result->state_hash), 64);
    tc_result_free(result);
    result = call_tool(place->engine, "refused", "echo", "not JSON");
    assert_int_equal(result->verdict, TC_VERDICT_INVALID_INPUT);
    assert_int_equal(strlen(result->state_hash), 64);
    tc_result_free(result);
    assert_int_equal(count_rows(place, "refused"), 2);
}

/* Whether there is such a tool, and what it records, must not show to an agent that may not call it; nor
 * may arguments be stored that the tool would keep out of the journal. */
static void test_calls_without_a_grant_are_recorded_alike(void **state)
{
    struct place *place = *state;
    static const char *const tools[] = { "no-such-tool", "quiet", "hashed", "secret", "typed" };
    struct tc_request request = { .agent = "reader",
                                  .session = "ungranted",
                                  .arguments_json = "{\"token\":\"never-in-the-journal\"}" };
    struct tc_engine *replay;
    char *live[tci_array_size(tools)], *texts[2];

    for (size_t i = 0; i < tci_array_size(tools); i++) {
        struct tc_result *result;
        request.tool = tools[i];
        result = call(place->engine, &request);
        assert_int_equal(result->verdict, TC_VERDICT_DENIED);
        assert_int_equal(strlen(result->state_hash), 64);
        live[i] = json_of(result);
        last_record(place, texts);
        assert_null(texts[0]);
        assert_non_null(texts[1]);
        free(texts[1]);
    }
    assert_int_equal(count_rows(place, "ungranted"), tci_array_size(tools));
    assert_false(is_stored(place, "never-in-the-journal"));
    replay = open_mode(place, TC_MODE_REPLAY, 0);
    for (size_t i = 0; i < tci_array_size(tools); i++) {
        request.tool = tools[i];
        assert_same(live[i], json_of(call(replay, &request)));
    }
    tc_engine_close(replay);
}

static void test_calls_without_a_grant_leave_no_record_if_defaults_say_so(void **state)
{
    struct place other = *(struct place *)*state;
    static const char *const tools[] = { "no-such-tool", "loud" };
    other.policy = load_text("version = 1\n[defaults]\nrecord = false\n"
                             "[tool.loud]\nrecord = true\ncommand = [\"true\"]\n"
                             "[agent.none]\ngrants = []\n[agent.one]\ngrants = [\"loud\"]\n");
    other.engine = open_mode(&other, TC_MODE_LIVE, 0);
    for (size_t i = 0; i < tci_array_size(tools); i++) {
        struct tc_result *result = call(
            other.engine,
            &(struct tc_request){ .agent = "none", .session = "defaults", .tool = tools[i] });
        assert_int_equal(result->verdict, TC_VERDICT_DENIED);
        assert_string_equal(result->state_hash, "");
        tc_result_free(result);
    }
    assert_int_equal(count_rows(&other, "defaults"), 0);
    tc_result_free(call(other.engine, &(struct tc_request){
                                          .agent = "one", .session = "defaults", .tool = "loud" }));
    assert_int_equal(count_rows(&other, "defaults"), 1);
    tc_engine_close(other.engine);
    tc_policy_free(other.policy);
}

static void test_cancelled_call_is_recorded_and_a_freed_one_is_not(void **state)
{
    struct place *place = *state;
    struct tc_request request = { .session = "cancel", .argv = ARGV("double:waits") };
    struct tc_result *result = NULL;
    struct tc_call *started = NULL;

    assert_int_equal(tc_call_start(place->engine, &request, &started, NULL), 0);
    tc_call_free(started);
    assert_int_equal(count_rows(place, "cancel"), 0);
    assert_int_equal(tc_call_start(place->engine, &request, &started, NULL), 0);
    tc_call_cancel(started);
    while (!result)
        assert_int_equal(tc_call_step(started, &result, NULL), 0);
    assert_int_equal(result->verdict, TC_VERDICT_ERROR);
    assert_int_equal(strlen(result->state_hash), 64);
    assert_int_equal(count_rows(place, "cancel"), 1);
    tc_result_free(result);
    tc_call_free(started);
}

static int count_bytes(void *context, enum tc_stream stream, const void *bytes, size_t length)
{
    (void)stream, (void)bytes;
    *(size_t *)context += length;
    return 0;
}

static void test_output_that_only_passes_through_is_recorded_all_the_same(void **state)
{
    struct place *place = *state;
    size_t seen = 0;
    struct tc_request request = { .argv = SH("echo passing"),
                                  .on_output = count_bytes,
                                  .context = &seen,
                                  .flags = TC_REQUEST_KEEP_NOTHING };
    char *texts[2];
    tc_result_free(call(place->engine, &request));
    assert_int_equal(seen, 8);
    last_record(place, texts);
    assert_non_null(strstr(texts[1], "\"stdout\":\"passing\\n\""));
    free(texts[0]);
    free(texts[1]);
}

static void test_sessions_that_cannot_be_recorded_are_refused(void **state)
{
    struct place *place = *state;
    char longer[300];
    const char *const names[] = { "", "a\nb", "\xff", longer };
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    for (size_t i = 0; i < tci_array_size(names); i++) {
        struct tc_request request = { .session = names[i], .argv = ARGV("true") };
        struct tc_result *result = NULL;
        struct tc_error error = { 0 };
        assert_int_equal(tc_call(place->engine, &request, &result, &error), -1);
        assert_int_equal(error.code, TC_ERROR_USAGE);
    }
}

/* ---- redaction ---------------------------------------------------------------------------- */

static void test_redacted_values_are_never_stored(void **state)
{
    struct place *place = *state;
    const char *arguments = "{\"token\":{\"user\":\"caf\\u00e9 "
                            "\\\"X\\\"\",\"password\":\"hunter2hunter2\",\"n\":[\"abc\"]},"
                            "\"list\":[\"shown\",\"gone-from-here\"],\"open\":\"this stays\"}";
    struct tc_result *result = call_tool(place->engine, "redact", "secret", arguments);
    char *texts[2];

    assert_int_equal(result->verdict, TC_VERDICT_OK);
    assert_non_null(strstr(result->stdout_data, "hunter2hunter2")); /* the caller has it all */
    last_record(place, texts);
    assert_non_null(strstr(texts[0], "\"token\":{\"redacted\":\"sha256:"));
    assert_non_null(strstr(texts[0], "[\"shown\",{\"redacted\":\"sha256:"));
    assert_non_null(strstr(texts[0], "this stays"));
    assert_non_null(strstr(texts[1], "[redacted]"));
    assert_non_null(strstr(texts[1], "\"stdout\""));
    assert_true(is_stored(place, "this stays"));
    assert_false(is_stored(place, "hunter2hunter2"));
    assert_false(is_stored(place, "gone-from-here"));
    assert_false(is_stored(place, "caf\xc3\xa9 \\\"X"));
    assert_false(is_stored(place, "caf\xc3\xa9 \\\\\\\"X"));
    free(texts[0]);
    free(texts[1]);
    tc_result_free(result);
}

static void test_arguments_that_are_not_json_are_kept_as_hash_if_anything_is_redacted(void **state)
{
    struct place *place = *state;
    char *texts[2];
    tc_result_free(call_tool(place->engine, NULL, "secret", "{\"token\":\"not-to-be-seen\""));
    last_record(place, texts);
    assert_non_null(strstr(texts[0], "\"arguments_text\":{\"redacted\":\"sha256:"));
    assert_false(is_stored(place, "not-to-be-seen"));
    free(texts[0]);
    free(texts[1]);
    tc_result_free(call_tool(place->engine, NULL, "echo", "{\"token\":\"to-be-seen\""));
    last_record(place, texts);
    assert_non_null(strstr(texts[0], "\"arguments_text\":\"{\\\"token\\\":\\\"to-be-seen\\\"\""));
    free(texts[0]);
    free(texts[1]);
}

static void test_reasons_show_nothing_of_arguments_that_could_not_be_read(void **state)
{
    struct place *place = *state;
    static const struct {
        const char *arguments, *secret, *live;
    } cases[] = {
        { "{\"token\" \"unread-colon\"}", "unread-colon", "unread-colon" },
        { "{\"unread-key\":1,\"unread-key\":2}", "unread-key", "unread-key" },
        { "{\"token\":98765432109876543210}", "98765432109876543210", "98765432109876543210" },
        { "\"{\\\"token\\\":\\\"twice-encoded\\\"}\"", "twice-encoded", "are a string" },
        { "[\"in-a-list\"]", "in-a-list", "are an array" },
    };
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        struct tc_result *result = call_tool(place->engine, "unread", "secret", cases[i].arguments);
        struct tc_engine *replay;
        char *texts[2], reason[768];

        assert_int_equal(result->verdict, TC_VERDICT_INVALID_INPUT);
        assert_non_null(strstr(result->reason, cases[i].live)); /* the caller is told all */
        (void)snprintf(reason, sizeof reason, "%s",
                       i < 3 ? "the reason is not recorded: the arguments could not be read, and "
                               "the tool has \"redact\""
                             : result->reason);
        tc_result_free(result);
        last_record(place, texts);
        assert_non_null(strstr(texts[0], "{\"redacted\":\"sha256:"));
        assert_false(is_stored(place, cases[i].secret));
        free(texts[0]);
        free(texts[1]);
        replay = open_mode(place, TC_MODE_REPLAY, 0);
        for (size_t step = 0; step <= i; step++) {
            result = call_tool(replay, "unread", "secret", cases[step].arguments);
            if (step == i)
                assert_string_equal(result->reason, reason);
            tc_result_free(result);
        }
        tc_engine_close(replay);
    }
}

/* Beyond the bound, nothing is searched, so nothing is stored. */
static void test_secrets_beyond_the_bound_leave_only_hashes(void **state)
{
    struct place *place = *state;
    struct tci_buf arguments = TCI_BUF_INIT(SIZE_MAX / 4);
    char *texts[2];

    tci_buf_string(&arguments, "{\"token\":\"beyond-the-bound");
    for (int i = 0; i < 150000; i++)
        tci_buf_string(&arguments, "A/\xc3\xa9");
    tci_buf_string(&arguments, "\"}");
    tc_result_free(call_tool(place->engine, "large", "secret", arguments.data));
    assert_int_equal(count_rows(place, "large"), 1);
    last_record(place, texts);
    assert_null(texts[0]);
    assert_null(texts[1]);
    assert_false(is_stored(place, "beyond-the-bound"));
    tci_buf_free(&arguments);
}

static void test_numbers_and_keys_of_redacted_values_are_never_stored(void **state)
{
    struct place *place = *state;
    const char *arguments = "{\"token\":{\"k3y-of-a-member\":[4929123456781234,-7.6543e2]}}";
    struct tc_result *result = call_tool(place->engine, "redact", "secret", arguments);
    char *texts[2];
    assert_int_equal(result->verdict, TC_VERDICT_OK);
    assert_non_null(strstr(result->output_json, "4929123456781234"));
    last_record(place, texts);
    assert_non_null(strstr(texts[1], "\"output\":{\"token\":{\"[redacted]\":[\"[redacted]\","
                                     "\"[redacted]\"]}}"));
    assert_false(is_stored(place, "4929123456781234"));
    assert_false(is_stored(place, "765.43"));
    assert_false(is_stored(place, "k3y-of-a-member"));
    free(texts[0]);
    free(texts[1]);
    tc_result_free(result);
}

/* ---- results ------------------------------------------------------------------------------ */

static const struct tc_file files[] = {
    { "/workspace/caf\xc3\xa9.png", 12,
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "image/png", "out/1" },
    { "/tmp/x", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "text/plain",
      NULL },
};
static const struct tc_connection connections[] = {
    { "api.example.com", "2001:db8::7", 443, "tcp", "*.example.com:443", "a note", NULL, 123456,
      789, 1501, 2000003 },
    { NULL, NULL, 0, "dns", NULL, NULL, "no such name", 0, 0, 0, 17 },
};

static struct tci_result *full_result(void)
{
    struct tci_result *result = tci_result_new(NULL);
    struct tc_result *public = &result->public;

    (void)snprintf(public->sandbox_id, sizeof public->sandbox_id, "tc-0123456789abcdef");
    public->tool = "calc";
    public->agent = "reader";
    public->session = "monday 1";
    public->backend = "jail";
    public->layers = "userns landlock:7 cgroup:v2";
    public->files = files;
    public->file_count = tci_array_size(files);
    public->connections = connections;
    public->connection_count = tci_array_size(connections);
    public->network_unlisted = 12;
    public->usage = (struct tc_usage){ 12345, 678, 1048576, 3, 4096 };
    public->output_json = "{\"a\":[1,2.5,null],\"b\":\"\xe2\x80\xae\"}";
    public->signal = SIGRTMIN + 1;
    tci_result_verdict(result, TC_VERDICT_SIGNALED, "fix \xff", "why \x1b[31m");
    result->output_room = 20;
    assert_int_equal(tci_result_keep(result, TC_STREAM_STDERR, "\0\xff", 2), 0);
    assert_int_equal(
        tci_result_keep(result, TC_STREAM_STDOUT, "0123456789abcdef\xc3\xa9\xc3\xa9", 20),
        1); /* cut in the middle of a character */
    assert_int_equal(tci_result_deny(result, "read", "/etc/shadow\n\xff", "filesystem"), 0);
    assert_int_equal(tci_result_deny_times(result, "network", "x.example", "no rule", 3), 0);
    return result;
}

static void test_result_reads_back_to_the_same_json(void **state)
{
    struct tci_result *before = full_result(), *after = tci_result_new(NULL);
    char *text = tci_result_canonical(&before->public), *again;
    struct tc_error error = { 0 };
    (void)state;
    if (tci_result_read(after, text, &error) < 0)
        fail_msg("%s", error.message);
    again = tci_result_canonical(&after->public);
    assert_string_equal(again, text);
    assert_string_equal(tc_result_json(&after->public), tc_result_json(&before->public));
    free(text);
    free(again);
    tc_result_free(&before->public);
    tc_result_free(&after->public);
}

static void test_every_member_of_a_stored_result_is_needed(void **state)
{
    struct tci_result *before = full_result();
    char *text = tci_result_canonical(&before->public);
    json_t *object = tci_json_read(text, strlen(text), NULL);
    const char *key;
    json_t *value;
    void *tmp;
    (void)state;

    json_object_foreach_safe(object, tmp, key, value)
    {
        for (int kind = 0; kind < 3; kind++) {
            json_t *copy = json_deep_copy(object);
            struct tci_result *after = tci_result_new(NULL);
            struct tc_error error = { 0 };
            char *changed;
            if (kind == 0)
                json_object_del(copy, key);
            else if (kind == 1)
                json_object_set_new(copy, key, json_pack("[{}]"));
            else
                json_object_set_new(copy, "another", json_null());
            changed = json_dumps(copy, JSON_COMPACT);
            /* Anything may be the output of a tool. */
            assert_int_equal(tci_result_read(after, changed, &error),
                             kind == 1 && strcmp(key, "output") == 0 ? 0 : -1);
            tc_result_free(&after->public);
            json_decref(copy);
            free(changed);
        }
    }
    json_decref(object);
    free(text);
    tc_result_free(&before->public);
}

/* ---- replay ------------------------------------------------------------------------------- */

static void test_replay_gives_the_same_bytes_and_runs_nothing(void **state)
{
    struct place *place = *state;
    struct tc_engine *replay;
    char *live[4];
    int plans;

    live[0] = json_of(call_tool(place->engine, "bytes", "echo", "{\"word\":\"one\"}"));
    live[1] = json_of(call_tool(place->engine, "bytes", "typed", "{\"x\":[1,2]}"));
    live[2] = json_of(call_tool(place->engine, "bytes", "no-such-tool", "{}"));
    live[3] = json_of(
        call(place->engine,
             &(struct tc_request){ .session = "bytes", .argv = SH("printf '\\377'; exit 3") }));
    plans = double_plans_made;
    replay = open_mode(place, TC_MODE_REPLAY, 0);
    assert_same(live[0], json_of(call_tool(replay, "bytes", "echo", "{ \"word\": \"one\" }")));
    assert_same(live[1], json_of(call_tool(replay, "bytes", "typed", "{\"x\":[1,2]}")));
    assert_same(live[2], json_of(call_tool(replay, "bytes", "no-such-tool", "{}")));
    assert_same(
        live[3],
        json_of(call(replay, &(struct tc_request){ .session = "bytes",
                                                   .argv = SH("printf '\\377'; exit 3") })));
    assert_int_equal(double_plans_made, plans);
    assert_int_equal(count_rows(place, "bytes"), 4);
    tc_engine_close(replay);
}

static void test_identical_requests_are_consumed_in_order(void **state)
{
    struct place *place = *state;
    struct tc_engine *replay;
    struct tc_result *result;
    char *live[3];
    for (int i = 0; i < 3; i++)
        live[i] = json_of(call_tool(place->engine, "same", "echo", "{\"word\":\"x\"}"));
    replay = open_mode(place, TC_MODE_REPLAY, 0);
    for (int i = 0; i < 3; i++)
        assert_same(live[i], json_of(call_tool(replay, "same", "echo", "{\"word\":\"x\"}")));
    result = call_tool(replay, "same", "echo", "{\"word\":\"x\"}");
    assert_int_equal(result->verdict, TC_VERDICT_ERROR);
    assert_int_equal(result->mode, TC_MODE_REPLAY);
    assert_string_equal(result->reason,
                        "replay diverged at step 4 of session \"same\": it has only 3 steps");
    tc_result_free(result);
    result = call_tool(replay, "never", "echo", "{\"word\":\"x\"}");
    assert_non_null(strstr(result->reason, "there is no session \"never\" in journal "));
    tc_result_free(result);
    tc_engine_close(replay);
}

static void test_divergence_says_where_and_shows_both_requests(void **state)
{
    struct place *place = *state;
    struct tc_engine *replay;
    struct tc_result *result;
    char *live;
    tc_result_free(call_tool(place->engine, "part", "echo", "{\"word\":\"a\",\"n\":1}"));
    live = json_of(call_tool(place->engine, "part", "echo", "{\"word\":\"b\"}"));
    replay = open_mode(place, TC_MODE_REPLAY, 0);
    tc_result_free(call_tool(replay, "part", "echo", "{\"word\":\"a\",\"n\":1}"));
    result = call_tool(replay, "part", "echo", "{\"word\":\"c\\u001b\",\"n\":[1]}");
    assert_int_equal(result->verdict, TC_VERDICT_ERROR);
    assert_string_equal(result->state_hash, "");
    assert_string_equal(
        result->reason,
        "replay diverged at step 2 of session \"part\": /arguments/word was \"b\", is "
        "\"c\\x1b\"; /arguments/n was absent, is [1]");
    tc_result_free(result);
    /* What was expected is still there. */
    assert_same(live, json_of(call_tool(replay, "part", "echo", "{\"word\":\"b\"}")));
    tc_engine_close(replay);
}

static void test_reading_can_go_on_in_another_engine(void **state)
{
    struct place *place = *state;
    struct tc_result *result;
    for (int i = 0; i < 2; i++)
        tc_result_free(call_tool(place->engine, "resume", "echo", "{\"word\":\"r\"}"));
    for (int i = 0; i < 3; i++) {
        struct tc_engine *replay = open_mode(place, TC_MODE_REPLAY, TC_ENGINE_REPLAY_RESUME);
        result = call_tool(replay, "resume", "echo", "{\"word\":\"r\"}");
        assert_int_equal(result->verdict, i < 2 ? TC_VERDICT_OK : TC_VERDICT_ERROR);
        tc_result_free(result);
        tc_engine_close(replay);
    }
}

static void test_hash_only_keeps_hashes_and_cannot_be_replayed(void **state)
{
    struct place *place = *state;
    struct tc_result *result = call_tool(place->engine, "hashed", "hashed",
                                         "{\"word\":\"unseen-word\"}");
    struct tc_engine *replay;
    char *texts[2];
    assert_int_equal(strlen(result->state_hash), 64);
    tc_result_free(result);
    last_record(place, texts);
    assert_null(texts[0]);
    assert_null(texts[1]);
    assert_false(is_stored(place, "unseen-word"));
    replay = open_mode(place, TC_MODE_REPLAY, 0);
    result = call_tool(replay, "hashed", "hashed", "{\"word\":\"unseen-word\"}");
    assert_int_equal(result->verdict, TC_VERDICT_ERROR);
    assert_string_equal(
        result->reason,
        "step 1 of session \"hashed\" cannot be replayed: the record holds only hashes");
    tc_result_free(result);
    tc_engine_close(replay);
}

static void test_replay_counts_no_grant(void **state)
{
    struct place *place = *state;
    struct tc_request request = {
        .tool = "echo", .agent = "reader", .session = "grants", .arguments_json = "{\"word\":\"g\"}"
    };
    struct tc_engine *replay;
    char *live = json_of(call(place->engine, &request));
    uint64_t before = 0, after = 0;
    const char *key = "reader\x1f"
                      "echo\x1ftest.toml";
    assert_non_null(strstr(live, "\"verdict\":\"ok\""));
    assert_int_equal(tci_journal_counted(place->engine->journal, key, &before, NULL), 0);
    replay = open_mode(place, TC_MODE_REPLAY, 0);
    assert_same(live, json_of(call(replay, &request)));
    tc_engine_close(replay);
    assert_int_equal(tci_journal_counted(place->engine->journal, key, &after, NULL), 0);
    assert_int_equal(before, after);
}

struct seen {
    char text[64];
    size_t length;
};

static int keep_bytes(void *context, enum tc_stream stream, const void *bytes, size_t length)
{
    struct seen *seen = &((struct seen *)context)[stream - 1];
    memcpy(seen->text + seen->length, bytes, length);
    seen->length += length;
    return 0;
}

static void test_recorded_output_goes_to_on_output_in_the_step(void **state)
{
    struct place *place = *state;
    struct seen seen[2] = { { .length = 0 } };
    struct tc_request request = { .session = "streams", .argv = SH("echo out; echo err >&2") };
    struct tc_engine *replay;
    struct tc_result *result = NULL;
    struct tc_call *started = NULL;

    tc_result_free(call(place->engine, &request));
    replay = open_mode(place, TC_MODE_REPLAY, 0);
    request.on_output = keep_bytes;
    request.context = seen;
    assert_int_equal(tc_call_start(replay, &request, &started, NULL), 0);
    assert_int_equal(seen[0].length, 0);
    assert_int_equal(tc_call_step(started, &result, NULL), 0);
    assert_non_null(result);
    assert_string_equal(seen[0].text, "out\n");
    assert_string_equal(seen[1].text, "err\n");
    tc_result_free(result);
    tc_call_free(started);
    tc_engine_close(replay);
}

static void test_replay_needs_a_journal_that_is_there(void **state)
{
    const struct place *place = *state;
    struct tc_engine_options options = { .policy = place->policy, .mode = TC_MODE_REPLAY };
    struct tc_engine *engine = NULL;
    struct tc_error error = { 0 };
    assert_int_equal(tci_engine_open_with(&options, double_for, &engine, &error), -1);
    assert_int_equal(error.code, TC_ERROR_USAGE);
    options.journal_path = "/tmp/test_record.no.such.journal";
    assert_int_equal(tci_engine_open_with(&options, double_for, &engine, &error), -1);
    assert_int_equal(access(options.journal_path, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_is_kept_in_canonical_form),
        cmocka_unit_test(test_result_has_the_state_of_its_session),
        cmocka_unit_test(test_call_without_a_journal_makes_no_request_text),
        cmocka_unit_test(test_refusals_are_recorded_too),
        cmocka_unit_test(test_calls_without_a_grant_are_recorded_alike),
        cmocka_unit_test(test_calls_without_a_grant_leave_no_record_if_defaults_say_so),
        cmocka_unit_test(test_cancelled_call_is_recorded_and_a_freed_one_is_not),
        cmocka_unit_test(test_output_that_only_passes_through_is_recorded_all_the_same),
        cmocka_unit_test(test_sessions_that_cannot_be_recorded_are_refused),
        cmocka_unit_test(test_redacted_values_are_never_stored),
        cmocka_unit_test(test_arguments_that_are_not_json_are_kept_as_hash_if_anything_is_redacted),
        cmocka_unit_test(test_reasons_show_nothing_of_arguments_that_could_not_be_read),
        cmocka_unit_test(test_secrets_beyond_the_bound_leave_only_hashes),
        cmocka_unit_test(test_numbers_and_keys_of_redacted_values_are_never_stored),
        cmocka_unit_test(test_result_reads_back_to_the_same_json),
        cmocka_unit_test(test_every_member_of_a_stored_result_is_needed),
        cmocka_unit_test(test_replay_gives_the_same_bytes_and_runs_nothing),
        cmocka_unit_test(test_identical_requests_are_consumed_in_order),
        cmocka_unit_test(test_divergence_says_where_and_shows_both_requests),
        cmocka_unit_test(test_reading_can_go_on_in_another_engine),
        cmocka_unit_test(test_hash_only_keeps_hashes_and_cannot_be_replayed),
        cmocka_unit_test(test_replay_counts_no_grant),
        cmocka_unit_test(test_recorded_output_goes_to_on_output_in_the_step),
        cmocka_unit_test(test_replay_needs_a_journal_that_is_there),
    };
    return cmocka_run_group_tests(tests, open_place, close_place);
}
