/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: http_fetch: one request over HTTP or HTTPS, inside its cage. What may be reached is decided
 * by the gate, outside; nothing here keeps a rule. Only http and https are spoken, also after a
 * redirect: "file:" would read the cage's own files and call it the web. Neither .netrc nor proxy
 * variables nor cookies are used.
 */
#include "inside/http_fetch.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { REDIRECTS_MAX = 10, TIMEOUT = 20, TIMEOUT_MAX = 600, URL_MAX = 8192 };

static void open_curl(struct tci_curl *curl)
{
    const char *lacks = tci_curl_open(curl);
    if (lacks && !*lacks)
        tci_inside_fail("http_fetch needs libcurl.so.4 in this cage (package libcurl4): %s",
                        dlerror());
    if (lacks)
        tci_inside_fail("libcurl in this cage has no %s: it is too old", lacks);
}

static void read_url(const json_t *arguments, struct tci_fetch *fetch)
{
    size_t length;
    fetch->url = tci_inside_string(arguments, "url", true, &length);
    if (strncasecmp(fetch->url, "http://", 7) != 0 && strncasecmp(fetch->url, "https://", 8) != 0)
        tci_inside_fail("the url must begin with http:// or https://");
    if (length > URL_MAX)
        tci_inside_fail("the url is longer than %d bytes", URL_MAX);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)fetch->url[i] <= ' ' || fetch->url[i] == 0x7f)
            tci_inside_fail("the url holds a space or a control character: write it as %%20 or so");
}

static void read_method(const json_t *arguments, struct tci_fetch *fetch)
{
    static const char *const methods[] = { "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE" };
    size_t length;
    const char *method = tci_inside_string(arguments, "method", false, &length);
    fetch->body = tci_inside_string(arguments, "body", false, &fetch->body_length);
    const char *given = method ? method : fetch->body ? "POST" : "GET";
    for (size_t i = 0; i < tci_array_size(methods); i++)
        if (strcmp(given, methods[i]) == 0)
            fetch->method = methods[i];
    if (!fetch->method)
        tci_inside_fail("the argument \"method\" is none of GET, HEAD, POST, PUT, PATCH, DELETE");
    if (fetch->body && (strcmp(given, "GET") == 0 || strcmp(given, "HEAD") == 0))
        tci_inside_fail("a %s request has no body: use POST or PUT", given);
}

/* The attack: a line end in a value, so that what follows is a header, or a request, of its own. */
static void check_header(const char *name, const json_t *value)
{
    static const char *const ours[] = { "host",       "content-length", "transfer-encoding",
                                        "connection", "upgrade",        "te",
                                        "trailer",    "expect" };
    const char *shown = tci_inside_shown(name, strlen(name));
    if (!*name || name[strspn(name, TCI_HTTP_TOKEN)])
        tci_inside_fail("%s is not the name of a header", shown);
    for (size_t i = 0; i < tci_array_size(ours); i++)
        if (strcasecmp(name, ours[i]) == 0)
            tci_inside_fail("the header %s is set by http_fetch itself: leave it out", shown);
    if (!json_is_string(value))
        tci_inside_fail("the value of the header %s is not a string", shown);
    const char *text = json_string_value(value);
    for (size_t i = 0; i < json_string_length(value); i++)
        if (((unsigned char)text[i] < ' ' && text[i] != '\t') || text[i] == 0x7f)
            tci_inside_fail("the value of the header %s holds a line end or a control character",
                            shown);
}

static void *read_headers(const json_t *arguments, const struct tci_curl *curl)
{
    json_t *headers = json_object_get(arguments, "headers");
    void *list = curl->slist_append(NULL,
                                    "Expect:"); /* else it waits a second before a large body */
    const char *name;
    json_t *value;
    if (headers && !json_is_object(headers))
        tci_inside_fail("the argument \"headers\" is not an object");
    json_object_foreach(headers, name, value)
    {
        check_header(name, value);
        struct tci_buf line = TCI_BUF_INIT(65536);
        const char *text = json_string_value(value);
        /* libcurl takes "Name:" for a header to leave out, and "Name;" for one without a value. */
        bool empty = text[strspn(text, " \t")] == '\0';
        tci_buf_printf(&line, "%s%s", name, empty ? ";" : ": ");
        tci_buf_string(&line, empty ? "" : text);
        void *longer = line.data && !line.too_large ? curl->slist_append(list, line.data) : NULL;
        if (!longer)
            tci_inside_fail("the headers are too large");
        list = longer;
        tci_buf_free(&line);
    }
    return list;
}

