/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: grants at run time, agents that work for others, calls inside calls, and approval, over a backend
 * that builds no cage. What several processes do to one journal is in tests/e2e/test_grants.py.
 */
#include "call_support.h"

#include <unistd.h>
#include "core/grants_list.h"
#include "journal/journal.h"

static const char policy_text[] =
    "[tool.plain]\nmemory = \"200MB\"\n"
    "[tool.other]\n"
    "[tool.asked]\napproval = \"ask\"\n"
    "filesystem = { readable = [\"/data\"], writable = [\"/srv/w:/workspace\"] }\n"
    "[tool.quick]\napproval = \"ask\"\napproval_timeout = \"20ms\"\n"
    "[agent.boss]\ngrants = [{ tool = \"plain\", max_calls = 5, memory = \"100MB\" }, \"asked\"]\n"
    "[agent.kid]\nparent = \"boss\"\n"
    "grants = [{ tool = \"plain\", max_calls = 2, timeout = \"3s\" }, \"other\"]\n"
    "[agent.third]\ngrants = [\"plain\", { tool = \"other\", approval = \"ask\" }]\n";

struct world {
    struct fixture fixture;
    char directory[64], journal[96];
};

static struct tc_engine *open_engine(const struct world *world, tc_approval_function *on_approval,
                                     void *context)
{
    struct tc_engine_options options = { .policy = world->fixture.policy,
                                         .journal_path = world->journal,
                                         .on_approval = on_approval,
                                         .approval_context = context };
    struct tc_engine *engine = NULL;
    struct tc_error error = { 0 };
    if (tci_engine_open_with(&options, double_for, &engine, &error) < 0)
        fail_msg("%s", error.message);
    return engine;
}

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    if (!world)
        return -1;
    (void)snprintf(world->directory, sizeof world->directory, "/tmp/test-grants-XXXXXX");
    if (!mkdtemp(world->directory))
        return -1;
    (void)snprintf(world->journal, sizeof world->journal, "%s/j.db", world->directory);
    world->fixture.policy = load_text(policy_text);
    world->fixture.engine = open_engine(world, NULL, NULL);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    static const char *const files[] = { "", "-wal", "-shm" };
    struct world *world = *state;
    char path[128];
    close_fixture(&world->fixture);
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof path, "%s%s", world->journal, files[i]);
        (void)unlink(path);
    }
    (void)rmdir(world->directory);
    free(world);
    return 0;
}

static struct tc_engine *engine_of(void **state)
{
    return ((struct world *)*state)->fixture.engine;
}

static void add(struct tc_engine *engine, const char *agent, const char *grant, char id[37])
{
    struct tc_error error = { 0 };
    if (tc_grant_add(engine, agent, grant, id, &error) < 0)
        fail_msg("%s", error.message);
}

/* A call that must end in this way. */
static void expect(struct tc_engine *engine, const struct tc_request *request,
                   enum tc_verdict verdict, const char *reason)
{
    struct tc_result *result = call(engine, request);
    if (result->verdict != verdict || !strstr(result->reason, reason))
        fail_msg("%s: %s", tc_verdict_name(result->verdict), result->reason);
    tc_result_free(result);
}

static struct tc_request by(const char *agent, const char *tool)
{
    static const char *const argv[] = { "double:exit", "0", NULL };
    return (struct tc_request){ .tool = tool, .agent = agent, .argv = argv };
}

static uint64_t used(struct tc_engine *engine, const char *agent, const char *tool)
{
    const struct tci_agent *a = tci_policy_agent(engine->policy, agent);
    struct tc_error error = { 0 };
    uint64_t calls = 0;
    if (tci_engine_calls(engine, agent, tci_agent_grant(a, tool), &calls, &error) < 0)
        fail_msg("%s", error.message);
    return calls;
}

/* ---- at run time ------------------------------------------------------------------------------ */

static void test_run_time_grant_allows_until_it_is_revoked_elsewhere(void **state)
{
    struct world *world = *state;
    struct tc_engine *other = open_engine(world, NULL, NULL);
    struct tc_request request = by("new", "plain");
    struct tc_error error = { 0 };
    char id[37];

    expect(world->fixture.engine, &request, TC_VERDICT_DENIED, "holds no grant");
    add(other, "new", "{ tool = \"plain\", memory = \"50MB\" }", id);
    expect(world->fixture.engine, &request, TC_VERDICT_OK, "");
    assert_int_equal(double_settings.memory, 50000000);
    assert_int_equal(tc_grant_revoke(other, id, &error), 0);
    expect(world->fixture.engine, &request, TC_VERDICT_DENIED, "holds no grant");
    assert_int_equal(tc_grant_revoke(other, id, &error), -1);
    assert_non_null(strstr(error.message, "revoked already"));
    tc_engine_close(other);
}

