/* The queue of one device: order, lanes, bounds, shares, closing, and a worker that sleeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>

#include "gpu/queue.h"
#include "gpu/shares.h"

enum { SMALL = 100, SLICE = 16 * SMALL }; /* products */

static const struct slice_limit limit = {UINT64_MAX, SLICE};

static struct queue *queue_of_shares(uint32_t jobs, uint64_t bytes, uint32_t percent)
{
    const struct queue_bounds bounds = {jobs, bytes, percent};
    struct queue *queue = NULL;
    assert_int_equal(queue_create(&queue, &bounds, &limit), ERR_OK);
    return queue;
}

static struct queue *queue_of(uint32_t jobs, uint64_t bytes)
{
    return queue_of_shares(jobs, bytes, 0);
}

/* The small jobs that one pop takes; NULL: closed and empty. */
static struct job *pop(struct queue *queue, uint32_t max_jobs)
{
    const struct queue_wish wish = {max_jobs, limit, true, true, 0};
    struct queue_catch catch;
    if (!queue_pop(queue, &wish, &catch))
        return NULL;
    assert_null(catch.long_job);
    return catch.small;
}

static void queue_says_beforehand_when_it_would_refuse(void **state)
{
    (void)state;
    struct queue *queue = queue_of(2, 1000);
    struct job job[2] = {{.bytes = 1000}, {0}};
    assert_int_equal(queue_check(queue), ERR_OK);
    assert_int_equal(queue_push(queue, &job[0]), ERR_OK);
    assert_int_equal(queue_check(queue), ERR_OK); /* a job may be without bytes */
    assert_int_equal(queue_push(queue, &job[1]), ERR_OK);
    assert_int_equal(queue_check(queue), ERR_BUSY);
    assert_int_equal(queue_state(queue).rejected_total, 1);
    assert_int_equal(queue_state(queue).unfair_total, 0);
    (void)pop(queue, 1);
    assert_int_equal(queue_check(queue), ERR_OK);
    queue_close(queue);
    assert_int_equal(queue_check(queue), ERR_CLOSED);
    (void)pop(queue, 1);
    queue_destroy(queue);
}

static void queue_gives_jobs_back_in_order_up_to_the_batch(void **state)
{
    (void)state;
    struct queue *queue = queue_of(8, 1000);
    struct job job[5] = {{0}};
    for (int i = 0; i < 5; i++)
        assert_int_equal(queue_push(queue, &job[i]), ERR_OK);
    struct job *first = pop(queue, 3);
    assert_ptr_equal(first, &job[0]);
    assert_ptr_equal(first->next, &job[1]);
    assert_ptr_equal(first->next->next, &job[2]);
    assert_null(first->next->next->next);
    first = pop(queue, 3);
    assert_ptr_equal(first, &job[3]);
    assert_ptr_equal(first->next, &job[4]);
    assert_null(first->next->next);
    assert_int_equal(queue_state(queue).jobs, 0);
    queue_destroy(queue);
}

static void queue_ends_a_batch_with_the_job_that_fills_it(void **state)
{
    (void)state;
    struct queue *queue = queue_of(32, 1000);
    struct job job[18] = {{0}};
    for (int i = 0; i < 18; i++) {
        job[i].term_count = SMALL;
        assert_int_equal(queue_push(queue, &job[i]), ERR_OK);
    }
    int count = 0;
    for (struct job *at = pop(queue, 32); at != NULL; at = at->next)
        assert_ptr_equal(at, &job[count++]);
    assert_int_equal(count, 16);
    assert_ptr_equal(pop(queue, 32), &job[16]);
    assert_null(job[17].next);
    queue_destroy(queue);
}

static void long_jobs_wait_in_a_lane_of_their_own(void **state)
{
    (void)state;
    struct queue *queue = queue_of(8, 1000);
    struct partial *some = (struct partial *)queue; /* not looked into */
    struct job job[4] = {{.term_count = SMALL + 1}, {.term_count = SMALL}, {.partial = some}, {0}};
    for (int i = 0; i < 4; i++)
        assert_int_equal(queue_push(queue, &job[i]), ERR_OK);
    struct queue_wish wish = {8, limit, false, false, 0};
    struct queue_catch catch;
    assert_true(queue_pop(queue, &wish, &catch));
    assert_ptr_equal(catch.small, &job[1]);
    assert_ptr_equal(job[1].next, &job[3]);
    assert_null(job[3].next);
    assert_null(catch.long_job);
    assert_true(queue_pop(queue, &wish, &catch)); /* not empty, but nothing that is wanted */
    assert_null(catch.small);
    assert_null(catch.long_job);
    assert_int_equal(queue_state(queue).jobs, 2);
    wish.wants_long = true;
    assert_true(queue_pop(queue, &wish, &catch));
    assert_null(catch.small);
    assert_ptr_equal(catch.long_job, &job[0]);
    assert_true(queue_pop(queue, &wish, &catch));
    assert_ptr_equal(catch.long_job, &job[2]);
    queue_close(queue);
    assert_false(queue_pop(queue, &wish, &catch));
    queue_destroy(queue);
}

