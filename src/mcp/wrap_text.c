/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: small things around text of the wrapped server: lines, escapes, and how often. */
#include "mcp/wrap_internal.h"

#include <jansson.h>
#include <stdint.h>
#include <string.h>
#include "base/clock.h"

int tci_wrap_lines_add(struct tci_wrap_lines *lines, const char *bytes, size_t length,
                       tci_wrap_line *take, void *context)
{
    const char *end;
    int r;
    while ((end = memchr(bytes, '\n', length)) != NULL) {
        size_t size = (size_t)(end - bytes);
        if (!lines->part.length && size <= lines->part.maximum) {
            r = take(context, bytes, size); /* the common case: nothing is copied */
        } else {
            tci_buf_append(&lines->part, bytes, size);
            if (tci_buf_check(&lines->part, NULL) < 0)
                return 1;
            r = take(context, lines->part.data, lines->part.length);
            lines->part.length = 0;
        }
        if (r)
            return r;
        length -= size + 1;
        bytes = end + 1;
    }
    tci_buf_append(&lines->part, bytes, length);
    return tci_buf_check(&lines->part, NULL) < 0 ? 1 : 0;
}

void tci_wrap_join(const char *lines, char *ret, size_t size)
{
    size_t used = 0;
    for (; *lines && used + 2 < size; lines++) {
        if (*lines != '\n') {
            ret[used++] = *lines;
        } else if (lines[1]) {
            ret[used++] = ';';
            ret[used++] = ' ';
        }
    }
    ret[used] = '\0';
}

int tci_wrap_code(const struct json_t *code)
{
    double number = json_number_value(code);
    int whole = number >= INT32_MIN && number <= INT32_MAX ? (int)number : 0;
    return json_is_number(code) && number == whole ? whole : TCI_MCP_INTERNAL;
}

void tci_wrap_show(struct tci_buf *out, const char *text, size_t length, size_t maximum)
{
    struct tci_json json = { .out = out };
    tci_json_bytes(&json, NULL, text, length < maximum ? length : maximum);
    if (length > maximum)
        tci_buf_printf(out, " and %zu bytes more", length - maximum);
}

bool tci_wrap_bucket_take(struct tci_wrap_bucket *bucket)
{
    return tci_wrap_bucket_take_many(bucket, 1);
}

bool tci_wrap_bucket_take_many(struct tci_wrap_bucket *bucket, double count)
{
    uint64_t now = tci_clock_us();
    bucket->tokens += (double)(now - bucket->at_us) / 1e6 * bucket->a_second;
    if (!bucket->at_us || bucket->tokens > bucket->most)
        bucket->tokens = bucket->most;
    bucket->at_us = now;
    if (bucket->tokens < 1)
        return false;
    bucket->tokens -= count;
    return true;
}
