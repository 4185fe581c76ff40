/* serial.cu - rung 1: one block, products in shared memory, thread 0 adds. Takes away the race.
 *
 * Idea      each thread leaves its product in a cell of its own; behind the barrier, which makes
 *           all cells seen, thread 0 adds them one after the other.
 * Cost      one barrier; n - 1 additions in a row, each waiting for a load and for the one before.
 * Order     fixed.
 * Error     depth n - 1.
 * Needs     n not above the block's threads, 1024 at most.
 * Source    CUDA C++ Programming Guide, thread synchronization.
 * Measured  tests/bench/results.
 */
#include "gpu/kernels/rung.cuh"

namespace
{

template <typename T> __global__ void serial(operands<T> in)
{
    __shared__ watched<T> cell[RUNG_THREADS_MAX];
    watch_shared(cell, blockDim.x, "cell");
    watch_global(in.result, 1, "result");
    cell[threadIdx.x] = product_at(in, threadIdx.x);
    __syncthreads();
    if (threadIdx.x == 0) {
        T sum = cell[0];
        for (unsigned i = 1; i < in.n; i++)
            sum += cell[i];
        *in.result = sum;
    }
}

} // namespace

extern "C" int RUNG_SYMBOL(serial)(const struct rung_launch *launch)
{
    return launch->call.dtype == DTYPE_FLOAT64 ? run_rung<double>(launch, serial)
                                               : run_rung<float>(launch, serial);
}
