/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of gate/inspect.h for HTTP and for what is neither HTTP nor TLS. test_gate_hello.c has
 * those for TLS.
 */
#include "inspect_support.h"

#include "gate/http.h"

#define GET        "GET / HTTP/1.1\r\n"
#define HOST       "Host: " NAME "\r\n"
#define GOOD       GET HOST "\r\n"
#define OTHER_HOST "Host: other.example.com\r\n"

/* A text, with NULs in it if there are any. */
struct text {
    const char *bytes;
    size_t length;
};
#define TEXT(literal)                                                                              \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }

#define refused(literal, reason) expect_refused((literal), sizeof(literal) - 1, (reason))

static void expect(const char *text, bool strict, enum ending ending, const char *reason)
{
    expect_ending(text, run(text, strlen(text), strict, false), ending, reason);
}

static void passes(const char *text)
{
    for (int strict = 0; strict < 2; strict++) {
        struct outcome got = run(text, strlen(text), strict, false);
        expect_ending(text, got, PASSED, "");
        assert_int_equal(got.passed, strlen(text));
        assert_string_equal(got.reason, "");
        assert_string_equal(got.protocol, "http");
        expect_ending(text, run(text, strlen(text), strict, true), PASSED, "");
    }
}

/* ---- HTTP: the host ---- */

static void test_request_for_the_name_passes(void **state)
{
    (void)state;
    passes(GOOD);
    passes("GET / HTTP/1.1\nHost: " NAME "\n\n");
    passes("GET / HTTP/1.0\r\nHost: " NAME "\r\n\r\n");
    passes("get /a?b=c#d HTTP/1.1\r\nhOST:" NAME "\r\n\r\n");
    passes(
        "M-SEARCH /\xc3\xa4 HTTP/1.1\r\nX-A: \xc3\xa4\tb\r\nHost: \t API.Example.com. \t\r\n\r\n");
    passes("OPTIONS * HTTP/1.1\r\n" HOST "\r\n");
    passes("\r\n\n\r\n" GOOD);
    passes("GET / HTTP/1.1\r\nHost: " NAME ":8080\r\n\r\n");
    passes("GET http://" NAME "/ HTTP/1.1\r\n" HOST "\r\n");
    passes("GET HTTPS://API.example.com:8080?x HTTP/1.1\r\n" HOST "\r\n");
    passes("GET //other.example.com/ HTTP/1.1\r\n" HOST "\r\n");
}

static void test_request_for_another_host_is_refused(void **state)
{
    static const struct {
        struct text text;
        const char *meant;
    } cases[] = {
        { TEXT(GET OTHER_HOST "\r\n"), "other.example.com" },
        { TEXT(GET "HOST: OTHER.example.com.:80\r\n\r\n"), "other.example.com" },
        { TEXT(GET "Host: 127.0.0.1\r\n\r\n"), "127.0.0.1" },
        { TEXT(GET "Host: [2001:DB8::1]:8080\r\n\r\n"), "[2001:db8::1]" },
        { TEXT(GET "Host: " NAME ", " NAME "\r\n\r\n"), NAME ",?" NAME },
        { TEXT(GET "Host: user@" NAME "\r\n\r\n"), "user@" NAME },
        { TEXT(GET "Host: " NAME "/\r\n\r\n"), NAME "/" },
        { TEXT(GET "Host: x." NAME "\r\n\r\n"), "x." NAME },
        { TEXT(GET "Host: " NAME "\xa0\r\n\r\n"), NAME "?" },
        { TEXT("GET http://other.example.com/ HTTP/1.1\r\n" HOST "\r\n"), "other.example.com" },
        { TEXT("GET http://" NAME "@other.example.com/ HTTP/1.1\r\n" HOST "\r\n"),
          NAME "@other.example.com" },
        { TEXT("GET http://" NAME "/ HTTP/1.1\r\n" OTHER_HOST "\r\n"), "other.example.com" },
        { TEXT("GET / HTTP/1.0\r\n" OTHER_HOST "\r\n"), "other.example.com" },
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        expect_refused(cases[i].text.bytes, cases[i].text.length, "is for another host: ");
        struct outcome got = run(cases[i].text.bytes, cases[i].text.length, false, false);
        assert_string_equal(got.meant, cases[i].meant);
        assert_string_equal(got.protocol, "http");
        assert_true(got.passed <= strlen("GET"));
    }
}

