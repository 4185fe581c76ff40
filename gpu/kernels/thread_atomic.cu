/* thread_atomic.cu - rung 4: many blocks, an atomicAdd a thread. Takes away the limit of one block.
 *
 * Idea      as race.cu, but reading, adding and writing are one operation that nobody interrupts.
 * Cost      8 n bytes read once, and n additions of one address, done one after the other: a queue
 *           as long as the vector.
 * Order     any: as the threads arrive.
 * Error     depth n - 1, and atomicAdd of float32 takes subnormal numbers for zero.
 * Needs     *result zero before the launch; any n.
 * Source    CUDA C++ Programming Guide, atomic functions; PTX ISA, atom.
 * Measured  tests/bench/results.
 */
#include "gpu/kernels/rung.cuh"

namespace
{

template <typename T> __global__ void thread_atomic(operands<T> in)
{
    watch_global(in.result, 1, "result");
    const uint64_t i = global_thread();
    if (i < in.n)
        atomicAdd(in.result, product(in.a[i], in.b[i]));
}

} // namespace

extern "C" int RUNG_SYMBOL(thread_atomic)(const struct rung_launch *launch)
{
    return launch->call.dtype == DTYPE_FLOAT64 ? clear_and_run_rung<double>(launch, thread_atomic)
                                               : clear_and_run_rung<float>(launch, thread_atomic);
}
