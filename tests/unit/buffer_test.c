/* buffer_test.c - the operand buffer keeps its bytes, grows by half, and fails without a change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/buffer.h"
#include "proto/limits.h"

/* A source that counts, and that refuses what is beyond its budget. */
struct counting_source {
    size_t budget, held;
    int acquired, released;
};

static enum error counting_acquire(void *context, size_t size, struct block *ret)
{
    struct counting_source *source = context;
    if (size > source->budget - source->held)
        return ERR_NOMEM;
    enum error err = buffer_heap.acquire(NULL, size, ret);
    if (err != ERR_OK)
        return err;
    source->held += ret->size;
    source->acquired++;
    return ERR_OK;
}

static void counting_release(void *context, struct block block)
{
    struct counting_source *source = context;
    source->held -= block.size;
    source->released++;
    buffer_heap.release(NULL, block);
}

static void heap_gives_aligned_blocks_of_at_least_the_size(void **state)
{
    (void)state;
    for (size_t size = 0; size < 1000; size += 37) {
        struct block block;
        assert_int_equal(buffer_heap.acquire(NULL, size, &block), ERR_OK);
        assert_true(block.size >= size && block.size > 0);
        assert_int_equal((uintptr_t)block.data % LIMIT_OPERAND_ALIGN, 0);
        memset(block.data, 0xa5, block.size);
        buffer_heap.release(NULL, block);
    }
}

static void heap_refuses_what_cannot_be(void **state)
{
    (void)state;
    struct block block = {NULL, 7};
    assert_int_equal(buffer_heap.acquire(NULL, SIZE_MAX, &block), ERR_NOMEM);
    assert_int_equal(buffer_heap.acquire(NULL, SIZE_MAX - LIMIT_OPERAND_ALIGN, &block), ERR_NOMEM);
    assert_int_equal(block.size, 7);
}

static void growth_keeps_the_used_bytes_and_copies_seldom(void **state)
{
    (void)state;
    struct counting_source counts = {.budget = SIZE_MAX};
    const struct buffer_source source = {counting_acquire, counting_release, NULL, &counts};
    struct buffer buffer;
    buffer_init(&buffer, &source);
    for (size_t i = 0; i < 100000; i++) {
        assert_int_equal(buffer_reserve(&buffer, buffer.used + 1), ERR_OK);
        ((unsigned char *)buffer.block.data)[buffer.used++] = (unsigned char)(i * 7);
    }
    for (size_t i = 0; i < buffer.used; i++)
        assert_int_equal(((unsigned char *)buffer.block.data)[i], (unsigned char)(i * 7));
    assert_in_range(counts.acquired, 2,
                    25); /* log(100000) / log(1.5) is 28; the first block is 64 */
    assert_int_equal(counts.released, counts.acquired - 1);
    buffer_fini(&buffer);
    assert_int_equal(counts.held, 0);
}

/* A source with room behind every block for `budget` bytes in all. */
static enum error extending_extend(void *context, size_t size, struct block *block)
{
    const struct counting_source *counts = context;
    if (size > counts->budget)
        return ERR_NOMEM;
    block->size = size;
    return ERR_OK;
}

static void growth_where_the_data_lie_copies_nothing(void **state)
{
    (void)state;
    struct counting_source counts = {.budget = 1000};
    const struct buffer_source source = {counting_acquire, counting_release, extending_extend,
                                         &counts};
    struct buffer buffer;
    buffer_init(&buffer, &source);
    assert_int_equal(buffer_reserve(&buffer, 1000), ERR_OK);
    buffer.block.size = 100; /* the rest is what may be had */
    const void *data = buffer.block.data;
    assert_int_equal(buffer_reserve(&buffer, 110), ERR_OK);
    assert_int_equal(buffer.block.size, 150); /* by half */
    assert_int_equal(buffer_reserve(&buffer, 900), ERR_OK);
    assert_int_equal(buffer.block.size, 900);
    assert_int_equal(buffer_reserve(&buffer, 950), ERR_OK); /* half more cannot be had */
    assert_int_equal(buffer.block.size, 950);
    assert_ptr_equal(buffer.block.data, data);
    assert_int_equal(counts.acquired, 1);
    buffer.block.size = 1000;
    buffer_fini(&buffer);
}