static void test_host_port_must_be_the_connections_own(void **state)
{
    (void)state;
    refused(GET "Host: " NAME ":80\r\n\r\n", "another port");
    refused(GET "Host: " NAME ":08080\r\n\r\n", "another port");
    refused(GET "Host: " NAME ":\r\n\r\n", "another port");
    refused(GET "Host: " NAME ":8080x\r\n\r\n", "another port");
    refused(GET "Host: " NAME ":8080:8080\r\n\r\n", "another port");
    refused("GET http://" NAME ":81/ HTTP/1.1\r\n" HOST "\r\n", "another port");
}

static void test_request_without_exactly_one_host_is_refused(void **state)
{
    (void)state;
    refused(GET "\r\n", "names no Host");
    refused("GET / HTTP/1.0\r\n\r\n", "names no Host");
    refused("GET http://" NAME "/ HTTP/1.1\r\n\r\n", "names no Host");
    refused(GET "Host:\r\n\r\n", "empty Host");
    refused(GET HOST HOST "\r\n", "more than one Host");
    refused(GET HOST "hOST: other.example.com\r\n\r\n", "more than one Host");
    refused("GET /\r\n", "HTTP/0.9");
    refused("GET /\n", "HTTP/0.9");
    refused("get http://other.example.com/a b\n", "HTTP/0.9");
    refused("POST /\r\n" OTHER_HOST "\r\n", "HTTP/0.9");
}

/* ---- HTTP: what servers read in different ways ---- */

static void test_head_with_two_readings_is_refused(void **state)
{
    (void)state;
    refused(GET "Host : " NAME "\r\n\r\n", "space");
    refused(GET " Host: other.example.com\r\n" HOST "\r\n", "folded");
    refused(GET HOST "X: a\r\n Host: other.example.com\r\n\r\n", "folded");
    refused(GET HOST "X: a\r\n\tb\r\n\r\n", "folded");
    refused(GET HOST "no field\r\n\r\n", "no field");
    refused(GET HOST ": x\r\n\r\n", "no field");
    refused(GET HOST "X\x80: a\r\n\r\n", "name of a field");
    refused(GET HOST "X: \0\r\n\r\n", "control byte");
    refused(GET HOST "X: a\rb\r\n\r\n", "control byte");
    refused(GET HOST "X: \x7f\r\n\r\n", "control byte");
    refused("GET /\x01 HTTP/1.1\r\n" HOST "\r\n", "control byte");
    refused(GET HOST "X: a\nY: b\r\n\r\n", "line ends");
    refused("GET / HTTP/1.1\n" HOST "\n", "line ends");
    refused("GET / HTTP/1.1\r\n" HOST "\n", "line ends");
    refused("GET  / HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.0 or HTTP/1.1");
    refused("GET / HTTP/1.1 \r\n" HOST "\r\n", "HTTP/1.0 or HTTP/1.1");
    refused("GET / x HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.0 or HTTP/1.1");
    refused("GET / HTTP/1.2\r\n" HOST "\r\n", "HTTP/1.0 or HTTP/1.1");
    refused("GET / http/1.1\r\n" HOST "\r\n", "HTTP/1.0 or HTTP/1.1");
    refused("GET\t/ HTTP/1.1\r\n" HOST "\r\n", "no space");
    refused("GET /\t HTTP/1.1\r\n" HOST "\r\n", "tab");
    refused("GET http:other HTTP/1.1\r\n" HOST "\r\n", "neither a path nor");
    refused("GET http:/// HTTP/1.1\r\n" HOST "\r\n", "cannot be told");
    refused("GET http://" NAME "\\@other.example.com/ HTTP/1.1\r\n" HOST "\r\n", "cannot be told");
}

