/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of the HTTP transport's parts that need no connection: guard, heads, kept events, sessions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/sha256.h"
#include "mcp/http.h"
#include "mcp/server.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

static struct tci_http_text text(const char *value)
{
    return (struct tci_http_text){ value, strlen(value) };
}

struct world {
    struct tci_mcp_guard guard;
    struct tci_mcp_token tokens[2];
    struct tci_mcp_head head;
    struct tci_mcp_refusal refusal;
};

static void hash(const char *token, unsigned char ret[32])
{
    struct tci_sha256 sha;
    tci_sha256_begin(&sha);
    tci_sha256_add(&sha, token, strlen(token));
    tci_sha256_end(&sha, ret);
}

static void make_world(struct world *world, const char *address)
{
    static const char *const hosts[] = { "Proxy.Example", "fixed.example:444", NULL };
    struct tci_mcp_http_options options = {
        .address = address, .hosts = hosts, .tokens = world->tokens, .token_count = 2
    };
    struct tc_error error = { 0 };

    memset(world, 0, sizeof *world);
    hash("another token, long enough to be one", world->tokens[0].hash);
    hash(TOKEN, world->tokens[1].hash);
    assert_int_equal(tci_mcp_guard_init(&world->guard, &options, 8080, &error), 0);
}

/* ---- guard ---------------------------------------------------------------------------------- */

static void test_only_our_names_with_our_port_are_hosts(void **state)
{
    static const char *const good[] = { "localhost:8080",   "LocalHost:8080",
                                        "127.0.0.1:8080",   "[::1]:8080",
                                        "proxy.example",    "PROXY.example:443",
                                        "proxy.example:80", "proxy.example:8080",
                                        "fixed.example:444" };
    static const char *const bad[] = { "localhost",
                                       "localhost:80",
                                       "localhost:08080x",
                                       "localhost:",
                                       "localhost:8080:8080",
                                       "localhost.:8080",
                                       "localhost:8080.evil.example",
                                       "evil.example:8080",
                                       "127.0.0.1.evil.example:8080",
                                       "127.1:8080",
                                       "0.0.0.0:8080",
                                       "[::1",
                                       "[::1]8080",
                                       "::1:8080",
                                       "user@localhost:8080",
                                       "fixed.example",
                                       "fixed.example:443",
                                       "proxy.example:8443",
                                       "",
                                       ":8080" };
    struct world world;

    (void)state;
    make_world(&world, "127.0.0.1");
    for (size_t i = 0; i < tci_array_size(good); i++)
        if (!tci_mcp_guard_host(&world.guard, text(good[i])))
            fail_msg("refused: %s", good[i]);
    for (size_t i = 0; i < tci_array_size(bad); i++)
        if (tci_mcp_guard_host(&world.guard, text(bad[i])))
            fail_msg("let in: %s", bad[i]);
    tci_mcp_guard_free(&world.guard);
}

static void test_any_address_is_no_name(void **state)
{
    struct world world;

    (void)state;
    make_world(&world, "0.0.0.0");
    assert_false(tci_mcp_guard_host(&world.guard, text("0.0.0.0:8080")));
    tci_mcp_guard_free(&world.guard);
    make_world(&world, "10.1.2.3");
    assert_true(tci_mcp_guard_host(&world.guard, text("10.1.2.3:8080")));
    tci_mcp_guard_free(&world.guard);
}

static void test_only_our_pages_are_origins(void **state)
{
    static const char *const good[] = { "http://localhost:8080", "https://proxy.example",
                                        "HTTP://127.0.0.1:8080", "https://fixed.example:444",
                                        "http://proxy.example",  "https://proxy.example:8080" };
    static const char *const bad[] = { "null",
                                       "",
                                       "http://",
                                       "localhost:8080",
                                       "http://localhost",
                                       "http://localhost:3000",
                                       "https://proxy.example:3000",
                                       "https://fixed.example",
                                       "http://evil.example",
                                       "file://localhost:8080",
                                       "http://localhost:8080/",
                                       "http://evil.example@localhost:8080",
                                       "http://localhost:8080 http://evil.example" };
    struct world world;

    (void)state;
    make_world(&world, "127.0.0.1");
    for (size_t i = 0; i < tci_array_size(good); i++)
        if (!tci_mcp_guard_origin(&world.guard, text(good[i])))
            fail_msg("refused: %s", good[i]);
    for (size_t i = 0; i < tci_array_size(bad); i++)
        if (tci_mcp_guard_origin(&world.guard, text(bad[i])))
            fail_msg("let in: %s", bad[i]);
    tci_mcp_guard_free(&world.guard);
}