static void any_job_may_be_removed_from_either_lane(void **state)
{
    (void)state;
    struct queue *queue = queue_of_shares(8, 1000, 50);
    struct job job[6] = {{.term_count = SLICE}, {.term_count = SLICE}, {.term_count = SLICE},
                         {.bytes = 7},          {.bytes = 8},          {.bytes = 9}};
    for (int i = 0; i < 6; i++) {
        job[i].client = 1 + (uint64_t)i / 3;
        assert_int_equal(queue_push(queue, &job[i]), ERR_OK);
    }
    static const int removed[] = {0, 2, 4}; /* the first, the last, one between */
    for (int i = 0; i < 3; i++) {
        assert_true(queue_remove(queue, &job[removed[i]]));
        assert_false(queue_remove(queue, &job[removed[i]]));
    }
    assert_int_equal(queue_state(queue).jobs, 3);
    assert_int_equal(queue_state(queue).bytes, 16);
    assert_int_equal(queue_push(queue, &job[2]), ERR_OK); /* the lanes end where they should */
    assert_int_equal(queue_push(queue, &job[4]), ERR_OK);
    const struct queue_wish wish = {8, limit, true, false, 0};
    struct queue_catch catch;
    assert_true(queue_pop(queue, &wish, &catch));
    assert_ptr_equal(catch.small, &job[3]);
    assert_ptr_equal(job[3].next, &job[5]);
    assert_ptr_equal(job[5].next, &job[4]);
    assert_null(job[4].next);
    assert_ptr_equal(catch.long_job, &job[1]);
    assert_false(queue_remove(queue, &job[5]));
    assert_true(queue_remove(queue, &job[2])); /* the only one */
    assert_int_equal(queue_state(queue).jobs, 0);
    assert_int_equal(queue_push(queue, &job[0]), ERR_OK);
    assert_true(queue_pop(queue, &wish, &catch));
    assert_ptr_equal(catch.long_job, &job[0]);
    queue_destroy(queue);
}

static void removed_jobs_free_their_clients_share(void **state)
{
    (void)state;
    struct queue *queue = queue_of_shares(10, 1000, 30);
    struct job job[4] = {{.bytes = 100}, {.bytes = 100}, {.bytes = 100}, {.bytes = 200}};
    for (int i = 0; i < 4; i++) {
        job[i].client = 7;
        assert_int_equal(queue_push(queue, &job[i]), i < 3 ? ERR_OK : ERR_BUSY);
    }
    assert_true(queue_remove(queue, &job[1]));
    assert_int_equal(queue_push(queue, &job[3]), ERR_BUSY); /* a third of the bytes is free */
    assert_true(queue_remove(queue, &job[0]));
    assert_int_equal(queue_push(queue, &job[3]), ERR_OK);
    assert_int_equal(queue_state(queue).bytes, 300);
    (void)pop(queue, 10);
    queue_destroy(queue);
}