/* In names mode all of these could have been something else up to their last byte. */
static void test_line_that_ends_in_a_version_is_http_whatever_precedes_it(void **state)
{
    static const struct text lines[] = {
        TEXT(" GET / HTTP/1.1\r\n" OTHER_HOST "\r\n"),
        TEXT("\0GET / HTTP/1.1\r\n" OTHER_HOST "\r\n"),
        TEXT("\xa0GET / HTTP/1.1\r\n" OTHER_HOST "\r\n"),
        TEXT("\r\n\t\r\nGET / HTTP/1.1\r\n" OTHER_HOST "\r\n"),
        TEXT("{} / HTTP/1.1\r\n" OTHER_HOST "\r\n"),
        TEXT("\xff\xfe\x01 / HTTP/1.1\r\n" OTHER_HOST "\r\n"),
        TEXT("GET\x0b/\x0bHTTP/1.1\n\n"),
        TEXT("GET\xa0/ http/1.0\t \r\n\r\n"),
        TEXT("GET x HTTP/1.1\r\n" OTHER_HOST "\r\n"),
        TEXT("GET\0/ HTTP/1.1\r\n" OTHER_HOST "\r\n"),
        TEXT("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA / HTTP/1.1\r\n" OTHER_HOST "\r\n"),
        TEXT("X                                          / HTTP/1.1\r\n" OTHER_HOST "\r\n"),
        TEXT("GET                                        /\r\n"),
        TEXT("{} / HTTP/1.1\rHost: other.example.com\r\r"),
        TEXT("HTTP/1.1 / HTTP/1.1\r\n"),
        TEXT("FOO * HTTP/2.0\r\n"),
        TEXT("GET http HTTP/1.1 HTTP/1.1\r\n\r\n"),
        TEXT(" GET /\r\n"),
        TEXT("{} / HTTP/1.1junk\r\n" OTHER_HOST "\r\n"),
        TEXT("{} / HTTP/1.1\xa0x \r\n" OTHER_HOST "\r\n"),
        TEXT("\x04\0 HTTP/1.1\r\n" OTHER_HOST "\r\n"),
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(lines); i++) {
        expect_refused(lines[i].bytes, lines[i].length, "");
        /* What acts is the line end, and that has not gone. */
        struct outcome got = run(lines[i].bytes, lines[i].length, false, false);
        assert_null(memmem(lines[i].bytes, got.passed, "1.1\r", 4));
        assert_null(memmem(lines[i].bytes, got.passed, "1.1\n", 4));
    }
}

static void test_tunnels_and_http_2_are_refused(void **state)
{
    (void)state;
    refused("CONNECT other.example.com:443 HTTP/1.1\r\n" HOST "\r\n", "CONNECT");
    refused("connect " NAME ":443 HTTP/1.1\r\n" HOST "\r\n", "CONNECT");
    refused("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/2 without TLS");
    refused("GET / HTTP/2.0\r\n" HOST "\r\n", "HTTP/2 without TLS");
    refused(GET HOST "Upgrade: h2c\r\n\r\n", "HTTP/2");
    refused(GET HOST "Upgrade: websocket , H2C\r\n\r\n", "HTTP/2");
    refused(GET HOST "Upgrade: HTTP/2.0\r\n\r\n", "HTTP/2");
    refused(GET HOST "HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n", "HTTP/2");
}

static void test_proxy_protocol_is_refused(void **state)
{
    static const char version_2[] =
        "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x7f\0\0\1\x7f\0\0\1\0\1\0\2";
    (void)state;
    expect("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n" GET OTHER_HOST "\r\n", false, REFUSED, "PROXY");
    expect("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n" GET OTHER_HOST "\r\n", true, REFUSED, "PROXY");
    expect_ending("version 2", run(version_2, sizeof version_2 - 1, false, false), REFUSED,
                  "PROXY");
    expect_ending("version 2", run(version_2, sizeof version_2 - 1, true, false), REFUSED, "");
    expect("QUIT\r\n", false, OPEN, "not inspected");
}

/* ---- HTTP: where a request ends ---- */

