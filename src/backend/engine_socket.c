/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: one request to an engine's socket, and where those sockets are. HTTP/1.0, so that the answer
 * ends with the connection and comes in one piece. Trusts nothing of the answer: it is cut off at the
 * buffer, and waited for no longer than the caller says.
 */
#include "backend/engine_socket.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "base/fd.h"

static long now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* 0 or an errno. */
static int connect_to(const char *path, int *ret_fd, uid_t *ret_peer)
{
    struct ucred peer = { .uid = (uid_t)-1 };
    socklen_t length = sizeof peer;
    int fd = tci_unix_connect(path);
    if (fd < 0)
        return errno;
    (void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length);
    if (ret_peer)
        *ret_peer = peer.uid;
    *ret_fd = fd;
    return 0;
}

int tci_engine_get(const char *socket_path, const char *what, int limit_ms, char *answer,
                   size_t size, uid_t *ret_peer)
{
    char request[128];
    size_t used = 0;
    long deadline = now_ms() + limit_ms;
    int fd = -1, problem = connect_to(socket_path, &fd, ret_peer);
    int length = snprintf(request, sizeof request, "GET %s HTTP/1.0\r\nHost: docker\r\n\r\n", what);
    answer[0] = '\0';
    if (problem)
        return problem;
    if (send(fd, request, (size_t)length, MSG_NOSIGNAL) != length)
        problem = errno ? errno : EIO;
    while (!problem && used + 1 < size) {
        struct pollfd polled = { .fd = fd, .events = POLLIN };
        long left = deadline - now_ms();
        ssize_t n;
        if (left <= 0 || poll(&polled, 1, (int)left) == 0) {
            problem = ETIMEDOUT;
            break;
        }
        n = recv(fd, answer + used, size - 1 - used, 0);
        if (n == 0)
            break;
        if (n > 0)
            used += (size_t)n;
        else if (errno != EINTR && errno != EAGAIN)
            problem = errno;
    }
    (void)close(fd);
    answer[used] = '\0';
    return problem;
}

bool tci_engine_is_ok(const char *answer)
{
    return strncmp(answer, "HTTP/1.", 7) == 0 && strncmp(answer + 8, " 200", 4) == 0;
}

int tci_engine_ping(const char *socket_path, int limit_ms, struct tci_engine_answer *ret)
{
    static const char name[] = "\r\nApi-Version: ";
    char answer[4096];
    const char *header;
    int problem = tci_engine_get(socket_path, "/_ping", limit_ms, answer, sizeof answer,
                                 &ret->peer);
    (void)snprintf(ret->api, sizeof ret->api, "?");
    if (problem)
        return problem;
    if (!tci_engine_is_ok(answer))
        return EPROTO;
    header = strcasestr(answer, name);
    if (header)
        (void)sscanf(header + strlen(name), "%15[0-9.]", ret->api);
    return 0;
}

/* ---- where they are ------------------------------------------------------------------------ */

static size_t add(char to[3][TCI_ENGINE_PLACE_MAX], size_t count, const char *directory,
                  const char *name)
{
    int n = snprintf(to[count], TCI_ENGINE_PLACE_MAX, "%s%s", directory, name);
    return count + (n > 0 && n < TCI_ENGINE_PLACE_MAX);
}

/* A variable that names a socket speaks alone: asking another engine than the one that the user has
 * named would be a fallback. */
static bool is_named(const char *variable, char to[3][TCI_ENGINE_PLACE_MAX], size_t *ret_count)
{
    const char *value = getenv(variable);
    *ret_count = 0;
    if (!value || !*value)
        return false;
    if (strncmp(value, "unix:///", 8) == 0)
        *ret_count = add(to, 0, value + strlen("unix://"), "");
    return true;
}

size_t tci_docker_places(char ret[3][TCI_ENGINE_PLACE_MAX])
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    size_t count;
    if (is_named("DOCKER_HOST", ret, &count))
        return count;
    if (runtime && runtime[0] == '/')
        count = add(ret, count, runtime, "/docker.sock");
    count = add(ret, count, "/run/docker.sock", "");
    return add(ret, count, "/var/run/docker.sock", "");
}

size_t tci_podman_places(bool is_root, char ret[3][TCI_ENGINE_PLACE_MAX])
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    size_t count;
    if (is_named("CONTAINER_HOST", ret, &count))
        return count;
    if (is_root)
        return add(ret, count, "/run/podman/podman.sock", "");
    if (runtime && runtime[0] == '/')
        count = add(ret, count, runtime, "/podman/podman.sock");
    return count;
}
