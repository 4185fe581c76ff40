/* tree.cu - rung 3: one block adds by halves. Takes away half-empty warps and shared banks.
 *
 * Idea      thread t adds cell t + half to cell t for all t < half, then half halves (tree.cuh).
 *           Working threads stay side by side, so whole warps fall idle, and a warp's cells lie
 *           side by side, a bank each.
 * Cost      log2(block) steps with a barrier each, behind one for the products.
 * Order     fixed.
 * Error     depth log2(block), rounded up.
 * Needs     n not above the block's threads, 1024 at most; any number of those.
 * Source    M. Harris, Optimizing Parallel Reduction in CUDA (sequential addressing).
 * Measured  tests/bench/results.
 */
#include "gpu/kernels/tree.cuh"

namespace
{

template <typename T> __global__ void tree(operands<T> in)
{
    __shared__ watched<T> cell[RUNG_THREADS_MAX];
    watch_shared(cell, blockDim.x, "cell");
    watch_global(in.result, 1, "result");
    const T sum = tree_sum<T>(cell, product_at(in, threadIdx.x));
    if (threadIdx.x == 0)
        *in.result = sum;
}

} // namespace

extern "C" int RUNG_SYMBOL(tree)(const struct rung_launch *launch)
{
    return launch->call.dtype == DTYPE_FLOAT64 ? run_rung<double>(launch, tree)
                                               : run_rung<float>(launch, tree);
}
