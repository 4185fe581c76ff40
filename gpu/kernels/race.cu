/* race.cu - the ladder's foot: every thread adds to one variable, plainly. Its answer is wrong.
 *
 * Idea      *result += a[i] * b[i] in every thread, as if nobody else were there.
 * Cost      8 n bytes read once; what it costs in addition is the answer.
 * Order     any: of all threads that read the same total, one is heard, the last to write.
 * Error     none is promised. Lanes of a warp run together: of 32 additions at most one survives.
 * Needs     *result zero before the launch; any n. Only in the lab.
 * Source    CUDA C++ Programming Guide, SIMT architecture: of several writes by one warp to one
 *           place one is done, and it is undefined which.
 * Measured  tests/bench/results.
 */
#include "gpu/kernels/rung.cuh"

namespace
{

template <typename T> __global__ void race(operands<T> in)
{
    watch_global(in.result, 1, "result");
    const uint64_t i = global_thread();
    if (i < in.n)
        *in.result += product(in.a[i], in.b[i]);
}

} // namespace

extern "C" int RUNG_SYMBOL(race)(const struct rung_launch *launch)
{
    return launch->call.dtype == DTYPE_FLOAT64 ? clear_and_run_rung<double>(launch, race)
                                               : clear_and_run_rung<float>(launch, race);
}
