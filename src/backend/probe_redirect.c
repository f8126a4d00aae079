/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: can the gate listen for every port at once? Asks nf_tables, in a network namespace of our
 * own, to redirect all TCP to one listener, then dials another port:
 *
 *   table inet toolcage { chain out { type nat hook output priority -100;
 *                                     meta l4proto tcp redirect to :4434 } }
 */
#include "backend/probe.h"
#include "backend/probe_gate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>

enum { DIALLED = 4435, LISTENING = 4434 };

static const char REMEDY[] =
    "load the modules: sudo modprobe -a nf_tables nft_redir nft_chain_nat; or use a kernel with "
    "CONFIG_NF_TABLES_INET, CONFIG_NFT_REDIR and CONFIG_NFT_NAT";

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

/* "meta l4proto tcp": load the protocol, compare it. */
static void match_tcp(struct tci_netlink_batch *b)
{
    const uint8_t tcp = IPPROTO_TCP;
    size_t data;
    struct expression e = expression_begin(b, "meta");
    number(b, NFTA_META_DREG, NFT_REG_1);
    number(b, NFTA_META_KEY, NFT_META_L4PROTO);
    expression_end(b, e);
    e = expression_begin(b, "cmp");
    number(b, NFTA_CMP_SREG, NFT_REG_1);
    number(b, NFTA_CMP_OP, NFT_CMP_EQ);
    data = tci_netlink_open(b, NFTA_CMP_DATA);
    tci_netlink_attribute(b, NFTA_DATA_VALUE, &tcp, sizeof tcp);
    tci_netlink_close(b, data);
    expression_end(b, e);
}

/* "redirect to :4434": load the port, redirect. */
static void redirect(struct tci_netlink_batch *b)
{
    const uint16_t port = htons(LISTENING);
    size_t data;
    struct expression e = expression_begin(b, "immediate");
    number(b, NFTA_IMMEDIATE_DREG, NFT_REG_1);
    data = tci_netlink_open(b, NFTA_IMMEDIATE_DATA);
    tci_netlink_attribute(b, NFTA_DATA_VALUE, &port, sizeof port);
    tci_netlink_close(b, data);
    expression_end(b, e);
    e = expression_begin(b, "redir");
    number(b, NFTA_REDIR_REG_PROTO_MIN, NFT_REG_1);
    expression_end(b, e);
}

/* 0 or an errno. */
static int install(void)
{
    struct tci_netlink_batch b = { 0 };
    size_t hook, expressions;
    bracket(&b, NFNL_MSG_BATCH_BEGIN);
    begin(&b, NFT_MSG_NEWTABLE, NLM_F_CREATE);
    text(&b, NFTA_TABLE_NAME, "toolcage");
    begin(&b, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
    text(&b, NFTA_CHAIN_TABLE, "toolcage");
    text(&b, NFTA_CHAIN_NAME, "out");
    text(&b, NFTA_CHAIN_TYPE, "nat");
    hook = tci_netlink_open(&b, NFTA_CHAIN_HOOK);
    number(&b, NFTA_HOOK_HOOKNUM, NF_INET_LOCAL_OUT);
    number(&b, NFTA_HOOK_PRIORITY, (uint32_t)-100);
    tci_netlink_close(&b, hook);
    begin(&b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND | NLM_F_ACK);
    text(&b, NFTA_RULE_TABLE, "toolcage");
    text(&b, NFTA_RULE_CHAIN, "out");
    expressions = tci_netlink_open(&b, NFTA_RULE_EXPRESSIONS);
    match_tcp(&b);
    redirect(&b);
    tci_netlink_close(&b, expressions);
    bracket(&b, NFNL_MSG_BATCH_END);
    return tci_netlink_send(NETLINK_NETFILTER, &b);
}

void tci_probe_gate_redirect(const struct tci_probe *p)
{
    const enum tci_feature id = TCI_FEATURE_GATE_REDIRECT;
    char why[TCI_FEATURE_DETAIL_MAX] = "";
    const char *step;
    int problem = tci_gate_enter(&step, why, sizeof why);
    if (problem) {
        tci_probe_failed(p, id, "see user_namespaces and net_namespace", problem, "%s: %s", step,
                         *why ? why : strerrordesc_np(problem));
        return;
    }
    problem = install();
    if (problem) {
        tci_probe_refused(p, id, REMEDY, "nf_tables", problem);
        return;
    }
    problem = tci_gate_add_local_route(AF_INET);
    if (!problem)
        problem = tci_gate_catch(AF_INET, "198.51.100.7", DIALLED, LISTENING);
    if (problem)
        tci_probe_refused(p, id, REMEDY, "a redirected connection", problem);
    else
        tci_probe_yes(p, id, "a connection to another port was caught");
}
