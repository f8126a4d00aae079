/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a line-by-line window onto the gate's rules, for test_gate_rules_differential.py.
 *
 *   NETWORK<TAB>question<TAB>NAME
 *   NETWORK<TAB>name<TAB>NAME<TAB>PORT
 *   NETWORK<TAB>address<TAB>ADDRESS<TAB>PORT<TAB>OWN
 *   NETWORK<TAB>resolved<TAB>NAME<TAB>ADDRESS<TAB>PORT<TAB>OWN
 *   NETWORK<TAB>ports
 *
 * NETWORK: none, public, or rules with spaces between them, which may begin with "only_public ". OWN: 0
 * or 1. The answer is "yes RULE" or "no RULE" (a RULE may be empty), "every" or a list of ports; or
 * "error" for what cannot be read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gate/rules.h"

enum { fields_max = 6, rules_max = 64 };

static bool read_host(const char *text, struct tci_host *ret)
{
    struct tci_netrule_problem problem;
    return tci_destination_parse(text, strlen(text), ret, &problem) == 0;
}

static bool read_address(const char *text, struct tci_address *ret)
{
    return tci_address_parse_v4(text, strlen(text), ret) ||
           tci_address_parse_v6(text, strlen(text), ret);
}

static bool read_network(char *text, struct tci_network_entry rules[rules_max],
                         struct tci_network *ret)
{
    struct tci_netrule_problem problem;
    char *rest = NULL;

    *ret = (struct tci_network){ .rules = rules };
    if (strcmp(text, "none") == 0)
        return true;
    if (strcmp(text, "public") == 0) {
        ret->mode = TCI_NETWORK_PUBLIC;
        return true;
    }
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (strcmp(word, "only_public") == 0)
            ret->only_public = true;
        else if (ret->count == rules_max ||
                 tci_netrule_parse(word, strlen(word), &rules[ret->count++].rule, &problem) < 0)
            return false;
    }
    ret->mode = ret->count ? TCI_NETWORK_RULES : TCI_NETWORK_NONE;
    return true;
}

static void print_ports(const struct tci_network *network)
{
    struct tci_gate_ports ports;
    tci_gate_ports(network, &ports);
    if (ports.every)
        (void)fputs("every", stdout);
    for (unsigned i = 0; i < ports.count; i++)
        (void)printf("%s%u", i ? " " : "", (unsigned)ports.items[i]);
    (void)putchar('\n');
}

/* False: the line cannot be read. */
static bool ask(const struct tci_network *network, char *const fields[], unsigned count,
                struct tci_gate_verdict *ret)
{
    const char *verb = fields[1];
    struct tci_host host;
    struct tci_address address;

    if (count == 3 && strcmp(verb, "question") == 0 && read_host(fields[2], &host))
        tci_gate_allows_question(network, &host, ret);
    else if (count == 4 && strcmp(verb, "name") == 0 && read_host(fields[2], &host))
        tci_gate_allows_name(network, &host, (uint16_t)atoi(fields[3]), ret);
    else if (count == 5 && strcmp(verb, "address") == 0 && read_address(fields[2], &address))
        tci_gate_allows_address(network, &address, fields[4][0] == '1', (uint16_t)atoi(fields[3]),
                                ret);
    else if (count == 6 && strcmp(verb, "resolved") == 0 && read_host(fields[2], &host) &&
             read_address(fields[3], &address))
        tci_gate_allows_resolved(network, &host, &address, fields[5][0] == '1',
                                 (uint16_t)atoi(fields[4]), ret);
    else
        return false;
    return true;
}

static void answer(char *line)
{
    static struct tci_network_entry rules[rules_max];
    struct tci_gate_verdict verdict;
    struct tci_network network;
    char *fields[fields_max];
    unsigned count = 0;

    for (char *at = line; at && count < fields_max; count++) {
        char *tab = strchr(at, '\t');
        if (tab)
            *tab++ = '\0';
        fields[count] = at;
        at = tab;
    }
    if (count < 2 || !read_network(fields[0], rules, &network))
        (void)puts("error");
    else if (strcmp(fields[1], "ports") == 0)
        print_ports(&network);
    else if (!ask(&network, fields, count, &verdict))
        (void)puts("error");
    else
        (void)printf("%s %s\n", verdict.allowed ? "yes" : "no", verdict.rule);
}

int main(void)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;

    while ((length = getline(&line, &capacity, stdin)) >= 0) {
        if (length > 0 && line[length - 1] == '\n')
            line[length - 1] = '\0';
        answer(line);
    }
    free(line);
    return 0;
}
