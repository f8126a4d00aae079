/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the gate's dials, with real sockets on loopback, and which addresses are the host's own. */
#include "gate_support.h"

#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "gate/dial.h"
#include "gate/netlink.h"

static const bool never;

/* ---- dials ---------------------------------------------------------------------------------------- */

struct dialled {
    bool over;
    int fd, problem;
    struct tci_address address;
    struct tci_dial *dial;
    uint64_t took_us;
};

static void dial_done(void *data, int fd, const struct tci_address *address, int problem)
{
    struct dialled *dialled = data;
    assert_false(dialled->over);
    dialled->over = true;
    dialled->fd = fd;
    dialled->problem = problem;
    dialled->address = *address;
    tci_dial_cancel(dialled->dial); /* harmless from here */
}

static struct dialled dial(const char *const *texts, size_t count, uint16_t port)
{
    struct tci_loop *loop = new_loop();
    struct tci_address addresses[8];
    struct dialled dialled = { .fd = -1 };
    uint64_t begin = tci_clock_us();
    for (size_t i = 0; i < count; i++)
        addresses[i] = address_of(texts[i]);
    assert_int_equal(
        tci_dial_start(loop, addresses, count, port, dial_done, &dialled, &dialled.dial), 0);
    assert_false(dialled.over);
    (void)run_loop(loop, &dialled.over, PATIENCE_MS);
    assert_true(dialled.over);
    dialled.took_us = tci_clock_us() - begin;
    tci_loop_free(loop);
    return dialled;
}
#define DIAL(port, ...)                                                                            \
    dial((const char *const[]){ __VA_ARGS__ },                                                     \
         sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *), port)

/* The same, until it takes no longer than that: once, a busy machine may need more, but not each time. */
enum { tries_max = 6 };
#define DIAL_WITHIN(us, ret, ...)                                                                  \
    for (int tries = 0; tries < tries_max; tries++) {                                              \
        if (tries && (ret)->fd >= 0)                                                               \
            (void)close((ret)->fd);                                                                \
        *(ret) = DIAL(__VA_ARGS__);                                                                \
        if ((ret)->took_us < (us))                                                                 \
            break;                                                                                 \
    }

static uint16_t free_port(const char *address)
{
    uint16_t port = 0;
    (void)close(listen_on(address, &port, 1));
    return port;
}

static void assert_connected(const struct dialled *dialled, const char *address)
{
    struct tci_address wanted = address_of(address);
    assert_int_equal(dialled->problem, 0);
    assert_true(dialled->fd >= 0);
    assert_true(fcntl(dialled->fd, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(dialled->fd, F_GETFD) & FD_CLOEXEC);
    assert_memory_equal(&dialled->address, &wanted, sizeof wanted);
    assert_int_equal(send(dialled->fd, "x", 1, MSG_NOSIGNAL), 1);
    (void)close(dialled->fd);
}

static void test_both_families_are_dialled(void **state)
{
    static const char *const addresses[] = { "127.0.0.5", "::1" };
    int before = count_descriptors();
    (void)state;
    for (int i = 0; i < 2; i++) {
        uint16_t port = 0;
        int listener = listen_on(addresses[i], &port, 5);
        struct dialled dialled = dial(&addresses[i], 1, port);
        assert_connected(&dialled, addresses[i]);
        (void)close(listener);
    }
    assert_int_equal(count_descriptors(), before);
}

static void test_a_refusal_comes_back_at_once(void **state)
{
    struct dialled dialled = { 0 };
    (void)state;
    DIAL_WITHIN(200000, &dialled, free_port("127.0.0.1"), "127.0.0.1", "127.0.0.2", "127.0.0.3");
    assert_int_equal(dialled.fd, -1);
    assert_int_equal(dialled.problem, ECONNREFUSED);
    assert_true(dialled.took_us < 200000); /* no try waits for the one before it */
}

/* A listener whose queue is full answers nothing: that is what a silent host looks like. */
struct silent {
    int listener, fill[8];
    uint16_t port;
};

static void be_silent(struct silent *silent, const char *address)
{
    struct sockaddr_storage to;
    socklen_t size;
    silent->listener = listen_on(address, &silent->port, 0);
    size = socket_address(address, silent->port, &to);
    for (int i = 0; i < 8; i++) {
        silent->fill[i] = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)connect(silent->fill[i], (struct sockaddr *)&to, size);
    }
    (void)usleep(20000);
}

