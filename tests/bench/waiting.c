/* waiting.c - how long a small job waits beside long ones, on every device.
 *
 *   bench_waiting [LONG_JOBS [SMALL_JOBS]]
 *
 * LONG_JOBS dot products of 10^8 float32 are kept with the device all the time, while SMALL_JOBS of
 * two elements come one after the other; then the same without the long ones. Times are from
 * submitting to completion, in microseconds.
 */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/clock.h"
#include "gpu/gpu.h"
#include "tests/bench/arguments.h"
#include "tests/bench/port.h"

enum { LONG_MAX_JOBS = 64, LONG_N = 100000000 };

static struct gpu *gpu;
static const float *operands; /* two of LONG_N */

static void job_init(struct job *job, struct port *port, uint64_t n)
{
    const struct shape shape = {1, {n}};
    struct tensor_pair pair = {.a = {DTYPE_FLOAT32, shape, 0},
                               .b = {DTYPE_FLOAT32, shape, n * sizeof *operands}};
    *job = (struct job){
        .base = operands,
        .bytes = 2 * n * sizeof *operands,
        .accuracy = ACCURACY_EXACT,
        .result_dtype = DTYPE_FLOAT32,
        .port = &port->port,
    };
    enum error error = job_plan(job, &pair, 1);
    assert(error == ERR_OK);
}

static void submit(int device, struct job *job)
{
    enum error error = gpu_submit(gpu, device, job);
    assert(error == ERR_OK);
}

static int compare_ns(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return (a > b) - (a < b);
}

/* --- long jobs, from a thread of their own --- */

struct load {
    pthread_t thread;
    int device;
    unsigned jobs;
    bool is_over; /* __atomic */
    uint64_t done;
};

static void *load_main(void *context)
{
    struct load *load = context;
    struct job job[LONG_MAX_JOBS];
    struct port port;
    unsigned flying = load->jobs;
    port_init(&port);
    for (unsigned i = 0; i < load->jobs; i++) {
        job_init(&job[i], &port, LONG_N);
        submit(load->device, &job[i]);
    }
    while (flying > 0) {
        struct job *back = port_wait(&port);
        load->done++;
        if (__atomic_load_n(&load->is_over, __ATOMIC_RELAXED))
            flying--;
        else
            submit(load->device, back);
    }
    return NULL;
}

/* --- small ones --- */

static void measure(int device, unsigned long_jobs, unsigned small_jobs)
{
    struct port port;
    struct job job;
    struct load load = {.device = device, .jobs = long_jobs};
    int64_t *took_ns = calloc(small_jobs, sizeof *took_ns);
    assert(took_ns != NULL);
    port_init(&port);
    job_init(&job, &port, 2);
    int64_t began = clock_ns();
    int failed = pthread_create(&load.thread, NULL, load_main, &load);
    assert(failed == 0);
    for (unsigned i = 0; i < small_jobs; i++) {
        int64_t start = clock_ns();
        submit(device, &job);
        (void)port_wait(&port);
        took_ns[i] = clock_ns() - start;
    }
    __atomic_store_n(&load.is_over, true, __ATOMIC_RELAXED);
    (void)pthread_join(load.thread, NULL);
    double spent_s = (double)(clock_ns() - began) * 1e-9;
    qsort(took_ns, small_jobs, sizeof *took_ns, compare_ns);
    printf("%-8s %4u %10.0f %10.0f %10.0f %10.1f\n", gpu_device_info(gpu, device).id, long_jobs,
           (double)took_ns[small_jobs / 2] * 1e-3,
           (double)took_ns[small_jobs - 1 - small_jobs / 100] * 1e-3,
           (double)took_ns[small_jobs - 1] * 1e-3, (double)load.done * LONG_N * 8e-9 / spent_s);
    free(took_ns);
}

int main(int argc, char **argv)
{
    struct argument told[] = {{"LONG_JOBS", 4, 0, LONG_MAX_JOBS}, {"SMALL_JOBS", 1000, 1, 1e6}};
    arguments_read(argc, argv, told, 2);
    const unsigned long_jobs = (unsigned)told[0].value, small_jobs = (unsigned)told[1].value;
    const struct gpu_config config = {
        .cuda = true,
        .budget_bytes = 1 << 20,
        .device_bytes = 256 << 20,
        .queue_jobs = 1024,
        .queue_bytes = UINT64_MAX,
        .batch_jobs = 1024,
    };
    struct problem problem;
    float *filled = malloc(2 * sizeof *filled * LONG_N);
    if (filled == NULL || gpu_open(&gpu, &config, &problem) != ERR_OK)
        return 1;
    for (size_t i = 0; i < 2 * (size_t)LONG_N; i++)
        filled[i] = (float)(i % 1000) - 499.5F;
    operands = filled;
    printf("device   long     p50 us     p99 us     max us  long GB/s\n");
    for (int device = 0; device < gpu_device_count(gpu); device++) {
        measure(device, 0, small_jobs);
        measure(device, long_jobs, small_jobs);
    }
    gpu_close(gpu);
    free(filled);
    return 0;
}