static void set_request(const struct tci_curl *curl, void *handle, const struct tci_fetch *fetch)
{
    bool is_get = strcmp(fetch->method, "GET") == 0, is_head = strcmp(fetch->method, "HEAD") == 0;
    bool is_post = strcmp(fetch->method, "POST") == 0;
    if (is_head)
        curl->setopt(handle, TCI_CURL_NO_BODY, 1L);
    if (is_post || fetch->body) {
        curl->setopt(handle, TCI_CURL_HTTP_POST, 1L);
        curl->setopt(handle, TCI_CURL_BODY, fetch->body ? fetch->body : "");
        curl->setopt(handle, TCI_CURL_BODY_SIZE, (int64_t)fetch->body_length);
    }
    /* libcurl keeps a method that is given as text when it follows a redirect, and changes its own. */
    if (!is_get && !is_head && !is_post)
        curl->setopt(handle, TCI_CURL_METHOD, fetch->method);
}

static void set_bounds(const struct tci_curl *curl, void *handle, const struct tci_fetch *fetch)
{
    const char *certificates = getenv("SSL_CERT_FILE"); /* from the policy's `env` */
    long both = TCI_CURL_HTTP | TCI_CURL_HTTPS;
    /* The attack: a redirect to file:, ftp: or gopher:. The oldest form of these options works in
     * every version; if one is refused, so is the request. */
    if (curl->setopt(handle, TCI_CURL_PROTOCOLS, both) != TCI_CURL_OK ||
        curl->setopt(handle, TCI_CURL_REDIRECT_PROTOCOLS, both) != TCI_CURL_OK)
        tci_inside_fail("libcurl in this cage cannot be held to http and https");
    curl->setopt(handle, TCI_CURL_PROXY, ""); /* whatever the environment says */
    curl->setopt(handle, TCI_CURL_FOLLOW, fetch->follow ? 1L : 0L);
    curl->setopt(handle, TCI_CURL_MAX_REDIRECTS, (long)REDIRECTS_MAX);
    curl->setopt(handle, TCI_CURL_NO_SIGNAL, 1L);
    curl->setopt(handle, TCI_CURL_TIMEOUT_MS, (long)fetch->timeout * 1000);
    curl->setopt(handle, TCI_CURL_USER_AGENT, "toolcage");
    curl->setopt(handle, TCI_CURL_ENCODINGS, "");
    if (certificates && *certificates)
        curl->setopt(handle, TCI_CURL_CA_FILE, certificates);
}

int tci_inside_http_fetch(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    const json_t *arguments = tci_inside_arguments();
    struct tci_fetch *fetch = tci_inside_alloc(sizeof *fetch);
    struct tci_curl curl;
    read_url(arguments, fetch);
    read_method(arguments, fetch);
    fetch->timeout = tci_inside_integer(arguments, "timeout", 1, TIMEOUT_MAX, TIMEOUT);
    fetch->max_bytes = (size_t)tci_inside_integer(arguments, "max_bytes", 1, TCI_FETCH_BODY_MAX,
                                                  TCI_FETCH_BODY);
    fetch->follow = tci_inside_bool(arguments, "follow_redirects", true);
    open_curl(&curl);
    void *handle = curl.global_init(TCI_CURL_GLOBAL_ALL) == TCI_CURL_OK ? curl.easy_init() : NULL;
    if (!handle)
        tci_inside_fail("libcurl cannot be started in this cage");
    curl.setopt(handle, TCI_CURL_URL, fetch->url);
    curl.setopt(handle, TCI_CURL_HEADERS, read_headers(arguments, &curl));
    set_request(&curl, handle, fetch);
    set_bounds(&curl, handle, fetch);
    tci_fetch_perform(&curl, handle, fetch);
    return 0;
}
