/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host that runs commands in cages through libtoolcage. Two calls: one that blocks, and one in an
 * event loop, whose output is shown as it comes.
 *
 *   cc embed.c $(pkg-config --cflags --libs toolcage) -o embed
 *   ./embed [POLICY]
 *
 * Without a policy the cage has the built-in limits, no network, and the present directory readable
 * at /workspace.
 */
#include <poll.h>
#include <stdio.h>
#include <toolcage/toolcage.h>

static int fail(const struct tc_error *error)
{
    fprintf(stderr, "embed: %s\n", error->message);
    if (error->remedy[0])
        fprintf(stderr, "embed: remedy: %s\n", error->remedy);
    return 1;
}

/* One call, start to end. A refusal is a result like any other: look at its verdict. */
static int call_and_wait(struct tc_engine *engine)
{
    const char *const argv[] = { "sh", "-c", "echo \"hello from $(pwd)\"; cat; exit 3", NULL };
    struct tc_request request = { .argv = argv, .input = "and from stdin\n", .input_length = 15 };
    struct tc_result *result = NULL;
    struct tc_error error;

    if (tc_call(engine, &request, &result, &error) < 0)
        return fail(&error);
    printf("verdict: %s (exit code %d)\n", tc_verdict_name(result->verdict), result->exit_code);
    printf("stdout: %s", result->stdout_data);
    if (result->fix[0])
        printf("reason: %s\nfix: %s\n", result->reason, result->fix);
    tc_result_free(result);
    return 0;
}

/* The bytes come from the cage: show them, never run them. */
static int show(void *context, enum tc_stream stream, const void *bytes, size_t length)
{
    (void)context;
    fwrite(bytes, 1, length, stream == TC_STREAM_STDERR ? stderr : stdout);
    return 0; /* another value would cancel the call */
}

/* The same in an event loop: wait for the call's descriptor beside your own, and step. */
static int call_in_a_loop(struct tc_engine *engine)
{
    const char *const argv[] = { "sh", "-c", "for i in 1 2 3; do echo tick $i; done; sleep 60",
                                 NULL };
    struct tc_request request = {
        .argv = argv, .limits.timeout_ms = 500, .on_output = show, .flags = TC_REQUEST_KEEP_NOTHING
    };
    struct tc_result *result = NULL;
    struct tc_call *call = NULL;
    struct tc_error error;
    int r;

    if (tc_call_start(engine, &request, &call, &error) < 0)
        return fail(&error);
    do {
        struct pollfd wait = { .fd = tc_call_fd(call), .events = POLLIN };
        poll(&wait, 1, -1);
        r = tc_call_step(call, &result, &error);
    } while (r == 0 && !result);
    tc_call_free(call);
    if (r < 0)
        return fail(&error);
    printf("verdict: %s\nreason: %s\n", tc_verdict_name(result->verdict), result->reason);
    printf("json: %.14s...\n", tc_result_json(result));
    tc_result_free(result);
    return 0;
}

int main(int argc, char **argv)
{
    struct tc_engine_options options = { .policy_path = argc > 1 ? argv[1] : NULL };
    struct tc_engine *engine = NULL;
    struct tc_error error;
    int status;

    if (tc_engine_open(&options, &engine, &error) < 0)
        return fail(&error);
    status = call_and_wait(engine);
    if (status == 0)
        status = call_in_a_loop(engine);
    tc_engine_close(engine);
    return status;
}
