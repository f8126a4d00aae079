/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the tests of a container's plan share: a plan without a host, a directory with what policies
 * grant, and asking JSON. */
#ifndef TCI_TESTS_OCI_SUPPORT_H
#define TCI_TESTS_OCI_SUPPORT_H

#include "support.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "backend/oci/plan.h"
#include "base/fd.h"

/* ---- a plan without a host ---------------------------------------------------------------------------- */

static char host[64]; /* a directory with what the policies grant */

struct made {
    struct tc_policy *policy;
    struct tci_oci_plan *plan;
    json_t *config;
    struct tc_error error;
};

struct how {
    enum tci_oci_engine engine;
    enum tci_oci_runtime runtime;
    bool user, rootless; /* not root; the engine is not */
    const char *library;
};

__attribute__((unused)) static const struct how crun = { .runtime = TCI_OCI_CRUN };
__attribute__((unused)) static const struct how runc = { .runtime = TCI_OCI_RUNC };
__attribute__((unused)) static const struct how runsc = { .runtime = TCI_OCI_RUNSC };
__attribute__((unused)) static const struct how crun_user = { .runtime = TCI_OCI_CRUN,
                                                              .user = true };
__attribute__((unused)) static const struct how runc_user = { .runtime = TCI_OCI_RUNC,
                                                              .user = true };
__attribute__((unused)) static const struct how podman = { .engine = TCI_OCI_ENGINE_PODMAN,
                                                           .runtime = TCI_OCI_RUNTIME_OF_ENGINE,
                                                           .user = true,
                                                           .rootless = true };
__attribute__((unused)) static const struct how docker = { .engine = TCI_OCI_ENGINE_DOCKER,
                                                           .runtime = TCI_OCI_RUNTIME_OF_ENGINE };

static inline int compile_plan(struct tci_oci_plan *plan, struct tc_error *reterr)
{
    if (tci_writables_note(plan->arena, plan->spec.policy, &plan->spec.settings->filesystem,
                           &plan->writables, reterr) < 0 ||
        tci_oci_users(plan, reterr) < 0 || tci_oci_mounts(plan, reterr) < 0 ||
        tci_oci_seccomp(plan, reterr) < 0)
        return -1;
    return plan->choice.engine == TCI_OCI_ENGINE_NONE ? tci_oci_spec(plan, reterr) : 0;
}

/* HOST in the text stands for the directory. */
static inline int make(const struct how *how, const char *settings, struct made *ret)
{
    char text[4000], *at;
    struct tci_arena *arena = tci_arena_new();
    struct tci_oci_plan *plan = tci_arena_new_of(arena, struct tci_oci_plan);
    const struct tci_tool *tool;
    (void)snprintf(text, sizeof text, "[tool.t]\nbackend = \"oci\"\n%s\n", settings);
    while ((at = strstr(text, "HOST"))) {
        char rest[4000];
        (void)snprintf(rest, sizeof rest, "%s", at + 4);
        (void)snprintf(at, sizeof text - (size_t)(at - text), "%s%s", host, rest);
    }
    *ret = (struct made){ .policy = load_text(text), .plan = plan };
    tool = tci_policy_tool(ret->policy, "t");
    plan->arena = arena;
    plan->spec = (struct tc_spec){ .settings = &tool->settings,
                                   .policy = ret->policy,
                                   .library = how->library };
    plan->choice.engine = how->engine;
    plan->choice.runtime = how->runtime;
    plan->choice.is_root = !how->user;
    plan->choice.engine_is_rootless = how->rootless;
    plan->has_gate = tci_network_has_gate(&tool->settings.network);
    plan->rootfs = how->engine == TCI_OCI_ENGINE_NONE ? host : NULL;
    if (compile_plan(plan, &ret->error) < 0)
        return -1;
    if (plan->config_json) {
        json_error_t problem;
        ret->config = json_loads(plan->config_json, JSON_REJECT_DUPLICATES, &problem);
        if (!ret->config)
            fail_msg("config.json: %s", problem.text);
    }
    return 0;
}

