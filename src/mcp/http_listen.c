/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the sockets that the HTTP server listens at.
 * Attack: "localhost" is two addresses. If somebody else had the other one, clients that try it first would hand
 * their token to that program: so we take both, or say that we cannot.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include "base/fd.h"
#include "mcp/http.h"

enum { backlog = 512, tries = 16, files_for_calls = 300, peers_min = 32 };

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
                      int length, void *context)
{
    (void)listener, (void)address, (void)length;
    (void)tci_mcp_peer_new(context, fd);
}

/* No descriptor is left: without a pause this would be asked again at once, for ever. */
static void on_accept_error(struct evconnlistener *listener, void *context)
{
    static const struct timeval pause = { .tv_usec = 100000 };
    struct tci_mcp_http *http = context;

    (void)listener;
    for (size_t i = 0; i < tci_array_size(http->listeners); i++)
        if (http->listeners[i])
            evconnlistener_disable(http->listeners[i]);
    event_add(http->resume, &pause);
}

static void on_resume(int fd, short what, void *context)
{
    struct tci_mcp_http *http = context;

    (void)fd, (void)what;
    for (size_t i = 0; i < tci_array_size(http->listeners); i++)
        if (http->listeners[i])
            evconnlistener_enable(http->listeners[i]);
}

struct place {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address;
    socklen_t length;
};

static bool read_place(const char *text, unsigned port, struct place *ret)
{
    memset(ret, 0, sizeof *ret);
    if (inet_pton(AF_INET, text, &ret->address.v4.sin_addr) == 1) {
        ret->address.v4.sin_family = AF_INET;
        ret->address.v4.sin_port = htons((uint16_t)port);
        ret->length = sizeof ret->address.v4;
        return true;
    }
    if (inet_pton(AF_INET6, text, &ret->address.v6.sin6_addr) == 1) {
        ret->address.v6.sin6_family = AF_INET6;
        ret->address.v6.sin6_port = htons((uint16_t)port);
        ret->length = sizeof ret->address.v6;
        return true;
    }
    return false;
}

/* The descriptor, or -1 with errno. */
static int open_socket(struct place *place, unsigned *ret_port)
{
    static const int on = 1;
    int fd = socket(place->address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (place->address.any.sa_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(fd, &place->address.any, place->length) < 0 || listen(fd, backlog) < 0 ||
        getsockname(fd, &place->address.any, &place->length) < 0)
        return tci_close(fd);
    *ret_port = ntohs(place->address.any.sa_family == AF_INET ? place->address.v4.sin_port
                                                              : place->address.v6.sin6_port);
    return fd;
}

static int listen_at(struct tci_mcp_http *http, size_t index, const char *address, unsigned port)
{
    struct place place;
    int fd;

    if (!read_place(address, port, &place)) {
        errno = EINVAL;
        return -1;
    }
    fd = open_socket(&place, &http->port);
    if (fd < 0)
        return -1;
    http->listeners[index] = evconnlistener_new(
        http->base, on_accept, http,
        LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_DISABLED, 0, fd);
    if (!http->listeners[index]) {
        tci_close(fd);
        errno = ENOMEM;
        return -1;
    }
    evconnlistener_set_error_cb(http->listeners[index], on_accept_error);
    return 0;
}

static int listen_failed(const char *address, unsigned port, struct tc_error *reterr)
{
    int error = errno;
    tci_error_errno(reterr, error, "cannot listen at %.60s, port %u", address, port);
    if (error == EADDRINUSE)
        tci_error_remedy(reterr, "choose another port, or 0 for any");
    else if (error == EADDRNOTAVAIL)
        tci_error_remedy(reterr, "give an address of this host (\"ip address\" lists them)");
    else if (error == EACCES && port > 0 && port < 1024)
        tci_error_remedy(reterr, "choose a port from 1024 on, or 0 for any");
    return -1;
}

/* 127.0.0.1 and, if this machine knows it, ::1, at the same port. */
static int listen_localhost(struct tci_mcp_http *http, unsigned port, struct tc_error *reterr)
{
    for (int i = 0; i < tries; i++) {
        if (listen_at(http, 0, "127.0.0.1", port) < 0)
            return listen_failed("127.0.0.1", port, reterr);
        if (listen_at(http, 1, "::1", http->port) == 0 || errno == EADDRNOTAVAIL ||
            errno == EAFNOSUPPORT)
            return 0;
        if (port > 0 || errno != EADDRINUSE)
            break;
        evconnlistener_free(http->listeners[0]);
        http->listeners[0] = NULL;
    }
    return listen_failed("::1", port, reterr);
}

static int check_options(const struct tci_mcp_http_options *options, struct tc_error *reterr)
{
    struct place place;

    if (strcmp(options->address, "localhost") == 0)
        return 0;
    if (!read_place(options->address, 0, &place)) {
        tci_error_set(reterr, TC_ERROR_USAGE, "\"%.60s\" is not an address to listen at",
                      options->address);
        tci_error_remedy(reterr, "give localhost or an IP address");
        return -1;
    }
    if (tci_mcp_is_loopback(options->address))
        return 0;
    if (!options->allow_remote) {
        tci_error_set(reterr, TC_ERROR_USAGE,
                      "%.60s can be reached from other machines, and nothing is encrypted",
                      options->address);
        tci_error_remedy(reterr, "listen at 127.0.0.1 and put a proxy with TLS before it, or say "
                                 "--allow-remote");
        return -1;
    }
    if (options->token_count == 0) {
        tci_error_set(reterr, TC_ERROR_USAGE, "other machines may not call without a token");
        tci_error_remedy(reterr, "leave out --no-token, or listen at 127.0.0.1");
        return -1;
    }
    return 0;
}

/* Some descriptors are for the calls: each needs a few. */
static size_t places(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur == RLIM_INFINITY ||
        files.rlim_cur >= TCI_MCP_PEERS_MAX + files_for_calls)
        return TCI_MCP_PEERS_MAX;
    return files.rlim_cur > files_for_calls + peers_min ? (size_t)files.rlim_cur - files_for_calls
                                                        : peers_min;
}

int tci_mcp_http_listen(struct tci_mcp_http *http, struct tc_error *reterr)
{
    const struct tci_mcp_http_options *options = http->options;

    if (check_options(options, reterr) < 0)
        return -1;
    http->peers_max = places();
    http->resume = event_new(http->base, -1, 0, on_resume, http);
    if (!http->resume)
        return tci_error_no_memory(reterr);
    if (strcmp(options->address, "localhost") == 0)
        return listen_localhost(http, options->port, reterr);
    if (listen_at(http, 0, options->address, options->port) < 0)
        return listen_failed(options->address, options->port, reterr);
    return 0;
}

void tci_mcp_http_accept(struct tci_mcp_http *http)
{
    on_resume(-1, 0, http);
}
