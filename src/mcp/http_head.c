/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the head of a request to the HTTP server: the fields that MCP knows, and in which order what is
 * wrong with them is told.
 * Trusts: gate/http.h for the form of the head: one Host, one way to find the end of the body, no folded
 * lines, no control bytes, one kind of line ends. A field of ours that comes twice is refused: two readers would
 * pick two values.
 */
#include "mcp/http.h"

#include <string.h>

/* What the fields say, borrowed from the head. */
struct fields {
    struct tci_http_text authorization, origin, type, session, version, last_event, expect;
    size_t count;
    bool closes, takes_json, takes_events;
};

static bool refuse(struct tci_mcp_refusal *ret, int status, const char *message)
{
    *ret = (struct tci_mcp_refusal){ .status = status, .code = TCI_MCP_BUSY, .message = message };
    if (status == 400)
        ret->code = TCI_MCP_INVALID_REQUEST;
    ret->hang_up = status == 401 || status == 403 || status == 405 || status == 431;
    return false;
}

static struct tci_http_text trim(struct tci_http_text text)
{
    while (text.length > 0 && (text.at[0] == ' ' || text.at[0] == '\t'))
        text.at++, text.length--;
    while (text.length > 0 && (text.at[text.length - 1] == ' ' || text.at[text.length - 1] == '\t'))
        text.length--;
    return text;
}

/* Takes the text up to the byte off; the byte is dropped. */
static struct tci_http_text cut(struct tci_http_text *text, char at)
{
    const char *found = text->length > 0 ? memchr(text->at, at, text->length) : NULL;
    struct tci_http_text part = { text->at, found ? (size_t)(found - text->at) : text->length };
    size_t used = part.length + (found ? 1 : 0);

    text->at += used;
    text->length -= used;
    return part;
}

static void read_accept(struct fields *fields, struct tci_http_text value)
{
    while (value.length > 0) {
        struct tci_http_text part = cut(&value, ',');
        struct tci_http_text type = trim(cut(&part, ';'));
        bool all = tci_http_equals(type, "*/*");
        if (all || tci_http_equals(type, "application/json") ||
            tci_http_equals(type, "application/*"))
            fields->takes_json = true;
        if (all || tci_http_equals(type, "text/event-stream") || tci_http_equals(type, "text/*"))
            fields->takes_events = true;
    }
}

static void read_connection(struct fields *fields, struct tci_http_text value)
{
    while (value.length > 0)
        if (tci_http_equals(trim(cut(&value, ',')), "close"))
            fields->closes = true;
}

static bool read_field(struct fields *fields, struct tci_http_text line)
{
    struct tci_http_text name = cut(&line, ':'), value = trim(line);
    const struct {
        const char *name;
        struct tci_http_text *place;
    } single[] = {
        { "authorization", &fields->authorization },
        { "origin", &fields->origin },
        { "content-type", &fields->type },
        { "mcp-session-id", &fields->session },
        { "mcp-protocol-version", &fields->version },
        { "last-event-id", &fields->last_event },
        { "expect", &fields->expect },
    };

    if (++fields->count > TCI_MCP_FIELDS_MAX)
        return true;
    if (tci_http_equals(name, "accept"))
        read_accept(fields, value);
    else if (tci_http_equals(name, "connection"))
        read_connection(fields, value);
    for (size_t i = 0; i < tci_array_size(single); i++) {
        if (!tci_http_equals(name, single[i].name))
            continue;
        if (single[i].place->at)
            return false;
        *single[i].place = value;
    }
    return true;
}

/* `rest`: behind the request line, well-formed as gate/http.h has found. */
static bool read_fields(struct fields *fields, struct tci_http_text rest)
{
    for (;;) {
        struct tci_http_text line = cut(&rest, '\n');
        if (line.length > 0 && line.at[line.length - 1] == '\r')
            line.length--;
        if (line.length == 0)
            return true;
        if (!read_field(fields, line))
            return false;
    }
}

/* ---- values --------------------------------------------------------------------------------- */

static bool read_number(struct tci_http_text text, uint64_t *ret)
{
    if (text.length == 0 || text.length > 18)
        return false;
    *ret = 0;
    for (size_t i = 0; i < text.length; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
        *ret = *ret * 10 + (uint64_t)(text.at[i] - '0');
    }
    return true;
}

/* "STREAM-EVENT", as http_stream.c writes them. */
static bool read_event_id(struct tci_http_text text, struct tci_mcp_head *ret)
{
    struct tci_http_text stream = cut(&text, '-');
    ret->has_last_event = true;
    return read_number(stream, &ret->last_stream) && read_number(text, &ret->last_event);
}

static void copy(struct tci_http_text text, char *ret, size_t size)
{
    if (!text.at || text.length >= size)
        text.length = 0;
    if (text.length > 0)
        memcpy(ret, text.at, text.length);
    ret[text.length] = '\0';
}

static bool is_json(struct tci_http_text type)
{
    struct tci_http_text media = trim(cut(&type, ';'));
    return tci_http_equals(media, "application/json");
}

static bool read_values(const struct fields *fields, struct tci_mcp_head *ret,
                        struct tci_mcp_refusal *refusal)
{
    enum tci_mcp_version known;
    char version[16];

