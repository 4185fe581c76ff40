/* Operand memory: reuse, rounding, coalescing, the budget, and the pinned part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>

#include "gpu/pool.h"

enum { MIB = 1 << 20 };

static struct pool *pool_of(size_t budget, size_t pinned)
{
    struct pool *pool = NULL;
    assert_int_equal(pool_create(&pool, budget, pinned), ERR_OK);
    return pool;
}

static struct block take(struct pool *pool, size_t size)
{
    struct block block;
    assert_int_equal(pool_acquire(pool, size, &block), ERR_OK);
    assert_true(block.size >= size);
    assert_int_equal((uintptr_t)block.data % LIMIT_OPERAND_ALIGN, 0);
    memset(block.data, 0x5a, size); /* all of it is writable */
    return block;
}

/* From now on this thread is on the processor of that index, of those that it is allowed. */
static void stay_on(const cpu_set_t *allowed, int index)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int i = 0, seen = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, allowed) && seen++ == index)
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
}

static int remember_processors(void **state)
{
    static cpu_set_t allowed;
    *state = &allowed;
    return sched_getaffinity(0, sizeof allowed, &allowed);
}

static int may_move_again(void **state)
{
    return sched_setaffinity(0, sizeof(cpu_set_t), *state);
}

static void pool_hands_out_what_was_released_last(void **state)
{
    stay_on(*state, 0);
    struct pool *pool = pool_of(MIB, 0);
    struct block first = take(pool, 5000), second = take(pool, 5000);
    assert_ptr_not_equal(first.data, second.data);
    pool_release(pool, first);
    pool_release(pool, second);
    struct block third = take(pool, 8192);
    assert_ptr_equal(third.data, second.data);
    pool_release(pool, third);
    pool_destroy(pool);
}

static void a_block_comes_back_to_the_processor_that_released_it(void **state)
{
    if (CPU_COUNT((cpu_set_t *)*state) < 2)
        skip();
    static const size_t sizes[] = {100, POOL_SMALL_BYTES};
    for (int i = 0; i < 2; i++) {
        struct pool *pool = pool_of(4 * MIB, 0);
        struct block here = take(pool, sizes[i]), there = take(pool, sizes[i]);
        stay_on(*state, 0);
        pool_release(pool, here);
        stay_on(*state, 1);
        pool_release(pool, there);
        stay_on(*state, 0);
        assert_ptr_equal(take(pool, sizes[i]).data, here.data);
        stay_on(*state, 1);
        assert_ptr_equal(take(pool, sizes[i]).data, there.data);
        pool_release(pool, here);
        pool_release(pool, there);
        pool_destroy(pool);
    }
}

static void pool_accounts_for_every_byte(void **state)
{
    (void)state;
    struct pool *pool = pool_of(4 * MIB, 0);
    static const size_t asked[] = {0, 1, 64, 65, 8192, 512 << 10, (512 << 10) + 1, MIB};
    static const size_t given[] = {64, 64, 64, 128, 8192, 512 << 10, 576 << 10, MIB};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        struct block block = take(pool, asked[i]);
        assert_int_equal(block.size, given[i]);
        assert_int_equal(pool_state(pool).used_bytes, given[i]);
        pool_release(pool, block);
        assert_int_equal(pool_state(pool).used_bytes, 0);
    }
    pool_destroy(pool);
}

static void pool_refuses_beyond_its_budget_and_recovers(void **state)
{
    (void)state;
    struct pool *pool = pool_of(MIB, 0);
    struct block half = take(pool, MIB / 2), other = take(pool, MIB / 2);
    struct block untouched = {.data = pool, .size = 7};
    assert_int_equal(pool_acquire(pool, 1, &untouched), ERR_NOMEM);
    assert_ptr_equal(untouched.data, pool);
    assert_int_equal(untouched.size, 7);
    pool_release(pool, other);
    pool_release(pool, take(pool, 1));
    pool_release(pool, half);
    assert_int_equal(pool_acquire(pool, SIZE_MAX, &untouched), ERR_NOMEM);
    assert_int_equal(pool_acquire(pool, MIB + 1, &untouched), ERR_NOMEM);
    pool_destroy(pool);
}

static void small_blocks_that_are_back_take_nothing_off_the_budget(void **state)
{
    (void)state;
    struct pool *pool = pool_of(MIB, 0);
    struct block first = take(pool, 64), second = take(pool, 16 << 10);
    pool_release(pool, first);
    pool_release(pool, second);
    pool_release(pool, take(pool, MIB));
    pool_destroy(pool);
}