static void a_client_may_take_only_his_share_of_the_jobs(void **state)
{
    (void)state;
    struct queue *queue = queue_of_shares(10, 1000, 30);
    struct job mine[4] = {{0}}, yours = {.client = 8}, nobodys[4] = {{0}};
    for (int i = 0; i < 4; i++) {
        mine[i].client = 7;
        assert_int_equal(queue_push(queue, &mine[i]), i < 3 ? ERR_OK : ERR_BUSY);
    }
    assert_int_equal(queue_push(queue, &yours), ERR_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(queue_push(queue, &nobodys[i]), ERR_OK);
    assert_int_equal(queue_state(queue).rejected_total, 1);
    assert_int_equal(queue_state(queue).unfair_total, 1);
    assert_ptr_equal(pop(queue, 1), &mine[0]);
    assert_int_equal(queue_push(queue, &mine[3]), ERR_OK);
    (void)pop(queue, 10);
    queue_destroy(queue);
}

static void a_client_may_take_only_his_share_of_the_bytes(void **state)
{
    (void)state;
    struct queue *queue = queue_of_shares(10, 1000, 30);
    struct job mine[3] = {{.bytes = 200}, {.bytes = 101}, {.bytes = 100}}, large = {.bytes = 400};
    for (int i = 0; i < 3; i++) {
        mine[i].client = 7;
        assert_int_equal(queue_push(queue, &mine[i]), i != 1 ? ERR_OK : ERR_BUSY);
    }
    large.client = 8; /* of him nothing waits */
    assert_int_equal(queue_push(queue, &large), ERR_OK);
    assert_int_equal(queue_state(queue).unfair_total, 1);
    (void)pop(queue, 10);
    queue_destroy(queue);
}

/* Many clients come and go; an honest list is kept beside. */
static void shares_are_counted_exactly(void **state)
{
    (void)state;
    enum { CLIENTS = 37, MOST = 16, STEPS = 20000 };
    static const uint64_t clients[2] = {0x9e3779b97f4a7c15, 1};
    struct share want[CLIENTS] = {{0}};
    struct shares *shares = NULL;
    uint32_t jobs = 0;
    uint64_t seed = 1;
    assert_int_equal(shares_create(&shares, MOST), ERR_OK);
    for (int step = 0; step < STEPS; step++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const uint64_t index = (seed >> 33) % CLIENTS, client = index * clients[step % 1000 < 500];
        const uint64_t bytes = 8;
        if (step % 1000 == 0 || step % 1000 == 500) { /* the other names: all go first */
            for (uint64_t i = 0; i < CLIENTS; i++)
                for (; want[i].jobs > 0; jobs--, want[i].jobs--, want[i].bytes -= bytes)
                    shares_remove(shares, i * clients[step % 1000 >= 500], bytes);
        }
        if (jobs < MOST && seed >> 63 != 0) {
            shares_add(shares, client, bytes);
            want[index].jobs++;
            want[index].bytes += bytes;
            jobs++;
        } else if (want[index].jobs > 0) {
            shares_remove(shares, client, bytes);
            want[index].jobs--;
            want[index].bytes -= bytes;
            jobs--;
        }
        for (uint64_t i = 0; i < CLIENTS; i++) {
            struct share got = shares_of(shares, i * clients[step % 1000 < 500]);
            assert_int_equal(got.jobs, want[i].jobs);
            assert_int_equal(got.bytes, want[i].bytes);
        }
    }
    shares_destroy(shares);
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
    assert_ptr_equal(pop(queue, 1), &job[0]);
    assert_int_equal(queue_push(queue, &job[2]), ERR_OK);
    assert_ptr_equal(pop(queue, 8), &job[1]);
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
    assert_ptr_equal(pop(queue, 8), &job[0]);
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
    assert_ptr_equal(pop(queue, 8), &large);
    assert_int_equal(queue_push(queue, &small), ERR_OK);
    assert_ptr_equal(pop(queue, 8), &small);
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
    assert_ptr_equal(pop(queue, 8), &job[0]);
    assert_null(pop(queue, 8));
    queue_destroy(queue);
}

enum { PUSHERS = 4, PUSHES = 2000, REMOVED = 3 }; /* every third, where some are */

struct pusher {
    pthread_t thread;
    struct queue *queue;
    struct job *job; /* [PUSHES] */
    int followed;    /* jobs before each queue_begin(); 0: none are */
    bool removes;    /* takes some out again */
    unsigned removed;
};

static void *push_all(void *context)
{
    struct pusher *pusher = context;
    for (int i = 0; i < PUSHES; i++) {
        pusher->job[i].bytes = (size_t)i; /* the order in which this thread pushed */
        pusher->job[i].is_followed = pusher->followed > 0;
        while (queue_push(pusher->queue, &pusher->job[i]) == ERR_BUSY)
            (void)sched_yield();
        if (pusher->followed > 0 && (i + 1) % pusher->followed == 0)
            queue_begin(pusher->queue);
        if (pusher->removes && i % REMOVED == 0 && queue_remove(pusher->queue, &pusher->job[i]))
            pusher->removed++;
    }
    return NULL;
}

static void pushers_start(struct pusher pusher[PUSHERS], const struct pusher *like)
{
    for (int i = 0; i < PUSHERS; i++) {
        pusher[i] = *like;
        pusher[i].job = calloc(PUSHES, sizeof(struct job));
        assert_non_null(pusher[i].job);
        assert_int_equal(pthread_create(&pusher[i].thread, NULL, push_all, &pusher[i]), 0);
    }
}

/* How many jobs were removed in all. */
static unsigned pushers_join(struct pusher pusher[PUSHERS])
{
    unsigned removed = 0;
    for (int i = 0; i < PUSHERS; i++) {
        assert_int_equal(pthread_join(pusher[i].thread, NULL), 0);
        removed += pusher[i].removed;
    }
    return removed;
}

static void pushers_free(struct pusher pusher[PUSHERS])
{
    for (int i = 0; i < PUSHERS; i++)
        free(pusher[i].job);
}

static void lose_none(int followed)
{
    struct queue *queue = queue_of(64, UINT64_MAX);
    struct pusher pusher[PUSHERS];
    pushers_start(pusher, &(struct pusher){.queue = queue, .followed = followed});
    size_t next[PUSHERS] = {0};
    for (int seen = 0; seen < PUSHERS * PUSHES;)
        for (struct job *job = pop(queue, 16); job != NULL; job = job->next) {
            int from = 0;
            while (job < pusher[from].job || job >= pusher[from].job + PUSHES)
                from++;
            assert_int_equal(job->bytes, next[from]++);
            seen++;
        }
    (void)pushers_join(pusher);
    pushers_free(pusher);
    assert_int_equal(queue_state(queue).jobs, 0);
    queue_destroy(queue);
}

static void no_job_is_lost_between_many_threads_and_one_worker(void **state)
{
    (void)state;
    lose_none(0);
}

static void no_job_is_lost_that_a_worker_is_woken_for_later(void **state)
{
    (void)state;
    lose_none(PUSHES / 4); /* more than the queue holds */
}

static void *pop_until_closed(void *context)
{
    struct queue *queue = context;
    const struct queue_wish wish = {16, limit, true, true, 1000};
    struct queue_catch catch;
    uintptr_t count = 0;
    while (queue_pop(queue, &wish, &catch))
        for (const struct job *job = catch.small; job != NULL; job = job->next)
            count++;
    return (void *)count;
}

/* With little room, so that some of what is pushed is looked at closely. */
static void a_job_is_either_removed_or_popped(void **state)
{
    (void)state;
    struct queue *queue = queue_of_shares(8, UINT64_MAX, 50);
    struct pusher pusher[PUSHERS];
    pthread_t worker;
    void *popped = NULL;
    assert_int_equal(pthread_create(&worker, NULL, pop_until_closed, queue), 0);
    pushers_start(pusher, &(struct pusher){.queue = queue, .removes = true});
    const unsigned removed = pushers_join(pusher);
    queue_close(queue);
    assert_int_equal(pthread_join(worker, &popped), 0);
    pushers_free(pusher);
    assert_int_equal((uintptr_t)popped + removed, PUSHERS * PUSHES);
    assert_int_equal(queue_state(queue).jobs, 0);
    assert_int_equal(queue_state(queue).bytes, 0);
    queue_destroy(queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queue_says_beforehand_when_it_would_refuse),
        cmocka_unit_test(queue_gives_jobs_back_in_order_up_to_the_batch),
        cmocka_unit_test(queue_ends_a_batch_with_the_job_that_fills_it),
        cmocka_unit_test(long_jobs_wait_in_a_lane_of_their_own),
        cmocka_unit_test(any_job_may_be_removed_from_either_lane),
        cmocka_unit_test(a_client_may_take_only_his_share_of_the_jobs),
        cmocka_unit_test(removed_jobs_free_their_clients_share),
        cmocka_unit_test(a_client_may_take_only_his_share_of_the_bytes),
        cmocka_unit_test(shares_are_counted_exactly),
        cmocka_unit_test(queue_refuses_when_full),
        cmocka_unit_test(queue_refuses_when_full_in_bytes),
        cmocka_unit_test(an_empty_queue_takes_a_job_over_its_byte_bound),
        cmocka_unit_test(a_closed_queue_refuses_and_still_empties),
        cmocka_unit_test(no_job_is_lost_between_many_threads_and_one_worker),
        cmocka_unit_test(no_job_is_lost_that_a_worker_is_woken_for_later),
        cmocka_unit_test(a_job_is_either_removed_or_popped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
