/* exact_integer.cu - exact sums of int8, uint8, int32 and int64, in registers.
 *
 * Idea      four products of bytes and their sum are one instruction (dp4a); products of 32 bits
 *           are added up in 128 bits. A product of 64 bits is added as an unsigned lower and a
 *           signed upper half, each in 128 bits, so that no carry runs further.
 * Headroom  dp4a adds less than 2^18: the 32-bit sum is emptied after 2^13 of them. A thread's
 *           bytes stay below 2^63 for 2^47 products, int32 below 2^127 for 2^65, int64 likewise.
 * Source    CUDA Math API, integer intrinsics.
 * Measured  tests/bench/results.
 */
#include "gpu/kernels/exact_kernel.h"
#include "gpu/kernels/exact_rows.cuh"
#include "gpu/kernels/exact_words.cuh"

namespace
{

/* Products of integers are always finite. */
class integers
{
  public:
    enum { THREADS = 512, BLOCKS = 2, LOADS = 4, PARTS = 1, AHEAD = 0 };
    enum { LIMBS = EXACT_INTEGER_LIMBS, BASE = EXACT_INTEGER_BASE, PART_BYTES = LIMBS * 8 };

    __device__ integers(char *region) : limb_((int64_t *)region)
    {
    }

    __device__ void pause()
    {
    }

    __device__ bool is_odd() const
    {
        return false;
    }

  protected:
    /* Words go to the limbs from `first` on; called with limbs that hold zeros or earlier words. */
    template <int COUNT> __device__ void fold_into(int first, struct words<COUNT> words)
    {
        words = fold_words(words);
        if (threadIdx.x % GRID_WARP == 0)
#pragma unroll
            for (int i = 0; i < COUNT; i++)
                limb_[first + i] += words.word[i];
        __syncwarp();
    }

    int64_t *limb_;
};

/* Four products and a sum, of signed and of unsigned bytes. */
struct signed_bytes {
    typedef int sum;
    static const enum dtype DTYPE = DTYPE_INT8;
};
struct unsigned_bytes {
    typedef unsigned sum;
    static const enum dtype DTYPE = DTYPE_UINT8;
};

template <typename Bytes> class sum_bytes : public integers
{
  public:
    enum { SIZE = 1 };
    static const enum dtype DTYPE = Bytes::DTYPE;

    __device__ sum_bytes(char *region, const struct grid_task &) : integers(region)
    {
    }

    __device__ void begin()
    {
        part_ = 0;
        total_ = 0;
        count_ = 0;
    }

    __device__ void add(uint4 x, uint4 y)
    {
        part_ = __dp4a((sum)x.x, (sum)y.x, part_);
        part_ = __dp4a((sum)x.y, (sum)y.y, part_);
        part_ = __dp4a((sum)x.z, (sum)y.z, part_);
        part_ = __dp4a((sum)x.w, (sum)y.w, part_);
    }

    __device__ void pause()
    {
        if (++count_ == ROUNDS)
            empty();
    }

    __device__ void fold()
    {
        empty();
        struct words<2> words = {
            {
                (int64_t)(uint32_t) total_, total_ >> 32
            }
        };
        clear_limbs<LIMBS>(limb_);
        fold_into(0, words);
    }

  private:
    typedef typename Bytes::sum sum;
    enum { ROUNDS = 1 << 9 }; /* of 16 dp4a */

    __device__ void empty()
    {
        total_ += part_;
        part_ = 0;
        count_ = 0;
    }

    sum part_;
    int64_t total_;
    unsigned count_; /* rounds since part_ was emptied */
};

class sum_int32 : public integers
{
  public:
    enum { SIZE = 4 };
    static const enum dtype DTYPE = DTYPE_INT32;

    __device__ sum_int32(char *region, const struct grid_task &) : integers(region)
    {
    }

    __device__ void begin()
    {
        total_ = 0;
    }

    __device__ void add(uint4 x, uint4 y)
    {
        total_ += (int64_t)(int)x.x * (int)y.x;
        total_ += (int64_t)(int)x.y * (int)y.y;
        total_ += (int64_t)(int)x.z * (int)y.z;
        total_ += (int64_t)(int)x.w * (int)y.w;
    }

    __device__ void fold()
    {
        clear_limbs<LIMBS>(limb_);
        fold_into(0, split_words(total_));
    }

  private:
    exact_int128 total_;
};

class sum_int64 : public integers
{
  public:
    enum { SIZE = 8 };
    static const enum dtype DTYPE = DTYPE_INT64;

    __device__ sum_int64(char *region, const struct grid_task &) : integers(region)
    {
    }

    __device__ void begin()
    {
        lower_ = 0;
        upper_ = 0;
    }

    __device__ void add(uint4 x, uint4 y)
    {
        add_product(x.x, x.y, y.x, y.y);
        add_product(x.z, x.w, y.z, y.w);
    }

    __device__ void fold()
    {
        clear_limbs<LIMBS>(limb_);
        fold_into(0, split_words(lower_));
        fold_into(2, split_words(upper_));
    }

  private:
    __device__ void add_product(unsigned x0, unsigned x1, unsigned y0, unsigned y1)
    {
        const int64_t x = (int64_t)((uint64_t)x1 << 32 | x0);
        const int64_t y = (int64_t)((uint64_t)y1 << 32 | y0);
        const exact_int128 product = (exact_int128)x * y;
        lower_ += (uint64_t)product;
        upper_ += (int64_t)(product >> 64);
    }

    exact_int128 lower_, upper_; /* the sum is lower + 2^64 upper; lower is not negative */
};

} // namespace

const struct exact_kernel exact_int8 = {open_rows<sum_bytes<signed_bytes>>,
                                        launch_rows<sum_bytes<signed_bytes>>};
const struct exact_kernel exact_uint8 = {open_rows<sum_bytes<unsigned_bytes>>,
                                         launch_rows<sum_bytes<unsigned_bytes>>};
const struct exact_kernel exact_int32 = {open_rows<sum_int32>, launch_rows<sum_int32>};
const struct exact_kernel exact_int64 = {open_rows<sum_int64>, launch_rows<sum_int64>};
