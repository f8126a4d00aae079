/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: who makes the containers of a tool here, for the verbs that tell people. */
#include "cli/cli.h"

#include <string.h>
#include "backend/oci/oci.h"

const char *cli_ready_name(const struct tci_settings *settings, struct tc_error *reterr)
{
    static struct tci_oci_choice choice; /* large */
    if (settings->backend != TCI_BACKEND_OCI && settings->backend != TCI_BACKEND_GVISOR)
        return tci_backend_kind_name(settings->backend);
    return tci_oci_choose(settings, &choice, reterr) < 0 ? NULL : tci_oci_ready_name(&choice);
}

/* The root directory of a container that toolcage itself makes. */
static int find_root(const struct tci_settings *settings, char ret[PATH_MAX],
                     struct tc_error *reterr)
{
    if (!settings->rootfs)
        return tci_image_find(settings->image ? settings->image : TCI_IMAGE_DEFAULT, ret, reterr);
    (void)snprintf(ret, PATH_MAX, "%s", settings->rootfs);
    return 0;
}

int cli_find_image(const struct tci_settings *settings, struct tc_error *reterr)
{
    static struct tci_oci_choice choice; /* large */
    static char root[PATH_MAX];
    if ((settings->backend != TCI_BACKEND_OCI && settings->backend != TCI_BACKEND_GVISOR) ||
        tci_oci_choose(settings, &choice, NULL) < 0 || choice.engine != TCI_OCI_ENGINE_NONE)
        return 0;
    return find_root(settings, root, reterr);
}

static void set_problem(const struct tc_error *error, struct tci_explain_maker *ret)
{
    memset(ret, 0, sizeof *ret);
    (void)snprintf(ret->problem, sizeof ret->problem, "%.500s", error->message);
    (void)snprintf(ret->remedy, sizeof ret->remedy, "%.500s", error->remedy);
}

void cli_explain_maker(const struct tci_settings *settings, struct tci_explain_maker *ret)
{
    static const char *const engines[] = { [TCI_OCI_ENGINE_NONE] = "none",
                                           [TCI_OCI_ENGINE_PODMAN] = "podman",
                                           [TCI_OCI_ENGINE_DOCKER] = "docker" };
    static const char *const runtimes[] = { [TCI_OCI_CRUN] = "crun",
                                            [TCI_OCI_RUNC] = "runc",
                                            [TCI_OCI_RUNSC] = "runsc",
                                            [TCI_OCI_RUNTIME_OF_ENGINE] = "default" };
    static struct tci_oci_choice choice; /* large */
    static char root[PATH_MAX];
    struct tc_error error = { 0 };
    if (tci_oci_choose(settings, &choice, &error) < 0) {
        set_problem(&error, ret);
        return;
    }
    (void)snprintf(ret->engine, sizeof ret->engine, "%s", engines[choice.engine]);
    (void)snprintf(ret->runtime, sizeof ret->runtime, "%s", runtimes[choice.runtime]);
    (void)snprintf(ret->version, sizeof ret->version, "%s", choice.version);
    (void)snprintf(ret->platform, sizeof ret->platform, "%s", choice.platform);
    (void)snprintf(ret->why, sizeof ret->why, "%s", choice.why);
    if (choice.engine != TCI_OCI_ENGINE_NONE)
        return;
    if (find_root(settings, root, &error) < 0)
        set_problem(&error, ret);
    else
        (void)snprintf(ret->root, sizeof ret->root, "%.1000s", root);
}
