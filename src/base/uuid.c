/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: ids. No state: each id takes its random bits from the kernel, so that neither threads nor a
 * process that was forked or restored from a snapshot can give the same id twice.
 */
#include "base/uuid.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include "base/clock.h"

int tci_random(void *bytes, size_t size)
{
    unsigned char *to = bytes;

    while (size > 0) {
        ssize_t n = getrandom(to, size, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        to += n;
        size -= (size_t)n;
    }
    return 0;
}

void tci_hex(const void *bytes, size_t size, char *ret)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *from = bytes;

    for (size_t i = 0; i < size; i++) {
        *ret++ = digits[from[i] >> 4];
        *ret++ = digits[from[i] & 15];
    }
    *ret = '\0';
}

int tci_random_hex(size_t size, char *ret)
{
    unsigned char bytes[TCI_RANDOM_HEX_MAX];

    if (size > sizeof bytes) {
        errno = EINVAL;
        return -1;
    }
    if (tci_random(bytes, size) < 0)
        return -1;
    tci_hex(bytes, size, ret);
    return 0;
}

int tci_uuid7(char ret[TCI_UUID_TEXT_MAX])
{
    static const unsigned char group_bytes[] = { 4, 2, 2, 2, 6 };
    unsigned char bytes[16];
    const unsigned char *from = bytes;
    uint64_t now = tci_clock_realtime_ms();

    if (tci_random(bytes + 6, sizeof bytes - 6) < 0)
        return -1;
    for (unsigned i = 0; i < 6; i++)
        bytes[i] = (unsigned char)(now >> (40 - 8 * i));
    bytes[6] = (unsigned char)(0x70 | (bytes[6] & 0x0f)); /* version 7 */
    bytes[8] = (unsigned char)(0x80 | (bytes[8] & 0x3f)); /* variant 10 */
    for (size_t i = 0; i < tci_array_size(group_bytes); i++) {
        if (i > 0)
            *ret++ = '-';
        tci_hex(from, group_bytes[i], ret);
        from += group_bytes[i];
        ret += 2 * (size_t)group_bytes[i];
    }
    return 0;
}
