/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: attempts on devices and on the files of /proc and /sys that act on the whole machine. What
 * is opened for writing gets back what it held, or nothing at all. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "attempt.h"

static int mknod_disk(int argc, char **argv)
{
    (void)argc;
    const char *path = join(argv[0], "/disk", "");
    char sector[512];
    unlink(path);
    if (mknod(path, S_IFBLK | 0600, makedev((unsigned)number(argv[1]), (unsigned)number(argv[2]))) <
        0)
        return held("mknod");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return held("open our own device node");
    ssize_t n = read(fd, sector, sizeof(sector));
    close(fd);
    unlink(path);
    return judge(n, "read the disk through a device node of our own");
}

static int open_device(int argc, char **argv)
{
    (void)argc;
    int fd = open(argv[0], O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 && (errno == ENXIO || errno == ENODEV))
        return absent("%s: there is no such device behind the name", argv[0]);
    return judge(fd, join("opened ", argv[0], ""));
}

/* A file of the kernel that root may write: reads it, and writes the same. */
static int rewrite_setting(int argc, char **argv)
{
    char text[4096];
    (void)argc;
    int fd = open(argv[0], O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return held("open %s", argv[0]);
    ssize_t length = pread(fd, text, sizeof(text), 0);
    if (length < 0)
        return held("read %s", argv[0]);
    return judge(pwrite(fd, text, (size_t)length, 0), join("wrote to ", argv[0], ""));
}

/* Files that only take orders: opening them for writing is enough. */
static int open_for_orders(int argc, char **argv)
{
    (void)argc;
    return judge(open(argv[0], O_WRONLY | O_CLOEXEC), join("opened ", argv[0], " for writing"));
}

/* Leaves the group that holds the limits. */
static int leave_cgroup(int argc, char **argv)
{
    int last = ENOENT;
    for (int i = 0; i < argc; i++) {
        int fd = open(argv[i], O_WRONLY | O_CLOEXEC);
        if (fd >= 0 && write(fd, "0", 1) == 1)
            return escaped("moved to another group through %s", argv[i]);
        last = errno;
        if (fd >= 0)
            close(fd);
    }
    errno = last;
    return held("write to cgroup.procs of %d groups", argc);
}

static int list_devices(int argc, char **argv)
{
    /* What a cage's /dev may hold; everything else is too much. Links count as what they are. */
    int found = 0;
    const char *which = "";
    for (int i = 0; i < argc; i++) {
        struct stat st;
        if (lstat(argv[i], &st) == 0 && (S_ISBLK(st.st_mode) || S_ISCHR(st.st_mode))) {
            found++;
            which = argv[i];
        }
    }
    if (found)
        return escaped("%d devices of the host, such as %s", found, which);
    errno = ENOENT;
    return held("%d devices of the host", argc);
}

const struct attempt device_attempts[] = {
    { "mknod-disk", 3, mknod_disk, "make a node for disk MAJOR MINOR in WRITABLE and read it" },
    { "open-disk", 1, open_device, "open disk DEVICE" },
    { "open-kmsg", 1, open_device, "open the kernel's log DEVICE" },
    { "open-kvm", 1, open_device, "open DEVICE of the hypervisor" },
    { "open-fuse", 1, open_device, "open DEVICE for file systems of one's own" },
    { "open-tun", 1, open_device, "open DEVICE for network interfaces" },
    { "open-loop", 1, open_device, "open DEVICE for loop mounts" },
    { "open-console", 1, open_device, "open terminal DEVICE" },
    { "open-mem", 1, open_device, "open physical memory DEVICE" },
    { "list-devices", 1, list_devices, "see DEVICE..." },
    { "write-core-pattern", 1, rewrite_setting, "write to /proc/sys/kernel/core_pattern" },
    { "write-sysctl", 1, rewrite_setting, "write to kernel setting FILE" },
    { "write-sysrq", 1, open_for_orders, "open /proc/sysrq-trigger for writing" },
    { "write-uevent-helper", 1, rewrite_setting, "write to /sys/kernel/uevent_helper" },
    { "write-release-agent", 1, rewrite_setting, "write to a cgroup's release_agent" },
    { "write-oom-score", 1, rewrite_setting, "write to oom_score_adj of process PATH" },
    { "read-kcore", 1, open_device, "open the kernel's memory /proc/kcore" },
    { "leave-cgroup", 1, leave_cgroup, "move to another control group: CGROUP.PROCS..." },
    { 0 },
};
