/* dot.c - a job of /v1/dot by a rung, row after row (see lab.h). */
#include <inttypes.h>

#include "gpu/lab/machine.h"

/* --- what may be asked --- */

static uint64_t rows_of(const struct dot_task *task)
{
    return task->rows[0] * task->rows[1];
}

static enum error too_much(const struct rung *rung, const char *what, uint64_t count,
                           uint64_t limit, struct problem *problem)
{
    (void)problem_set(problem, ERR_TOO_LARGE,
                      "%" PRIu64 " %s; kernel %s is run for at most %" PRIu64 " there", count, what,
                      rung->name, limit);
    return problem_limit(problem, limit, NULL);
}

static enum error check_sizes(const struct rung *rung, int device, const struct job *job,
                              struct problem *problem)
{
    const uint64_t limit = device == 0 ? LIMIT_LAB_DOT_EMULATED : LIMIT_LAB_DOT;
    if (job->term_count > limit)
        return too_much(rung, "products", job->term_count, limit, problem);
    if (job->value_count > LIMIT_LAB_ROWS)
        return too_much(rung, "results", job->value_count, LIMIT_LAB_ROWS, problem);
    return ERR_OK;
}

enum error lab_dot_check(const struct rung *rung, int device, const struct job *job,
                         struct problem *problem)
{
    if (rung->is_lab_only)
        return problem_set(problem, ERR_KERNEL,
                           "kernel %s is wrong on purpose; POST /v1/lab/%s shows what it does",
                           rung->name, rung->name);
    enum error error = ERR_OK;
    for (size_t i = 0; error == ERR_OK && i < job->task_count; i++)
        error = rung_check(rung, job->task[i].dtype, job->task[i].n, 0, problem);
    return error == ERR_OK ? check_sizes(rung, device, job, problem) : error;
}

/* --- computing --- */

/* What is computed now. */
struct rows {
    struct lab *lab;
    const struct rung *rung;
    int device;
    struct job *job;
};

static enum error run_row(const struct rows *rows, const struct dot_task *task, uint64_t row,
                          struct problem *problem)
{
    const uint64_t i = row / task->rows[1], j = row % task->rows[1], size = dtype_size(task->dtype);
    const char *base = rows->job->base;
    const struct ladder_ask ask = {
        .rung = rows->rung,
        .dtype = task->dtype,
        .a = base + task->a + (i * task->stride_a[0] + j * task->stride_a[1]) * size,
        .b = base + task->b + (i * task->stride_b[0] + j * task->stride_b[1]) * size,
        .n = task->n,
    };
    struct ladder_answer answer;
    enum error error = machine_run(rows->lab, rows->device, &ask, &answer, problem);
    if (error != ERR_OK)
        return error;
    rows->job->value[task->first + row] = answer.value;
    rows->job->times.copy_in_ns += answer.copy_in_ns;
    rows->job->times.copy_out_ns += answer.copy_out_ns;
    return ERR_OK;
}

static enum error run_task(const struct rows *rows, const struct dot_task *task,
                           struct problem *problem)
{
    enum error error = ERR_OK;
    for (uint64_t row = 0; error == ERR_OK && row < rows_of(task); row++)
        error = run_row(rows, task, row, problem);
    return error;
}

enum error lab_dot(struct lab *lab, const struct rung *rung, int device, struct job *job,
                   struct problem *problem)
{
    const struct rows rows = {lab, rung, device, job};
    enum error error = ERR_OK;
    job->device = device;
    for (size_t i = 0; error == ERR_OK && i < job->task_count; i++)
        error = run_task(&rows, &job->task[i], problem);
    return error;
}
