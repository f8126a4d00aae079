/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the compression function of SHA-256, in C, and the padding around it.
 * Invariant: block[0 .. length % 64) holds what was added and not compressed yet.
 */
#include "base/sha256.h"

#include <string.h>
#include "base/sha256_internal.h"
#include "base/uuid.h"

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
const uint32_t tci_sha256_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static inline uint32_t rotate(uint32_t x, unsigned n)
{
    return (x >> n) | (x << (32 - n));
}

static inline uint32_t load_big_endian(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void store_big_endian(unsigned char *p, uint32_t x)
{
    for (unsigned i = 0; i < 4; i++)
        p[i] = (unsigned char)(x >> (24 - 8 * i));
}

/* The words of the message schedule are made as they are needed, in a ring of sixteen. */
static inline uint32_t next_word(uint32_t w[16], unsigned t)
{
    uint32_t a = w[(t + 1) & 15], b = w[(t + 14) & 15];
    uint32_t s0 = rotate(a, 7) ^ rotate(a, 18) ^ (a >> 3);
    uint32_t s1 = rotate(b, 17) ^ rotate(b, 19) ^ (b >> 10);
    return w[t & 15] += s0 + w[(t + 9) & 15] + s1;
}

void tci_sha256_compress(uint32_t state[8], const unsigned char *block, size_t count)
{
    uint32_t w[16];

    for (; count > 0; count--, block += 64) {
        uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
        uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
        for (unsigned t = 0; t < 16; t++)
            w[t] = load_big_endian(block + 4 * (size_t)t);
        for (unsigned t = 0; t < 64; t++) {
            uint32_t word = t < 16 ? w[t] : next_word(w, t);
            uint32_t s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
            uint32_t s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
            uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + tci_sha256_constants[t] + word;
            uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
            h = g, g = f, f = e, e = d + t1;
            d = c, c = b, b = a, a = t1 + t2;
        }
        state[0] += a, state[1] += b, state[2] += c, state[3] += d;
        state[4] += e, state[5] += f, state[6] += g, state[7] += h;
    }
}

static void compress(uint32_t state[8], const unsigned char *blocks, size_t count)
{
    if (count > 0 && !tci_sha256_compress_fast(state, blocks, count))
        tci_sha256_compress(state, blocks, count);
}

void tci_sha256_begin(struct tci_sha256 *hash)
{
    /* The first 32 bits of the fractional parts of the square roots of the first 8 primes. */
    static const uint32_t initial[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
    memcpy(hash->state, initial, sizeof initial);
    hash->length = 0;
}

void tci_sha256_add(struct tci_sha256 *hash, const void *bytes, size_t length)
{
    const unsigned char *from = bytes;
    size_t used = hash->length % sizeof hash->block, whole;

    if (length == 0)
        return;
    hash->length += length;
    if (used > 0) {
        size_t room = sizeof hash->block - used;
        size_t taken = length < room ? length : room;
        memcpy(hash->block + used, from, taken);
        if (taken < room)
            return;
        compress(hash->state, hash->block, 1);
        from += taken;
        length -= taken;
    }
    whole = length / sizeof hash->block;
    compress(hash->state, from, whole);
    from += whole * sizeof hash->block;
    if (length % sizeof hash->block > 0)
        memcpy(hash->block, from, length % sizeof hash->block);
}

void tci_sha256_end(struct tci_sha256 *hash, unsigned char ret[TCI_SHA256_SIZE])
{
    static const unsigned char padding[64] = { 0x80 };
    unsigned char bits[8];
    uint64_t length = hash->length;

    store_big_endian(bits, (uint32_t)(length >> 29));
    store_big_endian(bits + 4, (uint32_t)(length << 3));
    /* A one bit and zeros up to eight bytes before the end of a block: one to 64 bytes. */
    tci_sha256_add(hash, padding, 1 + (size_t)((119 - length % 64) % 64));
    tci_sha256_add(hash, bits, sizeof bits);
    for (size_t i = 0; i < 8; i++)
        store_big_endian(ret + 4 * i, hash->state[i]);
}

void tci_sha256_end_text(struct tci_sha256 *hash, char ret[TCI_SHA256_TEXT_MAX])
{
    unsigned char digest[TCI_SHA256_SIZE];

    tci_sha256_end(hash, digest);
    tci_hex(digest, sizeof digest, ret);
}

void tci_sha256_text(const void *bytes, size_t length, char ret[TCI_SHA256_TEXT_MAX])
{
    struct tci_sha256 hash;

    tci_sha256_begin(&hash);
    tci_sha256_add(&hash, bytes, length);
    tci_sha256_end_text(&hash, ret);
}
