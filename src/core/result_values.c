/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: single values of a result's JSON in its two forms. Invariant: both are the same JSON value, also
 * for bytes that are not UTF-8.
 */
#include "core/result_values.h"

#include <string.h>
#include "base/utf8.h"
#include "json/canonical.h"

/* The same replacement for bytes that are not UTF-8 as in json/write.h. */
static void write_canonical(struct tci_buf *out, const char *text, size_t length)
{
    tc_cleanup(tci_buf_free) struct tci_buf clean = TCI_BUF_INIT(SIZE_MAX / 4);
    size_t from = 0, i = 0;
    uint32_t code_point;

    while (i < length) {
        size_t size = tci_utf8_decode(text + i, length - i, &code_point);
        if (size == 0) {
            tci_buf_append(&clean, text + from, i - from);
            tci_buf_string(&clean, "\xef\xbf\xbd");
            from = i + 1;
        }
        i += size ? size : 1;
    }
    if (from == 0) {
        tci_json_canonical_string(out, text, length);
        return;
    }
    tci_buf_append(&clean, text + from, length - from);
    out->no_memory |= clean.no_memory;
    if (!clean.no_memory)
        tci_json_canonical_string(out, clean.data, clean.length);
}

void tci_put_bytes(struct tci_result_writer *to, const char *key, const char *text, size_t length)
{
    if (!to->canonical) {
        tci_json_bytes(&to->json, key, text, length);
        return;
    }
    tci_json_raw(&to->json, key, "");
    write_canonical(to->json.out, text, length);
}

void tci_put_text(struct tci_result_writer *to, const char *key, const char *text)
{
    tci_put_bytes(to, key, text, strlen(text));
}

void tci_put_name(struct tci_result_writer *to, const char *key, const char *name)
{
    if (name && *name)
        tci_put_text(to, key, name);
    else
        tci_json_null(&to->json, key);
}

/* RFC 8785 knows only doubles: beyond 2^53 the canonical form is rounded, as its readers round. */
void tci_put_count(struct tci_result_writer *to, const char *key, uint64_t count)
{
    if (to->canonical)
        tci_json_double(&to->json, key, (double)count);
    else
        tci_json_unsigned(&to->json, key, count);
}

void tci_put_known_count(struct tci_result_writer *to, const char *key, uint64_t count)
{
    if (count)
        tci_put_count(to, key, count);
    else
        tci_json_null(&to->json, key);
}

void tci_put_milliseconds(struct tci_result_writer *to, const char *key, uint64_t microseconds)
{
    tci_json_double(&to->json, key, (double)microseconds / 1000);
}
