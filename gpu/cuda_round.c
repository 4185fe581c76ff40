/* cuda_round.c - the launches of one round (see cuda_round.h). */
#include "gpu/cuda_round.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#include "gpu/cuda_check.h"
#include "gpu/cuda_tables.h"
#include "gpu/kernels/exact.h"
#include "gpu/kernels/grid_atomic.h"

enum {
    TOTAL_OF_PARTS = 0,      /* kept for a row that is computed in parts */
    KINDS = 2 * DTYPE_COUNT, /* of kernels: one a type, fast, and one, exact */
};

/* What a kernel has to do in a round. */
struct load {
    uint32_t tasks;
    uint64_t blocks; /* as its tasks were planned, each for the whole device */
    uint64_t bytes;  /* of their operands */
    uint32_t tiled;  /* tasks of GRID_TILE_ROW, for another kernel; set when dealt */
};

/* One above the lowest, 0, which the lab's stream has: waiting blocks of the service go first. */
enum { STREAM_PRIORITY = -1 };

enum mark { MARK_IN_BEGIN, MARK_IN_END, MARK_OUT_BEGIN, MARK_OUT_END, MARK_COUNT };

/* Everything belongs to the thread that computes. */
struct cuda_round {
    cudaStream_t stream;
    cudaEvent_t event[MARK_COUNT];
    uint32_t capacity[DTYPE_COUNT];        /* of the fast kernels: blocks held at once */
    struct exact_shape shape[DTYPE_COUNT]; /* of the exact kernels */
    uint32_t most_blocks;                  /* of any task */
    struct cuda_tables tables;
    uint32_t blocks_most;       /* the table's block_count will not pass it */
    struct load load[KINDS];    /* by kind_of() */
    bool has_copies;            /* of the round: MARK_IN_BEGIN was recorded */
    struct backend_times times; /* of the batch so far */
    struct problem *problem;    /* the caller's, while a batch is computed */
};

/* --- creation --- */

static enum error zero_totals(struct cuda_round *round, uint32_t count, struct problem *problem)
{
    return cuda_check(cudaMemsetAsync(round->tables.d_total, 0,
                                      count * sizeof *round->tables.d_total, round->stream),
                      "zeroing exact sums", problem);
}

static enum error create_stream(struct cuda_round *round, struct problem *problem)
{
    enum error error = cuda_check(
        cudaStreamCreateWithPriority(&round->stream, cudaStreamNonBlocking, STREAM_PRIORITY),
        "stream", problem);
    for (int mark = 0; error == ERR_OK && mark < MARK_COUNT; mark++)
        error = cuda_check(cudaEventCreate(&round->event[mark]), "event", problem);
    return error;
}

static void widen(struct cuda_round *round, uint32_t blocks)
{
    round->most_blocks = blocks > round->most_blocks ? blocks : round->most_blocks;
}

static enum error open_kernels(struct cuda_round *round, enum dtype dtype, uint32_t multiprocessors,
                               struct problem *problem)
{
    int blocks = 0;
    enum error error =
        cuda_check(grid_atomic_blocks(dtype, &blocks), "kernel for this device", problem);
    if (error == ERR_OK)
        error = cuda_check(exact_open(dtype, multiprocessors, &round->shape[dtype]),
                           "exact kernel for this device", problem);
    if (error != ERR_OK)
        return error;
    round->capacity[dtype] = multiprocessors * (uint32_t)blocks;
    if (round->capacity[dtype] == 0 || round->shape[dtype].capacity == 0)
        return problem_set(problem, ERR_DEVICE, "the kernels of %s do not fit this device",
                           dtype_name(dtype));
    widen(round, round->capacity[dtype]);
    widen(round, round->shape[dtype].capacity);
    widen(round, round->shape[dtype].tile_capacity);
    return ERR_OK;
}

static enum error open_all_kernels(struct cuda_round *round, struct problem *problem)
{
    int device = 0, multiprocessors = 0;
    enum error error = cuda_check(cudaGetDevice(&device), "current device", problem);
    if (error == ERR_OK)
        error = cuda_check(
            cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
            "multiprocessors", problem);
    for (int dtype = 0; error == ERR_OK && dtype < DTYPE_COUNT; dtype++)
        error = open_kernels(round, (enum dtype)dtype, (uint32_t)multiprocessors, problem);
    assert(2 * (1 + GRID_FULL) * round->most_blocks <= ROUND_BLOCKS);
    return error;
}

