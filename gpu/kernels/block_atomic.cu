/* block_atomic.cu - rung 5: many blocks, a tree in each, an atomicAdd a block. Takes away the
 * queue.
 *
 * Idea      a thread brings its product, or zero behind the vector's end; the block adds by halves
 *           as in tree.cu, and thread 0 adds the block's sum to the total.
 * Cost      8 n bytes read once, 4 at a time; log2(block) + 1 barriers and one atomic a block.
 * Order     any: as the blocks arrive.
 * Error     depth log2(block) + blocks, and atomicAdd of float32 takes subnormal numbers for zero.
 * Needs     *result zero before the launch; any n.
 * Source    M. Harris, Optimizing Parallel Reduction in CUDA; CUDA C++ Programming Guide, atomic
 *           functions; PTX ISA, atom.
 * Measured  tests/bench/results.
 */
#include "gpu/kernels/tree.cuh"

namespace
{

template <typename T> __global__ void block_atomic(operands<T> in)
{
    __shared__ watched<T> cell[RUNG_THREADS_MAX];
    watch_shared(cell, blockDim.x, "cell");
    watch_global(in.result, 1, "result");
    const T sum = tree_sum<T>(cell, product_at(in, global_thread()));
    if (threadIdx.x == 0)
        atomicAdd(in.result, sum);
}

} // namespace

extern "C" int RUNG_SYMBOL(block_atomic)(const struct rung_launch *launch)
{
    return launch->call.dtype == DTYPE_FLOAT64 ? clear_and_run_rung<double>(launch, block_atomic)
                                               : clear_and_run_rung<float>(launch, block_atomic);
}