static void end_silence(struct silent *silent)
{
    for (int i = 0; i < 8; i++)
        (void)close(silent->fill[i]);
    (void)close(silent->listener);
}

static void test_a_silent_first_address_costs_a_quarter_of_a_second(void **state)
{
    struct silent silent = { 0 };
    int before = count_descriptors(), listener;
    struct dialled dialled;
    (void)state;
    be_silent(&silent, "::1");
    listener = listen_on("127.0.0.6", &silent.port, 5);
    DIAL_WITHIN(TCI_DIAL_STAGGER_MS * 3000, &dialled, silent.port, "::1", "127.0.0.6");
    assert_connected(&dialled, "127.0.0.6");
    assert_in_range(dialled.took_us, TCI_DIAL_STAGGER_MS * 1000, TCI_DIAL_STAGGER_MS * 1000 * 3);
    (void)close(listener);
    end_silence(&silent);
    assert_int_equal(count_descriptors(), before);
}

static void test_families_take_turns_and_ipv6_is_first(void **state)
{
    struct silent silent = { 0 };
    struct dialled dialled;
    uint16_t port = 0;
    int v6 = listen_on("::1", &port, 5), v4 = listen_on("127.0.0.6", &port, 5);
    (void)state;
    dialled = DIAL(port, "127.0.0.6", "127.0.0.6", "::1");
    assert_connected(&dialled, "::1");
    (void)close(v6);
    (void)close(v4);
    /* However many IPv6 addresses are silent, the first IPv4 one is second. */
    be_silent(&silent, "::1");
    v4 = listen_on("127.0.0.6", &silent.port, 5);
    DIAL_WITHIN(TCI_DIAL_STAGGER_MS * 3000, &dialled, silent.port, "::1", "::1", "::1", "::1",
                "127.0.0.6");
    assert_connected(&dialled, "127.0.0.6");
    assert_in_range(dialled.took_us, TCI_DIAL_STAGGER_MS * 1000, TCI_DIAL_STAGGER_MS * 1000 * 3);
    (void)close(v4);
    end_silence(&silent);
}

static void test_a_mapped_address_is_not_dialled_as_ipv4(void **state)
{
    struct tci_loop *loop = new_loop();
    struct dialled dialled = { .fd = -1 };
    struct tci_address mapped = { .is_v6 = true };
    uint16_t port = 0;
    int listener = listen_on("127.0.0.1", &port, 5);
    (void)state;
    memcpy(mapped.bytes + 10, "\xff\xff\x7f\0\0\1", 6);
    assert_int_equal(tci_dial_start(loop, &mapped, 1, port, dial_done, &dialled, &dialled.dial), 0);
    (void)run_loop(loop, &dialled.over, PATIENCE_MS);
    assert_int_equal(dialled.fd, -1);
    assert_int_not_equal(dialled.problem, 0);
    tci_loop_free(loop);
    (void)close(listener);
}

static void test_dials_can_be_cancelled_at_any_moment(void **state)
{
    struct silent silent = { 0 };
    int before = count_descriptors();
    (void)state;
    be_silent(&silent, "127.0.0.7");
    for (int round = 0; round < 4; round++) {
        struct tci_loop *loop = new_loop();
        struct tci_address addresses[2] = { address_of("127.0.0.7"), address_of("127.0.0.7") };
        struct dialled dialled = { .fd = -1 };
        assert_int_equal(tci_dial_start(loop, addresses, 2, round == 3 ? 1 : silent.port, dial_done,
                                        &dialled, &dialled.dial),
                         0);
        if (round == 1)
            (void)run_loop(loop, &dialled.over, 10);
        if (round == 2)
            (void)run_loop(loop, &dialled.over, TCI_DIAL_STAGGER_MS + 50); /* both are under way */
        tci_dial_cancel(dialled.dial);
        (void)run_loop(loop, &never, 5);
        assert_false(dialled.over);
        tci_loop_free(loop);
    }
    tci_dial_cancel(NULL);
    end_silence(&silent);
    assert_int_equal(count_descriptors(), before);
}

static void test_no_addresses_are_no_dial(void **state)
{
    struct tci_loop *loop = new_loop();
    struct tci_dial *dial = NULL;
    struct tci_address address = address_of("127.0.0.1");
    (void)state;
    assert_int_equal(tci_dial_start(loop, &address, 0, 1, dial_done, NULL, &dial), -EINVAL);
    assert_int_equal(tci_dial_start(loop, &address, 65, 1, dial_done, NULL, &dial), -EINVAL);
    tci_loop_free(loop);
}

