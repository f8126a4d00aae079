/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: can a directory that stays as it is be given an upper layer in memory, as the stage of a bare
 * runtime does with an image? Tried on "/usr" in mount and user namespaces that end with the child.
 */
#include "backend/probe.h"

#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static const char REMEDY[] = "use Linux 5.11 or newer with the module overlay (sudo modprobe "
                             "overlay), or run toolcage as root";

void tci_probe_overlay(const struct tci_probe *p)
{
    const enum tci_feature id = TCI_FEATURE_OVERLAY;
    char why[TCI_FEATURE_DETAIL_MAX];
    int problem = tci_probe_gain_capabilities(why, sizeof why);
    if (problem) {
        tci_probe_failed(p, id, "see user_namespaces, or run toolcage as root", problem, "%s", why);
        return;
    }
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0700") < 0 ||
        mkdir("/tmp/upper", 0700) < 0 || mkdir("/tmp/work", 0700) < 0 ||
        mkdir("/tmp/root", 0700) < 0)
        tci_probe_refused(p, id, "see mount_namespace", "a private tmpfs", errno);
    else if (mount("overlay", "/tmp/root", "overlay", MS_NOSUID | MS_NODEV,
                   "lowerdir=/usr,upperdir=/tmp/upper,workdir=/tmp/work") < 0)
        tci_probe_refused(p, id, REMEDY, "mount of an overlay", errno);
    else if (mkdir("/tmp/root/toolcage-probe", 0700) < 0)
        tci_probe_refused(p, id, REMEDY, "a directory in an overlay", errno);
    else if (access("/usr/toolcage-probe", F_OK) == 0)
        tci_probe_no(p, id, REMEDY, "an overlay changed what lies below it");
    else
        tci_probe_yes(p, id, "an upper layer in memory");
}
