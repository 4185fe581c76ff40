/* exact_narrow.cu - exact sums of float32, bfloat16 and complex64: every product straight into the
 * thread's own limbs in shared memory, at a cost that does not depend on the data.
 *
 * Idea      a product is exact in float64. Scaled so that its limb has unit 1, it is split by additions
 *           of 1.5 * 2^k into whole multiples of 2^32 and a rest, whose integers are read off the bit
 *           patterns and added to two limbs of 64 bits. A bfloat16 product, 16 bits, fits one limb.
 * Columns   limb i of lane j lies at 256 i + 8 j of the warp's memory: whichever limbs the lanes of a
 *           warp touch, each has its own bank.
 * Range     a product other than zero has an exponent field of 725 (2^-298) to 1278 (below 2^256):
 *           windows of 32 from 720 on, of base EXACT_FLOAT32_BASE, and limbs 0 to 18.
 * Headroom  a deposit adds less than 2^47 to a limb: 512 of them, then a carry. The limbs of 32 lanes
 *           stay below 2^62.
 * Source    the splitting: T. Dekker, A floating-point technique for extending the available
 *           precision, 1971; private superaccumulators: see exact_rows.cuh.
 * Measured  tests/bench/results.
 */
#include "gpu/kernels/exact_kernel.h"
#include "gpu/kernels/exact_rows.cuh"

