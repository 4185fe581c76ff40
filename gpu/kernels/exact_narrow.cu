/* exact_narrow.cu - exact sums of float32, bfloat16 and complex64: in registers, or in the thread's
 * own limbs in shared memory.
 *
 * Idea      a product is exact in float64, and two grids take it in if its exponent is within 32 of
 *           the grids' top (exact_grids.cuh). The others go into columns. There the upper bits of
 *           the exponent say which limb a product belongs to; scaled to that limb, it is split by
 *           adding 1.5 * 2^k into whole multiples of 2^32 and a rest, whose integers are read off
 *           the bit patterns and added to two limbs of 64 bits. A bfloat16 product, 16 bits, has no
 *           rest.
 * Windows   of 32 exponents, on multiples of 32 of the exponent field. Window w has the limb of
 *           unit 2^(32 w - 1070), in which the lowest bit of a product is at least 1. Fields of
 *           products are 725 (2^-298) to 1278 (below 2^256): windows 22 to 39, and with what is
 *           carried limbs 22 to 42. Zeros are put into window 22, where they add nothing, and what
 *           is not finite above 42, where it does no harm.
 * Columns   limb w of lane l lies at 256 (43 - w) + 8 l of the warp's memory: whichever limbs the
 *           lanes of a warp touch, each has its own bank.
 * Headroom  a deposit adds less than 2^47 to a limb: 512 of them, then a carry. The limbs of 32
 *           lanes stay below 2^62.
 * Source    the splitting: T. Dekker, A floating-point technique for extending the available
 *           precision, 1971; private superaccumulators: see exact_rows.cuh.
 * Measured  tests/bench/results.
 */
#include "gpu/kernels/exact_grids.cuh"
#include "gpu/kernels/exact_kernel.h"
#include "gpu/kernels/exact_tiles.cuh"

