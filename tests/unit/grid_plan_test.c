/* How rows are spread over blocks, and that the stated depth covers what the kernel adds up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "gpu/kernels/grid.h"

enum { CAPACITY = 264 }; /* an H200's */

static struct grid_task planned(enum dtype dtype, uint32_t rows, uint64_t n)
{
    struct grid_task task = {.n = n, .rows = rows, .inner_rows = rows, .dtype = dtype};
    grid_plan(&task, CAPACITY);
    return task;
}

static void each_kind_of_row_gets_its_form(void **state)
{
    (void)state;
    static const struct {
        uint32_t rows;
        uint64_t n;
        enum grid_form form;
        uint32_t blocks, parts;
    } rows[] = {
        {1, 1, GRID_BLOCK_ROW, 1, 1},           {1, 1024, GRID_BLOCK_ROW, 1, 1},
        {1, 32768, GRID_BLOCK_ROW, 1, 1},       {1, 32769, GRID_SPLIT_ROW, 17, 17},
        {1, 100000, GRID_SPLIT_ROW, 49, 49},    {1, 100000000, GRID_SPLIT_ROW, 264, 264},
        {10, 100000, GRID_SPLIT_ROW, 260, 26},  {132, 1000000, GRID_SPLIT_ROW, 264, 2},
        {133, 1000000, GRID_BLOCK_ROW, 133, 1}, {264, 64, GRID_BLOCK_ROW, 264, 1},
        {265, 65, GRID_WARP_ROW, 264, 1},       {60000, 8191, GRID_WARP_ROW, 264, 1},
        {265, 64, GRID_TILE_ROW, 17, 1},        {60000, 8192, GRID_TILE_ROW, 264, 1},
        {60000, 8193, GRID_BLOCK_ROW, 264, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grid_task task = planned(DTYPE_FLOAT32, rows[i].rows, rows[i].n);
        assert_int_equal(task.form, rows[i].form);
        assert_int_equal(task.blocks, rows[i].blocks);
        assert_int_equal(task.parts, rows[i].parts);
    }
}

static void few_rows_are_cut_into_low_tiles(void **state)
{
    (void)state;
    static const struct {
        uint32_t rows;
        uint64_t n;
        uint32_t team, height;
    } rows[] = {
        {1 << 20, 64, 8, 32},   {1 << 20, 128, 8, 32}, {1 << 20, 256, 16, 32},
        {1 << 20, 768, 32, 32}, {60000, 768, 32, 16},  {4000, 768, 32, 4},
        {60000, 64, 8, 16},     {400, 64, 8, 16},      {1 << 20, 4, 8, 32},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grid_task task = planned(DTYPE_FLOAT32, rows[i].rows, rows[i].n);
        assert_int_equal(task.form, GRID_TILE_ROW);
        assert_int_equal(task.team, rows[i].team);
        assert_int_equal(task.height, rows[i].height);
    }
}

static void rows_that_are_no_vectors_are_not_read_by_tiles(void **state)
{
    (void)state;
    struct grid_task whole = {
        .n = 64, .stride_a = {0, 64}, .rows = 1000, .inner_rows = 1000, .dtype = DTYPE_FLOAT32};
    struct grid_task task[6];
    for (int i = 0; i < 6; i++)
        task[i] = whole;
    task[0].n = 63;
    task[1].stride_a[1] = 65;
    task[2].stride_b[1] = 2;
    task[3].a = (const void *)(uintptr_t)4;
    task[4].inner_rows = 500;
    task[5].dtype = DTYPE_COMPLEX64;
    assert_true(grid_tile(&whole, CAPACITY));
    for (int i = 0; i < 6; i++)
        assert_false(grid_tile(&task[i], CAPACITY));
}

static void no_task_takes_more_blocks_than_the_device_holds(void **state)
{
    (void)state;
    for (uint32_t rows = 1; rows < 2000; rows = rows * 5 / 3 + 1)
        for (uint64_t n = 1; n < 100000000; n = n * 7 / 3 + 1) {
            struct grid_task task = planned(DTYPE_FLOAT64, rows, n);
            assert_in_range(task.blocks, 1, CAPACITY);
            assert_in_range(task.parts, 1, task.blocks);
            assert_int_equal(task.form == GRID_SPLIT_ROW, task.parts > 1);
        }
}

/* Products in the fullest accumulator of the fullest thread, counted one by one as the kernel deals
 * them: the products of a vector go to the accumulators in turn, and thread 0 also gets an element
 * that is left over at an end, in a vector of its own. */
static uint64_t fullest_chain(enum dtype dtype, uint64_t n, uint64_t lanes, uint64_t chains)
{
    uint64_t places = GRID_LOAD_BYTES / dtype_size(dtype), count[GRID_CHAINS] = {0}, most = 0;
    uint64_t products = places * (dtype_is_complex(dtype) ? 2 : 1);
    uint64_t vectors = (n / places + lanes - 1) / lanes + (n > places ? 1 : 0);
    for (uint64_t product = 0; product < products; product++)
        count[product % chains] += vectors;
    for (int i = 0; i < GRID_CHAINS; i++)
        most = count[i] > most ? count[i] : most;
    return most;
}

static void the_depth_covers_the_fullest_accumulator(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        for (uint32_t rows = 1; rows < 1000; rows = rows * 4 + 1)
            for (uint64_t n = 1; n < 50000000; n = n * 9 / 7 + 1) {
                struct grid_task task = planned(dtype, rows, n);
                const bool is_tile = task.form == GRID_TILE_ROW;
                uint64_t whole = task.form == GRID_WARP_ROW ? GRID_WARP : GRID_THREADS;
                uint64_t team = is_tile ? task.team : whole, folds = 2;
                for (uint64_t one = 1; one < team; one *= 2)
                    folds++;
                uint64_t needed =
                    fullest_chain(dtype, n, team * task.parts, is_tile ? 1 : GRID_CHAINS) + folds +
                    task.parts - 1;
                uint64_t serial = (dtype_is_complex(dtype) ? 2 : 1) * n - 1;
                if (needed > serial)
                    needed = serial;
                assert_in_range(grid_depth(&task), needed, needed + 9);
            }
}

/* --- exact tasks --- */

static const struct exact_shape shape = {
    .threads = 256, .capacity = 528, .tile_threads = 256, .tile_capacity = 264};

static struct grid_task exactly_planned(enum dtype dtype, uint32_t rows, uint64_t n,
                                        bool must_split)
{
    struct grid_task task = {.n = n, .rows = rows, .inner_rows = rows, .dtype = dtype};
    exact_plan(&task, &shape, must_split);
    return task;
}

static void a_row_of_several_launches_is_always_split(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 1000000000; n = n * 7 / 3 + 1) {
        struct grid_task task = exactly_planned(DTYPE_FLOAT32, 1, n, true);
        assert_int_equal(task.form, GRID_SPLIT_ROW);
        assert_in_range(task.parts, 1, shape.capacity);
        assert_int_equal(task.blocks, task.parts);
    }
}

