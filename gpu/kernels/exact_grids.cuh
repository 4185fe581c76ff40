/* exact_grids.cuh - exact sums of floats in a few registers, and in columns for what these cannot
 * take.
 *
 * Door: gridded<Columns, ...>, what the accumulators of exact_narrow.cu and exact_wide.cu have in
 * common, over a column of one thread and one real sum:
 *   struct Columns {
 *       enum { LIMBS, BASE };                 of the layout of gpu/exact/limbs.h
 *       enum { BYTES };                       of a warp's columns
 *       enum { DEPOSITS };                    between two carries
 *       enum { GRIDS, STEP };                 of a sum; bits from one grid's unit to the next one's
 *       enum { SLACK };                       from the largest product that was seen to `top`
 *       enum { LOWEST_TOP, HIGHEST_TOP };     fields at which grids may begin, see below
 *       static void clear(char *column);
 *       static void carry(char *column);
 *       static void put(char *column, double value);   of 32 bits; one deposit
 *       static void fold(char *part);         a warp's columns to its limbs, which overwrite them
 *   };
 *
 * Idea      a float64 near 1.5 * 2^52 u has the unit u. Added to it, a product is rounded to a
 *           whole multiple of u, and what was rounded off is exact and goes to the next sum, whose
 *           unit is 2^STEP finer: three additions a grid, none of which rounds more than it should,
 *           and the last grid takes what is left. The finest unit divides every product in range,
 *           so nothing is lost, and each sum is an integer times its unit.
 * Range     products tell the exponent of a warp's grids, the same for all lanes: then their sums
 *           are added up lane by lane as integers. A product is in range if its exponent field is
 *           neither above `top` nor below the grids' span; what is not, and what is not finite,
 *           goes into the thread's column in shared memory instead, which is not even cleared
 *           before.
 * Rest      a warp pays for both where its lanes differ. Once too many lanes had products out of
 *           range, all of them use their columns for a while, unseen; then they look where most
 *           products are, and the grids begin there.
 * Headroom  a product is below 2^(top - 1022), the first unit is 2^-STEP of that: 2^(51 - STEP) - 1
 *           products move the first sum by less than 2^51 units, and so each of the others, which
 *           get two halves of the unit above a product at most. Then they are gathered into
 *           integers, of which those of 32 lanes stay below 2^63, and are spilt into the column
 *           where these would not.
 * Source    the splitting: T. Dekker, A floating-point technique for extending the available
 *           precision, 1971; S. Rump, T. Ogita, S. Oishi, Accurate floating-point summation, 2008.
 * Measured  tests/bench/results.
 */
#ifndef GPU_KERNELS_EXACT_GRIDS_CUH
#define GPU_KERNELS_EXACT_GRIDS_CUH

#include "gpu/kernels/exact_rows.cuh"
#include "gpu/kernels/exact_words.cuh"