static void a_large_block_grows_where_it_lies(void **state)
{
    (void)state;
    struct pool *pool = pool_of(8 * MIB, 0);
    struct block block = take(pool, MIB), before = block;
    assert_int_equal(pool_extend(pool, 3 * MIB + 1, &block), ERR_OK);
    assert_ptr_equal(block.data, before.data);
    assert_int_equal(block.size, 3 * MIB + POOL_GRANULE_BYTES);
    assert_int_equal(pool_state(pool).used_bytes, block.size);
    memset(block.data, 0xa5, block.size);
    struct block next = take(pool, MIB);
    assert_true((char *)next.data >= (char *)block.data + block.size);
    pool_release(pool, block);
    pool_release(pool, next);
    struct block all = take(pool, 8 * MIB); /* what was cut off is whole again */
    assert_ptr_equal(all.data, before.data);
    pool_release(pool, all);
    pool_destroy(pool);
}

static void a_block_grows_to_the_end_of_the_pool(void **state)
{
    (void)state;
    struct pool *pool = pool_of(8 * MIB, 0);
    struct block block = take(pool, MIB);
    assert_int_equal(pool_extend(pool, 8 * MIB, &block), ERR_OK);
    memset(block.data, 0xa5, 8 * MIB);
    pool_release(pool, block);
    pool_destroy(pool);
}

static void a_block_grows_over_what_is_back_of_the_budget(void **state)
{
    (void)state;
    struct pool *pool = pool_of(8 * MIB, 0);
    struct block small = take(pool, 64), block = take(pool, MIB);
    pool_release(pool, small);
    assert_int_equal(pool_extend(pool, 8 * MIB, &block), ERR_OK);
    assert_int_equal(pool_state(pool).used_bytes, 8 * MIB);
    pool_release(pool, block);
    pool_destroy(pool);
}

static void expect_no_growth(struct pool *pool, size_t size, struct block *block)
{
    struct block before = *block;
    size_t used = pool_state(pool).used_bytes;
    assert_int_equal(pool_extend(pool, size, block), ERR_NOMEM);
    assert_ptr_equal(block->data, before.data);
    assert_int_equal(block->size, before.size);
    assert_int_equal(pool_state(pool).used_bytes, used);
}

static void a_block_does_not_grow_over_another_or_over_the_budget(void **state)
{
    (void)state;
    struct pool *pool = pool_of(8 * MIB, 0);
    struct block first = take(pool, MIB), gap = take(pool, MIB), last = take(pool, MIB);
    expect_no_growth(pool, 2 * MIB, &first); /* nothing is free behind it */
    pool_release(pool, gap);
    expect_no_growth(pool, 2 * MIB + 1, &first);
    assert_int_equal(pool_extend(pool, 2 * MIB, &first), ERR_OK); /* just what is free */
    expect_no_growth(pool, 8 * MIB, &last);
    expect_no_growth(pool, SIZE_MAX, &last);
    assert_int_equal(pool_extend(pool, 6 * MIB, &last), ERR_OK);
    pool_release(pool, first);
    pool_release(pool, last);
    pool_destroy(pool);
}

static void a_small_block_does_not_grow(void **state)
{
    (void)state;
    struct pool *pool = pool_of(8 * MIB, 0);
    struct block block = take(pool, POOL_SMALL_BYTES);
    expect_no_growth(pool, MIB, &block);
    pool_release(pool, block);
    pool_destroy(pool);
}

static void pinned_memory_grows_within_its_part(void **state)
{
    (void)state;
    struct pool *pool = pool_of(8 * MIB, 2 * MIB);
    struct block block = take(pool, MIB);
    assert_int_equal(pool_extend(pool, 2 * MIB, &block), ERR_OK);
    assert_int_equal(pool_state(pool).pinned_used_bytes, 2 * MIB);
    expect_no_growth(pool, 3 * MIB, &block); /* beyond, it is another part */
    pool_release(pool, block);
    assert_int_equal(pool_state(pool).pinned_used_bytes, 0);
    pool_destroy(pool);
}

