/* exact_half.cu - exact sums of float16, in registers.
 *
 * Idea      a product of two float16 is exact in float32: 22 bits, a whole multiple of 2^-48 below
 *           2^32. Two float64 take it in: one near 1.5 * 2^44, whose unit is 2^-8, gets the product
 *           rounded to that unit; one near 1.5 * 2^4, whose unit is 2^-48, gets what was rounded
 *           off, which is exact and at most 2^-9. Four additions a product, whatever the data.
 * Headroom  the first may move by 2^43, that is 2^11 products of 2^32; the second by 2^3, that is
 *           2^12 times 2^-9. After 2^10 products both are read off as integers into 128 bits, of
 *           unit 2^-48. A thread's total of 2^46 products stays below 2^126.
 * Odd       a product that is infinite or NaN makes the first float64 so, and it stays so until it
 *           is read.
 * Source    T. Dekker, A floating-point technique for extending the available precision, 1971.
 * Measured  tests/bench/results.
 */
#include "gpu/kernels/exact_kernel.h"
#include "gpu/kernels/exact_rows.cuh"
#include "gpu/kernels/exact_tiles.cuh"
#include "gpu/kernels/exact_words.cuh"

namespace
{

const uint64_t COARSE_BITS = 0x42b8000000000000, FINE_BITS = 0x4038000000000000;

enum {
    COARSE_UNIT = 40,                    /* 2^-8 is 2^40 times 2^-48 */
    POSITION = -48 - EXACT_FLOAT32_BASE, /* of 2^-48 in the limbs */
    ROUNDS = 32,                         /* of 32 products, between two readings */
};

__device__ inline float low_half(unsigned word)
{
    return half_to_float((unsigned short)word);
}

__device__ inline float high_half(unsigned word)
{
    return half_to_float((unsigned short)(word >> 16));
}

class sum_float16
{
  public:
    enum { THREADS = 512, BLOCKS = 2, LOADS = 4, SIZE = 2, PARTS = 1, AHEAD = 0 };
    enum { LIMBS = EXACT_FLOAT32_LIMBS, BASE = EXACT_FLOAT32_BASE, PART_BYTES = LIMBS * 8 };
    static const enum dtype DTYPE = DTYPE_FLOAT16;

    __device__ sum_float16(char *region, const struct grid_task &) : limb_((int64_t *)region)
    {
    }

    __device__ void begin()
    {
        coarse_ = __longlong_as_double(COARSE_BITS);
        fine_ = __longlong_as_double(FINE_BITS);
        total_ = 0;
        count_ = 0;
        is_odd_ = false;
    }

    __device__ void add(uint4 x, uint4 y)
    {
        add_word(x.x, y.x);
        add_word(x.y, y.y);
        add_word(x.z, y.z);
        add_word(x.w, y.w);
    }

    __device__ void pause()
    {
        if (++count_ == ROUNDS)
            read();
    }

    __device__ bool is_odd()
    {
        read();
        return is_odd_;
    }

    __device__ void fold()
    {
        const struct words<4> words = fold_words(split_words(total_));
        clear_limbs<LIMBS>(limb_);
        if (threadIdx.x % GRID_WARP == 0)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int64_t sign = words.word[i] >> 63;
                exact_add_word(limb_, (uint64_t)((words.word[i] ^ sign) - sign), POSITION + 32 * i,
                               sign);
            }
        __syncwarp();
    }

  private:
    __device__ void add_word(unsigned x, unsigned y)
    {
        add_product(__fmul_rn(low_half(x), low_half(y)));
        add_product(__fmul_rn(high_half(x), high_half(y)));
    }

    __device__ void add_product(float product)
    {
        const double p = product, before = coarse_;
        coarse_ = __dadd_rn(before, p);
        fine_ = __dadd_rn(fine_, __dadd_rn(p, __dadd_rn(before, -coarse_)));
    }

    /* The float64s' integers go to the total. */
    __device__ void read()
    {
        const int64_t coarse = __double_as_longlong(coarse_), fine = __double_as_longlong(fine_);
        is_odd_ |= coarse >> 52 != (int64_t)(COARSE_BITS >> 52);
        total_ += (exact_int128)(coarse - (int64_t)COARSE_BITS) * ((int64_t)1 << COARSE_UNIT) +
                  (fine - (int64_t)FINE_BITS);
        coarse_ = __longlong_as_double(COARSE_BITS);
        fine_ = __longlong_as_double(FINE_BITS);
        count_ = 0;
    }

    int64_t *limb_;
    double coarse_, fine_;
    exact_int128 total_; /* unit 2^-48 */
    unsigned count_;     /* rounds since the last reading */
    bool is_odd_;
};

} // namespace

const struct exact_kernel exact_float16 = {open_tiled<sum_float16>, launch_tiled<sum_float16>};
