/* exact_grids.cuh - exact sums of floats in a few registers, and in columns for what these cannot
 * take.
 *
 * Door: gridded<Columns, ...>, what the accumulators of exact_narrow.cu and exact_wide.cu have in
 * common, over a column of one thread and one real sum:
 *   struct Columns {
 *       enum { LIMBS, BASE };                 of the layout of gpu/exact/limbs.h
 *       enum { BYTES };                       of a warp's columns
 *       enum { DEPOSITS };                    between two carries
 *       enum { LOWEST_TOP, HIGHEST_TOP };     fields at which grids may begin, see below
 *       static void clear(char *column);
 *       static void carry(char *column);
 *       static void put(char *column, double value);   of 26 bits; one deposit
 *       static void fold(char *part);         a warp's columns to its limbs, which overwrite them
 *   };
 *
 * Idea      a float64 near 1.5 * 2^52 u has the unit u. Added to it, a product is rounded to a whole
 *           multiple of u, and what was rounded off is exact and goes to the next sum, whose unit is
 *           2^40 finer: three additions a grid, none of which rounds more than it should, and the
 *           last grid takes what is left. The finest unit divides every product in range, so nothing
 *           is lost, and each sum is an integer times its unit.
 * Range     the first product of each lane tells the exponent of a warp's grids, the same for all
 *           lanes: then their sums are added up lane by lane as integers. A product is in range if
 *           its exponent field is neither above `top` nor below the type's span; what is not, and
 *           what is not finite, goes into the thread's column in shared memory instead, which is not
 *           even cleared before, and so do the next ones.
 * Headroom  a product is below 2^(top - 1022), the first unit is 2^-40 of that: after 2^10 products
 *           and a quarter the first sum has moved by less than 2^51 units, and so has each of the
 *           others, which get two halves of the unit above a product at most. Then they are emptied
 *           into the column.
 * Source    the splitting: T. Dekker, A floating-point technique for extending the available
 *           precision, 1971; S. Rump, T. Ogita, S. Oishi, Accurate floating-point summation, 2008.
 */
#ifndef GPU_KERNELS_EXACT_GRIDS_CUH
#define GPU_KERNELS_EXACT_GRIDS_CUH

#include "gpu/kernels/exact_rows.cuh"
#include "gpu/kernels/exact_words.cuh"

namespace
{

enum {
    GRID_STEP = 40,         /* bits from one grid's unit to the next one's */
    GRID_DEPOSITS = 1280,   /* between two emptyings */
    GRID_SLACK = 6,         /* from the largest product that was seen to `top` */
    GRID_CUT = 26,          /* bits of a sum's lower part when it is emptied */
    GRID_REST = 64,         /* pauses from one look at the grids to the next */
    GRID_FIRST_UNIT = 1062, /* the first unit is 2^(top - 1062) */
};

/* 1.5 * 2^52 units of a grid. */
__device__ inline double grid_bias(unsigned top, int grid)
{
    return __hiloint2double((int)((top + 13 - GRID_STEP * grid) << 20 | 0x80000), 0);
}

template <int COUNT> struct grids {
    double sum[COUNT];

    __device__ void begin(unsigned top)
    {
#pragma unroll
        for (int k = 0; k < COUNT; k++)
            sum[k] = grid_bias(top, k);
    }

    /* A number that grid LAST takes whole and FIRST can hold. */
    template <int FIRST, int LAST> __device__ void add(double p)
    {
#pragma unroll
        for (int k = FIRST; k < LAST; k++) {
            const double before = sum[k];
            sum[k] = __dadd_rn(before, p);
            p = __dadd_rn(p, __dadd_rn(before, -sum[k]));
        }
        sum[LAST] = __dadd_rn(sum[LAST], p);
    }
};

/* Exponents of some products: the bits of each without its sign, on multiples of 2. */
struct span {
    unsigned low, high;
};

/* What limb `index` has of word * 2^position: 32 bits of a two's complement number, of which three
 * limbs see something; the third one has the sign. */
__device__ inline int64_t piece_of(int64_t word, int position, int index)
{
    const int from = 32 * index - position;
    if (from <= -32 || from > 64)
        return 0;
    if (from < 0)
        return (int64_t)((uint64_t)word << -from & 0xffffffff);
    const int64_t piece = word >> min(from, 63);
    return from > 32 ? piece : piece & 0xffffffff;
}

/* Of a thread's columns, which hold anything before: instead of the deposits until a carry. */
enum { UNUSED = -1 };

/* Clears the columns that were not used, and carries the others. By itself, for it is rare. */
template <typename Columns, int PARTS>
__device__ __attribute__((noinline)) int renew(char *column, int room)
{
    for (int part = 0; part < PARTS; part++)
        if (room == UNUSED)
            Columns::clear(column + part * Columns::BYTES);
        else
            Columns::carry(column + part * Columns::BYTES);
    return Columns::DEPOSITS;
}

/* Puts a grid's sum into a column, as two numbers that this takes. */
template <typename Columns>
__device__ __attribute__((noinline)) void put_sum(char *column, double sum, double bias)
{
    const double cutter = bias * (1 << GRID_CUT), value = __dadd_rn(sum, -bias);
    const double upper = __dadd_rn(__dadd_rn(value, cutter), -cutter);
    Columns::put(column, upper);
    Columns::put(column, __dadd_rn(value, -upper));
}

/* COUNT: products that two vectors bring to each real sum. */
template <typename Columns, int PART_COUNT, int GRID_COUNT, int COUNT> class gridded
{
  public:
    enum { LOADS = 0 };
    enum { LIMBS = Columns::LIMBS, BASE = Columns::BASE };
    enum { PARTS = PART_COUNT, PART_BYTES = Columns::BYTES };

    __device__ gridded(char *region)
        : part_(region), column_(region + threadIdx.x % GRID_WARP * 8), room_(UNUSED), odd_(0)
    {
    }

    __device__ void pause()
    {
        if (++count_ % GRID_REST == 0)
            is_resting_ = false;
        if (count_ == GRID_DEPOSITS / COUNT)
            empty();
    }

    __device__ bool is_odd() const
    {
        return odd_ != 0;
    }

    __device__ void fold()
    {
        const bool has_columns = __any_sync(ALL_LANES, room_ != UNUSED);
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            if (has_columns && room_ == UNUSED)
                Columns::clear(column(part));
            if (has_columns)
                Columns::fold(part_ + part * PART_BYTES);
            fold_grids(part, has_columns);
        }
        room_ = UNUSED;
        odd_ = 0;
    }

