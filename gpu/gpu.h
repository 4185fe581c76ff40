/* gpu.h - the room's door: devices, memory for operands, jobs and their completion. Plain C.
 *
 * Door: gpu_open() once; gpu_buffers() for operands; job_plan() to describe the work; gpu_place()
 * to choose a device; then gpu_compute() on the caller's own thread, or gpu_submit() to the
 * device's bounded queue. One worker thread a device takes what is waiting and computes it as one
 * batch. Device 0 is the CPU and is always there; CUDA devices follow in the driver's order.
 * All functions are safe from any thread after gpu_open().
 */
#ifndef GPU_GPU_H
#define GPU_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/buffer.h"
#include "proto/tensor.h"
#include "proto/value.h"

struct gpu;
struct job;
struct partial;

struct gpu_config {
    bool cuda;               /* open CUDA devices where there are some */
    size_t budget_bytes;     /* all operand buffers together */
    size_t pinned_bytes;     /* the part of it that is pinned at start, where CUDA is */
    size_t device_bytes;     /* staging memory on each CUDA device */
    uint32_t queue_jobs;     /* capacity of each device's queue, in jobs */
    uint64_t queue_bytes;    /* and in operand bytes: either bound refuses */
    uint32_t batch_jobs;     /* most jobs in one launch */
    uint64_t inline_terms;   /* a CPU job of at most so many products needs no hand-off; of 8-byte
                                elements half as many, of 16-byte ones a quarter */
    uint64_t cuda_min_bytes; /* PLACE_AUTO: jobs of so many bytes go to CUDA; 0: as measured */
    uint32_t client_share_percent; /* of either, for jobs of one client; 0 or 100: all */
    /* Called once by the worker of each device that is lost, NULL: nobody. Its jobs are computed on
     * the CPU from then on and new ones refused (ERR_NO_DEVICE). Must not block. */
    void (*device_lost)(void *context);
    void *context;
};

/* Opens every device and starts its worker. A CUDA device that does not open is left out and
 * counted in gpu_devices_failed(); only no memory or no CPU is an error. */
enum error gpu_open(struct gpu **ret, const struct gpu_config *config, struct problem *problem);

/* Refuses new jobs (ERR_CLOSED) and returns when everything accepted has completed. */
void gpu_drain(struct gpu *gpu);

/* Drains, stops the workers, frees everything. All buffers must be back. Takes NULL. */
void gpu_close(struct gpu *gpu);

/* Memory for operands, pinned where it can be; within budget_bytes (ERR_NOMEM). */
const struct buffer_source *gpu_buffers(struct gpu *gpu);

/* Whether a device gets at operands there as quickly as at any: the CPU does, CUDA does in pinned
 * memory. */
bool gpu_is_near(struct gpu *gpu, int device, const void *operands);

struct gpu_memory {
    uint64_t budget_bytes, used_bytes, pinned_bytes, pinned_used_bytes;
};
struct gpu_memory gpu_memory(struct gpu *gpu);

/* What a device is; fixed since gpu_open(). */
struct device_info {
    char id[16];                   /* "cpu", "cuda:0" */
    char name[LIMIT_NAME_BYTES];   /* "AMD EPYC 9645", "NVIDIA H200" */
    char kernel[LIMIT_NAME_BYTES]; /* what computes there: "cpu-avx512", "grid-atomic" */
    bool is_cuda;
    uint64_t memory_bytes;    /* of the device; 0 for the CPU */
    uint32_t multiprocessors; /* SMs, or CPU cores in the affinity mask */
    uint32_t capability;      /* 90 for sm_90; 0 for the CPU */
};

/* Batches are told apart by their number of jobs: of up to 1, 2, 4, ... 65536, and more. */
enum { GPU_BATCH_BOUNDS = 17 };

/* What it has to do and has done. */
struct device_counts {
    uint32_t queued_jobs; /* now waiting */
    uint64_t queued_bytes;
    /* since start */
    uint64_t jobs_total, batches_total; /* computed; a long job is a batch of its own */
    uint64_t batches_by_size[GPU_BATCH_BOUNDS + 1];
    uint64_t slices_total;    /* of long jobs */
    uint64_t rejected_total;  /* refused with ERR_BUSY */
    uint64_t unfair_total;    /* of those: for the client's share alone */
    uint64_t expired_total;   /* dropped with ERR_DEADLINE, before or between slices */
    uint64_t cancelled_total; /* dropped with ERR_CLOSED */
    uint64_t rerouted_total;  /* computed on the CPU, for the device had failed */
};

