/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: connections through a gate, beside direct ones: one program (net.c) at both ends, on loopback. The client runs
 * in a cage, or as it is, and has the clock. By name: the host's hosts file says where that name is, in a mount
 * namespace of the command's own.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "native.h"

#define NAME "bench.test"

static struct {
    pid_t pid;
    int input; /* it ends with this */
    char port[16];
} server;

static const char *program(struct bench *bench)
{
    char self[1024] = "";
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) <= 0)
        bench_die("cannot find myself");
    *strrchr(self, '/') = 0;
    return bench_text(bench, "%s/bench_net", self);
}

/* Starts it with pipes for what it reads (if `ret_input`) and prints. 0 or -1. */
static int start(const char *const *words, pid_t *ret_pid, int *ret_input, int *ret_output)
{
    posix_spawn_file_actions_t actions;
    int in[2] = { -1, -1 }, out[2];
    char *argv[BENCH_WORDS_MAX] = { NULL };

    for (unsigned i = 0; words[i]; i++)
        argv[i] = (char *)(uintptr_t)words[i];
    if (pipe2(out, O_CLOEXEC) < 0 || (ret_input && pipe2(in, O_CLOEXEC) < 0))
        return -1;
    (void)posix_spawn_file_actions_init(&actions);
    if (ret_input)
        (void)posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    int r = posix_spawn(ret_pid, words[0], &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(out[1]);
    *ret_output = out[0];
    if (ret_input) {
        (void)close(in[0]);
        *ret_input = in[1];
    }
    return r == 0 ? 0 : -1;
}

static int read_line(int fd, char *text, size_t size)
{
    size_t length = 0;
    ssize_t got;
    while (length + 1 < size && (got = read(fd, text + length, size - 1 - length)) > 0)
        if (text[(length += (size_t)got) - 1] == '\n')
            break;
    text[length] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return length > 0 ? 0 : -1;
}

static int serve(struct bench *bench, struct bench_subject *subject)
{
    const char *const words[] = { program(bench), "serve", NULL };
    int output;
    if (server.pid > 0)
        return 0;
    if (start(words, &server.pid, &server.input, &output) < 0 ||
        read_line(output, server.port, sizeof(server.port)) < 0)
        return bench_fail(subject, "the server does not start");
    (void)close(output);
    return 0;
}

void bench_gate_close(void)
{
    if (server.pid > 0) {
        (void)close(server.input);
        (void)waitpid(server.pid, NULL, 0);
        server.pid = 0;
    }
}

/* "stream name": what and how. */
static bool is_how(const struct bench_subject *subject, const char *how)
{
    return strcmp(strchr(subject->argument, ' ') + 1, how) == 0;
}

static const char *policy(struct bench *bench, bool by_name)
{
    const char *text = bench_text(
        bench,
        "version = 1\n[defaults]\nbackend = \"jail\"\ntimeout = \"60s\"\nfiles = 1024\n"
        "filesystem = { readable = [\"%s\"] }\nnetwork = [%s\"127.0.0.1:%s\"]\n",
        program(bench), by_name ? bench_text(bench, "\"" NAME ":%s\", ", server.port) : "",
        server.port);
    return bench_file(bench, by_name ? "gate_name.toml" : "gate.toml", text);
}

/* The words before the client: a cage, and for a name a hosts file of our own. */
static void add_cage(struct bench *bench, struct bench_command *command, bool by_name)
{
    if (by_name) {
        const char *hosts = bench_file(bench, "hosts", "127.0.0.1 localhost " NAME "\n");
        bench_command_add(command, "/usr/bin/unshare", "--mount", "--propagation", "private", NULL);
        if (geteuid() != 0)
            bench_command_add(command, "--map-root-user", NULL);
        bench_command_add(command, "/bin/sh", "-c", "mount --bind \"$0\" /etc/hosts && exec \"$@\"",
                          hosts, NULL);
    }
    bench_command_add(command, bench->toolcage, "exec", "--policy", policy(bench, by_name), "--",
                      NULL);
}

int bench_gate_prepare(struct bench *bench, struct bench_subject *subject)
{
    struct bench_command *command = bench_command_new(bench);
    const bool by_name = is_how(subject, "name");
    const char *number = "200";
    double value;

    if (serve(bench, subject) < 0)
        return -1;
    if (by_name && access("/usr/bin/unshare", X_OK) < 0)
        return bench_fail(subject, "unshare is not installed");
    if (!is_how(subject, "direct"))
        add_cage(bench, command, by_name);
    if (subject->argument[0] == 's')
        number = "512000000";
    bench_command_add(
        command, program(bench),
        bench_text(bench, "%.*s", (int)strcspn(subject->argument, " "), subject->argument),
        by_name ? NAME : "127.0.0.1", server.port, number, NULL);
    subject->command = command;
    return bench_gate_run(bench, subject, &value);
}

int bench_gate_run(struct bench *bench, struct bench_subject *subject, double *ret_value)
{
    char line[64] = "";
    int output, status = -1;
    pid_t pid;

    (void)bench;
    if (start(subject->command->words, &pid, NULL, &output) < 0)
        return bench_fail(subject, "cannot start %s", subject->command->words[0]);
    (void)read_line(output, line, sizeof(line));
    (void)close(output);
    (void)waitpid(pid, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return bench_fail(subject, "the client ended with status %d", WEXITSTATUS(status));
    *ret_value = strtod(line, NULL);
    return 0;
}