static void test_a_token_is_whole_or_none(void **state)
{
    struct world world;

    (void)state;
    make_world(&world, "127.0.0.1");
    assert_int_equal(tci_mcp_guard_token(&world.guard, text("Bearer " TOKEN)), 1);
    assert_int_equal(tci_mcp_guard_token(&world.guard, text("bearer  " TOKEN)), 1);
    assert_int_equal(tci_mcp_guard_token(&world.guard, text("Bearer " TOKEN "x")), -1);
    assert_int_equal(tci_mcp_guard_token(&world.guard, text("Bearer 0123456789abcdef")), -1);
    assert_int_equal(tci_mcp_guard_token(&world.guard, text("Bearer ")), -1);
    assert_int_equal(tci_mcp_guard_token(&world.guard, text("Basic " TOKEN)), -1);
    assert_int_equal(tci_mcp_guard_token(&world.guard, text(TOKEN)), -1);
    assert_int_equal(tci_mcp_guard_token(&world.guard, text("")), -1);
    tci_mcp_guard_free(&world.guard);
}

static void test_names_that_are_none_are_refused(void **state)
{
    static const char *const wrong[] = { "http://x", "*", "", "a:b", "x/y", "*.example" };

    (void)state;
    for (size_t i = 0; i < tci_array_size(wrong); i++) {
        const char *const hosts[] = { wrong[i], NULL };
        struct tci_mcp_http_options options = { .address = "127.0.0.1", .hosts = hosts };
        struct tci_mcp_guard guard = { 0 };
        struct tc_error error = { 0 };
        assert_int_equal(tci_mcp_guard_init(&guard, &options, 1, &error), -1);
        assert_true(error.remedy[0] != '\0');
        tci_mcp_guard_free(&guard);
    }
}

static void test_loopback_addresses(void **state)
{
    (void)state;
    assert_true(tci_mcp_is_loopback("localhost"));
    assert_true(tci_mcp_is_loopback("127.9.9.9"));
    assert_true(tci_mcp_is_loopback("::1"));
    assert_false(tci_mcp_is_loopback("0.0.0.0"));
    assert_false(tci_mcp_is_loopback("::"));
    assert_false(tci_mcp_is_loopback("::ffff:127.0.0.1"));
    assert_false(tci_mcp_is_loopback("128.0.0.1"));
    assert_false(tci_mcp_is_loopback("localhost.evil.example"));
}

/* ---- heads ---------------------------------------------------------------------------------- */

#define HOST "Host: localhost:8080\r\n"
#define AUTH "Authorization: Bearer " TOKEN "\r\n"
#define BOTH "Accept: application/json, text/event-stream\r\n"
#define JSON "Content-Type: application/json\r\n"
#define BODY "Content-Length: 2\r\n"
#define POST "POST /mcp HTTP/1.1\r\n"
#define GOOD POST HOST AUTH BOTH JSON BODY

/* 0: let in. */
static int status_of(struct world *world, const char *head)
{
    memset(&world->refusal, 0, sizeof world->refusal);
    return tci_mcp_head_read(&world->guard, head, strlen(head), &world->head, &world->refusal)
               ? 0
               : world->refusal.status;
}

