/* cuda_batch.c - a batch of jobs on one CUDA device (see cuda_batch.h).
 *
 * Jobs are cut into pieces, nearly always one a task, and pieces are placed in a round: the table
 * of one launch. A round is flushed when a table or the arena is full and at the end of the batch.
 */
#include "gpu/cuda_batch.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#include "gpu/bound.h"
#include "gpu/kernels/grid_atomic.h"

enum {
    ROUND_TASKS = 4096,
    ROUND_BLOCKS = 65536,
    ROUND_RESULTS = 65536,
    ARENA_MIN_BYTES = 64 << 10,
    ARENA_ALIGN = 256,         /* of what is copied there, plus its misalignment to a vector load */
    IN_PLACE_BYTES = 32 << 10, /* of a job: above, the copy engine beats loads over the bus */
    IN_PLACE_TERMS = 8 << 10,  /* and so it does when broadcasting would read operands again */
};

/* Whole rows of a task, or a part of one row. */
struct piece {
    struct job *job;
    struct dot_task task;  /* as in gpu.h, cut down; first is the value of row (0, 0) */
    uint64_t value_stride; /* values from one outer row to the next */
    bool is_whole;         /* its sums are the rows' totals; otherwise who cut the row settles it */
};

enum mark { MARK_IN_BEGIN, MARK_IN_END, MARK_OUT_BEGIN, MARK_OUT_END, MARK_COUNT };

/* Everything belongs to the thread that computes. */
struct cuda_batch {
    cudaStream_t stream;
    cudaEvent_t event[MARK_COUNT];
    uint32_t capacity; /* blocks that the device holds at once */
    char *d_arena;     /* device memory for operands */
    size_t arena_bytes, arena_used;
    struct grid_sum *d_split;  /* device memory, [ROUND_RESULTS]: sums of split rows */
    struct grid_sum *split;    /* pinned, [ROUND_RESULTS]: their copy */
    struct grid_sum *result;   /* pinned and mapped, [ROUND_RESULTS]: stored by the kernel */
    struct grid_task *task;    /* pinned and mapped, [ROUND_TASKS]: the table */
    uint32_t *task_of_block;   /* pinned and mapped, [ROUND_BLOCKS] */
    struct grid_launch launch; /* the same addresses in the device's eyes */
    struct piece *piece;       /* heap, [ROUND_TASKS]: what each task of the round is for */
    uint32_t task_count, block_count, result_count, split_count; /* of the round */
    bool has_copies;            /* of the round: MARK_IN_BEGIN was recorded */
    struct backend_times times; /* of the batch so far */
    struct problem *problem;    /* the caller's, while a batch is computed */
};

enum error cuda_check(cudaError_t status, const char *what, struct problem *problem)
{
    if (status == cudaSuccess)
        return ERR_OK;
    return problem_set(problem, ERR_DEVICE, "%s: %s (%s)", what, cudaGetErrorString(status),
                       cudaGetErrorName(status));
}

/* --- creation --- */

static enum error allocate_device(struct cuda_batch *batch, struct problem *problem)
{
    enum error error = cuda_check(cudaMalloc((void **)&batch->d_arena, batch->arena_bytes),
                                  "device memory for operands", problem);
    if (error == ERR_OK)
        error =
            cuda_check(cudaMalloc((void **)&batch->d_split, ROUND_RESULTS * sizeof *batch->d_split),
                       "device memory for sums", problem);
    batch->launch.split = batch->d_split;
    return error;
}

/* Pinned memory that the kernel reaches as *ret_device. */
static enum error allocate_mapped(void **ret_host, void **ret_device, size_t size,
                                  struct problem *problem)
{
    enum error error = cuda_check(cudaHostAlloc(ret_host, size, cudaHostAllocMapped),
                                  "pinned memory for tables", problem);
    if (error == ERR_OK)
        error = cuda_check(cudaHostGetDevicePointer(ret_device, *ret_host, 0),
                           "address of pinned memory", problem);
    return error;
}