/* ---- in a network of our own ----------------------------------------------------------------------- */

/* Runs `body` in a fresh network namespace; it returns 0 or the number of what went wrong. */
static void in_new_network(int (*body)(void))
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
            _exit(200);
        _exit(body());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int bring_up(const char *name)
{
    struct ifreq request = { .ifr_flags = IFF_UP };
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), r;
    memcpy(request.ifr_name, name, strlen(name) + 1);
    r = ioctl(fd, SIOCSIFFLAGS, &request);
    (void)close(fd);
    return r;
}

static int dial_without_routes(void)
{
    struct dialled dialled = DIAL(80, "192.0.2.1", "2001:db8::1");
    if (dialled.fd != -1 || dialled.problem != ENETUNREACH)
        return 1;
    /* Whoever refuses says more than a route that is missing. */
    if (bring_up("lo") < 0)
        return 2;
    DIAL_WITHIN(200000, &dialled, 80, "2001:db8::1", "127.0.0.1", "192.0.2.1");
    if (dialled.fd != -1 || dialled.problem != ECONNREFUSED)
        return 3;
    return dialled.took_us < 200000 ? 0 : 4;
}

static void test_no_route_is_unreachable_and_a_refusal_says_more(void **state)
{
    (void)state;
    in_new_network(dial_without_routes);
}

/* The kernel may give a socket the very port that it dials. Here it has no other. */
static int leave_one_port(void)
{
    int fd = open("/proc/sys/net/ipv4/ip_local_port_range", O_WRONLY | O_CLOEXEC), r;
    r = bring_up("lo") == 0 && fd >= 0 && write(fd, "40000 40000", 11) == 11 ? 0 : -1;
    (void)close(fd);
    return r;
}

static int connect_to_own_port(void)
{
    struct sockaddr_storage to;
    socklen_t size = socket_address("127.0.0.1", 40000, &to);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (leave_one_port() < 0)
        return 1;
    return connect(fd, (struct sockaddr *)&to, size) < 0 ? 2 : 0;
}

static int dial_own_port(void)
{
    struct dialled dialled;
    if (leave_one_port() < 0)
        return 1;
    dialled = DIAL(40000, "127.0.0.1");
    return dialled.fd == -1 && dialled.problem == ECONNREFUSED ? 0 : 2;
}

static void test_a_socket_is_not_connected_to_itself(void **state)
{
    (void)state;
    in_new_network(connect_to_own_port); /* it does happen to others */
    in_new_network(dial_own_port);
}

static int dial_full_queue(void)
{
    struct silent silent = { 0 };
    struct dialled dialled;
    if (bring_up("lo") < 0)
        return 3;
    be_silent(&silent, "127.0.0.1");
    dialled = DIAL(silent.port, "127.0.0.1", "2001:db8::1");
    end_silence(&silent);
    if (dialled.problem != ETIMEDOUT)
        return 1;
    return dialled.took_us >= TCI_DIAL_TIMEOUT_MS * 1000ULL &&
                   dialled.took_us < TCI_DIAL_TIMEOUT_MS * 1000ULL + 5000000
               ? 0
               : 2;
}

static void test_silence_is_a_timeout(void **state)
{
    (void)state;
    in_new_network(dial_full_queue);
}

/* ---- whose address ---------------------------------------------------------------------------------- */

static bool is_own(const char *text)
{
    struct tci_address address = address_of(text);
    return tci_address_is_own(&address);
}

static int know_own_addresses(void)
{
    struct tci_address mapped = { .is_v6 = true };
    memcpy(mapped.bytes + 10, "\xff\xff\x7f\0\0\1", 6);
    if (is_own("192.0.2.1") || is_own("2001:db8::1"))
        return 1; /* no route at all */
    if (bring_up("lo") < 0)
        return 2;
    if (!is_own("127.0.0.1") || !is_own("127.200.3.4") || !is_own("::1") || !is_own("0.0.0.0") ||
        !is_own("::") || !tci_address_is_own(&mapped))
        return 3;
    if (is_own("192.0.2.1") || is_own("2001:db8::1"))
        return 4;
    return 0;
}