namespace
{

enum {
    ROW_BYTES = GRID_WARP * 8, /* a limb of every lane */
    PART_BYTES = EXACT_FLOAT32_LIMBS * ROW_BYTES,
    DEPOSITS = 512,        /* between two carries */
    FIELD = 1 << 20,       /* the exponent field's unit in the upper word of a float64 */
    INFINITE = 0x7ff << 20 /* the upper word of infinity; NaN's is not below */
};

/* Where a product goes. Windows are counted from exponent field 48, so that the scale's exponent is
 * the complement of the window's number and costs one instruction: 2016 - 32 window + 29 is the field
 * of 2^(350 - 32 (window - 21)). Fields below 720 are zeros' only, which may go anywhere. */
enum { FIRST_FIELD = 48, FIRST_WINDOW = 21, SCALE_FIELD = 29 };

__device__ inline int window_of(int upper)
{
    return max(upper - FIRST_FIELD * FIELD, FIRST_WINDOW * 32 * FIELD);
}

__device__ inline double scale_of(int window)
{
    return __hiloint2double((~window & 0x7e000000) | SCALE_FIELD * FIELD, 0);
}

__device__ inline int64_t *limb_of(char *column, int window)
{
    return (int64_t *)(column + ((window >> 17 & 0x3f00) - FIRST_WINDOW * ROW_BYTES));
}

/* 1.5 * 2^84 and 1.5 * 2^52: numbers near them have units 2^32 and 1. */
const uint64_t UPPER_BITS = 0x4538000000000000, LOWER_BITS = 0x4338000000000000;

/* |p scale| < 2^79. upper + rest is that number, |rest| <= 2^31: all of it exact, for the first fma
 * rounds to a multiple of 2^32, and what is left has at most 32 bits. */
__device__ inline void put(char *column, double p, int upper)
{
    const int window = window_of(upper);
    const double scale = scale_of(window);
    const double high = __fma_rn(p, scale, __longlong_as_double(UPPER_BITS));
    const double rest = __fma_rn(p, scale, __dadd_rn(__longlong_as_double(UPPER_BITS), -high));
    const double low = __dadd_rn(rest, __longlong_as_double(LOWER_BITS));
    int64_t *limb = limb_of(column, window);
    const uint64_t limb0 = limb[0], limb1 = limb[GRID_WARP];
    limb[0] = (int64_t)(limb0 + (uint64_t)__double_as_longlong(low) - LOWER_BITS);
    limb[GRID_WARP] = (int64_t)(limb1 + (uint64_t)__double_as_longlong(high) - UPPER_BITS);
}

/* A product of 16 bits has no rest: 32 bits of p scale at least are zero. */
__device__ inline void put16(char *column, double p, int upper)
{
    const int window = window_of(upper);
    const double high = __fma_rn(p, scale_of(window), __longlong_as_double(UPPER_BITS));
    int64_t *limb = limb_of(column, window) + GRID_WARP;
    *limb = (int64_t)((uint64_t)*limb + (uint64_t)__double_as_longlong(high) - UPPER_BITS);
}

/* --- columns --- */

__device__ inline void clear_column(char *column)
{
#pragma unroll
    for (int i = 0; i < EXACT_FLOAT32_LIMBS; i++)
        *(int64_t *)(column + i * ROW_BYTES) = 0;
}

/* Leaves every limb but the top one in [0, 2^32). */
__device__ inline void carry_column(char *column)
{
    int64_t carry = 0;
#pragma unroll 1
    for (int i = 0; i + 1 < EXACT_FLOAT32_LIMBS; i++) {
        int64_t *limb = (int64_t *)(column + i * ROW_BYTES);
        carry += *limb;
        *limb = carry & 0xffffffff;
        carry >>= 32;
    }
    *(int64_t *)(column + (EXACT_FLOAT32_LIMBS - 1) * ROW_BYTES) += carry;
}

/* The warp's columns added up: lane i takes limb i, starting at another column each so that all banks
 * are busy. The sum's upper half goes to the next limb; the top one keeps it. */
__device__ inline void fold_columns(char *part)
{
    const unsigned lane = threadIdx.x % GRID_WARP;
    int64_t total = 0;
    __syncwarp();
    if (lane < EXACT_FLOAT32_LIMBS)
#pragma unroll 8
        for (unsigned k = 0; k < GRID_WARP; k++)
            total += *(const int64_t *)(part + lane * ROW_BYTES + (lane + k) % GRID_WARP * 8);
    int64_t carry = __shfl_up_sync(ALL_LANES, total >> 32, 1);
    if (lane == 0)
        carry = 0;
    if (lane < EXACT_FLOAT32_LIMBS - 1)
        total &= 0xffffffff;
    __syncwarp();
    if (lane < EXACT_FLOAT32_LIMBS)
        ((int64_t *)part)[lane] = total + carry;
    __syncwarp();
}

/* --- operands --- */

struct products {
    double p[4];
    int upper[4]; /* upper words, without the sign */
};

__device__ inline struct products multiply(float x0, float y0, float x1, float y1, float x2,
                                           float y2, float x3, float y3)
{
    struct products m;
    m.p[0] = __dmul_rn((double)x0, (double)y0);
    m.p[1] = __dmul_rn((double)x1, (double)y1);
    m.p[2] = __dmul_rn((double)x2, (double)y2);
    m.p[3] = __dmul_rn((double)x3, (double)y3);
#pragma unroll
    for (int i = 0; i < 4; i++)
        m.upper[i] = __double2hiint(m.p[i]) & 0x7fffffff;
    return m;
}

__device__ inline bool is_finite(const struct products &m)
{
    return max(max(m.upper[0], m.upper[1]), max(m.upper[2], m.upper[3])) < INFINITE;
}

__device__ inline float as_float(unsigned bits)
{
    return __uint_as_float(bits);
}

__device__ inline float low_bfloat16(unsigned word)
{
    return __uint_as_float(word << 16);
}

__device__ inline float high_bfloat16(unsigned word)
{
    return __uint_as_float(word & 0xffff0000);
}

/* --- accumulators --- */

/* What the three have in common. COUNT: deposits that a round of LOADS vectors makes into a limb at
 * most. */
template <int PART_COUNT, int COUNT> class columns
{
  public:
    enum { LIMBS = EXACT_FLOAT32_LIMBS, BASE = EXACT_FLOAT32_BASE };
    enum { PARTS = PART_COUNT, PART_BYTES = ::PART_BYTES };

    __device__ columns(char *region)
        : part_(region), column_(region + threadIdx.x % GRID_WARP * 8), count_(0), is_odd_(false)
    {
    }

    __device__ void begin()
    {
        for (int part = 0; part < PARTS; part++)
            clear_column(column_ + part * PART_BYTES);
        count_ = 0;
        is_odd_ = false;
    }

    __device__ void pause()
    {
        if (++count_ < DEPOSITS / COUNT)
            return;
        for (int part = 0; part < PARTS; part++)
            carry_column(column_ + part * PART_BYTES);
        count_ = 0;
    }

    __device__ bool is_odd() const
    {
        return is_odd_;
    }

    __device__ void fold()
    {
        for (int part = 0; part < PARTS; part++)
            fold_columns(part_ + part * PART_BYTES);
    }

  protected:
    char *part_, *column_;
    unsigned count_; /* rounds since the last carry */
    bool is_odd_;
};

class sum_float32 : public columns<1, 4 * 4>
{
  public:
    enum { THREADS = 256, BLOCKS = 4, LOADS = 4, SIZE = 4 };
    static const enum dtype DTYPE = DTYPE_FLOAT32;

