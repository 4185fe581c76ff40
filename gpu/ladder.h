/* ladder.h - rungs of the kernel ladder on host operands: run, bounded, timed.
 *
 * Door: ladder_open() a machine, the emulation or a CUDA device; ladder_run() one sum by a rung,
 * ladder_measure() the time of one. A machine belongs to one thread, the lab's. On a device it has
 * a stream of the lowest priority, so that waiting blocks of the service go first. An ERR_DEVICE is
 * final for the device.
 */
#ifndef GPU_LADDER_H
#define GPU_LADDER_H

#include <stdint.h>

#include "gpu/kernels/ladder.h"
#include "proto/tensor.h"
#include "proto/value.h"

struct ladder; /* one machine; layout in ladder.c */

enum {
    LADDER_EMULATED = -1,
    LADDER_RUNS_MAX = 512, /* of one measurement */
};

/* index: of a CUDA device, or LADDER_EMULATED. ERR_NO_DEVICE: this build has no CUDA. ERR_NOMEM,
 * ERR_DEVICE. */
enum error ladder_open(struct ladder **ret, int index, struct problem *problem);
void ladder_close(struct ladder *ladder); /* takes NULL */

struct ladder_ask {
    const struct rung *rung;
    enum dtype dtype;  /* DTYPE_FLOAT32, DTYPE_FLOAT64 */
    const void *a, *b; /* [n], in host memory, element-aligned */
    uint64_t n;
    uint32_t threads; /* of a block; 0: the rung's choice */
    uint64_t seed;    /* emulated: of the order of blocks and threads; measured: of the operands */
};

struct ladder_answer {
    struct dot_value value; /* sum: the rung's, as float64; the rest as ladder_settle() says */
    struct rung_takes takes;
    int64_t copy_in_ns, compute_ns, copy_out_ns; /* by events; emulated: by the clock, no copies */
};

/* One sum that rung_check() let pass. Of the lab's own rungs lanes run in lockstep when emulated,
 * so that they go wrong as on a device. ERR_NOMEM, ERR_DEVICE. */
enum error ladder_run(struct ladder *ladder, const struct ladder_ask *ask,
                      struct ladder_answer *ret, struct problem *problem);

struct ladder_time {
    uint32_t runs;
    double median_us, least_us; /* of clearing and launches, operands in place, cold L2 */
};

/* Runs it on n >= 1 operands drawn from the seed (a and b are not read) until budget_ns are over or
 * runs_max, at most LADDER_RUNS_MAX, reached; once at least. ERR_NOMEM, ERR_DEVICE. */
enum error ladder_measure(struct ladder *ladder, const struct ladder_ask *ask, int64_t budget_ns,
                          uint32_t runs_max, struct ladder_time *ret, struct problem *problem);

/* What measuring is made of, for whoever times something beside the ladder: operands, uniform in
 * [-1, 1), the same for the same seed; and the times of at least one run, which it sorts. */
void ladder_fill(void *data, enum dtype dtype, uint64_t count, uint64_t seed);
struct ladder_time ladder_time_of(double *us, uint32_t runs);

/* value->sum is what a rung of this depth gave for host operands (of exact the whole value but
 * sum_abs): sets sum_abs, error_bound, proved, and flags. A sum that should not be finite and is
 * not is right; one that overflowed on the way, and any of the lab's own rungs, has an infinite
 * bound. Every NaN becomes the same one. */
void ladder_settle(const struct ladder_ask *ask, const struct rung_takes *takes,
                   struct dot_value *value);

#endif