  protected:
    /* field: of the largest product of the lane's first elements. By whole warps. */
    __device__ void begin_at(unsigned field)
    {
        const unsigned top = __reduce_max_sync(ALL_LANES, field) + GRID_SLACK;
        is_resting_ = false;
        top_ = min(max(top, (unsigned)Columns::LOWEST_TOP), (unsigned)Columns::HIGHEST_TOP);
        begin_grids();
    }

    /* Whether products go to the grids. What is out of range seldom comes alone: the next ones go
     * to the columns as well, until all lanes look again, or these would take turns at both. */
    __device__ bool takes(bool is_in_range)
    {
        is_resting_ = is_resting_ || !is_in_range;
        return !is_resting_;
    }

    /* Before deposits into the thread's columns, so many into each at most. */
    __device__ void make_room(int deposits)
    {
        if (room_ < deposits)
            room_ = renew<Columns, PARTS>(column_, room_);
        room_ -= deposits;
    }

    __device__ char *column(int part) const
    {
        return column_ + part * PART_BYTES;
    }

    /* Of what goes into a column: whether it is finite. */
    __device__ void see(double value)
    {
        odd_ = __fma_rn(value, 0, odd_);
    }

    struct grids<GRID_COUNT> grids_[PARTS];
    unsigned top_; /* exponent field; the same in all lanes */

  private:
    __device__ void begin_grids()
    {
#pragma unroll
        for (int part = 0; part < PARTS; part++)
            grids_[part].begin(top_);
        count_ = 0;
    }

    __device__ void empty()
    {
        make_room(2 * GRID_COUNT);
#pragma unroll
        for (int part = 0; part < PARTS; part++)
#pragma unroll
            for (int k = 0; k < GRID_COUNT; k++)
                put_sum<Columns>(column(part), grids_[part].sum[k], grid_bias(top_, k));
        begin_grids();
    }

    /* The warp's sums, as words, to its limbs: each lane gathers what belongs to its own. */
    __device__ void fold_grids(int part, bool has_columns)
    {
        struct words<GRID_COUNT> words;
#pragma unroll
        for (int k = 0; k < GRID_COUNT; k++)
            words.word[k] = __double_as_longlong(grids_[part].sum[k]) -
                            __double_as_longlong(grid_bias(top_, k));
        words = fold_words(words);
#pragma unroll
        for (int k = 0; k < GRID_COUNT; k++)
            words.word[k] = __shfl_sync(ALL_LANES, words.word[k], 0);
        int64_t *limb = (int64_t *)(part_ + part * PART_BYTES);
        for (int i = (int)(threadIdx.x % GRID_WARP); i < LIMBS; i += GRID_WARP) {
            uint64_t total =
                has_columns ? (uint64_t)limb[i] : 0; /* if not finite, it may overflow */
#pragma unroll
            for (int k = 0; k < GRID_COUNT; k++)
                total += (uint64_t)piece_of(words.word[k],
                                            (int)top_ - GRID_FIRST_UNIT - GRID_STEP * k - BASE, i);
            limb[i] = (int64_t)total;
        }
        __syncwarp();
    }

    char *part_, *column_;
    int room_;        /* deposits until a carry; UNUSED: the columns hold anything */
    unsigned count_;  /* pauses since the grids were empty */
    bool is_resting_; /* products go to the columns unseen */
    double odd_;      /* NaN as soon as something was not finite */
};

} // namespace

#endif