static void test_every_request_of_a_connection_is_checked(void **state)
{
    (void)state;
    passes(GOOD GOOD "\r\n" GOOD);
    passes("POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nGET /" GOOD);
    passes("POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n" GOOD);
    passes("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n\r\n"
           "5\r\nhello\r\n00A;x=\"y\"\r\n0123456789\r\n0\r\n\r\n" GOOD);
    passes("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
           "0\r\nTransfer-Encodings: x\r\nX-Sum: \xc3\xa4\r\n\r\n" GOOD);
    refused(GOOD GET OTHER_HOST "\r\n", "another host");
    refused("POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello" GET OTHER_HOST "\r\n",
            "another host");
    refused("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
            "1\r\nx\r\n0\r\n\r\n" GET OTHER_HOST "\r\n",
            "another host");
    refused(GOOD "SSH-2.0-x\r\n", "not another one");
    refused(GOOD " " GOOD, "not another one");
    refused(GOOD "\x16\x03\x01\x02\x00", "not another one");
    refused("POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhelloworld /\r\n", "not another");
}

static void test_good_requests_before_a_refused_one_pass(void **state)
{
    struct outcome got;
    (void)state;
    got = run(GOOD GET OTHER_HOST "\r\n", strlen(GOOD GET OTHER_HOST "\r\n"), false, true);
    assert_int_equal(got.ending, REFUSED);
    assert_int_equal(got.passed, strlen(GOOD));
}

