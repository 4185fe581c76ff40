/* place.c - the cost model behind PLACE_AUTO (see place.h). */
#include "gpu/place.h"

#include <assert.h>
#include <stddef.h>

/* Up to 32 KiB a CUDA device reads operands in place, and copies what is barely larger; the last two
 * are far enough apart to tell what a byte takes, and one is not yet long to compute. */
const uint64_t place_bytes[PLACE_SIZES] = {1 << 9,  1 << 13, 1 << 15, 9 << 12, 1 << 17, 1 << 18,
                                           1 << 19, 1 << 20, 1 << 21, 1 << 22, 1 << 24};
const uint64_t place_row_lengths[PLACE_ROW_LENGTHS] = {16, 256};

enum { CROSSOVER_MAX_BITS = 36 }; /* elements; what is not better by then never is */

enum place_kind place_kind_of(enum dtype dtype, enum accuracy accuracy)
{
    bool is_fast = accuracy == ACCURACY_FAST && !dtype_is_integer(dtype);
    return is_fast ? PLACE_FAST : PLACE_EXACT;
}

/* --- guards --- */

static void not_below(double *value, double least)
{
    if (!(*value > least))
        *value = least;
}

/* What disturbs a measurement makes it longer: of two sizes, the larger one is right. */
static void smooth_sizes(double ns[PLACE_SIZES])
{
    const int last = PLACE_SIZES - 1;
    for (int i = last; i >= 0; i--) {
        if (i < last && !(ns[i] < ns[i + 1]))
            ns[i] = ns[i + 1];
        not_below(&ns[i], 0);
    }
}

static void smooth_cost(struct place_cost *cost)
{
    smooth_sizes(cost->row_ns);
    for (int i = 0; i < PLACE_ROW_LENGTHS; i++)
        not_below(&cost->further_ns[i], 0);
    not_below(&cost->term_ns, 0);
}

void place_smooth(struct place_model *model)
{
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        for (int kind = 0; kind < PLACE_KINDS; kind++)
            smooth_cost(&model->cost[dtype][kind]);
    smooth_sizes(model->unpinned_ns);
}

/* --- times --- */

static double between(double x, double x0, double x1, double y0, double y1)
{
    return y0 + (x - x0) / (x1 - x0) * (y1 - y0);
}

/* On the line through the measured sizes, up to the largest; below the smallest, as that. */
static double at_bytes(const double ns[PLACE_SIZES], uint64_t bytes)
{
    if (bytes <= place_bytes[0])
        return ns[0];
    int i = 1;
    while (i < PLACE_SIZES - 1 && bytes > place_bytes[i])
        i++;
    return between((double)bytes, (double)place_bytes[i - 1], (double)place_bytes[i], ns[i - 1],
                   ns[i]);
}

double place_byte_ns(const struct place_model *model, const struct place_cost *cost, bool is_pinned)
{
    const int last = PLACE_SIZES - 1;
    double ns = cost->row_ns[last] - cost->row_ns[last - 1];
    if (!is_pinned)
        ns += model->unpinned_ns[last] - model->unpinned_ns[last - 1];
    return ns / (double)(place_bytes[last] - place_bytes[last - 1]);
}

static double row_ns(const struct place_model *model, const struct place_cost *cost, uint64_t bytes,
                     bool is_pinned)
{
    const uint64_t largest = place_bytes[PLACE_SIZES - 1];
    const uint64_t measured = bytes < largest ? bytes : largest;
    double ns = at_bytes(cost->row_ns, measured);
    if (!is_pinned)
        ns += at_bytes(model->unpinned_ns, measured);
    return ns + (double)(bytes - measured) * place_byte_ns(model, cost, is_pinned);
}

static double further_row_ns(const struct place_cost *cost, double length)
{
    const double shortest = (double)place_row_lengths[0], longest = (double)place_row_lengths[1];
    if (length <= shortest)
        return cost->further_ns[0];
    if (length >= longest)
        return cost->further_ns[1];
    return between(length, shortest, longest, cost->further_ns[0], cost->further_ns[1]);
}

static const struct place_cost *cost_of(const struct place_model *model,
                                        const struct job_size *size)
{
    return &model->cost[size->dtype][place_kind_of(size->dtype, size->accuracy)];
}