enum error cuda_round_create(struct cuda_round **ret, struct problem *problem)
{
    struct cuda_round *round = calloc(1, sizeof *round);
    if (round == NULL)
        return problem_set(problem, ERR_NOMEM, "no memory for a device's record");
    enum error error = open_all_kernels(round, problem);
    if (error == ERR_OK)
        error = create_stream(round, problem);
    if (error == ERR_OK)
        error = cuda_tables_open(&round->tables, problem);
    if (error == ERR_OK)
        error = zero_totals(round, ROUND_TOTALS, problem);
    if (error != ERR_OK) {
        cuda_round_destroy(round); /* accepts a half-built round */
        return error;
    }
    *ret = round;
    return ERR_OK;
}

/* Results are ignored: a device that was lost cannot free, and its context goes with the
 * process. */
void cuda_round_destroy(struct cuda_round *round)
{
    if (round == NULL)
        return;
    for (int mark = 0; mark < MARK_COUNT; mark++)
        if (round->event[mark] != NULL)
            (void)cudaEventDestroy(round->event[mark]);
    if (round->stream != NULL)
        (void)cudaStreamDestroy(round->stream);
    cuda_tables_close(&round->tables);
    free(round);
}

/* --- copies and times --- */

static void round_clear(struct cuda_round *round)
{
    cuda_tables_clear(&round->tables);
    round->tables.total_count = TOTAL_OF_PARTS + 1;
    round->blocks_most = 0;
    for (int kind = 0; kind < KINDS; kind++)
        round->load[kind] = (struct load){0};
    round->has_copies = false;
}

void cuda_round_begin(struct cuda_round *round, struct problem *problem)
{
    round->problem = problem;
    round->times = (struct backend_times){0};
    round_clear(round);
}

struct backend_times cuda_round_times(const struct cuda_round *round)
{
    return round->times;
}

static enum error mark(struct cuda_round *round, enum mark which)
{
    return cuda_check(cudaEventRecord(round->event[which], round->stream), "event", round->problem);
}

static int64_t elapsed_ns(const struct cuda_round *round, enum mark begin, enum mark end)
{
    float ms = 0;
    if (cudaEventElapsedTime(&ms, round->event[begin], round->event[end]) != cudaSuccess)
        return 0; /* a time only: the results stand */
    return (int64_t)((double)ms * 1e6);
}

enum error cuda_round_copy(struct cuda_round *round, void *d_to, const void *from, size_t size)
{
    enum error error = round->has_copies ? ERR_OK : mark(round, MARK_IN_BEGIN);
    if (error == ERR_OK)
        error = cuda_check(cudaMemcpyAsync(d_to, from, size, cudaMemcpyHostToDevice, round->stream),
                           "copying operands", round->problem);
    round->has_copies = true;
    return error;
}

/* --- entering --- */

bool piece_is_exact(const struct piece *piece)
{
    return piece->job->accuracy == ACCURACY_EXACT || dtype_is_integer(piece->task.dtype);
}

/* For a piece's task and the one for its absolute values. */
static bool has_room(const struct cuda_round *round, uint32_t rows)
{
    const struct cuda_tables *tables = &round->tables;
    const uint32_t values = 2 * rows;
    return tables->task_count + 2 <= ROUND_TASKS && tables->sum_count + values <= ROUND_VALUES &&
           tables->split_count + values <= ROUND_VALUES &&
           tables->value_count + values <= ROUND_VALUES &&
           round->blocks_most + 2 * (1 + GRID_FULL) * round->most_blocks <= ROUND_BLOCKS;
}

static int kind_of(enum dtype dtype, bool is_exact)
{
    return 2 * (int)dtype + is_exact;
}

/* Of a task's operands; what broadcasts is read again. */
static uint64_t task_bytes(const struct grid_task *task)
{
    return 2 * task->n * task->rows * dtype_size((enum dtype)task->dtype);
}

static struct grid_task grid_task_of(const struct piece *piece, const char *d_a, const char *d_b)
{
    const struct dot_task *task = &piece->task;
    return (struct grid_task){
        .a = d_a,
        .b = d_b,
        .n = task->n,
        .stride_a = {task->stride_a[0], task->stride_a[1]},
        .stride_b = {task->stride_b[0], task->stride_b[1]},
        .rows = (uint32_t)(task->rows[0] * task->rows[1]),
        .inner_rows = (uint32_t)task->rows[1],
        .dtype = task->dtype,
        .result_dtype = piece->job->result_dtype,
        .conjugate = piece->job->conjugate,
        .is_final = piece->kind != PIECE_PART,
    };
}