namespace
{

enum {
    FIRST_WINDOW = 22,
    TOP_WINDOW = 42,
    WINDOW_UNIT = 1 << 25,     /* in the upper word of a float64 */
    ROW_BYTES = GRID_WARP * 8, /* a limb of every lane */
    ROWS = TOP_WINDOW + 2 - FIRST_WINDOW,
    TOP_ROW = 1,    /* of window 42; row 0 is for what is not finite */
    DEPOSITS = 512, /* between two carries */
};

/* 42 - w at the place of the window. It is the upper word of the scale 2^(321 - 32 w) as well, and
 * shifted the offset of a row: each costs one instruction. */
__device__ inline int steps_below_top(double p)
{
    const int complement = ~__double2hiint(p) & 0x7e000000; /* 63 - w, without the sign */
    return max(min(complement - (63 - TOP_WINDOW) * WINDOW_UNIT,
                   (TOP_WINDOW - FIRST_WINDOW) * WINDOW_UNIT),
               0);
}

/* The scale makes the limb's unit 2^-749; these are 1.5 * 2^84 and 1.5 * 2^52 of it: numbers near
 * them have units 2^32 and 1 of the limb's. */
const uint64_t UPPER_BITS = 0x1668000000000000, LOWER_BITS = 0x1468000000000000;

/* In the limb's unit, |p scale| < 2^79; high and rest add up to it, |rest| <= 2^31. All of it is
 * exact, for the first fma rounds to a multiple of 2^32, and what is left has at most 32 bits. */
__device__ inline void put(char *column, double p)
{
    const int steps = steps_below_top(p);
    const double scale = __hiloint2double(steps, 0);
    const double high = __fma_rn(p, scale, __longlong_as_double(UPPER_BITS));
    const double rest = __fma_rn(p, scale, __dadd_rn(__longlong_as_double(UPPER_BITS), -high));
    const double low = __dadd_rn(rest, __longlong_as_double(LOWER_BITS));
    uint64_t *limb = (uint64_t *)(column + (steps >> 17));
    const uint64_t upper = limb[0], lower = limb[GRID_WARP];
    limb[0] = upper + ((uint64_t)__double_as_longlong(high) - UPPER_BITS);
    limb[GRID_WARP] = lower + ((uint64_t)__double_as_longlong(low) - LOWER_BITS);
}

/* A product of 16 bits has no rest: at least 32 bits of p scale are zero. */
__device__ inline void put16(char *column, double p)
{
    const int steps = steps_below_top(p);
    const double high = __fma_rn(p, __hiloint2double(steps, 0), __longlong_as_double(UPPER_BITS));
    uint64_t *limb = (uint64_t *)(column + (steps >> 17));
    limb[0] = limb[0] + ((uint64_t)__double_as_longlong(high) - UPPER_BITS);
}

/* --- columns --- */

__device__ inline void clear_column(char *column)
{
#pragma unroll
    for (int row = 0; row < ROWS; row++)
        *(int64_t *)(column + row * ROW_BYTES) = 0;
}

/* Leaves every limb but the top one in [0, 2^32). In the top row what is not finite may
 * overflow. */
__device__ inline void carry_column(char *column)
{
    int64_t carry = 0;
#pragma unroll 1
    for (int row = ROWS - 1; row > TOP_ROW; row--) {
        int64_t *limb = (int64_t *)(column + row * ROW_BYTES);
        carry += *limb;
        *limb = carry & 0xffffffff;
        carry >>= 32;
    }
    *(uint64_t *)(column + TOP_ROW * ROW_BYTES) += (uint64_t)carry;
}

/* The warp's columns added up: lane i takes row i, starting at another column each so that all
 * banks are busy. */
__device__ inline int64_t total_of_row(const char *part, unsigned lane)
{
    uint64_t total = 0;
    if (lane >= TOP_ROW && lane < ROWS)
#pragma unroll 8
        for (unsigned k = 0; k < GRID_WARP; k++)
            total += *(const uint64_t *)(part + lane * ROW_BYTES + (lane + k) % GRID_WARP * 8);
    return (int64_t)total;
}

/* From rows to the limbs of EXACT_FLOAT32_BASE, which overwrite them: the unit of window w is 2^16
 * of limb w - 23, so that a row's lower 16 bits go to that limb, and what is above to the next
 * one. */
__device__ inline void fold_columns(char *part)
{
    static_assert(32 * (FIRST_WINDOW + 1) - 1070 - EXACT_FLOAT32_BASE == 16, "of limb 0");
    static_assert(TOP_WINDOW - FIRST_WINDOW == EXACT_FLOAT32_LIMBS,
                  "the lowest row is always zero");
    const unsigned lane = threadIdx.x % GRID_WARP;
    __syncwarp();
    const int64_t total = total_of_row(part, lane);
    const int64_t from_below = __shfl_down_sync(ALL_LANES, total >> 16, 1);
    const int64_t kept = lane == TOP_ROW ? total : total & 0xffff;
    __syncwarp();
    if (lane >= TOP_ROW && lane < ROWS - 1)
        ((uint64_t *)part)[ROWS - 2 - lane] = ((uint64_t)kept << 16) + (uint64_t)from_below;
    __syncwarp();
}

struct narrow_columns {
    enum { LIMBS = EXACT_FLOAT32_LIMBS, BASE = EXACT_FLOAT32_BASE, BYTES = ROWS * ROW_BYTES };
    enum { DEPOSITS = ::DEPOSITS };
    /* Products are below 2^256, and all are whole multiples of 2^-298: so is what grids hold. */
    enum { LOWEST_TOP = 760, HIGHEST_TOP = 1278 };

    static __device__ void clear(char *column)
    {
        clear_column(column);
    }

    static __device__ void carry(char *column)
    {
        carry_column(column);
    }

    static __device__ void put(char *column, double value)
    {
        ::put(column, value);
    }

    static __device__ void fold(char *part)
    {
        fold_columns(part);
    }
};

/* --- operands --- */

__device__ inline double product(unsigned x, unsigned y)
{
    return __dmul_rn((double)__uint_as_float(x), (double)__uint_as_float(y));
}

__device__ inline unsigned low_bfloat16(unsigned word)
{
    return word << 16;
}

__device__ inline unsigned high_bfloat16(unsigned word)
{
    return word & 0xffff0000;
}

__device__ inline unsigned field_of(double p)
{
    return (unsigned)__double2hiint(p) << 1 >> 21;
}

/* --- accumulators --- */

/* Two grids hold bits from 2^(top - 1022) down to 2^(top - 1102); a product of BITS at most has its
 * lowest one at 2^(field - 1022 - BITS) or above. COUNT: as for gridded. */
template <int PART_COUNT, int COUNT, int BITS>
class narrow_sum : public gridded<narrow_columns, PART_COUNT, 2, COUNT>
{
  public:
    __device__ narrow_sum(char *region) : gridded<narrow_columns, PART_COUNT, 2, COUNT>(region)
    {
    }

  protected:
    enum { SPAN = 80 - BITS };

    /* Zero is in range, whatever the range: less one it is the largest number. */
    static __device__ void widen(struct span &span, double p)
    {
        const unsigned bits = 2 * (unsigned)__double2hiint(p);
        span.low = min(span.low, bits - 1);
        span.high = max(span.high, bits);
    }

