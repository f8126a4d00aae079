/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: how a built-in tool gets its arguments and gives its answer. See inside.h. */
#include "inside/inside.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *tci_inside_alloc(size_t size)
{
    void *memory = calloc(1, size ? size : 1);
    if (!memory)
        tci_inside_no_memory();
    return memory;
}

/* Standard input to its end. */
static void read_input(struct tci_buf *text)
{
    char *chunk = tci_inside_alloc(65536);
    for (;;) {
        ssize_t got = read(STDIN_FILENO, chunk, 65536);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            tci_inside_fail("the arguments cannot be read: %s", strerror(errno));
        if (got == 0)
            break;
        tci_buf_append(text, chunk, (size_t)got);
    }
    free(chunk);
    if (text->too_large)
        tci_inside_fail("the arguments are larger than %d bytes: send less at a time",
                        TCI_INSIDE_ARGUMENTS_MAX);
    if (text->no_memory)
        tci_inside_no_memory();
}

json_t *tci_inside_arguments(void)
{
    struct tci_buf text = TCI_BUF_INIT(TCI_INSIDE_ARGUMENTS_MAX);
    read_input(&text);
    json_error_t error;
    /* NUL is allowed here because the content of a file may hold one; paths are checked for it. */
    json_t *arguments = json_loadb(text.data ? text.data : "", text.length,
                                   JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    tci_buf_free(&text);
    if (!arguments)
        tci_inside_fail("the arguments are not valid JSON: %s", error.text);
    if (!json_is_object(arguments))
        tci_inside_fail("the arguments must be a JSON object");
    return arguments;
}

const char *tci_inside_string(const json_t *arguments, const char *key, bool required,
                              size_t *ret_length)
{
    const json_t *value = json_object_get(arguments, key);
    *ret_length = 0;
    if (!value && !required)
        return NULL;
    if (!json_is_string(value))
        tci_inside_fail("the argument \"%s\" is %s", key, value ? "not a string" : "missing");
    *ret_length = json_string_length(value);
    return json_string_value(value);
}

const char *tci_inside_path(const json_t *arguments, const char *key, const char *otherwise)
{
    size_t length;
    const char *path = tci_inside_string(arguments, key, !otherwise, &length);
    if (!path)
        return otherwise;
    if (!length)
        tci_inside_fail("the argument \"%s\" is empty", key);
    /* The kernel would see a shorter path than a person who reads the arguments. */
    if (memchr(path, 0, length))
        tci_inside_fail("the argument \"%s\" holds a NUL, which no path has", key);
    if (length >= PATH_MAX)
        tci_inside_fail("the argument \"%s\" is longer than a path can be (%d bytes)", key,
                        PATH_MAX - 1);
    return path;
}

bool tci_inside_bool(const json_t *arguments, const char *key, bool otherwise)
{
    const json_t *value = json_object_get(arguments, key);
    if (value && !json_is_boolean(value))
        tci_inside_fail("the argument \"%s\" is neither true nor false", key);
    return value ? json_is_true(value) : otherwise;
}

int64_t tci_inside_integer(const json_t *arguments, const char *key, int64_t least, int64_t most,
                           int64_t otherwise)
{
    const json_t *value = json_object_get(arguments, key);
    if (!value)
        return otherwise;
    double real = json_number_value(value);
    /* 1e3 is an integer in JSON, and jansson has it as a real number. */
    bool whole = json_is_integer(value) || (json_is_real(value) && real >= -9e15 && real <= 9e15 &&
                                            real == (double)(int64_t)real);
    int64_t found = json_is_integer(value) ? json_integer_value(value) : whole ? (int64_t)real : 0;
    if (!whole || found < least || found > most)
        tci_inside_fail("the argument \"%s\" must be an integer from %lld to %lld", key,
                        (long long)least, (long long)most);
    return found;
}

void tci_inside_answer(const struct tci_buf *answer)
{
    if (answer->no_memory)
        tci_inside_no_memory();
    if (answer->too_large)
        tci_inside_fail("the answer would be larger than %d bytes: ask for less",
                        TCI_INSIDE_ANSWER_MAX);
    size_t done = 0;
    while (done < answer->length) {
        ssize_t put = write(STDOUT_FILENO, answer->data + done, answer->length - done);
        if (put < 0 && errno != EINTR)
            tci_inside_fail("the answer cannot be written: %s", strerror(errno));
        done += put > 0 ? (size_t)put : 0;
    }
}