double place_time_ns(const struct place_model *model, const struct job_size *size, bool is_pinned)
{
    assert(size->dtype < DTYPE_COUNT);
    const struct place_cost *cost = cost_of(model, size);
    const double terms = (double)size->term_count, rows = (double)size->row_count;
    const double shared = terms - (double)size->bytes / (double)(2 * dtype_size(size->dtype));
    double ns = row_ns(model, cost, size->bytes, is_pinned);
    if (rows > 1)
        ns += (rows - 1) * further_row_ns(cost, terms / rows);
    if (shared > 0)
        ns += shared * cost->term_ns;
    return ns;
}

double place_load_ns(const struct place_model *model, const struct job_size *size, bool is_pinned)
{
    return place_time_ns(model, size, is_pinned) - cost_of(model, size)->row_ns[0];
}

uint64_t place_inline_terms(uint64_t inline_terms, enum dtype dtype)
{
    const size_t size = dtype_size(dtype), usual = dtype_size(DTYPE_FLOAT32);
    return size > usual ? inline_terms / (size / usual) : inline_terms;
}

/* --- choosing --- */

int place_choose(const struct place_offer *offer, int count, const struct job_size *size,
                 bool is_pinned)
{
    int best = -1;
    double best_ns = 0;
    for (int i = 0; i < count; i++) {
        if (offer[i].model == NULL)
            continue;
        double ns = offer[i].waiting_ns + place_time_ns(offer[i].model, size, is_pinned);
        if (best < 0 || ns < best_ns) {
            best = i;
            best_ns = ns;
        }
    }
    return best;
}

/* --- the crossover --- */

struct rivals {
    const struct place_cpu *cpu;
    const struct place_model *cuda;
    uint64_t inline_terms; /* of this type */
    struct job_size size;  /* of one row */
    bool is_pinned;
};

static bool cuda_wins(const struct rivals *rivals, uint64_t n)
{
    struct job_size size = rivals->size;
    size.term_count = n;
    size.bytes = 2 * n * dtype_size(size.dtype);
    const bool is_inline = n <= rivals->inline_terms;
    const struct place_offer offer[] = {
        {is_inline ? rivals->cpu->inlined : rivals->cpu->queued, 0},
        {rivals->cuda, 0},
    };
    return place_choose(offer, 2, &size, rivals->is_pinned) == 1;
}

enum { BENDS_MOST = PLACE_SIZES + 4 };

/* Elements of rows between which times are lines: the sizes that were measured, and where the CPU's
 * queue begins. */
static int bends_list(uint64_t inline_terms, size_t size, uint64_t ret[BENDS_MOST])
{
    const uint64_t most = (uint64_t)1 << CROSSOVER_MAX_BITS;
    int count = 0;
    ret[count++] = 1;
    ret[count++] = most;
    for (int i = 0; i < PLACE_SIZES; i++)
        ret[count++] = place_bytes[i] / (2 * size);
    if (inline_terms > 0 && inline_terms < most) {
        ret[count++] = inline_terms;
        ret[count++] = inline_terms + 1;
    }
    return count;
}

/* Between the last bend at which the CPU wins and the next one, times cross once. */
uint64_t place_crossover(const struct place_cpu *cpu, const struct place_model *cuda,
                         const struct job_size *kind, bool is_pinned)
{
    const uint64_t inline_terms = place_inline_terms(cpu->inline_terms, kind->dtype);
    const struct rivals rivals = {cpu, cuda, inline_terms, *kind, is_pinned};
    const size_t size = dtype_size(kind->dtype);
    uint64_t bend[BENDS_MOST], loses = 0, wins = UINT64_MAX;
    const int count = bends_list(inline_terms, size, bend);
    for (int i = 0; i < count; i++)
        if (bend[i] > loses && !cuda_wins(&rivals, bend[i]))
            loses = bend[i];
    for (int i = 0; i < count; i++)
        if (bend[i] > loses && bend[i] < wins)
            wins = bend[i];
    if (wins == UINT64_MAX)
        return UINT64_MAX;
    while (wins - loses > 1) {
        uint64_t middle = loses + (wins - loses) / 2;
        *(cuda_wins(&rivals, middle) ? &wins : &loses) = middle;
    }
    return 2 * wins * size;
}