static void test_statuses_of_heads(void **state)
{
    static const struct {
        int status;
        const char *head;
    } cases[] = {
        { 0, GOOD "\r\n" },
        { 0, POST HOST AUTH "Accept: */*\r\n" JSON BODY "\r\n" },
        { 0, POST HOST AUTH
          "Accept: text/event-stream\r\nAccept: application/json;q=1\r\n" JSON BODY "\r\n" },
        { 0, POST HOST AUTH BOTH "Content-Type: Application/JSON; charset=utf-8\r\n" BODY "\r\n" },
        { 0, "POST /mcp?x=1 HTTP/1.1\r\n" HOST AUTH BOTH JSON BODY "\r\n" },
        { 0, GOOD "Origin: http://localhost:8080\r\n\r\n" },
        { 403, GOOD "Origin: http://evil.example\r\n\r\n" },
        { 403, GOOD "Origin: null\r\n\r\n" },
        { 403, POST "Host: evil.example:8080\r\n" AUTH BOTH JSON BODY "\r\n" },
        /* Who is not let in does not learn what there is. */
        { 403, "PUT /other HTTP/1.1\r\nHost: evil.example\r\n\r\n" },
        { 401, POST HOST BOTH JSON BODY "\r\n" },
        { 401, POST HOST "Authorization: Bearer wrong\r\n" BOTH JSON BODY "\r\n" },
        { 401, POST HOST JSON "Content-Length: 99999999\r\n\r\n" },
        { 404, "POST / HTTP/1.1\r\n" HOST AUTH BOTH JSON BODY "\r\n" },
        { 404, "POST /mcp/ HTTP/1.1\r\n" HOST AUTH BOTH JSON BODY "\r\n" },
        { 404, "POST //mcp HTTP/1.1\r\n" HOST AUTH BOTH JSON BODY "\r\n" },
        { 404, "POST /mcp%20 HTTP/1.1\r\n" HOST AUTH BOTH JSON BODY "\r\n" },
        { 404, "GET http://localhost:8080/mcp HTTP/1.1\r\n" HOST AUTH BOTH "\r\n" },
        { 405, "PUT /mcp HTTP/1.1\r\n" HOST AUTH "\r\n" },
        { 405, "HEAD /mcp HTTP/1.1\r\n" HOST AUTH "\r\n" },
        { 405, "OPTIONS /mcp HTTP/1.1\r\n" HOST AUTH "\r\n" },
        { 405, "post /mcp HTTP/1.1\r\n" HOST AUTH BOTH JSON BODY "\r\n" },
        { 406, POST HOST AUTH "Accept: application/json\r\n" JSON BODY "\r\n" },
        { 406, POST HOST AUTH "Accept: text/event-stream\r\n" JSON BODY "\r\n" },
        { 406, POST HOST AUTH JSON BODY "\r\n" },
        { 406, "GET /mcp HTTP/1.1\r\n" HOST AUTH "Accept: application/json\r\n\r\n" },
        { 415, POST HOST AUTH BOTH BODY "\r\n" },
        { 415, POST HOST AUTH BOTH "Content-Type: text/plain\r\n" BODY "\r\n" },
        { 415, POST HOST AUTH BOTH "Content-Type: text/plain; application/json\r\n" BODY "\r\n" },
        { 413, POST HOST AUTH BOTH JSON "Content-Length: 4194305\r\n\r\n" },
        { 417, GOOD "Expect: tea\r\n\r\n" },
        { 400, GOOD "Last-Event-ID: nonsense\r\n\r\n" },
        { 400, GOOD "Last-Event-ID: 1-\r\n\r\n" },
        { 400, GOOD "Last-Event-ID: 1-99999999999999999999\r\n\r\n" },
        { 400, GOOD AUTH "\r\n" },
        { 400, GOOD HOST "\r\n" },
        { 400, GOOD "Mcp-Session-Id: a\r\nmcp-session-id: b\r\n\r\n" },
        { 400, GOOD "Origin: http://localhost:8080\r\nOrigin: http://localhost:8080\r\n\r\n" },
        { 400, GOOD "Transfer-Encoding: chunked\r\n\r\n" },
        { 400, GOOD "Content-Length: 3\r\n\r\n" },
        { 400, GOOD " folded\r\n\r\n" },
        { 400, GOOD "Name : value\r\n\r\n" },
        { 400, POST AUTH BOTH JSON BODY "\r\n" },
        { 400, "POST /mcp HTTP/2.0\r\n" HOST AUTH "\r\n" },
        { 400, "POST /mcp\r\n\r\n" },
        { 400, "\x16\x03\x01\n\n" },
        { 400, " POST /mcp HTTP/1.1\r\n" HOST "\r\n" },
        /* A proxy in front may take the byte for a part of the value, and not see the field behind it. */
        { 400, GOOD "X-Value: a\nMcp-Session-Id: b\r\n\r\n" },
        { 400, POST "Host: localhost:8080\n" AUTH BOTH JSON BODY "\r\n" },
        { 400, "POST /mcp HTTP/1.1\n" HOST AUTH BOTH JSON BODY "\r\n" },
        { 400, GOOD "\n" },
        { 400, "POST /mcp HTTP/1.1\nHost: localhost:8080\nAuthorization: Bearer " TOKEN
               "\nAccept: */*\nContent-Type: application/json\nContent-Length: 2\n\n" },
        { 400, "CONNECT localhost:8080 HTTP/1.1\r\n" HOST "\r\n" },
    };
    struct world world;

    (void)state;
    make_world(&world, "127.0.0.1");
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        int status = status_of(&world, cases[i].head);
        if (status != cases[i].status)
            fail_msg("case %zu: %d instead of %d:\n%s", i, status, cases[i].status, cases[i].head);
    }
    tci_mcp_guard_free(&world.guard);
}

