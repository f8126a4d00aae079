/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: which probe answers for which feature. Every feature belongs to exactly one job (a test
 * counts them), so a report is complete whatever happens to the probes.
 */
#include "backend/host.h"
#include "backend/probe.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/fd.h"

static_assert(TCI_FEATURE_COUNT <= 64, "features are kept as bits of 64");

#define BIT(id) TCI_FEATURE_BIT(id)

static const struct tci_probe_job jobs[] = {
    /* Slow ones first: they all run side by side, and programs start slowly. */
    { "podman", tci_probe_podman, NULL, 3500, BIT(PODMAN) },
    { "docker", tci_probe_docker, NULL, 3500, BIT(DOCKER) },
    { "crun", tci_probe_crun, NULL, 3500, BIT(CRUN) },
    { "runc", tci_probe_runc, NULL, 3500, BIT(RUNC) },
    { "runsc", tci_probe_runsc, NULL, 3500, BIT(RUNSC) },
    { "qemu", tci_probe_qemu, NULL, 3500, BIT(QEMU) },
    { "firecracker", tci_probe_firecracker, NULL, 3500, BIT(FIRECRACKER) },
    { "wasmtime", tci_probe_wasmtime, NULL, 3500, BIT(WASMTIME) },
    { "libwasmtime", tci_probe_libwasmtime, NULL, 3000, BIT(LIBWASMTIME) },
    { "docker daemon", tci_probe_docker_daemon, NULL, 2500,
      BIT(DOCKER_DAEMON) | BIT(DOCKER_LIMITS) },
    { "kvm", tci_probe_kvm, NULL, 2000, BIT(KVM) },
    { "calls", tci_probe_calls, NULL, 1000,
      BIT(KERNEL) | BIT(PIDFD) | BIT(CLONE3) | BIT(OPENAT2) | BIT(CLOSE_RANGE) },
    { "user namespace", tci_probe_user_namespace, NULL, 1000, BIT(USER_NAMESPACES) },
    { "process limit", tci_probe_process_limit, NULL, 1000, BIT(USERNS_PROCESS_LIMIT) },
    { "privileged", tci_probe_privileged, NULL, 1000, BIT(PRIVILEGED) },
    { "namespaces", tci_probe_other_namespaces, NULL, 2000,
      BIT(MOUNT_NAMESPACE) | BIT(PID_NAMESPACE) | BIT(NET_NAMESPACE) | BIT(IPC_NAMESPACE) |
          BIT(UTS_NAMESPACE) | BIT(CGROUP_NAMESPACE) | BIT(TIME_NAMESPACE) | BIT(MOUNT_PROC) },
    { "mounts", tci_probe_mounts, NULL, 1000,
      BIT(MOUNT_API) | BIT(MOUNT_SETATTR) | BIT(PIVOT_ROOT) | BIT(TMPFS_SIZE) },
    { "overlay", tci_probe_overlay, NULL, 1000, BIT(OVERLAY) },
    { "idmapped mounts", tci_probe_idmapped, NULL, 1000, BIT(IDMAPPED_MOUNTS) },
    { "seccomp", tci_probe_seccomp, NULL, 1000, BIT(SECCOMP_FILTER) | BIT(SECCOMP_NOTIFY) },
    { "landlock", tci_probe_landlock, NULL, 1000, BIT(LANDLOCK) | BIT(LANDLOCK_TRUNCATE) },
    { "cgroup", tci_probe_cgroup, tci_probe_cgroup_cleanup, 1500,
      BIT(CGROUP) | BIT(CGROUP_MEMORY) | BIT(CGROUP_PIDS) | BIT(CGROUP_CPU) |
          BIT(CGROUP_CPU_USAGE) | BIT(CGROUP_FREEZER) | BIT(CGROUP_CLONE) | BIT(CGROUP_KILL) },
    { "systemd", tci_probe_systemd, NULL, 1000, BIT(SYSTEMD) },
    { "gate local route", tci_probe_gate_local_route, NULL, 2000, BIT(GATE_LOCAL_ROUTE) },
    { "gate redirect", tci_probe_gate_redirect, NULL, 2000, BIT(GATE_REDIRECT) },
    { "subid", tci_probe_subid, NULL, 2500, BIT(SUBID_RANGES) },
};

static const struct {
    const char *name, *purpose;
} feature_table[TCI_FEATURE_COUNT] = {
#define X(id, name, purpose) [TCI_FEATURE_##id] = { name, purpose },
#include "backend/features.def"
#undef X
};

void tci_host_report_init(struct tci_host_report *ret)
{
    memset(ret, 0, sizeof *ret);
    for (size_t i = 0; i < TCI_FEATURE_COUNT; i++) {
        struct tci_host_feature *f = &ret->features[i];
        f->id = (enum tci_feature)i;
        (void)snprintf(f->detail, sizeof f->detail, "not asked");
        (void)snprintf(f->remedy, sizeof f->remedy, "toolcage doctor looks at everything");
    }
}

void tci_host_probe_features(uint64_t features, struct tci_host_report *report)
{
    struct tci_probe_job chosen[tci_array_size(jobs)];
    size_t count = 0;
    for (size_t i = 0; i < tci_array_size(jobs); i++) {
        chosen[count] = jobs[i];
        chosen[count].features &= features & ~report->asked;
        count += chosen[count].features != 0;
    }
    report->asked |= features;
    tci_probe_jobs(chosen, count, report);
}

void tci_host_probe(struct tci_host_report *ret)
{
    tci_host_report_init(ret);
    tci_host_probe_features(~UINT64_C(0), ret);
}

void tci_host_probe_feature(enum tci_feature feature, struct tci_host_feature *ret)
{
    struct tci_host_report report;
    tci_host_report_init(&report);
    *ret = (struct tci_host_feature){ .id = feature };
    if ((size_t)feature >= TCI_FEATURE_COUNT)
        return;
    tci_host_probe_features(UINT64_C(1) << feature, &report);
    *ret = report.features[feature];
}

bool tci_host_is_root(void)
{
    char map[64] = "";
    tc_cleanup(tci_closep) int fd = -1;
    if (geteuid() != 0)
        return false;
    fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, map, sizeof map - 1) <= 0)
        return true; /* not known: then the careful way */
    return strstr(map, "4294967295") != NULL;
}

/* Since the release that has this call, it does. Where a filter hides the call we do not know, and
 * that counts as no. */
bool tci_host_has_process_limit(void)
{
    return syscall(SYS_quotactl_fd, -1, 0, 0, NULL) < 0 && errno != ENOSYS && errno != EPERM;
}

const char *tci_feature_name(enum tci_feature feature)
{
    return (size_t)feature < TCI_FEATURE_COUNT ? feature_table[feature].name : "unknown";
}

const char *tci_feature_purpose(enum tci_feature feature)
{
    return (size_t)feature < TCI_FEATURE_COUNT ? feature_table[feature].purpose : "unknown";
}

const char *tci_feature_state_name(enum tci_feature_state state)
{
    switch (state) {
    case TCI_FEATURE_YES:
        return "yes";
    case TCI_FEATURE_NO:
        return "no";
    case TCI_FEATURE_UNKNOWN:
        break;
    }
    return "unknown";
}
