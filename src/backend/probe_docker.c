/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: does a Docker daemon answer on its local socket, and what can it limit? Sends two requests
 * that change nothing: GET /_ping and GET /info.
 */
#include "backend/engine_socket.h"
#include "backend/probe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { ANSWER_LIMIT_MS = 1000, ANSWER_MAX = 65536 };

static const char REMEDY_MISSING[] =
    "sudo apt install docker.io && sudo systemctl start docker; or rootless Docker: "
    "dockerd-rootless-setuptool.sh install";
static const char REMEDY_DOWN[] = "sudo systemctl start docker";
static const char REMEDY_ACCESS[] =
    "use rootless Docker (dockerd-rootless-setuptool.sh install) or Podman; or join the group "
    "docker, which is as good as being root: sudo usermod -aG docker $USER";

/*
 * The daemon writes JSON without blanks. A name that somebody else chose and that contains these
 * very words would have its quotes escaped, so that the plain text can only be the real key.
 */
static void limits(const struct tci_probe *p, const char *socket_path)
{
    const enum tci_feature id = TCI_FEATURE_DOCKER_LIMITS;
    static char answer[ANSWER_MAX];
    bool memory, pids, cpu;
    int problem = tci_engine_get(socket_path, "/info", ANSWER_LIMIT_MS, answer, sizeof answer,
                                 NULL);
    if (problem || !tci_engine_is_ok(answer)) {
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
    struct tci_engine_answer answer;
    int problem = tci_engine_ping(path, ANSWER_LIMIT_MS, &answer);
    if (problem)
        return problem;
    tci_probe_yes(p, TCI_FEATURE_DOCKER_DAEMON, "API %s at %.100s", answer.api, path);
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
    char places[3][TCI_ENGINE_PLACE_MAX];
    const size_t count = tci_docker_places(places);
    int problem = ENOENT;
    size_t told = 0; /* which refusal is worth reporting: the first that is not "there is none" */
    if (count == 0) {
        tci_probe_unknown(p, TCI_FEATURE_DOCKER_DAEMON, "unset DOCKER_HOST",
                          "DOCKER_HOST is not a local socket: not tried");
        tci_probe_unknown(p, TCI_FEATURE_DOCKER_LIMITS, "see docker_daemon", "no daemon was asked");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        int refusal = ask(p, places[i]);
        if (refusal == 0)
            return;
        if (problem == ENOENT || problem == ENOTDIR) {
            problem = refusal;
            told = i;
        }
    }
    refused(p, problem == ENOENT && count > 1 ? "/run/docker.sock" : places[told], problem);
}
