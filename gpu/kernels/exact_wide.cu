/* exact_wide.cu - exact sums of float64 and complex128: in registers, or in the thread's own digits
 * in shared memory.
 *
 * Idea      a product is the sum of two float64, the rounded product and what fma says was rounded
 *           off; five grids take both if its exponent is within 124 of the grids' top
 *           (exact_grids.cuh). The others go into columns, whatever they are: significands are
 *           multiplied as integers, 53 by 53 bits. Shifted to its place, the product covers at most
 *           three digits of radix 2^53 (106 + 52 <= 159 bits), so a deposit is three additions to
 *           int64. 81 digits hold all 4196 bits of float64 products and 97 more, at 648 bytes a
 *           thread: 8 warps a multiprocessor, with what they read ahead.
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
    PRODUCT_BITS = 106,
    SPECIAL_EXPONENT = 2046, /* of what is not finite */
};

const uint64_t DIGIT_MASK = ((uint64_t)1 << DIGIT_BITS) - 1;
enum { UPPER_BITS = DIGIT_BITS - 32, UPPER_MASK = (1 << UPPER_BITS) - 1 };

__device__ inline uint64_t join(unsigned low, unsigned upper)
{
    return (uint64_t)upper << 32 | low;
}

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

/* A product's digits, each as it is or, of a negative one, as its complement less one. */
struct deposit {
    unsigned index; /* of the lowest one */
    uint64_t digit[3], flip;
};

/* Of x y, or what stands for it when one is not finite. 81037119 / 2^32 is 1 / 53, near enough for
 * positions up to 4092. */
__device__ inline struct deposit deposit_of(const struct number &x, const struct number &y)
{
    const uint64_t bottom = (uint64_t)x.low * y.low;
    const uint64_t cross = (uint64_t)x.high * y.low + (bottom >> 32);
    const uint64_t middle = (uint64_t)x.low * y.high + cross; /* below 2^54 */
    const uint64_t top = (uint64_t)x.high * y.high + (middle >> 32);
    const uint64_t low = join((unsigned)bottom, (unsigned)middle & UPPER_MASK);
    const uint64_t high = join(__funnelshift_r((unsigned)middle, (unsigned)top, UPPER_BITS),
                               __funnelshift_r((unsigned)top, (unsigned)(top >> 32), UPPER_BITS));
    const unsigned position = x.exponent + y.exponent;
    const unsigned index = (unsigned)((uint64_t)position * 81037119 >> 32);
    const unsigned shift = position - index * DIGIT_BITS, rest = DIGIT_BITS - shift;
    const unsigned sign = (unsigned)((int)(x.sign ^ y.sign) >> 31);
    const uint64_t flip = join(sign, sign);
    const struct deposit deposit = {index,
                                    {(low << shift & DIGIT_MASK) ^ flip,
                                     ((high << shift & DIGIT_MASK) | low >> rest) ^ flip,
                                     high >> rest ^ flip},
                                    flip};
    return deposit;
}

__device__ inline void put(char *column, const struct deposit &deposit)
{
    uint64_t *digit = (uint64_t *)(column + deposit.index * ROW_BYTES);
    const uint64_t e0 = digit[0], e1 = digit[GRID_WARP], e2 = digit[2 * GRID_WARP];
    digit[0] = e0 + deposit.digit[0] - deposit.flip;
    digit[GRID_WARP] = e1 + deposit.digit[1] - deposit.flip;
    digit[2 * GRID_WARP] = e2 + deposit.digit[2] - deposit.flip;
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
    enum { GRIDS = 5, STEP = 46, SLACK = 12 };
    /* From where no unit is below the smallest number, and hence nothing that is rounded off a
     * product in range, to where what is spilt is no infinity. */
    enum { LOWEST_TOP = GRIDS * STEP - 52, HIGHEST_TOP = 2000 };

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
        ::put(column, deposit_of(number_of(value), number_of(1.0)));
    }

    static __device__ void fold(char *part)
    {
        fold_columns(part);
    }
};

/* --- accumulators --- */

__device__ inline double real(unsigned low, unsigned upper)
{
    return __hiloint2double((int)upper, (int)low);
}

/* The factors of N products, of each pair of vectors first all of one real sum. */
template <int N> struct pairs {
    double x[N], y[N];

    __device__ double product(int i) const
    {
        return __dmul_rn(x[i], y[i]);
    }
};

/* A product that is zero is not in range, for it may have been rounded... */
template <int N> __device__ inline struct span span_of(const pairs<N> &factors)
{
    struct span span = {~0u, 0};
#pragma unroll
    for (int i = 0; i < N; i++) {
        const unsigned bits = 2 * (unsigned)__double2hiint(factors.product(i));
        span.low = min(span.low, bits);
        span.high = max(span.high, bits);
    }
    return span;
}

/* 0 of zero only; otherwise of no use. */
__device__ inline unsigned magnitude_of(double x)
{
    return ((unsigned)__double2hiint(x) & 0x7fffffff) | (unsigned)__double_as_longlong(x);
}

/* ...unless a factor is. */
template <int N> __device__ inline struct span true_span_of(const pairs<N> &factors)
{
    struct span span = {~0u, 0};
#pragma unroll
    for (int i = 0; i < N; i++) {
        const unsigned bits = 2 * (unsigned)__double2hiint(factors.product(i));
        const unsigned smaller = min(magnitude_of(factors.x[i]), magnitude_of(factors.y[i]));
        span.low = min(span.low, (bits | smaller) == 0 ? ~0u : bits);
        span.high = max(span.high, bits);
    }
    return span;
}