static enum error allocate_host(struct cuda_batch *batch, struct problem *problem)
{
    batch->piece = calloc(ROUND_TASKS, sizeof *batch->piece);
    if (batch->piece == NULL)
        return problem_set(problem, ERR_NOMEM, "no memory for a round's pieces");
    enum error error = allocate_mapped((void **)&batch->task, (void **)&batch->launch.task,
                                       ROUND_TASKS * sizeof *batch->task, problem);
    if (error == ERR_OK)
        error =
            allocate_mapped((void **)&batch->task_of_block, (void **)&batch->launch.task_of_block,
                            ROUND_BLOCKS * sizeof *batch->task_of_block, problem);
    if (error == ERR_OK)
        error = allocate_mapped((void **)&batch->result, (void **)&batch->launch.result,
                                ROUND_RESULTS * sizeof *batch->result, problem);
    if (error == ERR_OK)
        error =
            cuda_check(cudaHostAlloc((void **)&batch->split, ROUND_RESULTS * sizeof *batch->split,
                                     cudaHostAllocDefault),
                       "pinned memory for sums", problem);
    return error;
}

static enum error create_stream(struct cuda_batch *batch, struct problem *problem)
{
    enum error error = cuda_check(cudaStreamCreateWithFlags(&batch->stream, cudaStreamNonBlocking),
                                  "stream", problem);
    for (int mark = 0; error == ERR_OK && mark < MARK_COUNT; mark++)
        error = cuda_check(cudaEventCreate(&batch->event[mark]), "event", problem);
    return error;
}

static enum error find_capacity(struct cuda_batch *batch, struct problem *problem)
{
    int device = 0, multiprocessors = 0, blocks = 0;
    enum error error = cuda_check(cudaGetDevice(&device), "current device", problem);
    if (error == ERR_OK)
        error = cuda_check(
            cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
            "multiprocessors", problem);
    if (error == ERR_OK)
        error = cuda_check(grid_atomic_blocks(&blocks), "kernel for this device", problem);
    if (error == ERR_OK && multiprocessors * blocks <= 0)
        error = problem_set(problem, ERR_DEVICE, "the kernel does not fit this device");
    if (error == ERR_OK)
        batch->capacity = (uint32_t)(multiprocessors * blocks);
    assert(batch->capacity <= ROUND_BLOCKS);
    return error;
}

enum error cuda_batch_create(struct cuda_batch **ret, size_t arena_bytes, struct problem *problem)
{
    struct cuda_batch *batch = calloc(1, sizeof *batch);
    if (batch == NULL)
        return problem_set(problem, ERR_NOMEM, "no memory for a device's record");
    batch->arena_bytes = arena_bytes > ARENA_MIN_BYTES ? arena_bytes : ARENA_MIN_BYTES;
    enum error error = find_capacity(batch, problem);
    if (error == ERR_OK)
        error = create_stream(batch, problem);
    if (error == ERR_OK)
        error = allocate_device(batch, problem);
    if (error == ERR_OK)
        error = allocate_host(batch, problem);
    if (error != ERR_OK) {
        cuda_batch_destroy(batch); /* accepts a half-built batch */
        return error;
    }
    *ret = batch;
    return ERR_OK;
}

/* Results are ignored: a lost device cannot free, and its context goes with the process. */
void cuda_batch_destroy(struct cuda_batch *batch)
{
    if (batch == NULL)
        return;
    for (int mark = 0; mark < MARK_COUNT; mark++)
        if (batch->event[mark] != NULL)
            (void)cudaEventDestroy(batch->event[mark]);
    if (batch->stream != NULL)
        (void)cudaStreamDestroy(batch->stream);
    (void)cudaFree(batch->d_arena);
    (void)cudaFree(batch->d_split);
    (void)cudaFreeHost(batch->split);
    (void)cudaFreeHost(batch->result);
    (void)cudaFreeHost(batch->task_of_block);
    (void)cudaFreeHost(batch->task);
    free(batch->piece);
    free(batch);
}

/* --- one round --- */

static enum error mark(struct cuda_batch *batch, enum mark which)
{
    return cuda_check(cudaEventRecord(batch->event[which], batch->stream), "event", batch->problem);
}

static int64_t elapsed_ns(const struct cuda_batch *batch, enum mark begin, enum mark end)
{
    float ms = 0;
    if (cudaEventElapsedTime(&ms, batch->event[begin], batch->event[end]) != cudaSuccess)
        return 0; /* a time only: the results stand */
    return (int64_t)((double)ms * 1e6);
}

