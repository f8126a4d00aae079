/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: may this host and port be reached? Names and addresses are brought to the one canonical form
 * before they are compared; deny beats allow. decide_resolved.c goes on with a name's addresses.
 */
#include "policy/decide_network.h"

#include <stdio.h>
#include <string.h>
#include "policy/decide_internal.h"

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

static void denied_by(const struct tci_network_entry *entry, const char *what,
                      struct tc_decision *d)
{
    tci_decide_place(d, entry->pos);
    tci_netrule_format(&entry->rule, d->rule);
    tci_decide(d, false, "network", "%s is denied by the rule \"%s\"", what, d->rule);
    tci_decide_fix(d, "remove the rule \"%s\"", d->rule);
}

static void decide_rules(const struct tci_network *network, const struct tci_destination *to,
                         struct tc_decision *d)
{
    const struct tci_network_entry *allow = NULL;
    for (size_t i = 0; i < network->count; i++) {
        const struct tci_network_entry *entry = &network->rules[i];
        if (!tci_netrule_matches(&entry->rule, &to->host, to->port))
            continue;
        if (entry->rule.deny) {
            denied_by(entry, to->text, d);
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
    /* In a cage such an address stands for a name, and for which one only that cage knows. */
    if (to->host.kind == TCI_HOST_ADDRESS &&
        tci_prefix_is_of_gate(&to->host.address, to->host.prefix)) {
        tci_decide(d, false, "network", "%s is one of the addresses that the gate gives to names",
                   to->text);
        tci_decide_fix(d, "give the host a name, and add the name to \"network\"");
        return;
    }
    tci_decide(d, true, "network", "%s is allowed by the rule \"%s\"", to->text, d->rule);
}

/* A name is let through here; the addresses that it resolves to are checked when it is dialled. */
static void decide_public(const struct tci_destination *to, bool is_own, struct tc_decision *d)
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
    if (address_class == TCI_ADDRESS_PUBLIC && !is_own) {
        tci_decide(d, true, "network", "\"public\" allows %s", to->text);
        return;
    }
    tci_decide(d, false, "network", "\"public\" does not include %s, which is %s", to->text,
               tci_decide_class(address_class));
    tci_decide_fix(d, "set \"network\" to a list with \"%s\"", to->text);
}

const char *tci_decide_class(enum tci_address_class address_class)
{
    return address_class == TCI_ADDRESS_PUBLIC ? "an address of this machine"
                                               : tci_address_class_name(address_class);
}

void tci_decide_destination(const struct tci_network *network, const struct tci_destination *to,
                            bool is_own, struct tc_decision *d)
{
    switch (network->mode) {
    case TCI_NETWORK_NONE:
        tci_decide(d, false, "network", "the network is \"none\"");
        tci_decide_fix(d, "set network = [\"%s\"]", to->text);
        break;
    case TCI_NETWORK_HOST:
        tci_decide(d, true, "network", "the tool has the host's network");
        break;
    case TCI_NETWORK_PUBLIC:
        decide_public(to, is_own, d);
        break;
    case TCI_NETWORK_RULES:
        if (network->only_public) {
            decide_public(to, is_own, d);
            if (!d->allowed)
                break;
        }
        decide_rules(network, to, d);
        break;
    }
}

/* ---- names that are asked for ------------------------------------------------------------------ */

/* Does the rule bear on the name at some port? That of an address does where the name alone is not
 * enough. */
static bool bears_on(const struct tci_netrule *rule, const struct tci_host *name)
{
    return tci_netrule_matches(rule, name, rule->port_low) ||
           (rule->host.kind == TCI_HOST_ADDRESS && is_localhost(name));
}

/* The lowest port at which a name is allowed is one at which an allow rule begins, or the one behind
 * a deny rule. True: *d is the answer for such a port. */
static bool is_allowed_somewhere(const struct tci_network *network, const struct tci_host *name,
                                 struct tc_decision *d)
{
    for (size_t i = 0; i < network->count; i++) {
        const struct tci_netrule *rule = &network->rules[i].rule;
        unsigned port = rule->deny ? rule->port_high + 1U : rule->port_low;
        struct tci_destination to;
        if (!bears_on(rule, name) || port > UINT16_MAX)
            continue;
        memset(d, 0, sizeof *d);
        if (!tci_destination_of_name(name, port, &to, d))
            return false;
        tci_decide_destination(network, &to, false, d);
        if (d->allowed)
            return true;
    }
    return false;
}

/* Nowhere: because of a rule that takes the first rule for this name back, or for want of one. */
static void decide_refused_question(const struct tci_network *network, const struct tci_host *name,
                                    struct tc_decision *d)
{
    const struct tci_network_entry *denied = NULL;
    struct tci_destination to;