int gpu_device_count(struct gpu *gpu);
struct device_info gpu_device_info(struct gpu *gpu, int device);
struct device_counts gpu_device_counts(struct gpu *gpu, int device); /* takes the queue's lock */

/* Why there is no CUDA device to open; NULL when there is one, or when none is wanted. */
const char *gpu_cuda_absent(struct gpu *gpu);

/* How many devices did not open, were left out or lost since; *problem gets the last one's text if
 * any. */
int gpu_devices_failed(struct gpu *gpu, struct problem *problem);

/* Takes a CUDA device out of service as one that is lost, but tells nobody: device_lost is not
 * called. It has no job. */
void gpu_leave_out(struct gpu *gpu, int device, const struct problem *problem);

/* When the batch or slice that a worker has been computing for longest began, on CLOCK_MONOTONIC;
 * 0: none is at work. Some milliseconds are usual: what is much older hangs in the device. */
int64_t gpu_busy_since_ns(struct gpu *gpu);

/* Computes known answers on every device through its queue and compares; also warms each up. A CUDA
 * device that is wrong, or cannot, is left out; only the CPU's failure is an error. Before the
 * first job. */
enum error gpu_self_test(struct gpu *gpu, struct problem *problem);

/* Finds out how quick each device is, for PLACE_AUTO, once, after the self-test. Where there is
 * nothing to choose from, or cuda_min_bytes chooses, it does nothing; else it takes up to a quarter
 * of a second for the CPU on the caller's thread, and as much for its queue and for that of each
 * sort of CUDA devices. One that fails meanwhile is not chosen. */
void gpu_measure(struct gpu *gpu);

/* What it found of dot products of one type and accuracy on a device. */
struct device_speed {
    uint64_t fixed_ns; /* of one of few elements, the way through the queue and back included */
    uint64_t row_ns;   /* of each further row of 256 elements, beside what its bytes take */
    uint64_t mb_s;     /* operands of a long row, from pinned memory where there is some */
    uint64_t unpinned_mb_s; /* and from other memory */
    uint64_t products_us;   /* of operands that are there already */
    /* Operand bytes of a single row from which PLACE_AUTO prefers this CUDA device to the CPU when
     * nothing waits, pinned or not; UINT64_MAX: never, or this is the CPU. */
    uint64_t from_bytes, from_unpinned_bytes;
};

/* False: not measured. Integers are always exact. */
bool gpu_device_speed(struct gpu *gpu, int device, enum dtype dtype, enum accuracy accuracy,
                      struct device_speed *ret);

/* Part of a job: rows[0] x rows[1] dot products of n elements. Row (i, j) reads a + i*stride_a[0] +
 * j*stride_a[1] (strides in elements, 0 where the operand broadcasts) and gives value first +
 * i*rows[1] + j; of complex operands the two values first + 2*(i*rows[1] + j) and the next. */
struct dot_task {
    size_t a, b; /* bytes from the job's base; element-aligned */
    uint64_t n;
    uint64_t rows[2];
    uint64_t stride_a[2], stride_b[2];
    size_t first;
    enum dtype dtype;
};

/* Where completed jobs go. A worker calls complete() once for each port that has jobs in a batch,
 * with those jobs chained by `next`, so that one wake-up serves many. Must not block. */
struct job_port {
    void (*complete)(struct job_port *port, struct job *first);
};

/* Stage times of one job; ns on CLOCK_MONOTONIC. */
struct job_times {
    int64_t started_ns;                          /* queued until then */
    int64_t copy_in_ns, compute_ns, copy_out_ns; /* durations; they end at finished_ns */
    int64_t finished_ns;
};

/* Owned by the submitter; the device's from a successful gpu_submit() until complete(), or the
 * lab's from lab_submit(). */
