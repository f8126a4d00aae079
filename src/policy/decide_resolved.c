/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: may a name be reached at the address that a resolver gave for it?
 *
 * The attack: whoever owns an allowed name points it at 127.0.0.1, at the router, or at the cloud's
 * metadata service (DNS rebinding). So a name leads to public addresses that are not this machine's;
 * to others only where a rule for addresses allows them as well.
 */
#include "policy/decide_network.h"

#include <string.h>
#include "policy/decide_internal.h"

/* The first rule of this kind for the address, or NULL. */
static const struct tci_network_entry *find_rule(const struct tci_network *network,
                                                 const struct tci_destination *at, bool deny)
{
    for (size_t i = 0; i < network->count; i++) {
        const struct tci_netrule *rule = &network->rules[i].rule;
        if (rule->deny == deny && tci_netrule_matches(rule, &at->host, at->port))
            return &network->rules[i];
    }
    return NULL;
}

static void refuse_denied(const struct tci_network_entry *entry, const struct tci_destination *to,
                          const char *address, struct tc_decision *d)
{
    tci_decide_place(d, entry->pos);
    tci_netrule_format(&entry->rule, d->rule);
    tci_decide(d, false, "network", "%s resolves to %s, which is denied by the rule \"%s\"",
               to->text, address, d->rule);
    tci_decide_fix(d, "remove the rule \"%s\"", d->rule);
}

static void refuse_special(const struct tci_network *network, const struct tci_destination *to,
                           const char *address, const struct tci_destination *at,
                           struct tc_decision *d)
{
    enum tci_address_class address_class = tci_address_classify(&at->host.address);
    d->rule[0] = '\0';
    tci_decide(d, false, "network",
               "%s resolves to %s, which is %s, and a name leads to public "
               "addresses only",
               to->text, address, tci_decide_class(address_class));
    if (network->mode == TCI_NETWORK_RULES && !network->only_public)
        tci_decide_fix(d, "add \"%s\" to \"network\" too", at->text);
    else
        tci_decide_fix(d, "set \"network\" to a list with \"%s\" and \"%s\"", to->text, at->text);
}

void tci_decide_resolved(const struct tci_network *network, const struct tci_destination *to,
                         const struct tci_address *address, bool is_own, struct tc_decision *d)
{
    const struct tci_network_entry *denied;
    struct tci_destination at;
    struct tc_decision unwanted = { 0 };
    char text[TCI_ADDRESS_TEXT_MAX];
    bool rules = network->mode == TCI_NETWORK_RULES && !network->only_public;

    tci_decide_destination(network, to, false, d);
    if (!d->allowed || network->mode == TCI_NETWORK_HOST)
        return;
    tci_address_format(address, text);
    if (!tci_destination_of_address(address, to->port, &at, &unwanted)) {
        tci_decide(d, false, "network", "%s resolves to %s, which is no address to go to", to->text,
                   text);
        tci_decide_fix(d, "mend the name's address");
        return;
    }
    denied = find_rule(network, &at, true);
    if (denied)
        refuse_denied(denied, to, text, d);
    else if ((is_own || tci_address_classify(&at.host.address) != TCI_ADDRESS_PUBLIC) &&
             !(rules && find_rule(network, &at, false)))
        refuse_special(network, to, text, &at, d);
}