/* Queues zeroing, the kernel, and the copy of split sums; waits for none of it. */
static enum error round_launch(struct cuda_batch *batch)
{
    struct grid_launch launch = batch->launch;
    if (batch->task_count == 1) {
        launch.only = batch->task[0];
        launch.task_of_block = NULL;
    }
    size_t split_bytes = batch->split_count * sizeof *batch->split;
    enum error error = batch->has_copies ? mark(batch, MARK_IN_END) : ERR_OK;
    if (error == ERR_OK && split_bytes > 0)
        error = cuda_check(cudaMemsetAsync(batch->d_split, 0, split_bytes, batch->stream),
                           "zeroing sums", batch->problem);
    if (error == ERR_OK)
        error = cuda_check(grid_atomic_launch(&launch, batch->block_count, batch->stream), "launch",
                           batch->problem);
    if (error == ERR_OK && split_bytes > 0)
        error = mark(batch, MARK_OUT_BEGIN);
    if (error == ERR_OK && split_bytes > 0)
        error = cuda_check(cudaMemcpyAsync(batch->split, batch->d_split, split_bytes,
                                           cudaMemcpyDeviceToHost, batch->stream),
                           "copying sums", batch->problem);
    if (error == ERR_OK && split_bytes > 0)
        error = mark(batch, MARK_OUT_END);
    return error;
}

/* Where row (i, j) of an operand begins on the host. */
static const char *row_data(const struct job *job, size_t offset, const uint64_t stride[2],
                            uint64_t i, uint64_t j, enum dtype dtype)
{
    return (const char *)job->base + offset + (i * stride[0] + j * stride[1]) * dtype_size(dtype);
}

/* Adds a piece's sums to its values. They began at zero, and only a row in parts has several. */
static void collect_piece(const struct piece *piece, const struct grid_sum *sum, uint64_t depth)
{
    const struct dot_task *task = &piece->task;
    for (uint64_t i = 0; i < task->rows[0]; i++)
        for (uint64_t j = 0; j < task->rows[1]; j++, sum++) {
            struct dot_value *value = piece->job->value + task->first + i * piece->value_stride + j;
            value->sum += sum->sum;
            value->sum_abs += sum->sum_abs;
            if (piece->is_whole)
                value_settle(value, task->dtype,
                             row_data(piece->job, task->a, task->stride_a, i, j, task->dtype),
                             row_data(piece->job, task->b, task->stride_b, i, j, task->dtype),
                             task->n, depth);
        }
}

static void round_collect(struct cuda_batch *batch)
{
    for (uint32_t i = 0; i < batch->task_count; i++) {
        const struct grid_task *task = &batch->task[i];
        const struct grid_sum *sums = task->form == GRID_SPLIT_ROW ? batch->split : batch->result;
        collect_piece(&batch->piece[i], sums + task->result, grid_depth(task));
    }
    if (batch->has_copies)
        batch->times.copy_in_ns += elapsed_ns(batch, MARK_IN_BEGIN, MARK_IN_END);
    if (batch->split_count > 0)
        batch->times.copy_out_ns += elapsed_ns(batch, MARK_OUT_BEGIN, MARK_OUT_END);
}

static void round_clear(struct cuda_batch *batch)
{
    batch->task_count = batch->block_count = batch->result_count = batch->split_count = 0;
    batch->has_copies = false;
}

/* Launches, waits, collects. The arena keeps what it holds: pieces still to come may lie there. */
static enum error round_flush(struct cuda_batch *batch)
{
    if (batch->task_count == 0)
        return ERR_OK;
    enum error error = round_launch(batch);
    if (error == ERR_OK)
        error = cuda_check(cudaStreamSynchronize(batch->stream), "computing", batch->problem);
    if (error == ERR_OK)
        round_collect(batch);
    round_clear(batch);
    return error;
}

static bool round_has_room(const struct cuda_batch *batch, uint64_t rows)
{
    return batch->task_count < ROUND_TASKS && batch->result_count + rows <= ROUND_RESULTS &&
           batch->split_count + rows <= ROUND_RESULTS &&
           batch->block_count + batch->capacity <= ROUND_BLOCKS;
}

static void round_append(struct cuda_batch *batch, struct grid_task *task)
{
    uint32_t *place = task->form == GRID_SPLIT_ROW ? &batch->split_count : &batch->result_count;
    task->result = *place;
    *place += task->rows;
    task->first_block = batch->block_count;
    for (uint32_t block = 0; block < task->blocks; block++)
        batch->task_of_block[batch->block_count++] = batch->task_count;
    batch->task[batch->task_count++] = *task;
}