static int add_address(const char *text, unsigned char prefix)
{
    struct tci_address address = address_of(text);
    struct tci_netlink_batch batch = { 0 };
    struct ifaddrmsg head = { .ifa_family = address.is_v6 ? AF_INET6 : AF_INET,
                              .ifa_prefixlen = prefix,
                              .ifa_flags = IFA_F_NODAD,
                              .ifa_index = 1 };
    struct tci_address broadcast = address;
    broadcast.bytes[3] = 255;
    tci_netlink_begin(&batch, RTM_NEWADDR, NLM_F_CREATE | NLM_F_ACK, &head, sizeof head);
    tci_netlink_attribute(&batch, IFA_LOCAL, address.bytes, address.is_v6 ? 16 : 4);
    tci_netlink_attribute(&batch, IFA_ADDRESS, address.bytes, address.is_v6 ? 16 : 4);
    if (!address.is_v6)
        tci_netlink_attribute(&batch, IFA_BROADCAST, broadcast.bytes, 4);
    return tci_netlink_send(NETLINK_ROUTE, &batch);
}

static int add_route(unsigned char type, const char *text, unsigned char prefix)
{
    struct tci_address address = address_of(text);
    struct tci_netlink_batch batch = { 0 };
    struct rtmsg head = { .rtm_family = address.is_v6 ? AF_INET6 : AF_INET,
                          .rtm_dst_len = prefix,
                          .rtm_table = RT_TABLE_MAIN,
                          .rtm_protocol = RTPROT_STATIC,
                          .rtm_scope = type == RTN_LOCAL ? RT_SCOPE_HOST : RT_SCOPE_LINK,
                          .rtm_type = type };
    const uint32_t lo = 1;
    tci_netlink_begin(&batch, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_ACK, &head, sizeof head);
    tci_netlink_attribute(&batch, RTA_DST, address.bytes, address.is_v6 ? 16 : 4);
    if (type != RTN_BLACKHOLE)
        tci_netlink_attribute(&batch, RTA_OIF, &lo, sizeof lo);
    return tci_netlink_send(NETLINK_ROUTE, &batch);
}

/* A public address that is the host's, its network's broadcast, ranges that are local, and others. */
static int know_own_interfaces(void)
{
    if (bring_up("lo") < 0 || add_address("203.0.113.5", 24) || add_address("2001:db8:5::5", 64) ||
        add_route(RTN_LOCAL, "192.0.2.0", 24) || add_route(RTN_LOCAL, "2001:db8:6::", 64) ||
        add_route(RTN_UNICAST, "198.51.100.0", 24) || add_route(RTN_UNICAST, "2001:db8:7::", 64) ||
        add_route(RTN_UNICAST, "0.0.0.0", 0))
        return 1;
    if (!is_own("203.0.113.5") || !is_own("203.0.113.255"))
        return 2;
    for (int i = 0; i < 20000 && !is_own("2001:db8:5::5"); i++)
        (void)usleep(1000); /* the kernel takes it into its table a little later */
    if (!is_own("2001:db8:5::5"))
        return 6;
    if (!is_own("192.0.2.77") || !is_own("2001:db8:6::77"))
        return 3;
    if (is_own("198.51.100.1") || is_own("2001:db8:7::1"))
        return 4;
    if (!is_own("224.0.0.1") || !is_own("255.255.255.255") || is_own("192.0.3.1"))
        return 5;
    return 0;
}

static void test_own_addresses_are_known(void **state)
{
    (void)state;
    in_new_network(know_own_addresses);
    in_new_network(know_own_interfaces);
}

/* A host that may open no more descriptors cannot ask: then every address may be its own. */
static void test_an_address_counts_as_own_when_the_kernel_cannot_be_asked(void **state)
{
    struct rlimit before, none;
    bool own;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){ .rlim_cur = 3, .rlim_max = before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    own = is_own("192.0.2.1");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_families_are_dialled),
        cmocka_unit_test(test_a_refusal_comes_back_at_once),
        cmocka_unit_test(test_a_silent_first_address_costs_a_quarter_of_a_second),
        cmocka_unit_test(test_families_take_turns_and_ipv6_is_first),
        cmocka_unit_test(test_a_mapped_address_is_not_dialled_as_ipv4),
        cmocka_unit_test(test_a_socket_is_not_connected_to_itself),
        cmocka_unit_test(test_dials_can_be_cancelled_at_any_moment),
        cmocka_unit_test(test_no_addresses_are_no_dial),
        cmocka_unit_test(test_no_route_is_unreachable_and_a_refusal_says_more),
        cmocka_unit_test(test_silence_is_a_timeout),
        cmocka_unit_test(test_own_addresses_are_known),
        cmocka_unit_test(test_an_address_counts_as_own_when_the_kernel_cannot_be_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
