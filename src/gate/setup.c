/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: see setup.h. Loopback is interface 1 of every network namespace. */
#include "gate/setup.h"

#include <arpa/inet.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include "base/fd.h"
#include "gate/inside.h"

enum { loopback = 1, before_routing_priority = -150 };

static const char table[] = "toolcage", chain[] = "in";

/* ---- addresses and routes --------------------------------------------------------------------- */

/* ip link set lo up */
static void bring_up(struct tci_netlink_batch *b)
{
    const struct ifinfomsg link = { .ifi_index = loopback,
                                    .ifi_flags = IFF_UP,
                                    .ifi_change = IFF_UP };
    tci_netlink_begin(b, RTM_NEWLINK, NLM_F_ACK, &link, sizeof link);
}

/* A program that asks which families this machine has (AI_ADDRCONFIG) finds both. */
static void add_address(struct tci_netlink_batch *b, int family, const uint8_t *bytes, size_t size)
{
    const struct ifaddrmsg address = { .ifa_family = (uint8_t)family,
                                       .ifa_prefixlen = (uint8_t)(size * 8),
                                       .ifa_flags = IFA_F_NODAD | IFA_F_PERMANENT,
                                       .ifa_scope = RT_SCOPE_UNIVERSE,
                                       .ifa_index = loopback };
    tci_netlink_begin(b, RTM_NEWADDR, NLM_F_CREATE | NLM_F_ACK, &address, sizeof address);
    tci_netlink_attribute(b, IFA_LOCAL, bytes, size);
    tci_netlink_attribute(b, IFA_ADDRESS, bytes, size);
}

/* ip route add local default dev lo table local */
static void add_route(struct tci_netlink_batch *b, int family)
{
    const uint32_t out = loopback;
    const struct rtmsg route = {
        .rtm_family = (unsigned char)family,
        .rtm_table = RT_TABLE_LOCAL,
        .rtm_protocol = RTPROT_BOOT,
        .rtm_scope = family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
        .rtm_type = RTN_LOCAL,
    };
    tci_netlink_begin(b, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, &route, sizeof route);
    tci_netlink_attribute(b, RTA_OIF, &out, sizeof out);
}

/* ---- every port --------------------------------------------------------------------------------- */

static void text(struct tci_netlink_batch *b, uint16_t type, const char *value)
{
    tci_netlink_attribute(b, type, value, strlen(value) + 1);
}

static void number(struct tci_netlink_batch *b, uint16_t type, uint32_t value)
{
    uint32_t wire = htonl(value);
    tci_netlink_attribute(b, type, &wire, sizeof wire);
}

static void begin(struct tci_netlink_batch *b, uint16_t type, uint16_t flags)
{
    struct nfgenmsg header = { .nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0 };
    tci_netlink_begin(b, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), flags, &header,
                      sizeof header);
}

/* Messages for nf_tables come between a begin and an end. */
static void bracket(struct tci_netlink_batch *b, uint16_t type)
{
    struct nfgenmsg header = { .nfgen_family = AF_UNSPEC,
                               .version = NFNETLINK_V0,
                               .res_id = htons(NFNL_SUBSYS_NFTABLES) };
    tci_netlink_begin(b, type, 0, &header, sizeof header);
}

/* An expression of a rule: its name, then its own attributes until expression_end(). */
struct expression {
    size_t element, data;
};

static struct expression expression_begin(struct tci_netlink_batch *b, const char *name)
{
    struct expression e;
    e.element = tci_netlink_open(b, NFTA_LIST_ELEM);
    text(b, NFTA_EXPR_NAME, name);
    e.data = tci_netlink_open(b, NFTA_EXPR_DATA);
    return e;
}

static void expression_end(struct tci_netlink_batch *b, struct expression e)
{
    tci_netlink_close(b, e.data);
    tci_netlink_close(b, e.element);
}

static void compare(struct tci_netlink_batch *b, uint32_t how, const void *value, size_t size)
{
    size_t data;
    struct expression e = expression_begin(b, "cmp");
    number(b, NFTA_CMP_SREG, NFT_REG_1);
    number(b, NFTA_CMP_OP, how);
    data = tci_netlink_open(b, NFTA_CMP_DATA);
    tci_netlink_attribute(b, NFTA_DATA_VALUE, value, size);
    tci_netlink_close(b, data);
    expression_end(b, e);
}

static void match_meta(struct tci_netlink_batch *b, uint32_t key, uint8_t value)
{
    struct expression e = expression_begin(b, "meta");
    number(b, NFTA_META_DREG, NFT_REG_1);
    number(b, NFTA_META_KEY, key);
    expression_end(b, e);
    compare(b, NFT_CMP_EQ, &value, sizeof value);
}