static void test_fields_are_read(void **state)
{
    struct world world;

    (void)state;
    make_world(&world, "127.0.0.1");
    assert_int_equal(status_of(&world, GOOD "Mcp-Session-Id: abc\r\nLast-Event-ID: 7-12\r\n"
                                            "MCP-Protocol-Version: 2025-06-18\r\n"
                                            "Connection: x, Close\r\n\r\n"),
                     0);
    assert_int_equal(world.head.token, 1);
    assert_true(world.head.has_session && world.head.wants_close && world.head.has_body);
    assert_string_equal(world.head.session, "abc");
    assert_int_equal(world.head.last_stream, 7);
    assert_int_equal(world.head.last_event, 12);
    assert_false(world.head.has_odd_version);
    assert_int_equal(status_of(&world, GOOD "MCP-Protocol-Version: 1999-01-01\r\n\r\n"), 0);
    assert_true(world.head.has_odd_version);
    /* One that is too long cannot be ours. */
    assert_int_equal(
        status_of(&world,
                  GOOD "Mcp-Session-Id: "
                       "0123456789012345678901234567890123456789012345678901234567\r\n\r\n"),
        0);
    assert_true(world.head.has_session);
    assert_string_equal(world.head.session, "");
    tci_mcp_guard_free(&world.guard);
}

static void test_many_fields_are_refused(void **state)
{
    struct tci_buf head = TCI_BUF_INIT(1 << 20);
    struct world world;

    (void)state;
    make_world(&world, "127.0.0.1");
    tci_buf_string(&head, GOOD);
    for (int i = 0; i < 200; i++)
        tci_buf_printf(&head, "X-%d: 1\r\n", i);
    tci_buf_string(&head, "\r\n");
    assert_int_equal(status_of(&world, head.data), 431);
    tci_buf_free(&head);
    tci_mcp_guard_free(&world.guard);
}

/* ---- events --------------------------------------------------------------------------------- */

struct store {
    struct tci_mcp_http *http;
    struct tci_mcp_http_session session;
    struct tci_mcp_stream *one, *two;
};

static size_t *kept_of_all(struct store *store)
{
    return &store->http->shares.all.of[TCI_MCP_SHARE_EVENTS];
}

static void make_store(struct store *store)
{
    memset(store, 0, sizeof *store);
    store->http = calloc(1, sizeof *store->http);
    assert_non_null(store->http);
    assert_int_equal(tci_mcp_shares_init(&store->http->shares, 0, NULL), 0);
    store->session.http = store->http;
    store->session.token = -1;
    store->one = tci_mcp_stream_new(&store->session, NULL);
    store->two = tci_mcp_stream_new(&store->session, NULL);
    assert_non_null(store->one);
    assert_non_null(store->two);
    store->one->number = 1;
    store->two->number = 2;
}

static void end_store(struct store *store)
{
    tci_mcp_streams_end(&store->session, 404, "over");
    assert_int_equal(*kept_of_all(store), 0);
    assert_null(store->session.streams);
    tci_mcp_shares_free(&store->http->shares);
    free(store->http);
}

static void test_events_are_bounded_in_number_and_the_oldest_go(void **state)
{
    struct store store;

    (void)state;
    make_store(&store);
    assert_int_equal(tci_mcp_events_add(store.one, "first", 5), 1);
    for (int i = 0; i < TCI_MCP_EVENTS_MAX; i++)
        tci_mcp_events_add(store.two, "x", 1);
    assert_int_equal(store.session.events.count, TCI_MCP_EVENTS_MAX);
    assert_int_equal(store.one->kept, 0);
    assert_int_equal(store.one->lost, 1);
    assert_int_equal(store.two->lost, 0);
    assert_int_equal(store.session.events.first->number, 2);
    end_store(&store);
}

