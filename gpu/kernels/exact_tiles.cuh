/* exact_tiles.cuh - exact sums of many short rows of narrow floats.
 *
 * Door: open_tiled<Sum>(), launch_tiled<Sum>() of a type that exact_rows<Sum> adds up, float32,
 * bfloat16 or float16: as open_rows() and launch_rows(), and for tasks of GRID_TILE_ROW too.
 *
 * Idea      in float64 a sum near 1.5 * 2^52 u has the unit u. A product added to it by fma is
 *           rounded once, to a whole multiple of u; what that rounded off is exact, by fma again,
 *           and goes to a second sum of a finer unit. Four operations a product and no more, if
 *           both units fit the data: so these are guessed, from the first vectors of rows side by
 *           side, and while a row is added up its exponents are watched. A row that the units did
 *           not fit goes the general way, by a whole warp, once that has no tiles left; it costs as
 *           much as some twenty others.
 * Units     fields of float32 exponents: |a| < 2^(field - 126), and a is a whole multiple of
 *           2^(field - 127 - FRACTION). `top` bounds the sum of a product's two fields, so products
 *           are below 2^(top - 252); the first unit is 2^-step of that, the second 2^-step of the
 *           first. The second divides every product if the two lowest fields sum up to
 *           top + 2 + 2 FRACTION - 2 step at least.
 * Headroom  a lane adds at most 2^(50 - step) products to a sum: the first moves by 2^50 units at
 *           most, the second, which gets half a first unit at most, by 2^49.
 * Rounding  a lane a row: both sums are integers, so is the total, in 128 bits.
 */
#ifndef GPU_KERNELS_EXACT_TILES_CUH
#define GPU_KERNELS_EXACT_TILES_CUH

#include "gpu/kernels/exact_rows.cuh"
#include "gpu/kernels/tiles.cuh"

namespace
{

/* --- operands --- */

enum {
    TILE_SLACK = 6,       /* from the largest sum of fields that was seen to `top` */
    TILE_ROOM = 50,       /* a sum may move by 2^TILE_ROOM of its units */
    TOP_OF_ZEROS = 254,   /* products below 4: if all that was seen is zero */
    FIELD_UNIT = 1 << 24, /* in the bits of a float32 without its sign, shifted up */
};

const uint32_t NO_ROW = ~(uint32_t)0;

template <enum dtype> struct narrow;
template <> struct narrow<DTYPE_FLOAT32> {
    enum { FRACTION = 23 };
};
template <> struct narrow<DTYPE_BFLOAT16> {
    enum { FRACTION = 7 };
};
template <> struct narrow<DTYPE_FLOAT16> {
    enum { FRACTION = 10 };
};

/* Element `index` of a vector, in the bits of a float32. */
template <enum dtype DTYPE> __device__ inline unsigned narrow_bits(const uint4 &v, int index)
{
    if (DTYPE == DTYPE_FLOAT32)
        return word_of(v, index);
    const unsigned word = word_of(v, index / 2);
    if (DTYPE == DTYPE_BFLOAT16)
        return index % 2 == 0 ? word << 16 : word & 0xffff0000;
    return __float_as_uint(half_to_float((unsigned short)(word >> 16 * (index % 2))));
}

/* Exponents of some elements: their bits without the sign, shifted up. low: less one, for then
 * zero, which fits any unit, is the largest. */
struct reach {
    unsigned low, high;

    __device__ void clear()
    {
        low = ~0u;
        high = 0;
    }