/* The first `size` bytes of the destination are not `value`. */
static void match_not_to(struct tci_netlink_batch *b, uint32_t offset, const void *value,
                         size_t size)
{
    struct expression e = expression_begin(b, "payload");
    number(b, NFTA_PAYLOAD_DREG, NFT_REG_1);
    number(b, NFTA_PAYLOAD_BASE, NFT_PAYLOAD_NETWORK_HEADER);
    number(b, NFTA_PAYLOAD_OFFSET, offset);
    number(b, NFTA_PAYLOAD_LEN, (uint32_t)size);
    expression_end(b, e);
    compare(b, NFT_CMP_NEQ, value, size);
}

static void hand_over(struct tci_netlink_batch *b, uint32_t family)
{
    const uint16_t port = htons(TCI_GATE_CATCH_PORT);
    size_t data;
    struct expression e = expression_begin(b, "immediate");
    number(b, NFTA_IMMEDIATE_DREG, NFT_REG_1);
    data = tci_netlink_open(b, NFTA_IMMEDIATE_DATA);
    tci_netlink_attribute(b, NFTA_DATA_VALUE, &port, sizeof port);
    tci_netlink_close(b, data);
    expression_end(b, e);
    e = expression_begin(b, "tproxy");
    number(b, NFTA_TPROXY_FAMILY, family);
    number(b, NFTA_TPROXY_REG_PORT, NFT_REG_1);
    expression_end(b, e);
}

static void add_rule(struct tci_netlink_batch *b, uint8_t family, bool catch_loopback)
{
    static const uint8_t net127 = 127, one[16] = { [15] = 1 };
    size_t expressions;
    begin(b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND | NLM_F_ACK);
    text(b, NFTA_RULE_TABLE, table);
    text(b, NFTA_RULE_CHAIN, chain);
    expressions = tci_netlink_open(b, NFTA_RULE_EXPRESSIONS);
    match_meta(b, NFT_META_NFPROTO, family);
    match_meta(b, NFT_META_L4PROTO, IPPROTO_TCP);
    if (!catch_loopback && family == NFPROTO_IPV4)
        match_not_to(b, 16, &net127, sizeof net127);
    if (!catch_loopback && family == NFPROTO_IPV6)
        match_not_to(b, 24, one, sizeof one);
    hand_over(b, family);
    tci_netlink_close(b, expressions);
}

static void catch_every_port(struct tci_netlink_batch *b, bool catch_loopback)
{
    size_t hook;
    bracket(b, NFNL_MSG_BATCH_BEGIN);
    begin(b, NFT_MSG_NEWTABLE, NLM_F_CREATE);
    text(b, NFTA_TABLE_NAME, table);
    begin(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
    text(b, NFTA_CHAIN_TABLE, table);
    text(b, NFTA_CHAIN_NAME, chain);
    text(b, NFTA_CHAIN_TYPE, "filter");
    hook = tci_netlink_open(b, NFTA_CHAIN_HOOK);
    number(b, NFTA_HOOK_HOOKNUM, NF_INET_PRE_ROUTING);
    number(b, NFTA_HOOK_PRIORITY, (uint32_t)before_routing_priority);
    tci_netlink_close(b, hook);
    add_rule(b, NFPROTO_IPV4, catch_loopback);
    add_rule(b, NFPROTO_IPV6, catch_loopback);
    bracket(b, NFNL_MSG_BATCH_END);
}

bool tci_gate_catches_loopback(const struct tci_network *network)
{
    static const struct tci_address v4 = { .bytes = { 127 } };
    static const struct tci_address v6 = { .is_v6 = true, .bytes = { [15] = 1 } };
    for (size_t i = 0; i < network->count; i++) {
        const struct tci_netrule *rule = &network->rules[i].rule;
        const struct tci_host *host = &rule->host;
        const unsigned v4_bits = host->prefix < 8 ? host->prefix : 8;
        if (!rule->deny && host->kind == TCI_HOST_ADDRESS &&
            (tci_address_in_prefix(&host->address, &v4, v4_bits) ||
             tci_address_in_prefix(&v6, &host->address, host->prefix)))
            return true;
    }
    return false;
}

bool tci_gate_can_v6(void)
{
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    (void)tci_close(fd);
    return fd >= 0;
}

void tci_gate_setup(bool every_port, bool catch_loopback, struct tci_gate_setup *ret)
{
    uint8_t v4[4] = { TCI_GATE_V4_BYTES }, v6[16] = { TCI_GATE_V6_BYTES };
    memset(ret, 0, sizeof *ret);
    v4[3] = v6[15] = 1;
    bring_up(&ret->v4);
    add_address(&ret->v4, AF_INET, v4, sizeof v4);
    add_route(&ret->v4, AF_INET);
    add_address(&ret->v6, AF_INET6, v6, sizeof v6);
    add_route(&ret->v6, AF_INET6);
    if (every_port)
        catch_every_port(&ret->catcher, catch_loopback);
}