static void test_body_whose_end_is_unclear_is_refused(void **state)
{
    (void)state;
#define POST "POST / HTTP/1.1\r\n" HOST
    refused(POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "both");
    refused(POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", "more than one Content-Length");
    refused(POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", "more than one Content-Length");
    refused(POST "Content-Length: 5, 5\r\n\r\n", "not one number");
    refused(POST "Content-Length: +5\r\n\r\n", "not one number");
    refused(POST "Content-Length: 0x5\r\n\r\n", "not one number");
    refused(POST "Content-Length:\r\n\r\n", "not one number");
    refused(POST "Content-Length: 18446744073709551617\r\n\r\n", "not one number");
    refused(POST "Content-Length : 5\r\n\r\n", "space");
    refused(POST "Transfer-Encoding: gzip, chunked\r\n\r\n", "other than chunked");
    refused(POST "Transfer-Encoding: identity\r\n\r\n", "other than chunked");
    refused(POST "Transfer-Encoding: xchunked\r\n\r\n", "other than chunked");
    refused(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n", "more than one");
    refused("POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", "HTTP/1.0");
#define CHUNKS POST "Transfer-Encoding: chunked\r\n\r\n"
    refused(CHUNKS "g\r\n", "size");
    refused(CHUNKS "\r\n", "size");
    refused(CHUNKS ";x\r\n", "size");
    refused(CHUNKS "0x1\r\n", "size");
    refused(CHUNKS "-1\r\n", "size");
    refused(CHUNKS " 1\r\n", "size");
    refused(CHUNKS "1 \r\n", "size");
    refused(CHUNKS "1\n", "size");
    refused(CHUNKS "1000000000000000\r\n", "size");
    refused(CHUNKS "1;x\nx\r\n", "extension");
    refused(CHUNKS "1\rx", "CR LF");
    refused(CHUNKS "1\r\nxy\r\n", "longer than its size");
    refused(CHUNKS "1\r\nx\n", "longer than its size");
    refused(CHUNKS "1\r\nx\rx", "CR LF");
    refused(CHUNKS "0\r\nHost: other.example.com\r\n\r\n", "belongs in the head");
    refused(CHUNKS "0\r\nX: y\r\nCONTENT-length: 1\r\n\r\n", "belongs in the head");
    refused(CHUNKS "0\r\n X: y\r\n\r\n", "no field");
    refused(CHUNKS "0\r\nX: y\n\r\n", "control byte");
    refused(CHUNKS "0\r\nX: y\r\n\n", "no field");
}

static void test_body_passes_without_being_held(void **state)
{
    static const char head[] = POST "Content-Length: 10\r\n\r\n01234";
    static const char chunk[] = CHUNKS "ffff\r\n01234";
    (void)state;
    passes(head);
    passes(chunk);
    assert_int_equal(run(chunk, sizeof chunk - 1, true, false).passed, sizeof chunk - 1);
}

static void test_head_of_more_than_64_kib_is_refused(void **state)
{
    size_t size = 70000, at = strlen(GET HOST "X: ");
    char *text = malloc(size);
    (void)state;
    assert_non_null(text);
    memcpy(text, GET HOST "X: ", at);
    memset(text + at, 'x', size - at);
    expect_ending("long head", run(text, 65536, false, false), HELD, "");
    expect_ending("long head", run(text, size, false, false), REFUSED, "64 KiB");
    expect_ending("long head", run(text, size, true, false), REFUSED, "64 KiB");
    memcpy(text + 65536 - 4, "\r\n\r\n", 4);
    expect_ending("head that just fits", run(text, 65536, true, false), PASSED, "");
    memcpy(text + size - 4, "\r\n\r\n", 4);
    memset(text + at, 'x', size - at - 4);
    expect_ending("whole long head", run(text, size, true, false), REFUSED, "64 KiB");
    memset(text + 4, '/', size - 4);
    expect_ending("long line", run(text, size, false, false), REFUSED, "64 KiB");
    free(text);
}

static void test_cut_off_head_is_held_and_refused_at_the_end(void **state)
{
    (void)state;
    for (size_t length = strlen("GET "); length < strlen(GOOD); length++) {
        struct outcome got = run(GOOD, length, false, false);
        expect_ending(GOOD, got, HELD, "");
        assert_int_equal(got.passed, strlen("GET"));
        got = run(GOOD, length, true, false);
        expect_ending(GOOD, got, HELD, "");
        assert_int_equal(got.passed, 0);
        /* Some servers take the end of the connection for the end of the head. */
        if (length > strlen("GET "))
            expect_ending(GOOD, run(GOOD, length, false, true), REFUSED, "");
        expect_ending(GOOD, run(GOOD, length, true, true), REFUSED, "");
    }
}

/* ---- Upgrades ---- */

#define UPGRADE GET HOST "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

static void test_upgrade_opens_the_connection_unless_strict(void **state)
{
    struct outcome got;
    (void)state;
    expect(UPGRADE, true, REFUSED, "Upgrade");
    expect(UPGRADE, false, PASSED, "");
    got = run(UPGRADE "\x81\x85 maskedx\n", strlen(UPGRADE "\x81\x85 maskedx\n"), false, false);
    expect_ending("websocket", got, OPEN, "behind an HTTP upgrade");
    assert_string_equal(got.protocol, "http");
    /* A frame is not held back: the other side may be waiting for it. */
    got = run(UPGRADE "\x81\x85hello", strlen(UPGRADE "\x81\x85hello"), false, false);
    expect_ending("websocket", got, PASSED, "behind an HTTP upgrade");
}

static void test_request_behind_an_upgrade_that_nobody_granted_is_checked(void **state)
{
    (void)state;
    expect(UPGRADE GOOD GOOD, false, PASSED, "");
    expect(UPGRADE GET OTHER_HOST "\r\n", false, REFUSED, "another host");
    expect(UPGRADE GOOD GET OTHER_HOST "\r\n", false, REFUSED, "another host");
    expect(UPGRADE " " GET OTHER_HOST "\r\n", false, REFUSED, "before its method");
    expect(UPGRADE GOOD "x\r\n", false, REFUSED, "not another one");
    expect(UPGRADE "\x15\x03\x03\x00\x02", false, REFUSED, "TLS");
}

/* ---- Neither ---- */

/* The first bytes of what does not wait for us; without a line end where the protocol has none. */
static const struct text others[] = {
    TEXT("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"),
    TEXT("\0\0\0\x08\x04\xd2\x16\x2f"),                             /* postgres, TLS? */
    TEXT("\0\0\0\x29\0\x03\0\0user\0me\0database\0\nx\0\0"),        /* postgres */
    TEXT("*1\r\n$4\r\nPING\r\n"),                                   /* redis */
    TEXT("PING\r\n"),                                               /* redis, by hand */
    TEXT("EHLO cage.example\r\n"),                                  /* smtp */
    TEXT("0033git-upload-pack /project.git\0host=" NAME "\0"),      /* git */
    TEXT("get key\r\n"),                                            /* memcached */
    TEXT("set /key 0 0 1\r\nx\r\n"),                                /* memcached */
    TEXT("AMQP\0\0\x09\x01"),                                       /* amqp */
    TEXT("\x10\x0c\0\x04MQTT\x04\x02\0\x3c\0\0"),                   /* mqtt */
    TEXT("\x3a\0\0\0\x01\0\0\0\0\0\0\0\xdd\x07\0\0"),               /* mongodb */
    TEXT("\0\0\0\x1b\0\x12\0\x03\0\0\0\x01\0\x04test"),             /* kafka */
    TEXT("\x15\0\xfb\x05\x09localhost\x1f\x90\x01"),                /* a game */
    TEXT("\x16\0\0\x01\x03xxxxxxxxxxxxxxxxxxxxx"),                  /* length 22, mysql */
    TEXT("ruok"),                                                   /* zookeeper */
    TEXT("hello world"),                                            /* anybody's */
    TEXT("{\"method\": \"list_dbs\", \"id\": 0}"),                  /* ovsdb */
    TEXT("<13>1 x: \"GET / HTTP/1.1\" 200\n"),                      /* syslog, of a web server */
    TEXT("CONNECT {\"verbose\":false}\r\n"),                        /* nats */
    TEXT("CONNECT\naccept-version:1.2\n\n\0"),                      /* stomp */
    TEXT("DESCRIBE rtsp://x/y RTSP/1.0\r\nCSeq: 1\r\n\r\n"),        /* rtsp */
    TEXT("\x80\x2e\x01\x03\x01\0\x15\0\0\0\x10\0\0\x05\x01\0\x80"), /* an SSLv2 hello */
    TEXT("\x05\x01\0"),                                             /* socks */
    TEXT("\x13"
         "BitTorrent protocol\0\0\0\0\0\0\0\0"), /* bittorrent */
    TEXT("\xff\xfb\x18"),                        /* telnet */
    TEXT("HTTP/1.1 200 OK\r\n\r\n"),             /* a response */
    TEXT("LIST /\r\n"),                          /* ftp */
};

static void test_other_protocols_pass_at_once_unless_strict(void **state)
{
    (void)state;
    for (size_t i = 0; i < tci_array_size(others); i++) {
        const struct text *text = &others[i];
        for (int at_end = 0; at_end < 2; at_end++) {
            struct outcome got = run(text->bytes, text->length, false, at_end);
            if ((got.ending != OPEN && got.ending != PASSED) || got.passed != text->length)
                fail_msg("%zu: %d, %zu bytes, \"%s\"", i, got.ending, got.passed, got.reason);
            assert_string_equal(got.meant, "");
            expect_ending(text->bytes, run(text->bytes, text->length, true, true), REFUSED, "");
        }
    }
}

static void test_other_protocol_is_open_behind_its_first_line(void **state)
{
    static const char late[] = "SSH-2.0-x\r\n" GET OTHER_HOST "\r\n";
    struct outcome got = run(late, sizeof late - 1, false, false);
    (void)state;
    assert_int_equal(got.ending, OPEN);
    assert_string_equal(got.protocol, "other");
    assert_string_equal(got.reason, "it is neither TLS nor HTTP/1: not inspected");
    expect(late, true, REFUSED, "inspection is strict");
}

static void test_nothing_at_all_passes(void **state)
{
    struct outcome got = run("", 0, true, true);
    (void)state;
    assert_int_equal(got.ending, PASSED);
    assert_string_equal(got.protocol, "");
    assert_int_equal(run("", 0, false, false).ending, PASSED);
    assert_int_equal(run("\r\n", 2, true, true).ending, PASSED);
}

/* ---- Robustness ---- */

static void test_refusal_stays_one(void **state)
{
    struct tci_inspect *inspect = tci_inspect_new(NAME, PORT, false);
    static const char bad[] = GET OTHER_HOST "\r\n";
    size_t pass = 1;
    (void)state;
    assert_int_equal(feed_exactly(inspect, (const uint8_t *)bad, sizeof bad - 1, false, &pass),
                     TCI_INSPECT_PASS); /* the method */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(feed_exactly(inspect, (const uint8_t *)GOOD, strlen(GOOD), false, &pass),
                         TCI_INSPECT_REFUSED);
        assert_int_equal(pass, 0);
    }
    tci_inspect_free(inspect);
}

static void test_caller_that_loses_held_bytes_is_refused(void **state)
{
    struct tci_inspect *inspect = tci_inspect_new(NAME, PORT, true);
    size_t pass;
    (void)state;
    assert_int_equal(feed_exactly(inspect, (const uint8_t *)GOOD, 20, false, &pass),
                     TCI_INSPECT_MORE);
    assert_int_equal(feed_exactly(inspect, (const uint8_t *)GOOD, 19, false, &pass),
                     TCI_INSPECT_REFUSED);
    tci_inspect_free(inspect);
}

static void test_truncations_end_alike_in_all_pieces(void **state)
{
    static const char text[] = "\r\n" GOOD CHUNKS "5;x\r\nhello\r\n0\r\nX: y\r\n\r\n" POST
                               "Content-Length: 3\r\n\r\nabc" UPGRADE "\x81\x01x\n";
    (void)state;
    for (size_t length = 0; length < sizeof text; length++)
        for (int i = 0; i < 4; i++)
            (void)run(text, length, i & 1, i & 2);
    for (size_t i = 0; i < tci_array_size(others); i++)
        for (size_t length = 0; length <= others[i].length; length++)
            for (int mode = 0; mode < 4; mode++)
                (void)run(others[i].bytes, length, mode & 1, mode & 2);
}

static void test_mutations_end_alike_in_all_pieces(void **state)
{
    static const char text[] = GOOD CHUNKS "5;x\r\nhello\r\n0\r\nX: y\r\n\r\n" UPGRADE "x\n" POST;
    (void)state;
    mutate((const uint8_t *)text, sizeof text - 1, 10000);
    mutate((const uint8_t *)GOOD, strlen(GOOD), 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_for_the_name_passes),
        cmocka_unit_test(test_request_for_another_host_is_refused),
        cmocka_unit_test(test_host_port_must_be_the_connections_own),
        cmocka_unit_test(test_request_without_exactly_one_host_is_refused),
        cmocka_unit_test(test_head_with_two_readings_is_refused),
        cmocka_unit_test(test_line_that_ends_in_a_version_is_http_whatever_precedes_it),
        cmocka_unit_test(test_tunnels_and_http_2_are_refused),
        cmocka_unit_test(test_proxy_protocol_is_refused),
        cmocka_unit_test(test_every_request_of_a_connection_is_checked),
        cmocka_unit_test(test_good_requests_before_a_refused_one_pass),
        cmocka_unit_test(test_body_whose_end_is_unclear_is_refused),
        cmocka_unit_test(test_body_passes_without_being_held),
        cmocka_unit_test(test_head_of_more_than_64_kib_is_refused),
        cmocka_unit_test(test_cut_off_head_is_held_and_refused_at_the_end),
        cmocka_unit_test(test_upgrade_opens_the_connection_unless_strict),
        cmocka_unit_test(test_request_behind_an_upgrade_that_nobody_granted_is_checked),
        cmocka_unit_test(test_other_protocols_pass_at_once_unless_strict),
        cmocka_unit_test(test_other_protocol_is_open_behind_its_first_line),
        cmocka_unit_test(test_nothing_at_all_passes),
        cmocka_unit_test(test_refusal_stays_one),
        cmocka_unit_test(test_caller_that_loses_held_bytes_is_refused),
        cmocka_unit_test(test_truncations_end_alike_in_all_pieces),
        cmocka_unit_test(test_mutations_end_alike_in_all_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
