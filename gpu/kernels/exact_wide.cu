/* exact_wide.cu - exact sums of float64 and complex128: in registers, or in the thread's own digits
 * in shared memory.
 *
 * Idea      a product is the sum of two float64, the rounded product and what fma says was rounded
 *           off; four grids take both if its exponent is within 54 of the grids' top
 *           (exact_grids.cuh). The others go into columns, whatever they are: significands are
 *           multiplied as integers, 53 by 53 bits. Shifted to its place, the product covers at most three digits of radix 2^53 (106 + 52 <= 159 bits), so a deposit
 *           is three additions to int64. 81 digits hold all 4196 bits of float64 products and 97
 *           more, at 648 bytes a thread: 11 warps a multiprocessor.
 * Columns   digit i of lane j lies at 256 i + 8 j of the warp's memory: whichever digits the lanes
 *           of a warp touch, each has its own bank.
 * Headroom  a deposit adds at most 2^54 to a digit: 384 of them on carried digits stay below 2^63;
 *           then a carry.
 * Zeros     and subnormal numbers go the same way: exponent field 0 has the unit of field 1 and no
 *           implicit bit. Infinities and NaN are deposited as if they were numbers, at a place that
 *           exists, and found by their field; then the sum does not matter.
 * Source    radix and carry-save digits: R. Neal, Fast exact summation using small and large
 *           superaccumulators, arXiv 1505.05571; private superaccumulators: see exact_rows.cuh.
 * Measured  tests/bench/results.
 */
#include "gpu/kernels/exact_grids.cuh"
#include "gpu/kernels/exact_kernel.h"