    memset(d, 0, sizeof *d);
    for (size_t i = 0; i < network->count; i++) {
        const struct tci_network_entry *entry = &network->rules[i];
        if (!tci_netrule_matches(&entry->rule, name, entry->rule.port_low))
            continue;
        if (!entry->rule.deny) {
            if (tci_destination_of_name(name, entry->rule.port_low, &to, d))
                tci_decide_destination(network, &to, false, d);
            return;
        }
        if (!denied)
            denied = entry;
    }
    if (denied) {
        denied_by(denied, name->name, d);
        return;
    }
    tci_decide(d, false, "network", "no rule allows %s", name->name);
    tci_decide_fix(d, "add \"%s:443\" to \"network\", or with the port that is needed", name->name);
}

void tci_decide_question(const struct tci_network *network, const struct tci_host *name,
                         struct tc_decision *d)
{
    struct tci_destination to;

    if (network->mode == TCI_NETWORK_RULES) {
        if (!is_allowed_somewhere(network, name, d))
            decide_refused_question(network, name, d);
        return;
    }
    if (tci_destination_of_name(name, 443, &to, d))
        tci_decide_destination(network, &to, false, d);
}

/* ---- places ------------------------------------------------------------------------------------- */

static bool set_port(unsigned port, struct tci_destination *ret, struct tc_decision *d)
{
    char text[TCI_RULE_TEXT_MAX];
    if (port < 1 || port > UINT16_MAX) {
        tci_decide(d, false, "network", "%u is not a port", port);
        tci_decide_fix(d, "use a port from 1 to 65535");
        return false;
    }
    ret->port = (uint16_t)port;
    (void)snprintf(ret->text, sizeof ret->text, "%s:%u", tci_host_format(&ret->host, text), port);
    return true;
}

static bool read_destination(const char *host, unsigned port, struct tci_destination *ret,
                             struct tc_decision *d)
{
    struct tci_netrule_problem problem;
    char given[TCI_QUOTE_MAX];
    if (tci_destination_parse(host, strlen(host), &ret->host, &problem) < 0) {
        tci_decide(d, false, "network", "%s is not a host: %s", tci_decide_quote(host, given),
                   problem.message);
        tci_decide_fix(d, "%s", problem.remedy);
        return false;
    }
    return set_port(port, ret, d);
}

bool tci_destination_of_name(const struct tci_host *name, unsigned port,
                             struct tci_destination *ret, struct tc_decision *d)
{
    char text[TCI_RULE_TEXT_MAX];
    ret->host = *name;
    if (name->kind == TCI_HOST_NAME)
        return set_port(port, ret, d);
    tci_decide(d, false, "network", "%s is not a name", tci_host_format(name, text));
    tci_decide_fix(d, "ask for a host by its name");
    return false;
}

bool tci_destination_of_address(const struct tci_address *address, unsigned port,
                                struct tci_destination *ret, struct tc_decision *d)
{
    char text[TCI_ADDRESS_TEXT_MAX];
    return read_destination(tci_address_format(address, text), port, ret, d);
}

void tc_decide_network(const struct tc_policy *policy, const char *agent, const char *tool,
                       const char *host, unsigned port, struct tc_decision *ret)
{
    const struct tci_tool *t;
    const struct tci_grant *grant;
    struct tci_destination to;
    struct tc_decision by_tool;

    if (!tci_decide_find(policy, agent, tool, &t, &grant, ret) ||
        !read_destination(host ? host : "", port, &to, ret))
        return;
    tci_decide_place(ret, t->settings.pos[TCI_KEY_NETWORK]);
    tci_decide_destination(&t->settings.network, &to, false, ret);
    if (!ret->allowed || !grant || !(grant->narrow->present & tci_key_bit(TCI_KEY_NETWORK)))
        return;
    by_tool = *ret;
    memset(ret, 0, sizeof *ret);
    tci_decide_place(ret, grant->narrow->pos[TCI_KEY_NETWORK]);
    tci_decide_destination(&grant->narrow->network, &to, false, ret);
    if (ret->allowed)
        *ret = by_tool;
}
