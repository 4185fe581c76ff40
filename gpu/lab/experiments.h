/* experiments.h - what the lab can show: each experiment's question, its answer, and who asks.
 *
 * Door: X_settle() checks a question and fills in its defaults, on any thread, so that a refusal
 * needs no queue; lab_X() answers a settled one on the lab's thread; X_fini() frees an answer's
 * arrays and takes a zeroed one. Questions borrow their operands. On failure the answer stays
 * untouched.
 * settle: ERR_VALUE, ERR_DTYPE, ERR_KERNEL, ERR_TOO_LARGE, with pointer and limit.
 * run: ERR_NOMEM, ERR_DEVICE, ERR_NO_DEVICE; ERR_CLOSED, ERR_DEADLINE: given up between two sums,
 * for the job was cancelled or late. A kernel that went wrong is an answer, not a failure.
 *
 * reduce, barrier and the reads of shift are watched, hence always emulated (gpu/emu): device 0.
 */
#ifndef GPU_LAB_EXPERIMENTS_H
#define GPU_LAB_EXPERIMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/lab.h"

/* --- what a watched kernel did wrong --- */

enum lab_fault_kind {
    LAB_FAULT_RACE,      /* two threads, one a write, nothing between them */
    LAB_FAULT_BARRIER,   /* not reached by all */
    LAB_FAULT_UNWRITTEN, /* read before anybody wrote it */
    LAB_FAULT_OUTSIDE,   /* beyond every array: a kernel's own bug */
    LAB_FAULT_COUNT
};
const char *
lab_fault_name(enum lab_fault_kind kind); /* "race", "barrier", "unwritten", "outside" */

struct lab_fault {
    enum lab_fault_kind kind;
    char text[LIMIT_DETAIL_BYTES]; /* a sentence */
    uint32_t block;
    uint32_t thread[2]; /* of a barrier: one that waits, one that does not come */
    uint32_t thread_count;
    int64_t cell; /* index in the array; -1 where there is none */
};

enum { LAB_FAULTS = 16 }; /* that an answer describes */

struct lab_faults {
    struct lab_fault *fault; /* [count], the first ones */
    uint32_t count, total;
};

/* --- reduce: the tree on live numbers --- */

struct lab_scheme {
    const char *name;   /* "stride" */
    const char *kernel; /* the rung: "tree" */
};
const struct lab_scheme *lab_schemes(size_t *ret_count);
const struct lab_scheme *lab_scheme_find(const char *name); /* NULL: there is none */

struct lab_reduce_ask {
    const struct lab_scheme *scheme;
    enum dtype dtype;  /* DTYPE_FLOAT32 or DTYPE_FLOAT64 */
    const void *a, *b; /* n elements of it */
    uint64_t n;        /* 1 to LIMIT_LAB_TRACED */
    uint32_t block;    /* threads; 0: settle chooses */
    uint64_t seed;     /* of the order of blocks and warps */
};

enum lab_what { LAB_LOAD, LAB_ADD, LAB_READ, LAB_WHAT_COUNT };
const char *lab_what_name(enum lab_what what); /* "load", "add", "read" */

struct lab_access {
    uint32_t thread, cell;
};

/* What one block did between two barriers; threads and accesses in ascending order of threads. */
struct lab_step {
    uint32_t block, step; /* step counts from 0 in each block */
    enum lab_what what;
    uint32_t cell_count, active_count, read_count, write_count;
    const double *shared;    /* [cell_count], after the barrier that ends the step */
    const bool *is_written;  /* [cell_count]; false: nobody has written it, shared[] says nothing */
    const uint32_t *active;  /* [active_count], the threads that touched shared memory */
    uint32_t warps;          /* of the block */
    uint32_t active_warps;   /* bit w: warp w has an active thread */
    uint32_t bank_conflicts; /* extra turns of the banks */
    const struct lab_access *reads, *writes;
};

struct lab_reduce {
    uint32_t blocks;
    double value;           /* of the dtype */
    struct dot_value exact; /* rounded to float64 */
    uint32_t steps;         /* additions in a row that a block takes: the rung's own count */
    uint64_t barriers, atomics, bank_conflicts, idle_warps, active_threads; /* all steps together */
    struct lab_step *step;                                                  /* [step_count] */
    size_t step_count;
    bool is_cut; /* the trace was too long: step[] is its beginning */
    struct lab_faults faults;
    void *memory; /* holds what steps point to */
};

enum error lab_reduce_settle(struct lab_reduce_ask *ask, struct problem *problem);
enum error lab_reduce(struct lab *lab, const struct lab_reduce_ask *ask, struct lab_reduce *ret,
                      struct problem *problem);
void lab_reduce_fini(struct lab_reduce *reduce);

/* --- race: every thread adds 1 to one variable, plainly --- */

struct lab_race_ask {
    int device;
    uint64_t n;    /* 1 to LIMIT_LAB_RACE, emulated to LIMIT_LAB_RACE_EMULATED */
    uint32_t runs; /* 1 to LIMIT_LAB_RUNS; 0: settle chooses */
    uint64_t seed; /* emulated: of the order of blocks and warps, another for each run */
};

struct lab_race {
    double value[LIMIT_LAB_RUNS]; /* float32; n of them would be right */
    uint32_t runs;
    double atomic;            /* the same by thread-atomic */
    struct lab_faults faults; /* of a small emulated run */
};

