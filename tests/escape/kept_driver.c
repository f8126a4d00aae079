/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a host that keeps its plans, for tests that change files between two calls: one engine, and one call
 * of a tool for each line that it reads. Answers with one line for each: verdict, reason, what was printed.
 *
 *   kept-driver POLICY warm|cold      lines: TOOL SCRIPT
 */
#include <stdio.h>
#include <string.h>
#include "toolcage/toolcage.h"

static void put_field(const char *text, char end)
{
    for (; *text; text++)
        putchar(*text == '\n' || *text == '\t' ? ' ' : *text);
    putchar(end);
}

static void call(struct tc_engine *engine, char *line)
{
    char *script = strchr(line, ' ');
    struct tc_result *result = NULL;
    struct tc_error error = { 0 };
    if (!script)
        return;
    *script++ = '\0';
    const char *const argv[] = { "sh", "-c", script, NULL };
    const struct tc_request request = { .tool = line, .argv = argv };
    if (tc_call(engine, &request, &result, &error) < 0) {
        printf("none\t");
        put_field(error.message, '\t');
        putchar('\n');
    } else {
        put_field(tc_verdict_name(result->verdict), '\t');
        put_field(result->reason, '\t');
        put_field(result->stdout_data, '\n');
        tc_result_free(result);
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    char line[4096];
    struct tc_engine *engine = NULL;
    struct tc_error error = { 0 };
    if (argc != 3)
        return 64;
    const struct tc_engine_options options = {
        .policy_path = argv[1], .flags = strcmp(argv[2], "warm") == 0 ? TC_ENGINE_WARM : 0
    };
    if (tc_engine_open(&options, &engine, &error) < 0) {
        fprintf(stderr, "kept-driver: %s\n", error.message);
        return 1;
    }
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = '\0';
        call(engine, line);
    }
    tc_engine_close(engine);
    return 0;
}
