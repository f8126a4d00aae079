/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a shared object's handler, inside its cage: loads it, calls it, and exits with its status.
 * Everything here runs under the call's policy; the host never loads the object. It trusts argv,
 * which comes from the engine, and nothing else.
 *
 *   toolcage-loader LIBRARY SYMBOL    (arguments on stdin, the reply to stdout)
 *   toolcage-loader http_fetch        (the built-in tool, which loads libcurl)
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "inside/http_fetch.h"
#include "toolcage/toolcage.h"

/* 126 and 127 as a shell has them: there, but of no use; not there. */
enum { cannot_use = 126, not_there = 127, arguments_max = 64 * 1024 * 1024, chunk = 65536 };

/* To where stdout led when we were started: a constructor or the handler may have moved it. */
static int reply(const struct tc_handler_call *call, const void *bytes, size_t length)
{
    const char *at = bytes;
    (void)call;
    while (length) {
        ssize_t n = write(STDOUT_FILENO, at, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        at += n;
        length -= (size_t)n;
    }
    return 0;
}

/* All of stdin, with a NUL behind it; NULL when it cannot be had. */
static char *read_arguments(size_t *ret_length)
{
    char *text = NULL;
    size_t length = 0, capacity = 0;
    for (;;) {
        ssize_t n;
        if (capacity - length < chunk) {
            size_t larger = capacity ? capacity * 2 : 2 * (size_t)chunk;
            char *grown = larger > arguments_max ? NULL : realloc(text, larger);
            if (!grown) {
                free(text);
                return NULL;
            }
            text = grown;
            capacity = larger;
        }
        n = read(STDIN_FILENO, text + length, capacity - length - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            free(text);
            return NULL;
        }
        length += (size_t)n;
        if (n == 0)
            break;
    }
    text[length] = '\0';
    *ret_length = length;
    return text;
}

static int fail(int status, const char *what, const char *why)
{
    (void)fprintf(stderr, "toolcage-loader: %s: %s\n", what, why);
    return status;
}

int main(int argc, char **argv)
{
    struct tc_handler_call call = { .reply = reply };
    void *library;
    char *arguments;
    union {
        void *object;
        tc_handler *function;
    } symbol;
    int status;

    if (argc == 2 && strcmp(argv[1], "http_fetch") == 0)
        return tci_inside_http_fetch(argc, argv);
    if (argc != 3)
        return fail(cannot_use, "usage", "toolcage-loader LIBRARY SYMBOL");
    /* Before any code of the library runs: it could take them. */
    arguments = read_arguments(&call.arguments_length);
    if (!arguments)
        return fail(cannot_use, "the arguments", "cannot be read, or there is no memory for them");
    call.arguments_json = arguments;
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return fail(access(argv[1], R_OK) < 0 ? not_there : cannot_use,
                    "the library cannot be loaded", dlerror());
    symbol.object = dlsym(library, argv[2]);
    if (!symbol.object) {
        (void)dlclose(library);
        return fail(cannot_use, "the library has no such handler", argv[2]);
    }
    status = symbol.function(&call);
    /* What the handler has printed comes out; its destructors run as they would anywhere. */
    free(arguments);
    exit(status & 0xff);
}