static uint32_t capacity_of(const struct cuda_round *round, enum dtype dtype, bool is_exact)
{
    return is_exact ? round->shape[dtype].capacity : round->capacity[dtype];
}

/* A task keeps its blocks, or gets by share_blocks() those that grid_share() grants: all tasks of a
 * kernel together a block each, and GRID_FULL devices full or one for each GRID_SHARE_BYTES. */
static void count_load(struct cuda_round *round, const struct grid_task *task, bool is_exact,
                       bool may_shrink)
{
    const enum dtype dtype = (enum dtype)task->dtype;
    const uint64_t bytes = task_bytes(task), shares = 1 + bytes / GRID_SHARE_BYTES;
    struct load *load = &round->load[kind_of(dtype, is_exact)];
    if (load->tasks == 0)
        round->blocks_most += GRID_FULL * capacity_of(round, dtype, is_exact);
    round->blocks_most += may_shrink && shares < task->blocks ? (uint32_t)shares : task->blocks;
    load->tasks++;
    load->blocks += task->blocks;
    load->bytes += bytes;
}

static void append(struct cuda_round *round, const struct piece *piece, enum purpose purpose,
                   const struct grid_task *task)
{
    struct cuda_tables *tables = &round->tables;
    tables->entry[tables->task_count] = (struct entry){*piece, purpose};
    tables->task[tables->task_count++] = *task;
    count_load(round, task, purpose == PURPOSE_EXACT, piece->kind == PIECE_ROWS);
}

static void append_fast(struct cuda_round *round, const struct piece *piece, enum purpose purpose,
                        struct grid_task task)
{
    struct cuda_tables *tables = &round->tables;
    const uint32_t values = task.rows * dtype_part_count((enum dtype)task.dtype);
    grid_plan(&task, round->capacity[task.dtype]);
    task.result = tables->sum_count;
    task.total = tables->split_count;
    tables->sum_count += values; /* also of rows that are split: they may not stay so */
    tables->split_count += task.form == GRID_SPLIT_ROW ? values : 0;
    append(round, piece, purpose, &task);
}

/* ERR_OK, or what flushing gave when the table of totals was full. */
static enum error append_exact(struct cuda_round *round, const struct piece *piece,
                               struct grid_task task)
{
    struct cuda_tables *tables = &round->tables;
    exact_plan(&task, &round->shape[task.dtype], piece->kind != PIECE_ROWS);
    const uint32_t totals = task.form == GRID_SPLIT_ROW ? task.rows : 0;
    if (piece->kind != PIECE_ROWS) {
        task.total = TOTAL_OF_PARTS;
    } else {
        if (tables->total_count + totals > ROUND_TOTALS) {
            enum error error = cuda_round_flush(round);
            if (error != ERR_OK)
                return error;
        }
        task.total = tables->total_count;
        tables->total_count += totals;
    }
    task.result = tables->value_count;
    tables->value_count += task.rows * dtype_part_count((enum dtype)task.dtype);
    append(round, piece, PURPOSE_EXACT, &task);
    return ERR_OK;
}

enum error cuda_round_add(struct cuda_round *round, const struct piece *piece, const char *d_a,
                          const char *d_b)
{
    const struct grid_task task = grid_task_of(piece, d_a, d_b);
    assert(task.rows > 0 && task.rows <= ROUND_ROWS);
    enum error error = has_room(round, task.rows) ? ERR_OK : cuda_round_flush(round);
    if (error != ERR_OK)
        return error;
    if (!piece_is_exact(piece)) {
        append_fast(round, piece, PURPOSE_FAST, task);
        return ERR_OK;
    }
    error = append_exact(round, piece, task);
    if (error == ERR_OK && piece->job->wants_abs)
        append_fast(round, piece, PURPOSE_ABS, task);
    return error;
}

uint64_t cuda_round_depth(const struct cuda_round *round, enum dtype dtype, uint64_t n)
{
    struct grid_task task = {.n = n, .rows = 1, .dtype = dtype};
    grid_plan(&task, round->capacity[dtype]);
    return grid_depth(&task);
}

/* --- launching --- */

/* Which of a type's kernels: whether it is exact, and reads tiles. */
static bool is_of(const struct cuda_round *round, uint32_t index, enum dtype dtype, bool is_exact,
                  bool has_tiles)
{
    const struct grid_task *task = &round->tables.task[index];
    return task->dtype == dtype &&
           (round->tables.entry[index].purpose == PURPOSE_EXACT) == is_exact &&
           (task->form == GRID_TILE_ROW) == has_tiles;
}

