/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: as whom the command runs. With a bare runtime it is a user who owns nothing on the host when root
 * asks (TCI_JAIL_HOST_ID, as in a jail), and the caller himself otherwise. An engine has its own idea
 * of users: a rootless one makes the container's root the caller; from a rootful one the command is the owner
 * of the first path that it was granted. That is the host's root, without capabilities, where this is root's or
 * container.user says so; without either it is nobody.
 */
#include "backend/oci/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"

enum { INSIDE_ID = 1000, NOBODY = 65534 };

/* "UID" or "UID:GID" of at most 2^31 - 1; false: it is a name, or no id. */
static bool read_ids(const char *text, uint32_t *ret_uid, uint32_t *ret_gid)
{
    char *end;
    unsigned long uid, gid;
    if (*text < '0' || *text > '9')
        return false;
    uid = gid = strtoul(text, &end, 10);
    if (*end == ':' && end[1] >= '0' && end[1] <= '9')
        gid = strtoul(end + 1, &end, 10);
    if (*end || uid > INT32_MAX || gid > INT32_MAX)
        return false;
    *ret_uid = (uint32_t)uid;
    *ret_gid = (uint32_t)gid;
    return true;
}

static int bare_users(struct tci_oci_plan *plan, struct tc_error *reterr)
{
    const struct tci_oci_choice *choice = &plan->choice;
    const char *user = plan->spec.settings->container.user;
    /* A stage with a user namespace has one id to give: 0 there. runc maps the container's root or
     * nothing, and gVisor shows files with the stage's ids. */
    const bool only_root = choice->runtime != TCI_OCI_CRUN && tci_oci_stage_is_mapped(choice);
    plan->uid = plan->gid = only_root ? 0 : INSIDE_ID;
    if (user && !read_ids(user, &plan->uid, &plan->gid)) {
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                      "container.user = \"%.64s\" is a name, and without an engine nobody looks it "
                      "up in the image",
                      user);
        tci_error_remedy(reterr, "write its numbers, such as \"1000:1000\"");
        return -1;
    }
    if (only_root && (plan->uid || plan->gid)) {
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                      "%s can only make a container whose user is 0 here",
                      choice->runtime == TCI_OCI_RUNC ? "for an ordinary user runc" : "runsc");
        tci_error_remedy(reterr, "leave out container.user, or use runtime = \"crun\"");
        return -1;
    }
    plan->host_uid = choice->is_root ? TCI_JAIL_HOST_ID : geteuid();
    plan->host_gid = choice->is_root ? TCI_JAIL_HOST_ID : getegid();
    return 0;
}

/* The owner of the first path that is granted with this access. */
static bool owner_of_grant(struct tci_oci_plan *plan, enum tci_access access)
{
    const struct tci_filesystem *fs = &plan->spec.settings->filesystem;
    for (size_t i = 0; i < fs->count; i++) {
        struct stat status;
        tc_cleanup(tci_closep) int fd = -1;
        if (fs->rules[i].access != access)
            continue;
        fd = tci_granted_open(&plan->writables, fs->rules[i].host);
        if (fd < 0 || fstat(fd, &status) < 0)
            continue;
        plan->uid = status.st_uid;
        plan->gid = status.st_gid;
        return true;
    }
    return false;
}

static int engine_users(struct tci_oci_plan *plan, struct tc_error *reterr)
{
    const char *user = plan->spec.settings->container.user;
    plan->uid = plan->gid = NOBODY;
    if (user && !read_ids(user, &plan->uid, &plan->gid)) {
        /* The attack: the image's passwd says that this name is user 0, and its group puts it into "disk"
         * and "docker". With no user namespace around it these are the host's own. */
        if (!plan->choice.engine_is_rootless) {
            tci_error_set(
                reterr, TC_ERROR_UNSUPPORTED,
                "container.user = \"%.64s\" is a name, and an engine of root lets the image "
                "say who on the host that is",
                user);
            tci_error_remedy(reterr, "write its numbers, such as \"1000:1000\"");
            return -1;
        }
        plan->user = user;
        return 0;
    }
    if (!user && plan->choice.engine_is_rootless)
        plan->uid = plan->gid = 0;
    else if (!user && !owner_of_grant(plan, TCI_ACCESS_WRITABLE))
        (void)owner_of_grant(plan, TCI_ACCESS_READABLE);
    plan->user = tci_arena_printf(plan->arena, "%u:%u", plan->uid, plan->gid);
    return plan->user ? 0 : tci_error_no_memory(reterr);
}

/* Every capability is no list of what a tool needs; and in words that differ from engine to engine. */
static int check_capabilities(const struct tci_container *container, struct tc_error *reterr)
{
    for (size_t i = 0; i < container->cap_add.count; i++)
        if (strcmp(container->cap_add.items[i].text, "ALL") == 0) {
            tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                          "container.cap_add = [\"ALL\"] would leave nothing of the cage");
            tci_error_remedy(reterr, "name the capabilities that the tool needs");
            return -1;
        }
    return 0;
}

int tci_oci_users(struct tci_oci_plan *plan, struct tc_error *reterr)
{
    if (check_capabilities(&plan->spec.settings->container, reterr) < 0)
        return -1;
    return plan->choice.engine == TCI_OCI_ENGINE_NONE ? bare_users(plan, reterr)
                                                      : engine_users(plan, reterr);
}
