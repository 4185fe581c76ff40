/* tree_pairs.cu - rung 2: one block adds neighbours, stride doubling. Takes away the long row.
 *
 * Idea      the cells that still count lie `stride` apart, and thread t stands at the t-th of them.
 *           Every second thread adds its right neighbour's to its own; then the stride doubles.
 * Cost      log2(block) steps with a barrier each, behind one for the products. In each step every
 *           other lane of a working warp idles, and the cells of a warp share banks: at stride s
 *           one bank is asked for 2 s cells, up to 16.
 * Order     fixed; the pairs of tree.cu are others, and so may be the last bits.
 * Error     depth log2(block), rounded up.
 * Needs     n not above the block's threads, 1024 at most; any number of those.
 * Source    M. Harris, Optimizing Parallel Reduction in CUDA (interleaved addressing); CUDA C++
 *           Programming Guide, shared memory of compute capability 5.x and later (banks).
 * Measured  tests/bench/results.
 */
#include "gpu/kernels/rung.cuh"

namespace
{

template <typename T> __global__ void tree_pairs(operands<T> in)
{
    __shared__ watched<T> cell[RUNG_THREADS_MAX];
    watch_shared(cell, blockDim.x, "cell");
    watch_global(in.result, 1, "result");
    const unsigned thread = threadIdx.x;
    cell[thread] = product_at(in, thread);
    __syncthreads();
    for (unsigned stride = 1; stride < blockDim.x; stride *= 2) {
        if (thread % 2 == 0 && (thread + 1) * stride < blockDim.x)
            cell[thread * stride] += cell[(thread + 1) * stride];
        __syncthreads();
    }
    if (thread == 0)
        *in.result = cell[0];
}

} // namespace

extern "C" int RUNG_SYMBOL(tree_pairs)(const struct rung_launch *launch)
{
    return launch->call.dtype == DTYPE_FLOAT64 ? run_rung<double>(launch, tree_pairs)
                                               : run_rung<float>(launch, tree_pairs);
}
