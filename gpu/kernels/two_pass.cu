/* two_pass.cu - rung 8: partial sums in global memory and a second launch. Takes away the atomics.
 *
 * Idea      at most 1024 blocks stride over the vectors, and each leaves its tree's sum in a cell
 *           of its own; then one block strides over the cells. A launch begins when the one before
 *           it has ended, which is the barrier between blocks.
 * Cost      8 n bytes read once; 2 (log2(block) + 1) barriers; a launch more, some 2 us.
 * Order     fixed by n and the block size alone: the grid does not follow the device, so every
 *           device gives the same bits.
 * Error     depth n / (1024 block) + 1024 / block + 2 log2(block), each rounded up.
 * Needs     RUNG_PARTIALS numbers of scratch; any n.
 * Source    M. Harris, Optimizing Parallel Reduction in CUDA (multiple kernel invocations).
 * Measured  tests/bench/results.
 */
#include "gpu/kernels/tree.cuh"

namespace
{

const int LOADS = 4; /* of each operand in flight a thread */

/* The thread's own products, a grid apart, added in their order. All loads of a round are issued
 * before any is used. */
template <typename T> __device__ inline T share_of(const operands<T> &in)
{
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    uint64_t i = global_thread() + step;
    T sum = product_at(in, global_thread());
    for (; i + (LOADS - 1) * step < in.n; i += LOADS * step) {
        T term[LOADS];
#pragma unroll
        for (int k = 0; k < LOADS; k++)
            term[k] = product(in.a[i + k * step], in.b[i + k * step]);
#pragma unroll
        for (int k = 0; k < LOADS; k++)
            sum += term[k];
    }
    for (; i < in.n; i += step)
        sum += product(in.a[i], in.b[i]);
    return sum;
}

template <typename T> __global__ void first_pass(operands<T> in)
{
    __shared__ watched<T> cell[RUNG_THREADS_MAX];
    watch_shared(cell, blockDim.x, "cell");
    watch_global(in.partial, in.partials, "partial");
    const T sum = tree_sum<T>(cell, share_of(in));
    if (threadIdx.x == 0)
        in.partial[blockIdx.x] = sum;
}

template <typename T> __global__ void second_pass(operands<T> in)
{
    __shared__ watched<T> cell[RUNG_THREADS_MAX];
    watch_shared(cell, blockDim.x, "cell");
    watch_global(in.partial, in.partials, "partial");
    watch_global(in.result, 1, "result");
    T mine = threadIdx.x < in.partials ? T(in.partial[threadIdx.x]) : T(0);
    for (unsigned i = threadIdx.x + blockDim.x; i < in.partials; i += blockDim.x)
        mine += in.partial[i];
    const T sum = tree_sum<T>(cell, mine);
    if (threadIdx.x == 0)
        *in.result = sum;
}

template <typename T> int run_both(const rung_launch *launch)
{
    static_assert(RUNG_PARTIALS * sizeof(T) <= RUNG_SCRATCH_BYTES, "partial sums fit");
    const operands<T> in = operands_of<T>(launch);
    const int status = run(launch, first_pass<T>, in, launch->takes.blocks, launch->takes.threads);
    return status == 0 ? run(launch, second_pass<T>, in, 1, launch->takes.threads) : status;
}

} // namespace

extern "C" int RUNG_SYMBOL(two_pass)(const struct rung_launch *launch)
{
    return launch->call.dtype == DTYPE_FLOAT64 ? run_both<double>(launch) : run_both<float>(launch);
}
