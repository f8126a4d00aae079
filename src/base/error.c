/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: filling and describing struct tc_error. Allocates nothing: it must work without memory. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int exit_status, http_status, jsonrpc_code;
} error_table[] = {
#define X(code, name, exit_status, http_status, jsonrpc_code)                                      \
    [code] = { name, exit_status, http_status, jsonrpc_code },
#include "base/error.def"
#undef X
};

static size_t known(enum tc_error_code code)
{
    return (size_t)code < tci_array_size(error_table) ? (size_t)code : TC_ERROR_INTERNAL;
}

const char *tc_error_name(enum tc_error_code code)
{
    return error_table[known(code)].name;
}

int tc_error_exit_status(enum tc_error_code code)
{
    return error_table[known(code)].exit_status;
}

int tc_error_http_status(enum tc_error_code code)
{
    return error_table[known(code)].http_status;
}

int tc_error_jsonrpc_code(enum tc_error_code code)
{
    return error_table[known(code)].jsonrpc_code;
}

void tci_error_clear(struct tc_error *reterr)
{
    if (reterr)
        memset(reterr, 0, sizeof *reterr);
}

static void set_code(struct tc_error *e, enum tc_error_code code)
{
    memset(e, 0, sizeof *e);
    e->code = code;
}

int tci_error_set(struct tc_error *reterr, enum tc_error_code code, const char *format, ...)
{
    va_list args;
    if (!reterr || reterr->code)
        return -1;
    set_code(reterr, code);
    va_start(args, format);
    (void)vsnprintf(reterr->message, sizeof reterr->message, format, args);
    va_end(args);
    return -1;
}

int tci_error_errno(struct tc_error *reterr, int errnum, const char *format, ...)
{
    va_list args;
    size_t used;
    if (!reterr || reterr->code)
        return -1;
    set_code(reterr, TC_ERROR_IO);
    va_start(args, format);
    (void)vsnprintf(reterr->message, sizeof reterr->message, format, args);
    va_end(args);
    used = strlen(reterr->message);
    (void)snprintf(reterr->message + used, sizeof reterr->message - used, ": %s",
                   strerrordesc_np(errnum) ? strerrordesc_np(errnum) : "unknown error");
    return -1;
}

int tci_error_no_memory(struct tc_error *reterr)
{
    tci_error_set(reterr, TC_ERROR_NO_MEMORY, "out of memory");
    tci_error_remedy(reterr, "free some memory or raise the limit, then try again");
    return -1;
}

void tci_error_id(struct tc_error *reterr, const char *id)
{
    if (reterr && !reterr->id[0])
        (void)snprintf(reterr->id, sizeof reterr->id, "%s", id);
}

void tci_error_remedy(struct tc_error *reterr, const char *format, ...)
{
    va_list args;
    if (!reterr || reterr->remedy[0])
        return;
    va_start(args, format);
    (void)vsnprintf(reterr->remedy, sizeof reterr->remedy, format, args);
    va_end(args);
}

void tci_error_place(struct tc_error *reterr, const char *file, unsigned line, unsigned column)
{
    if (!reterr)
        return;
    if (file && !reterr->file[0])
        (void)snprintf(reterr->file, sizeof reterr->file, "%s", file);
    if (!reterr->line) {
        reterr->line = line;
        reterr->column = column;
    }
}

int tci_error_wrap(struct tc_error *reterr, const char *format, ...)
{
    char context[256], message[sizeof reterr->message - sizeof context - 2];
    va_list args;
    if (!reterr)
        return -1;
    va_start(args, format);
    (void)vsnprintf(context, sizeof context, format, args);
    va_end(args);
    memcpy(message, reterr->message, sizeof message);
    message[sizeof message - 1] = '\0';
    (void)snprintf(reterr->message, sizeof reterr->message, "%s: %s", context, message);
    return -1;
}
