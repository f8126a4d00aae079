/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host with two tools of its own: a function of this program, and a handler in a shared object,
 * which is loaded in its cage and never here.
 *
 *   cc handler.c $(pkg-config --cflags --libs toolcage) -o handler
 *   cc -shared -fPIC handler_words.c $(pkg-config --cflags toolcage) -o handler_words.so
 *   ./handler "$PWD/handler_words.so"
 *
 * docs/handlers.md says which of the two to choose: the shared object.
 */
#include <stdio.h>
#include <string.h>
#include <toolcage/toolcage.h>

static int fail(const struct tc_error *error)
{
    fprintf(stderr, "handler: %s\n", error->message);
    if (error->remedy[0])
        fprintf(stderr, "handler: remedy: %s\n", error->remedy);
    return 1;
}

/* Runs in a fork of this program, in a cage: without files, without network, for 5 s at most. It sees
 * a copy of this program's memory, and what it changes there changes nothing here. */
static int shout(const struct tc_handler_call *call)
{
    char text[4096];
    size_t n = call->arguments_length < sizeof text ? call->arguments_length : sizeof text;
    for (size_t i = 0; i < n; i++) {
        char c = call->arguments_json[i];
        text[i] = (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    }
    return call->reply(call, text, n) < 0; /* the exit status */
}

static int call(struct tc_engine *engine, const char *tool, const char *arguments)
{
    struct tc_request request = { .tool = tool, .arguments_json = arguments };
    struct tc_result *result = NULL;
    struct tc_error error;
    if (tc_call(engine, &request, &result, &error) < 0)
        return fail(&error);
    printf("%s: %s: %s\n", tool, tc_verdict_name(result->verdict),
           result->verdict == TC_VERDICT_OK ? result->stdout_data : result->reason);
    tc_result_free(result);
    return 0;
}

int main(int argc, char **argv)
{
    static const char limits[] = "filesystem = \"none\"\n"
                                 "timeout = \"5s\"\n"
                                 "parameters = { type = \"object\", required = [\"text\"] }\n";
    const struct tc_tool_definition function = { .name = "shout",
                                                 .policy = limits,
                                                 .function = shout };
    const struct tc_tool_definition object = { .name = "words",
                                               .policy = limits,
                                               .library = argc > 1 ? argv[1] : NULL,
                                               .symbol = "count_words" };
    struct tc_engine *engine = NULL;
    struct tc_error error;
    int status;

    if (argc != 2) {
        fprintf(stderr, "usage: handler /path/to/handler_words.so\n");
        return 2;
    }
    if (tc_engine_open(NULL, &engine, &error) < 0)
        return fail(&error);
    if (tc_tool_define(engine, &function, &error) < 0 ||
        tc_tool_define(engine, &object, &error) < 0) {
        tc_engine_close(engine);
        return fail(&error);
    }
    status = call(engine, "shout", "{\"text\":\"hello\"}") |
             call(engine, "words", "{\"text\":\"one two three\"}") | call(engine, "words", "{}");
    tc_engine_close(engine);
    return status;
}
