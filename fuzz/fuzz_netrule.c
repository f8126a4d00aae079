/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the fuzz target of policy/netrule.h. Input: one rule; behind the first newline, if there is
 * one, a destination. Checks what must hold for each input, not what one input should give.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "policy/netrule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_shown_text(const char *text)
{
    check(*text != '\0');
    for (; *text; text++)
        check(*text >= 0x20 && *text < 0x7f);
}

static bool parse(const char *text, size_t length, struct tci_netrule *ret)
{
    struct tci_netrule_problem problem;
    int r = tci_netrule_parse(text, length, ret, &problem);

    check(r == 0 || r == -1);
    if (r == 0)
        return true;
    check_shown_text(problem.message);
    check_shown_text(problem.remedy);
    return false;
}

/* Turning allow into deny, or back, changes the prefix and nothing else. */
static void check_deny_prefix(const struct tci_netrule *rule, const char *text)
{
    struct tci_netrule turned = *rule, again;
    char turned_text[TCI_RULE_TEXT_MAX];

    turned.deny = !rule->deny;
    tci_netrule_format(&turned, turned_text);
    const char *deny_text = rule->deny ? text : turned_text;
    const char *allow_text = rule->deny ? turned_text : text;
    check(strncmp(deny_text, "deny:", 5) == 0 && strcmp(deny_text + 5, allow_text) == 0);
    check(parse(turned_text, strlen(turned_text), &again));
    check(tci_netrule_equal(&turned, &again) && !tci_netrule_equal(rule, &again));
    check(tci_netrule_covers(rule, &again) && tci_netrule_covers(&again, rule));
}

static void check_rule(const struct tci_netrule *rule)
{
    struct tci_netrule again;
    struct tci_host host;
    struct tci_netrule_problem problem;
    char text[TCI_RULE_TEXT_MAX], text_again[TCI_RULE_TEXT_MAX];

    check(rule->port_low >= 1 && rule->port_low <= rule->port_high);
    tci_netrule_format(rule, text);
    check_shown_text(text);
    check(strlen(text) < TCI_RULE_TEXT_MAX - 1);
    check(parse(text, strlen(text), &again));
    check(tci_netrule_equal(rule, &again));
    check(strcmp(tci_netrule_format(&again, text_again), text) == 0);
    check(tci_netrule_covers(rule, rule));
    check_deny_prefix(rule, text);

    tci_host_format(&rule->host, text);
    check(tci_host_parse(text, strlen(text), &host, &problem) == 0);
    check(strcmp(tci_host_format(&host, text_again), text) == 0);
    if (rule->host.kind == TCI_HOST_ADDRESS)
        check(!tci_address_has_host_bits(&rule->host.address, rule->host.prefix));
}

static void check_match(const struct tci_netrule *rule, const struct tci_host *destination)
{
    struct tci_netrule single = { .host = *destination,
                                  .port_low = rule->port_low,
                                  .port_high = rule->port_low };
    struct tci_netrule allow = *rule, deny = *rule;

    allow.deny = false;
    deny.deny = true;
    bool allowed = tci_netrule_matches(&allow, destination, rule->port_low);
    check(allowed == tci_netrule_covers(rule, &single));
    check(!allowed || tci_netrule_matches(&deny, destination, rule->port_low));
    check(!tci_netrule_matches(&deny, destination, (uint16_t)(rule->port_low - 1)));
    check(tci_netrule_matches(&single, destination, rule->port_low));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *newline = size > 0 ? memchr(data, '\n', size) : NULL;
    size_t rule_length = newline ? (size_t)(newline - text) : size;
    const char *rest = newline ? newline + 1 : text;
    size_t rest_length = newline ? size - rule_length - 1 : size;
    struct tci_netrule rule;
    struct tci_host destination, again;
    struct tci_netrule_problem problem;
    char canonical[TCI_RULE_TEXT_MAX], text_again[TCI_RULE_TEXT_MAX];

    bool have_rule = parse(text, rule_length, &rule);
    if (have_rule)
        check_rule(&rule);
    if (tci_destination_parse(rest, rest_length, &destination, &problem) < 0) {
        check_shown_text(problem.message);
        check_shown_text(problem.remedy);
        return 0;
    }
    check(destination.kind != TCI_HOST_WILDCARD);
    tci_host_format(&destination, canonical);
    check(tci_destination_parse(canonical, strlen(canonical), &again, &problem) == 0);
    check(strcmp(tci_host_format(&again, text_again), canonical) == 0);
    check(tci_host_parse(canonical, strlen(canonical), &again, &problem) == 0);
    if (have_rule)
        check_match(&rule, &destination);
    return 0;
}
