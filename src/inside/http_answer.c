/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what http_fetch keeps of a server's answer, and how it tells that there is none. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "base/base64.h"
#include "base/utf8.h"
#include "inside/http_fetch.h"

/* The attack: a body without end, or a small one that unpacks to gigabytes. What is behind the bound
 * is not read: the transfer ends here. */
static size_t on_body(const char *bytes, size_t one, size_t count, void *data)
{
    struct tci_fetch *fetch = data;
    size_t room = fetch->max_bytes - fetch->content.length;
    (void)one;
    tci_buf_append(&fetch->content, bytes, count < room ? count : room);
    if (count <= room)
        return count;
    fetch->truncated = true;
    return 0;
}

static char *copy(const char *text, size_t length)
{
    char *made = strndup(text, length);
    if (!made)
        tci_inside_no_memory();
    return made;
}

/* Takes both texts. The values of a name that comes twice are one list. */
static void add_header(struct tci_fetch *fetch, char *name, char *value)
{
    size_t i = 0;
    for (; i < fetch->header_count; i++) {
        struct tci_fetch_header *old = &fetch->headers[i];
        if (strcmp(old->name, name) != 0)
            continue;
        struct tci_buf both = TCI_BUF_INIT(TCI_FETCH_VALUE_MAX);
        tci_buf_string(&both, old->value);
        tci_buf_string(&both, ", ");
        tci_buf_string(&both, value);
        if (!both.data || both.no_memory)
            tci_inside_no_memory();
        free(old->value);
        old->value = both.data;
        break;
    }
    if (i == fetch->header_count && i < TCI_FETCH_HEADER_COUNT) {
        fetch->headers[fetch->header_count++] = (struct tci_fetch_header){ name, value };
        return;
    }
    free(name);
    free(value);
}

static size_t on_header(const char *line, size_t one, size_t count, void *data)
{
    struct tci_fetch *fetch = data;
    const char *colon = memchr(line, ':', count);
    (void)one;
    if (count >= 5 && memcmp(line, "HTTP/", 5) == 0) {
        fetch->header_count = fetch->header_bytes = 0; /* of a redirect, or of 100 Continue */
        return count;
    }
    fetch->header_bytes += count;
    if (!colon || fetch->header_bytes > TCI_FETCH_HEADERS_MAX)
        return count;
    const char *begin = colon + 1, *end = line + count;
    while (begin < end && (*begin == ' ' || *begin == '\t'))
        begin++;
    while (end > begin && isspace((unsigned char)end[-1]))
        end--;
    char *name = copy(line, (size_t)(colon - line));
    for (char *at = name; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    /* Keys of a JSON object: no two of them may look the same afterwards. */
    if (*name && !name[strspn(name, TCI_HTTP_TOKEN)])
        add_header(fetch, name, copy(begin, (size_t)(end - begin)));
    else
        free(name);
    return count;
}

/* Text has no control characters but those that lay it out. A character that was cut is left out. */
static bool is_text(struct tci_fetch *fetch)
{
    const struct tci_buf *content = &fetch->content;
    size_t at = 0;
    while (at < content->length) {
        uint32_t code_point;
        size_t size = tci_utf8_decode(content->data + at, content->length - at, &code_point);
        if (!size && fetch->truncated && at && content->length - at < 4)
            break;
        if (!size || code_point == 0x7f ||
            (code_point < 0x20 && !strchr("\t\n\r\f", (int)code_point)) || !code_point)
            return false;
        at += size;
    }
    fetch->content.length = at;
    return true;
}

static void print_answer(const struct tci_curl *curl, void *handle, struct tci_fetch *fetch)
{
    struct tci_buf out = TCI_BUF_INIT(TCI_INSIDE_ANSWER_MAX);
    struct tci_json json = { .out = &out };
    char *url = NULL;
    long status = 0;
    curl->getinfo(handle, TCI_CURL_FINAL_URL, &url);
    curl->getinfo(handle, TCI_CURL_STATUS, &status);
    bool text = is_text(fetch);
    struct tci_buf encoded = TCI_BUF_INIT(TCI_FETCH_ENCODED_MAX);
    if (!text)
        tci_base64_encode(&encoded, fetch->content.data, fetch->content.length);
    const struct tci_buf *body = text ? &fetch->content : &encoded;
    tci_json_object_begin(&json, NULL);
    tci_json_string(&json, "url", url ? url : fetch->url);
    tci_json_integer(&json, "status", status);
    tci_json_object_begin(&json, "headers");
    for (size_t i = 0; i < fetch->header_count; i++)
        tci_json_string(&json, fetch->headers[i].name, fetch->headers[i].value);
    tci_json_object_end(&json);
    tci_json_bytes(&json, "body", body->data ? body->data : "", body->length);
    tci_json_string(&json, "encoding", text ? "utf-8" : "base64");
    tci_json_bool(&json, "truncated", fetch->truncated);
    tci_json_object_end(&json);
    tci_buf_char(&out, '\n');
    tci_inside_answer(&out);
}

/* What a model can do about it. */
static tci_no_return void fail(const struct tci_curl *curl, void *handle,
                               const struct tci_fetch *fetch, int code, const char *detail)
{
    char *url = NULL;
    curl->getinfo(handle, TCI_CURL_FINAL_URL, &url);
    const char *at = url && *url ? url : fetch->url;
    const char *shown = tci_inside_shown(at, strlen(at));
    const char *words = *detail ? detail : curl->strerror(code);
    switch (code) {
    case TCI_CURL_BAD_PROTOCOL:
        tci_inside_fail(
            "%s cannot be fetched: only http and https are spoken, also after a redirect (%s)",
            shown, words);
    case TCI_CURL_BAD_URL:
        tci_inside_fail("%s is not a URL", shown);
    case TCI_CURL_NO_HOST:
        tci_inside_fail(
            "%s cannot be fetched: its host is not allowed by the policy, or does not exist",
            shown);
    case TCI_CURL_NO_CONNECTION:
        tci_inside_fail(
            "%s cannot be fetched: the policy does not allow this host and port, or nobody "
            "answers there (%s)",
            shown, words);
    case TCI_CURL_TIMEOUT:
        tci_inside_fail("%s has not answered within %lld seconds", shown,
                        (long long)fetch->timeout);
    case TCI_CURL_TOO_MANY_REDIRECTS:
        tci_inside_fail("%s leads from one redirect to the next", shown);
    case TCI_CURL_BAD_CERTIFICATE:
        tci_inside_fail("%s cannot be fetched: its certificate is not trusted (%s)", shown, words);
    default:
        tci_inside_fail("%s cannot be fetched: %s", shown, words);
    }
}

void tci_fetch_perform(const struct tci_curl *curl, void *handle, struct tci_fetch *fetch)
{
    char detail[TCI_CURL_ERROR_SIZE] = "";
    fetch->content = (struct tci_buf)TCI_BUF_INIT(TCI_FETCH_BODY_MAX);
    curl->setopt(handle, TCI_CURL_WRITE, on_body);
    curl->setopt(handle, TCI_CURL_WRITE_DATA, fetch);
    curl->setopt(handle, TCI_CURL_HEADER, on_header);
    curl->setopt(handle, TCI_CURL_HEADER_DATA, fetch);
    curl->setopt(handle, TCI_CURL_ERROR_TEXT, detail);
    int code = curl->perform(handle);
    if (code == TCI_CURL_OK || (code == TCI_CURL_WRITE_ENDED && fetch->truncated))
        print_answer(curl, handle, fetch);
    else
        fail(curl, handle, fetch, code, detail);
}