enum error lab_race_settle(struct lab_race_ask *ask, struct problem *problem);
enum error lab_race(struct lab *lab, const struct lab_race_ask *ask, struct lab_race *ret,
                    struct problem *problem);
void lab_race_fini(struct lab_race *race);

/* --- shift: every cell takes its right neighbour's value, the last one its own --- */

struct lab_shift_ask {
    int device;
    const double *values; /* [n]; NULL: 0, 1, 2, ... */
    uint64_t n;           /* 1 to LIMIT_LAB_BLOCK, one block */
    uint32_t barriers;    /* 0, 1 (after the read) or 2 (and after the write) */
    uint64_t seed;
};

struct lab_read {
    uint32_t thread, cell;
    double value, expected;
    bool has_raced; /* with another thread's write */
};

struct lab_shift {
    uint32_t n;
    double *expected, *result; /* [n] */
    uint32_t *wrong;           /* [wrong_count], ascending */
    uint32_t wrong_count;
    struct lab_read *read; /* [read_count], emulated: two a thread, in order of threads: its
                              neighbour's cell, and the one that it hands out in the end */
    uint32_t read_count;
    struct lab_faults faults;
};

enum error lab_shift_settle(struct lab_shift_ask *ask, struct problem *problem);
enum error lab_shift(struct lab *lab, const struct lab_shift_ask *ask, struct lab_shift *ret,
                     struct problem *problem);
void lab_shift_fini(struct lab_shift *shift);

/* --- barrier: the tree with its barrier inside the branch --- */

enum lab_where { LAB_BRANCH, LAB_COMMON, LAB_WHERE_COUNT };
const char *lab_where_name(enum lab_where where); /* "branch", "common" */

struct lab_barrier_ask {
    uint64_t n; /* 2 to LIMIT_LAB_BLOCK, one block that sums n ones */
    enum lab_where where;
    uint64_t seed;
};

struct lab_barrier {
    bool is_stopped; /* then a fault says why, and value is not set */
    double value;
    uint32_t *waiting, *ended; /* threads when it was stopped, ascending */
    uint32_t waiting_count, ended_count;
    struct lab_faults faults;
};

enum error lab_barrier_settle(struct lab_barrier_ask *ask, struct problem *problem);
enum error lab_barrier(struct lab *lab, const struct lab_barrier_ask *ask, struct lab_barrier *ret,
                       struct problem *problem);
void lab_barrier_fini(struct lab_barrier *barrier);

/* --- rounding: one vector, many orders --- */

struct lab_rounding_ask {
    int device;
    enum dtype dtype;  /* DTYPE_FLOAT32 or DTYPE_FLOAT64 */
    const void *a, *b; /* n elements of it */
    uint64_t n;        /* 1 to LIMIT_LAB_ROUNDING */
    uint32_t orders;   /* of atomics, 1 to LIMIT_LAB_ORDERS; 0: settle chooses */
    uint64_t seed;
};

enum lab_how { LAB_SEQUENTIAL, LAB_TREE, LAB_ATOMIC, LAB_HOW_COUNT };
const char *lab_how_name(enum lab_how how); /* "sequential", "tree", "atomic" */

struct lab_sum {
    enum lab_how how;
    const char *kernel; /* the rung; NULL: the CPU's own loop */
    uint64_t order;     /* of atomics: the seed, or on a device the number of the run */
    double value;       /* of the dtype */
    uint64_t ulps;      /* numbers of the dtype from the rounded exact sum to value;
                           UINT64_MAX where one of them is NaN */
    double error;       /* |value - exact|, exactly and then rounded; NaN if value is not finite */
    double bound;       /* that error is proved not to pass */
};

struct lab_rounding {
    struct dot_value exact; /* rounded to the dtype */
    double condition;       /* sum_abs / |exact| */
    double bound;           /* the largest of the sums' */
    struct lab_sum sum[LIMIT_LAB_ORDERS + 2];
    uint32_t sum_count;
    uint32_t distinct; /* different bits among the sums */
};

enum error lab_rounding_settle(struct lab_rounding_ask *ask, struct problem *problem);
enum error lab_rounding(struct lab *lab, const struct lab_rounding_ask *ask,
                        struct lab_rounding *ret, struct problem *problem);

/* --- measure: how long a rung takes here --- */

struct lab_measure_ask {
    int device;
    const char *kernel; /* a rung, or what /v1/dot uses on the device: "fast", "exact" */
    enum dtype dtype;   /* DTYPE_FLOAT32 or DTYPE_FLOAT64 */
    uint64_t n;         /* 1 to LIMIT_LAB_MEASURE, on the CPU LIMIT_LAB_MEASURE_CPU, emulated
                           LIMIT_LAB_MEASURE_EMULATED */
    uint64_t seed;      /* of the operands */
};

struct lab_measure {
    bool is_emulated; /* "fast" and "exact" of device 0 are the CPU's own, not emulated */
    uint32_t runs;
    double time_us, time_us_min; /* median, least */
    double gb_s;                 /* operand bytes by the median, 10^9 a second */
    uint32_t max_time_ms;        /* of running: then no further run is begun */
};

enum error lab_measure_settle(struct lab_measure_ask *ask, struct problem *problem);
enum error lab_measure(struct lab *lab, const struct lab_measure_ask *ask, struct lab_measure *ret,
                       struct problem *problem);

#endif