    ret->takes_json = fields->takes_json;
    ret->takes_events = fields->takes_events;
    ret->has_session = fields->session.at != NULL;
    copy(fields->session, ret->session, sizeof ret->session);
    copy(fields->version, version, sizeof version);
    ret->has_odd_version = fields->version.at && !tci_mcp_version_find(version, &known);
    if (ret->method == TCI_MCP_POST && !(ret->takes_json && ret->takes_events))
        return refuse(refusal, 406,
                      "Accept must allow both application/json and text/event-stream");
    if (ret->method == TCI_MCP_GET && !ret->takes_events)
        return refuse(refusal, 406, "Accept must allow text/event-stream");
    /* A page may post text/plain and forms to anybody without being asked; not this. */
    if (ret->method == TCI_MCP_POST && !is_json(fields->type))
        return refuse(refusal, 415, "Content-Type must be application/json");
    if (fields->last_event.at && !read_event_id(fields->last_event, ret))
        return refuse(refusal, 400, "Last-Event-ID is none of ours");
    if (fields->expect.at && !tci_http_equals(fields->expect, "100-continue"))
        return refuse(refusal, 417, "Expect may only be 100-continue");
    ret->wants_continue = fields->expect.at && ret->has_body && !ret->is_1_0;
    return true;
}

/* ---- the head ------------------------------------------------------------------------------- */

static enum tci_mcp_http_method find_method(const char *method)
{
    if (strcmp(method, "POST") == 0)
        return TCI_MCP_POST;
    if (strcmp(method, "GET") == 0)
        return TCI_MCP_GET;
    return strcmp(method, "DELETE") == 0 ? TCI_MCP_DELETE : TCI_MCP_OTHER;
}

/* "METHOD TARGET HTTP/1.x": the form was checked. */
static bool is_endpoint(struct tci_http_text target)
{
    struct tci_http_text path = cut(&target, '?');
    return path.length == strlen("/mcp") && memcmp(path.at, "/mcp", path.length) == 0;
}

/* In this order: who is not let in learns nothing else. */
static bool check_caller(const struct tci_mcp_guard *guard, const struct tci_http_head *framing,
                         const struct fields *fields, struct tci_mcp_head *ret,
                         struct tci_mcp_refusal *refusal)
{
    if (!tci_mcp_guard_host(guard, framing->host))
        return refuse(refusal, 403,
                      "Host is not one of this server's names (--allow-host adds one)");
    if (fields->origin.at && !tci_mcp_guard_origin(guard, fields->origin))
        return refuse(refusal, 403, "Origin is not allowed: web pages may not use this server");
    ret->token = -1;
    return true;
}

static bool check_token(const struct tci_mcp_guard *guard, const struct fields *fields,
                        struct tci_mcp_head *ret, struct tci_mcp_refusal *refusal)
{
    if (guard->token_count == 0)
        return true;
    if (fields->authorization.at)
        ret->token = tci_mcp_guard_token(guard, fields->authorization);
    if (ret->token < 0)
        return refuse(refusal, 401,
                      fields->authorization.at
                          ? "the token in Authorization is not one of this server's"
                          : "Authorization: Bearer TOKEN is missing");
    return true;
}

bool tci_mcp_head_read(const struct tci_mcp_guard *guard, const char *text, size_t length,
                       struct tci_mcp_head *ret, struct tci_mcp_refusal *ret_refusal)
{
    struct tci_http_text rest = { text, length }, line, target;
    struct fields fields = { .count = 0 };
    char method[TCI_HTTP_METHOD_MAX];
    size_t word = 0;

    memset(ret, 0, sizeof *ret);
    while (word < length && tci_http_is_token((uint8_t)text[word]))
        word++;
    if (word == 0 || word >= sizeof method)
        return refuse(ret_refusal, 400, "this is not HTTP/1.1");
    copy((struct tci_http_text){ text, word }, method, sizeof method);
    if (tci_http_read_head(method, (const uint8_t *)text + word, length - word, &ret->framing))
        return refuse(ret_refusal, 400, "this is not a well-formed HTTP/1.1 request");
    line = cut(&rest, '\n');
    /* The others end as it does (gate/http.h). A proxy in front of us may take a bare LF for a part of a value: what
     * stands behind it would be a field for us alone. */
    if (line.length == 0 || line.at[line.length - 1] != '\r')
        return refuse(ret_refusal, 400, "lines of the head must end with CR and LF");
    cut(&line, ' ');
    target = cut(&line, ' ');
    ret->is_1_0 = line.length >= 8 && line.at[7] == '0';
    ret->has_body = ret->framing.is_chunked || ret->framing.length > 0;
    if (!read_fields(&fields, rest))
        return refuse(ret_refusal, 400, "a field that may stand once stands twice");
    if (fields.count > TCI_MCP_FIELDS_MAX)
        return refuse(ret_refusal, 431, "too many header fields");
    ret->wants_close = fields.closes || ret->is_1_0;
    ret->method = find_method(method);
    if (!check_caller(guard, &ret->framing, &fields, ret, ret_refusal))
        return false;
    /* No absolute targets: one more name that could differ from Host. */
    if (ret->framing.target.at || !is_endpoint(target))
        return refuse(ret_refusal, 404, "the endpoint of this server is /mcp");
    if (ret->method == TCI_MCP_OTHER)
        return refuse(ret_refusal, 405, "only GET, POST and DELETE are known here");
    if (!check_token(guard, &fields, ret, ret_refusal))
        return false;
    if (!ret->framing.is_chunked && ret->framing.length > TCI_MCP_MESSAGE_MAX)
        return refuse(ret_refusal, 413, "the message is larger than 4 MiB");
    ret->framing.host = ret->framing.target = (struct tci_http_text){ NULL, 0 };
    return read_values(&fields, ret, ret_refusal);
}
