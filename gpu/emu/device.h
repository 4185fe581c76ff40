/* device.h - the language of kernels for a C++ compiler: qualifiers, built-in variables,
 * intrinsics.
 *
 * Door: included by cuda_runtime_api.h beside this; kernels do not name it. Intrinsics compute what
 * the CUDA Math API and the PTX ISA say, bit for bit; the file is compiled with -ffp-contract=off.
 */
#ifndef GPU_EMU_DEVICE_H
#define GPU_EMU_DEVICE_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "gpu/emu/emu.h"
#include "gpu/emu/watched.h"

#define DOTD_EMU 1 /* for kernels: compiled as C++, for the daemon or for tests */

#define __global__
#define __device__
#define __host__
#define __shared__ static /* one block at a time */
#define __grid_constant__
#define __launch_bounds__(...)

#define threadIdx emu_thread
#define blockIdx  emu_block
#define blockDim  emu_block_size
#define gridDim   emu_grid_size

struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(16) double2 {
    double x, y;
};

static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return uint4{x, y, z, w};
}

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned width) : x(width), y(1), z(1)
    {
    }
};

/* --- launching --- */

template <typename Argument> struct emu_call {
    void (*kernel)(Argument);
    const Argument *argument;
    static void body(const void *context)
    {
        const emu_call *call = static_cast<const emu_call *>(context);
        call->kernel(*call->argument);
    }
};

/* emu_launch() of a body that calls the kernel: [&] { kernel<float>(a, b, n, result); } */
template <typename Body> static inline bool emu_launch(struct emu_grid grid, const Body &body)
{
    grid.body = [](const void *context) { (*static_cast<const Body *>(context))(); };
    grid.context = &body;
    return emu_launch(&grid);
}

/* The typed form of CUDA's C++ header, for kernels of one argument. */
template <typename Argument>
cudaError_t cudaLaunchKernel(void (*kernel)(Argument), dim3 blocks, dim3 threads, void **arguments,
                             size_t shared_bytes, cudaStream_t stream)
{
    const Argument argument = *static_cast<const Argument *>(arguments[0]);
    const emu_call<Argument> call = {kernel, &argument};
    emu_run(blocks.x, threads.x, shared_bytes, emu_call<Argument>::body, &call);
    return stream != NULL ? cudaSuccess : cudaErrorInvalidValue;
}

template <typename Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *ret, Kernel, int, size_t)
{
    *ret = (int)emu_get().blocks;
    return cudaSuccess;
}

template <typename Kernel> cudaError_t cudaFuncSetAttribute(Kernel, enum cudaFuncAttribute, int)
{
    return cudaSuccess;
}

/* --- barriers, warps, atomics --- */

enum emu_kind { EMU_SYNC, EMU_SHUFFLE_DOWN, EMU_SHUFFLE, EMU_BALLOT, EMU_OR, EMU_ADD, EMU_MAX };

static inline void __syncthreads()
{
    emu_block_barrier();
}

static inline void __syncwarp()
{
    (void)emu_exchange(0xffffffff, EMU_SYNC, 0);
}

template <typename Value>
static inline Value emu_shuffle(unsigned mask, emu_kind kind, Value value, unsigned from)
{
    static_assert(sizeof(Value) <= sizeof(uint64_t), "what a lane can bring");
    uint64_t word = 0;
    memcpy(&word, &value, sizeof value);
    word = emu_exchange(mask, kind, word)[from];
    memcpy(&value, &word, sizeof value);
    return value;
}

/* A lane that does not exist gives one's own value. */
template <typename Value>
static inline Value __shfl_down_sync(unsigned mask, Value value, unsigned by)
{
    unsigned lane = threadIdx.x % 32;
    return emu_shuffle(mask, EMU_SHUFFLE_DOWN, value, lane + by < 32 ? lane + by : lane);
}

template <typename Value> static inline Value __shfl_sync(unsigned mask, Value value, unsigned from)
{
    return emu_shuffle(mask, EMU_SHUFFLE, value, from % 32);
}

template <typename Value>
static inline Value __shfl_xor_sync(unsigned mask, Value value, unsigned bits)
{
    return emu_shuffle(mask, EMU_SHUFFLE, value, threadIdx.x % 32 ^ bits);
}

