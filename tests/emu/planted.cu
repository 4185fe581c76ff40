/* planted.cu - the kernels behind planted.h. */
#include "tests/emu/planted.h"

#include "gpu/kernels/watched.cuh"

namespace
{

enum { CELLS = 4096, ALL_LANES = -1 };

struct arguments {
    const float *data;
    watched<float> *result;
    unsigned count;
};

enum where { COMMON, NOWHERE, BRANCH };

template <typename T, where WHERE> __global__ void tree(struct arguments a)
{
    __shared__ watched<T> cell[CELLS];
    const unsigned thread = threadIdx.x;
    watch_shared(cell, blockDim.x, "cell");
    watch_global(a.result, gridDim.x, "result");
    cell[thread] = (T)a.data[thread];
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (thread < half) {
            cell[thread] += cell[thread + half];
            if (WHERE == BRANCH)
                __syncthreads();
        }
        if (WHERE == COMMON)
            __syncthreads();
    }
    if (thread == 0)
        a.result[blockIdx.x] = (float)cell[0];
}

__global__ void shift(struct arguments a)
{
    __shared__ watched<float> cell[CELLS];
    const unsigned thread = threadIdx.x;
    watch_shared(cell, blockDim.x + 1, "cell");
    watch_global(a.result, blockDim.x, "result");
    cell[thread] = a.data[thread];
    if (thread == 0)
        cell[blockDim.x] = 0;
    __syncthreads();
    const float next = cell[thread + 1];
    if (a.count > 0)
        __syncthreads();
    cell[thread] = next;
    if (a.count > 1)
        __syncthreads();
    a.result[thread] = cell[thread];
}

__global__ void unwritten(struct arguments a)
{
    __shared__ watched<float> cell[CELLS];
    watch_shared(cell, blockDim.x, "cell");
    watch_global(a.result, 1, "result");
    if (threadIdx.x != a.count)
        cell[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 0)
        for (unsigned i = 0; i < blockDim.x; i++)
            a.result[0] += cell[i];
}

__global__ void unwritten_atomic(struct arguments)
{
    __shared__ watched<float> cell[CELLS];
    watch_shared(cell, 1, "cell");
    atomicAdd(&cell[0], 1);
}

template <typename T> __global__ void stride(struct arguments a)
{
    __shared__ watched<T> cell[CELLS];
    watch_shared(cell, CELLS, "cell");
    cell[threadIdx.x * a.count] = 1;
}

__global__ void broadcast(struct arguments a)
{
    __shared__ watched<float> cell[CELLS];
    watch_shared(cell, 1, "cell");
    watch_global(a.result, blockDim.x, "result");
    if (threadIdx.x == 0)
        cell[0] = 1;
    __syncthreads();
    a.result[threadIdx.x] = cell[0];
}

__global__ void add(struct arguments a)
{
    watch_global(a.result, 1, "result");
    a.result[0] += 1;
}

__global__ void add_atomic(struct arguments a)
{
    watch_global(a.result, 1, "result");
    atomicAdd(&a.result[0], 1);
    if (a.count == 1 && threadIdx.x == 0 && a.result[0] < 0)
        a.result[0] = 0;
}

__global__ void add_shared(struct arguments a)
{
    __shared__ watched<float> cell[CELLS];
    watch_shared(cell, 1, "cell");
    watch_global(a.result, gridDim.x, "result");
    if (threadIdx.x == 0)
        cell[0] = 0;
    __syncthreads();
    for (unsigned i = 0; i < a.count; i++)
        atomicAdd(cell, 1);
    __syncthreads();
    if (threadIdx.x == 0)
        a.result[blockIdx.x] = cell[0];
}

template <bool HAS_BARRIER> __global__ void lanes(struct arguments a)
{
    __shared__ watched<float> cell[CELLS];
    watch_shared(cell, blockDim.x, "cell");
    watch_global(a.result, blockDim.x, "result");
    cell[threadIdx.x] = 0;
    __syncthreads();
    cell[threadIdx.x] = a.data[threadIdx.x];
    if (HAS_BARRIER)
        __syncwarp();
    a.result[threadIdx.x] = cell[threadIdx.x ^ 1];
}

__global__ void lanes_leave(struct arguments a)
{
    if (threadIdx.x % 32 != 31)
        (void)__shfl_down_sync((unsigned)ALL_LANES, a.data[threadIdx.x], 1);
}

__global__ void lanes_part(struct arguments a)
{
    if (threadIdx.x % 32 < 16)
        (void)__shfl_down_sync((unsigned)ALL_LANES, a.data[threadIdx.x], 1);
    else
        __syncwarp();
}

__global__ void same_cell(struct arguments a)
{
    watch_global(a.result, 1, "result");
    if (threadIdx.x == 0)
        a.result[0] = (float)blockIdx.x;
}

__global__ void outside(struct arguments a)
{
    __shared__ watched<float> cell[CELLS];
    watch_shared(cell, blockDim.x, "cell");
    cell[threadIdx.x] = 0;
    if (threadIdx.x == 1)
        cell[a.count] = 0;
}

typedef void (*kernel)(struct arguments);

/* In the order of enum planted. */
const kernel kernels[] = {
    tree<float, COMMON>,
    tree<float, NOWHERE>,
    tree<float, BRANCH>,
    tree<double, COMMON>,
    shift,
    unwritten,
    unwritten_atomic,
    stride<float>,
    stride<double>,
    broadcast,
    add,
    add_atomic,
    add_atomic,
    add_shared,
    lanes<true>,
    lanes<false>,
    lanes_leave,
    lanes_part,
    same_cell,
    outside,
};

} // namespace

bool planted_run(enum planted which, const struct emu_grid *grid, const float *data, float *result,
                 uint32_t count)
{
    const struct arguments arguments = {data, (watched<float> *)result,
                                        which == PLANTED_ADD_THEN_READ ? 1 : count};
    return emu_launch(*grid, [&] { kernels[which](arguments); });
}
