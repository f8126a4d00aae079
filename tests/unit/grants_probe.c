/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: decisions of one engine in a process of its own, for the end-to-end tests: no cage is built.
 *   grants_probe POLICY JOURNAL AGENT TOOL
 * For each line of input, which is a number, it asks so many times whether the agent may call the tool,
 * and prints how often it may, and the last reason.
 */
#include <stdio.h>
#include <stdlib.h>
#include "core/engine.h"

static void ask(struct tc_engine *engine, const char *agent, const char *tool, int times)
{
    const char *agents[TCI_GRANTS_MAX];
    size_t count = tci_engine_chain(engine, agent, agents);
    struct tc_decision decision = { 0 };
    struct tc_error error = { 0 };
    int allowed = 0;

    for (int i = 0; i < times; i++) {
        struct tci_grants grants;
        if (tci_engine_decide(engine, agents, count, tool, &grants, &decision, &error) < 0) {
            (void)printf("error %s\n", error.message);
            (void)fflush(stdout);
            return;
        }
        allowed += decision.allowed;
    }
    (void)printf("%d %s\n", allowed, decision.reason);
    (void)fflush(stdout);
}

int main(int argc, char **argv)
{
    struct tc_engine_options options = { 0 };
    struct tc_engine *engine;
    struct tc_error error = { 0 };
    char line[32];

    if (argc != 5)
        return 2;
    options.policy_path = argv[1];
    options.journal_path = argv[2];
    if (tc_engine_open(&options, &engine, &error) < 0) {
        (void)fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    while (fgets(line, sizeof line, stdin))
        ask(engine, argv[3], argv[4], atoi(line));
    tc_engine_close(engine);
    return 0;
}