namespace
{

enum {
    DIGIT_BITS = 53,
    DIGITS = 81,
    ROW_BYTES = GRID_WARP * 8, /* a digit of every lane */
    DEPOSITS = 384,            /* between two carries */
    PASSES = (DIGITS + GRID_WARP - 1) / GRID_WARP,
    PIECES = 3, /* limbs that a folded digit covers */
};

const uint64_t DIGIT_MASK = ((uint64_t)1 << DIGIT_BITS) - 1;

/* A float64's significand, 53 bits in two words, and its exponent above that of subnormal
 * numbers. */
struct number {
    unsigned low, high;
    unsigned exponent; /* 0 to 2045; 2046 if not finite */
    unsigned sign;     /* the upper word: its top bit counts */
};

/* Taking the exponent off leaves the implicit bit where there is one. */
__device__ inline struct number number_of(double value)
{
    const uint64_t bits = (uint64_t)__double_as_longlong(value);
    const unsigned low = (unsigned)bits, upper = (unsigned)(bits >> 32);
    const unsigned magnitude = upper & 0x7fffffff;
    const int exponent = max((int)(magnitude >> 20) - 1, 0);
    struct number number = {low, magnitude - ((unsigned)exponent << 20), (unsigned)exponent, upper};
    return number;
}

/* Adds x y, or what stands for it when one is not finite. Each digit is added or, as its complement
 * and one, subtracted. 81037119 / 2^32 is 1 / 53, near enough for positions up to 4092. */
__device__ inline void put(char *column, const struct number &x, const struct number &y)
{
    const uint64_t bottom = (uint64_t)x.low * y.low;
    const uint64_t cross = (uint64_t)x.high * y.low + (uint64_t)x.low * y.high; /* below 2^54 */
    const uint64_t middle = cross + (bottom >> 32);
    const uint64_t top = (uint64_t)x.high * y.high + (middle >> 32);
    const uint64_t low = (uint32_t)bottom | (middle & 0x1fffff) << 32;
    const uint64_t high = top << 11 | (uint32_t)middle >> 21;
    const unsigned position = x.exponent + y.exponent;
    const unsigned index = (unsigned)((uint64_t)position * 81037119 >> 32);
    const unsigned shift = position - index * DIGIT_BITS, rest = DIGIT_BITS - shift;
    const uint64_t flip = (uint64_t)(int64_t)((int)(x.sign ^ y.sign) >> 31);
    const uint64_t d0 = low << shift & DIGIT_MASK;
    const uint64_t d1 = (high << shift & DIGIT_MASK) + (low >> rest);
    const uint64_t d2 = high >> rest;
    uint64_t *digit = (uint64_t *)(column + index * ROW_BYTES);
    const uint64_t e0 = digit[0], e1 = digit[GRID_WARP], e2 = digit[2 * GRID_WARP];
    digit[0] = e0 + (d0 ^ flip) - flip;
    digit[GRID_WARP] = e1 + (d1 ^ flip) - flip;
    digit[2 * GRID_WARP] = e2 + (d2 ^ flip) - flip;
}

/* --- columns --- */

__device__ inline void clear_column(char *column)
{
#pragma unroll 27
    for (int i = 0; i < DIGITS; i++)
        *(int64_t *)(column + i * ROW_BYTES) = 0;
}

/* Leaves every digit but the top one in [0, 2^53). */
__device__ inline void carry_column(char *column)
{
    int64_t carry = 0;
#pragma unroll 4
    for (int i = 0; i + 1 < DIGITS; i++) {
        int64_t *digit = (int64_t *)(column + i * ROW_BYTES);
        carry += *digit;
        *digit = carry & (int64_t)DIGIT_MASK;
        carry >>= DIGIT_BITS;
    }
    *(int64_t *)(column + (DIGITS - 1) * ROW_BYTES) += carry;
}

/* A digit of all lanes, as limbs: sum of piece[i] * 2^(32 i) is the digit times 2^(53 row mod
 * 32). */
struct pieces {
    int64_t piece[PIECES];
};

__device__ inline struct pieces fold_digit(const char *part, unsigned row)
{
    const unsigned lane = threadIdx.x % GRID_WARP, shift = row * DIGIT_BITS % 32;
    uint64_t low = 0; /* of the lower halves: below 2^37 */
    int64_t high = 0;
#pragma unroll 8
    for (unsigned k = 0; k < GRID_WARP; k++) {
        const int64_t digit =
            *(const int64_t *)(part + row * ROW_BYTES + (lane + k) % GRID_WARP * 8);
        low += (uint32_t)digit;
        high += digit >> 32;
    }
    high += (int64_t)(low >> 32);
    const uint64_t lower = (low & 0xffffffff) << shift, upper = ((uint64_t)high & 0xffffffff)
                                                                << shift;
    struct pieces pieces = {{(int64_t)(lower & 0xffffffff),
                             (int64_t)((lower >> 32) + (upper & 0xffffffff)),
                             (int64_t)(upper >> 32) + (high >> 32) * ((int64_t)1 << shift)}};
    return pieces;
}

/* Pieces of one number are deposited together: rows are 53 bits apart, limbs 32, so no two lanes
 * touch the same limb. The top row holds carries only, and its last piece belongs to no limb. */
__device__ inline void put_piece(int64_t *limb, unsigned row, int number,
                                 const struct pieces &pieces)
{
    const unsigned at = row * DIGIT_BITS / 32 + number;
    if (row < DIGITS && at < EXACT_FLOAT64_LIMBS)
        limb[at] += pieces.piece[number];
    else if (row < DIGITS)
        limb[at - 1] += pieces.piece[number] * ((int64_t)1 << 32);
    __syncwarp();
}

/* The warp's columns added up, lane i taking digits i, i + 32 and i + 64; the limbs overwrite
 * them. */
__device__ inline void fold_columns(char *part)
{
    const unsigned lane = threadIdx.x % GRID_WARP;
    int64_t *limb = (int64_t *)part;
    struct pieces pieces[PASSES] = {};
    __syncwarp();
#pragma unroll
    for (int pass = 0; pass < PASSES; pass++)
        if (lane + pass * GRID_WARP < DIGITS)
            pieces[pass] = fold_digit(part, lane + pass * GRID_WARP);
    __syncwarp();
    for (unsigned i = lane; i < EXACT_FLOAT64_LIMBS; i += GRID_WARP)
        limb[i] = 0;
    __syncwarp();
#pragma unroll
    for (int pass = 0; pass < PASSES; pass++)
#pragma unroll
        for (int number = 0; number < PIECES; number++)
            put_piece(limb, lane + pass * GRID_WARP, number, pieces[pass]);
}

struct wide_columns {
    enum { LIMBS = EXACT_FLOAT64_LIMBS, BASE = EXACT_FLOAT64_BASE, BYTES = DIGITS * ROW_BYTES };
    enum { DEPOSITS = ::DEPOSITS };
    /* From where no product in range is subnormal, nor what was rounded off it, to where a sum that
     * is being emptied is no infinity. */
    enum { LOWEST_TOP = 128, HIGHEST_TOP = 2000 };

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
        ::put(column, number_of(value), number_of(1.0));
    }

    static __device__ void fold(char *part)
    {
        fold_columns(part);
    }
};

/* --- accumulators --- */

/* Four grids hold bits from 2^(top - 1022) down to 2^(top - 1182); a product has at most 106, so
 * that its lowest one is 2^(field - 1128) or more. */
enum { GRIDS = 4, SPAN = 54 };

__device__ inline double real(unsigned low, unsigned upper)
{
    return __hiloint2double((int)upper, (int)low);
}

__device__ inline unsigned field_of(double p)
{
    return (unsigned)__double2hiint(p) << 1 >> 21;
}