static void test_events_are_bounded_in_bytes_but_the_newest_is_kept(void **state)
{
    struct store store;
    size_t large = TCI_MCP_EVENT_BYTES_MAX + 1;
    char *text_of_it = calloc(1, large);

    (void)state;
    assert_non_null(text_of_it);
    make_store(&store);
    tci_mcp_events_add(store.one, "small", 5);
    tci_mcp_events_add(store.two, text_of_it, large);
    assert_int_equal(store.session.events.count, 1);
    assert_int_equal(store.one->lost, 1);
    tci_mcp_events_add(store.one, "small", 5);
    assert_int_equal(store.session.events.count, 1);
    assert_int_equal(store.two->lost, 2);
    assert_int_equal(*kept_of_all(&store), 5);
    /* No room at all: counted, not kept, known as lost. */
    *kept_of_all(&store) = TCI_MCP_EVENTS_ALL_MAX;
    assert_int_equal(tci_mcp_events_add(store.two, text_of_it, large), 4);
    assert_int_equal(store.two->lost, 4);
    assert_int_equal(store.session.events.count, 0);
    *kept_of_all(&store) -= TCI_MCP_EVENTS_ALL_MAX - 5;
    free(text_of_it);
    end_store(&store);
}

static void test_a_stream_that_ended_goes_with_its_last_event(void **state)
{
    struct store store;

    (void)state;
    make_store(&store);
    tci_mcp_events_add(store.one, "answer", 6);
    store.one->ended = true;
    for (int i = 0; i < TCI_MCP_EVENTS_MAX; i++)
        tci_mcp_events_add(store.two, "x", 1);
    assert_null(tci_mcp_stream_find(&store.session, 1));
    assert_ptr_equal(tci_mcp_stream_find(&store.session, 2), store.two);
    end_store(&store);
}

/* ---- shares --------------------------------------------------------------------------------- */

static struct tci_mcp_http_session *open_session_of(struct tci_mcp_http *http, int token)
{
    struct tci_mcp_http_session *session = NULL;
    struct tc_error error = { 0 };
    assert_int_equal(tci_mcp_http_session_open(http, token, &session, &error), 0);
    return session;
}

static void test_who_has_most_is_found_with_what_it_is_to_get(void **state)
{
    struct tci_mcp_shares shares;

    (void)state;
    assert_int_equal(tci_mcp_shares_init(&shares, 3, NULL), 0);
    assert_int_equal(tci_mcp_share_greediest(&shares, TCI_MCP_SHARE_PEERS, -1, 0), -1);
    tci_mcp_share_change(&shares, TCI_MCP_SHARE_PEERS, 0, 0, 5);
    tci_mcp_share_change(&shares, TCI_MCP_SHARE_PEERS, 2, 0, 7);
    tci_mcp_share_change(&shares, TCI_MCP_SHARE_WAITING, 1, 0, 100);
    assert_int_equal(tci_mcp_share_greediest(&shares, TCI_MCP_SHARE_PEERS, 0, 0), 2);
    assert_int_equal(tci_mcp_share_greediest(&shares, TCI_MCP_SHARE_PEERS, 0, 3), 0);
    assert_int_equal(tci_mcp_share_greediest(&shares, TCI_MCP_SHARE_PEERS, -1, 8), -1);
    assert_int_equal(tci_mcp_share_greediest(&shares, TCI_MCP_SHARE_WAITING, 0, 0), 1);
    tci_mcp_share_change(&shares, TCI_MCP_SHARE_PEERS, 2, 7, 4);
    assert_int_equal(tci_mcp_share_greediest(&shares, TCI_MCP_SHARE_PEERS, 2, 0), 0);
    assert_int_equal(tci_mcp_share_of(&shares, TCI_MCP_SHARE_PEERS, 2), 4);
    assert_int_equal(shares.all.of[TCI_MCP_SHARE_PEERS], 9);
    tci_mcp_shares_free(&shares);
}

