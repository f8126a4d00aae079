/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests that a server does not stand still with its journal: a whole server, without a transport. Reading
 * is replaced by one that goes on until it is told to end (link_args: --wrap).
 */
#include "support.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/engine.h"
#include "journal/journal_internal.h"
#include "mcp/loop.h"
#include "mcp/resources.h"
#include "mcp/server.h"

enum { patience_s = 60 };

static const char before[] = "version = 1\n[tool.one]\ncommand = [\"true\"]\n"
                             "[tool.two]\ncommand = [\"true\"]\n[agent.a]\ngrants = [\"one\"]\n";
static const char after[] = "version = 1\n[tool.one]\ncommand = [\"true\"]\n"
                            "[tool.two]\ncommand = [\"true\"]\n"
                            "[agent.a]\ngrants = [\"one\", \"two\"]\n";

static struct {
    char directory[64], policy[96], journal[96];
    struct tci_mcp_options options;
    struct tci_mcp_loop *loop;
    struct tci_mcp_server *server;
    struct tci_mcp_session *session;
    unsigned answers, changes;
    atomic_bool is_reading, has_ended;
} t;

int __wrap_tci_journal_each_back(struct tci_journal *journal, const struct tci_journal_query *query,
                                 const struct tci_journal_bounds *bounds, tci_journal_visitor *each,
                                 void *context, struct tc_error *reterr);

/* As if there were no end of records. */
int __wrap_tci_journal_each_back(struct tci_journal *journal, const struct tci_journal_query *query,
                                 const struct tci_journal_bounds *bounds, tci_journal_visitor *each,
                                 void *context, struct tc_error *reterr)
{
    (void)journal, (void)query, (void)each, (void)context, (void)reterr;
    atomic_store(&t.is_reading, true);
    while (!bounds->stop || !atomic_load(bounds->stop))
        (void)usleep(1000);
    atomic_store(&t.has_ended, true);
    return 0;
}

static void on_send(void *context, uint64_t stream, bool last, const char *text, size_t length)
{
    tc_cleanup(tci_buf_free) struct tci_buf copy = TCI_BUF_INIT(1 << 20);
    (void)context, (void)stream, (void)last;
    tci_buf_append(&copy, text ? text : "", length);
    t.answers += strstr(copy.data, "\"result\"") != NULL;
    t.changes += strstr(copy.data, "tools/list_changed") != NULL;
}