static void no_exact_task_takes_more_blocks_than_the_device_holds(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        for (uint32_t rows = 1; rows < 2000; rows = rows * 5 / 3 + 1)
            for (uint64_t n = 1; n < 100000000; n = n * 7 / 3 + 1) {
                struct grid_task task = exactly_planned(dtype, rows, n, false);
                assert_in_range(task.blocks, 1, shape.capacity);
                assert_int_equal(task.blocks % task.parts, 0);
                if (task.form == GRID_SPLIT_ROW)
                    assert_int_equal(task.blocks, task.parts * rows);
                else
                    assert_int_equal(task.parts, 1);
            }
}

static void few_threads_work_where_a_vector_each_is_all_there_is(void **state)
{
    (void)state;
    static const struct exact_shape wide = {.threads = 640, .capacity = 132};
    uint64_t few = 0, all = 0;
    for (uint64_t n = 1; n < 1000000000; n = n * 4 / 3 + 1) {
        struct grid_task task = {.n = n, .rows = 1, .inner_rows = 1, .dtype = DTYPE_FLOAT32};
        exact_plan(&task, &wide, false);
        const uint32_t threads = exact_threads(&task, &wide);
        const uint64_t vectors = (n + 3) / 4;
        if (threads == wide.threads) {
            all++;
            assert_true(vectors > task.parts * UINT64_C(256));
        } else {
            few++;
            assert_int_equal(threads, 256);
            assert_true(vectors <= task.parts * UINT64_C(256));
        }
    }
    assert_true(few > 10 && all > 10);
}

/* --- many tasks in a launch --- */

enum { TASKS = 500 };

/* Rows of 1 to 10^6 elements, most of them short, the next one 1.03 times as long. */
static uint64_t mixed_lengths(uint64_t n[static TASKS])
{
    uint64_t all = 0;
    double length = 1;
    for (int i = 0; i < TASKS; i++, length *= 1.028) {
        n[i] = (uint64_t)length;
        all += n[i];
    }
    return all;
}

static void shares_fill_the_device_and_leave_no_block_little_to_do(void **state)
{
    (void)state;
    uint64_t n[TASKS], blocks = 0;
    const uint64_t size = 2 * sizeof(float), all_bytes = mixed_lengths(n) * size;
    assert_true(all_bytes > (uint64_t)GRID_FULL * CAPACITY * GRID_SHARE_BYTES);
    for (int i = 0; i < TASKS; i++) {
        struct grid_task task = {.n = n[i], .rows = 1, .inner_rows = 1, .dtype = DTYPE_FLOAT32};
        const uint32_t share = grid_share(n[i] * size, all_bytes, CAPACITY);
        assert_in_range(share, 1, CAPACITY);
        grid_plan(&task, share);
        assert_in_range(task.blocks, 1, share);
        if (task.parts > 1)
            assert_true(n[i] * size / task.parts >= GRID_SHARE_BYTES / 2);
        assert_true(n[i] * size / task.parts <= GRID_SHARE_BYTES);
        blocks += task.blocks;
    }
    assert_in_range(blocks, CAPACITY, TASKS + GRID_FULL * CAPACITY);
}

static void a_block_s_share_is_bounded_however_much_there_is(void **state)
{
    (void)state;
    for (uint64_t bytes = 1; bytes < (uint64_t)1 << 26; bytes = bytes * 5 / 3 + 1)
        for (uint64_t others = 0; others < (uint64_t)1 << 40; others = others * 7 + 1000) {
            const uint32_t share = grid_share(bytes, bytes + others, CAPACITY);
            assert_in_range(share, 1, CAPACITY);
            assert_true(bytes / share <= GRID_SHARE_BYTES);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_of_row_gets_its_form),
        cmocka_unit_test(few_rows_are_cut_into_low_tiles),
        cmocka_unit_test(rows_that_are_no_vectors_are_not_read_by_tiles),
        cmocka_unit_test(no_task_takes_more_blocks_than_the_device_holds),
        cmocka_unit_test(the_depth_covers_the_fullest_accumulator),
        cmocka_unit_test(a_row_of_several_launches_is_always_split),
        cmocka_unit_test(no_exact_task_takes_more_blocks_than_the_device_holds),
        cmocka_unit_test(few_threads_work_where_a_vector_each_is_all_there_is),
        cmocka_unit_test(shares_fill_the_device_and_leave_no_block_little_to_do),
        cmocka_unit_test(a_block_s_share_is_bounded_however_much_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
