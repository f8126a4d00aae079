/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers in a shared object, and constructors that misbehave when the environment tells them to. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <toolcage/toolcage.h>

__attribute__((constructor)) static void begin(void)
{
    const char *what = getenv("HANDLER_CONSTRUCTOR");
    if (!what)
        return;
    if (strcmp(what, "crash") == 0)
        abort();
    if (strcmp(what, "hang") == 0)
        for (;;)
            (void)pause();
    if (strcmp(what, "write") == 0)
        (void)!write(STDOUT_FILENO, "noise", 5);
    if (strcmp(what, "fork") == 0 && fork() == 0)
        for (;;)
            (void)pause();
    if (strcmp(what, "exit") == 0)
        _exit(42);
}

TC_EXPORT tc_handler handler_echo, handler_printf, handler_status, handler_attack;

int handler_echo(const struct tc_handler_call *call)
{
    return call->reply(call, call->arguments_json, call->arguments_length) < 0 || call->context;
}

/* stdio is the object's own: it is not a fork of anybody. */
int handler_printf(const struct tc_handler_call *call)
{
    return printf("{\"length\":%zu}", call->arguments_length) < 0;
}

int handler_status(const struct tc_handler_call *call)
{
    (void)call;
    return 7;
}

/* Exit status of a program; 200: it could not be started. */
static int status_of(const char *path, char *const argv[])
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        execv(path, argv);
        _exit(200);
    }
    (void)waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

/* Names of what worked, under `commands`: the program of ours may be started again, as what it is. */
int handler_attack(const struct tc_handler_call *call)
{
    static const char change[] = "exe ", other[] = "sh ", memory[] = "memfd ";
    static char text[] = "again", option[] = "-c", script[] = "exit 0";
    char *again[] = { text, NULL };
    char *shell[] = { text, option, script, NULL };
    if (open("/proc/self/exe", O_WRONLY | O_CLOEXEC) >= 0)
        (void)call->reply(call, change, sizeof change - 1);
    if (status_of("/bin/sh", shell) != 200)
        (void)call->reply(call, other, sizeof other - 1);
    if (memfd_create("x", 0) >= 0)
        (void)call->reply(call, memory, sizeof memory - 1);
    if (status_of("/proc/self/exe", again) == 126) /* its own complaint about its arguments */
        (void)call->reply(call, text, sizeof text - 1);
    return 0;
}