/* Of tasks that together have blocks enough, each gets its share. Parts of a row keep the depth
 * that they were promised (cuda_round_depth()), and their places. */
static void share_blocks(const struct cuda_round *round, uint32_t index)
{
    struct grid_task *task = &round->tables.task[index];
    const bool is_exact = round->tables.entry[index].purpose == PURPOSE_EXACT;
    const struct load *load = &round->load[kind_of((enum dtype)task->dtype, is_exact)];
    struct exact_shape shape = round->shape[task->dtype];
    const uint32_t capacity = capacity_of(round, (enum dtype)task->dtype, is_exact);
    if (load->blocks <= (uint64_t)GRID_FULL * capacity ||
        round->tables.entry[index].piece.kind != PIECE_ROWS)
        return;
    shape.capacity = grid_share(task_bytes(task), load->bytes, capacity);
    if (shape.tile_capacity > shape.capacity)
        shape.tile_capacity = shape.capacity;
    if (is_exact)
        exact_plan(task, &shape, false);
    else
        grid_plan(task, shape.capacity);
}

/* Every task's blocks, which decide about its form. */
static void share_all_blocks(struct cuda_round *round)
{
    for (int kind = 0; kind < KINDS; kind++)
        round->load[kind].tiled = 0;
    for (uint32_t i = 0; i < round->tables.task_count; i++) {
        const struct grid_task *task = &round->tables.task[i];
        const bool is_exact = round->tables.entry[i].purpose == PURPOSE_EXACT;
        share_blocks(round, i);
        round->load[kind_of((enum dtype)task->dtype, is_exact)].tiled +=
            task->form == GRID_TILE_ROW;
    }
}

/* The blocks of a kernel's tasks, from the table's block_count on. *ret_only: its task if it has
 * one. */
static uint32_t deal_blocks(struct cuda_round *round, enum dtype dtype, bool is_exact,
                            bool has_tiles, const struct grid_task **ret_only)
{
    struct cuda_tables *tables = &round->tables;
    const uint32_t first = tables->block_count;
    const struct load *load = &round->load[kind_of(dtype, is_exact)];
    const uint32_t tasks = has_tiles ? load->tiled : load->tasks - load->tiled;
    for (uint32_t i = 0; tasks > 0 && i < tables->task_count; i++) {
        struct grid_task *task = &tables->task[i];
        if (!is_of(round, i, dtype, is_exact, has_tiles))
            continue;
        task->first_block = tables->block_count - first;
        for (uint32_t block = 0; block < task->blocks; block++)
            tables->task_of_block[tables->block_count++] = i;
        *ret_only = tasks == 1 ? task : NULL;
    }
    assert(tables->block_count <= ROUND_BLOCKS);
    return tables->block_count - first;
}

static cudaError_t launch_fast(struct cuda_round *round, enum dtype dtype,
                               const uint32_t *d_task_of_block, const struct grid_task *only,
                               uint32_t blocks, bool has_tiles)
{
    struct grid_launch launch = {
        .task = round->tables.d_task,
        .task_of_block = only == NULL ? d_task_of_block : NULL,
        .result = round->tables.d_sum,
        .split = round->tables.d_split,
        .has_tiles = has_tiles,
    };
    if (only != NULL)
        launch.only = *only;
    return grid_atomic_launch(dtype, &launch, blocks, round->stream);
}

static cudaError_t launch_exact(struct cuda_round *round, enum dtype dtype,
                                const uint32_t *d_task_of_block, const struct grid_task *only,
                                uint32_t blocks, bool has_tiles)
{
    struct exact_launch launch = {
        .task = round->tables.d_task,
        .task_of_block = only == NULL ? d_task_of_block : NULL,
        .result = round->tables.d_value,
        .row = round->tables.d_row,
        .total = round->tables.d_total,
        .has_tiles = has_tiles,
    };
    if (only != NULL)
        launch.only = *only;
    return exact_launch(dtype, &round->shape[dtype], &launch, blocks, round->stream);
}

static cudaError_t launch_kernel(struct cuda_round *round, enum dtype dtype, bool is_exact,
                                 bool has_tiles)
{
    const uint32_t *d_task_of_block = round->tables.d_task_of_block + round->tables.block_count;
    const struct grid_task *only = NULL;
    const uint32_t blocks = deal_blocks(round, dtype, is_exact, has_tiles, &only);
    if (blocks == 0)
        return cudaSuccess;
    return (is_exact ? launch_exact : launch_fast)(round, dtype, d_task_of_block, only, blocks,
                                                   has_tiles);
}