/* Operands: the factors of the products of two vectors, COUNT of each of PARTS real sums. Two pairs
 * of vectors are added at once: there are only two warps a scheduler, so that instructions must
 * find company in their own. */
template <typename Operands>
class wide_sum : public gridded<wide_columns, Operands::PARTS, PRODUCT_BITS, 2 * Operands::COUNT>
{
    typedef gridded<wide_columns, Operands::PARTS, PRODUCT_BITS, 2 * Operands::COUNT> base;

  public:
    enum { WIDTH = 2 };

    __device__ wide_sum(char *region, const struct grid_task &task)
        : base(region), flip_(task.conjugate << 31)
    {
    }

    __device__ void begin(const uint4 &x, const uint4 &y)
    {
        largest_ = 0;
        this->begin_at(true_span_of(factors_of(x, y)));
    }

    __device__ void lap(const uint4 &x, const uint4 &y)
    {
        if (this->must_look())
            this->look(true_span_of(factors_of(x, y)));
    }

    __device__ void add(const uint4 (&x)[WIDTH], const uint4 (&y)[WIDTH])
    {
        pairs<N> factors;
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
            Operands::pair(x[i], y[i], flip_, factors.x + i * EACH, factors.y + i * EACH);
        if (!this->is_resting()) {
            if (this->holds(span_of(factors)) || this->holds(true_span_of(factors))) {
                add_to_grids(factors);
                return;
            }
            this->miss();
        }
        add_to_columns(factors);
    }

    __device__ bool is_odd() const
    {
        return largest_ == SPECIAL_EXPONENT;
    }

  private:
    enum { EACH = Operands::PARTS * Operands::COUNT, N = WIDTH * EACH };

    __device__ pairs<EACH> factors_of(const uint4 &x, const uint4 &y) const
    {
        pairs<EACH> factors;
        Operands::pair(x, y, flip_, factors.x, factors.y);
        return factors;
    }

    static __device__ int part_of(int i)
    {
        return i % EACH / Operands::COUNT;
    }

    /* The upper 53 bits of a product reach no further than the last grid but one; the lower ones
     * begin below the first. */
    __device__ void add_to_grids(const pairs<N> &factors)
    {
        enum { LAST = wide_columns::GRIDS - 1 };
#pragma unroll
        for (int i = 0; i < N; i++) {
            const double p = factors.product(i);
            this->grids_[part_of(i)].template add<0, LAST - 1>(p);
            this->grids_[part_of(i)].template add<1, LAST>(
                __fma_rn(factors.x[i], factors.y[i], -p));
        }
    }

    /* Nothing is put before all is multiplied, so that one multiplication need not wait for
     * another: `none` is zero, but the compiler cannot know, and would put the first one first. */
    __device__ void add_to_columns(const pairs<N> &factors)
    {
        struct deposit deposits[N];
        unsigned none = 0;
        this->make_room(N);
#pragma unroll
        for (int i = 0; i < N; i++) {
            const struct number x = number_of(factors.x[i]), y = number_of(factors.y[i]);
            deposits[i] = deposit_of(x, y);
            largest_ = max(largest_, max(x.exponent, y.exponent));
            none |= (unsigned)((deposits[i].digit[2] ^ deposits[i].flip) >> DIGIT_BITS);
        }
#pragma unroll
        for (int i = 0; i < N; i++)
            put(this->column(part_of(i)) + none, deposits[i]);
    }

    unsigned flip_;    /* of the sign of a's imaginary part */
    unsigned largest_; /* exponent of what went into columns */
};

struct float64_operands {
    enum { PARTS = 1, COUNT = 2 };
    static __device__ void pair(const uint4 &a, const uint4 &b, unsigned, double *x, double *y)
    {
        x[0] = real(a.x, a.y);
        y[0] = real(b.x, b.y);
        x[1] = real(a.z, a.w);
        y[1] = real(b.z, b.w);
    }
};

/* (x + i y)(u + i v) = (x u - y v) + i (x v + y u); a conjugate a has its y negated. */
struct complex128_operands {
    enum { PARTS = 2, COUNT = 2 };
    static __device__ void pair(const uint4 &a, const uint4 &b, unsigned flip, double *x, double *y)
    {
        x[0] = x[2] = real(a.x, a.y);
        x[3] = real(a.z, a.w ^ flip);
        x[1] = -x[3];
        y[0] = y[3] = real(b.x, b.y);
        y[1] = y[2] = real(b.z, b.w);
    }
};

struct sum_float64 : wide_sum<float64_operands> {
    enum { THREADS = 256, BLOCKS = 1, AHEAD = 4, SIZE = 8 };
    static const enum dtype DTYPE = DTYPE_FLOAT64;
    using wide_sum::wide_sum;
};

struct sum_complex128 : wide_sum<complex128_operands> {
    enum { THREADS = 160, BLOCKS = 1, AHEAD = 2, SIZE = 16 };
    static const enum dtype DTYPE = DTYPE_COMPLEX128;
    using wide_sum::wide_sum;
};

} // namespace

const struct exact_kernel exact_float64 = {open_rows<sum_float64>, launch_rows<sum_float64>};
const struct exact_kernel exact_complex128 = {open_rows<sum_complex128>,
                                              launch_rows<sum_complex128>};
