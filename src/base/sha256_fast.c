/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: SHA-256 with the SHA extensions of x86. Whether the processor has them is asked of the C
 * library, which found out at its start: the instruction that tells is slow in virtual machines.
 *
 * The instructions want the eight words of the state in two registers, named by what they hold from
 * the highest lane down: (A, B, E, F) and (C, D, G, H). One instruction does two rounds.
 */
#include "base/sha256_internal.h"

#if defined(__x86_64__) && defined(__has_include)
#if __has_include(<sys/platform/x86.h>)
#define HAS_INSTRUCTIONS
#endif
#endif

#ifdef HAS_INSTRUCTIONS
#include <immintrin.h>
#include <sys/platform/x86.h>

static inline __m128i load(const void *from)
{
    return _mm_loadu_si128(from);
}

/* Words 4 * group to 4 * group + 3 of the message schedule, in a ring of the last sixteen. */
__attribute__((target("sha,sse4.1"))) static inline __m128i next_words(__m128i ring[4],
                                                                       unsigned group)
{
    __m128i before = ring[(group + 3) & 3];
    __m128i sum = _mm_sha256msg1_epu32(ring[group & 3], ring[(group + 1) & 3]);

    sum = _mm_add_epi32(sum, _mm_alignr_epi8(before, ring[(group + 2) & 3], 4));
    return ring[group & 3] = _mm_sha256msg2_epu32(sum, before);
}

__attribute__((target("sha,sse4.1"))) static void compress(uint32_t state[8],
                                                           const unsigned char *block, size_t count)
{
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i badc = _mm_shuffle_epi32(load(state), 0xb1),
            hgfe = _mm_shuffle_epi32(load(state + 4), 0x1b);
    __m128i abef = _mm_alignr_epi8(badc, hgfe, 8), cdgh = _mm_blend_epi16(hgfe, badc, 0xf0);
    __m128i ring[4];

    for (; count > 0; count--, block += 64) {
        __m128i abef_before = abef, cdgh_before = cdgh;
        for (unsigned i = 0; i < 4; i++)
            ring[i] = _mm_shuffle_epi8(load(block + 16 * (size_t)i), big_endian);
#pragma GCC unroll 16
        for (unsigned group = 0; group < 16; group++) {
            __m128i words = group < 4 ? ring[group] : next_words(ring, group);
            words = _mm_add_epi32(words, load(tci_sha256_constants + 4 * (size_t)group));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, words);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(words, 0x0e));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)(void *)state, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(void *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

bool tci_sha256_compress_fast(uint32_t state[8], const unsigned char *blocks, size_t count)
{
    if (!CPU_FEATURE_ACTIVE(SHA) || !CPU_FEATURE_ACTIVE(SSE4_1))
        return false;
    compress(state, blocks, count);
    return true;
}
#else
bool tci_sha256_compress_fast(uint32_t state[8], const unsigned char *blocks, size_t count)
{
    (void)state;
    (void)blocks;
    (void)count;
    return false;
}
#endif
