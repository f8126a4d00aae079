/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a program that makes recorded calls, for tests that kill it or take its journal away.
 *   journal_host POLICY JOURNAL SESSION TOOL          calls without end; prints the id of each call
 *                                                     that has a result, as soon as it has it
 *   journal_host POLICY JOURNAL SESSION TOOL asked    makes a call for every line on stdin, prints
 *                                                     its result
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "toolcage/toolcage.h"

static int fail(const struct tc_error *error)
{
    dprintf(STDERR_FILENO, "%s (%s)\n", error->message, error->remedy);
    return 1;
}

int main(int argc, char **argv)
{
    struct tc_engine *engine = NULL;
    struct tc_error error = { 0 };
    char line[64];

    if (argc < 5)
        return 2;
    if (tc_engine_open(
            &(struct tc_engine_options){ .policy_path = argv[1], .journal_path = argv[2] }, &engine,
            &error) < 0)
        return fail(&error);
    if (argc > 5)
        (void)dprintf(STDOUT_FILENO, "open\n");
    for (unsigned i = 0; argc <= 5 || fgets(line, sizeof line, stdin); i++) {
        char arguments[32];
        struct tc_result *result = NULL;
        struct tc_request request = { .tool = argv[4],
                                      .session = argv[3],
                                      .arguments_json = arguments };
        (void)snprintf(arguments, sizeof arguments, "{\"word\":\"%u\"}", i);
        if (tc_call(engine, &request, &result, &error) < 0)
            return fail(&error);
        if (argc > 5)
            (void)dprintf(STDOUT_FILENO, "%s\n", tc_result_json(result));
        else if (result->verdict == TC_VERDICT_OK)
            (void)dprintf(STDOUT_FILENO, "%s\n", result->call_id);
        else
            return dprintf(STDERR_FILENO, "%s\n", result->reason) < 0 ? 2 : 1;
        tc_result_free(result);
    }
    tc_engine_close(engine);
    return 0;
}
