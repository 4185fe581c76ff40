/* exact_words.cuh - sums in registers, for the exact kernels that keep no columns.
 *
 * Door: split_words() of a thread's 128-bit sum, fold_words() over the warp, or fold_word() of one
 * alone; clear_limbs().
 */
#ifndef GPU_KERNELS_EXACT_WORDS_CUH
#define GPU_KERNELS_EXACT_WORDS_CUH

#include "gpu/kernels/exact_rows.cuh"

namespace
{

/* The warp's total of numbers below 2^58 in magnitude, in all lanes. Of 32 lanes, pieces of 22 bits
 * add up within 32. */
__device__ inline int64_t fold_word(int64_t word)
{
    const unsigned low = __reduce_add_sync(ALL_LANES, (unsigned)word & 0x3fffff);
    const unsigned middle = __reduce_add_sync(ALL_LANES, (unsigned)(word >> 22) & 0x3fffff);
    const int high = __reduce_add_sync(ALL_LANES, (int)(word >> 44));
    return (int64_t)low + ((int64_t)middle << 22) + high * ((int64_t)1 << 44);
}

/* A number as sum of word[i] * 2^(32 i). */
template <int COUNT> struct words {
    int64_t word[COUNT];
};

/* Unsigned words below a signed one. */
__device__ inline struct words<4> split_words(exact_int128 value) {
    struct words<4> words = {
        {
            (int64_t)(uint32_t) value, (int64_t)(uint32_t)(value >> 32),
                (int64_t)(uint32_t)(value >> 64), (int64_t)(value >> 96)
        }
    };
    return words;
}

template <int COUNT>
__device__ inline struct words<COUNT> fold_words(struct words<COUNT> words) {
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        words.word[i] = fold_word(words.word[i]);
    return words;
}

template <int LIMBS>
__device__ inline void clear_limbs(int64_t *limb)
{
    for (unsigned i = threadIdx.x % GRID_WARP; i < LIMBS; i += GRID_WARP)
        limb[i] = 0;
    __syncwarp();
}

} // namespace

#endif
