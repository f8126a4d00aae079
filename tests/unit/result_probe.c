/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a program that prints made-up results, one JSON object a line, for the test of the published
 * schema: every verdict, with and without everything that may be missing.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/result.h"

static const struct tc_file files[] = {
    { "/workspace/caf\xc3\xa9 1.png", 12,
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "image/png",
      "out/caf\xc3\xa9 1.png" },
    { "/tmp/x", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
      "application/vnd.sqlite3", NULL },
};

static const struct tc_connection connections[] = {
    { "api.example.com", "2001:db8::7", 443, "tcp", "*.example.com:443", "no server name in TLS",
      NULL, 123456, 789, 1500, 2000000 },
    { NULL, "192.0.2.1", 65535, "tcp", NULL, NULL, "Connection refused", 0, 0, 0, 17 },
    { "gone.example", NULL, 0, "dns", "gone.example:*", NULL, "no such name", 0, 0, 1000, 1 },
};

static void end_with(struct tc_result *result, enum tc_verdict verdict)
{
    if (verdict == TC_VERDICT_OK)
        result->exit_code = 0;
    else if (verdict == TC_VERDICT_FAILED)
        result->exit_code = 3;
    else if (verdict == TC_VERDICT_SIGNALED || verdict == TC_VERDICT_MEMORY)
        result->signal = SIGKILL;
    else if (verdict == TC_VERDICT_TIMEOUT)
        result->signal = SIGRTMIN + 1;
    else if (verdict == TC_VERDICT_DENIED)
        result->exit_code = 126;
}

static int fill(struct tci_result *result)
{
    static const char printed[] = "text \xc3\xa9 \x1b[31m\n", binary[] = "\0\xff";
    struct tc_result *public = &result->public;

    (void)snprintf(public->sandbox_id, sizeof public->sandbox_id, "tc-0123456789abcdef");
    public->tool = "calc";
    public->agent = "researcher";
    public->session = "monday 1";
    public->backend = "jail";
    public->layers = "userns mountns landlock:7 cgroup:v2";
    public->files = files;
    public->file_count = tci_array_size(files);
    public->connections = connections;
    public->connection_count = tci_array_size(connections);
    public->network_unlisted = 12;
    public->usage = (struct tc_usage){ 12345, 678, 1048576, 3, 4096 };
    result->output_room = 20;
    if (tci_result_keep(result, TC_STREAM_STDERR, binary, sizeof binary) < 0 ||
        tci_result_keep(result, TC_STREAM_STDOUT, printed, sizeof printed - 1) < 0 ||
        tci_result_keep(result, TC_STREAM_STDOUT, printed, sizeof printed - 1) < 0 ||
        tci_result_deny(result, "read", "/etc/shadow\n\xff", "filesystem.readable") < 0 ||
        tci_result_deny_times(result, "network", "evil.example", "network: no rule", 3) < 0)
        return -1;
    return 0;
}

static int print_result(enum tc_verdict verdict, bool full)
{
    struct tci_result *result = tci_result_new(NULL);
    int status = -1;

    if (!result)
        return -1;
    tci_result_verdict(result, verdict, full ? "change \"this\"" : NULL, "%s",
                       full ? tci_verdict_sentence(verdict) : "");
    end_with(&result->public, verdict);
    if ((!full || fill(result) == 0) && tc_result_json(&result->public))
        status = puts(tc_result_json(&result->public)) < 0 ? -1 : 0;
    tc_result_free(&result->public);
    return status;
}

int main(void)
{
    for (int verdict = TC_VERDICT_OK; verdict <= TC_VERDICT_ERROR; verdict++)
        for (int full = 0; full < 2; full++)
            if (print_result((enum tc_verdict)verdict, full) < 0)
                return EXIT_FAILURE;
    return EXIT_SUCCESS;
}