template <int PART_COUNT, int COUNT>
class wide_sum : public gridded<wide_columns, PART_COUNT, GRIDS, COUNT>
{
    typedef gridded<wide_columns, PART_COUNT, GRIDS, COUNT> base;

  public:
    __device__ wide_sum(char *region) : base(region)
    {
    }

  protected:
    /* Zero is not in range: it may have been rounded. */
    static __device__ void widen(struct span &span, double p)
    {
        const unsigned bits = 2 * (unsigned)__double2hiint(p);
        span.low = min(span.low, bits);
        span.high = max(span.high, bits);
    }

    static __device__ struct span span_of(double p)
    {
        struct span span = {~0u, 0};
        widen(span, p);
        return span;
    }

    __device__ bool holds(const struct span &span) const
    {
        return span.high < (this->top_ + 1) << 21 && span.low >= (this->top_ - SPAN) << 21;
    }

    /* p: x y rounded. Its upper 53 bits reach no further than the third grid; the lower ones begin
     * below the first. */
    __device__ void add_one(int part, double x, double y, double p)
    {
        this->grids_[part].template add<0, 2>(p);
        this->grids_[part].template add<1, 3>(__fma_rn(x, y, -p));
    }

    __device__ void put_one(int part, double x, double y)
    {
        ::put(this->column(part), number_of(x), number_of(y));
        this->see(x);
        this->see(y);
    }
};

class sum_float64 : public wide_sum<1, 2>
{
  public:
    enum { THREADS = 256, BLOCKS = 1, AHEAD = 8, SIZE = 8 };
    static const enum dtype DTYPE = DTYPE_FLOAT64;

    __device__ sum_float64(char *region, const struct grid_task &) : wide_sum(region)
    {
    }

    __device__ void begin(const uint4 &x, const uint4 &y)
    {
        begin_at(field_of(__dmul_rn(real(x.x, x.y), real(y.x, y.y))));
    }

    __device__ void add(const uint4 &x, const uint4 &y)
    {
        const double a = real(x.x, x.y), b = real(y.x, y.y), p = __dmul_rn(a, b);
        const double c = real(x.z, x.w), d = real(y.z, y.w), q = __dmul_rn(c, d);
        struct span span = {~0u, 0};
        widen(span, p);
        widen(span, q);
        if (takes(holds(span))) {
            add_one(0, a, b, p);
            add_one(0, c, d, q);
        } else if (c == 0 && d == 0 && holds(span_of(p))) { /* an element alone, at an end */
            add_one(0, a, b, p);
        } else {
            make_room(2);
            put_one(0, a, b);
            put_one(0, c, d);
        }
    }
};

/* (x + i y)(u + i v) = (x u - y v) + i (x v + y u); a conjugate a has its y negated. */
class sum_complex128 : public wide_sum<2, 2>
{
  public:
    enum { THREADS = 160, BLOCKS = 1, AHEAD = 3, SIZE = 16 };
    static const enum dtype DTYPE = DTYPE_COMPLEX128;

    __device__ sum_complex128(char *region, const struct grid_task &task)
        : wide_sum(region), flip_(task.conjugate << 31)
    {
    }

    __device__ void begin(const uint4 &a, const uint4 &b)
    {
        const double x = real(a.x, a.y), y = real(a.z, a.w), u = real(b.x, b.y), v = real(b.z, b.w);
        begin_at(max(max(field_of(__dmul_rn(x, u)), field_of(__dmul_rn(y, v))),
                     max(field_of(__dmul_rn(x, v)), field_of(__dmul_rn(y, u)))));
    }

    __device__ void add(const uint4 &a, const uint4 &b)
    {
        const double x = real(a.x, a.y), y = real(a.z, a.w ^ flip_);
        const double u = real(b.x, b.y), v = real(b.z, b.w);
        const double xu = __dmul_rn(x, u), yv = __dmul_rn(-y, v), xv = __dmul_rn(x, v),
                     yu = __dmul_rn(y, u);
        struct span span = {~0u, 0};
        widen(span, xu);
        widen(span, yv);
        widen(span, xv);
        widen(span, yu);
        if (takes(holds(span))) {
            add_one(0, x, u, xu);
            add_one(0, -y, v, yv);
            add_one(1, x, v, xv);
            add_one(1, y, u, yu);
        } else {
            make_room(2);
            put_one(0, x, u);
            put_one(0, -y, v);
            put_one(1, x, v);
            put_one(1, y, u);
        }
    }

  private:
    unsigned flip_; /* of the sign of a's imaginary part */
};

} // namespace

const struct exact_kernel exact_float64 = {open_rows<sum_float64>, launch_rows<sum_float64>};
const struct exact_kernel exact_complex128 = {open_rows<sum_complex128>,
                                              launch_rows<sum_complex128>};
