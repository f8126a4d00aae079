/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp_peer.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { words_max = 32, patience_ms = 20000, message_max = 1024 };

#define INITIALIZE                                                                                 \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"     \
    "\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}"
#define INITIALIZED "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"

/* ---- the process */

/* Pipes for stdin and stdout, or for stderr only. */
static int start(const char *const *words, struct mcp_peer *peer, bool only_stderr)
{
    posix_spawn_file_actions_t actions;
    int in[2], out[2];
    char *argv[words_max] = { NULL };

    for (unsigned i = 0; words[i] && i + 1 < words_max; i++)
        argv[i] = (char *)(uintptr_t)words[i];
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        return -1;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, out[1],
                                           only_stderr ? STDERR_FILENO : STDOUT_FILENO);
    if (!only_stderr)
        (void)posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int r = posix_spawn(&peer->pid, words[0], &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(in[0]);
    (void)close(out[1]);
    peer->in = in[1];
    peer->out = out[0];
    if (r != 0)
        peer->pid = 0;
    return r == 0 ? 0 : -1;
}

void mcp_peer_close(struct mcp_peer *peer)
{
    if (peer->pid <= 0)
        return;
    (void)close(peer->in);
    if (peer->kept > 0) {
        (void)kill(peer->pid, SIGTERM);
        (void)close(peer->kept);
    } else {
        (void)close(peer->out);
    }
    (void)waitpid(peer->pid, NULL, 0);
    *peer = (struct mcp_peer){ 0 };
}

/* ---- bytes */

static int send_all(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t put = write(fd, text, length);
        if (put <= 0)
            return -1;
        text += put;
        length -= (size_t)put;
    }
    return 0;
}

/* More bytes; the rest is always kept as a string. */
static int receive(struct mcp_peer *peer)
{
    struct pollfd waiting = { .fd = peer->out, .events = POLLIN };
    if (peer->length + 1 >= sizeof(peer->bytes) || poll(&waiting, 1, patience_ms) <= 0)
        return -1;
    ssize_t got = read(peer->out, peer->bytes + peer->length,
                       sizeof(peer->bytes) - 1 - peer->length);
    if (got <= 0)
        return -1;
    peer->length += (size_t)got;
    peer->bytes[peer->length] = '\0';
    return 0;
}

static void take(struct mcp_peer *peer, size_t length)
{
    peer->length -= length;
    memmove(peer->bytes, peer->bytes + length, peer->length + 1);
}

static bool is_good(const char *message)
{
    return strstr(message, "\"result\"") && !strstr(message, "\"isError\":true");
}

/* ---- stdio */

int mcp_peer_answer(struct mcp_peer *peer)
{
    for (;;) {
        char *end = memchr(peer->bytes, '\n', peer->length);
        if (!end) {
            if (receive(peer) < 0)
                return -1;
            continue;
        }
        *end = '\0';
        /* Notifications pass by. */
        bool answer = strstr(peer->bytes, "\"id\"") != NULL, good = is_good(peer->bytes);
        take(peer, (size_t)(end - peer->bytes) + 1);
        if (answer)
            return good ? 0 : -1;
    }
}

static int format_call(struct mcp_peer *peer, const char *tool, char *text)
{
    return snprintf(text, message_max,
                    "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"tools/call\",\"params\":"
                    "{\"name\":\"%s\",\"arguments\":{}}}\n",
                    ++peer->last, tool);
}

int mcp_peer_post(struct mcp_peer *peer, const char *tool)
{
    char text[message_max];
    int length = format_call(peer, tool, text);
    return send_all(peer->in, text, (size_t)length);
}

static int greet_stdio(const char *const *words, struct mcp_peer *ret)
{
    static const char first[] = INITIALIZE "\n", second[] = INITIALIZED "\n";
    if (start(words, ret, false) < 0 || send_all(ret->in, first, sizeof(first) - 1) < 0 ||
        mcp_peer_answer(ret) < 0)
        return -1;
    return send_all(ret->in, second, sizeof(second) - 1);
}

/* ---- HTTP */

