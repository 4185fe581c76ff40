/* shift.cu - the exercise of the lesson on barriers: every cell takes its right neighbour's value,
 * the last one its own.
 *
 * Idea      a thread a cell: read the neighbour into a register, write it to the own cell, and hand
 *           out the cell that another thread wrote.
 * Cost      one block; beside the barrier after loading two more, which the call may leave out.
 * Order     without the first of them a neighbour may have been overwritten before it is read;
 *           without the second a cell may be handed out before it is written. Both are undefined
 *           behaviour.
 * Needs     n at most 1024.
 * Source    the lesson's exercise; CUDA C++ Programming Guide, synchronization functions.
 */
#include "gpu/lab/kernels.h"

#include "gpu/kernels/watched.cuh"

namespace
{

enum { SHIFT_MAX = 1024 };

template <int BARRIERS> __global__ void shift(const __grid_constant__ struct shift_call call)
{
    __shared__ watched<double> cell[SHIFT_MAX];
    const unsigned mine = threadIdx.x, last = call.n - 1;
    watch_shared(cell, call.n, "cell");
    if (mine <= last)
        cell[mine] = call.values[mine];
    __syncthreads(); /* all values are there: where the exercise begins */
    double right = 0;
    if (mine <= last)
        right = cell[mine < last ? mine + 1 : last];
    if (BARRIERS >= 1)
        __syncthreads(); /* everybody has read */
    if (mine <= last)
        cell[mine] = right;
    if (BARRIERS >= 2)
        __syncthreads(); /* everybody has written */
    if (mine <= last)
        call.result[last - mine] = cell[last - mine];
}

typedef void (*kernel)(const struct shift_call call);

const kernel kernels[] = {shift<0>, shift<1>, shift<2>};

/* Whole warps: those that are left over only wait. */
unsigned threads_of(const struct shift_call *call)
{
    return (call->n + 31) / 32 * 32;
}

} // namespace

#ifdef DOTD_EMU_LIBRARY
bool shift_emulated(const struct shift_call *call, const struct emu_grid *wanted)
{
    struct emu_grid grid = *wanted;
    grid.blocks = 1;
    grid.threads = threads_of(call);
    return emu_launch(grid, [call] { kernels[call->barriers](*call); });
}
#else
int shift_cuda(const struct shift_call *call, void *stream)
{
    void *arguments[] = {const_cast<struct shift_call *>(call)};
    return cudaLaunchKernel(kernels[call->barriers], dim3(1), dim3(threads_of(call)), arguments, 0,
                            static_cast<cudaStream_t>(stream));
}
#endif
