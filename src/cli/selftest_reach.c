/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: attempts of `toolcage selftest` to reach files, sockets and processes of the host. */
#include "cli/selftest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

enum { path_max = 4096, descriptors_max = 256 };

static bool holds_secret(int fd)
{
    char bytes[64] = "";
    ssize_t n = pread(fd, bytes, sizeof bytes - 1, 0);
    return n > 0 && strstr(bytes, SELFTEST_SECRET) != NULL;
}

static bool can_read(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool found = fd >= 0 && holds_secret(fd);
    if (fd >= 0)
        (void)close(fd);
    if (found)
        (void)printf("read %s\n", path);
    return found;
}

static const char *at(char buffer[path_max], const char *before, const char *path, const char *name)
{
    (void)snprintf(buffer, path_max, "%s%s/%s", before, path, name);
    return buffer;
}

bool selftest_read_secret(const struct selftest_target *t)
{
    char path[path_max];
    return can_read(at(path, "", t->directory, "secret"));
}

bool selftest_read_through_proc(const struct selftest_target *t)
{
    static const char *const roots[] = { "/proc/self/root", "/proc/1/root", "/proc/self/cwd/../..",
                                         "/proc/self/task/1/root" };
    char path[path_max];
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++)
        if (can_read(at(path, roots[i], t->directory, "secret")))
            return true;
    return false;
}

bool selftest_read_hidden(const struct selftest_target *t)
{
    char path[path_max];
    return can_read(at(path, "", t->directory, "open/hidden"));
}

bool selftest_write_read_only(const struct selftest_target *t)
{
    char path[path_max];
    int fd = open(at(path, "", t->directory, "open/file"), O_WRONLY | O_CLOEXEC);
    if (fd >= 0 || truncate(path, 0) == 0 || unlink(path) == 0 || chmod(path, 0777) == 0) {
        (void)printf("changed %s\n", path);
        return true;
    }
    return false;
}

static bool create_one(const char *const places[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int fd = open(places[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd >= 0) {
            (void)printf("opened %s for writing\n", places[i]);
            if (strstr(places[i], "selftest"))
                (void)unlink(places[i]);
            return true;
        }
    }
    return false;
}

bool selftest_write_system(const struct selftest_target *t)
{
    static const char *const places[] = { "/usr/selftest", "/etc/selftest", "/selftest",
                                          "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger" };
    (void)t;
    return create_one(places, sizeof places / sizeof places[0]);
}

bool selftest_write_devices(const struct selftest_target *t)
{
    static const char *const places[] = { "/dev/selftest" };
    (void)t;
    return create_one(places, 1);
}

bool selftest_make_device(const struct selftest_target *t)
{
    char path[path_max];
    if (mknod(at(path, "", t->directory, "work/device"), S_IFBLK | 0666, makedev(254, 0)) == 0 ||
        mknod(at(path, "", t->directory, "work/memory"), S_IFCHR | 0666, makedev(1, 1)) == 0) {
        (void)printf("made %s\n", path);
        return true;
    }
    return false;
}

bool selftest_make_setuid(const struct selftest_target *t)
{
    char path[path_max];
    struct stat status;
    int fd = open(at(path, "", t->directory, "work/setuid"), O_WRONLY | O_CREAT | O_CLOEXEC, 06755);
    if (fd < 0) {
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
        (void)(fd >= 0 && (fchmod(fd, 06755) || chmod(path, 06755)));
    }
    if (stat(path, &status) == 0 && status.st_mode & (S_ISUID | S_ISGID)) {
        (void)printf("%s has mode %o\n", path, status.st_mode & 07777U);
        return true;
    }
    return false;
}

bool selftest_inherit_descriptor(const struct selftest_target *t)
{
    struct stat status;
    (void)t;
    for (int fd = 3; fd < descriptors_max; fd++)
        if (fstat(fd, &status) == 0) {
            (void)printf("descriptor %d is open\n", fd);
            return true;
        }
    return false;
}

bool selftest_read_environment(const struct selftest_target *t)
{
    (void)t;
    for (char **e = environ; *e; e++)
        if (strstr(*e, SELFTEST_SECRET)) {
            (void)printf("%.40s\n", *e);
            return true;
        }
    return false;
}

/* ---- sockets ------------------------------------------------------------------------------- */

static bool can_connect(const void *address, socklen_t length, const char *what)
{
    const struct sockaddr *to = address;
    int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool connected = fd >= 0 && connect(fd, to, length) == 0;
    if (fd >= 0)
        (void)close(fd);
    if (connected)
        (void)printf("connected to %s\n", what);
    return connected;
}

bool selftest_connect_tcp(const struct selftest_target *t)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)t->port) };
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return can_connect(&to, sizeof to, "127.0.0.1");
}

bool selftest_connect_abstract(const struct selftest_target *t)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    size_t length = strlen(t->abstract);
    if (length + 1 > sizeof to.sun_path)
        return false;
    memcpy(to.sun_path + 1, t->abstract, length);
    return can_connect(&to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length),
                       "an abstract socket");
}

bool selftest_connect_path(const struct selftest_target *t)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    int n = snprintf(to.sun_path, sizeof to.sun_path, "%s/open/socket", t->directory);
    return n > 0 && (size_t)n < sizeof to.sun_path && can_connect(&to, sizeof to, to.sun_path);
}

bool selftest_raw_socket(const struct selftest_target *t)
{
    static const struct {
        int family, type, protocol;
        const char *name;
    } sockets[] = {
        { AF_INET, SOCK_RAW, IPPROTO_ICMP, "raw" },    { AF_PACKET, SOCK_RAW, 0, "packet" },
        { AF_VSOCK, SOCK_STREAM, 0, "vsock" },         { AF_ALG, SOCK_SEQPACKET, 0, "alg" },
        { AF_NETLINK, SOCK_RAW, 15, "kernel events" }, { AF_BLUETOOTH, SOCK_RAW, 1, "bluetooth" },
        { AF_NETLINK, SOCK_RAW, 12, "netfilter" },
    };
    (void)t;
    for (size_t i = 0; i < sizeof sockets / sizeof sockets[0]; i++)
        if (socket(sockets[i].family, sockets[i].type, sockets[i].protocol) >= 0) {
            (void)printf("opened a %s socket\n", sockets[i].name);
            return true;
        }
    return false;
}

/* ---- processes ----------------------------------------------------------------------------- */

bool selftest_signal_host(const struct selftest_target *t)
{
    char path[64], byte;
    struct iovec here = { &byte, 1 }, there = { (void *)0x400000, 1 };
    int fd;
    if (kill(t->pid, 0) == 0) {
        (void)printf("process %d can be signalled\n", t->pid);
        return true;
    }
    (void)snprintf(path, sizeof path, "/proc/%d/environ", t->pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && read(fd, &byte, 1) == 1) {
        (void)printf("%s can be read\n", path);
        return true;
    }
    if (process_vm_readv(t->pid, &here, 1, &there, 1, 0) == 1) {
        (void)printf("memory of process %d can be read\n", t->pid);
        return true;
    }
    return false;
}