static inline void end(struct made *made)
{
    json_decref(made->config);
    for (size_t i = 0; i < made->plan->mount_count; i++) {
        (void)tci_close(made->plan->mounts[i].source);
        (void)tci_close(made->plan->mounts[i].over_handle);
    }
    tci_arena_free(made->plan->arena);
    tc_policy_free(made->policy);
}

static inline struct made must_make(const struct how *how, const char *settings)
{
    struct made made;
    if (make(how, settings, &made) < 0)
        fail_msg("%s: %s", settings, made.error.message);
    return made;
}

static inline void assert_refused(const struct how *how, const char *settings, const char *word)
{
    struct made made;
    if (make(how, settings, &made) == 0)
        fail_msg("accepted: %s", settings);
    if (!strstr(made.error.message, word))
        fail_msg("%s: %s", settings, made.error.message);
    assert_true(made.error.remedy[0]);
    end(&made);
}

/* ---- asking JSON: "linux/namespaces/0/type" ------------------------------------------------------------ */

static inline json_t *at(json_t *value, const char *path)
{
    char copy[300], *rest = copy, *name;
    (void)snprintf(copy, sizeof copy, "%s", path);
    while (value && (name = strsep(&rest, "/")))
        value = json_is_array(value) ? json_array_get(value, strtoul(name, NULL, 10))
                                     : json_object_get(value, name);
    return value;
}

static const char *text_at(json_t *value, const char *path)
{
    const char *text = json_string_value(at(value, path));
    if (!text)
        fail_msg("no text at %s", path);
    return text;
}

static inline bool has_string(json_t *list, const char *text)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(json_string_value(json_array_get(list, i)), text) == 0)
            return true;
    return false;
}

/* The last one counts: it lies on top. */
static inline json_t *mount_at(json_t *config, const char *destination)
{
    json_t *mounts = at(config, "mounts"), *found = NULL;
    for (size_t i = 0; i < json_array_size(mounts); i++)
        if (strcmp(text_at(json_array_get(mounts, i), "destination"), destination) == 0)
            found = json_array_get(mounts, i);
    return found;
}

static inline bool has_option(json_t *config, const char *destination, const char *option)
{
    return has_string(at(mount_at(config, destination), "options"), option);
}

static inline json_t *namespace_of(json_t *config, const char *type)
{
    json_t *list = at(config, "linux/namespaces");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(text_at(json_array_get(list, i), "type"), type) == 0)
            return json_array_get(list, i);
    return NULL;
}

static inline const struct tci_oci_mount *mount_of(const struct made *made, const char *cage)
{
    for (size_t i = 0; i < made->plan->mount_count; i++)
        if (strcmp(made->plan->mounts[i].cage, cage) == 0)
            return &made->plan->mounts[i];
    return NULL;
}

static inline bool is_masked(const struct made *made, const char *cage)
{
    for (size_t i = 0; made->plan->masked && made->plan->masked[i]; i++)
        if (strcmp(made->plan->masked[i], cage) == 0)
            return true;
    return false;
}

/* ---- the directory ---------------------------------------------------------------------------------------------- */

static inline void make_file(const char *path)
{
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    (void)close(fd);
}

static inline int set_up(void **state)
{
    static const char *const directories[] = { "/work",      "/work/a", "/work/a/b", "/work/a/b/c",
                                               "/work/keys", "/data",   "/data/keys" };
    char path[100];
    (void)state;
    (void)snprintf(host, sizeof host, "/var/tmp/oci-spec-XXXXXX");
    if (!mkdtemp(host))
        return -1;
    for (size_t i = 0; i < tci_array_size(directories); i++) {
        (void)snprintf(path, sizeof path, "%s%s", host, directories[i]);
        if (mkdir(path, 0755) < 0)
            return -1;
    }
    (void)snprintf(path, sizeof path, "%s/file", host);
    make_file(path);
    (void)snprintf(path, sizeof path, "%s/data/.env", host);
    make_file(path);
    (void)snprintf(path, sizeof path, "%s/data/link", host);
    return symlink("keys", path);
}

static inline int tear_down(void **state)
{
    char command[100];
    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf %s", host);
    return system(command);
}

#endif
