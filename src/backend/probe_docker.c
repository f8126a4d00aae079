/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: does a Docker daemon answer on its local socket, and what can it limit? Sends two requests
 * that change nothing: GET /_ping and GET /info. HTTP/1.0, so that the answer ends with the
 * connection and comes in one piece.
 */
#include "backend/probe.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_LIMIT_MS = 1000, ANSWER_MAX = 65536, PLACE_MAX = 108 };

static const char REMEDY_MISSING[] =
    "sudo apt install docker.io && sudo systemctl start docker; or rootless Docker: "
    "dockerd-rootless-setuptool.sh install";
static const char REMEDY_DOWN[] = "sudo systemctl start docker";
static const char REMEDY_ACCESS[] =
    "use rootless Docker (dockerd-rootless-setuptool.sh install) or Podman; or join the group "
    "docker, which is as good as being root: sudo usermod -aG docker $USER";

static long now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* 0 or an errno. */
static int connect_to(const char *path, int *ret_fd)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int problem, fd;
    if (strlen(path) >= sizeof address.sun_path)
        return ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path));
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return errno;
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) < 0) {
        problem = errno;
        (void)close(fd);
        return problem;
    }
    *ret_fd = fd;
    return 0;
}

/* One request. 0 and the answer as text, or an errno. */
static int get(const char *socket_path, const char *what, char *answer, size_t size)
{
    char request[128];
    size_t used = 0;
    long deadline = now_ms() + ANSWER_LIMIT_MS;
    int fd = -1, problem = connect_to(socket_path, &fd);
    int length = snprintf(request, sizeof request, "GET %s HTTP/1.0\r\nHost: docker\r\n\r\n", what);
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

static bool is_ok(const char *answer)
{
    return strncmp(answer, "HTTP/1.", 7) == 0 && strncmp(answer + 8, " 200", 4) == 0;
}

/*
 * The daemon writes JSON without blanks. A name that somebody else chose and that contains these
 * very words would have its quotes escaped, so that the plain text can only be the real key.
 */
static void limits(const struct tci_probe *p, const char *socket_path)
{
    const enum tci_feature id = TCI_FEATURE_DOCKER_LIMITS;
    static char answer[ANSWER_MAX];
    bool memory, pids, cpu;
    int problem = get(socket_path, "/info", answer, sizeof answer);
    if (problem || !is_ok(answer)) {
        tci_probe_unknown(p, id, NULL, "the daemon does not say: %s",
                          problem ? strerrordesc_np(problem) : "no HTTP 200");
        return;
    }
    memory = strstr(answer, "\"MemoryLimit\":true");
    pids = strstr(answer, "\"PidsLimit\":true");
    cpu = strstr(answer, "\"CpuCfsQuota\":true");
    if (memory && pids && cpu)
        tci_probe_yes(p, id, "memory, processes and processors");
    else
        tci_probe_no(p, id, "give the daemon control groups: see cgroup",
                     "memory %s, processes %s, processors %s", memory ? "yes" : "no",
                     pids ? "yes" : "no", cpu ? "yes" : "no");
}

/* Asks the daemon at `path`; 0 if it answered (and that is reported), or an errno. */
static int ask(const struct tci_probe *p, const char *path)
{
    static char answer[ANSWER_MAX];
    char version[16] = "?";
    const char *header;
    int problem = get(path, "/_ping", answer, sizeof answer);
    if (problem)
        return problem;
    if (!is_ok(answer))
        return EPROTO;
    header = strcasestr(answer, "\r\nApi-Version: ");
    if (header)
        (void)sscanf(header + strlen("\r\nApi-Version: "), "%15[0-9.]", version);
    tci_probe_yes(p, TCI_FEATURE_DOCKER_DAEMON, "API %s at %.100s", version, path);
    limits(p, path);
    return 0;
}

static void refused(const struct tci_probe *p, const char *path, int problem)
{
    const enum tci_feature id = TCI_FEATURE_DOCKER_DAEMON;
    const char *text = strerrordesc_np(problem);
    if (problem == ENOENT || problem == ENOTDIR)
        tci_probe_no(p, id, REMEDY_MISSING, "no socket at %.100s", path);
    else if (problem == EACCES || problem == EPERM)
        tci_probe_no(p, id, REMEDY_ACCESS, "%.100s: %s", path, text);
    else if (problem == ECONNREFUSED || problem == ETIMEDOUT)
        tci_probe_no(p, id, REMEDY_DOWN, "%.100s: %s", path, text);
    else
        tci_probe_refused(p, id, NULL, path, problem);
    tci_probe_failed(p, TCI_FEATURE_DOCKER_LIMITS, "see docker_daemon", problem,
                     "no daemon answers");
}

void tci_probe_docker_daemon(const struct tci_probe *p)
{
    const char *host = getenv("DOCKER_HOST"), *runtime = getenv("XDG_RUNTIME_DIR");
    char rootless[PLACE_MAX];
    int problem;
    if (host && *host) {
        if (strncmp(host, "unix:///", 8) != 0) {
            tci_probe_unknown(p, TCI_FEATURE_DOCKER_DAEMON, "unset DOCKER_HOST",
                              "DOCKER_HOST is not a local socket: not tried");
            tci_probe_unknown(p, TCI_FEATURE_DOCKER_LIMITS, "see docker_daemon",
                              "no daemon was asked");
        } else if ((problem = ask(p, host + strlen("unix://")))) {
            refused(p, host + strlen("unix://"), problem);
        }
        return;
    }
    if (runtime && runtime[0] == '/') {
        (void)snprintf(rootless, sizeof rootless, "%.90s/docker.sock", runtime);
        if (ask(p, rootless) == 0)
            return;
    }
    problem = ask(p, "/run/docker.sock");
    if (problem == ENOENT)
        problem = ask(p, "/var/run/docker.sock");
    if (problem)
        refused(p, "/run/docker.sock", problem);
}
