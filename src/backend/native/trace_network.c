/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what is said about sockets. A cage without network has a loopback device of its own and no
 * way out: an address elsewhere gets ENETUNREACH, and that is the policy's doing. A port of the
 * cage's own loopback on which nobody listens is not.
 *
 * Most programs do not come that far, because they first ask for a name, at port 53 of the loopback
 * address, where in such a cage nobody can answer: the port is privileged, and nobody has privileges.
 * The question itself says which name; it is read, not guessed.
 */
#include "backend/native/trace_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { name_port = 53, packet_max = 512, name_max = 254 };

static const struct {
    int number;
    const char *name;
} families[] = {
    { AF_UNIX, "AF_UNIX" },       { AF_INET, "AF_INET" },           { AF_INET6, "AF_INET6" },
    { AF_NETLINK, "AF_NETLINK" }, { AF_PACKET, "AF_PACKET" },       { AF_VSOCK, "AF_VSOCK" },
    { AF_ALG, "AF_ALG" },         { AF_BLUETOOTH, "AF_BLUETOOTH" }, { AF_CAN, "AF_CAN" },
    { AF_XDP, "AF_XDP" },
};

static const char *family_name(int family, char buffer[16])
{
    for (size_t i = 0; i < tci_array_size(families); i++)
        if (families[i].number == family)
            return families[i].name;
    (void)snprintf(buffer, 16, "AF_%d", family);
    return buffer;
}

static bool has_no_network(const struct tci_trace *trace)
{
    return trace->plan->spec.settings->network.mode == TCI_NETWORK_NONE;
}

/* ---- socket() ------------------------------------------------------------------------------------ */

static void tell_socket(struct tci_trace *trace, const struct seccomp_data *call, int error)
{
    int family = (int)call->args[0], type = (int)call->args[1] & 0xf;
    bool is_usual = family == AF_UNIX || family == AF_INET || family == AF_INET6;
    char name[16], target[48];
    if (!trace->plan->is_jail && has_no_network(trace))
        (void)snprintf(trace->rule, sizeof trace->rule,
                       "network: \"none\", and backend \"process\" has no sockets at all; use "
                       "backend = \"jail\" for a loopback device of its own");
    else if (family == AF_UNIX && error == EAFNOSUPPORT)
        (void)snprintf(trace->rule, sizeof trace->rule,
                       "filesystem: sockets of the host could lie in the granted paths, so only "
                       "pairs are allowed; grant no path, or use another kind of socket");
    else if (is_usual)
        (void)snprintf(trace->rule, sizeof trace->rule,
                       "syscalls: only streams and datagrams of this family are allowed, with "
                       "their usual protocols");
    else
        (void)snprintf(trace->rule, sizeof trace->rule,
                       "syscalls: no policy can allow sockets of this family");
    (void)snprintf(target, sizeof target, "%s%s", family_name(family, name),
                   type == SOCK_RAW && family != AF_NETLINK ? " (raw)" : "");
    tci_trace_list_add(&trace->list, "network", target, trace->rule);
}

void tci_trace_socket_hold(struct tci_trace *trace, struct tci_tracee *tracee, int error)
{
    if ((int)tracee->call.args[0] != AF_UNIX) {
        tell_socket(trace, &tracee->call, error);
        return;
    }
    tracee->held = tracee->call;
    tracee->held_error = error;
}

void tci_trace_socket_release(struct tci_trace *trace, struct tci_tracee *tracee, const char *path)
{
    static const char *const files[] = { "/etc/nsswitch.conf", "/etc/passwd", "/etc/group",
                                         "/etc/hosts" };
    bool was_for_files = false;
    if (tracee->held.nr < 0)
        return;
    for (size_t i = 0; path && i < tci_array_size(files); i++)
        was_for_files |= strcmp(path, files[i]) == 0;
    if (!was_for_files)
        tell_socket(trace, &tracee->held, tracee->held_error);
    tracee->held.nr = -1;
}

/* ---- addresses ----------------------------------------------------------------------------------- */

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un path;
    char bytes[sizeof(struct sockaddr_storage)];
};