static void test_grants_are_used_in_the_order_in_which_they_were_made(void **state)
{
    struct tc_engine *engine = engine_of(state);
    struct tc_request request = by("new", "plain");
    char id[37];

    add(engine, "new", "{ tool = \"plain\", expires = \"2020-01-01\" }", id);
    expect(engine, &request, TC_VERDICT_DENIED, "expired");
    add(engine, "new", "{ tool = \"plain\", max_calls = 1, memory = \"20MB\" }", id);
    add(engine, "new", "{\"tool\":\"plain\",\"max_calls\":1,\"memory\":\"30MB\"}", id);
    expect(engine, &request, TC_VERDICT_OK, "");
    assert_int_equal(double_settings.memory, 20000000);
    expect(engine, &request, TC_VERDICT_OK, "");
    assert_int_equal(double_settings.memory, 30000000);
    expect(engine, &request, TC_VERDICT_DENIED, "used its one call");
}

static void test_grants_that_cannot_be_are_refused_with_a_reason(void **state)
{
    static const struct {
        const char *agent, *grant, *message, *remedy;
    } cases[] = {
        { "new", "{ tool = \"plian\" }", "no tool of this policy", "\"plain\"" },
        { "new", "{ tool = \"plain\", memry = \"1MB\" }", "unknown key", "\"memory\"" },
        { "new", "{ tool = \"plain\", expires = \"soon\" }", "not a date", "" },
        { "new", "{ memory = \"1MB\" }", "names no tool", "" },
        { "new", "plain", "", "" },
        { "new", "{ tool = \"plain\" }\n[tool.evil]", "", "" },
        { "-x", "{ tool = \"plain\" }", "not a name for an agent", "" },
        { "", "{ tool = \"plain\" }", "not a name for an agent", "" },
        { "new", "{ tool = \"asked\", filesystem = { readable = [\"/data/part\"] } }",
          "only a part", "" },
        { "new", "{ tool = \"asked\", filesystem = { readable = [\"/etc:/data\"] } }", "", "" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tc_error error = { 0 };
        char id[37];
        if (tc_grant_add(engine_of(state), cases[i].agent, cases[i].grant, id, &error) == 0)
            fail_msg("%s: it was made", cases[i].grant);
        if (!strstr(error.message, cases[i].message) || !strstr(error.remedy, cases[i].remedy))
            fail_msg("%s: %s (%s)", cases[i].grant, error.message, error.remedy);
    }
}

static void test_grants_at_run_time_need_a_journal(void **state)
{
    struct world *world = *state;
    struct tc_engine_options options = { .policy = world->fixture.policy };
    struct tc_engine *engine = NULL;
    struct tc_error error = { 0 };
    char id[37];

    assert_int_equal(tci_engine_open_with(&options, double_for, &engine, &error), 0);
    assert_int_equal(tc_grant_add(engine, "new", "{ tool = \"plain\" }", id, &error), -1);
    assert_int_equal(error.code, TC_ERROR_USAGE);
    assert_int_equal(tc_grant_revoke(engine, "x", &error), -1);
    tc_engine_close(engine);
}

static void test_list_shows_what_there_is_and_how_it_stands(void **state)
{
    struct tc_engine *engine = engine_of(state);
    struct tc_request request = by("new", "plain");
    struct tc_error error = { 0 };
    char id[37], *json = NULL;

    add(engine, "new", "{ tool = \"plain\", max_calls = 1 }", id);
    expect(engine, &request, TC_VERDICT_OK, "");
    assert_int_equal(tc_grant_list(engine, &json, &error), 0);
    assert_non_null(strstr(json, id));
    assert_non_null(strstr(json, "\"state\": \"used_up\""));
    assert_non_null(strstr(json, "\"parent\": \"boss\""));
    free(json);
}

static void test_tool_that_the_host_defines_can_be_granted(void **state)
{
    static const struct tc_tool_definition definition = { .name = "mine",
                                                          .policy = "command = [\"true\"]\n" };
    struct tc_engine *engine = engine_of(state);
    struct tc_request request = by("new", "mine");
    struct tc_error error = { 0 };
    char id[37];

    assert_int_equal(tc_grant_add(engine, "new", "{ tool = \"mine\" }", id, &error), -1);
    assert_int_equal(tc_tool_define(engine, &definition, &error), 0);
    expect(engine, &request, TC_VERDICT_DENIED, "holds no grant");
    add(engine, "new", "{ tool = \"mine\", memory = \"30MB\" }", id);
    expect(engine, &request, TC_VERDICT_OK, "");
    assert_int_equal(double_settings.memory, 30000000);
}

/* The answer must not tell an agent what exists: only names and ids may differ. */
static void test_unknown_ungranted_and_revoked_tools_give_one_answer(void **state)
{
    static const char *const tools[] = { "nosuch", "hidden", "wasnot" };
    static const char *const policy = "[tool.hidden]\n[tool.wasnot]\n[agent.boss]\n[agent.kid]\n"
                                      "parent = \"boss\"\ngrants = [\"hidden\"]\n";
    struct world world = *(struct world *)*state;
    char *texts[3], id[37];
    struct tc_error error = { 0 };

    world.fixture.policy = load_text(policy);
    world.fixture.engine = open_engine(&world, NULL, NULL);
    add(world.fixture.engine, "kid", "{ tool = \"wasnot\" }", id);
    assert_int_equal(tc_grant_revoke(world.fixture.engine, id, &error), 0);
    for (int who = 0; who < 2; who++) {
        for (size_t i = 0; i < 3; i++) {
            struct tc_request request = by(who ? "kid" : "none", tools[i]);
            struct tc_result *result = call(world.fixture.engine, &request);
            const char *end, *p;
            char *json;
            assert_int_equal(result->verdict, TC_VERDICT_DENIED);
            memset(result->call_id, '0', sizeof result->call_id - 1);
            memset(result->trace_id, '0', sizeof result->trace_id - 1);
            result->state_hash[0] = '\0';
            result->usage.duration_us = 0;
            json = tci_result_write(result);
            assert_non_null(json);
            for (end = json; (p = strstr(end, tools[i])); end = p + 6)
                memset((char *)(uintptr_t)p, 'x', 6);
            p = strstr(json, "\"hash\"");
            assert_non_null(p);
            texts[i] = strndup(json, (size_t)(p - json));
            free(json);
            tc_result_free(result);
        }
        assert_string_equal(texts[0], texts[1]);
        assert_string_equal(texts[0], texts[2]);
        for (size_t i = 0; i < 3; i++)
            free(texts[i]);
    }
    tc_engine_close(world.fixture.engine);
    tc_policy_free(world.fixture.policy);
}

/* ---- agents that work for others -------------------------------------------------------------- */

static void test_child_agent_needs_its_parents_grant_and_both_narrow(void **state)
{
    struct tc_engine *engine = engine_of(state);
    struct tc_request plain = by("kid", "plain"), other = by("kid", "other");

    expect(engine, &other, TC_VERDICT_DENIED, "\"kid\" holds no grant");
    expect(engine, &plain, TC_VERDICT_OK, "");
    assert_int_equal(double_settings.memory, 100000000);
    assert_int_equal(double_settings.timeout, 3000);
    assert_int_equal(used(engine, "boss", "plain"), 1);
}

static void test_refused_call_uses_up_nothing_of_anybody(void **state)
{
    struct tc_engine *engine = engine_of(state);
    struct tc_request plain = by("kid", "plain");

    expect(engine, &plain, TC_VERDICT_OK, "");
    expect(engine, &plain, TC_VERDICT_OK, "");
    expect(engine, &plain, TC_VERDICT_DENIED, "\"kid\" has used all 2");
    assert_int_equal(used(engine, "boss", "plain"), 2);
    assert_int_equal(used(engine, "kid", "plain"), 2);
}

static void test_calls_are_counted_together_or_not_at_all(void **state)
{
    struct tc_engine *engine = engine_of(state);
    static const char *const keys[] = { "wide", "narrow" };
    static const uint64_t max[] = { 10, 1 }, none[] = { 10, 0 };
    struct tc_error error = { 0 };
    uint64_t calls = 0;
    bool counted = false;

    assert_int_equal(tci_journal_count_all(engine->journal, keys, max, 2, &counted, &error), 0);
    assert_true(counted);
    assert_int_equal(tci_journal_count_all(engine->journal, keys, max, 2, &counted, &error), 0);
    assert_false(counted);
    assert_int_equal(tci_journal_count_all(engine->journal, keys, none, 2, &counted, &error), 0);
    assert_false(counted);
    assert_int_equal(tci_journal_counted(engine->journal, "wide", &calls, &error), 0);
    assert_int_equal(calls, 1);
}

static void test_counts_outlive_the_engine_and_another_way_to_name_the_file(void **state)
{
    struct world *world = *state;
    struct tc_engine *again;
    struct tc_request plain = by("kid", "plain");

    expect(world->fixture.engine, &plain, TC_VERDICT_OK, "");
    world->fixture.policy->file = "./sub/../test.toml";
    again = open_engine(world, NULL, NULL);
    assert_int_equal(used(again, "kid", "plain"), 1);
    tc_engine_close(again);
}

/* ---- calls inside calls ----------------------------------------------------------------------- */

static struct tc_call *start(struct tc_engine *engine, struct tc_request request)
{
    static const char *const argv[] = { "double:waits", NULL };
    struct tc_call *outer = NULL;
    struct tc_error error = { 0 };
    request.argv = argv;
    if (tc_call_start(engine, &request, &outer, &error) < 0)
        fail_msg("%s", error.message);
    assert_false(outer->over);
    return outer;
}

static void test_nested_call_has_no_more_than_the_call_around_it(void **state)
{
    struct tc_engine *engine = engine_of(state);
    struct tc_request outside = by("third", "plain"), inside = by(NULL, "plain");
    struct tc_call *outer;
    struct tc_result *result;

    outside.limits = (struct tc_limits){ .timeout_ms = 1500, .memory = 40000000, .pids = 3 };
    outer = start(engine, outside);
    inside.parent = tc_call_id(outer);
    result = call(engine, &inside);
    assert_int_equal(result->verdict, TC_VERDICT_OK);
    assert_string_equal(result->agent, "third"); /* and not the owner */
    tc_result_free(result);
    assert_int_equal(double_settings.memory, 40000000);
    assert_int_equal(double_settings.pids, 3);
    assert_true(double_settings.timeout <= 1500);
    inside.limits.memory = 50000000;
    expect(engine, &inside, TC_VERDICT_DENIED, "the call around it has");
    tc_call_free(outer);
}

static void test_nested_call_needs_the_grants_of_both_agents(void **state)
{
    struct tc_engine *engine = engine_of(state);
    struct tc_call *outer = start(engine, by("boss", "plain"));
    struct tc_request inside = by("third", "other"); /* boss has no grant for it */

    inside.parent = tc_call_id(outer);
    expect(engine, &inside, TC_VERDICT_DENIED, "holds no grant");
    inside.tool = "plain";
    expect(engine, &inside, TC_VERDICT_OK, "");
    assert_int_equal(used(engine, "boss", "plain"), 2);
    inside.agent = NULL;
    inside.tool = NULL; /* what only the owner may */
    expect(engine, &inside, TC_VERDICT_DENIED, "holds no grant");
    tc_call_free(outer);
}

static void test_nested_call_needs_a_call_that_is_under_way(void **state)
{
    struct tc_engine *engine = engine_of(state);
    struct tc_call *outer = start(engine, by(NULL, "plain"));
    struct tc_request inside = by(NULL, "plain");
    char id[37];

    (void)snprintf(id, sizeof id, "%s", tc_call_id(outer));
    inside.parent = id;
    expect(engine, &inside, TC_VERDICT_OK, "");
    tc_call_free(outer);
    expect(engine, &inside, TC_VERDICT_DENIED, "not under way");
    inside.parent = "";
    expect(engine, &inside, TC_VERDICT_DENIED, "not under way");
}

static void test_ended_call_is_not_under_way_before_it_is_freed(void **state)
{
    struct tc_engine *engine = engine_of(state);
    struct tc_call *outer = start(engine, by(NULL, "plain"));
    struct tc_request inside = by(NULL, "plain");
    struct tc_result *result = NULL;
    struct tc_error error = { 0 };
    char id[37];

    (void)snprintf(id, sizeof id, "%s", tc_call_id(outer));
    inside.parent = id;
    tc_call_cancel(outer);
    while (!result)
        assert_int_equal(tc_call_step(outer, &result, &error), 0);
    expect(engine, &inside, TC_VERDICT_DENIED, "not under way");
    tc_result_free(result);
    tc_call_free(outer);
}

static void test_nested_calls_end_at_a_depth(void **state)
{
    struct tc_engine *engine = engine_of(state);
    struct tc_call *calls[8];
    struct tc_request request = by(NULL, "plain");

    for (size_t i = 0; i < 8; i++) {
        calls[i] = start(engine, request);
        request.parent = tc_call_id(calls[i]);
    }
    expect(engine, &request, TC_VERDICT_DENIED, "eight deep");
    /* A plan inside another one keeps that one alive, whoever ends first. */
    for (size_t i = 0; i < 8; i++)
        tc_call_free(calls[i]);
}

static void test_nested_plans_are_not_shared(void **state)
{
    struct tc_engine *engine = engine_of(state);
    struct tc_request request = by(NULL, "plain");
    struct tc_call *outer = start(engine, request);
    int before = double_plans;

    request.parent = tc_call_id(outer);
    expect(engine, &request, TC_VERDICT_OK, "");
    assert_int_equal(double_plans, before);
    tc_call_free(outer);
}

static void test_nested_call_ends_when_the_time_of_the_other_does(void **state)
{
    struct tc_engine *engine = engine_of(state);
    struct tc_request outside = by(NULL, "plain"), inside = by(NULL, "plain");
    static const char *const waits[] = { "double:waits", NULL };
    enum tc_verdict verdict = TC_VERDICT_DENIED;

    inside.argv = waits;
    /* On a busy machine little time is over before anything has begun: then there is more of it. */
    for (unsigned ms = 60; verdict == TC_VERDICT_DENIED && ms < 20000; ms *= 4) {
        struct tc_result *result;
        struct tc_call *outer;
        outside.limits.timeout_ms = ms;
        outer = start(engine, outside);
        inside.parent = tc_call_id(outer);
        result = call(engine, &inside);
        verdict = result->verdict;
        tc_result_free(result);
        (void)usleep(5000); /* what is left is rounded up to a millisecond */
        expect(engine, &inside, TC_VERDICT_DENIED, "no time left");
        tc_call_free(outer);
    }
    assert_int_equal(verdict, TC_VERDICT_TIMEOUT);
}

/* ---- approval --------------------------------------------------------------------------------- */

struct person {
    int answer, asked;
    useconds_t thinks;
    char seen[1000];
};

static void see(struct person *person, const char *label, const char *const *items)
{
    size_t length = strlen(person->seen);
    length += (size_t)snprintf(person->seen + length, sizeof person->seen - length, "%s", label);
    for (; *items; items++)
        length += (size_t)snprintf(person->seen + length, sizeof person->seen - length, " [%s]",
                                   *items);
}

static int ask(void *context, const struct tc_approval *approval)
{
    struct person *person = context;
    person->asked++;
    person->seen[0] = '\0';
    see(person, approval->tool, approval->argv);
    see(person, " r", approval->readable);
    see(person, " w", approval->writable);
    see(person, " n", approval->network);
    (void)usleep(person->thinks);
    return person->answer;
}

static void test_approval_shows_what_would_run_and_only_yes_is_yes(void **state)
{
    struct world *world = *state;
    struct person person = { .answer = 1 };
    struct tc_engine *engine = open_engine(world, ask, &person);
    struct tc_request request = by(NULL, "asked");

    expect(engine, &request, TC_VERDICT_OK, "");
    assert_string_equal(person.seen,
                        "asked [double:exit] [0] r [/data] w [/srv/w:/workspace] n [none]");
    for (person.answer = 0; person.answer < 4; person.answer += 2)
        expect(engine, &request, TC_VERDICT_DENIED, "and did not");
    person.answer = -1;
    expect(engine, &request, TC_VERDICT_DENIED, "nobody to ask");
    assert_int_equal(person.asked, 4);
    request = by(NULL, "plain");
    expect(engine, &request, TC_VERDICT_OK, "");
    assert_int_equal(person.asked, 4);
    tc_engine_close(engine);
}

static void test_approval_without_anybody_is_no(void **state)
{
    struct tc_request request = by(NULL, "asked");
    expect(engine_of(state), &request, TC_VERDICT_DENIED, "nobody to ask");
}

static void test_approval_that_comes_late_is_no(void **state)
{
    struct world *world = *state;
    struct person person = { .answer = 1, .thinks = 60000 };
    struct tc_engine *engine = open_engine(world, ask, &person);
    struct tc_request request = by(NULL, "quick");
    expect(engine, &request, TC_VERDICT_DENIED, "nobody approved the call within 20ms");
    tc_engine_close(engine);
}

static void test_a_grant_can_ask_and_time_runs_from_the_answer_on(void **state)
{
    struct world *world = *state;
    struct person person = { .answer = 1, .thinks = 80000 };
    struct tc_engine *engine = open_engine(world, ask, &person);
    struct tc_request request = by("third", "other");
    enum tc_verdict verdict = TC_VERDICT_TIMEOUT;

    /* On a busy machine the call itself may need more; the person always thinks longer than that. */
    for (int tries = 1; verdict == TC_VERDICT_TIMEOUT && tries <= 4; tries++) {
        struct tc_result *result;
        request.limits.timeout_ms = person.thinks / 1000 - 20;
        result = call(engine, &request);
        verdict = result->verdict;
        tc_result_free(result);
        assert_int_equal(person.asked, tries);
        person.thinks *= 4;
    }
    assert_int_equal(verdict, TC_VERDICT_OK);
    tc_engine_close(engine);
}

static void test_approval_does_not_carry_over_into_a_call(void **state)
{
    struct world *world = *state;
    struct person person = { .answer = 1 };
    struct tc_engine *engine = open_engine(world, ask, &person);
    struct tc_request inside = by(NULL, "asked");
    struct tc_call *outer = start(engine, inside);

    inside.parent = tc_call_id(outer);
    person.answer = 0;
    expect(engine, &inside, TC_VERDICT_DENIED, "and did not");
    assert_int_equal(person.asked, 2);
    tc_call_free(outer);
    tc_engine_close(engine);
}

/* Ends the call around the one that it is asked about. */
static int end_other(void *context, const struct tc_approval *approval)
{
    (void)approval;
    tc_call_free(*(struct tc_call **)context);
    return 1;
}

static void test_call_around_that_ends_during_the_question_is_no(void **state)
{
    struct world *world = *state;
    struct tc_call *outer = NULL;
    struct tc_engine *engine = open_engine(world, end_other, &outer);
    struct tc_request inside = by("third", "other");

    outer = start(engine, by("third", "plain"));
    inside.parent = tc_call_id(outer);
    expect(engine, &inside, TC_VERDICT_DENIED, "has ended");
    tc_engine_close(engine);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_run_time_grant_allows_until_it_is_revoked_elsewhere),
        T(test_grants_are_used_in_the_order_in_which_they_were_made),
        T(test_grants_that_cannot_be_are_refused_with_a_reason),
        T(test_grants_at_run_time_need_a_journal),
        T(test_list_shows_what_there_is_and_how_it_stands),
        T(test_tool_that_the_host_defines_can_be_granted),
        T(test_unknown_ungranted_and_revoked_tools_give_one_answer),
        T(test_child_agent_needs_its_parents_grant_and_both_narrow),
        T(test_refused_call_uses_up_nothing_of_anybody),
        T(test_calls_are_counted_together_or_not_at_all),
        T(test_counts_outlive_the_engine_and_another_way_to_name_the_file),
        T(test_nested_call_has_no_more_than_the_call_around_it),
        T(test_nested_call_needs_the_grants_of_both_agents),
        T(test_nested_call_needs_a_call_that_is_under_way),
        T(test_ended_call_is_not_under_way_before_it_is_freed),
        T(test_nested_calls_end_at_a_depth),
        T(test_nested_plans_are_not_shared),
        T(test_nested_call_ends_when_the_time_of_the_other_does),
        T(test_approval_shows_what_would_run_and_only_yes_is_yes),
        T(test_approval_without_anybody_is_no),
        T(test_approval_that_comes_late_is_no),
        T(test_a_grant_can_ask_and_time_runs_from_the_answer_on),
        T(test_approval_does_not_carry_over_into_a_call),
        T(test_call_around_that_ends_during_the_question_is_no),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
