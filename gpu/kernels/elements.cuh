/* elements.cuh - the elements in a vector of 16 bytes, type by type, as float64.
 *
 * Door: real_of<DTYPE>(vector, index) with an index that is known when compiling;
 * special_of<DTYPE>(). Every type but int64 fits a float64 exactly.
 */
#ifndef GPU_KERNELS_ELEMENTS_CUH
#define GPU_KERNELS_ELEMENTS_CUH

#include <cuda_runtime_api.h>

#include "gpu/exact/limbs.h"
#include "gpu/kernels/exact.h"

namespace
{

/* Of a type: bytes of a real number, real numbers an element. */
template <enum dtype> struct element;
template <> struct element<DTYPE_FLOAT32> {
    enum { BYTES = 4, PARTS = 1 };
};
template <> struct element<DTYPE_FLOAT64> {
    enum { BYTES = 8, PARTS = 1 };
};
template <> struct element<DTYPE_FLOAT16> {
    enum { BYTES = 2, PARTS = 1 };
};
template <> struct element<DTYPE_BFLOAT16> {
    enum { BYTES = 2, PARTS = 1 };
};
template <> struct element<DTYPE_INT8> {
    enum { BYTES = 1, PARTS = 1 };
};
template <> struct element<DTYPE_UINT8> {
    enum { BYTES = 1, PARTS = 1 };
};
template <> struct element<DTYPE_INT32> {
    enum { BYTES = 4, PARTS = 1 };
};
template <> struct element<DTYPE_INT64> {
    enum { BYTES = 8, PARTS = 1 };
};
template <> struct element<DTYPE_COMPLEX64> {
    enum { BYTES = 4, PARTS = 2 };
};
template <> struct element<DTYPE_COMPLEX128> {
    enum { BYTES = 8, PARTS = 2 };
};

__device__ inline unsigned word_of(const uint4 &v, int index)
{
    return index == 0 ? v.x : index == 1 ? v.y : index == 2 ? v.z : v.w;
}

__device__ inline float half_to_float(unsigned short bits)
{
#ifdef DOTD_EMU
    return emu_half_to_float(bits);
#else
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
#endif
}

/* Real number `index` of the vector; complex elements are two. */
template <enum dtype DTYPE> __device__ inline double real_of(const uint4 &v, int index)
{
    const int bytes = element<DTYPE>::BYTES;
    const unsigned word = word_of(v, index * bytes / 4) >> 8 * (index * bytes % 4);
    if (bytes == 8) {
        const unsigned upper = word_of(v, index * 2 + 1);
        if (DTYPE == DTYPE_INT64)
            return (double)(int64_t)((uint64_t)upper << 32 | word);
        return __hiloint2double((int)upper, (int)word);
    }
    switch (DTYPE) {
    case DTYPE_FLOAT16:
        return (double)half_to_float((unsigned short)word);
    case DTYPE_BFLOAT16:
        return (double)__uint_as_float(word << 16);
    case DTYPE_INT8:
        return (double)(signed char)word;
    case DTYPE_UINT8:
        return (double)(unsigned char)word;
    case DTYPE_INT32:
        return (double)(int)word;
    default:
        return (double)__uint_as_float(word);
    }
}

/* Which products of two vectors are not finite: enum exact_special bits, EXACT_PART_BITS a part. */
template <enum dtype DTYPE>
__device__ inline unsigned special_of(const uint4 &x, const uint4 &y, bool conjugate)
{
    const int parts = element<DTYPE>::PARTS, count = 16 / element<DTYPE>::BYTES;
    unsigned special = 0;
#pragma unroll
    for (int i = 0; i < count; i += parts) {
        const double a = real_of<DTYPE>(x, i), c = real_of<DTYPE>(y, i);
        special |= exact_special_of(a, c);
        if (parts == 2) {
            const double b = real_of<DTYPE>(x, i + 1), d = real_of<DTYPE>(y, i + 1);
            const double s = conjugate ? -b : b;
            special |= exact_special_of(-s, d) | (exact_special_of(a, d) | exact_special_of(s, c))
                                                     << EXACT_PART_BITS;
        }
    }
    return special;
}

} // namespace

#endif