static bool read_address(int id, uint64_t at, uint64_t length, union address *ret, size_t *ret_size)
{
    size_t size = length < sizeof ret->bytes ? (size_t)length : sizeof ret->bytes;
    memset(ret, 0, sizeof *ret);
    *ret_size = at && size ? tci_trace_read(id, at, ret->bytes, size) : 0;
    if (*ret_size < sizeof ret->any.sa_family || *ret_size < size)
        return false;
    return (ret->any.sa_family == AF_INET && size >= sizeof ret->v4) ||
           (ret->any.sa_family == AF_INET6 &&
            size >= offsetof(struct sockaddr_in6, sin6_scope_id)) ||
           ret->any.sa_family == AF_UNIX;
}

static bool is_loopback(const union address *address)
{
    const struct in6_addr *v6 = &address->v6.sin6_addr;
    if (address->any.sa_family == AF_INET)
        return ntohl(address->v4.sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127);
}

static unsigned port_of(const union address *address)
{
    return ntohs(address->any.sa_family == AF_INET ? address->v4.sin_port : address->v6.sin6_port);
}

/* "1.2.3.4:443", "[2001:db8::1]:443" */
static void format(const union address *address, char *buffer, size_t size)
{
    char text[INET6_ADDRSTRLEN] = "";
    bool is_v4 = address->any.sa_family == AF_INET;
    (void)inet_ntop(address->any.sa_family,
                    is_v4 ? (const void *)&address->v4.sin_addr : &address->v6.sin6_addr, text,
                    sizeof text);
    (void)snprintf(buffer, size, is_v4 ? "%s:%u" : "[%s]:%u", text, port_of(address));
}

static void refused_internet(struct tci_trace *trace, const union address *address, int error)
{
    char text[INET6_ADDRSTRLEN + 16], target[INET6_ADDRSTRLEN + 32], name[16];
    bool is_refused = error == EACCES || error == EPERM;
    bool is_unreachable = error == ENETUNREACH || error == EHOSTUNREACH || error == EADDRNOTAVAIL;
    /* With a gate, that one knows what it refused; what is unreachable then is so in the world. */
    if (!has_no_network(trace) || (!is_refused && (!is_unreachable || is_loopback(address))))
        return;
    format(address, text, sizeof text);
    (void)snprintf(target, sizeof target, "%s %s", family_name(address->any.sa_family, name), text);
    (void)snprintf(trace->rule, sizeof trace->rule, "network: \"none\"; set network = [\"%s\"]",
                   text);
    tci_trace_list_add(&trace->list, "network", target, trace->rule);
}

/* A socket with a path is a file; one without is refused to everybody outside its cage. */
static void refused_local(struct tci_trace *trace, const struct tci_tracee *tracee,
                          const union address *address, size_t size, int error)
{
    static const char family[] = "AF_UNIX ";
    const size_t prefix = sizeof family - 1;
    const char *path = address->path.sun_path;
    size_t start = offsetof(struct sockaddr_un, sun_path);
    size_t length = size > start ? size - start : 0;
    struct tci_trace_attempt attempt = { .access = TCI_TRACE_WRITE, .error = error };
    memcpy(trace->target, family, prefix + 1);
    if (length > 1 && !path[0]) {
        if (error != EPERM)
            return;
        trace->target[prefix] = '@';
        (void)tci_trace_clean(path + 1, length - 1, trace->target + prefix + 1,
                              sizeof trace->target - prefix - 1);
        tci_trace_list_add(&trace->list, "network", trace->target,
                           "network: abstract sockets of others are out of reach in every cage");
        return;
    }
    length = strnlen(path, length);
    memcpy(trace->path, path, length);
    trace->path[length] = '\0';
    if (!length || (path[0] != '/' && !tci_trace_link(tracee->id, "cwd", trace->base)) ||
        !tci_trace_normalise(path[0] == '/' ? "" : trace->base, trace->path, trace->normal,
                             &attempt.exact))
        return;
    attempt.path = trace->normal;
    tci_trace_path(trace, &attempt);
}

static void heed(struct tci_trace *trace, struct tci_tracee *tracee, const union address *address,
                 size_t size, int error)
{
    if (error && address->any.sa_family == AF_UNIX)
        refused_local(trace, tracee, address, size, error);
    else if (error)
        refused_internet(trace, address, error);
}

