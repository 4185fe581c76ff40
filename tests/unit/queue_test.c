/* The queue of one device: order, bounds, closing, and a worker that sleeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>

#include "gpu/queue.h"

static struct queue *queue_of(uint32_t jobs, uint64_t bytes)
{
    struct queue *queue = NULL;
    assert_int_equal(queue_create(&queue, jobs, bytes), ERR_OK);
    return queue;
}

static void queue_gives_jobs_back_in_order_up_to_the_batch(void **state)
{
    (void)state;
    struct queue *queue = queue_of(8, 1000);
    struct job job[5] = {{0}};
    for (int i = 0; i < 5; i++)
        assert_int_equal(queue_push(queue, &job[i]), ERR_OK);
    struct job *first = queue_pop(queue, 3, UINT64_MAX);
    assert_ptr_equal(first, &job[0]);
    assert_ptr_equal(first->next, &job[1]);
    assert_ptr_equal(first->next->next, &job[2]);
    assert_null(first->next->next->next);
    first = queue_pop(queue, 3, UINT64_MAX);
    assert_ptr_equal(first, &job[3]);
    assert_ptr_equal(first->next, &job[4]);
    assert_null(first->next->next);
    assert_int_equal(queue_state(queue).jobs, 0);
    queue_destroy(queue);
}

static void queue_ends_a_batch_with_the_job_that_fills_it(void **state)
{
    (void)state;
    struct queue *queue = queue_of(8, 1000);
    struct job job[4] = {{.term_count = 10}, {.term_count = 90}, {.term_count = UINT64_MAX}, {0}};
    for (int i = 0; i < 4; i++)
        assert_int_equal(queue_push(queue, &job[i]), ERR_OK);
    struct job *first = queue_pop(queue, 8, 100);
    assert_ptr_equal(first, &job[0]);
    assert_ptr_equal(first->next, &job[1]);
    assert_null(first->next->next);
    assert_ptr_equal(queue_pop(queue, 8, 100), &job[2]); /* however large, one is taken */
    assert_null(job[2].next);
    assert_ptr_equal(queue_pop(queue, 8, 100), &job[3]);
    queue_destroy(queue);
}

static void queue_refuses_when_full(void **state)
{
    (void)state;
    struct queue *queue = queue_of(2, 1000);
    struct job job[3] = {{0}};
    assert_int_equal(queue_push(queue, &job[0]), ERR_OK);
    assert_int_equal(queue_push(queue, &job[1]), ERR_OK);
    assert_int_equal(queue_push(queue, &job[2]), ERR_BUSY);
    assert_int_equal(queue_state(queue).rejected_total, 1);
    assert_ptr_equal(queue_pop(queue, 1, 1), &job[0]);
    assert_int_equal(queue_push(queue, &job[2]), ERR_OK);
    assert_ptr_equal(queue_pop(queue, 8, UINT64_MAX), &job[1]);
    queue_destroy(queue);
}

static void queue_refuses_when_full_in_bytes(void **state)
{
    (void)state;
    struct queue *queue = queue_of(8, 1000);
    struct job job[3] = {{.bytes = 600}, {.bytes = 401}, {.bytes = 400}};
    assert_int_equal(queue_push(queue, &job[0]), ERR_OK);
    assert_int_equal(queue_push(queue, &job[1]), ERR_BUSY);
    assert_int_equal(queue_push(queue, &job[2]), ERR_OK);
    assert_int_equal(queue_state(queue).bytes, 1000);
    assert_ptr_equal(queue_pop(queue, 8, UINT64_MAX), &job[0]);
    assert_int_equal(queue_state(queue).bytes, 0);
    queue_destroy(queue);
}

static void an_empty_queue_takes_a_job_over_its_byte_bound(void **state)
{
    (void)state;
    struct queue *queue = queue_of(8, 1000);
    struct job large = {.bytes = 5000}, small = {.bytes = 1};
    assert_int_equal(queue_push(queue, &large), ERR_OK);
    assert_int_equal(queue_push(queue, &small), ERR_BUSY);
    assert_ptr_equal(queue_pop(queue, 8, UINT64_MAX), &large);
    assert_int_equal(queue_push(queue, &small), ERR_OK);
    assert_ptr_equal(queue_pop(queue, 8, UINT64_MAX), &small);
    queue_destroy(queue);
}

static void a_closed_queue_refuses_and_still_empties(void **state)
{
    (void)state;
    struct queue *queue = queue_of(8, 1000);
    struct job job[2] = {{0}};
    assert_int_equal(queue_push(queue, &job[0]), ERR_OK);
    queue_close(queue);
    queue_close(queue);
    assert_int_equal(queue_push(queue, &job[1]), ERR_CLOSED);
    assert_int_equal(queue_state(queue).rejected_total, 0);
    assert_ptr_equal(queue_pop(queue, 8, UINT64_MAX), &job[0]);
    assert_null(queue_pop(queue, 8, UINT64_MAX));
    queue_destroy(queue);
}

enum { PUSHERS = 4, PUSHES = 2000 };

struct pusher {
    pthread_t thread;
    struct queue *queue;
    struct job *job; /* [PUSHES] */
};

static void *push_all(void *context)
{
    struct pusher *pusher = context;
    for (int i = 0; i < PUSHES; i++) {
        pusher->job[i].bytes = (size_t)i; /* the order in which this thread pushed */
        while (queue_push(pusher->queue, &pusher->job[i]) == ERR_BUSY)
            (void)sched_yield();
    }
    return NULL;
}

static void no_job_is_lost_between_many_threads_and_one_worker(void **state)
{
    (void)state;
    struct queue *queue = queue_of(64, UINT64_MAX);
    struct pusher pusher[PUSHERS];
    for (int i = 0; i < PUSHERS; i++) {
        pusher[i] = (struct pusher){.queue = queue, .job = calloc(PUSHES, sizeof(struct job))};
        assert_non_null(pusher[i].job);
        assert_int_equal(pthread_create(&pusher[i].thread, NULL, push_all, &pusher[i]), 0);
    }
    size_t next[PUSHERS] = {0};
    for (int seen = 0; seen < PUSHERS * PUSHES;)
        for (struct job *job = queue_pop(queue, 16, UINT64_MAX); job != NULL; job = job->next) {
            int from = 0;
            while (job < pusher[from].job || job >= pusher[from].job + PUSHES)
                from++;
            assert_int_equal(job->bytes, next[from]++);
            seen++;
        }
    for (int i = 0; i < PUSHERS; i++) {
        assert_int_equal(pthread_join(pusher[i].thread, NULL), 0);
        free(pusher[i].job);
    }
    assert_int_equal(queue_state(queue).jobs, 0);
    queue_destroy(queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queue_gives_jobs_back_in_order_up_to_the_batch),
        cmocka_unit_test(queue_ends_a_batch_with_the_job_that_fills_it),
        cmocka_unit_test(queue_refuses_when_full),
        cmocka_unit_test(queue_refuses_when_full_in_bytes),
        cmocka_unit_test(an_empty_queue_takes_a_job_over_its_byte_bound),
        cmocka_unit_test(a_closed_queue_refuses_and_still_empties),
        cmocka_unit_test(no_job_is_lost_between_many_threads_and_one_worker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
