/* rung.cuh - what the rungs of the ladder share: operands, products, launching.
 *
 * Door: a rung's file has a kernel<T> of one argument, operands<T>, and ends with
 * RUNG_SYMBOL(name), which runs it by run_rung(), clear_and_run_rung() or, launch by launch,
 * run(). The file is compiled twice, by nvcc and by the C++ compiler for the emulation, and both
 * go into one program: the symbol says which it is.
 */
#ifndef GPU_KERNELS_RUNG_CUH
#define GPU_KERNELS_RUNG_CUH

#include <cuda_runtime_api.h>

#include "gpu/kernels/rung.h"
#include "gpu/kernels/watched.cuh"

#ifdef DOTD_EMU_LIBRARY
#define RUNG_SYMBOL(name) emu_##name
#else
#define RUNG_SYMBOL(name) cuda_##name
#endif

namespace
{

template <typename T> struct operands {
    const T *a, *b;
    uint64_t n;
    watched<T> *result, *partial; /* partial: [RUNG_PARTIALS], of two-pass */
    uint32_t partials;
};

/* Rounded by itself: nvcc would otherwise make one fused operation of it and the addition that
 * follows, and the emulation's bits would be others. */
__device__ inline float product(float x, float y)
{
    return __fmul_rn(x, y);
}

__device__ inline double product(double x, double y)
{
    return __dmul_rn(x, y);
}

/* Of a thread for each element: those of the tail bring zero, which adds nothing. */
template <typename T> __device__ inline T product_at(const operands<T> &in, uint64_t i)
{
    return i < in.n ? product(in.a[i], in.b[i]) : T(0);
}

__device__ inline uint64_t global_thread()
{
    return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

/* --- the host's side --- */

template <typename T> operands<T> operands_of(const rung_launch *launch)
{
    const rung_call &call = launch->call;
    operands<T> in;
    in.a = static_cast<const T *>(call.a);
    in.b = static_cast<const T *>(call.b);
    in.n = call.n;
    in.result = static_cast<watched<T> *>(call.result);
    in.partial = static_cast<watched<T> *>(call.scratch);
    in.partials = launch->takes.blocks;
    return in;
}

#ifdef DOTD_EMU_LIBRARY

inline int clear(const rung_launch *, void *data, size_t size)
{
    memset(data, 0, size);
    return 0;
}

template <typename Argument>
int run(const rung_launch *launch, void (*kernel)(Argument), Argument argument, uint32_t blocks,
        uint32_t threads)
{
    struct emu_grid grid = {};
    grid.blocks = blocks;
    grid.threads = threads;
    grid.seed = launch->call.seed;
    grid.is_lockstep = launch->call.is_lockstep;
    grid.trace = launch->call.trace;
    return emu_launch(grid, [&] { kernel(argument); }) ? 0 : 1;
}

#else

inline int clear(const rung_launch *launch, void *data, size_t size)
{
    return cudaMemsetAsync(data, 0, size, static_cast<cudaStream_t>(launch->call.stream));
}

template <typename Argument>
int run(const rung_launch *launch, void (*kernel)(Argument), Argument argument, uint32_t blocks,
        uint32_t threads)
{
    void *arguments[] = {&argument};
    return cudaLaunchKernel(kernel, dim3(blocks), dim3(threads), arguments, 0,
                            static_cast<cudaStream_t>(launch->call.stream));
}

#endif

/* The one launch of most rungs. */
template <typename T> int run_rung(const rung_launch *launch, void (*kernel)(operands<T>))
{
    return run(launch, kernel, operands_of<T>(launch), launch->takes.blocks, launch->takes.threads);
}

/* And of those that add to the result. */
template <typename T> int clear_and_run_rung(const rung_launch *launch, void (*kernel)(operands<T>))
{
    const int status = clear(launch, launch->call.result, sizeof(T));
    return status == 0 ? run_rung(launch, kernel) : status;
}

} // namespace

#endif
