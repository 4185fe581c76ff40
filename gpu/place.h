/* place.h - what a job would take on a device: the cost model behind PLACE_AUTO. Arithmetic only.
 *
 * Door: measure.h fills a model in; place_time_ns() says what a job takes by it, place_choose()
 * which of several devices has it done first, place_crossover() from which size on another device
 * is the better one.
 *
 * A job of one row takes what rows of about its size took: a line through the measured sizes,
 * because neither device is linear as a whole (operands read in place, then copied; caches).
 * Whatever a job has beside its bytes is added: further rows, and products whose operands others
 * read as well. The CPU has a model for each way to it, on the caller's thread and behind a queue,
 * where operands come out of another core's caches.
 */
#ifndef GPU_PLACE_H
#define GPU_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/gpu.h"

enum { PLACE_SIZES = 11, PLACE_ROW_LENGTHS = 2 };

extern const uint64_t place_bytes[PLACE_SIZES];             /* of both operands; ascending */
extern const uint64_t place_row_lengths[PLACE_ROW_LENGTHS]; /* elements; ascending */

/* Kinds of dot products by accuracy; sums of integers are exact whatever was asked for. */
enum place_kind { PLACE_FAST, PLACE_EXACT, PLACE_KINDS };

enum place_kind place_kind_of(enum dtype dtype, enum accuracy accuracy);

/* One type of elements, fast or exact. */
struct place_cost {
    double row_ns[PLACE_SIZES]; /* of a single row of place_bytes[] bytes */
    /* Of each further row of place_row_lengths[] elements, beside what its bytes take. */
    double further_ns[PLACE_ROW_LENGTHS];
    double term_ns; /* of a product whose operands were read for others */
};

struct place_model {
    struct place_cost cost[DTYPE_COUNT][PLACE_KINDS];
    double unpinned_ns[PLACE_SIZES]; /* so much more, of bytes that do not lie in pinned memory */
};

/* The CPU computes jobs of few products on the thread that brings them, all others behind a
 * queue. */
struct place_cpu {
    const struct place_model *inlined, *queued;
    uint64_t inline_terms; /* as in struct gpu_config */
};

/* Of this type: products of larger elements take longer, by their size or more. */
uint64_t place_inline_terms(uint64_t inline_terms, enum dtype dtype);

/* Makes what was measured usable, whatever noise there was: no time is below zero, and fewer bytes
 * take no longer than more. */
void place_smooth(struct place_model *model);

/* On a device that has nothing else to do. */
double place_time_ns(const struct place_model *model, const struct job_size *size, bool is_pinned);

/* What the job adds to the time of those behind it: what it takes beyond the smallest one, because
 * what waits shares wake-ups and launches. */
double place_load_ns(const struct place_model *model, const struct job_size *size, bool is_pinned);

/* What each byte takes that a row has beyond the largest size. */
double place_byte_ns(const struct place_model *model, const struct place_cost *cost,
                     bool is_pinned);

/* A device that could compute a job. */
struct place_offer {
    const struct place_model *model; /* NULL: cannot */
    double waiting_ns;               /* before it would begin */
};

/* The offer that ends first; of equal ones the first. -1: no device can. */
int place_choose(const struct place_offer *offer, int count, const struct job_size *size,
                 bool is_pinned);

/* The fewest operand bytes of a single row from which on a CUDA device, with nothing waiting
 * anywhere, has done it before the CPU; UINT64_MAX: none. */
uint64_t place_crossover(const struct place_cpu *cpu, const struct place_model *cuda,
                         const struct job_size *kind, bool is_pinned);

#endif
