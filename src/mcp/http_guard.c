/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: who may talk to the HTTP server.
 * Trusts: the options. Heads are hostile: they come from any program of this machine, and from any web page
 * that a browser of this machine shows.
 * Attacks: DNS rebinding (a page's own name points to 127.0.0.1: Host shows that name, Origin too);
 * a page that posts to localhost (Origin); a local user who guesses (token; compared in constant time, as
 * hashes, with every token).
 */
#include "mcp/http.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/sha256.h"

bool tci_mcp_is_loopback(const char *address)
{
    struct in_addr v4;
    struct in6_addr v6;

    if (strcmp(address, "localhost") == 0)
        return true;
    if (inet_pton(AF_INET, address, &v4) == 1)
        return (ntohl(v4.s_addr) >> 24) == 127;
    return inet_pton(AF_INET6, address, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

/* ---- names ---------------------------------------------------------------------------------- */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* "NAME", "NAME:PORT", "[V6]", "[V6]:PORT". *ret_port 0: none is given. */
static bool split_name(struct tci_http_text text, struct tci_http_text *ret_host,
                       unsigned *ret_port)
{
    size_t end = 0;
    unsigned port = 0;

    if (text.length > 0 && text.at[0] == '[') {
        while (end < text.length && text.at[end] != ']')
            end++;
        if (end++ == text.length)
            return false;
    } else {
        while (end < text.length && text.at[end] != ':')
            end++;
    }
    *ret_host = (struct tci_http_text){ text.at, end };
    *ret_port = 0;
    if (end == text.length)
        return end > 0;
    if (end == 0 || text.at[end] != ':' || text.length - end > 6 || text.length - end < 2)
        return false;
    for (size_t i = end + 1; i < text.length; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
        port = port * 10 + (unsigned)(text.at[i] - '0');
    }
    *ret_port = port;
    return port > 0 && port <= 65535;
}

static bool same_host(const char *name, struct tci_http_text host)
{
    if (strlen(name) != host.length)
        return false;
    for (size_t i = 0; i < host.length; i++)
        if (name[i] != lower(host.at[i]))
            return false;
    return true;
}

/* `default_port`: what no port means. A name without a port stands for ours and for a proxy's usual ones: other
 * ports of that host may be other people's servers, with pages of their own. */
static bool is_port_of(const struct tci_mcp_guard *guard, const struct tci_mcp_name *name,
                       unsigned port, unsigned default_port)
{
    if (name->port)
        return name->port == (port ? port : default_port);
    return !port || port == guard->port || port == 80 || port == 443;
}

static bool allowed(const struct tci_mcp_guard *guard, struct tci_http_text text,
                    unsigned default_port)
{
    struct tci_http_text host;
    unsigned port;

    if (!split_name(text, &host, &port))
        return false;
    for (size_t i = 0; i < guard->name_count; i++) {
        const struct tci_mcp_name *name = &guard->names[i];
        if (same_host(name->host, host) && is_port_of(guard, name, port, default_port))
            return true;
    }
    return false;
}

bool tci_mcp_guard_host(const struct tci_mcp_guard *guard, struct tci_http_text value)
{
    return allowed(guard, value, 80);
}

/* Only pages that come from us: "null" (sandboxed frames, files) and other schemes are not. */
bool tci_mcp_guard_origin(const struct tci_mcp_guard *guard, struct tci_http_text value)
{
    static const struct {
        const char *prefix;
        unsigned port;
    } schemes[] = { { "http://", 80 }, { "https://", 443 } };

    for (size_t i = 0; i < tci_array_size(schemes); i++) {
        size_t length = strlen(schemes[i].prefix);
        struct tci_http_text scheme = { value.at, length };
        if (value.length > length && tci_http_equals(scheme, schemes[i].prefix))
            return allowed(guard,
                           (struct tci_http_text){ value.at + length, value.length - length },
                           schemes[i].port);
    }
    return false;
}

static void add_name(struct tci_mcp_guard *guard, const char *host, unsigned port)
{
    struct tci_mcp_name *name = &guard->names[guard->name_count++];
    bool bare_v6 = host[0] != '[' && strchr(host, ':') != NULL;

    snprintf(name->host, sizeof name->host, bare_v6 ? "[%s]" : "%s", host);
    for (char *c = name->host; *c; c++)
        *c = lower(*c);
    name->port = port;
}

static int add_given(struct tci_mcp_guard *guard, const char *given, struct tc_error *reterr)
{
    struct tci_http_text host;
    unsigned port;
    char text[256];

    if (!split_name((struct tci_http_text){ given, strlen(given) }, &host, &port) ||
        host.length >= sizeof text || strchr(given, '/') || strchr(given, '*')) {
        tci_error_set(reterr, TC_ERROR_USAGE, "\"%.100s\" is not a name of a host", given);
        tci_error_remedy(reterr, "give names as NAME or NAME:PORT, without http://");
        return -1;
    }
    memcpy(text, host.at, host.length);
    text[host.length] = '\0';
    add_name(guard, text, port);
    return 0;
}

int tci_mcp_guard_init(struct tci_mcp_guard *guard, const struct tci_mcp_http_options *options,
                       unsigned port, struct tc_error *reterr)
{
    size_t given = 0;

    while (options->hosts && options->hosts[given])
        given++;
    *guard = (struct tci_mcp_guard){ .port = port,
                                     .tokens = options->tokens,
                                     .token_count = options->token_count };
    guard->names = calloc(given + 4, sizeof *guard->names);
    if (!guard->names)
        return tci_error_no_memory(reterr);
    add_name(guard, "localhost", port);
    add_name(guard, "127.0.0.1", port);
    add_name(guard, "[::1]", port);
    /* "Any address" is no name: a page can reach http://0.0.0.0 in some browsers. */
    if (strcmp(options->address, "0.0.0.0") != 0 && strcmp(options->address, "::") != 0)
        add_name(guard, options->address, port);
    for (size_t i = 0; i < given; i++)
        if (add_given(guard, options->hosts[i], reterr) < 0)
            return -1;
    return 0;
}

void tci_mcp_guard_free(struct tci_mcp_guard *guard)
{
    free(guard->names);
    guard->names = NULL;
}

/* ---- tokens --------------------------------------------------------------------------------- */

int tci_mcp_guard_token(const struct tci_mcp_guard *guard, struct tci_http_text authorization)
{
    static const char scheme[] = "bearer ";
    size_t start = strlen(scheme);
    unsigned char shown[TCI_SHA256_SIZE];
    struct tci_sha256 hash;
    int found = -1;

    if (authorization.length <= start ||
        !tci_http_equals((struct tci_http_text){ authorization.at, start }, scheme))
        return -1;
    while (start < authorization.length && authorization.at[start] == ' ')
        start++;
    tci_sha256_begin(&hash);
    tci_sha256_add(&hash, authorization.at + start, authorization.length - start);
    tci_sha256_end(&hash, shown);
    for (size_t i = 0; i < guard->token_count; i++) {
        /* volatile: no early end that tells how much was right. */
        volatile unsigned char differs = 0;
        for (size_t k = 0; k < sizeof shown; k++)
            differs |= (unsigned char)(shown[k] ^ guard->tokens[i].hash[k]);
        if (differs == 0)
            found = (int)i;
    }
    return found;
}
