/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: would the gate work here? In a user and network namespace of its own: every address is
 * made local by one route, and a connection to an address of the documentation ranges must arrive
 * at a listener, which sees the address that was meant. Nothing leaves: there is only loopback.
 */
#include "backend/probe.h"
#include "backend/probe_gate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "gate/setup.h"

/* Two ports: one that IPv4 has used is not free for both families for a while. */
enum { PORT_V4 = 4433, PORT_V6 = 4434, CONNECT_LIMIT_MS = 500 };

static const char REMEDY_ROUTE[] = "use a kernel with CONFIG_NET_NS and CONFIG_IP_MULTIPLE_TABLES";

int tci_gate_enter(const char **ret_step, char *ret_why, size_t size)
{
    struct ifreq request = { .ifr_name = "lo" };
    int fd, problem;
    *ret_step = "capabilities";
    problem = tci_probe_gain_capabilities(ret_why, size);
    if (problem)
        return problem;
    *ret_step = "net namespace";
    if (unshare(CLONE_NEWNET) < 0)
        return errno;
    *ret_step = "loopback";
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    if (ioctl(fd, SIOCSIFFLAGS, &request) < 0)
        problem = errno;
    (void)close(fd);
    return problem;
}

static socklen_t make_address(int family, const char *text, uint16_t port,
                              struct sockaddr_storage *ret)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
    memset(ret, 0, sizeof *ret);
    if (family == AF_INET) {
        (void)inet_pton(AF_INET, text, &v4.sin_addr);
        memcpy(ret, &v4, sizeof v4);
        return sizeof v4;
    }
    (void)inet_pton(AF_INET6, text, &v6.sin6_addr);
    memcpy(ret, &v6, sizeof v6);
    return sizeof v6;
}

/* Waits for a connection; does it say that it was meant for `meant`? */
static int accept_from(int listener, const struct sockaddr_storage *meant, socklen_t length)
{
    struct pollfd polled = { .fd = listener, .events = POLLIN };
    struct sockaddr_storage dialled = { 0 };
    socklen_t dialled_length = sizeof dialled;
    int connection, problem = 0;
    if (poll(&polled, 1, CONNECT_LIMIT_MS) != 1)
        return ETIMEDOUT;
    connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (connection < 0)
        return errno;
    if (getsockname(connection, (struct sockaddr *)&dialled, &dialled_length) < 0)
        problem = errno;
    else if (memcmp(&dialled, meant, length) != 0)
        problem = EADDRNOTAVAIL;
    (void)close(connection);
    return problem;
}

int tci_gate_catch(int family, const char *address, uint16_t port, uint16_t listen_port)
{
    struct sockaddr_storage here, there;
    socklen_t length = make_address(family, family == AF_INET ? "0.0.0.0" : "::", listen_port,
                                    &here);
    int problem = 0;
    int listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int client = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* Another port: the connection comes to us under its own one, which only such a socket accepts. */
    if (listener >= 0 && port != listen_port &&
        setsockopt(listener, SOL_IP, IP_TRANSPARENT, &(int){ 1 }, sizeof(int)) < 0)
        problem = errno;
    if (listener < 0 || client < 0 || bind(listener, (struct sockaddr *)&here, length) < 0 ||
        listen(listener, 1) < 0)
        problem = errno;
    length = make_address(family, address, port, &there);
    if (!problem && connect(client, (struct sockaddr *)&there, length) < 0 && errno != EINPROGRESS)
        problem = errno;
    if (!problem)
        problem = accept_from(listener, &there, length);
    if (client >= 0)
        (void)close(client);
    if (listener >= 0)
        (void)close(listener);
    return problem;
}

void tci_probe_gate_local_route(const struct tci_probe *p)
{
    const enum tci_feature id = TCI_FEATURE_GATE_LOCAL_ROUTE;
    struct tci_gate_setup setup;
    char why[TCI_FEATURE_DETAIL_MAX] = "";
    const char *step;
    int problem = tci_gate_enter(&step, why, sizeof why);
    if (problem) {
        tci_probe_failed(p, id, "see user_namespaces and net_namespace", problem, "%s: %s", step,
                         *why ? why : strerrordesc_np(problem));
        return;
    }
    tci_gate_setup(false, false, &setup);
    problem = tci_netlink_send(NETLINK_ROUTE, &setup.v4);
    if (!problem)
        problem = tci_gate_catch(AF_INET, "198.51.100.7", PORT_V4, PORT_V4);
    if (problem) {
        tci_probe_refused(p, id, REMEDY_ROUTE, "IPv4", problem);
        return;
    }
    problem = tci_netlink_send(NETLINK_ROUTE, &setup.v6);
    if (!problem)
        problem = tci_gate_catch(AF_INET6, "2001:db8::7", PORT_V6, PORT_V6);
    if (!problem)
        tci_probe_yes(p, id, "IPv4 and IPv6 connections to any address were caught");
    else if (problem == EAFNOSUPPORT || problem == EOPNOTSUPP || problem == EACCES)
        /* No IPv6 (EACCES: disabled by sysctl): nothing to catch, and no way out either. */
        tci_probe_yes(p, id, "IPv4 connections to any address were caught; there is no IPv6");
    else
        tci_probe_refused(p, id, REMEDY_ROUTE, "IPv6", problem);
}
