/* slice.c - cutting long jobs (see slice.h). */
#include "gpu/slice.h"

#include <assert.h>

enum {
    SMALL_JOBS = 16,   /* of the largest size fill a slice */
    PART_ALIGN = 4096, /* products: the parts of a row begin alike, and fill blocks and pages */
};

double slice_share(const struct slice_limit *limit, uint64_t bytes, uint64_t terms)
{
    return (double)bytes / (double)limit->bytes + (double)terms / (double)limit->terms;
}

bool slice_is_small(const struct slice_limit *limit, const struct job *job)
{
    return job->partial == NULL &&
           slice_share(limit, job->bytes, job->term_count) * SMALL_JOBS <= 1;
}

void slice_begin(struct slice_cursor *cursor, const struct job *job)
{
    *cursor = (struct slice_cursor){.job = job};
}

/* Products of an element pair: a complex one has four. */
static uint64_t weight_of(enum dtype dtype)
{
    return dtype_is_complex(dtype) ? 4 : 1;
}

static uint64_t row_count(const struct dot_task *task)
{
    return task->rows[0] * task->rows[1];
}

/* Elements of both operands that `count` rows of an axis read, each row of `inner` elements. */
static uint64_t span(const struct dot_task *task, int axis, uint64_t count, uint64_t inner)
{
    return (count - 1) * (task->stride_a[axis] + task->stride_b[axis]) + inner;
}

/* As many rows of an axis as fit, at most `most`: bytes and products grow by the same with every
 * further row. */
static uint64_t rows_that_fit(const struct slice_limit *limit, const struct dot_task *task,
                              int axis, uint64_t inner, uint64_t terms, uint64_t most)
{
    const uint64_t size = dtype_size(task->dtype);
    double first = slice_share(limit, span(task, axis, 1, inner) * size, terms);
    double step =
        slice_share(limit, (span(task, axis, 2, inner) - span(task, axis, 1, inner)) * size, terms);
    double rows = first <= 1 ? 1 + (1 - first) / step : 0;
    return rows < (double)most ? (uint64_t)rows : most;
}

/* What the whole job has that every slice of it keeps. */
static void slice_init(struct slice *slice, const struct job *job)
{
    *slice = (struct slice){
        .job =
            {
                .base = job->base,
                .bytes = job->bytes,
                .task_count = 1,
                .value = job->value,
                .value_count = job->value_count,
                .accuracy = job->accuracy,
                .result_dtype = job->result_dtype,
                .conjugate = job->conjugate,
                .wants_abs = job->wants_abs,
            },
    };
}

/* --- products of one row --- */

static uint64_t terms_that_fit(const struct slice_limit *limit, const struct dot_task *task)
{
    double one = slice_share(limit, 2 * dtype_size(task->dtype), weight_of(task->dtype));
    uint64_t terms = one < 1 ? (uint64_t)(1 / one) : 1;
    return terms > PART_ALIGN ? terms / PART_ALIGN * PART_ALIGN : terms;
}

/* Where row (i, j) of the task begins, as a task of one row without any products yet. */
static struct dot_task row_of(const struct dot_task *task, uint64_t row)
{
    const uint64_t i = row / task->rows[1], j = row % task->rows[1];
    const size_t size = dtype_size(task->dtype);
    return (struct dot_task){
        .a = task->a + (i * task->stride_a[0] + j * task->stride_a[1]) * size,
        .b = task->b + (i * task->stride_b[0] + j * task->stride_b[1]) * size,
        .rows = {1, 1},
        .first = task->first + row * dtype_part_count(task->dtype),
        .dtype = task->dtype,
    };
}