static bool is_name_server(const struct tci_trace *trace, const union address *address)
{
    return trace->plan->is_jail && has_no_network(trace) && address->any.sa_family != AF_UNIX &&
           is_loopback(address) && port_of(address) == name_port;
}

void tci_trace_address(struct tci_trace *trace, struct tci_tracee *tracee, int64_t result, int at,
                       int length)
{
    const __u64 *args = tracee->call.args;
    const bool is_sending = at != 1; /* connect(fd, address, length), sendto(fd, bytes, ...) */
    union address address;
    size_t size;
    if (is_sending && !args[at]) {
        if ((int)args[0] == tracee->name_socket)
            tci_trace_question(trace, tracee, args[1], args[2]);
        return;
    }
    if (!read_address(tracee->id, args[at], args[length] & 0xffffffff, &address, &size))
        return;
    heed(trace, tracee, &address, size, result < 0 ? (int)-result : 0);
    if (!is_sending && (int)args[0] == tracee->name_socket)
        tracee->name_socket = -1;
    if (!is_name_server(trace, &address))
        return;
    if (is_sending)
        tci_trace_question(trace, tracee, args[1], args[2]);
    else if (result == 0)
        tracee->name_socket = (int)args[0];
}

/* sendmmsg has an array whose elements begin with what sendmsg has; the first is looked at. */
void tci_trace_message(struct tci_trace *trace, struct tci_tracee *tracee, int64_t result)
{
    const __u64 *args = tracee->call.args;
    struct msghdr header;
    struct iovec first = { 0 };
    union address address;
    size_t size;
    bool asks = (int)args[0] == tracee->name_socket;
    if (!args[1] || tci_trace_read(tracee->id, args[1], &header, sizeof header) != sizeof header)
        return;
    if (header.msg_name &&
        read_address(tracee->id, (uintptr_t)header.msg_name, header.msg_namelen, &address, &size)) {
        heed(trace, tracee, &address, size, result < 0 ? (int)-result : 0);
        asks = is_name_server(trace, &address);
    }
    if (asks && header.msg_iovlen > 0 &&
        tci_trace_read(tracee->id, (uintptr_t)header.msg_iov, &first, sizeof first) == sizeof first)
        tci_trace_question(trace, tracee, (uintptr_t)first.iov_base, first.iov_len);
}

/* ---- names --------------------------------------------------------------------------------------- */

/* RFC 1035: a header of 12 bytes (a standard query, one question), then labels with their lengths. */
bool tci_trace_question_name(const unsigned char *packet, size_t length, char *buffer, size_t size)
{
    size_t at = 12, to = 0;
    if (length < at + 5 || packet[2] & 0xf8 || packet[4] != 0 || packet[5] != 1 || packet[6] ||
        packet[7] || packet[8] || packet[9])
        return false;
    while (at < length && packet[at]) {
        size_t label = packet[at++];
        if (label > 63 || at + label >= length || to + label + 2 > size)
            return false;
        if (to)
            buffer[to++] = '.';
        for (; label > 0; label--, at++) {
            unsigned char c = packet[at];
            if (c <= 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '.')
                return false;
            buffer[to++] = (char)c;
        }
    }
    buffer[to] = '\0';
    /* The end of the name, its type and its class, which is IN. */
    return to > 0 && at + 5 <= length && packet[at + 3] == 0 && packet[at + 4] == 1;
}

void tci_trace_question(struct tci_trace *trace, const struct tci_tracee *tracee, uint64_t address,
                        uint64_t length)
{
    unsigned char packet[packet_max];
    char name[name_max];
    size_t n = tci_trace_read(tracee->id, address, packet,
                              length < sizeof packet ? (size_t)length : sizeof packet);
    if (!tci_trace_question_name(packet, n, name, sizeof name))
        return;
    (void)snprintf(trace->rule, sizeof trace->rule,
                   "network: \"none\", so names are not found; set network = [\"%s:PORT\"]", name);
    tci_trace_list_add(&trace->list, "network", name, trace->rule);
}
