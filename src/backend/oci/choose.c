/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: which engine and runtime make a container. What the policy names is taken or refused, never
 * exchanged for another: engines differ in who their containers are on the host, and in what they keep.
 *
 * Where it names nothing, the order is stated and does not depend on the tool:
 *   an ordinary user: Podman (rootless), Docker if its daemon answers, crun, runc;
 *   root: crun, runc, Docker if its daemon answers, Podman. Root has no rootless Podman, and the
 *   runtimes alone start fastest and keep every clause that any of them keeps;
 *   with `rootfs`, which engines do not know, and for named runtimes: no engine.
 */
#include "backend/oci/choose.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "backend/engine_socket.h"
#include "backend/host.h"
#include "backend/probe_exec.h"

enum { PING_LIMIT_MS = 1000 };
static_assert((int)TCI_OCI_SOCKET_MAX == (int)TCI_ENGINE_PLACE_MAX, "copied as they are");

static const struct {
    const char *name, *remedy;
} programs[] = {
    [TCI_OCI_CRUN] = { "crun", "sudo apt install crun" },
    [TCI_OCI_RUNC] = { "runc", "sudo apt install runc" },
    [TCI_OCI_RUNSC] = { "runsc", "sudo apt install runsc (Debian), or install gVisor as its "
                                 "documentation says" },
};

const char *tci_oci_ready_name(const struct tci_oci_choice *choice)
{
    if (choice->engine == TCI_OCI_ENGINE_PODMAN)
        return "oci/podman";
    if (choice->engine == TCI_OCI_ENGINE_DOCKER)
        return "oci/docker";
    return choice->runtime == TCI_OCI_RUNSC  ? "gvisor"
           : choice->runtime == TCI_OCI_RUNC ? "oci/runc"
                                             : "oci/crun";
}

/* ---- what is there ------------------------------------------------------------------------- */

/* Why the first socket that is there is of no use; problem 0: there was none. */
struct tried {
    char place[TCI_ENGINE_PLACE_MAX];
    int problem; /* EPERM: it is the user's `peer` */
    uid_t peer;
};

/* An engine answers, and is not somebody else's: another user's "engine" could hand out any container
 * as ours. root's and one's own are trusted, as they are anyway. */
static bool answers(const char *place, struct tci_engine_answer *ret, struct tried *tried)
{
    int problem = tci_engine_ping(place, PING_LIMIT_MS, ret);
    if (problem == 0 && ret->peer != 0 && ret->peer != geteuid())
        problem = EPERM;
    if (problem && problem != ENOENT && !tried->problem) {
        (void)snprintf(tried->place, sizeof tried->place, "%.*s", (int)sizeof tried->place - 1,
                       place);
        tried->problem = problem;
        tried->peer = ret->peer;
    }
    return problem == 0;
}

static bool find_docker(struct tci_oci_choice *choice, struct tried *tried)
{
    char places[3][TCI_ENGINE_PLACE_MAX];
    const size_t count = tci_docker_places(places);
    struct tci_engine_answer answer;
    for (size_t i = 0; i < count; i++) {
        if (!answers(places[i], &answer, tried))
            continue;
        choice->engine = TCI_OCI_ENGINE_DOCKER;
        choice->engine_is_rootless = answer.peer != 0;
        memcpy(choice->socket, places[i], sizeof choice->socket);
        (void)snprintf(choice->version, sizeof choice->version, "API %s", answer.api);
        return true;
    }
    return false;
}

/* A service that runs, or the program, which we start as one. Rootless it is of no use without the
 * helper that gives it its range of users. */
static bool find_podman(struct tci_oci_choice *choice, struct tried *tried)
{
    char places[3][TCI_ENGINE_PLACE_MAX], helper[PATH_MAX];
    const size_t count = tci_podman_places(choice->is_root, places);
    const char *host = getenv("CONTAINER_HOST");
    struct tci_engine_answer answer;
    for (size_t i = 0; i < count; i++) {
        if (!answers(places[i], &answer, tried))
            continue;
        choice->engine = TCI_OCI_ENGINE_PODMAN;
        choice->engine_is_rootless = answer.peer != 0;
        (void)tci_runtime_find("podman", choice->program);
        memcpy(choice->socket, places[i], sizeof choice->socket);
        (void)snprintf(choice->version, sizeof choice->version, "API %s", answer.api);
        return true;
    }
    if ((host && *host) || !tci_runtime_find("podman", choice->program) ||
        (!choice->is_root && !tci_runtime_find("newuidmap", helper)))
        return false;
    choice->engine = TCI_OCI_ENGINE_PODMAN;
    choice->engine_is_rootless = !choice->is_root;
    return true;
}

