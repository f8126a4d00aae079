/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: requests to a container engine over its unix socket. Every request has a time limit and
 * every answer a maximum; nothing is followed, no proxy is asked, and only HTTP is spoken, so that
 * neither the environment nor an answer can send a request anywhere else; and who listens is looked
 * at each time. libcurl is opened when the first plan needs it:
 * whoever has no engine does not need it.
 */
#include "backend/oci/api.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/quote.h"

#define HELD_PATH "/proc/self/fd/%d"

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

static int open_curl(struct tci_curl *curl, struct tc_error *reterr)
{
    const char *lacks = tci_curl_open(curl);
    if (lacks)
        return missing(reterr, *lacks ? "it is too old" : dlerror());
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

/* The attack: the path of the socket leads through a directory of somebody else, who exchanges it
 * after the engine was asked who it is, gets what was meant for root's engine, and answers with
 * containers and images of his own. So each request holds the socket itself, looks who listens on
 * it, and has libcurl connect to that one and no other. Returns the handle; or a negative errno,
 * -EPERM for another user's. */
static int hold_socket(const char *path)
{
    const struct timeval limit = { .tv_sec = TCI_API_CONNECT_MS / 1000 };
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct ucred peer = { .uid = (uid_t)-1 };
    socklen_t size = sizeof peer;
    tc_cleanup(tci_closep) int held = -1, line = -1;
    held = open(path, O_PATH | O_CLOEXEC);
    if (held < 0)
        return -errno;
    (void)snprintf(address.sun_path, sizeof address.sun_path, HELD_PATH, held);
    line = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (line < 0 || setsockopt(line, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) < 0 ||
        connect(line, (const struct sockaddr *)&address, sizeof address) < 0 ||
        getsockopt(line, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return -errno;
    return peer.uid == 0 || peer.uid == geteuid() ? tci_take_fd(&held) : -EPERM;
}

static void *prepare(const struct tci_api *api, const struct tci_api_request *request,
                     const char *url, int held, struct tci_api_answer *answer, char *problem)
{
    const struct tci_curl *curl = &api->curl;
    void *handle = curl->easy_init();
    char path[sizeof HELD_PATH + 12];
    if (!handle)
        return NULL;
    /* Without these two a request could leave the socket for the network. */
    (void)snprintf(path, sizeof path, HELD_PATH, held);
    if (curl->setopt(handle, TCI_CURL_UNIX_SOCKET, path) != TCI_CURL_OK ||
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
    } else if (strcmp(request->method, "HEAD") == 0) {
        curl->setopt(handle, TCI_CURL_NO_BODY, 1L);
    } else if (strcmp(request->method, "GET") != 0) {
        curl->setopt(handle, TCI_CURL_METHOD, request->method);
    }
    return handle;
}

static void add_remedy(const struct tci_api *api, struct tc_error *reterr)
{
    tci_error_remedy(reterr, api->engine == TCI_OCI_ENGINE_DOCKER
                                 ? "sudo systemctl restart docker; its log says more"
                                 : "systemctl --user restart podman.socket; or leave the service "
                                   "to toolcage");
}

static int unreachable(const struct tci_api *api, int problem, struct tc_error *reterr)
{
    if (problem == EPERM) {
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                      "the socket %s is another user's, neither root's nor one's own: nothing is "
                      "sent to it",
                      api->socket);
        tci_error_remedy(reterr, "name the engine's own socket, in a directory that nobody else "
                                 "can write to");
        return -1;
    }
    tci_error_set(reterr, TC_ERROR_IO, "%s cannot be reached at %s: %s: is it running?",
                  tci_api_name(api), api->socket, strerrordesc_np(problem));
    add_remedy(api, reterr);
    return -1;
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
                      api->socket, (request->limit_ms + 999) / 1000);
    else if (code == TCI_CURL_ABORTED)
        return tci_error_set(reterr, TC_ERROR_IO, "a request to %s was given up", name);
    else if (code == TCI_CURL_NO_CONNECTION)
        tci_error_set(reterr, TC_ERROR_IO, "%s cannot be reached at %s: is it running?", name,
                      api->socket);
    else
        return tci_error_set(
            reterr, TC_ERROR_IO, "%s at %s gave no answer that can be used: %s", name, api->socket,
            *problem ? tci_quote(problem, strlen(problem), shown) : api->curl.strerror(code));
    add_remedy(api, reterr);
    return -1;
}

int tci_api_send(const struct tci_api *api, const struct tci_api_request *request,
                 struct tci_api_answer *ret, struct tc_error *reterr)
{
    const struct tci_curl *curl = &api->curl;
    char url[1024], problem[TCI_CURL_ERROR_SIZE] = "";
    tc_cleanup(tci_closep) int held = -1;
    void *handle, *headers, *more;
    long status = 0;
    int code, length = snprintf(url, sizeof url, "http://engine%s%s", api->prefix, request->path);
    *ret = (struct tci_api_answer){ .body = TCI_BUF_INIT(TCI_API_ANSWER_MAX) };
    if (length < 0 || (size_t)length >= sizeof url)
        return tci_error_set(reterr, TC_ERROR_TOO_LARGE, "a request to %s is too long",
                             tci_api_name(api));
    held = hold_socket(api->socket);
    if (held < 0)
        return unreachable(api, -held, reterr);
    handle = prepare(api, request, url, held, ret, problem);
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
