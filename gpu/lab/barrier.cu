/* barrier.cu - the tree of the lecture with its barrier inside the branch, where it must not be.
 *
 * Idea      n ones are added by halving strides; the barrier of each step is waited at by the
 *           threads that added, or, on the common path, by all.
 * Cost      one block, a thread an element, log2(n) steps.
 * Order     in the branch: undefined. A barrier waits for every thread of the block; those that had
 *           nothing to add never come. (Devices since compute capability 7.0 stop waiting for
 *           threads that have ended, which the guide does not promise.)
 * Needs     n at most 1024. Emulated only: a device might hang.
 * Source    CUDA C++ Programming Guide, synchronization functions.
 */
#include "gpu/lab/kernels.h"

#include "gpu/kernels/watched.cuh"

#ifdef DOTD_EMU_LIBRARY
namespace
{

enum { BARRIER_MAX = 1024 };

template <bool IS_IN_BRANCH>
__global__ void barrier(const __grid_constant__ struct barrier_call call)
{
    __shared__ watched<float> sum[BARRIER_MAX];
    const unsigned mine = threadIdx.x;
    watch_shared(sum, call.n, "sum");
    sum[mine] = 1;
    __syncthreads();
    for (unsigned length = call.n; length > 1; length = (length + 1) / 2) {
        if (mine < length / 2) {
            sum[mine] += sum[mine + (length + 1) / 2];
            if (IS_IN_BRANCH)
                __syncthreads();
        }
        if (!IS_IN_BRANCH)
            __syncthreads();
    }
    if (mine == 0)
        *call.result = sum[0];
}

} // namespace

bool barrier_emulated(const struct barrier_call *call, const struct emu_grid *wanted)
{
    struct emu_grid grid = *wanted;
    grid.blocks = 1;
    grid.threads = call->n;
    return emu_launch(grid, [call] {
        if (call->is_in_branch)
            barrier<true>(*call);
        else
            barrier<false>(*call);
    });
}
#endif