static bool find_runtime(struct tci_oci_choice *choice, enum tci_oci_runtime runtime)
{
    if (!tci_runtime_find(programs[runtime].name, choice->program))
        return false;
    choice->engine = TCI_OCI_ENGINE_NONE;
    choice->runtime = runtime;
    return true;
}

/* ---- what was asked for -------------------------------------------------------------------- */

static int missing(struct tc_error *reterr, const char *what, const char *remedy)
{
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "%s", what);
    tci_error_remedy(reterr, "%s", remedy);
    return -1;
}

static int take_runtime(struct tci_oci_choice *choice, enum tci_oci_runtime runtime,
                        struct tc_error *reterr)
{
    char what[64];
    if (find_runtime(choice, runtime))
        return runtime == TCI_OCI_RUNSC ? tci_oci_runsc(choice, reterr) : 0;
    (void)snprintf(what, sizeof what, "%s is not installed", programs[runtime].name);
    return missing(reterr, what, programs[runtime].remedy);
}

/* A socket is there, and cannot be used. */
static int no_use(const char *engine, const struct tried *tried, struct tc_error *reterr)
{
    char what[320], why[80];
    const char *remedy = "restart it; its log says more";
    if (tried->problem == EACCES) {
        (void)snprintf(why, sizeof why, "this user may not open it");
        remedy = strcmp(engine, "docker") == 0
                     ? "sudo usermod -aG docker USER, and log in again (who is in that group is as "
                       "good as root); or use rootless Podman"
                     : "let this user open it, or unset CONTAINER_HOST";
    } else if (tried->problem == EPERM) {
        (void)snprintf(why, sizeof why, "it is user %u's, neither root's nor one's own",
                       (unsigned)tried->peer);
        remedy = "name a socket of root's or of one's own";
    } else if (tried->problem == ETIMEDOUT) {
        (void)snprintf(why, sizeof why, "no answer within %d ms", PING_LIMIT_MS);
    } else {
        (void)snprintf(why, sizeof why, "%.70s", strerrordesc_np(tried->problem));
    }
    (void)snprintf(what, sizeof what,
                   "container.engine is \"%s\", and its socket %.110s is of no use: %s", engine,
                   tried->place, why);
    return missing(reterr, what, remedy);
}

static int take_engine(const struct tci_settings *s, struct tci_oci_choice *choice,
                       struct tc_error *reterr)
{
    const bool docker = strcmp(s->container.engine, "docker") == 0;
    const char *const variable = docker ? "DOCKER_HOST" : "CONTAINER_HOST";
    struct tried tried = { 0 };
    const char *place;
    char what[320];
    if (s->rootfs)
        return missing(reterr, "container engines run images, not a \"rootfs\"",
                       "set container.engine to \"none\", or use \"image\"");
    if (docker ? find_docker(choice, &tried) : find_podman(choice, &tried))
        return 0;
    place = getenv(variable);
    if (place && *place && strncmp(place, "unix:///", 8) != 0) {
        (void)snprintf(what, sizeof what, "%s is %.150s, and only engines on this host are used",
                       variable, place);
        return missing(reterr, what, "name a socket: unix:///run/docker.sock, or unset it");
    }
    if (tried.problem && tried.problem != ECONNREFUSED && (docker || (place && *place)))
        return no_use(s->container.engine, &tried, reterr);
    if (place && *place) {
        (void)snprintf(what, sizeof what, "container.engine is \"%s\", and none answers at %.150s",
                       s->container.engine, place);
        return missing(reterr, what,
                       docker ? "start it there, or unset DOCKER_HOST"
                              : "start it there, or unset CONTAINER_HOST");
    }
    if (docker)
        return missing(reterr,
                       "container.engine is \"docker\", and no Docker daemon answers at "
                       "/run/docker.sock",
                       "sudo apt install docker.io && sudo systemctl start docker; see "
                       "docker_daemon in toolcage doctor");
    return missing(reterr, "container.engine is \"podman\", which is not installed",
                   "sudo apt install podman uidmap slirp4netns");
}

