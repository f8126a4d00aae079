/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the two directions of Punycode. Numbers that would overflow are errors. */
#include "json/schema_punycode.h"

#include <stdint.h>
#include <string.h>
#include "base/utf8.h"

enum {
    base = 36,
    least = 1,
    most = 26,
    skew = 38,
    damp = 700,
    first_bias = 72,
    first_code_point = 0x80,
    points_max = 64, /* code points of a label */
    value_max = 0x7fffffff,
};

static uint32_t adapt(uint32_t delta, uint32_t count, bool first)
{
    uint32_t k = 0;
    delta = first ? delta / damp : delta / 2;
    delta += delta / count;
    for (; delta > (base - least) * most / 2; k += base)
        delta /= base - least;
    return k + (base - least + 1) * delta / (delta + skew);
}

static uint32_t threshold(uint32_t k, uint32_t bias)
{
    if (k <= bias)
        return least;
    return k >= bias + most ? most : k - bias;
}

static int digit_value(char c)
{
    if (c >= 'a' && c <= 'z')
        return c - 'a';
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    return c >= '0' && c <= '9' ? c - '0' + 26 : -1;
}

static bool put_utf8(uint32_t c, char *out, size_t size, size_t *length)
{
    unsigned count = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char marks[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff) || size - *length < count)
        return false;
    for (unsigned i = count; i-- > 0; c >>= 6)
        out[*length + i] = (char)(i ? 0x80 | (c & 0x3f) : marks[count] | c);
    *length += count;
    return true;
}

/* ---- to Unicode ------------------------------------------------------------------------------- */

/* One number of variable length; false: not one, or too large. */
static bool read_delta(const char **at, const char *end, uint32_t bias, uint32_t *i)
{
    uint64_t value = *i, weight = 1;
    for (uint32_t k = base;; k += base) {
        int digit = *at < end ? digit_value(**at) : -1;
        uint32_t t = threshold(k, bias);
        if (digit < 0)
            return false;
        ++*at;
        value += (uint64_t)digit * weight;
        if (value > value_max)
            return false;
        if ((uint32_t)digit < t)
            break;
        weight *= base - t;
        if (weight > value_max)
            return false;
    }
    *i = (uint32_t)value;
    return true;
}

static bool decode_points(const char *text, size_t length, uint32_t points[points_max],
                          uint32_t *ret_count)
{
    const char *dash = memrchr(text, '-', length), *at = text, *end = text + length;
    uint32_t n = first_code_point, i = 0, bias = first_bias, count = 0;

    for (; dash && at < dash; at++) {
        if (count == points_max || (unsigned char)*at >= 0x80)
            return false;
        points[count++] = (unsigned char)*at;
    }
    at += dash != NULL;
    while (at < end) {
        uint32_t before = i;
        if (!read_delta(&at, end, bias, &i) || count == points_max)
            return false;
        bias = adapt(i - before, count + 1, before == 0);
        n += i / (count + 1);
        i %= count + 1;
        if (n > 0x10ffff)
            return false;
        memmove(points + i + 1, points + i, (count - i) * sizeof *points);
        points[i++] = n;
        count++;
    }
    *ret_count = count;
    return true;
}

bool tci_punycode_decode(const char *text, size_t length, char *ret, size_t size,
                         size_t *ret_length)
{
    uint32_t points[points_max], count;
    *ret_length = 0;
    if (!decode_points(text, length, points, &count))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!put_utf8(points[i], ret, size, ret_length))
            return false;
    return true;
}

/* ---- from Unicode ----------------------------------------------------------------------------- */

struct writer {
    char *text;
    size_t size, length;
};

static bool put(struct writer *out, char c)
{
    if (out->length == out->size)
        return false;
    out->text[out->length++] = c;
    return true;
}

static bool put_delta(struct writer *out, uint32_t delta, uint32_t bias)
{
    uint32_t k = base;
    for (;; k += base) {
        uint32_t t = threshold(k, bias), digit;
        if (delta < t)
            break;
        digit = t + (delta - t) % (base - t);
        delta = (delta - t) / (base - t);
        if (!put(out, (char)(digit < 26 ? 'a' + digit : '0' + digit - 26)))
            return false;
    }
    return put(out, (char)(delta < 26 ? 'a' + delta : '0' + delta - 26));
}

static bool read_points(const char *text, size_t length, uint32_t points[points_max],
                        uint32_t *ret_count)
{
    uint32_t count = 0;
    for (size_t i = 0; i < length;) {
        size_t bytes;
        if (count == points_max)
            return false;
        bytes = tci_utf8_decode(text + i, length - i, &points[count]);
        if (bytes == 0)
            return false;
        count++;
        i += bytes;
    }
    *ret_count = count;
    return true;
}

static uint32_t smallest_from(const uint32_t *points, uint32_t count, uint32_t n)
{
    uint32_t found = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++)
        if (points[i] >= n && points[i] < found)
            found = points[i];
    return found;
}

/* Code points in ascending order, each with its distance from the one before. At most 64 of them,
 * so no number comes near 2^32. */
static bool encode_points(const uint32_t *points, uint32_t count, struct writer *out)
{
    uint32_t n = first_code_point, delta = 0, bias = first_bias, plain = 0, done;

    for (uint32_t i = 0; i < count; i++) {
        if (points[i] >= first_code_point)
            continue;
        if (!put(out, (char)points[i]))
            return false;
        plain++;
    }
    if (plain > 0 && !put(out, '-'))
        return false;
    for (done = plain; done < count; delta++, n++) {
        uint32_t next = smallest_from(points, count, n);
        delta += (next - n) * (done + 1);
        n = next;
        for (uint32_t i = 0; i < count; i++) {
            delta += points[i] < n;
            if (points[i] != n)
                continue;
            if (!put_delta(out, delta, bias))
                return false;
            bias = adapt(delta, done + 1, done == plain);
            delta = 0;
            done++;
        }
    }
    return true;
}

bool tci_punycode_encode(const char *text, size_t length, char *ret, size_t size,
                         size_t *ret_length)
{
    uint32_t points[points_max], count;
    struct writer out = { .size = size };

    out.text = ret;
    if (!read_points(text, length, points, &count) || !encode_points(points, count, &out))
        return false;
    *ret_length = out.length;
    return true;
}
