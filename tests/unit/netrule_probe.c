/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a line-by-line window onto the rule matcher, for test_netrule_differential.py.
 *
 *   RULE<TAB>HOST<TAB>PORT   match, nomatch or error (rule, host or port refused)
 *   class<TAB>ADDRESS        the address's class, or error
 *   text<TAB>ADDRESS         the address's canonical text, or error
 *   rule<TAB>RULE            the rule's canonical text, or error
 *   host<TAB>HOST            what tci_destination_parse makes of it, or error
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "policy/netrule.h"
#include "policy/netrule_internal.h"

static bool read_address(struct tci_span text, struct tci_address *ret)
{
    return tci_address_parse_v4(text.at, text.length, ret) ||
           tci_address_parse_v6(text.at, text.length, ret);
}

static const char *match(struct tci_span rule_text, struct tci_span host_text,
                         struct tci_span port_text)
{
    struct tci_netrule rule;
    struct tci_host host;
    struct tci_netrule_problem problem;
    unsigned port;

    if (tci_netrule_parse(rule_text.at, rule_text.length, &rule, &problem) < 0 ||
        tci_destination_parse(host_text.at, host_text.length, &host, &problem) < 0 ||
        !tci_span_number(port_text, UINT16_MAX, &port))
        return "error";
    return tci_netrule_matches(&rule, &host, (uint16_t)port) ? "match" : "nomatch";
}

static bool is(struct tci_span text, const char *word)
{
    return text.length == strlen(word) && memcmp(text.at, word, text.length) == 0;
}

static const char *answer(struct tci_span verb, struct tci_span text,
                          char buffer[TCI_RULE_TEXT_MAX])
{
    struct tci_netrule rule;
    struct tci_host host;
    struct tci_address address;
    struct tci_netrule_problem problem;

    if (is(verb, "class") && read_address(text, &address))
        return tci_address_class_name(tci_address_classify(&address));
    if (is(verb, "text") && read_address(text, &address))
        return tci_address_format(&address, buffer);
    if (is(verb, "rule") && tci_netrule_parse(text.at, text.length, &rule, &problem) == 0)
        return tci_netrule_format(&rule, buffer);
    if (is(verb, "host") && tci_destination_parse(text.at, text.length, &host, &problem) == 0)
        return tci_host_format(&host, buffer);
    return "error";
}

int main(void)
{
    char *line = NULL, buffer[TCI_RULE_TEXT_MAX];
    size_t capacity = 0;
    ssize_t length;

    while ((length = getline(&line, &capacity, stdin)) >= 0) {
        struct tci_span rest = { line, (size_t)length }, fields[3];
        unsigned count = 0;
        if (rest.length > 0 && rest.at[rest.length - 1] == '\n')
            rest.length--;
        for (bool more = true; more && count < 3; count++) {
            size_t tab = tci_span_find(rest, '\t');
            more = tab < rest.length;
            fields[count] = tci_span_until(rest, tab);
            rest = tci_span_from(rest, more ? tab + 1 : tab);
        }
        if (count == 3)
            puts(match(fields[0], fields[1], fields[2]));
        else
            puts(count == 2 ? answer(fields[0], fields[1], buffer) : "error");
    }
    free(line);
    return 0;
}
