/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what `toolcage selftest` sets up outside of a cage for attempts to reach, how it sees that one
 * did, and taking it all away again. */
#include "cli/selftest.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/attr.h"
#include "base/fd.h"

static int write_secret(const char *directory, const char *name)
{
    char path[SELFTEST_PATH_MAX + 96];
    int fd, r;
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    r = fd < 0 ? -1 : tci_write_all(fd, SELFTEST_SECRET "\n", strlen(SELFTEST_SECRET) + 1);
    (void)tci_close(fd);
    return r;
}

static int listen_at(const void *address, socklen_t length)
{
    const struct sockaddr *at = address;
    int fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && (bind(fd, at, length) < 0 || listen(fd, 8) < 0))
        fd = tci_close(fd);
    return fd;
}

static int open_sockets(struct selftest_canaries *c)
{
    struct sockaddr_in internet = { .sin_family = AF_INET };
    struct sockaddr_un name = { .sun_family = AF_UNIX }, path = { .sun_family = AF_UNIX };
    socklen_t length = sizeof internet;
    internet.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->tcp = listen_at(&internet, sizeof internet);
    if (c->tcp < 0 || getsockname(c->tcp, (struct sockaddr *)&internet, &length) < 0)
        return -1;
    (void)snprintf(c->port, sizeof c->port, "%u", (unsigned)ntohs(internet.sin_port));
    (void)snprintf(c->abstract, sizeof c->abstract, "toolcage-selftest-%d", (int)getpid());
    memcpy(name.sun_path + 1, c->abstract, strlen(c->abstract));
    c->by_name = listen_at(
        &name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(c->abstract)));
    if ((size_t)snprintf(path.sun_path, sizeof path.sun_path, "%.80s/open/socket", c->directory) >=
        sizeof path.sun_path)
        return -1;
    c->by_path = listen_at(&path, sizeof path);
    return c->by_name < 0 || c->by_path < 0 ? -1 : 0;
}

int selftest_set_up(struct selftest_canaries *c)
{
    char path[SELFTEST_PATH_MAX + 32];
    ssize_t n = readlink("/proc/self/exe", c->program, sizeof c->program - 1);
    c->tcp = c->by_name = c->by_path = c->leaked = -1;
    if (n <= 0)
        return -1;
    c->program[n] = '\0';
    (void)snprintf(c->pid, sizeof c->pid, "%d", (int)getpid());
    (void)snprintf(c->directory, sizeof c->directory, "/tmp/toolcage-selftest-XXXXXX");
    /* Engines make their containers as other users, who must get through to what is granted. */
    if (!mkdtemp(c->directory) || chmod(c->directory, 0755) < 0)
        return -1;
    (void)snprintf(path, sizeof path, "%s/open", c->directory);
    if (mkdir(path, 0755) < 0 || write_secret(path, "file") < 0 ||
        write_secret(path, "hidden") < 0 || write_secret(c->directory, "secret") < 0)
        return -1;
    (void)snprintf(path, sizeof path, "%s/root", c->directory);
    if (mkdir(path, 0755) < 0)
        return -1;
    (void)snprintf(path, sizeof path, "%s/work", c->directory);
    if (mkdir(path, 0755) < 0 || open_sockets(c) < 0)
        return -1;
    (void)snprintf(path, sizeof path, "%s/secret", c->directory);
    c->leaked = open(path, O_RDONLY); // NOLINT: without O_CLOEXEC, on purpose
    return c->leaked < 0 || setenv("TOOLCAGE_SELFTEST", SELFTEST_SECRET, 1) < 0 ? -1 : 0;
}

void selftest_clear(const struct selftest_canaries *c)
{
    char path[SELFTEST_PATH_MAX + 32];
    for (int i = 0; i < 128; i++) {
        (void)snprintf(path, sizeof path, "%s/work/file-%d", c->directory, i);
        (void)unlink(path);
    }
}

static void remove_below(const char *directory)
{
    static const char *const names[] = { "open/file",     "open/hidden", "open/socket",
                                         "secret",        "work/device", "work/memory",
                                         "work/outlived", "work/setuid" };
    char path[SELFTEST_PATH_MAX + 32];
    for (size_t i = 0; i < tci_array_size(names); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        (void)unlink(path);
    }
    (void)snprintf(path, sizeof path, "%s/open", directory);
    (void)rmdir(path);
    (void)snprintf(path, sizeof path, "%s/root", directory);
    (void)rmdir(path);
    (void)snprintf(path, sizeof path, "%s/work", directory);
    (void)rmdir(path);
    (void)rmdir(directory);
}

void selftest_tear_down(struct selftest_canaries *c)
{
    (void)tci_close(c->tcp);
    (void)tci_close(c->by_name);
    (void)tci_close(c->by_path);
    (void)tci_close(c->leaked);
    if (!*c->directory)
        return;
    selftest_clear(c);
    remove_below(c->directory);
}

const char *selftest_seen(const struct selftest_canaries *c)
{
    static const char *const made[] = { "work/outlived", "work/device", "work/memory" };
    const int sockets[] = { c->tcp, c->by_name, c->by_path };
    char path[SELFTEST_PATH_MAX + 32];
    struct stat status;
    for (size_t i = 0; i < tci_array_size(sockets); i++) {
        int fd = accept4(sockets[i], NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) {
            (void)tci_close(fd);
            return "a socket of the host was reached";
        }
    }
    for (size_t i = 0; i < tci_array_size(made); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", c->directory, made[i]);
        if (stat(path, &status) == 0)
            return "something was left behind";
    }
    (void)snprintf(path, sizeof path, "%s/work/setuid", c->directory);
    if (stat(path, &status) == 0 && status.st_mode & (S_ISUID | S_ISGID))
        return "a setuid file was left behind";
    (void)snprintf(path, sizeof path, "%s/open/file", c->directory);
    return stat(path, &status) < 0 || status.st_size == 0 ? "a read-only file was changed" : NULL;
}
