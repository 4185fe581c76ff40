/* tree.cuh - how a block adds: by halves in shared memory (see tree.cu, block_atomic.cu,
 * two_pass.cu).
 *
 * Door: tree_sum(), by all threads of the block.
 */
#ifndef GPU_KERNELS_TREE_CUH
#define GPU_KERNELS_TREE_CUH

#include "gpu/kernels/rung.cuh"

namespace
{

/* Adds the upper half of the cells to the lower one until at most `least` are left, and returns how
 * many. Of an odd number the middle cell waits for the next step, so that any block will do. The
 * barrier stands on the common path: in the branch only some threads would reach it. */
template <typename T>
__device__ inline unsigned add_by_halves(watched<T> *sum, unsigned cells, unsigned least)
{
    const unsigned thread = threadIdx.x;
    while (cells > least) {
        const unsigned half = (cells + 1) / 2;
        if (thread < cells - half)
            sum[thread] += sum[thread + half];
        __syncthreads();
        cells = half;
    }
    return cells;
}

/* The sum of what the block's threads bring, in thread 0. sum: [blockDim.x], shared; free again
 * behind the next barrier. */
template <typename T> __device__ inline T tree_sum(watched<T> *sum, T mine)
{
    sum[threadIdx.x] = mine;
    __syncthreads();
    (void)add_by_halves(sum, blockDim.x, 1);
    return threadIdx.x == 0 ? T(sum[0]) : T(0);
}

} // namespace

#endif
