/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the head of an HTTP/1 request.
 * Trusts: nothing. A whole head is read at once, line by line.
 * Invariant: what is accepted is read alike by every server: single spaces, one kind of line end, no
 * folded lines, no control bytes, one Host, one way to find the end of the body.
 */
#include "gate/http.h"

#include <string.h>

enum { length_digits_max = 18 };

/* ---- Bytes and words ---- */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool tci_http_is_token(uint8_t byte)
{
    char c = lower((char)byte);
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

/* Python's split(), for one, splits at the last six of these too. */
bool tci_http_is_space(uint8_t byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r') || (byte >= 0x1c && byte <= 0x1f) ||
           byte == 0x85 || byte == 0xa0;
}

static bool starts_with(struct tci_http_text text, const char *lower_case)
{
    size_t length = strlen(lower_case);
    if (text.length < length)
        return false;
    for (size_t i = 0; i < length; i++)
        if (lower(text.at[i]) != lower_case[i])
            return false;
    return true;
}

bool tci_http_equals(struct tci_http_text text, const char *lower_case)
{
    return text.length == strlen(lower_case) && starts_with(text, lower_case);
}

static struct tci_http_text text_of(const char *word)
{
    return (struct tci_http_text){ word, strlen(word) };
}

bool tci_http_is_known_method(const char *method)
{
    static const char *const known[] = { "get",    "head",    "post",  "put",
                                         "delete", "options", "trace", "patch" };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (tci_http_equals(text_of(method), known[i]))
            return true;
    return false;
}

bool tci_http_has_version(const uint8_t *line, size_t length)
{
    for (size_t i = 0; i + 1 < length; i++) {
        struct tci_http_text word = { (const char *)line + i + 1, length - i - 1 };
        if (tci_http_is_space(line[i]) && starts_with(word, "http/"))
            return true;
    }
    return false;
}

static struct tci_http_text from(struct tci_http_text text, size_t start)
{
    return (struct tci_http_text){ text.at + start, text.length - start };
}

static struct tci_http_text until(struct tci_http_text text, size_t end)
{
    return (struct tci_http_text){ text.at, end };
}

/* Where the byte first stands, or the length. */
static size_t find(struct tci_http_text text, char wanted)
{
    const char *found = text.length > 0 ? memchr(text.at, wanted, text.length) : NULL;
    return found ? (size_t)(found - text.at) : text.length;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct tci_http_text trim(struct tci_http_text text)
{
    while (text.length > 0 && is_blank(text.at[0]))
        text = from(text, 1);
    while (text.length > 0 && is_blank(text.at[text.length - 1]))
        text.length--;
    return text;
}

/* ---- The request line ---- */

/* "http://HOST/...": where there is such a target, servers take the host from it and not from Host. */
static const char *read_absolute(struct tci_http_text target, struct tci_http_head *ret)
{
    struct tci_http_text rest;
    size_t end = 0;

    if (starts_with(target, "http://"))
        rest = from(target, strlen("http://"));
    else if (starts_with(target, "https://"))
        rest = from(target, strlen("https://"));
    else
        return "asks for something that is neither a path nor an http:// address";
    /* "\" ends the host for programs that follow the URL standard, and not for others. */
    while (end < rest.length && !strchr("/?#\\", rest.at[end]))
        end++;
    if (end == 0 || (end < rest.length && rest.at[end] == '\\'))
        return "asks for an address whose host cannot be told";
    ret->target = until(rest, end);
    return NULL;
}

static const char *read_target(const char *method, struct tci_http_text target,
                               struct tci_http_head *ret)
{
    if (target.length == 0)
        return "has no target";
    if (target.at[0] == '/')
        return NULL;
    if (tci_http_equals(target, "*") && tci_http_equals(text_of(method), "options"))
        return NULL;
    return read_absolute(target, ret);
}

/* " TARGET HTTP/1.x". */
static const char *read_request_line(const char *method, struct tci_http_text line,
                                     struct tci_http_head *ret)
{
    size_t space;

    if (tci_http_equals(text_of(method), "connect"))
        return "wants a tunnel (CONNECT)";
    if (line.length == 0 || line.at[0] != ' ')
        return "has no space behind its method";
    line = from(line, 1);
    space = find(line, ' ');
    if (space == line.length)
        return "has no version (HTTP/0.9), so it names no host";
    struct tci_http_text version = from(line, space + 1);
    if (starts_with(version, "http/2"))
        return "is HTTP/2 without TLS";
    if ((version.length != strlen("HTTP/1.1") || memcmp(version.at, "HTTP/1.", 7) != 0) ||
        (version.at[7] != '0' && version.at[7] != '1'))
        return "has a line that does not end in HTTP/1.0 or HTTP/1.1";
    for (size_t i = 0; i < space; i++)
        if (line.at[i] == '\t')
            return "has a tab in its first line";
    return read_target(method, until(line, space), ret);
}

/* ---- Fields ---- */

struct fields {
    struct tci_http_head *head;
    bool has_length, has_encoding;
};

static const char *read_host(struct fields *fields, struct tci_http_text value)
{
    if (fields->head->host.at)
        return "has more than one Host";
    fields->head->host = value;
    return value.length > 0 ? NULL : "has an empty Host";
}

/* Two lengths, or a length and chunks: the one server ends the body where the other does not, and takes
 * what follows for the next request, which nobody has checked. */
static const char *read_length(struct fields *fields, struct tci_http_text value)
{
    static const char wrong[] = "has a Content-Length that is not one number";
    uint64_t length = 0;

    if (fields->has_length)
        return "has more than one Content-Length";
    fields->has_length = true;
    if (value.length == 0 || value.length > length_digits_max)
        return wrong;
    for (size_t i = 0; i < value.length; i++) {
        if (!is_digit(value.at[i]))
            return wrong;
        length = length * 10 + (uint64_t)(value.at[i] - '0');
    }
    fields->head->length = length;
    return NULL;
}

static const char *read_encoding(struct fields *fields, struct tci_http_text value)
{
    if (fields->has_encoding)
        return "has more than one Transfer-Encoding";
    fields->has_encoding = true;
    if (!tci_http_equals(value, "chunked"))
        return "has a Transfer-Encoding other than chunked";
    fields->head->is_chunked = true;
    return NULL;
}

/* HTTP/2 packs its hosts where this reader does not look. */
static const char *read_upgrade(struct fields *fields, struct tci_http_text value)
{
    fields->head->has_upgrade = true;
    while (value.length > 0) {
        size_t comma = find(value, ',');
        struct tci_http_text protocol = trim(until(value, comma));
        if (starts_with(protocol, "h2") || starts_with(protocol, "http"))
            return "wants to go on in HTTP/2";
        value = from(value, comma < value.length ? comma + 1 : comma);
    }
    return NULL;
}

static const char *refuse_http2(struct fields *fields, struct tci_http_text value)
{
    (void)fields;
    (void)value;
    return "wants to go on in HTTP/2";
}

static const struct field_reader {
    const char *name;
    const char *(*read)(struct fields *fields, struct tci_http_text value);
} field_readers[] = {
    { "host", read_host },
    { "content-length", read_length },
    { "upgrade", read_upgrade },
    { "transfer-encoding", read_encoding },
    { "http2-settings", refuse_http2 },
};

static const char *read_field(struct fields *fields, struct tci_http_text line)
{
    size_t colon = find(line, ':');
    struct tci_http_text name = until(line, colon);

    /* A line that goes on from the one before: a server that does not know this reads a field. */
    if (is_blank(line.at[0]))
        return "has a folded line";
    if (colon == line.length || colon == 0)
        return "has a line that is no field";
    for (size_t i = 0; i < name.length; i++)
        if (!tci_http_is_token((uint8_t)name.at[i]))
            return is_blank(name.at[i])
                       ? "has a space in or behind the name of a field"
                       : "has a byte in the name of a field that is none of a name";
    for (size_t i = 0; i < sizeof field_readers / sizeof field_readers[0]; i++)
        if (tci_http_equals(name, field_readers[i].name))
            return field_readers[i].read(fields, trim(from(line, colon + 1)));
    return NULL;
}

/* ---- Lines ---- */

struct lines {
    struct tci_http_text rest;
    bool has_first, with_return;
};

/* Takes one line off. Both kinds of line end are in use; a head that mixes them has other lines for a
 * server that knows only one. */
static const char *next_line(struct lines *lines, struct tci_http_text *ret)
{
    size_t end = find(lines->rest, '\n');
    bool with_return = end > 0 && lines->rest.at[end - 1] == '\r';

    if (end == lines->rest.length)
        return "is cut off";
    if (lines->has_first && with_return != lines->with_return)
        return "mixes two kinds of line ends";
    lines->has_first = true;
    lines->with_return = with_return;
    *ret = until(lines->rest, end - with_return);
    lines->rest = from(lines->rest, end + 1);
    for (size_t i = 0; i < ret->length; i++)
        if (((uint8_t)ret->at[i] < 0x20 && ret->at[i] != '\t') || ret->at[i] == 0x7f)
            return "has a control byte in its head";
    return NULL;
}

static const char *check_framing(const struct fields *fields, struct tci_http_text request_line)
{
    if (!fields->head->host.at)
        return "names no Host";
    if (fields->has_length && fields->has_encoding)
        return "has both a Content-Length and a Transfer-Encoding";
    if (fields->has_encoding && request_line.at[request_line.length - 1] == '0')
        return "has a Transfer-Encoding, which HTTP/1.0 does not know";
    return NULL;
}

const char *tci_http_read_head(const char *method, const uint8_t *rest, size_t length,
                               struct tci_http_head *ret)
{
    struct lines lines = { .rest = { (const char *)rest, length } };
    struct fields fields = { .head = ret };
    struct tci_http_text request_line, line;
    const char *problem;

    memset(ret, 0, sizeof *ret);
    problem = next_line(&lines, &request_line);
    if (!problem)
        problem = read_request_line(method, request_line, ret);
    while (!problem) {
        problem = next_line(&lines, &line);
        if (!problem && line.length == 0)
            return check_framing(&fields, request_line);
        if (!problem)
            problem = read_field(&fields, line);
    }
    return problem;
}