static int take_first(const struct tci_settings *s, struct tci_oci_choice *choice,
                      struct tc_error *reterr)
{
    const bool engines = !s->rootfs && !choice->engine_given;
    struct tried tried = { 0 };
    if (engines && !choice->is_root && (find_podman(choice, &tried) || find_docker(choice, &tried)))
        return 0;
    if (find_runtime(choice, TCI_OCI_CRUN) || find_runtime(choice, TCI_OCI_RUNC))
        return 0;
    if (engines && choice->is_root && (find_docker(choice, &tried) || find_podman(choice, &tried)))
        return 0;
    return missing(reterr,
                   engines
                       ? "no container engine or runtime is there: no podman, docker, crun or runc"
                       : "no container runtime is there: neither crun nor runc",
                   engines && !choice->is_root ? "sudo apt install podman uidmap slirp4netns"
                                               : "sudo apt install crun");
}

static int runtime_of(const char *name)
{
    for (int i = 0; name && i < (int)tci_array_size(programs); i++)
        if (strcmp(programs[i].name, name) == 0)
            return i;
    return -1;
}

static void say_why(const struct tci_settings *s, struct tci_oci_choice *choice)
{
    const char *reason;
    if (s->backend == TCI_BACKEND_GVISOR)
        reason = "gvisor is runsc, without an engine";
    else if (choice->engine_given && choice->runtime_given)
        reason = "the policy names both";
    else if (choice->engine_given)
        reason = choice->engine == TCI_OCI_ENGINE_NONE
                     ? "no engine, says the policy; crun before runc"
                     : "the policy names it";
    else if (choice->runtime_given)
        reason = "the policy names it, and no engine";
    else if (s->rootfs)
        reason = "engines run images and not a rootfs; crun before runc";
    else if (choice->is_root)
        reason = "first found of crun, runc, docker, podman, the order for root";
    else
        reason = "first found of podman, docker, crun, runc, the order for ordinary users";
    (void)snprintf(choice->why, sizeof choice->why, "%s", reason);
}

static int choose(const struct tci_settings *s, struct tci_oci_choice *choice,
                  struct tc_error *reterr)
{
    const struct tci_container *c = &s->container;
    const bool gvisor = s->backend == TCI_BACKEND_GVISOR;
    const bool has_engine = c->engine && strcmp(c->engine, "none") != 0;
    const int runtime = gvisor && !c->runtime ? TCI_OCI_RUNSC : runtime_of(c->runtime);
    if (gvisor && runtime != TCI_OCI_RUNSC)
        return missing(reterr, "container.runtime must be \"runsc\" for backend gvisor",
                       "take it out, or use backend = \"oci\"");
    if (has_engine && runtime == TCI_OCI_RUNSC)
        return missing(reterr, "toolcage runs runsc itself, not through podman or docker",
                       "take container.engine out, or set it to \"none\"");
    if (has_engine) {
        choice->runtime = runtime < 0 ? TCI_OCI_RUNTIME_OF_ENGINE : (enum tci_oci_runtime)runtime;
        return take_engine(s, choice, reterr);
    }
    if (runtime >= 0)
        return take_runtime(choice, (enum tci_oci_runtime)runtime, reterr);
    choice->runtime = TCI_OCI_RUNTIME_OF_ENGINE;
    return take_first(s, choice, reterr);
}

int tci_oci_choose(const struct tci_settings *settings, struct tci_oci_choice *ret,
                   struct tc_error *reterr)
{
    memset(ret, 0, sizeof *ret);
    ret->engine_given = settings->container.engine != NULL;
    ret->runtime_given = settings->container.runtime != NULL;
    ret->is_root = tci_host_is_root();
    if (choose(settings, ret, reterr) < 0)
        return -1;
    say_why(settings, ret);
    return 0;
}
