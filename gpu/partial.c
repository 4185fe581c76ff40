/* partial.c - one dot product in the making (see partial.h).
 *
 * The bound of fast pieces. Piece i has the exact sum S_i; it is summed in float64 as s_i, and
 * bound.c proves |s_i - S_i| <= b_i. The accumulator holds T = s_1 + s_2 + ... without any rounding
 * (the s_i are deposited, and exact pieces and merged sums have b_i = 0), so by the triangle
 * inequality |T - S| <= b_1 + b_2 + ... whatever the pieces, their order and how they were merged.
 * That sum is kept rounded up: error_bound. Settling rounds T once, by r at most, which
 * exact_value() tells: |value - S| <= error_bound + r, rounded up again.
 */
#include "gpu/partial.h"

#include <assert.h>
#include <math.h>

#include "gpu/bound.h"
#include "gpu/cpu_dot.h"

/* Elements of a fast piece here: its bound grows with its depth, and depositing it costs little. */
enum { PIECE = 1 << 19 };

static const double deposit_limit = 0x1p278; /* exact_add_float64() of float32's layout (limbs.h) */

static bool is_exact(const struct partial *partial)
{
    return partial->accuracy == ACCURACY_EXACT || dtype_is_integer(partial->sum.dtype);
}

/* x + y or the next number above it; exact if either is 0. */
static double add_up(double x, double y)
{
    return x == 0 || y == 0 ? x + y : nextafter(x + y, INFINITY);
}

void partial_init(struct partial *partial, enum dtype dtype, enum accuracy accuracy, bool conjugate,
                  bool wants_abs)
{
    partial->accuracy = accuracy;
    partial->n = 0;
    partial->error_bound[0] = partial->error_bound[1] = 0;
    /* Fast results always have their sum_abs. */
    exact_sum_init(&partial->sum, NULL, dtype, conjugate, wants_abs || accuracy != ACCURACY_EXACT);
}

/* --- pieces --- */

static bool can_deposit(const struct partial *partial, const struct dot_value *piece)
{
    bool is_narrow = exact_layout_of(partial->sum.dtype).limbs == EXACT_FLOAT32_LIMBS;
    return isfinite(piece->sum) && isfinite(piece->sum_abs) &&
           (!is_narrow || fabs(piece->sum) < deposit_limit);
}

void partial_add_fast(struct partial *partial, const struct dot_value piece[2], uint64_t depth,
                      const void *a, const void *b, uint64_t n)
{
    assert(!is_exact(partial));
    const unsigned parts = dtype_part_count(partial->sum.dtype);
    partial->n += n;
    for (unsigned i = 0; i < parts; i++)
        if (!can_deposit(partial, &piece[i])) {
            exact_sum_add(&partial->sum, a, b, n);
            return;
        }
    for (unsigned i = 0; i < parts; i++) {
        uint64_t terms = (uint64_t)parts * n;
        double bound = bound_of_sum(partial->sum.dtype, terms, depth, piece[i].sum_abs);
        partial->error_bound[i] = add_up(partial->error_bound[i], bound);
        partial->sum.part[i].sum_abs += piece[i].sum_abs;
        exact_part_add_float64(&partial->sum.part[i], piece[i].sum);
    }
}

void partial_add_exact(struct partial *partial, const struct exact_sum *piece, uint64_t n)
{
    assert(is_exact(partial));
    partial->n += n;
    exact_sum_merge(&partial->sum, piece);
}

/* At most PIECE products. */
static void add_fast(struct partial *partial, const struct cpu_row *row)
{
    const struct cpu_kernel *kernel = partial->sum.kernel;
    struct cpu_sum sum[2];
    struct dot_value piece[2] = {0};
    cpu_row_dot(kernel, row, sum);
    for (int i = 0; i < 2; i++) {
        piece[i].sum = sum[i].sum;
        piece[i].sum_abs = sum[i].sum_abs;
    }
    partial_add_fast(partial, piece, cpu_depth(kernel, row->dtype, row->n), row->a, row->b, row->n);
}

void partial_add(struct partial *partial, const void *a, const void *b, uint64_t n)
{
    if (is_exact(partial)) {
        exact_sum_add(&partial->sum, a, b, n);
        partial->n += n;
        return;
    }
    const enum dtype dtype = partial->sum.dtype;
    for (uint64_t done = 0; done < n; done += PIECE) {
        struct cpu_row row = {
            .dtype = dtype,
            .conjugate = partial->sum.conjugate,
            .a = (const char *)a + done * dtype_size(dtype),
            .b = (const char *)b + done * dtype_size(dtype),
            .n = n - done < PIECE ? n - done : PIECE,
        };
        add_fast(partial, &row);
    }
}

void partial_merge(struct partial *partial, const struct partial *other)
{
    assert(partial->accuracy == other->accuracy);
    partial->n += other->n;
    for (unsigned i = 0; i < dtype_part_count(partial->sum.dtype); i++)
        partial->error_bound[i] = add_up(partial->error_bound[i], other->error_bound[i]);
    exact_sum_merge(&partial->sum, &other->sum);
}

/* --- the end --- */

/* As bound.c settles a row: float64, with a bound. What an operand that is not finite decided is so
 * without any error. */
static void settle_fast(struct partial *partial, struct dot_value *value)
{
    exact_sum_round(&partial->sum, DTYPE_FLOAT64, value);
    for (unsigned i = 0; i < dtype_part_count(partial->sum.dtype); i++) {
        if (partial->sum.part[i].special != 0)
            continue;
        value[i].error_bound = add_up(value[i].error_bound, partial->error_bound[i]);
        if (value[i].error_bound > 0)
            value[i].flags |= FLAG_INEXACT;
    }
}

void partial_settle(struct partial *partial, enum dtype result_dtype, struct dot_value *value)
{
    if (is_exact(partial))
        exact_sum_round(&partial->sum, result_dtype, value);
    else
        settle_fast(partial, value);
}
