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

/* The warp's columns added up: lane i takes row i, two limbs at once, and other ones than its
 * neighbours so that all banks are busy. */
__device__ inline int64_t total_of_row(const char *part, unsigned lane)
{
    uint64_t total = 0;
    if (lane >= TOP_ROW && lane < ROWS)
#pragma unroll 4
        for (unsigned k = 0; k < GRID_WARP / 2; k++) {
            const char *at = part + lane * ROW_BYTES + (lane ^ k) % (GRID_WARP / 2) * sizeof(uint4);
            const uint4 two = *(const uint4 *)at;
            total += ((uint64_t)two.y << 32 | two.x) + ((uint64_t)two.w << 32 | two.z);
        }
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
    enum { GRIDS = 2, STEP = 44, SLACK = 6 };
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

/* --- accumulators --- */

/* Operands: the products of two vectors, COUNT of each of PARTS real sums, of BITS at most. */
template <typename Operands>
class narrow_sum : public gridded<narrow_columns, Operands::PARTS, Operands::BITS, Operands::COUNT>
{
    typedef gridded<narrow_columns, Operands::PARTS, Operands::BITS, Operands::COUNT> base;

  public:
    __device__ narrow_sum(char *region, const struct grid_task &task)
        : base(region), flip_(task.conjugate << 31)
    {
    }

    __device__ void begin(const uint4 &x, const uint4 &y)
    {
        odd_ = 0;
        this->begin_at(span_of(products_of(x, y)));
    }

    __device__ void lap(const uint4 &x, const uint4 &y)
    {
        if (this->must_look())
            this->look(span_of(products_of(x, y)));
    }

    __device__ void add(const uint4 (&x)[1], const uint4 (&y)[1])
    {
        const struct products products = products_of(x[0], y[0]);
        if (!this->is_resting()) {
            if (this->holds(span_of(products))) {
#pragma unroll
                for (int i = 0; i < N; i++)
                    this->grids_[i / Operands::COUNT].template add<0, 1>(products.p[i]);
                return;
            }
            this->miss();
        }
        this->make_room(Operands::COUNT);
#pragma unroll
        for (int i = 0; i < N; i++) {
            if ((int)Operands::BITS == 16)
                put16(this->column(i / Operands::COUNT), products.p[i]);
            else
                put(this->column(i / Operands::COUNT), products.p[i]);
            odd_ = __fma_rn(products.p[i], 0, odd_);
        }
    }

    __device__ bool is_odd() const
    {
        return odd_ != 0;
    }

  private:
    enum { N = Operands::PARTS * Operands::COUNT };

    struct products {
        double p[N]; /* first all of one real sum */
    };

    __device__ struct products products_of(const uint4 &x, const uint4 &y) const
    {
        struct products products;
        Operands::multiply(x, y, flip_, products.p);
        return products;
    }

    /* Zero is in range, whatever the range: less one it is the largest number. */
    static __device__ struct span span_of(const struct products &products)
    {
        struct span span = {~0u, 0};
#pragma unroll
        for (int i = 0; i < N; i++) {
            const unsigned bits = 2 * (unsigned)__double2hiint(products.p[i]);
            span.low = min(span.low, bits - 1);
            span.high = max(span.high, bits);
        }
        return span;
    }

    unsigned flip_; /* of the sign of a's imaginary part */
    double odd_;    /* NaN as soon as a product in the columns was not finite */
};

struct float32_operands {
    enum { PARTS = 1, COUNT = 4, BITS = 48 };
    static __device__ void multiply(const uint4 &x, const uint4 &y, unsigned, double (&p)[COUNT])
    {
        p[0] = product(x.x, y.x);
        p[1] = product(x.y, y.y);
        p[2] = product(x.z, y.z);
        p[3] = product(x.w, y.w);
    }
};

struct bfloat16_operands {
    enum { PARTS = 1, COUNT = 8, BITS = 16 };
    static __device__ void multiply(const uint4 &x, const uint4 &y, unsigned, double (&p)[COUNT])
    {
        const unsigned a[4] = {x.x, x.y, x.z, x.w}, b[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            p[2 * i] = product(low_bfloat16(a[i]), low_bfloat16(b[i]));
            p[2 * i + 1] = product(high_bfloat16(a[i]), high_bfloat16(b[i]));
        }
    }
};

/* (x + i y)(u + i v) = (x u - y v) + i (x v + y u); a conjugate a has its y negated. */
struct complex64_operands {
    enum { PARTS = 2, COUNT = 4, BITS = 48 };
    static __device__ void multiply(const uint4 &x, const uint4 &y, unsigned flip,
                                    double (&p)[PARTS * COUNT])
    {
        multiply_one(x.x, x.y ^ flip, y.x, y.y, p);
        multiply_one(x.z, x.w ^ flip, y.z, y.w, p + 2);
    }

  private:
    static __device__ void multiply_one(unsigned x, unsigned y, unsigned u, unsigned v, double *p)
    {
        p[0] = product(x, u);
        p[1] = -product(y, v);
        p[COUNT] = product(x, v);
        p[COUNT + 1] = product(y, u);
    }
};

struct sum_float32 : narrow_sum<float32_operands> {
    enum { THREADS = 640, BLOCKS = 1, AHEAD = 5, WIDTH = 1, SIZE = 4 };
    static const enum dtype DTYPE = DTYPE_FLOAT32;
    using narrow_sum::narrow_sum;
};

struct sum_bfloat16 : narrow_sum<bfloat16_operands> {
    enum { THREADS = 640, BLOCKS = 1, AHEAD = 5, WIDTH = 1, SIZE = 2 };
    static const enum dtype DTYPE = DTYPE_BFLOAT16;
    using narrow_sum::narrow_sum;
};

struct sum_complex64 : narrow_sum<complex64_operands> {
    enum { THREADS = 480, BLOCKS = 1, AHEAD = 4, WIDTH = 1, SIZE = 8 };
    static const enum dtype DTYPE = DTYPE_COMPLEX64;
    using narrow_sum::narrow_sum;
};

} // namespace

const struct exact_kernel exact_float32 = {open_tiled<sum_float32>, launch_tiled<sum_float32>};
const struct exact_kernel exact_bfloat16 = {open_tiled<sum_bfloat16>, launch_tiled<sum_bfloat16>};
const struct exact_kernel exact_complex64 = {open_rows<sum_complex64>, launch_rows<sum_complex64>};