static void reserve_within_the_block_changes_nothing(void **state)
{
    (void)state;
    struct buffer buffer;
    buffer_init(&buffer, &buffer_heap);
    assert_int_equal(buffer_reserve(&buffer, 100), ERR_OK);
    struct block before = buffer.block;
    assert_int_equal(buffer_reserve(&buffer, 100), ERR_OK);
    assert_int_equal(buffer_reserve(&buffer, 0), ERR_OK);
    assert_ptr_equal(buffer.block.data, before.data);
    assert_int_equal(buffer.used, 0);
    buffer_fini(&buffer);
}

static void failed_growth_leaves_the_buffer_as_it_was(void **state)
{
    (void)state;
    struct counting_source counts = {.budget = 4096};
    const struct buffer_source source = {counting_acquire, counting_release, NULL, &counts};
    struct buffer buffer;
    buffer_init(&buffer, &source);
    assert_int_equal(buffer_reserve(&buffer, 1024), ERR_OK);
    memset(buffer.block.data, 3, 1024);
    buffer.used = 1024;
    struct buffer before = buffer;
    assert_int_equal(buffer_reserve(&buffer, 8192), ERR_NOMEM);
    assert_memory_equal(&buffer, &before, sizeof buffer);
    assert_int_equal(((unsigned char *)buffer.block.data)[1023], 3);
    size_t offset = 17;
    buffer.used = buffer.block.size;
    counts.budget = counts.held;
    assert_int_equal(buffer_reserve(&buffer, buffer.used + 1), ERR_NOMEM);
    assert_int_equal(buffer_align(&buffer, &offset),
                     ERR_OK); /* the block's end is aligned already */
    assert_int_equal(offset, buffer.used);
    buffer_fini(&buffer);
    assert_int_equal(counts.held, 0);
}

static void align_moves_used_to_the_next_multiple(void **state)
{
    (void)state;
    struct buffer buffer;
    buffer_init(&buffer, &buffer_heap);
    size_t offset = 17;
    assert_int_equal(buffer_align(&buffer, &offset), ERR_OK);
    assert_int_equal(offset, 0);
    assert_int_equal(buffer_reserve(&buffer, 65), ERR_OK);
    buffer.used = 65;
    assert_int_equal(buffer_align(&buffer, &offset), ERR_OK);
    assert_int_equal(offset, 2 * LIMIT_OPERAND_ALIGN);
    assert_int_equal(buffer.used, offset);
    assert_int_equal(buffer_align(&buffer, &offset), ERR_OK);
    assert_int_equal(offset, 2 * LIMIT_OPERAND_ALIGN);
    buffer_fini(&buffer);
}

static void fini_takes_an_untouched_buffer_and_a_second_call(void **state)
{
    (void)state;
    struct buffer buffer = {0};
    buffer_fini(&buffer);
    buffer_init(&buffer, &buffer_heap);
    buffer_fini(&buffer);
    assert_int_equal(buffer_reserve(&buffer, 10), ERR_OK);
    buffer_fini(&buffer);
    buffer_fini(&buffer);
    assert_null(buffer.block.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heap_gives_aligned_blocks_of_at_least_the_size),
        cmocka_unit_test(heap_refuses_what_cannot_be),
        cmocka_unit_test(growth_keeps_the_used_bytes_and_copies_seldom),
        cmocka_unit_test(growth_where_the_data_lie_copies_nothing),
        cmocka_unit_test(reserve_within_the_block_changes_nothing),
        cmocka_unit_test(failed_growth_leaves_the_buffer_as_it_was),
        cmocka_unit_test(align_moves_used_to_the_next_multiple),
        cmocka_unit_test(fini_takes_an_untouched_buffer_and_a_second_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