    __device__ void see(unsigned bits)
    {
        low = min(low, 2 * bits - 1);
        high = max(high, 2 * bits);
    }
};

/* Bits from a unit to the next one, if a lane adds so many products to a sum. */
__device__ inline unsigned step_of(uint32_t products)
{
    return TILE_ROOM - (32 - (unsigned)__clz((int)(products - 1)));
}

/* 1.5 * 2^52 units of the first sum, or of the second. */
__device__ inline double tile_bias(unsigned top, unsigned step, int index)
{
    return __hiloint2double((int)((top + 823 - (index + 1) * step) << 20 | 0x80000), 0);
}

/* The largest that a lane of the team has, in each of them. */
template <int TEAM> __device__ inline unsigned team_max(unsigned value)
{
    if constexpr (TEAM == GRID_WARP) {
        return __reduce_max_sync(ALL_LANES, value);
    } else {
#pragma unroll
        for (unsigned half = TEAM / 2; half > 0; half /= 2)
            value = max(value, __shfl_xor_sync(ALL_LANES, value, half));
        return value;
    }
}

/* --- rounding --- */

/* total * 2^base as exact_value() rounds it; |total| < 2^126. */
__device__ inline struct dot_value round_total(exact_int128 total, int base,
                                               enum dtype result_dtype)
{
    const struct exact_format format = exact_format_of(result_dtype);
    const bool is_negative = total < 0;
    const unsigned __int128 magnitude = (unsigned __int128)(is_negative ? -total : total);
    const uint64_t upper = (uint64_t)(magnitude >> 64), lower = (uint64_t)magnitude;
    struct dot_value value = {};
    if (magnitude == 0)
        return value;
    const int highest = upper != 0 ? 64 + exact_highest_bit(upper) : exact_highest_bit(lower);
    const int drop = exact_drop(format, base, highest);
    const int at = min(drop, highest + 2); /* all beyond is zero */
    struct exact_cut cut = {};
    cut.significand = (uint64_t)(magnitude >> at);
    cut.quantum = drop + base;
    cut.is_negative = is_negative;
    if (drop > 0) {
        const unsigned __int128 half = (unsigned __int128)1 << (at - 1);
        cut.is_half = (magnitude & half) != 0;
        cut.is_below = (magnitude & (half - 1)) != 0;
    }
    exact_round_cut(&cut, format, &value);
    return value;
}

/* --- tiles --- */

/* A lane's share of SIDE rows. */
template <typename Sum, typename Reading> class exact_tile
{
  public:
    enum { SIDE = Reading::SIDE, SIDE_B = Reading::SIDE_B };

    __device__ exact_tile(char *region, const struct grid_task &task, const struct tiles &tiles,
                          struct exact_row *result)
        : cell_((uint64_t *)region), task_(task), result_(result), odd_(0), last_odd_(NO_ROW)
    {
        step_ = step_of(((tiles.vectors - 1) / Reading::TEAM + 1) * REALS);
        clear_reaches();
    }

    __device__ void add(bool is_first, const uint4 (&x)[SIDE], const uint4 (&y)[SIDE_B])
    {
        see(x, y);
        if (is_first)
            begin();
#pragma unroll
        for (int i = 0; i < REALS; i++)
#pragma unroll
            for (int k = 0; k < SIDE; k++)
                add_product(k, narrow_bits<Sum::DTYPE>(x[k], i),
                            narrow_bits<Sum::DTYPE>(y[k % SIDE_B], i));
    }

    /* What the lanes bring keeps its bias: finish() takes all lanes' away at once. */
    __device__ void end_rows(uint32_t row)
    {
        unsigned odd = 0;
        uint64_t word[2][SIDE];
#pragma unroll
        for (int k = 0; k < SIDE; k++) {
            odd |= fits(k) ? 0 : 1u << (k * Reading::ACROSS);
            word[0][k] = (uint64_t)__double_as_longlong(first_[k]);
            word[1][k] = (uint64_t)__double_as_longlong(second_[k]);
        }
        odd_ |= odd << row;
        put_partials<Reading>(cell_, row, word[0]);
        put_partials<Reading>(cell_ + CELL_COUNT, row, word[1]);
        if (threadIdx.x % Reading::TEAM == 0)
            *top_of(row) = top_;
        clear_reaches();
    }

    /* Odd rows are left for add_odd_rows(), in a list: where the first one of a tile would have its
     * result, that says which ones there are, and where the tile before is told of. */
    __device__ void finish(uint32_t row, uint32_t count)
    {
        const uint32_t lane = threadIdx.x % GRID_WARP;
        __syncwarp();
        const unsigned all = __reduce_or_sync(ALL_LANES, odd_);
        const unsigned odd = __ballot_sync(ALL_LANES, lane < count && (all >> lane & 1) != 0);
        const uint32_t first = (uint32_t)__ffs((int)odd) - 1; /* none: of no lane */
        if (lane < count) {
            const unsigned top = *top_of(lane);
            const exact_int128 coarse = units(cell_, lane, tile_bias(top, step_, 0));
            const exact_int128 total = (exact_int128)((unsigned __int128)coarse << step_) +
                                       units(cell_ + CELL_COUNT, lane, tile_bias(top, step_, 1));
            const struct dot_value value =
                round_total(total, (int)top - 252 - 2 * (int)step_, (enum dtype)task_.result_dtype);
            const struct exact_row note = {0, odd, last_odd_};
            store_whole(&result_[row + lane], lane == first ? note : exact_row_of(&value, false));
        }
        if (odd != 0)
            last_odd_ = row + first;
        odd_ = 0;
        __syncwarp();
    }

    /* Where the last tile is told of that has any. */
    __device__ uint32_t last_odd() const
    {
        return last_odd_;
    }

  private:
    enum { REALS = GRID_LOAD_BYTES / Sum::SIZE, FRACTION = narrow<Sum::DTYPE>::FRACTION };

    __device__ void clear_reaches()
    {
#pragma unroll
        for (int k = 0; k < SIDE; k++)
            reach_a_[k].clear();
#pragma unroll
        for (int k = 0; k < SIDE_B; k++)
            reach_b_[k].clear();
    }

    __device__ void see(const uint4 (&x)[SIDE], const uint4 (&y)[SIDE_B])
    {
#pragma unroll
        for (int i = 0; i < REALS; i++) {
#pragma unroll
            for (int k = 0; k < SIDE; k++)
                reach_a_[k].see(narrow_bits<Sum::DTYPE>(x[k], i));
#pragma unroll
            for (int k = 0; k < SIDE_B; k++)
                reach_b_[k].see(narrow_bits<Sum::DTYPE>(y[k], i));
        }
    }

    /* The same units for the rows of a lane. What is not finite does not tell any. */
    __device__ void begin()
    {
        unsigned high = 0;
#pragma unroll
        for (int k = 0; k < SIDE; k++)
            high = max(high, is_finite(k) ? field_of(k, &reach::high) : 0);
        high = team_max<Reading::TEAM>(high);
        top_ = high == 0 ? (unsigned)TOP_OF_ZEROS : high + TILE_SLACK;
#pragma unroll
        for (int k = 0; k < SIDE; k++) {
            first_[k] = tile_bias(top_, step_, 0);
            second_[k] = tile_bias(top_, step_, 1);
        }
    }

    __device__ void add_product(int k, unsigned x, unsigned y)
    {
        const double a = __uint_as_float(x), b = __uint_as_float(y), before = first_[k];
        first_[k] = __fma_rn(a, b, before);
        second_[k] = __dadd_rn(second_[k], __fma_rn(a, b, __dadd_rn(before, -first_[k])));
    }

    /* The sum of the fields that a row's operands reach. */
    __device__ unsigned field_of(int k, unsigned reach::*end) const
    {
        return reach_a_[k].*end / FIELD_UNIT + reach_b_[k % SIDE_B].*end / FIELD_UNIT;
    }

    __device__ bool is_finite(int k) const
    {
        return max(reach_a_[k].high, reach_b_[k % SIDE_B].high) < 255u * FIELD_UNIT;
    }

    /* All three without branches. */
    __device__ bool fits(int k) const
    {
        return is_finite(k) & (field_of(k, &reach::high) <= top_) &
               (field_of(k, &reach::low) + 2 * step_ >= top_ + 2 + 2 * FRACTION);
    }

    /* A row's sum in its units, from what its lanes brought. */
    static __device__ int64_t units(const uint64_t *cell, uint32_t row, double bias)
    {
        return (int64_t)(total_of(cell, row) -
                         Reading::TEAM * (uint64_t)__double_as_longlong(bias));
    }

    /* Of the rows that were side by side in a lane with this one of the tile. */
    __device__ unsigned *top_of(uint32_t row) const
    {
        return (unsigned *)(cell_ + 2 * CELL_COUNT) + row / Reading::ROWS * Reading::ACROSS +
               row % Reading::ACROSS;
    }

    uint64_t *cell_; /* of the warp: of the first sums, of the second ones, then tops */
    const struct grid_task &task_;
    struct exact_row *result_; /* of row 0 */
    double first_[SIDE], second_[SIDE];
    struct reach reach_a_[SIDE], reach_b_[SIDE_B];
    unsigned top_, step_;
    unsigned odd_;      /* rows of the tile that the units did not fit: the lane's */
    uint32_t last_odd_; /* of the warp; the same in all lanes */
};

/* --- odd rows --- */

/* Bytes of a warp: for tiles, and then, in the same place, for a row at a time. */
template <typename Sum> struct tile_bytes {
    enum { CELLS = 2 * CELL_COUNT * sizeof(uint64_t) + GRID_TILE * sizeof(unsigned) };
    enum { TILES = RING_BYTES + CELLS, GENERAL = warp_bytes<Sum>() };
    enum { ALL = (int)TILES > (int)GENERAL ? (int)TILES : (int)GENERAL };
};

/* By a whole warp, in GENERAL bytes of its memory. */
template <typename Sum>
__device__ inline void add_generally(char *region, const struct grid_task &task, uint32_t index,
                                     struct exact_row *ret)
{
    const unsigned lane = threadIdx.x % GRID_WARP;
    char *ring = region + Sum::PARTS * Sum::PART_BYTES + lane * GRID_LOAD_BYTES;
    Sum sum(region, task);
    const struct row row = row_of<Sum::SIZE>(task, index, lane, GRID_WARP);
    const unsigned special = add_row(sum, row, ring, task);
    const struct dot_value value =
        value_of<Sum>((const int64_t *)region, special, (enum dtype)task.result_dtype);
    if (lane == 0)
        *ret = exact_row_of(&value, special != 0);
    __syncwarp();
}

/* After all of the warp's tiles: were it done between them, what they have in registers would have
 * to outlast it, and some would be spilt. last: exact_tile's last_odd(). */
template <typename Sum>
__device__ inline void add_odd_rows(char *region, const struct grid_task &task, uint32_t last,
                                    struct exact_row *result)
{
    __syncwarp();
    while (last != NO_ROW) {
        const struct exact_row note = result[last];
        const uint32_t row = last - ((uint32_t)__ffs((int)note.bound) - 1); /* of the tile */
        for (unsigned odd = note.bound; odd != 0; odd &= odd - 1) {
            const uint32_t index = row + (uint32_t)__ffs((int)odd) - 1;
            add_generally<Sum>(region, task, index, result + index);
        }
        last = note.flags;
    }
}

template <typename Sum>
__global__ void __launch_bounds__(GRID_TILE_WARPS *GRID_WARP, 2)
    exact_tiles(const __grid_constant__ struct exact_launch launch)
{
    __shared__ struct grid_task task;
    fetch_task(&task, launch.task, launch.task_of_block, &launch.only);
    const struct tiles tiles = tiles_of<Sum::SIZE>(task);
    char *shared = dynamic_shared() + threadIdx.x / GRID_WARP * tile_bytes<Sum>::ALL;
    struct exact_row *result = launch.row + task.result;
    uint32_t last_odd = NO_ROW;
    by_team(task.team, tiles.stride_b == 0, [&](auto way) {
        typedef decltype(way) Reading;
        exact_tile<Sum, Reading> tile(shared + RING_BYTES, task, tiles, result);
        run_tiles<Reading>(tiles, shared, tile);
        last_odd = tile.last_odd();
    });
    add_odd_rows<Sum>(shared, task, last_odd, result);
}

/* --- the host's side --- */

template <typename Sum> cudaError_t open_tiled(uint32_t multiprocessors, struct exact_shape *ret)
{
    cudaError_t status = open_rows<Sum>(multiprocessors, ret);
    if (status == cudaSuccess)
        status = open_kernel(exact_tiles<Sum>, tile_bytes<Sum>::ALL, (int)sizeof(struct grid_task),
                             GRID_TILE_WARPS * GRID_WARP, multiprocessors, &ret->tile_threads,
                             &ret->tile_capacity);
    return status;
}

template <typename Sum>
cudaError_t launch_tiled(const struct exact_shape *shape, const struct exact_launch *launch,
                         uint32_t blocks, cudaStream_t stream)
{
    if (!launch->has_tiles)
        return launch_rows<Sum>(shape, launch, blocks, stream);
    const size_t bytes = (size_t)(shape->tile_threads / GRID_WARP) * tile_bytes<Sum>::ALL;
    void *arguments[] = {const_cast<struct exact_launch *>(launch)};
    return cudaLaunchKernel(exact_tiles<Sum>, dim3(blocks), dim3(shape->tile_threads), arguments,
                            bytes, stream);
}

} // namespace

#endif
