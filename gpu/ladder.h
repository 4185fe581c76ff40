/* ladder.h - rungs of the kernel ladder on host operands: run, bounded, timed.
 *
 * Door: ladder_open() a machine, the emulation or a CUDA device; ladder_run() one sum by a rung,
 * ladder_measure() the time of one. A machine belongs to one thread, the lab's; it has a stream of
 * low priority, so that the service's own kernels go first. A CUDA error is final for the device.
 */
#ifndef GPU_LADDER_H
#define GPU_LADDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/kernels/ladder.h"
#include "proto/tensor.h"
#include "proto/value.h"

struct ladder; /* one machine; layout in ladder.c */

enum { LADDER_EMULATED = -1 };

/* index: of a CUDA device, or LADDER_EMULATED. ERR_UNSUPPORTED: this build has no such machine.
 * ERR_DEVICE, ERR_NOMEM. */
enum error ladder_open(struct ladder **ret, int index, struct problem *problem);
void ladder_close(struct ladder *ladder); /* takes NULL */

bool ladder_has_emulation(void);
const struct rung_machine *ladder_machine(const struct ladder *ladder);

struct ladder_ask {
    const struct rung *rung;
    enum dtype dtype;  /* DTYPE_FLOAT32, DTYPE_FLOAT64 */
    const void *a, *b; /* [n], in host memory, element-aligned */
    uint64_t n;
    uint32_t threads; /* of a block; 0: the rung's choice */
    uint64_t seed;    /* emulated: of the order of blocks and warps; 0: as it is set */
};

struct ladder_answer {
    struct dot_value value; /* sum: the rung's, as float64; error_bound proved, infinity of rungs of
                               the lab only; sum_abs, flags */
    struct rung_takes takes;
    int64_t copy_in_ns, compute_ns, copy_out_ns; /* by events; emulated: by the clock, no copies */
};

/* One sum that rung_check() let pass. ERR_NOMEM, ERR_DEVICE. */
enum error ladder_run(struct ladder *ladder, const struct ladder_ask *ask,
                      struct ladder_answer *ret, struct problem *problem);

/* The proved bound, flags and sum_abs of a rung's sum over host operands: value->sum is set. */
void ladder_settle(const struct ladder_ask *ask, const struct rung_takes *takes,
                   struct dot_value *value);

struct ladder_time {
    uint32_t runs;
    double median_us, least_us; /* of the launches alone, operands in place */
};

/* Runs the rung again and again on operands of its own, drawn from ask->seed (a and b are not
 * read), until budget_ns are spent; at least once, at most runs_max times. */
enum error ladder_measure(struct ladder *ladder, const struct ladder_ask *ask, int64_t budget_ns,
                          uint32_t runs_max, struct ladder_time *ret, struct problem *problem);

#endif
