/* backend_cpu.c - the device that is always there (see backend.h).
 *
 * One core computes one job: the thread that calls. compute() touches nothing that is shared, so
 * that HTTP threads may compute small jobs themselves, all at once.
 */
#include <assert.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "gpu/backend.h"
#include "gpu/bound.h"
#include "gpu/cpu_dot.h"
#include "gpu/exact/sum.h"
#include "gpu/partial.h"

struct backend_device {
    const struct cpu_kernel *kernel; /* fixed after open */
    char name[LIMIT_NAME_BYTES];     /* fixed after open */
    uint32_t cores;                  /* fixed after open; of the affinity mask */
};

static int cpu_count(struct problem *problem)
{
    (void)problem;
    return 1;
}

static uint32_t cores_allowed(void)
{
#ifdef DOTD_FAULTS
    const char *told = getenv("DOTD_CORES"); /* what many cores do is to be tried on few */
    if (told != NULL)
        return (uint32_t)strtoul(told, NULL, 10);
#endif
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1; /* more than 1024 processors */
    return (uint32_t)CPU_COUNT(&set);
}

/* "model name" of /proc/cpuinfo; the machine's type where there is none, as on aarch64. */
static void processor_name(char *ret, size_t size)
{
    struct utsname system;
    (void)snprintf(ret, size, "%.*s", (int)size - 1, uname(&system) == 0 ? system.machine : "cpu");
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (file == NULL)
        return;
    char line[256];
    while (fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        if (colon == NULL || strncmp(line, "model name", 10) != 0)
            continue;
        (void)snprintf(ret, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
        break;
    }
    (void)fclose(file);
}

static enum error cpu_open(struct backend_device **ret, int index, const struct gpu_config *config,
                           struct problem *problem)
{
    (void)config;
    assert(index == 0);
    struct backend_device *device = calloc(1, sizeof *device);
    if (device == NULL)
        return problem_set(problem, ERR_NOMEM, "no memory for the CPU's record");
    (void)cpu_kernels(&device->kernel);
    device->cores = cores_allowed();
    processor_name(device->name, sizeof device->name);
    *ret = device;
    return ERR_OK;
}

static void cpu_close(struct backend_device *device)
{
    free(device);
}

static void cpu_describe(struct backend_device *device, struct device_info *ret)
{
    (void)snprintf(ret->id, sizeof ret->id, "cpu");
    (void)snprintf(ret->name, sizeof ret->name, "%s", device->name);
    (void)snprintf(ret->kernel, sizeof ret->kernel, "%s", device->kernel->name);
    ret->multiprocessors = device->cores;
}

static void row_fast(const struct cpu_kernel *kernel, const struct cpu_row *row,
                     struct dot_value *value)
{
    struct cpu_sum sum[2];
    uint64_t depth = cpu_depth(kernel, row->dtype, row->n);
    const unsigned parts = dtype_part_count(row->dtype);
    cpu_row_dot(kernel, row, sum);
    for (unsigned i = 0; i < parts; i++) {
        value[i].sum = sum[i].sum;
        value[i].sum_abs = sum[i].sum_abs;
    }
    if (parts == 2)
        value_settle_complex(value, row->dtype, row->conjugate, row->a, row->b, row->n, depth);
    else
        value_settle(value, row->dtype, row->a, row->b, row->n, depth);
}

static void row_exact(const struct cpu_kernel *kernel, const struct job *job,
                      const struct cpu_row *row, struct dot_value *value)
{
    struct exact_sum sum;
    exact_sum_init(&sum, kernel, row->dtype, row->conjugate, job->wants_abs);
    exact_sum_add(&sum, row->a, row->b, row->n);
    exact_sum_round(&sum, job->result_dtype, value);
}

static void compute_task(const struct cpu_kernel *kernel, struct job *job,
                         const struct dot_task *task)
{
    bool is_exact = job->accuracy == ACCURACY_EXACT || dtype_is_integer(task->dtype);
    size_t size = dtype_size(task->dtype), values = dtype_part_count(task->dtype);
    struct dot_value *value = job->value + task->first;
    for (uint64_t i = 0; i < task->rows[0]; i++)
        for (uint64_t j = 0; j < task->rows[1]; j++, value += values) {
            uint64_t row_a = i * task->stride_a[0] + j * task->stride_a[1];
            uint64_t row_b = i * task->stride_b[0] + j * task->stride_b[1];
            struct cpu_row row = {
                .dtype = task->dtype,
                .conjugate = job->conjugate,
                .a = (const char *)job->base + task->a + row_a * size,
                .b = (const char *)job->base + task->b + row_b * size,
                .n = task->n,
            };
            if (is_exact)
                row_exact(kernel, job, &row, value);
            else
                row_fast(kernel, &row, value);
        }
}

/* One row, or none. */
static void compute_partial(const struct job *job)
{
    const char *base = job->base;
    for (size_t i = 0; i < job->task_count; i++) {
        const struct dot_task *task = &job->task[i];
        partial_add(job->partial, base + task->a, base + task->b, task->n);
    }
}

static void compute_job(const struct cpu_kernel *kernel, struct job *job)
{
    if (job->partial != NULL) {
        compute_partial(job);
        return;
    }
    for (size_t i = 0; i < job->task_count; i++)
        compute_task(kernel, job, &job->task[i]);
}

static enum error cpu_compute(struct backend_device *device, struct job *first,
                              struct backend_times *ret, struct problem *problem)
{
    (void)problem;
    for (struct job *job = first; job != NULL; job = job->next)
        compute_job(device->kernel, job);
    *ret = (struct backend_times){0};
    return ERR_OK;
}

/* 2^20 products are 0.2 to 3 ms of one core: fast, or exact and far apart. */
const struct backend backend_cpu = {
    .name = "cpu",
    .slice = {.bytes = UINT64_MAX, .terms = 1 << 20},
    .count = cpu_count,
    .open = cpu_open,
    .close = cpu_close,
    .describe = cpu_describe,
    .compute = cpu_compute,
};
