/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: requests to a container engine over its unix socket. Every request has a time limit and
 * every answer a maximum; nothing is followed, no proxy is asked, and only HTTP is spoken, so that
 * neither the environment nor an answer can send a request anywhere else. libcurl is opened when
 * the first plan needs it: whoever has no engine does not need it.
 */
#include "backend/oci/api.h"

#include <dlfcn.h>
#include <string.h>
#include "base/quote.h"

const char *tci_api_name(const struct tci_api *api)
{
    return api->engine == TCI_OCI_ENGINE_DOCKER ? "Docker" : "Podman";
}

static int missing(struct tc_error *reterr, const char *why)
{
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                  "container engines are spoken to with libcurl.so.4: %s",
                  why ? why : "it could not be opened");
    tci_error_remedy(reterr, "sudo apt install libcurl4; or set container.engine = \"none\"");
    return -1;
}

/* It stays loaded: its exit handlers and threads would be without their code. */
static int open_curl(struct tci_curl *curl, struct tc_error *reterr)
{
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library)
        library = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library)
        return missing(reterr, dlerror());
    const struct {
        const char *name;
        void *target;
    } wanted[] = {
        { "curl_global_init", &curl->global_init },   { "curl_easy_init", &curl->easy_init },
        { "curl_easy_setopt", &curl->setopt },        { "curl_easy_perform", &curl->perform },
        { "curl_easy_getinfo", &curl->getinfo },      { "curl_slist_append", &curl->slist_append },
        { "curl_easy_strerror", &curl->strerror },    { "curl_easy_cleanup", &curl->easy_cleanup },
        { "curl_slist_free_all", &curl->slist_free },
    };
    for (size_t i = 0; i < tci_array_size(wanted); i++) {
        void *found = dlsym(library, wanted[i].name);
        if (!found)
            return missing(reterr, "it is too old");
        /* POSIX lets a pointer to an object become one to a function only by its bytes. */
        memcpy(wanted[i].target, &found, sizeof found);
    }
    /* "Nothing": no TLS library is started, whose state belongs to the host's own use of it. */
    if (curl->global_init(TCI_CURL_GLOBAL_NOTHING) != TCI_CURL_OK)
        return missing(reterr, "it could not be started");
    return 0;
}

int tci_api_open(struct tci_api *api, enum tci_oci_engine engine, const char *socket,
                 struct tc_error *reterr)
{
    size_t length = strlen(socket);
    api->engine = engine;
    if (length >= sizeof api->socket)
        return tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                             "the path of the engine's socket is too long: %.200s", socket);
    memcpy(api->socket, socket, length + 1);
    api->prefix[0] = '\0';
    return open_curl(&api->curl, reterr);
}

/* The attack: an answer without an end, which fills the host's memory. */
static size_t take(char *bytes, size_t size, size_t count, void *data)
{
    struct tci_api_answer *answer = data;
    size_t length = size * count;
    tci_buf_append(&answer->body, bytes, length);
    return answer->body.no_memory || answer->body.too_large ? 0 : length;
}

static size_t take_header(char *bytes, size_t size, size_t count, void *data)
{
    tci_api_take_header(data, bytes, size * count);
    return size * count;
}

static int progress(void *data, int64_t total_in, int64_t in, int64_t total_out, int64_t out)
{
    const atomic_bool *abort = data;
    (void)total_in, (void)in, (void)total_out, (void)out;
    return atomic_load(abort) ? 1 : 0;
}

