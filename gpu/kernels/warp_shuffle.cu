/* warp_shuffle.cu - rung 6: the end of each tree in registers. Takes away its last five barriers.
 *
 * Idea      by halves in shared memory until one warp holds what is left; from there each lane gets
 *           its partner's register by a shuffle, which orders the warp's lanes by itself.
 * Cost      8 n bytes read once, 4 at a time; log2(block / 32) + 1 barriers, five shuffles and one
 *           atomic a block.
 * Order     any: as the blocks arrive.
 * Error     depth log2(block) + blocks, and atomicAdd of float32 takes subnormal numbers for zero.
 * Needs     *result zero before the launch; any n; blocks of whole warps, for all 32 lanes shuffle.
 * Source    CUDA C++ Programming Guide, warp shuffle functions; M. Harris, Optimizing Parallel
 *           Reduction in CUDA (unrolling the last warp).
 * Measured  tests/bench/results.
 */
#include "gpu/kernels/tree.cuh"

namespace
{

template <typename T> __global__ void warp_shuffle(operands<T> in)
{
    __shared__ watched<T> cell[RUNG_THREADS_MAX];
    watch_shared(cell, blockDim.x, "cell");
    watch_global(in.result, 1, "result");
    const unsigned thread = threadIdx.x;
    cell[thread] = product_at(in, global_thread());
    __syncthreads();
    const unsigned cells = add_by_halves<T>(cell, blockDim.x, GRID_WARP);
    if (thread >= GRID_WARP)
        return; /* no barrier follows */
    T sum = thread < cells ? T(cell[thread]) : T(0);
    for (unsigned half = GRID_WARP / 2; half > 0; half /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, half);
    if (thread == 0)
        atomicAdd(in.result, sum);
}

} // namespace

extern "C" int RUNG_SYMBOL(warp_shuffle)(const struct rung_launch *launch)
{
    return launch->call.dtype == DTYPE_FLOAT64 ? clear_and_run_rung<double>(launch, warp_shuffle)
                                               : clear_and_run_rung<float>(launch, warp_shuffle);
}