static enum error launch_kernels(struct cuda_round *round)
{
    cudaError_t status = cudaSuccess;
    round->tables.block_count = 0;
    share_all_blocks(round);
    for (int kind = 0; status == cudaSuccess && kind < KINDS; kind++) {
        status = launch_kernel(round, (enum dtype)(kind / 2), kind % 2, false);
        if (status == cudaSuccess)
            status = launch_kernel(round, (enum dtype)(kind / 2), kind % 2, true);
    }
    return cuda_check(status, "launch", round->problem);
}

/* Queues zeroing, the kernels, and the copy of split sums; waits for none of it. */
static enum error round_launch(struct cuda_round *round)
{
    const struct cuda_tables *tables = &round->tables;
    const size_t split_bytes = tables->split_count * sizeof *tables->split;
    enum error error = round->has_copies ? mark(round, MARK_IN_END) : ERR_OK;
    if (error == ERR_OK && split_bytes > 0)
        error = cuda_check(cudaMemsetAsync(tables->d_split, 0, split_bytes, round->stream),
                           "zeroing sums", round->problem);
    if (error == ERR_OK)
        error = launch_kernels(round);
    if (error == ERR_OK && split_bytes > 0)
        error = mark(round, MARK_OUT_BEGIN);
    if (error == ERR_OK && split_bytes > 0)
        error = cuda_check(cudaMemcpyAsync(tables->split, tables->d_split, split_bytes,
                                           cudaMemcpyDeviceToHost, round->stream),
                           "copying sums", round->problem);
    if (error == ERR_OK && split_bytes > 0)
        error = mark(round, MARK_OUT_END);
    return error;
}

/* --- the end of a round --- */

static void round_collect(struct cuda_round *round)
{
    cuda_tables_collect(&round->tables);
    if (round->has_copies)
        round->times.copy_in_ns += elapsed_ns(round, MARK_IN_BEGIN, MARK_IN_END);
    if (round->tables.split_count > 0)
        round->times.copy_out_ns += elapsed_ns(round, MARK_OUT_BEGIN, MARK_OUT_END);
}

/* Queues a copy of what parts have added up to, and empties it. */
static enum error queue_sum(struct cuda_round *round)
{
    const struct cuda_tables *tables = &round->tables;
    enum error error =
        cuda_check(cudaMemcpyAsync(tables->total, &tables->d_total[TOTAL_OF_PARTS],
                                   sizeof *tables->total, cudaMemcpyDeviceToHost, round->stream),
                   "copying an exact sum", round->problem);
    return error == ERR_OK ? zero_totals(round, TOTAL_OF_PARTS + 1, round->problem) : error;
}

/* One wait for everything: it costs as much as copying half a mebibyte. */
static enum error round_run(struct cuda_round *round, bool takes_sum)
{
    enum error error = round->tables.task_count > 0 ? round_launch(round) : ERR_OK;
    if (error == ERR_OK && takes_sum)
        error = queue_sum(round);
    if (error == ERR_OK)
        error = cuda_check(cudaStreamSynchronize(round->stream), "computing", round->problem);
    if (error == ERR_OK)
        round_collect(round);
    round_clear(round);
    return error;
}

enum error cuda_round_flush(struct cuda_round *round)
{
    return round->tables.task_count > 0 ? round_run(round, false) : ERR_OK;
}

enum error cuda_round_take_sum(struct cuda_round *round, struct exact_sum *ret)
{
    enum error error = round_run(round, true);
    if (error != ERR_OK)
        return error;
    const struct exact_total *total = round->tables.total;
    for (uint32_t part = 0; part < dtype_part_count(ret->dtype); part++)
        exact_part_load(&ret->part[part], total->limb[part],
                        total->special >> (part * EXACT_PART_BITS) & ((1 << EXACT_PART_BITS) - 1));
    return ERR_OK;
}

/* A row may have left its parts in a total, copies may still be on their way. */
enum error cuda_round_recover(struct cuda_round *round)
{
    round_clear(round);
    enum error error = zero_totals(round, ROUND_TOTALS, round->problem);
    if (error == ERR_OK)
        error = cuda_check(cudaStreamSynchronize(round->stream), "recovering", round->problem);
    return error == ERR_OK ? ERR_OK : ERR_DEVICE;
}
