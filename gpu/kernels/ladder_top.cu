/* ladder_top.cu - the upper end of the ladder: the service's own kernels with a table of one task.
 *
 * rung 7, grid-atomic, is grid_atomic.cu; rung 9, exact, is exact.cu. In the emulation a launch of
 * theirs follows the emulation's settings: no seed of the call, and no trace, for they watch
 * nothing.
 */
#include "gpu/kernels/exact.h"
#include "gpu/kernels/grid_atomic.h"
#include "gpu/kernels/rung.cuh"

namespace
{

/* What a stream of the call is for cudaLaunchKernel(); the emulation wants one and asks it
 * nothing. */
inline cudaStream_t stream_of(const rung_launch *launch)
{
#ifdef DOTD_EMU_LIBRARY
    return reinterpret_cast<cudaStream_t>(const_cast<rung_launch *>(launch));
#else
    return static_cast<cudaStream_t>(launch->call.stream);
#endif
}

cudaError_t fill_machine(struct rung_machine *ret)
{
    int device = 0, multiprocessors = 0, blocks = 0;
    cudaError_t status = cudaGetDevice(&device);
    if (status == cudaSuccess)
        status = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    for (int i = DTYPE_FLOAT32; i <= DTYPE_FLOAT64 && status == cudaSuccess; i++) {
        status = grid_atomic_blocks((enum dtype)i, &blocks);
        ret->grid_capacity[i] = (uint32_t)(multiprocessors * blocks);
        if (status == cudaSuccess)
            status = exact_open((enum dtype)i, (uint32_t)multiprocessors, &ret->exact[i]);
    }
    return status;
}

} // namespace

extern "C" int RUNG_SYMBOL(machine)(struct rung_machine *ret)
{
    return fill_machine(ret);
}

extern "C" int RUNG_SYMBOL(grid_atomic)(const struct rung_launch *launch)
{
    const rung_call &call = launch->call;
    struct grid_sum *sum = static_cast<struct grid_sum *>(call.result);
    struct grid_launch grid = {};
    grid.result = sum; /* stored there, or added to what is zero */
    grid.split = sum;
    grid.only = launch->task;
    int status = clear(launch, sum, sizeof *sum);
    if (status == 0 && launch->takes.launches > 0)
        status = grid_atomic_launch(call.dtype, &grid, grid.only.blocks, stream_of(launch));
    return status;
}

extern "C" int RUNG_SYMBOL(exact)(const struct rung_launch *launch)
{
    static_assert(sizeof(struct dot_value) <= RUNG_RESULT_BYTES, "a result fits");
    static_assert(sizeof(struct exact_total) <= RUNG_SCRATCH_BYTES, "limbs fit");
    const rung_call &call = launch->call;
    struct exact_launch exact = {};
    exact.result = static_cast<struct dot_value *>(call.result);
    exact.total = static_cast<struct exact_total *>(call.scratch);
    exact.only = launch->task;
    int status = clear(launch, exact.result, sizeof *exact.result);
    if (status == 0 && exact.only.form == GRID_SPLIT_ROW)
        status = clear(launch, exact.total, sizeof *exact.total);
    if (status == 0 && launch->takes.launches > 0)
        status = exact_launch(call.dtype, &call.machine->exact[call.dtype], &exact,
                              exact.only.blocks, stream_of(launch));
    return status;
}