static void test_events_that_go_are_of_the_token_that_has_most(void **state)
{
    static char text_of_it[64 * 1024];
    const size_t size = sizeof text_of_it, others = TCI_MCP_EVENTS_ALL_MAX - 3 * size;
    const struct tci_mcp_options options = { .policy_path = NULL };
    const struct tci_mcp_token tokens[2] = { { 0 } };
    const struct tci_mcp_http_options http_options = { .address = "127.0.0.1",
                                                       .tokens = tokens,
                                                       .token_count = 2 };
    struct tci_mcp_server server = { .options = &options, .store_lock = -1 };
    struct tci_mcp_http *http = calloc(1, sizeof *http);
    struct tci_mcp_http_session *greedy, *modest;

    (void)state;
    assert_non_null(http);
    http->server = &server;
    http->options = &http_options;
    assert_int_equal(tci_mcp_shares_init(&http->shares, 2, NULL), 0);
    greedy = open_session_of(http, 0);
    modest = open_session_of(http, 1);
    /* As if the greedy one had many more sessions. */
    tci_mcp_share_change(&http->shares, TCI_MCP_SHARE_EVENTS, 0, 0, others);
    tci_mcp_events_add(greedy->streams, text_of_it, size);
    tci_mcp_events_add(greedy->streams, text_of_it, size);
    tci_mcp_events_add(modest->streams, text_of_it, size);
    assert_int_equal(http->shares.all.of[TCI_MCP_SHARE_EVENTS], TCI_MCP_EVENTS_ALL_MAX);

    tci_mcp_events_add(modest->streams, text_of_it, size);
    assert_int_equal(modest->events.count, 2);
    assert_int_equal(modest->streams->lost, 0);
    assert_int_equal(greedy->events.count, 1);
    assert_int_equal(greedy->streams->lost, 1);
    /* It gets nothing back: it loses its own. */
    tci_mcp_events_add(greedy->streams, text_of_it, size);
    assert_int_equal(modest->events.count, 2);
    assert_int_equal(greedy->events.count, 1);
    assert_int_equal(greedy->streams->lost, 2);
    assert_int_equal(http->shares.all.of[TCI_MCP_SHARE_EVENTS], TCI_MCP_EVENTS_ALL_MAX);

    tci_mcp_sessions_close(http);
    assert_int_equal(http->shares.all.of[TCI_MCP_SHARE_EVENTS], others);
    assert_int_equal(http->shares.all.of[TCI_MCP_SHARE_SESSIONS], 0);
    tci_mcp_shares_free(&http->shares);
    free(http);
}

/* ---- sessions ------------------------------------------------------------------------------- */

static struct tci_mcp_http_session *open_session(struct tci_mcp_http *http, uint64_t idle_us)
{
    struct tci_mcp_http_session *session = open_session_of(http, -1);
    session->used_us = tci_clock_us() - idle_us;
    return session;
}

static void test_sessions_that_nobody_uses_end_and_others_stay(void **state)
{
    const uint64_t minute = 60ull * 1000 * 1000;
    const struct tci_mcp_options options = { .policy_path = NULL };
    const struct tci_mcp_http_options http_options = { .address = "127.0.0.1" };
    struct tci_mcp_server server = { .options = &options, .store_lock = -1 };
    struct tci_mcp_peer listener = { .fd = -1 };
    struct tci_mcp_http *http = calloc(1, sizeof *http);
    struct tci_mcp_http_session *used, *listens, *busy;
    char idle[TCI_MCP_SECRET_SIZE];

    (void)state;
    assert_non_null(http);
    http->server = &server;
    http->options = &http_options;
    assert_int_equal(tci_mcp_shares_init(&http->shares, 0, NULL), 0);
    memcpy(idle, open_session(http, 31 * minute)->id, sizeof idle);
    used = open_session(http, 29 * minute);
    listens = open_session(http, 31 * minute);
    listens->streams->peer = &listener;
    busy = open_session(http, 31 * minute);
    busy->session->request_count = 1;

    tci_mcp_sessions_sweep(http, 30 * minute);
    assert_int_equal(http->shares.all.of[TCI_MCP_SHARE_SESSIONS], 3);
    assert_null(tci_mcp_http_session_find(http, idle, -1));
    assert_ptr_equal(tci_mcp_http_session_find(http, used->id, -1), used);
    assert_ptr_equal(tci_mcp_http_session_find(http, listens->id, -1), listens);
    assert_ptr_equal(tci_mcp_http_session_find(http, busy->id, -1), busy);

    /* The time begins when the last stream or call has ended, not with the last message. */
    listens->streams->peer = NULL;
    busy->session->request_count = 0;
    tci_mcp_sessions_sweep(http, 30 * minute);
    assert_int_equal(http->shares.all.of[TCI_MCP_SHARE_SESSIONS], 3);
    /* Nor do they make room for a new one yet, when all places are taken. */
    used->used_us = tci_clock_us();
    tci_mcp_share_change(&http->shares, TCI_MCP_SHARE_SESSIONS, -1, 0, TCI_MCP_SESSIONS_MAX);
    (void)open_session(http, 0);
    tci_mcp_share_change(&http->shares, TCI_MCP_SHARE_SESSIONS, -1, TCI_MCP_SESSIONS_MAX, 0);
    assert_int_equal(http->shares.all.of[TCI_MCP_SHARE_SESSIONS], 4);
    listens->busy_us -= 31 * minute;
    busy->busy_us -= 31 * minute;
    tci_mcp_sessions_sweep(http, 30 * minute);
    assert_int_equal(http->shares.all.of[TCI_MCP_SHARE_SESSIONS], 2);
    tci_mcp_sessions_close(http);
    assert_int_equal(server.session_count, 0);
    tci_mcp_shares_free(&http->shares);
    free(http);
}

