/* ladder.h - the kernel ladder: its rungs, what each takes for n products, and how one is launched.
 *
 * Door: ladder_rows() is the only list of rungs: GET /v1/kernels, the kernel option, the lab,
 * tests, measurements and README.md read it. rung_check() says whether a rung computes a sum,
 * rung_takes() what that takes, rung_cuda() and rung_emulated() launch it (gpu/ladder.h chooses),
 * rung_value() reads what it left. Plain arithmetic but for the launches: any thread. Element
 * types are DTYPE_FLOAT32 and DTYPE_FLOAT64.
 */
#ifndef GPU_KERNELS_LADDER_H
#define GPU_KERNELS_LADDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/kernels/grid.h"

#ifdef __cplusplus
extern "C" {
#endif

struct emu_trace;

enum {
    RUNG_THREADS_MAX = 1024,   /* of a block */
    RUNG_THREADS = 256,        /* of a block, where the caller leaves it to the rung */
    RUNG_PARTIALS = 1024,      /* of two-pass: most blocks of its first pass */
    RUNG_RESULT_BYTES = 64,    /* holds any rung's result */
    RUNG_SCRATCH_BYTES = 8192, /* and what it needs besides */
};

/* What the last bits of a rung's sum depend on. */
enum rung_order {
    RUNG_ORDER_FIXED, /* on n and the block size: the same bits in every run, on every device */
    RUNG_ORDER_ANY,   /* on the order in which blocks or threads arrive */
    RUNG_ORDER_MATTERS_NOT /* on nothing: the sum is exact and rounded once */
};
const char *rung_order_name(enum rung_order order); /* "fixed", "any", "none matters" */

/* How a device is filled, for the rungs whose grid follows it; [DTYPE_FLOAT32, _FLOAT64]. */
struct rung_machine {
    uint32_t grid_capacity[2]; /* blocks of grid-atomic that it holds at once */
    struct exact_shape exact[2];
};

/* An H200's, where no device is asked. */
extern const struct rung_machine rung_machine_usual;

/* Of the current device, whose kernels are made ready; of the emulation. Return a cudaError_t. */
int cuda_machine(struct rung_machine *ret); /* only in builds with CUDA */
int emu_machine(struct rung_machine *ret);

/* What one sum takes. Of exact, barriers and atomics are the most there can be, for they follow the
 * data. */
struct rung_takes {
    uint32_t blocks, threads; /* of the (first) launch; threads of a block */
    uint32_t launches;        /* kernels, one after the other; none where there is nothing to sum */
    uint64_t steps;           /* additions that one thread makes in a row, at most, of all launches;
                                 those of atomics not counted */
    uint64_t barriers;        /* that a block waits at, of all launches */
    uint64_t atomics;         /* of all blocks */
    uint64_t depth;           /* roundings that a product passes, its own not counted; exact: 0 */
};

struct rung {
    const char *name;       /* "tree" */
    const char *idea;       /* a sentence: what it does */
    const char *point;      /* a phrase: what is to be learnt from it */
    const char *source;     /* "gpu/kernels/tree.cu" */
    const char *arithmetic; /* a phrase: what is rounded */
    enum rung_order order;
    uint32_t max_n;     /* most products, and not more than a block has threads; 0: no such limit */
    bool is_lab_only;   /* its answer is wrong on purpose */
    bool is_float64;    /* leaves a float64, whatever the elements */
    bool is_exact;      /* leaves a struct dot_value, settled but for sum_abs */
    bool takes_warps;   /* blocks of whole warps only */
    bool chooses_block; /* its block size is its own: what the caller wants is not looked at */
    bool is_atomic; /* sums by atomicAdd in global memory, which in float32 takes subnormal numbers
                           for zero (PTX ISA, atom) */
    void (*takes)(const struct rung_machine *machine, enum dtype dtype, uint64_t n,
                  uint32_t threads, struct rung_takes *ret); /* behind rung_takes() */
};

/* From the first rung to the last. */
const struct rung *ladder_rows(size_t *ret_count);
const struct rung *ladder_find(const char *name); /* NULL: there is none */
const char *ladder_list(void);                    /* "race, serial, ...": for details of problems */

/* Whether the rung computes n products of dtype in blocks of so many threads (0: its own choice).
 * ERR_DTYPE; ERR_VALUE: the block; ERR_KERNEL: n is over the limit, which is in the problem. */
enum error rung_check(const struct rung *rung, enum dtype dtype, uint64_t n, uint32_t threads,
                      struct problem *problem);

/* Of a sum that rung_check() let pass. machine NULL: the usual one. */
void rung_takes(const struct rung *rung, const struct rung_machine *machine, enum dtype dtype,
                uint64_t n, uint32_t threads, struct rung_takes *ret);

/* The threads of a block that a rung chooses for n: 256; of one block the next power of two. */
uint32_t rung_threads(const struct rung *rung, uint64_t n);

/* One sum that rung_check() let pass; all memory is the machine's. */
struct rung_call {
    const struct rung_machine *machine; /* where it runs; NULL: the usual one */
    enum dtype dtype;
    const void *a, *b; /* [n], element-aligned */
    uint64_t n;
    uint32_t threads; /* of a block; 0: the rung's choice */
    void *result;     /* RUNG_RESULT_BYTES, 16-byte aligned; the launch clears what must be zero */
    void *scratch;    /* RUNG_SCRATCH_BYTES, likewise */
    void *stream;     /* cudaStream_t; unused when emulated */
    /* Only emulated: as in struct emu_grid (gpu/emu/emu.h). A stopped kernel leaves result as it
     * was at that moment. */
    uint64_t seed;
    bool is_lockstep;
    struct emu_trace *trace; /* of all launches; NULL: not recorded */
};

/* Queues the rung on the call's stream. Returns a cudaError_t. Only in builds with CUDA. */
int rung_cuda(const struct rung *rung, const struct rung_call *call);

/* Runs it in the emulation and returns when it is done. False: stopped by a fault, with which the
 * launch's trace ends. */
bool rung_emulated(const struct rung *rung, const struct rung_call *call);

/* What a finished rung left in call->result, which lies in the host's memory now: a number of the
 * element type, or a float64 if rung->is_float64. */
double rung_value(const struct rung *rung, enum dtype dtype, const void *result);

#ifdef __cplusplus
}
#endif

#endif
