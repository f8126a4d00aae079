/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: which directories decide what containers run: our image store, where the programs of running plans lie, and
 * the stores of engines at their usual places. The attack: one of them lies in a directory that a tool may write;
 * the tool changes a program of an unpacked image, and the next tool, which was granted nothing, runs it.
 * An engine that was told to keep its store elsewhere does not say so here.
 */
#include "backend/oci/own_places.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "backend/oci/image.h"
#include "backend/oci/oci.h"
#include "policy/place.h"

static const char image_store[] = "image store", running[] = "directory of running containers";

struct adding {
    struct tci_arena *arena;
    unsigned who;
    struct tci_own_places *places;
    bool no_memory;
};

static void add(struct adding *adding, unsigned who, const char *what, const char *above,
                const char *below)
{
    struct tci_own_place *place = &adding->places->items[adding->places->count];
    if (!(adding->who & who) || !above || above[0] != '/')
        return;
    place->what = what;
    place->path = tci_arena_printf(adding->arena, "%s%s", above, below);
    adding->no_memory |= !place->path;
    adding->places->count++;
}

static void add_of_root(struct adding *adding)
{
    add(adding, TCI_OWN_PODMAN | TCI_OWN_DOCKER, running, "/run/toolcage", "");
    add(adding, TCI_OWN_PODMAN | TCI_OWN_DOCKER, running, "/var/lib/toolcage", "");
    add(adding, TCI_OWN_PODMAN, "store of Podman", "/var/lib/containers", "");
    add(adding, TCI_OWN_DOCKER, "store of Docker", "/var/lib/docker", "");
}

/* As api_place.c chooses. */
static bool is_of_use(const char *runtime)
{
    struct statvfs s;
    return runtime && runtime[0] == '/' && strlen(runtime) < 40 && statvfs(runtime, &s) == 0 &&
           !(s.f_flag & ST_NOEXEC);
}

static void add_of_user(struct adding *adding)
{
    const unsigned engines = TCI_OWN_PODMAN | TCI_OWN_DOCKER;
    const char *data = getenv("XDG_DATA_HOME"), *runtime = getenv("XDG_RUNTIME_DIR");
    char own[32];
    (void)snprintf(own, sizeof own, "/tmp/toolcage-%u", (unsigned)geteuid());
    if (is_of_use(runtime))
        add(adding, engines, running, runtime, "/toolcage");
    else
        add(adding, engines, running, own, "");
    if (data && data[0] == '/')
        add(adding, TCI_OWN_PODMAN, "store of Podman", data, "/containers");
    else
        add(adding, TCI_OWN_PODMAN, "store of Podman", getenv("HOME"), "/.local/share/containers");
}

int tci_own_places(struct tci_arena *arena, unsigned who, struct tci_own_places *ret)
{
    struct adding adding = { .arena = arena, .who = who, .places = ret };
    char store[PATH_MAX];
    ret->count = 0;
    if (tci_image_store_place(store, NULL) == 0)
        add(&adding, TCI_OWN_BARE, image_store, store, "");
    if (geteuid() == 0)
        add_of_root(&adding);
    else
        add_of_user(&adding);
    return adding.no_memory ? -1 : 0;
}

static unsigned who_makes(const struct tci_oci_plan *plan)
{
    switch (plan->choice.engine) {
    case TCI_OCI_ENGINE_PODMAN:
        return TCI_OWN_PODMAN;
    case TCI_OCI_ENGINE_DOCKER:
        return TCI_OWN_DOCKER;
    case TCI_OCI_ENGINE_NONE:
        break;
    }
    return plan->spec.settings->rootfs ? 0 : TCI_OWN_BARE;
}

static int refuse(const struct tci_own_place *place, const char *host, struct tc_error *reterr)
{
    tci_error_set(
        reterr, TC_ERROR_UNSUPPORTED,
        "a tool could change the %s \"%.300s\", and so what containers run: \"%.300s\" is "
        "granted for writing",
        place->what, place->path, host);
    tci_error_remedy(reterr, "grant a directory that does not hold it, or move the %s%s",
                     place->what,
                     strcmp(place->what, image_store) == 0 ? " (TOOLCAGE_IMAGES)" : "");
    return -1;
}

/* 0, or -1 with *reterr. */
static int check(const struct tci_own_places *places, struct tci_reach *reach,
                 struct tc_error *reterr)
{
    for (size_t i = 0; i < places->count; i++) {
        struct tc_error error = { 0 };
        const char *host = "";
        int r = tci_place_check_tree(&places->items[i], reach, &host, &error);
        if (r == 1)
            return refuse(&places->items[i], host, reterr);
        if (r < 0 && reterr)
            *reterr = error;
        if (r < 0)
            return -1;
    }
    return 0;
}

int tci_oci_check_places(const struct tci_oci_plan *plan, struct tc_error *reterr)
{
    const unsigned who = who_makes(plan);
    const struct tc_policy *policy = plan->spec.policy;
    struct tci_own_places places;
    tc_cleanup(tci_reach_freep) struct tci_reach *all = NULL, *own = NULL;
    if (!who)
        return 0;
    /* A grant at run time may have changed this tool's paths; the others' are as the policy says. */
    own = tci_reach_of_cage(&plan->spec.settings->filesystem);
    all = policy ? tci_reach_of_policy(policy) : NULL;
    if (!own || (policy && !all) || tci_own_places(plan->arena, who, &places) < 0)
        return tci_error_no_memory(reterr);
    return check(&places, own, reterr) < 0 || (all && check(&places, all, reterr) < 0) ? -1 : 0;
}
