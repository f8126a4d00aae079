/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: may this host and port be reached? Names and addresses are brought to the one canonical form
 * before they are compared; deny beats allow.
 */
#include "policy/decide_internal.h"

#include <stdio.h>
#include <string.h>

struct destination {
    struct tci_host host;
    uint16_t port;
    char text[TCI_RULE_TEXT_MAX + 8]; /* canonical "HOST:PORT" */
};

/* "localhost" and names below it are this machine, whatever a resolver says (RFC 6761). */
static bool is_localhost(const struct tci_host *host)
{
    size_t length = strlen(host->name), suffix = strlen(".localhost");
    return host->kind == TCI_HOST_NAME &&
           (strcmp(host->name, "localhost") == 0 ||
            (length > suffix && strcmp(host->name + length - suffix, ".localhost") == 0));
}

/* A name that is not public needs an address rule besides: would one let it through? */
static bool allows_loopback(const struct tci_network *network, uint16_t port)
{
    static const struct tci_host loopback[] = {
        { .kind = TCI_HOST_ADDRESS, .address = { .bytes = { 127, 0, 0, 1 } }, .prefix = 32 },
        { .kind = TCI_HOST_ADDRESS,
          .address = { .is_v6 = true, .bytes = { [15] = 1 } },
          .prefix = 128 },
    };
    for (size_t j = 0; j < tci_array_size(loopback); j++) {
        bool allowed = false, denied = false;
        for (size_t i = 0; i < network->count; i++) {
            const struct tci_netrule *rule = &network->rules[i].rule;
            if (tci_netrule_matches(rule, &loopback[j], port))
                *(rule->deny ? &denied : &allowed) = true;
        }
        if (allowed && !denied)
            return true;
    }
    return false;
}

static void decide_rules(const struct tci_network *network, const struct destination *to,
                         struct tc_decision *d)
{
    const struct tci_network_entry *allow = NULL;
    for (size_t i = 0; i < network->count; i++) {
        const struct tci_network_entry *entry = &network->rules[i];
        if (!tci_netrule_matches(&entry->rule, &to->host, to->port))
            continue;
        if (entry->rule.deny) {
            tci_decide_place(d, entry->pos);
            tci_netrule_format(&entry->rule, d->rule);
            tci_decide(d, false, "network", "%s is denied by the rule \"%s\"", to->text, d->rule);
            tci_decide_fix(d, "remove the rule \"%s\"", d->rule);
            return;
        }
        if (!allow)
            allow = entry;
    }
    if (!allow) {
        tci_decide(d, false, "network", "no rule allows %s", to->text);
        tci_decide_fix(d, "add \"%s\" to \"network\"", to->text);
        return;
    }
    tci_decide_place(d, allow->pos);
    tci_netrule_format(&allow->rule, d->rule);
    if (is_localhost(&to->host) && !allows_loopback(network, to->port)) {
        tci_decide(d, false, "network", "%s is this machine, which needs a rule for its address",
                   to->text);
        tci_decide_fix(d, "add \"127.0.0.1:%u\" to \"network\"", (unsigned)to->port);
        return;
    }
    tci_decide(d, true, "network", "%s is allowed by the rule \"%s\"", to->text, d->rule);
}

/* A name is let through here; the addresses that it resolves to are checked when it is dialled. */
static void decide_public(const struct destination *to, struct tc_decision *d)
{
    enum tci_address_class address_class;
    if (is_localhost(&to->host)) {
        tci_decide(d, false, "network", "\"public\" does not include this machine: %s", to->text);
        tci_decide_fix(d, "set \"network\" to a list with \"127.0.0.1:%u\"", (unsigned)to->port);
        return;
    }
    if (to->host.kind == TCI_HOST_NAME) {
        tci_decide(d, true, "network",
                   "\"public\" allows %s as long as it resolves to a public address", to->text);
        return;
    }
    address_class = tci_address_classify(&to->host.address);
    if (address_class == TCI_ADDRESS_PUBLIC) {
        tci_decide(d, true, "network", "\"public\" allows %s", to->text);
        return;
    }
    tci_decide(d, false, "network", "\"public\" does not include %s, which is %s", to->text,
               tci_address_class_name(address_class));
    tci_decide_fix(d, "set \"network\" to a list with \"%s\"", to->text);
}

static void decide_network(const struct tci_network *network, struct tci_pos pos,
                           const struct destination *to, struct tc_decision *d)
{
    tci_decide_place(d, pos);
    switch (network->mode) {
    case TCI_NETWORK_NONE:
        tci_decide(d, false, "network", "the network is \"none\"");
        tci_decide_fix(d, "set network = [\"%s\"]", to->text);
        break;
    case TCI_NETWORK_HOST:
        tci_decide(d, true, "network", "the tool has the host's network");
        break;
    case TCI_NETWORK_PUBLIC:
        decide_public(to, d);
        break;
    case TCI_NETWORK_RULES:
        decide_rules(network, to, d);
        break;
    }
}

static bool parse_destination(const char *host, unsigned port, struct destination *ret,
                              struct tc_decision *d)
{
    struct tci_netrule_problem problem;
    char text[TCI_RULE_TEXT_MAX], given[TCI_QUOTE_MAX];
    if (tci_destination_parse(host, strlen(host), &ret->host, &problem) < 0) {
        tci_decide(d, false, "network", "%s is not a host: %s", tci_decide_quote(host, given),
                   problem.message);
        tci_decide_fix(d, "%s", problem.remedy);
        return false;
    }
    if (port < 1 || port > 65535) {
        tci_decide(d, false, "network", "%u is not a port", port);
        tci_decide_fix(d, "use a port from 1 to 65535");
        return false;
    }
    ret->port = (uint16_t)port;
    (void)snprintf(ret->text, sizeof ret->text, "%s:%u", tci_host_format(&ret->host, text), port);
    return true;
}

void tc_decide_network(const struct tc_policy *policy, const char *agent, const char *tool,
                       const char *host, unsigned port, struct tc_decision *ret)
{
    const struct tci_tool *t;
    const struct tci_grant *grant;
    struct destination to;
    struct tc_decision by_tool;

    if (!tci_decide_find(policy, agent, tool, &t, &grant, ret) ||
        !parse_destination(host ? host : "", port, &to, ret))
        return;
    decide_network(&t->settings.network, t->settings.pos[TCI_KEY_NETWORK], &to, ret);
    if (!ret->allowed || !grant || !(grant->narrow->present & tci_key_bit(TCI_KEY_NETWORK)))
        return;
    by_tool = *ret;
    memset(ret, 0, sizeof *ret);
    decide_network(&grant->narrow->network, grant->narrow->pos[TCI_KEY_NETWORK], &to, ret);
    if (ret->allowed)
        *ret = by_tool;
}