namespace
{

enum {
    GRID_GATHERED = 120, /* sums of a lane, below 2^51 each */
    GRID_CUT = 32,       /* bits of the lower part of what is spilt */
    GRID_MISFITS = 1,    /* lanes, whose products of a lap may be out of range */
    GRID_REST = 32,      /* laps from one look at the products to the next */
};

/* 2^(top - 1022 - STEP (grid + 1)) is the unit of a grid; 1.5 * 2^52 of them. */
template <int STEP> __device__ inline double grid_bias(unsigned top, int grid)
{
    return __hiloint2double((int)((top + 53 - STEP * (grid + 1)) << 20 | 0x80000), 0);
}

template <int COUNT, int STEP> struct grids {
    enum { DEPOSITS = (1 << (51 - STEP)) - 1 };
    double sum[COUNT];
    int64_t gathered[COUNT]; /* units */

    __device__ void begin(unsigned top)
    {
#pragma unroll
        for (int k = 0; k < COUNT; k++) {
            sum[k] = grid_bias<STEP>(top, k);
            gathered[k] = 0;
        }
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

    /* Leaves the bias by additions: then the compiler keeps sums in pairs of registers. */
    __device__ void gather(unsigned top)
    {
#pragma unroll
        for (int k = 0; k < COUNT; k++) {
            const double bias = grid_bias<STEP>(top, k);
            gathered[k] += __double_as_longlong(sum[k]) - __double_as_longlong(bias);
            sum[k] = __dadd_rn(sum[k], __dadd_rn(bias, -sum[k]));
        }
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

/* So many units of a grid, below 2^51. */
__device__ inline double units_of(int64_t count, double bias)
{
    return __dadd_rn(__longlong_as_double(__double_as_longlong(bias) + count), -bias);
}

/* Puts what a grid has gathered into a column, as two numbers that this takes. */
template <typename Columns>
__device__ __attribute__((noinline)) void put_gathered(char *column, int64_t gathered, double bias)
{
    const double upper_bias = __hiloint2double(__double2hiint(bias) + (GRID_CUT << 20), 0);
    Columns::put(column, units_of(gathered >> GRID_CUT, upper_bias));
    Columns::put(column, units_of((int64_t)(uint32_t)gathered, bias));
}

/* BITS: of a product at most. COUNT: products that two vectors bring to each real sum. */
template <typename Columns, int PART_COUNT, int BITS, int COUNT> class gridded
{
  public:
    enum { LOADS = 0 };
    enum { LIMBS = Columns::LIMBS, BASE = Columns::BASE };
    enum { PARTS = PART_COUNT, PART_BYTES = Columns::BYTES };

    __device__ gridded(char *region)
        : part_(region), column_(region + threadIdx.x % GRID_WARP * 8), room_(UNUSED)
    {
    }

    __device__ void pause()
    {
        if (--until_gather_ == 0)
            gather();
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
    }

  protected:
    /* span: of the lane's first products. By whole warps. */
    __device__ void begin_at(const struct span &span)
    {
        is_resting_ = false;
        is_misfit_ = false;
        top_ = top_above(span);
        begin_grids();
    }

    __device__ bool is_resting() const
    {
        return is_resting_;
    }

    /* Products were out of range. */
    __device__ void miss()
    {
        is_misfit_ = true;
    }

    /* After every lap, by whole warps: begins a rest, or says that it is time to look. */
    __device__ bool must_look()
    {
        if (is_resting_)
            return ++laps_ == GRID_REST;
        is_resting_ = __popc(__ballot_sync(ALL_LANES, is_misfit_)) > GRID_MISFITS;
        is_misfit_ = false;
        laps_ = 0;
        return false;
    }

    /* span: of the lane's last products. By whole warps. */
    __device__ void look(const struct span &span)
    {
        const unsigned top = top_above(span);
        laps_ = 0;
        is_resting_ = __popc(__ballot_sync(ALL_LANES, holds(top, span))) < GRID_WARP - 1;
        if (is_resting_ || top == top_)
            return;
        gather();
        spill();
        top_ = top;
        begin_grids();
    }

    __device__ bool holds(const struct span &span) const
    {
        return holds(top_, span);
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

    struct grids<Columns::GRIDS, Columns::STEP> grids_[PARTS];

  private:
    enum { VECTORS = grids<Columns::GRIDS, Columns::STEP>::DEPOSITS / COUNT };

    static __device__ unsigned top_above(const struct span &span)
    {
        const unsigned top = __reduce_max_sync(ALL_LANES, span.high >> 21) + Columns::SLACK;
        return min(max(top, (unsigned)Columns::LOWEST_TOP), (unsigned)Columns::HIGHEST_TOP);
    }

    /* All grids hold bits from 2^(top - 1022) down to 2^(top - 1022 - STEP GRIDS); a product has
     * its lowest one at 2^(field - 1022 - BITS) or above. A span's low end may be less one: then
     * zeros are the largest numbers, and in range whatever this is. */
    static __device__ bool holds(unsigned top, const struct span &span)
    {
        const unsigned width = Columns::STEP * Columns::GRIDS - BITS;
        return span.high < (top + 1) << 21 && span.low >= ((top - width) << 21) - 1;
    }

    __device__ void begin_grids()
    {
#pragma unroll
        for (int part = 0; part < PARTS; part++)
            grids_[part].begin(top_);
        until_gather_ = VECTORS;
        until_spill_ = GRID_GATHERED;
    }

    __device__ void gather()
    {
#pragma unroll
        for (int part = 0; part < PARTS; part++)
            grids_[part].gather(top_);
        until_gather_ = VECTORS;
        if (--until_spill_ == 0)
            spill();
    }

    __device__ void spill()
    {
        make_room(2 * Columns::GRIDS);
#pragma unroll
        for (int part = 0; part < PARTS; part++)
#pragma unroll
            for (int k = 0; k < Columns::GRIDS; k++) {
                put_gathered<Columns>(column(part), grids_[part].gathered[k],
                                      grid_bias<Columns::STEP>(top_, k));
                grids_[part].gathered[k] = 0;
            }
        until_spill_ = GRID_GATHERED;
    }

    /* The warp's sums, as words, to its limbs: lanes gather what belongs to one each, from the
     * lowest one that the finest grid reaches. */
    __device__ void fold_grids(int part, bool has_columns)
    {
        const int lane = (int)(threadIdx.x % GRID_WARP);
        int64_t *limb = (int64_t *)(part_ + part * PART_BYTES);
        if (!has_columns)
            clear_limbs<LIMBS>(limb);
        grids_[part].gather(top_);
        int64_t words[Columns::GRIDS];
#pragma unroll
        for (int k = 0; k < Columns::GRIDS; k++)
            words[k] = fold_word(grids_[part].gathered[k]);
        static_assert(Columns::STEP * Columns::GRIDS + 96 <= 32 * (GRID_WARP - 1), "in one pass");
        const int finest = (int)top_ - 1022 - Columns::STEP * Columns::GRIDS - BASE;
        const int index = finest / 32 + lane;
        uint64_t total = index < LIMBS ? (uint64_t)limb[index] : 0; /* overflows if not finite */
#pragma unroll
        for (int k = 0; k < Columns::GRIDS; k++)
            total += (uint64_t)piece_of(words[k], finest + Columns::STEP * (Columns::GRIDS - 1 - k),
                                        index);
        if (index < LIMBS)
            limb[index] = (int64_t)total;
        __syncwarp();
    }

    char *part_, *column_;
    int room_;              /* deposits until a carry; UNUSED: the columns hold anything */
    unsigned top_;          /* exponent field; the same in all lanes */
    unsigned until_gather_; /* pauses */
    unsigned until_spill_;  /* gathers */
    unsigned laps_;         /* of the rest, so far */
    bool is_resting_;       /* the warp's products go to the columns unseen */
    bool is_misfit_;        /* one of the lane's did, of this lap's */
};

} // namespace

#endif