/* ---- listeners ------------------------------------------------------------------------------ */

static struct tci_mcp_peer *connect_peer(struct tci_mcp_http *http, int *ret_client)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(tci_mcp_peer_new(http, pair[0]), 0);
    *ret_client = pair[1];
    http->peers->state = TCI_MCP_PEER_WAITS;
    http->peers->head.method = TCI_MCP_GET;
    return http->peers;
}

static void test_events_for_a_listener_that_is_gone_are_for_the_next_one(void **state)
{
    static const struct tci_mcp_head head = { .method = TCI_MCP_GET };
    const struct tci_mcp_options options = { .policy_path = NULL };
    const struct tci_mcp_http_options http_options = { .address = "127.0.0.1" };
    struct tci_mcp_server server = { .options = &options, .store_lock = -1 };
    struct tci_mcp_http *http = calloc(1, sizeof *http);
    struct tci_mcp_http_session *session;
    struct tci_mcp_peer *peer;
    char got[4096] = "";
    int client;

    (void)state;
    assert_non_null(http);
    http->server = &server;
    http->options = &http_options;
    http->peers_max = 4;
    http->base = event_base_new();
    assert_non_null(http->base);
    assert_int_equal(tci_mcp_shares_init(&http->shares, 0, NULL), 0);
    session = open_session(http, 0);
    tci_mcp_stream_send(session, 0, false, "first", 5);
    tci_mcp_stream_send(session, 0, false, "second", 6);

    peer = connect_peer(http, &client);
    (void)close(client);
    tci_mcp_stream_listen(session, peer, &head);
    assert_int_equal(peer->state, TCI_MCP_PEER_GONE);
    (void)event_base_loop(http->base, EVLOOP_NONBLOCK);
    assert_null(http->peers);

    peer = connect_peer(http, &client);
    tci_mcp_stream_listen(session, peer, &head);
    assert_true(read(client, got, sizeof got - 1) > 0);
    assert_non_null(strstr(got, "data: first\n"));
    assert_non_null(strstr(got, "data: second\n"));
    assert_int_equal(session->streams->delivered, 2);

    (void)close(client);
    tci_mcp_sessions_close(http);
    while (http->peers)
        tci_mcp_peer_free(http->peers);
    event_base_free(http->base);
    tci_mcp_shares_free(&http->shares);
    free(http);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_our_names_with_our_port_are_hosts),
        cmocka_unit_test(test_any_address_is_no_name),
        cmocka_unit_test(test_only_our_pages_are_origins),
        cmocka_unit_test(test_a_token_is_whole_or_none),
        cmocka_unit_test(test_names_that_are_none_are_refused),
        cmocka_unit_test(test_loopback_addresses),
        cmocka_unit_test(test_statuses_of_heads),
        cmocka_unit_test(test_fields_are_read),
        cmocka_unit_test(test_many_fields_are_refused),
        cmocka_unit_test(test_events_are_bounded_in_number_and_the_oldest_go),
        cmocka_unit_test(test_events_are_bounded_in_bytes_but_the_newest_is_kept),
        cmocka_unit_test(test_a_stream_that_ended_goes_with_its_last_event),
        cmocka_unit_test(test_who_has_most_is_found_with_what_it_is_to_get),
        cmocka_unit_test(test_events_that_go_are_of_the_token_that_has_most),
        cmocka_unit_test(test_sessions_that_nobody_uses_end_and_others_stay),
        cmocka_unit_test(test_events_for_a_listener_that_is_gone_are_for_the_next_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