struct job {
    /* set by the submitter, fixed while the device has the job */
    const void *base;      /* the buffer's data; element offsets count from here */
    size_t bytes;          /* of it that hold operands */
    struct dot_task *task; /* [task_count], job_plan()'s; freed by job_fini() */
    size_t task_count;
    struct dot_value *value; /* [value_count], job_plan()'s; freed by job_fini() */
    size_t value_count;      /* twice the results of complex pairs */
    uint64_t term_count;     /* products in all */
    enum accuracy accuracy;  /* ACCURACY_EXACT, else fast; integer operands are always exact */
    enum dtype result_dtype; /* of exact results: a real or complex float as the operands are;
                                  of integer operands DTYPE_INT64 or a real float */
    bool conjugate;          /* a's elements; no effect on real ones */
    bool wants_abs;          /* exact jobs: sum_abs matters; else it may stay 0 */
    struct partial *partial; /* partial.h; NULL: none. Else the job is one row of the same dtype,
                                accuracy, conjugate and wants_abs; it is added and gives no value */
    uint64_t client;         /* who asks, for fairness; jobs of one client have the same number; 0:
                                nobody in particular, who has no share to keep to */
    int64_t deadline_ns;     /* CLOCK_MONOTONIC; 0: none. Past it: ERR_DEADLINE, not computed */
    bool cancelled;          /* __atomic; job_cancel()'s */
    struct job_port *port;
    bool is_followed; /* the submitter calls gpu_begin() soon: a worker that sleeps need not wake up
                         for this job alone */
    enum error (*run)(struct job *job); /* the lab's jobs (lab.h): instead of dot products, on its
                                           thread, with the error that the job gets; else NULL */
    int64_t load_ns;       /* gpu_submit()'s: what it adds to the time of those behind it */
    struct worker *worker; /* likewise: whose it is, or was; NULL: it was never submitted */
    /* set by the device before complete() */
    enum error error;    /* ERR_OK: value[] holds the results */
    int device;          /* which computed it; of the lab's jobs, run() says so */
    bool is_rerouted;    /* the device that it was queued for had failed, and the CPU did */
    uint32_t batch_size; /* jobs in its launch; 1 for a long job, which has several */
    struct job_times times;
    /* links of the queue, then of the completed chain */
    struct job *next;
    struct job **link; /* the queue's, under its lock: what points to the job; NULL: in no lane */
    struct dot_value value_one[2]; /* value and task of the common case: no allocation */
    struct dot_task task_one;
};

/* Describes the dot products of pairs[0..count), each broadcast, in the order of their results.
 * Fills task, value and counts of a zeroed job. ERR_NOMEM: the job is still empty. */
enum error job_plan(struct job *job, const struct tensor_pair *pairs, size_t count);
void job_fini(struct job *job); /* frees task and value; the operands are the caller's */

/* What its time depends on, of a job that is not planned yet. */
struct job_size {
    const void *base; /* as in struct job */
    size_t bytes;
    uint64_t term_count, row_count;
    enum dtype dtype;
    enum accuracy accuracy;
};

/* Chooses a device for a job; index -1: any CUDA device will do. size: NULL will do unless it is
 * PLACE_AUTO. ERR_NO_DEVICE when the wanted one is not open. */
enum error gpu_place(struct gpu *gpu, enum placement placement, int index,
                     const struct job_size *size, int *ret_device);

/* What the job would take on a device that is idle, by what gpu_measure() found, which it must
 * have. */
double gpu_expected_ns(struct gpu *gpu, int device, const struct job_size *size);

/* Jobs that the device has accepted and that have not completed. */
uint32_t gpu_load_jobs(struct gpu *gpu, int device);

/* True when gpu_compute() is the quicker way: a small job placed on the CPU. */
bool gpu_is_inline(struct gpu *gpu, int device, enum dtype dtype, uint64_t term_count);

/* Computes now, on the caller's thread, on the CPU. Sets everything that a worker would. */
void gpu_compute(struct gpu *gpu, struct job *job);

/* As gpu_compute(), for a job whose one row the caller's thread has added to partial already:
 * rounds it. partial is used up. */
void gpu_settle(struct gpu *gpu, struct job *job, struct partial *partial);

/* ERR_BUSY: the queue is full in jobs or bytes. ERR_CLOSED: draining. On failure the job is still
 * the caller's and complete() is not called. */
enum error gpu_submit(struct gpu *gpu, int device, struct job *job);

/* Wakes the device's worker for what was submitted as followed: two calls of the system for many
 * jobs, instead of two for each. */
void gpu_begin(struct gpu *gpu, int device);

/* For how long to look for the job that was submitted, before sleeping: if it is the device's only
 * one it is back before a thread that sleeps would be awake. 0: it has others, or no core is left
 * for that. */
int64_t gpu_look_ns(struct gpu *gpu, int device);

/* Nobody wants the job any more. One that waits leaves its queue, where others may take its place,
 * and completes before this returns, on the caller's thread; one that a device has in hand ends
 * when that may, and need not be computed any further. Both with ERR_CLOSED, or ERR_DEADLINE when
 * it is late. The lab's jobs too. For the submitter, of any job that is not freed: others are left
 * alone. */
void job_cancel(struct job *job);

#endif
