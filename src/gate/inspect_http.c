/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the inspection of HTTP/1 requests: each one on a connection must name the connection's host.
 * Trusts: http.c to give one reading of a head or none.
 * Invariant: no byte of a head goes before all of it was checked, except the method of the first.
 */
#include "gate/inspect_internal.h"

#include <stdio.h>
#include <string.h>

/* Behind HOST: nothing, or ":" and the connection's own port. */
static bool is_own_port(const struct tci_inspect *inspect, struct tci_http_text text)
{
    char own[sizeof ":65535"];
    int length = snprintf(own, sizeof own, ":%u", (unsigned)inspect->port);
    return text.length == 0 ||
           (text.length == (size_t)length && memcmp(text.at, own, text.length) == 0);
}

/* HOST or HOST:PORT. */
static bool is_own_host(struct tci_inspect *inspect, struct tci_http_text text)
{
    const char *colon = memchr(text.at, ':', text.length);
    const char *bracket = memchr(text.at, ']', text.length);
    size_t end = colon ? (size_t)(colon - text.at) : text.length;

    if (text.length > 0 && text.at[0] == '[' && bracket)
        end = (size_t)(bracket - text.at) + 1;
    if (tci_inspect_is_meant(inspect, text.at, end))
        return is_own_port(inspect, (struct tci_http_text){ text.at + end, text.length - end });
    return false;
}

static enum tci_inspect_step refuse_host(struct tci_inspect *inspect)
{
    if (inspect->meant[0] != '\0')
        return tci_inspect_refuse(inspect, "the HTTP request is for another host: %s",
                                  inspect->meant);
    return tci_inspect_refuse(inspect, "the HTTP request is for another port of %s", inspect->name);
}

static enum tci_inspect_step check_head(struct tci_inspect *inspect,
                                        const struct tci_http_head *head)
{
    if ((head->target.at && !is_own_host(inspect, head->target)) ||
        !is_own_host(inspect, head->host))
        return refuse_host(inspect);
    if (head->has_upgrade && inspect->strict)
        return tci_inspect_refuse(inspect, "the HTTP request wants to go on in another protocol "
                                           "(Upgrade), and inspection is strict");
    return TCI_STEP_GO;
}

/* How long the head is, or 0: not all of it is there. */
static size_t find_end(struct tci_inspect *inspect, const uint8_t *bytes, size_t length)
{
    const uint8_t *found;

    while ((found = memchr(bytes + inspect->seen, '\n', length - inspect->seen)) != NULL) {
        size_t end = (size_t)(found - bytes), line = end - inspect->line_at;
        if (line == 0 || (line == 1 && bytes[inspect->line_at] == '\r'))
            return end + 1;
        inspect->line_at = inspect->seen = end + 1;
    }
    inspect->seen = length;
    return 0;
}

enum tci_inspect_step tci_inspect_head(struct tci_inspect *inspect, struct tci_inspect_input *in)
{
    size_t limit = in->length < TCI_INSPECT_HEAD_MAX ? in->length : TCI_INSPECT_HEAD_MAX;
    size_t end = find_end(inspect, in->bytes, limit);
    struct tci_http_head head;
    const char *problem;

    if (end == 0 && in->length > TCI_INSPECT_HEAD_MAX)
        return tci_inspect_refuse(inspect, "the HTTP request has a head of more than 64 KiB");
    if (end == 0 && in->at_end)
        return tci_inspect_refuse(inspect, "the HTTP request is cut off");
    if (end == 0)
        return TCI_STEP_MORE;
    problem = tci_http_read_head(inspect->word, in->bytes + inspect->rest_at,
                                 end - inspect->rest_at, &head);
    if (problem)
        return tci_inspect_refuse(inspect, "the HTTP request %s", problem);
    if (check_head(inspect, &head) == TCI_STEP_REFUSED)
        return TCI_STEP_REFUSED;
    tci_inspect_use(in, end);
    inspect->is_http = true;
    inspect->is_open = false;
    inspect->is_upgrade = head.has_upgrade;
    tci_http_body_start(&inspect->body, &head);
    return tci_inspect_go(inspect, TCI_INSPECT_AT_BODY);
}

/* Behind an upgrade anything may follow, if the server agreed to it, which is not known here. If it did
 * not, it goes on reading requests. So a request that follows is checked like any other: asking for an
 * upgrade that nobody grants is no way round. */
enum tci_inspect_step tci_inspect_body(struct tci_inspect *inspect, struct tci_inspect_input *in)
{
    const char *problem = NULL;
    size_t used = 0;
    enum tci_http_body_says said = tci_http_body_feed(&inspect->body, in->bytes, in->length, &used,
                                                      &problem);

    tci_inspect_use(in, used);
    if (said == TCI_HTTP_BODY_BAD)
        return tci_inspect_refuse(inspect, "the HTTP request %s", problem);
    if (said == TCI_HTTP_BODY_MORE)
        return TCI_STEP_MORE;
    inspect->is_open = inspect->is_upgrade;
    inspect->is_fresh = inspect->is_upgrade;
    return tci_inspect_go(inspect, TCI_INSPECT_AT_START);
}