/* The values of a part are of no interest, and it has some of its own. */
static void take_part(struct slice_cursor *cursor, const struct slice_limit *limit,
                      const struct dot_task *task, struct slice *ret)
{
    const uint64_t fitting = terms_that_fit(limit, task), left = task->n - cursor->done;
    const size_t size = dtype_size(task->dtype);
    struct dot_task part = row_of(task, cursor->row);
    ret->is_part = true;
    ret->begins_row = cursor->done == 0;
    ret->ends_row = left <= fitting;
    ret->value = part.first;
    part.first = 0;
    part.n = ret->ends_row ? left : fitting;
    part.a += cursor->done * size;
    part.b += cursor->done * size;
    ret->job.value = ret->job.value_one;
    ret->job.value_count = dtype_part_count(task->dtype);
    ret->job.task_one = part;
    ret->job.term_count = part.n;
    cursor->done = ret->ends_row ? 0 : cursor->done + part.n;
    cursor->row += ret->ends_row;
}

/* --- rows, tasks --- */

/* Whole outer rows where they fit; else inner rows of one outer row. */
static void take_rows(struct slice_cursor *cursor, const struct slice_limit *limit,
                      const struct dot_task *task, struct slice *ret)
{
    const uint64_t i = cursor->row / task->rows[1], j = cursor->row % task->rows[1];
    const uint64_t terms = weight_of(task->dtype) * task->n;
    const uint64_t inner = span(task, 1, task->rows[1], 2 * task->n);
    struct dot_task rows = row_of(task, cursor->row);
    uint64_t outer_rows = 0;
    if (j == 0)
        outer_rows = rows_that_fit(limit, task, 0, inner, terms * task->rows[1], task->rows[0] - i);
    if (outer_rows > 0) {
        rows.rows[0] = outer_rows;
        rows.rows[1] = task->rows[1];
    } else {
        uint64_t fitting = rows_that_fit(limit, task, 1, 2 * task->n, terms, task->rows[1] - j);
        rows.rows[1] = fitting > 0 ? fitting : 1;
    }
    rows.n = task->n;
    for (int axis = 0; axis < 2; axis++) {
        rows.stride_a[axis] = task->stride_a[axis];
        rows.stride_b[axis] = task->stride_b[axis];
    }
    ret->job.task_one = rows;
    ret->job.term_count = row_count(&rows) * rows.n;
    cursor->row += row_count(&rows);
}

static double share_of_task(const struct slice_limit *limit, const struct dot_task *task)
{
    const uint64_t inner = span(task, 1, task->rows[1], 2 * task->n);
    return slice_share(limit, span(task, 0, task->rows[0], inner) * dtype_size(task->dtype),
                       weight_of(task->dtype) * row_count(task) * task->n);
}

/* Whole tasks that fit together; none if the first one does not. */
static size_t take_tasks(struct slice_cursor *cursor, const struct slice_limit *limit,
                         struct slice *ret)
{
    const struct job *job = cursor->job;
    double share = 0;
    size_t count = 0;
    uint64_t terms = 0;
    for (; cursor->task + count < job->task_count; count++) {
        const struct dot_task *task = &job->task[cursor->task + count];
        share += share_of_task(limit, task);
        if (share > 1)
            break;
        terms += row_count(task) * task->n;
    }
    ret->job.task = job->task + cursor->task;
    ret->job.task_count = count;
    ret->job.term_count = terms;
    cursor->task += count;
    return count;
}

bool slice_is_over(const struct slice_cursor *cursor)
{
    return cursor->task == cursor->job->task_count;
}

bool slice_next(struct slice_cursor *cursor, const struct slice_limit *limit, struct slice *ret)
{
    const struct job *job = cursor->job;
    if (slice_is_over(cursor))
        return false;
    const struct dot_task *task = &job->task[cursor->task];
    assert(task->n > 0 && cursor->row < row_count(task) && cursor->done < task->n);
    slice_init(ret, job);
    if (job->partial == NULL && cursor->row == 0 && cursor->done == 0 &&
        take_tasks(cursor, limit, ret) > 0)
        return true;
    ret->job.task_count = 1;
    if (job->partial != NULL || task->n > terms_that_fit(limit, task))
        take_part(cursor, limit, task, ret);
    else
        take_rows(cursor, limit, task, ret);
    ret->job.task = &ret->job.task_one;
    if (cursor->row == row_count(task)) {
        cursor->row = 0;
        cursor->task++;
    }
    return true;
}