/* A whole answer: head, and body by its length. Its status, or -1. */
static int http_answer(struct mcp_peer *peer, const char **ret_body, size_t *ret_whole)
{
    const char *end, *length;
    size_t head, body = 0;
    while (!(end = strstr(peer->bytes, "\r\n\r\n")))
        if (receive(peer) < 0)
            return -1;
    head = (size_t)(end - peer->bytes) + 4;
    length = strcasestr(peer->bytes, "\r\ncontent-length:");
    if (length && length < end)
        body = strtoul(length + strlen("\r\ncontent-length:"), NULL, 10);
    while (peer->length < head + body)
        if (receive(peer) < 0)
            return -1;
    *ret_body = peer->bytes + head;
    *ret_whole = head + body;
    return (int)strtol(peer->bytes + strlen("HTTP/1.1 "), NULL, 10);
}

static int http_send(struct mcp_peer *peer, const char *body, size_t length)
{
    char text[2 * message_max];
    const char *session = peer->session[0] ? "Mcp-Session-Id: " : "";
    int size = snprintf(text, sizeof(text),
                        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%s\r\n"
                        "Content-Type: application/json\r\n"
                        "Accept: application/json, text/event-stream\r\n%s%s%s"
                        "Content-Length: %zu\r\n\r\n%.*s",
                        peer->port, session, peer->session, peer->session[0] ? "\r\n" : "", length,
                        (int)length, body);
    return send_all(peer->out, text, (size_t)size);
}

int mcp_peer_call(struct mcp_peer *peer, const char *tool)
{
    char text[message_max];
    const char *body;
    size_t whole;
    if (peer->kept <= 0)
        return mcp_peer_post(peer, tool) < 0 ? -1 : mcp_peer_answer(peer);
    if (http_send(peer, text, (size_t)format_call(peer, tool, text)) < 0)
        return -1;
    int status = http_answer(peer, &body, &whole);
    bool good = status == 200 && is_good(body);
    if (status >= 0)
        take(peer, whole);
    return good ? 0 : -1;
}

/* The port stands in what it says to people: "http://127.0.0.1:PORT/mcp". */
static int find_port(struct mcp_peer *peer)
{
    const char *found;
    while (!(found = strstr(peer->bytes, "127.0.0.1:")) || !strchr(found, '\n'))
        if (receive(peer) < 0)
            return -1;
    (void)snprintf(peer->port, sizeof(peer->port), "%u",
                   (unsigned)strtoul(found + strlen("127.0.0.1:"), NULL, 10));
    peer->length = 0;
    peer->bytes[0] = '\0';
    return 0;
}

static int connect_to(struct mcp_peer *peer)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)strtoul(peer->port, NULL, 10)),
                                   .sin_addr = { htonl(INADDR_LOOPBACK) } };
    int one = 1;
    peer->kept = peer->out;
    peer->out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(peer->out, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return connect(peer->out, (const struct sockaddr *)&address, sizeof(address));
}

static int greet_http(const char *const *words, struct mcp_peer *ret)
{
    const char *body, *session;
    size_t whole;
    if (start(words, ret, true) < 0 || find_port(ret) < 0 || connect_to(ret) < 0 ||
        http_send(ret, INITIALIZE, sizeof(INITIALIZE) - 1) < 0 ||
        http_answer(ret, &body, &whole) != 200)
        return -1;
    session = strcasestr(ret->bytes, "\r\nmcp-session-id:");
    if (!session || session >= body)
        return -1;
    session += strlen("\r\nmcp-session-id:");
    session += strspn(session, " ");
    (void)snprintf(ret->session, sizeof(ret->session), "%.*s", (int)strcspn(session, "\r"),
                   session);
    take(ret, whole);
    if (http_send(ret, INITIALIZED, sizeof(INITIALIZED) - 1) < 0 ||
        http_answer(ret, &body, &whole) != 202)
        return -1;
    take(ret, whole);
    return 0;
}

/* ---- both */

/* A server that ends at once is a note in the table, not the end of the benchmark by SIGPIPE. */
static int greet(int (*how)(const char *const *words, struct mcp_peer *ret),
                 const char *const *words, struct mcp_peer *ret)
{
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    int r = how(words, ret);
    (void)signal(SIGPIPE, before);
    if (r < 0)
        mcp_peer_close(ret);
    return r;
}

int mcp_peer_stdio(const char *const *words, struct mcp_peer *ret)
{
    return greet(greet_stdio, words, ret);
}

int mcp_peer_http(const char *const *words, struct mcp_peer *ret)
{
    return greet(greet_http, words, ret);
}