/* Enters a piece whose operands begin at d_a and d_b on the device. */
static enum error round_add(struct cuda_batch *batch, const struct piece *piece, const char *d_a,
                            const char *d_b)
{
    const struct dot_task *task = &piece->task;
    uint64_t rows = task->rows[0] * task->rows[1];
    assert(rows > 0 && rows <= ROUND_RESULTS);
    enum error error = round_has_room(batch, rows) ? ERR_OK : round_flush(batch);
    if (error != ERR_OK)
        return error;
    struct grid_task grid = {
        .a = d_a,
        .b = d_b,
        .n = task->n,
        .stride_a = {task->stride_a[0], task->stride_a[1]},
        .stride_b = {task->stride_b[0], task->stride_b[1]},
        .rows = (uint32_t)rows,
        .inner_rows = (uint32_t)task->rows[1],
        .dtype = task->dtype,
    };
    grid_plan(&grid, batch->capacity);
    batch->piece[batch->task_count] = *piece;
    round_append(batch, &grid);
    return ERR_OK;
}

/* --- staging --- */

/* Room for size bytes, whatever their alignment. Flushes when the arena is full: what lies there
 * has then been used. */
static enum error arena_take(struct cuda_batch *batch, size_t size, char **ret)
{
    assert(size <= batch->arena_bytes);
    if (size > batch->arena_bytes - batch->arena_used) {
        enum error error = round_flush(batch);
        if (error != ERR_OK)
            return error;
        batch->arena_used = 0;
    }
    *ret = batch->d_arena + batch->arena_used;
    batch->arena_used += size;
    return ERR_OK;
}