static void *prepare(const struct tci_api *api, const struct tci_api_request *request,
                     const char *url, struct tci_api_answer *answer, char *problem)
{
    const struct tci_curl *curl = &api->curl;
    void *handle = curl->easy_init();
    if (!handle)
        return NULL;
    /* Without these two a request could leave the socket for the network. */
    if (curl->setopt(handle, TCI_CURL_UNIX_SOCKET, api->socket) != TCI_CURL_OK ||
        curl->setopt(handle, TCI_CURL_PROTOCOLS, (long)TCI_CURL_HTTP) != TCI_CURL_OK) {
        curl->easy_cleanup(handle);
        return NULL;
    }
    curl->setopt(handle, TCI_CURL_PROXY, "");
    curl->setopt(handle, TCI_CURL_FOLLOW, 0L);
    curl->setopt(handle, TCI_CURL_NO_SIGNAL, 1L);
    curl->setopt(handle, TCI_CURL_CONNECT_TIMEOUT_MS, (long)TCI_API_CONNECT_MS);
    curl->setopt(handle, TCI_CURL_TIMEOUT_MS, request->limit_ms);
    curl->setopt(handle, TCI_CURL_USER_AGENT, "toolcage");
    curl->setopt(handle, TCI_CURL_URL, url);
    curl->setopt(handle, TCI_CURL_ERROR_TEXT, problem);
    curl->setopt(handle, TCI_CURL_WRITE, take);
    curl->setopt(handle, TCI_CURL_WRITE_DATA, answer);
    curl->setopt(handle, TCI_CURL_HEADER, take_header);
    curl->setopt(handle, TCI_CURL_HEADER_DATA, answer);
    if (request->abort) {
        curl->setopt(handle, TCI_CURL_PROGRESS, progress);
        curl->setopt(handle, TCI_CURL_PROGRESS_DATA, request->abort);
        curl->setopt(handle, TCI_CURL_NO_PROGRESS, 0L);
    }
    if (strcmp(request->method, "POST") == 0) {
        curl->setopt(handle, TCI_CURL_HTTP_POST, 1L);
        curl->setopt(handle, TCI_CURL_BODY, request->body ? request->body : "");
        curl->setopt(handle, TCI_CURL_BODY_SIZE,
                     request->body ? (int64_t)request->length : (int64_t)0);
    } else if (strcmp(request->method, "GET") != 0) {
        curl->setopt(handle, TCI_CURL_METHOD, request->method);
    }
    return handle;
}

static int failed(const struct tci_api *api, const struct tci_api_request *request,
                  const struct tci_api_answer *answer, int code, const char *problem,
                  struct tc_error *reterr)
{
    const char *name = tci_api_name(api);
    char shown[TCI_QUOTE_MAX];
    if (answer->body.no_memory)
        return tci_error_no_memory(reterr);
    if (answer->body.too_large)
        return tci_error_set(reterr, TC_ERROR_IO, "%s at %s answers with more than %d bytes", name,
                             api->socket, TCI_API_ANSWER_MAX);
    if (code == TCI_CURL_TIMEOUT)
        tci_error_set(reterr, TC_ERROR_IO, "%s at %s did not answer within %ld s", name,
                      api->socket, request->limit_ms / 1000);
    else if (code == TCI_CURL_ABORTED)
        return tci_error_set(reterr, TC_ERROR_IO, "a request to %s was given up", name);
    else if (code == TCI_CURL_NO_CONNECTION)
        tci_error_set(reterr, TC_ERROR_IO, "%s cannot be reached at %s: is it running?", name,
                      api->socket);
    else
        return tci_error_set(
            reterr, TC_ERROR_IO, "%s at %s gave no answer that can be used: %s", name, api->socket,
            *problem ? tci_quote(problem, strlen(problem), shown) : api->curl.strerror(code));
    tci_error_remedy(reterr, api->engine == TCI_OCI_ENGINE_DOCKER
                                 ? "sudo systemctl restart docker; its log says more"
                                 : "systemctl --user restart podman.socket; or leave the service "
                                   "to toolcage");
    return -1;
}

int tci_api_send(const struct tci_api *api, const struct tci_api_request *request,
                 struct tci_api_answer *ret, struct tc_error *reterr)
{
    const struct tci_curl *curl = &api->curl;
    char url[1024], problem[TCI_CURL_ERROR_SIZE] = "";
    void *handle, *headers, *more;
    long status = 0;
    int code, length = snprintf(url, sizeof url, "http://engine%s%s", api->prefix, request->path);
    *ret = (struct tci_api_answer){ .body = TCI_BUF_INIT(TCI_API_ANSWER_MAX) };
    if (length < 0 || (size_t)length >= sizeof url)
        return tci_error_set(reterr, TC_ERROR_TOO_LARGE, "a request to %s is too long",
                             tci_api_name(api));
    handle = prepare(api, request, url, ret, problem);
    if (!handle)
        return missing(reterr, "it cannot use unix sockets");
    headers = curl->slist_append(NULL, "Expect:"); /* else it waits before a large body */
    more = headers ? curl->slist_append(headers, "Content-Type: application/json") : NULL;
    if (!more) {
        curl->slist_free(headers);
        curl->easy_cleanup(handle);
        return tci_error_no_memory(reterr);
    }
    curl->setopt(handle, TCI_CURL_HEADERS, more);
    code = curl->perform(handle);
    if (code == TCI_CURL_OK)
        curl->getinfo(handle, TCI_CURL_STATUS, &status);
    curl->easy_cleanup(handle);
    curl->slist_free(more);
    ret->status = (int)status;
    return code == TCI_CURL_OK ? 0 : failed(api, request, ret, code, problem, reterr);
}

void tci_api_answer_free(struct tci_api_answer *answer)
{
    tci_buf_free(&answer->body);
}
