/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: SipHash-2-4 (Aumasson and Bernstein, 2012). Pure: no state, no allocation. */
#include "base/siphash.h"

#include <endian.h>
#include <string.h>

struct state {
    uint64_t v0, v1, v2, v3;
};

static uint64_t rotate_left(uint64_t x, unsigned bits)
{
    return (x << bits) | (x >> (64 - bits));
}

static void round_once(struct state *s)
{
    s->v0 += s->v1;
    s->v1 = rotate_left(s->v1, 13) ^ s->v0;
    s->v0 = rotate_left(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = rotate_left(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = rotate_left(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = rotate_left(s->v1, 17) ^ s->v2;
    s->v2 = rotate_left(s->v2, 32);
}

static void absorb(struct state *s, uint64_t word)
{
    s->v3 ^= word;
    round_once(s);
    round_once(s);
    s->v0 ^= word;
}

uint64_t tci_siphash(const uint64_t key[2], const void *bytes, size_t length)
{
    const unsigned char *p = bytes;
    struct state s = {
        .v0 = key[0] ^ 0x736f6d6570736575ULL,
        .v1 = key[1] ^ 0x646f72616e646f6dULL,
        .v2 = key[0] ^ 0x6c7967656e657261ULL,
        .v3 = key[1] ^ 0x7465646279746573ULL,
    };
    size_t rest = length;

    for (; rest >= 8; rest -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        absorb(&s, le64toh(word));
    }
    uint64_t last = (uint64_t)length << 56;
    for (size_t i = 0; i < rest; i++)
        last |= (uint64_t)p[i] << (8 * i);
    absorb(&s, last);

    s.v2 ^= 0xff;
    for (int i = 0; i < 4; i++)
        round_once(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