static inline unsigned __ballot_sync(unsigned mask, int predicate)
{
    const uint64_t *lanes = emu_exchange(mask, EMU_BALLOT, predicate != 0);
    unsigned ballot = 0;
    for (int lane = 0; lane < 32; lane++)
        ballot |= (unsigned)lanes[lane] << lane;
    return ballot;
}

static inline int __any_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, predicate) != 0;
}

static inline unsigned __reduce_or_sync(unsigned mask, unsigned value)
{
    const uint64_t *lanes = emu_exchange(mask, EMU_OR, value);
    unsigned all = 0;
    for (int lane = 0; lane < 32; lane++)
        all |= (unsigned)lanes[lane];
    return all;
}

template <typename Value> static inline Value __reduce_add_sync(unsigned mask, Value value)
{
    const uint64_t *lanes = emu_exchange(mask, EMU_ADD, (uint64_t)value);
    uint64_t sum = 0;
    for (int lane = 0; lane < 32; lane++)
        sum += lanes[lane];
    return (Value)sum;
}

static inline unsigned __reduce_max_sync(unsigned mask, unsigned value)
{
    const uint64_t *lanes = emu_exchange(mask, EMU_MAX, value);
    uint64_t most = 0;
    for (int lane = 0; lane < 32; lane++)
        most = lanes[lane] > most ? lanes[lane] : most;
    return (unsigned)most;
}

template <typename Value> static inline Value atomicAdd(Value *at, Value value)
{
    Value before = *at;
    *at += value;
    return before;
}

static inline unsigned atomicOr(unsigned *at, unsigned value)
{
    unsigned before = *at;
    *at |= value;
    return before;
}

template <typename Value> static inline Value __ldg(const Value *at)
{
    return *at;
}

template <typename Value> static inline Value __ldcg(const Value *at)
{
    return *at;
}

/* --- arithmetic --- */

static inline double __dadd_rn(double x, double y)
{
    return x + y;
}

static inline double __dmul_rn(double x, double y)
{
    return x * y;
}

static inline double __fma_rn(double x, double y, double z)
{
    return fma(x, y, z);
}

static inline float __fmul_rn(float x, float y)
{
    return x * y;
}

template <typename To, typename From> static inline To emu_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

static inline long long __double_as_longlong(double value)
{
    return emu_bits<long long>(value);
}

static inline double __longlong_as_double(long long bits)
{
    return emu_bits<double>(bits);
}

static inline float __uint_as_float(unsigned bits)
{
    return emu_bits<float>(bits);
}

static inline unsigned __float_as_uint(float value)
{
    return emu_bits<unsigned>(value);
}

static inline int __double2hiint(double value)
{
    return (int)(emu_bits<uint64_t>(value) >> 32);
}

static inline double __hiloint2double(int high, int low)
{
    return emu_bits<double>((uint64_t)(unsigned)high << 32 | (unsigned)low);
}

/* cvt.f32.f16: exact; 2^112 moves the exponent's bias from 15 to 127, for subnormal numbers too. */
static inline float emu_half_to_float(unsigned short bits)
{
    const unsigned sign = (bits & 0x8000u) << 16, rest = bits & 0x7fffu;
    if (rest >= 0x7c00)
        return emu_bits<float>(sign | 0x7f800000u | (rest & 0x3ff) << 13);
    return emu_bits<float>(sign | emu_bits<unsigned>(emu_bits<float>(rest << 13) * 0x1p112F));
}

static inline int __dp4a(int x, int y, int sum)
{
    for (int i = 0; i < 4; i++)
        sum += (int8_t)((unsigned)x >> 8 * i) * (int8_t)((unsigned)y >> 8 * i);
    return sum;
}

static inline unsigned __dp4a(unsigned x, unsigned y, unsigned sum)
{
    for (int i = 0; i < 4; i++)
        sum += (x >> 8 * i & 0xff) * (y >> 8 * i & 0xff);
    return sum;
}

static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift)
{
    return (unsigned)(((uint64_t)high << 32 | low) >> (shift & 31));
}

static inline int __ffs(int word)
{
    return __builtin_ffs(word);
}

static inline int __clz(int word)
{
    return word != 0 ? __builtin_clz((unsigned)word) : 32;
}

static inline int __popc(unsigned word)
{
    return __builtin_popcount(word);
}

template <typename Number> static inline Number max(Number x, Number y)
{
    return x > y ? x : y;
}

template <typename Number> static inline Number min(Number x, Number y)
{
    return x < y ? x : y;
}

#endif