static void write_policy(const char *text)
{
    FILE *file = fopen(t.policy, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void say(const char *text)
{
    struct tci_mcp_message message;
    assert_int_equal(tci_mcp_read(text, strlen(text), &message, NULL), 0);
    (void)tci_mcp_session_take(t.session, &message, 1);
    tci_mcp_message_free(&message);
}

static void run_until_answers(unsigned count)
{
    while (t.answers < count)
        tci_mcp_loop_run_for(t.loop, 1);
}

static int set_up(void **state)
{
    const struct tci_mcp_transport transport = { .send = on_send };
    struct tc_error error = { 0 };
    (void)state;
    memset(&t, 0, sizeof t);
    (void)alarm(patience_s); /* who waits for the journal here waits for ever */
    (void)snprintf(t.directory, sizeof t.directory, "/tmp/test_mcp_journal.XXXXXX");
    assert_non_null(mkdtemp(t.directory));
    (void)snprintf(t.policy, sizeof t.policy, "%s/policy.toml", t.directory);
    (void)snprintf(t.journal, sizeof t.journal, "%s/journal.db", t.directory);
    write_policy(before);
    t.options = (struct tci_mcp_options){ .policy_path = t.policy, .journal_path = t.journal };
    if (tci_mcp_loop_new(TCI_MCP_THREADS, false, &t.loop, &error) < 0 ||
        tci_mcp_server_new(&t.options, t.loop, &t.server, &error) < 0 ||
        tci_mcp_session_open(t.server, "a", &transport, &t.session, &error) < 0)
        fail_msg("%s", error.message);
    say("{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
        "\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}");
    say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    run_until_answers(1);
    return 0;
}

static int tear_down(void **state)
{
    static const char *const names[] = { "policy.toml", "journal.db", "journal.db-wal",
                                         "journal.db-shm" };
    char path[128];
    (void)state;
    tci_mcp_server_free(t.server);
    tci_mcp_loop_free(t.loop);
    for (size_t i = 0; i < tci_array_size(names); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", t.directory, names[i]);
        (void)unlink(path);
    }
    (void)alarm(0);
    return rmdir(t.directory);
}

/* ---- a new policy ----------------------------------------------------------------------------- */

struct holder {
    struct tci_journal *journals[2];
    sem_t locked, enough;
};

static void *hold(void *context)
{
    struct holder *holder = context;
    for (size_t i = 0; i < tci_array_size(holder->journals); i++)
        assert_int_equal(tci_journal_lock(holder->journals[i], NULL), 0);
    (void)sem_post(&holder->locked);
    (void)sem_wait(&holder->enough);
    for (size_t i = 0; i < tci_array_size(holder->journals); i++)
        tci_journal_unlock(holder->journals[i]);
    return NULL;
}

static void test_new_policy_does_not_wait_for_the_journal(void **state)
{
    struct tc_engine *engine = NULL;
    struct tc_error error = { 0 };
    struct holder holder;
    pthread_t thread;
    (void)state;
    say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
    run_until_answers(2);
    write_policy(after);
    if (tci_mcp_engine_open(t.server, NULL, &engine, &error) < 0)
        fail_msg("%s", error.message);
    holder.journals[0] = t.server->engine->engine->journal;
    holder.journals[1] = engine->journal;
    assert_int_equal(sem_init(&holder.locked, 0, 0), 0);
    assert_int_equal(sem_init(&holder.enough, 0, 0), 0);
    assert_int_equal(pthread_create(&thread, NULL, hold, &holder), 0);
    assert_int_equal(sem_wait(&holder.locked), 0);

    tci_mcp_server_replace(t.server, engine);
    say("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}");
    run_until_answers(3);
    assert_int_equal(t.changes, 0); /* its tools are not known before the journal is free */

    assert_int_equal(sem_post(&holder.enough), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    while (t.changes == 0)
        tci_mcp_loop_run_for(t.loop, 1);
    (void)sem_destroy(&holder.locked);
    (void)sem_destroy(&holder.enough);
}

/* ---- reading ---------------------------------------------------------------------------------- */

#define READ(uri)                                                                                  \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/read\",\"params\":{\"uri\":\"" uri "\"}" \
    "}"

static size_t budget_used(void)
{
    size_t used;
    (void)pthread_mutex_lock(&t.server->budget.lock);
    used = t.server->budget.used;
    (void)pthread_mutex_unlock(&t.server->budget.lock);
    return used;
}

static void test_reading_ends_when_nobody_wants_it_any_more(void **state)
{
    static const char *const reads[] = { READ(TCI_MCP_JOURNAL_URI), READ(TCI_MCP_CALL_PREFIX "x") };
    (void)state;
    for (size_t i = 0; i < tci_array_size(reads); i++) {
        atomic_store(&t.is_reading, false);
        atomic_store(&t.has_ended, false);
        say(reads[i]);
        while (!atomic_load(&t.is_reading))
            tci_mcp_loop_run_for(t.loop, 1);
        assert_int_equal(budget_used(), 0); /* who may wait has no share */
        say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
            "\"params\":{\"requestId\":1}}");
        while (!atomic_load(&t.has_ended) || t.server->running[1])
            tci_mcp_loop_run_for(t.loop, 1);
    }
    assert_int_equal(t.answers, 1); /* to initialize */
}

static void test_end_of_a_session_ends_what_it_reads(void **state)
{
    (void)state;
    say(READ(TCI_MCP_JOURNAL_URI));
    while (!atomic_load(&t.is_reading))
        tci_mcp_loop_run_for(t.loop, 1);
    tci_mcp_session_close(tc_take(t.session));
    while (!atomic_load(&t.has_ended))
        tci_mcp_loop_run_for(t.loop, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_new_policy_does_not_wait_for_the_journal, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_reading_ends_when_nobody_wants_it_any_more, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_end_of_a_session_ends_what_it_reads, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
