/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: growth of struct tci_buf. Invariant: length < capacity whenever data is set. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tci_buf_free(struct tci_buf *buf)
{
    free(buf->data);
    buf->data = NULL;
    buf->length = buf->capacity = 0;
}

/* Makes room for `more` bytes and the NUL behind them. */
static bool reserve(struct tci_buf *buf, size_t more)
{
    size_t wanted;
    char *data;

    if (buf->no_memory || buf->too_large)
        return false;
    if (more > buf->maximum - buf->length) {
        buf->too_large = true;
        return false;
    }
    if (buf->length + more < buf->capacity)
        return true;
    wanted = buf->capacity ? buf->capacity : 256;
    while (wanted <= buf->length + more)
        wanted *= 2;
    data = realloc(buf->data, wanted);
    if (!data) {
        buf->no_memory = true;
        return false;
    }
    buf->data = data;
    buf->capacity = wanted;
    return true;
}

void tci_buf_append(struct tci_buf *buf, const char *bytes, size_t length)
{
    if (!reserve(buf, length))
        return;
    if (length)
        memcpy(buf->data + buf->length, bytes, length);
    buf->length += length;
    buf->data[buf->length] = '\0';
}

void tci_buf_string(struct tci_buf *buf, const char *text)
{
    tci_buf_append(buf, text, strlen(text));
}

void tci_buf_char(struct tci_buf *buf, char c)
{
    tci_buf_append(buf, &c, 1);
}

void tci_buf_printf(struct tci_buf *buf, const char *format, ...)
{
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0 || !reserve(buf, (size_t)length)) {
        buf->no_memory |= length < 0;
        return;
    }
    va_start(args, format);
    (void)vsnprintf(buf->data + buf->length, (size_t)length + 1, format, args);
    va_end(args);
    buf->length += (size_t)length;
}

int tci_buf_check(const struct tci_buf *buf, struct tc_error *reterr)
{
    if (buf->no_memory)
        return tci_error_no_memory(reterr);
    if (buf->too_large)
        return tci_error_set(reterr, TC_ERROR_TOO_LARGE, "more than %zu bytes", buf->maximum);
    return 0;
}

char *tci_buf_take(struct tci_buf *buf, struct tc_error *reterr)
{
    char *data;
    tci_buf_append(buf, "", 0);
    if (tci_buf_check(buf, reterr) < 0) {
        tci_buf_free(buf);
        return NULL;
    }
    data = buf->data;
    buf->data = NULL;
    buf->length = buf->capacity = 0;
    return data;
}