static void pool_coalesces_in_any_order_of_release(void **state)
{
    (void)state;
    static const int order[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                   {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    struct pool *pool = pool_of(48 * MIB, 0);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        struct block part[3];
        for (int j = 0; j < 3; j++)
            part[j] = take(pool, 16 * MIB);
        for (int j = 0; j < 3; j++)
            pool_release(pool, part[order[i][j]]);
        pool_release(pool, take(pool, 48 * MIB)); /* all of it in one piece again */
    }
    pool_destroy(pool);
}

static void pool_takes_idle_slabs_back_for_a_large_block(void **state)
{
    (void)state;
    struct pool *pool = pool_of(16 * MIB, 0);
    static struct block small[8192];
    for (size_t i = 0; i < 8192; i++)
        small[i] = take(pool, 2048);
    for (size_t i = 1; i < 8192; i++)
        pool_release(pool, small[i]);
    struct block large = take(pool, 15 * MIB);
    pool_release(pool, large);
    assert_int_equal(pool_state(pool).used_bytes, 2048);
    pool_release(pool, small[0]);
    pool_destroy(pool);
}

static void pool_prefers_the_pinned_part_and_never_straddles_it(void **state)
{
    (void)state;
    struct pool *pool = pool_of(4 * MIB, MIB);
    size_t pinned = 0;
    char *data = pool_pinnable(pool, &pinned);
    assert_int_equal(pinned, MIB);
    struct block small = take(pool, 100), large = take(pool, 512 << 10), beyond = take(pool, MIB);
    assert_in_range((char *)small.data - data, 0, MIB - 1);
    assert_in_range((char *)large.data - data, 0, MIB - (512 << 10));
    assert_true((char *)beyond.data >= data + MIB);
    assert_int_equal(pool_state(pool).pinned_used_bytes, small.size + large.size);
    pool_release(pool, small);
    pool_release(pool, large);
    pool_release(pool, beyond);
    pool_release(pool, take(pool, 4 * MIB)); /* the whole budget fits beside the pinned part */
    assert_int_equal(pool_state(pool).pinned_used_bytes, 0);
    pool_destroy(pool);
}

static unsigned char *byte_at(const struct block *block, size_t index)
{
    return (unsigned char *)block->data + index;
}

static bool is_marked(const struct block *block, unsigned char mark)
{
    return *byte_at(block, 0) == mark && *byte_at(block, block->size - 1) == mark;
}

/* A pseudo-random walk of sizes. The ends of each block are marked and checked, so that two that
 * overlap show. Returns how many were damaged, as a pointer. */
static void *churn(void *context)
{
    struct pool *pool = context;
    struct block held[16] = {{0}};
    uintptr_t damaged = 0;
    uint64_t random = (uintptr_t)held | 1;
    for (int step = 0; step < 4000; step++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        struct block *block = &held[random >> 60];
        unsigned char mark = (unsigned char)((uintptr_t)block >> 3);
        if (block->data != NULL) {
            damaged += !is_marked(block, mark);
            pool_release(pool, *block);
            block->data = NULL;
        } else if (pool_acquire(pool, (size_t)1 << (random >> 32) % 20, block) == ERR_OK) {
            *byte_at(block, 0) = *byte_at(block, block->size - 1) = mark;
        }
    }
    for (int i = 0; i < 16; i++)
        if (held[i].data != NULL)
            pool_release(pool, held[i]);
    return (void *)damaged;
}

static void pool_serves_many_threads(void **state)
{
    (void)state;
    struct pool *pool = pool_of(4 * MIB, MIB);
    pthread_t thread[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, churn, pool), 0);
    for (int i = 0; i < 4; i++) {
        void *damaged = NULL;
        assert_int_equal(pthread_join(thread[i], &damaged), 0);
        assert_null(damaged);
    }
    assert_int_equal(pool_state(pool).used_bytes, 0);
    assert_int_equal(pool_state(pool).pinned_used_bytes, 0);
    pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pool_hands_out_what_was_released_last, remember_processors,
                                        may_move_again),
        cmocka_unit_test_setup_teardown(a_block_comes_back_to_the_processor_that_released_it,
                                        remember_processors, may_move_again),
        cmocka_unit_test(pool_accounts_for_every_byte),
        cmocka_unit_test(pool_refuses_beyond_its_budget_and_recovers),
        cmocka_unit_test(small_blocks_that_are_back_take_nothing_off_the_budget),
        cmocka_unit_test(a_large_block_grows_where_it_lies),
        cmocka_unit_test(a_block_grows_to_the_end_of_the_pool),
        cmocka_unit_test(a_block_grows_over_what_is_back_of_the_budget),
        cmocka_unit_test(a_block_does_not_grow_over_another_or_over_the_budget),
        cmocka_unit_test(a_small_block_does_not_grow),
        cmocka_unit_test(pinned_memory_grows_within_its_part),
        cmocka_unit_test(pool_coalesces_in_any_order_of_release),
        cmocka_unit_test(pool_takes_idle_slabs_back_for_a_large_block),
        cmocka_unit_test(pool_prefers_the_pinned_part_and_never_straddles_it),
        cmocka_unit_test(pool_serves_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
