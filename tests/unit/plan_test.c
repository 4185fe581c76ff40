/* Broadcasting: the tasks of a job, walked, give the same products as the definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/gpu.h"

static struct tensor_pair pair_of(struct shape a, struct shape b, size_t offset_a, size_t offset_b)
{
    struct tensor_pair pair = {
        .a = {DTYPE_FLOAT32, a, offset_a},
        .b = {DTYPE_FLOAT32, b, offset_b},
    };
    struct problem problem;
    assert_int_equal(shape_dot(&a, &b, &pair.result, &problem), ERR_OK);
    return pair;
}

/* Byte offset of the row that result index `flat` reads in an operand: by definition, axis by axis,
 * counted from the last; an axis of length 1 broadcasts. */
static size_t row_offset(const struct tensor *tensor, const struct shape *result, uint64_t flat)
{
    uint64_t step = tensor->shape.dim[tensor->shape.rank - 1], row = 0;
    int axis = tensor->shape.rank - 2;
    for (int out = result->rank - 1; out >= 0; out--, axis--) {
        uint64_t index = flat % result->dim[out];
        flat /= result->dim[out];
        if (axis < 0)
            continue;
        row += (tensor->shape.dim[axis] == 1 ? 0 : index) * step;
        step *= tensor->shape.dim[axis];
    }
    return tensor->offset + row * sizeof(float);
}

struct rows {
    size_t a, b; /* bytes */
    uint64_t n;
    unsigned times; /* how often a task wrote this value */
};

static struct rows *walk(const struct job *job)
{
    struct rows *rows = calloc(job->value_count, sizeof *rows);
    assert_non_null(rows);
    for (size_t t = 0; t < job->task_count; t++) {
        const struct dot_task *task = &job->task[t];
        for (uint64_t i = 0; i < task->rows[0]; i++)
            for (uint64_t j = 0; j < task->rows[1]; j++) {
                size_t at = task->first + i * task->rows[1] + j;
                assert_in_range(at, 0, job->value_count - 1);
                rows[at].a =
                    task->a + (i * task->stride_a[0] + j * task->stride_a[1]) * sizeof(float);
                rows[at].b =
                    task->b + (i * task->stride_b[0] + j * task->stride_b[1]) * sizeof(float);
                rows[at].n = task->n;
                rows[at].times++;
            }
    }
    return rows;
}

/* Plans the pair and checks every row; returns how many tasks it took. */
static size_t check(struct shape a, struct shape b)
{
    struct tensor_pair pair = pair_of(a, b, 64, 4096);
    struct job job = {0};
    assert_int_equal(job_plan(&job, &pair, 1), ERR_OK);
    struct rows *rows = walk(&job);
    uint64_t n = a.dim[a.rank - 1];
    for (size_t i = 0; i < job.value_count; i++) {
        assert_int_equal(rows[i].times, 1);
        assert_int_equal(rows[i].n, n);
        assert_int_equal(rows[i].a, row_offset(&pair.a, &pair.result, i));
        assert_int_equal(rows[i].b, row_offset(&pair.b, &pair.result, i));
    }
    assert_int_equal(job.term_count, job.value_count * n);
    free(rows);
    size_t tasks = job.task_count;
    job_fini(&job);
    return tasks;
}

#define SHAPE(...)                                            \
    (struct shape)                                            \
    {                                                         \
        sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), \
        {                                                     \
            __VA_ARGS__                                       \
        }                                                     \
    }

static void every_usual_shape_is_one_task(void **state)
{
    (void)state;
    assert_int_equal(check(SHAPE(5), SHAPE(5)), 1);
    assert_int_equal(check(SHAPE(3, 5), SHAPE(3, 5)), 1);
    assert_int_equal(check(SHAPE(3, 5), SHAPE(5)), 1);
    assert_int_equal(check(SHAPE(5), SHAPE(3, 5)), 1);
    assert_int_equal(check(SHAPE(3, 1, 5), SHAPE(4, 5)), 1);
    assert_int_equal(check(SHAPE(4, 5), SHAPE(3, 1, 5)), 1);
    assert_int_equal(check(SHAPE(1, 1, 5), SHAPE(1, 5)), 1);
    assert_int_equal(check(SHAPE(2, 3, 4, 5), SHAPE(2, 3, 4, 5)), 1);
    assert_int_equal(check(SHAPE(2, 3, 4, 5), SHAPE(4, 5)), 1);
    assert_int_equal(check(SHAPE(2, 3, 1, 1, 5), SHAPE(4, 6, 5)), 1);
}

static void many_broadcast_axes_take_one_task_an_outer_index(void **state)
{
    (void)state;
    assert_int_equal(check(SHAPE(2, 1, 3, 5), SHAPE(4, 1, 5)), 2);
    assert_int_equal(check(SHAPE(2, 1, 3, 1, 5), SHAPE(4, 1, 6, 5)), 8);
    assert_int_equal(check(SHAPE(2, 1, 3, 1, 2, 1, 2, 7), SHAPE(2, 1, 3, 1, 2, 1, 7)),
                     2 * 2 * 3 * 3 * 2);
}

static void a_single_dot_product_allocates_nothing(void **state)
{
    (void)state;
    struct tensor_pair pair = pair_of(SHAPE(5), SHAPE(5), 0, 64);
    struct job job = {0};
    assert_int_equal(job_plan(&job, &pair, 1), ERR_OK);
    assert_ptr_equal(job.task, &job.task_one);
    assert_ptr_equal(job.value, &job.value_one);
    job_fini(&job);
}

static void pairs_follow_each_other(void **state)
{
    (void)state;
    struct tensor_pair pairs[] = {
        pair_of(SHAPE(3), SHAPE(3), 0, 64),
        pair_of(SHAPE(2, 7), SHAPE(7), 128, 192),
        pair_of(SHAPE(1), SHAPE(1), 256, 320),
    };
    struct job job = {0};
    assert_int_equal(job_plan(&job, pairs, 3), ERR_OK);
    assert_int_equal(job.task_count, 3);
    assert_int_equal(job.value_count, 4);
    assert_int_equal(job.term_count, 3 + 14 + 1);
    struct rows *rows = walk(&job);
    static const struct rows want[] = {
        {0, 64, 3, 1}, {128, 192, 7, 1}, {156, 192, 7, 1}, {256, 320, 1, 1}};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(rows[i].a, want[i].a);
        assert_int_equal(rows[i].b, want[i].b);
        assert_int_equal(rows[i].n, want[i].n);
        assert_int_equal(rows[i].times, want[i].times);
    }
    free(rows);
    job_fini(&job);
}

static void empty_sums_are_zeros_without_a_task(void **state)
{
    (void)state;
    struct tensor_pair pair = pair_of(SHAPE(3, 0), SHAPE(0), 0, 0);
    struct job job = {0};
    assert_int_equal(job_plan(&job, &pair, 1), ERR_OK);
    assert_int_equal(job.task_count, 0);
    assert_int_equal(job.value_count, 3);
    for (size_t i = 0; i < 3; i++) {
        static const struct dot_value zero;
        assert_memory_equal(&job.value[i], &zero, sizeof zero);
    }
    job_fini(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_usual_shape_is_one_task),
        cmocka_unit_test(many_broadcast_axes_take_one_task_an_outer_index),
        cmocka_unit_test(a_single_dot_product_allocates_nothing),
        cmocka_unit_test(pairs_follow_each_other),
        cmocka_unit_test(empty_sums_are_zeros_without_a_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