    __device__ bool holds(const struct span &span) const
    {
        return span.high < (this->top_ + 1) << 21 && span.low >= ((this->top_ - SPAN) << 21) - 1;
    }

    /* Products, first all of one real sum: to the grids, or to the columns. */
    template <int N> __device__ void add_products(const double (&p)[N])
    {
        enum { EACH = N / PART_COUNT };
        struct span span = {~0u, 0};
#pragma unroll
        for (int i = 0; i < N; i++)
            widen(span, p[i]);
        if (this->takes(holds(span))) {
#pragma unroll
            for (int i = 0; i < N; i++)
                this->grids_[i / EACH].template add<0, 1>(p[i]);
            return;
        }
        this->make_room(EACH);
#pragma unroll
        for (int i = 0; i < N; i++) {
            if (BITS == 16)
                put16(this->column(i / EACH), p[i]);
            else
                put(this->column(i / EACH), p[i]);
            this->see(p[i]);
        }
    }
};

class sum_float32 : public narrow_sum<1, 4, 48>
{
  public:
    enum { THREADS = 640, BLOCKS = 1, AHEAD = 5, SIZE = 4 };
    static const enum dtype DTYPE = DTYPE_FLOAT32;

    __device__ sum_float32(char *region, const struct grid_task &) : narrow_sum(region)
    {
    }

    __device__ void begin(const uint4 &x, const uint4 &y)
    {
        begin_at(field_of(product(x.x, y.x)));
    }

    __device__ void add(const uint4 &x, const uint4 &y)
    {
        const double p[4] = {product(x.x, y.x), product(x.y, y.y), product(x.z, y.z),
                             product(x.w, y.w)};
        add_products(p);
    }
};

class sum_bfloat16 : public narrow_sum<1, 8, 16>
{
  public:
    enum { THREADS = 640, BLOCKS = 1, AHEAD = 5, SIZE = 2 };
    static const enum dtype DTYPE = DTYPE_BFLOAT16;

    __device__ sum_bfloat16(char *region, const struct grid_task &) : narrow_sum(region)
    {
    }

    __device__ void begin(const uint4 &x, const uint4 &y)
    {
        begin_at(field_of(product(low_bfloat16(x.x), low_bfloat16(y.x))));
    }

    __device__ void add(const uint4 &x, const uint4 &y)
    {
        const unsigned a[4] = {x.x, x.y, x.z, x.w}, b[4] = {y.x, y.y, y.z, y.w};
        double p[8];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            p[2 * i] = product(low_bfloat16(a[i]), low_bfloat16(b[i]));
            p[2 * i + 1] = product(high_bfloat16(a[i]), high_bfloat16(b[i]));
        }
        add_products(p);
    }
};

/* (x + i y)(u + i v) = (x u - y v) + i (x v + y u); a conjugate a has its y negated. */
class sum_complex64 : public narrow_sum<2, 4, 48>
{
  public:
    enum { THREADS = 480, BLOCKS = 1, AHEAD = 4, SIZE = 8 };
    static const enum dtype DTYPE = DTYPE_COMPLEX64;

    __device__ sum_complex64(char *region, const struct grid_task &task)
        : narrow_sum(region), flip_(task.conjugate << 31)
    {
    }

    __device__ void begin(const uint4 &x, const uint4 &y)
    {
        begin_at(max(max(field_of(product(x.x, y.x)), field_of(product(x.y, y.y))),
                     max(field_of(product(x.x, y.y)), field_of(product(x.y, y.x)))));
    }

    __device__ void add(const uint4 &x, const uint4 &y)
    {
        add_one(x.x, x.y ^ flip_, y.x, y.y);
        add_one(x.z, x.w ^ flip_, y.z, y.w);
    }

  private:
    __device__ void add_one(unsigned x, unsigned y, unsigned u, unsigned v)
    {
        const double p[4] = {product(x, u), -product(y, v), product(x, v), product(y, u)};
        add_products(p);
    }

    unsigned flip_; /* of the sign of a's imaginary part */
};

} // namespace

const struct exact_kernel exact_float32 = {open_tiled<sum_float32>, launch_tiled<sum_float32>};
const struct exact_kernel exact_bfloat16 = {open_tiled<sum_bfloat16>, launch_tiled<sum_bfloat16>};
const struct exact_kernel exact_complex64 = {open_rows<sum_complex64>, launch_rows<sum_complex64>};
