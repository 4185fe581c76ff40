/* exact_words.cuh - sums in registers, for the exact kernels that keep no columns.
 *
 * Door: split_words() of a thread's 128-bit sum, fold_words() over the warp, clear_limbs().
 */
#ifndef GPU_KERNELS_EXACT_WORDS_CUH
#define GPU_KERNELS_EXACT_WORDS_CUH

#include "gpu/kernels/exact_rows.cuh"

namespace
{

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

/* The warp's total, in its first lane; each word below 2^37 in magnitude. */
template <int COUNT>
__device__ inline struct words<COUNT> fold_words(struct words<COUNT> words) {
#pragma unroll
    for (int i = 0; i < COUNT; i++)
#pragma unroll
        for (unsigned half = GRID_WARP / 2; half > 0; half /= 2)
            words.word[i] += __shfl_down_sync(ALL_LANES, words.word[i], half);
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