/* What `size` bytes take in the arena, with the gap that keeps their alignment. */
static size_t staged_bytes(size_t size)
{
    return (size + GRID_LOAD_BYTES + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

/* Queues a copy to the room at d_room; *ret is where data then lies, as far from the boundary of a
 * vector load as on the host. */
static enum error stage(struct cuda_batch *batch, char *d_room, const char *data, size_t size,
                        const char **ret)
{
    char *d_data = d_room + (uintptr_t)data % GRID_LOAD_BYTES;
    enum error error = batch->has_copies ? ERR_OK : mark(batch, MARK_IN_BEGIN);
    if (error == ERR_OK)
        error =
            cuda_check(cudaMemcpyAsync(d_data, data, size, cudaMemcpyHostToDevice, batch->stream),
                       "copying operands", batch->problem);
    batch->has_copies = true;
    *ret = d_data;
    return error;
}

/* Bytes of an operand from its first row to the end of its last. */
static size_t span_bytes(const struct dot_task *task, const uint64_t stride[2])
{
    uint64_t last = (task->rows[0] - 1) * stride[0] + (task->rows[1] - 1) * stride[1];
    return (last + task->n) * dtype_size(task->dtype);
}

static size_t piece_bytes(const struct piece *piece)
{
    return staged_bytes(span_bytes(&piece->task, piece->task.stride_a)) +
           staged_bytes(span_bytes(&piece->task, piece->task.stride_b));
}

/* Copies just what the piece reads, and enters it. */
static enum error add_staged(struct cuda_batch *batch, const struct piece *piece)
{
    const struct dot_task *task = &piece->task;
    size_t size_a = span_bytes(task, task->stride_a), size_b = span_bytes(task, task->stride_b);
    const char *base = piece->job->base, *d_a = NULL, *d_b = NULL;
    char *d_room = NULL;
    enum error error = arena_take(batch, piece_bytes(piece), &d_room);
    if (error == ERR_OK)
        error = stage(batch, d_room, base + task->a, size_a, &d_a);
    if (error == ERR_OK)
        error = stage(batch, d_room + staged_bytes(size_a), base + task->b, size_b, &d_b);
    if (error == ERR_OK)
        error = round_add(batch, piece, d_a, d_b);
    return error;
}

/* --- cutting --- */

static uint64_t part_depth(const struct cuda_batch *batch, enum dtype dtype, uint64_t n)
{
    struct grid_task task = {.n = n, .rows = 1, .dtype = dtype};
    grid_plan(&task, batch->capacity);
    return grid_depth(&task);
}

/* A row that the arena cannot hold: part after part, each added to the same value. */
static enum error add_row_in_parts(struct cuda_batch *batch, const struct piece *row)
{
    size_t size = dtype_size(row->task.dtype);
    uint64_t part_n = (batch->arena_bytes / 2 - GRID_LOAD_BYTES - ARENA_ALIGN) / size;
    uint64_t depth = 0, parts = 0;
    for (uint64_t done = 0; done < row->task.n; done += part_n, parts++) {
        struct piece part = *row;
        part.is_whole = false;
        part.task.n = row->task.n - done < part_n ? row->task.n - done : part_n;
        part.task.a += done * size;
        part.task.b += done * size;
        uint64_t deep = part_depth(batch, part.task.dtype, part.task.n);
        depth = deep > depth ? deep : depth;
        enum error error = add_staged(batch, &part);
        if (error != ERR_OK)
            return error;
    }
    enum error error = round_flush(batch);
    if (error == ERR_OK) {
        const char *base = row->job->base;
        value_settle(row->job->value + row->task.first, row->task.dtype, base + row->task.a,
                     base + row->task.b, row->task.n, depth + parts);
    }
    return error;
}

/* The second half of a piece's outer rows, or of its only outer row; *piece keeps the first. */
static struct piece piece_halve(struct piece *piece)
{
    int axis = piece->task.rows[0] > 1 ? 0 : 1;
    uint64_t kept = piece->task.rows[axis] / 2;
    size_t size = dtype_size(piece->task.dtype);
    assert(kept > 0);
    struct piece rest = *piece;
    piece->task.rows[axis] = kept;
    rest.task.rows[axis] -= kept;
    rest.task.a += kept * rest.task.stride_a[axis] * size;
    rest.task.b += kept * rest.task.stride_b[axis] * size;
    rest.task.first += kept * (axis == 0 ? rest.value_stride : 1);
    return rest;
}

/* Enters a piece, cut as often as tables and arena ask for. d_base: where the job's base lies on
 * the device; NULL: each piece is copied by itself. Recursion halves rows: at most 64 deep. */
static enum error add_piece(struct cuda_batch *batch, struct piece piece, const char *d_base)
{
    const struct dot_task *task = &piece.task;
    uint64_t rows = task->rows[0] * task->rows[1];
    bool fits = d_base != NULL || piece_bytes(&piece) <= batch->arena_bytes;
    if (rows <= ROUND_RESULTS && fits)
        return d_base != NULL ? round_add(batch, &piece, d_base + task->a, d_base + task->b)
                              : add_staged(batch, &piece);
    if (rows == 1)
        return add_row_in_parts(batch, &piece);
    struct piece rest = piece_halve(&piece);
    enum error error = add_piece(batch, piece, d_base);
    return error == ERR_OK ? add_piece(batch, rest, d_base) : error;
}

static bool is_in_place(const struct cuda_pinned *pinned, const struct job *job)
{
    uintptr_t base = (uintptr_t)job->base, data = (uintptr_t)pinned->data;
    return job->bytes <= IN_PLACE_BYTES && job->term_count <= IN_PLACE_TERMS &&
           pinned->data != NULL && base >= data && base - data <= pinned->size &&
           job->bytes <= pinned->size - (base - data);
}

/* Finds or makes a place for all of a job's operands; *ret stays NULL when they do not fit. */
static enum error job_place(struct cuda_batch *batch, const struct cuda_pinned *pinned,
                            const struct job *job, const char **ret)
{
    if (is_in_place(pinned, job)) {
        *ret = pinned->d_data + ((const char *)job->base - pinned->data);
        return ERR_OK;
    }
    size_t room = staged_bytes(job->bytes);
    if (room > batch->arena_bytes)
        return ERR_OK;
    char *d_room = NULL;
    enum error error = arena_take(batch, room, &d_room);
    return error == ERR_OK ? stage(batch, d_room, job->base, job->bytes, ret) : error;
}

static enum error job_add(struct cuda_batch *batch, const struct cuda_pinned *pinned,
                          struct job *job)
{
    const char *d_base = NULL;
    for (size_t i = 0; i < job->value_count; i++)
        job->value[i] = (struct dot_value){0};
    if (job->task_count == 0)
        return ERR_OK;
    enum error error = job_place(batch, pinned, job, &d_base);
    for (size_t i = 0; error == ERR_OK && i < job->task_count; i++) {
        struct piece piece = {
            .job = job,
            .task = job->task[i],
            .value_stride = job->task[i].rows[1],
            .is_whole = true,
        };
        error = add_piece(batch, piece, d_base);
    }
    return error;
}

enum error cuda_batch_compute(struct cuda_batch *batch, const struct cuda_pinned *pinned,
                              struct job *first, struct backend_times *ret, struct problem *problem)
{
    enum error error = ERR_OK;
    batch->problem = problem;
    batch->times = (struct backend_times){0};
    batch->arena_used = 0;
    round_clear(batch);
    for (struct job *job = first; error == ERR_OK && job != NULL; job = job->next)
        error = job_add(batch, pinned, job);
    if (error == ERR_OK)
        error = round_flush(batch);
    *ret = batch->times;
    return error;
}
