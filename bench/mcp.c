/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what MCP adds to a call: the same tool through the library, through `toolcage mcp` over stdio and
 * over HTTP; what a wrapped server costs beside the same server alone; how much an idle server holds.
 * `argument`: "library TOOL", "stdio TOOL", "http TOOL", "load TOOL N", "rss stdio", "rss http",
 * "echo direct", "echo wrapped".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "mcp_peer.h"
#include "native.h"

/* What is looked for is smaller than what a busy machine adds to one call by chance: a sample is the
 * median of several. */
enum { sampled_calls = 15, echoed_calls = 101, load_calls = 400 };

static struct tc_engine *engine;
/* `load_peer` is a server of its own: many calls at a time leave it with many threads. */
static struct mcp_peer stdio_peer, load_peer, http_peer, direct_peer, wrapped_peer;

static bool starts(const struct bench_subject *subject, const char *word)
{
    return strncmp(subject->argument, word, strlen(word)) == 0;
}

/* The second word of the argument. */
static const char *tool_of(struct bench *bench, const struct bench_subject *subject)
{
    const char *second = strchr(subject->argument, ' ') + 1;
    return bench_text(bench, "%.*s", (int)strcspn(second, " "), second);
}

static const char *policy(struct bench *bench)
{
    const char *text = bench_text(bench,
                                  "version = 1\n[defaults]\nsystem = true\n"
                                  "filesystem = { readable = [\"%s/bin\"] }\n"
                                  "[tool.process]\nbackend = \"process\"\ncommand = [\"%s\"]\n"
                                  "[tool.jail]\nbackend = \"jail\"\ncommand = [\"%s\"]\n",
                                  bench->directory, bench->true_path, bench->true_path);
    return bench_file(bench, "mcp.toml", text);
}

static const char *echo_policy(struct bench *bench, const char *echo)
{
    const char *text = bench_text(bench,
                                  "version = 1\n[tool.echo]\nbackend = \"jail\"\n"
                                  "filesystem = { readable = [\"%s\"] }\ncommand = [\"%s\"]\n"
                                  "mcp = { rate = 1000000 }\n",
                                  echo, echo);
    return bench_file(bench, "echo.toml", text);
}

static const char *echo_path(struct bench *bench)
{
    return bench_text(bench, "%.*s/bench_echo",
                      (int)(strrchr(bench->built_true_path, '/') - bench->built_true_path),
                      bench->built_true_path);
}

/* ---- who answers; each is started when the first subject needs it */

static int open_engine(struct bench *bench, struct bench_subject *subject)
{
    struct tc_engine_options options = { .policy_path = policy(bench) };
    struct tc_error error = { 0 };
    if (!engine && tc_engine_open(&options, &engine, &error) < 0)
        return bench_fail(subject, "tc_engine_open: %s", error.message);
    return 0;
}

static struct mcp_peer *peer_of(const struct bench_subject *subject)
{
    if (strcmp(subject->argument, "echo direct") == 0)
        return &direct_peer;
    if (strcmp(subject->argument, "echo wrapped") == 0)
        return &wrapped_peer;
    if (starts(subject, "load"))
        return &load_peer;
    return strstr(subject->argument, "http") ? &http_peer : &stdio_peer;
}

static int open_peer(struct bench *bench, struct bench_subject *subject)
{
    struct mcp_peer *peer = peer_of(subject);
    const char *echo = echo_path(bench);
    const char *const serve[] = { bench->toolcage, "mcp",          "--policy",
                                  policy(bench),   "--no-journal", NULL };
    const char *const http[] = { bench->toolcage, "mcp",          "--policy",
                                 policy(bench),   "--no-journal", "--http",
                                 "127.0.0.1:0",   "--no-token",   NULL };
    const char *const direct[] = { echo, NULL };
    const char *const wrapped[] = {
        bench->toolcage, "mcp",  "wrap",         "--policy", echo_policy(bench, echo),
        "--tool",        "echo", "--no-journal", NULL
    };
    int r;
    if (peer->pid > 0)
        return 0;
    if (peer == &http_peer)
        r = mcp_peer_http(http, peer);
    else
        r = mcp_peer_stdio(peer == &direct_peer    ? direct
                           : peer == &wrapped_peer ? wrapped
                                                   : serve,
                           peer);
    return r < 0 ? bench_fail(subject, "the server does not answer") : 0;
}

void bench_mcp_close(void)
{
    struct mcp_peer *const peers[] = { &stdio_peer, &load_peer, &http_peer, &direct_peer,
                                       &wrapped_peer };
    for (unsigned i = 0; i < tci_array_size(peers); i++)
        mcp_peer_close(peers[i]);
    if (engine)
        tc_engine_close(engine);
    engine = NULL;
}

/* ---- samples */

static int call_library(struct bench_subject *subject, const char *tool)
{
    const struct tc_request request = { .tool = tool, .arguments_json = "{}" };
    return bench_call(engine, subject, &request);
}

static int once(struct bench_subject *subject, const char *tool)
{
    if (starts(subject, "library"))
        return call_library(subject, tool);
    if (mcp_peer_call(peer_of(subject), tool) < 0)
        return bench_fail(subject, "a call failed");
    return 0;
}

int bench_mcp_run(struct bench *bench, struct bench_subject *subject, double *ret_value)
{
    const bool echo = starts(subject, "echo");
    const char *tool = echo ? "echo" : tool_of(bench, subject);
    const int calls = echo ? echoed_calls : sampled_calls;
    double times[echoed_calls];
    int r = 0;
    for (int i = 0; r == 0 && i < calls; i++) {
        double begin = bench_now_ms();
        r = once(subject, tool);
        times[i] = bench_now_ms() - begin;
    }
    if (r < 0)
        return r;
    *ret_value = bench_median(times, (size_t)calls);
    return 0;
}

int bench_mcp_load_run(struct bench *bench, struct bench_subject *subject, double *ret_value)
{
    const char *tool = tool_of(bench, subject);
    const unsigned callers = (unsigned)strtoul(strrchr(subject->argument, ' '), NULL, 10);
    unsigned sent = 0;
    double begin = bench_now_ms();
    for (; sent < callers; sent++)
        if (mcp_peer_post(&load_peer, tool) < 0)
            return bench_fail(subject, "the server is gone");
    for (unsigned done = 0; done < load_calls; done++) {
        if (mcp_peer_answer(&load_peer) < 0)
            return bench_fail(subject, "a call failed");
        if (sent == load_calls)
            continue;
        sent++;
        if (mcp_peer_post(&load_peer, tool) < 0)
            return bench_fail(subject, "the server is gone");
    }
    *ret_value = load_calls / (bench_now_ms() - begin) * 1000;
    return 0;
}

/* Resident memory, of it and of the libraries that it shares with others. */
int bench_mcp_memory_run(struct bench *bench, struct bench_subject *subject, double *ret_value)
{
    char line[256];
    FILE *file = fopen(bench_text(bench, "/proc/%d/status", (int)peer_of(subject)->pid), "re");
    *ret_value = 0;
    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, "VmRSS:", 6) == 0)
            *ret_value = strtod(line + 6, NULL);
    if (file)
        (void)fclose(file);
    return *ret_value > 0 ? 0 : bench_fail(subject, "the server is gone");
}

int bench_mcp_prepare(struct bench *bench, struct bench_subject *subject)
{
    double value;
    if (starts(subject, "library") ? open_engine(bench, subject) < 0
                                   : open_peer(bench, subject) < 0)
        return -1;
    return subject->run(bench, subject, &value);
}
