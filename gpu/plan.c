/* plan.c - from operands that broadcast to tasks of two row loops (job_plan in gpu.h).
 *
 * Axes of length 1 vanish and neighbouring axes that step alike join, so that nearly every request
 * is one task. What still has more than two axes becomes one task for each index of the outer ones.
 */
#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#include "gpu/gpu.h"

/* The leading axes of a pair, outermost first; strides in elements, 0 where broadcast. */
struct axes {
    int rank;
    uint64_t dim[LIMIT_RANK], stride_a[LIMIT_RANK], stride_b[LIMIT_RANK];
};

/* Strides of the result's axes in one operand, which is dense and may have fewer axes. */
static void strides_of(const struct tensor *tensor, int rank, uint64_t stride[LIMIT_RANK])
{
    uint64_t step = tensor_length(tensor);
    int missing = rank - (tensor->shape.rank - 1);
    assert(missing >= 0);
    for (int axis = rank - 1; axis >= 0; axis--) {
        uint64_t dim = axis < missing ? 1 : tensor->shape.dim[axis - missing];
        stride[axis] = dim == 1 ? 0 : step;
        step *= dim;
    }
}

/* Axis `outer` continues where axis `inner` ends, in both operands. */
static bool can_join(const struct axes *axes, int outer, int inner)
{
    return axes->stride_a[outer] == axes->stride_a[inner] * axes->dim[inner] &&
           axes->stride_b[outer] == axes->stride_b[inner] * axes->dim[inner];
}

/* In place: what is kept moves towards the front. */
static void axes_collapse(struct axes *axes)
{
    int kept = 0;
    for (int axis = 0; axis < axes->rank; axis++) {
        if (axes->dim[axis] == 1)
            continue;
        axes->dim[kept] = axes->dim[axis];
        axes->stride_a[kept] = axes->stride_a[axis];
        axes->stride_b[kept] = axes->stride_b[axis];
        if (kept > 0 && can_join(axes, kept - 1, kept)) {
            axes->dim[kept - 1] *= axes->dim[kept];
            axes->stride_a[kept - 1] = axes->stride_a[kept];
            axes->stride_b[kept - 1] = axes->stride_b[kept];
        } else {
            kept++;
        }
    }
    axes->rank = kept;
}

static void axes_of(const struct tensor_pair *pair, struct axes *ret)
{
    ret->rank = pair->result.rank;
    for (int axis = 0; axis < ret->rank; axis++)
        ret->dim[axis] = pair->result.dim[axis];
    strides_of(&pair->a, ret->rank, ret->stride_a);
    strides_of(&pair->b, ret->rank, ret->stride_b);
    axes_collapse(ret);
}

static uint64_t product(const uint64_t *dim, int count)
{
    uint64_t total = 1;
    for (int axis = 0; axis < count; axis++)
        total *= dim[axis];
    return total;
}

/* What a pair adds to a job. Empty sums have values (zeros) but no task. */
struct need {
    size_t tasks, values;
    uint64_t terms;
};

static struct need need_of(const struct tensor_pair *pair, const struct axes *axes)
{
    int outer = axes->rank > 2 ? axes->rank - 2 : 0;
    uint64_t n = tensor_length(&pair->a), results = product(pair->result.dim, pair->result.rank);
    assert(n == tensor_length(&pair->b) && pair->a.dtype == pair->b.dtype);
    return (struct need){
        .tasks = n == 0 || results == 0 ? 0 : product(axes->dim, outer),
        .values = results * dtype_part_count(pair->a.dtype),
        .terms = results * n,
    };
}

/* The two innermost axes; missing ones have length 1. */
static struct dot_task task_of(const struct tensor_pair *pair, const struct axes *axes)
{
    struct dot_task task = {
        .a = pair->a.offset,
        .b = pair->b.offset,
        .n = tensor_length(&pair->a),
        .rows = {1, 1},
        .dtype = pair->a.dtype,
    };
    for (int row = 1, axis = axes->rank - 1; row >= 0 && axis >= 0; row--, axis--) {
        task.rows[row] = axes->dim[axis];
        task.stride_a[row] = axes->stride_a[axis];
        task.stride_b[row] = axes->stride_b[axis];
    }
    return task;
}

/* One task for each index of the axes outside those two, in the order of their results. */
static void tasks_of(struct dot_task *ret, size_t count, const struct tensor_pair *pair,
                     const struct axes *axes, size_t first)
{
    struct dot_task inner = task_of(pair, axes);
    size_t size = dtype_size(pair->a.dtype);
    for (size_t i = 0; i < count; i++) {
        ret[i] = inner;
        ret[i].first = first + i * inner.rows[0] * inner.rows[1] * dtype_part_count(pair->a.dtype);
        size_t index = i;
        for (int axis = axes->rank - 3; axis >= 0; axis--) {
            uint64_t step = index % axes->dim[axis];
            index /= axes->dim[axis];
            ret[i].a += step * axes->stride_a[axis] * size;
            ret[i].b += step * axes->stride_b[axis] * size;
        }
    }
}

/* The common case lives in the job itself. */
static enum error plan_allocate(struct job *job, const struct need *need)
{
    struct dot_task *task = &job->task_one;
    struct dot_value *value = job->value_one;
    if (need->tasks > 1)
        task = calloc(need->tasks, sizeof *task);
    if (need->values > 2)
        value = calloc(need->values, sizeof *value);
    if (task != NULL && value != NULL) {
        job->task = task;
        job->value = value;
        return ERR_OK;
    }
    if (task != &job->task_one)
        free(task);
    if (value != job->value_one)
        free(value);
    return ERR_NOMEM;
}

/* Two vectors, as in most jobs: there are no axes to look at. */
static void plan_vectors(struct job *job, const struct tensor_pair *pair)
{
    static const struct axes none = {.rank = 0};
    assert(pair->a.dtype == pair->b.dtype && tensor_length(&pair->a) == tensor_length(&pair->b));
    job->task_one = task_of(pair, &none);
    job->task = &job->task_one;
    job->task_count = job->task_one.n > 0;
    job->value = job->value_one;
    job->value_count = dtype_part_count(pair->a.dtype);
    job->term_count = job->task_one.n;
}

enum error job_plan(struct job *job, const struct tensor_pair *pairs, size_t count)
{
    assert(job->task == NULL && job->value == NULL);
    if (count == 1 && pairs->result.rank == 0) {
        plan_vectors(job, pairs);
        return ERR_OK;
    }
    struct need total = {0};
    for (size_t i = 0; i < count; i++) {
        struct axes axes;
        axes_of(&pairs[i], &axes);
        struct need need = need_of(&pairs[i], &axes);
        total.tasks += need.tasks;
        total.values += need.values;
        total.terms += need.terms;
    }
    enum error error = plan_allocate(job, &total);
    if (error != ERR_OK)
        return error;
    size_t first = 0, done = 0;
    for (size_t i = 0; i < count; i++) {
        struct axes axes;
        axes_of(&pairs[i], &axes);
        struct need need = need_of(&pairs[i], &axes);
        tasks_of(job->task + done, need.tasks, &pairs[i], &axes, first);
        done += need.tasks;
        first += need.values;
    }
    job->task_count = total.tasks;
    job->value_count = total.values;
    job->term_count = total.terms;
    return ERR_OK;
}

void job_fini(struct job *job)
{
    if (job->task != &job->task_one)
        free(job->task);
    if (job->value != job->value_one)
        free(job->value);
    job->task = NULL;
    job->value = NULL;
    job->task_count = job->value_count = 0;
}