    __device__ sum_float32(char *region, const struct grid_task &) : columns(region)
    {
    }

    __device__ void add(uint4 x, uint4 y)
    {
        const struct products m =
            multiply(as_float(x.x), as_float(y.x), as_float(x.y), as_float(y.y), as_float(x.z),
                     as_float(y.z), as_float(x.w), as_float(y.w));
        if (!is_finite(m)) {
            is_odd_ = true;
            return;
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
            put(column_, m.p[i], m.upper[i]);
    }
};

class sum_bfloat16 : public columns<1, 8 * 4>
{
  public:
    enum { THREADS = 256, BLOCKS = 4, LOADS = 4, SIZE = 2 };
    static const enum dtype DTYPE = DTYPE_BFLOAT16;

    __device__ sum_bfloat16(char *region, const struct grid_task &) : columns(region)
    {
    }

    __device__ void add(uint4 x, uint4 y)
    {
        add_words(x.x, y.x, x.y, y.y);
        add_words(x.z, y.z, x.w, y.w);
    }

  private:
    __device__ void add_words(unsigned x0, unsigned y0, unsigned x1, unsigned y1)
    {
        const struct products m =
            multiply(low_bfloat16(x0), low_bfloat16(y0), high_bfloat16(x0), high_bfloat16(y0),
                     low_bfloat16(x1), low_bfloat16(y1), high_bfloat16(x1), high_bfloat16(y1));
        if (!is_finite(m)) {
            is_odd_ = true;
            return;
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
            put16(column_, m.p[i], m.upper[i]);
    }
};

/* (x + i y)(u + i v) = (x u - y v) + i (x v + y u); a conjugate a has its y negated. */
class sum_complex64 : public columns<2, 4 * 4>
{
  public:
    enum { THREADS = 256, BLOCKS = 2, LOADS = 4, SIZE = 8 };
    static const enum dtype DTYPE = DTYPE_COMPLEX64;

    __device__ sum_complex64(char *region, const struct grid_task &task)
        : columns(region), flip_(task.conjugate << 31)
    {
    }

    __device__ void add(uint4 x, uint4 y)
    {
        x.y ^= flip_;
        x.w ^= flip_;
        const struct products real =
            multiply(as_float(x.x), as_float(y.x), -as_float(x.y), as_float(y.y), as_float(x.z),
                     as_float(y.z), -as_float(x.w), as_float(y.w));
        const struct products imaginary =
            multiply(as_float(x.x), as_float(y.y), as_float(x.y), as_float(y.x), as_float(x.z),
                     as_float(y.w), as_float(x.w), as_float(y.z));
        if (!is_finite(real) || !is_finite(imaginary)) {
            is_odd_ = true;
            return;
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            put(column_, real.p[i], real.upper[i]);
            put(column_ + PART_BYTES, imaginary.p[i], imaginary.upper[i]);
        }
    }

  private:
    unsigned flip_; /* of the sign of a's imaginary part */
};

} // namespace

const struct exact_kernel exact_float32 = {open_rows<sum_float32>, launch_rows<sum_float32>};
const struct exact_kernel exact_bfloat16 = {open_rows<sum_bfloat16>, launch_rows<sum_bfloat16>};
const struct exact_kernel exact_complex64 = {open_rows<sum_complex64>, launch_rows<sum_complex64>};
