/* cuda_batch.c - a batch of jobs on one CUDA device (see cuda_batch.h).
 *
 * Jobs are cut into pieces, nearly always one a task; where the operands do not lie in memory that
 * the device reads in place, they are copied into the staging arena; and the pieces are entered in
 * a round (cuda_round.h). A round is flushed when its tables or the arena are full and at the end
 * of the batch.
 */
#include "gpu/cuda_batch.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#include "gpu/bound.h"
#include "gpu/cuda_check.h"
#include "gpu/cuda_round.h"
#include "gpu/kernels/grid.h"
#include "gpu/partial.h"

enum {
    ARENA_MIN_BYTES = 64 << 10,
    ARENA_ALIGN = 256,         /* of what is copied there, plus its misalignment to a vector load */
    IN_PLACE_BYTES = 32 << 10, /* of a job: above, the copy engine beats loads over the bus */
    IN_PLACE_TERMS = 8 << 10,  /* and so it does when broadcasting would read operands again */
    COPY_BYTES = 64 << 10,     /* are on their way while one more copy is queued */
};

/* Where on the device a job's operands lie. */
struct placed {
    const char *d_data; /* NULL: each piece is copied by itself */
    size_t from;        /* what lies there begins so many bytes from the job's base */
};

/* Everything belongs to the thread that computes. */
struct cuda_batch {
    struct cuda_round *round;
    char *d_arena; /* device memory for operands */
    size_t arena_bytes, arena_used;
};

enum error cuda_batch_create(struct cuda_batch **ret, size_t arena_bytes, struct problem *problem)
{
    struct cuda_batch *batch = calloc(1, sizeof *batch);
    if (batch == NULL)
        return problem_set(problem, ERR_NOMEM, "no memory for a device's record");
    batch->arena_bytes = arena_bytes > ARENA_MIN_BYTES ? arena_bytes : ARENA_MIN_BYTES;
    enum error error = cuda_round_create(&batch->round, problem);
    if (error == ERR_OK)
        error = cuda_check(cudaMalloc((void **)&batch->d_arena, batch->arena_bytes),
                           "device memory for operands", problem);
    if (error != ERR_OK) {
        cuda_batch_destroy(batch); /* accepts a half-built batch */
        return error;
    }
    *ret = batch;
    return ERR_OK;
}

void cuda_batch_destroy(struct cuda_batch *batch)
{
    if (batch == NULL)
        return;
    (void)cudaFree(batch->d_arena); /* a device that was lost cannot free */
    cuda_round_destroy(batch->round);
    free(batch);
}

/* --- staging --- */

/* Room for size bytes, whatever their alignment. Flushes when the arena is full: what lies there
 * has then been used. */
static enum error arena_take(struct cuda_batch *batch, size_t size, char **ret)
{
    assert(size <= batch->arena_bytes);
    if (size > batch->arena_bytes - batch->arena_used) {
        enum error error = cuda_round_flush(batch->round);
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
static enum error stage(const struct cuda_batch *batch, char *d_room, const char *data, size_t size,
                        const char **ret)
{
    char *d_data = d_room + (uintptr_t)data % GRID_LOAD_BYTES;
    *ret = d_data;
    return cuda_round_copy(batch->round, d_data, data, size);
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
        error = cuda_round_add(batch->round, piece, d_a, d_b);
    return error;
}

/* --- cutting --- */

/* What a row's parts added up to. depth: of the deepest part, plus the additions of parts. */
static void settle_parts(const struct piece *row, uint64_t depth)
{
    const struct dot_task *task = &row->task;
    const char *a = (const char *)row->job->base + task->a, *b = a - task->a + task->b;
    struct dot_value *value = row->job->value + task->first;
    if (row->job->partial != NULL)
        partial_add_fast(row->job->partial, value, depth, a, b, task->n);
    else if (dtype_is_complex(task->dtype))
        value_settle_complex(value, task->dtype, row->job->conjugate, a, b, task->n, depth);
    else
        value_settle(value, task->dtype, a, b, task->n, depth);
}

/* Computes what is entered. The sum of absolute values is where the fast kernel's is. */
static enum error add_exact_sum(struct cuda_batch *batch, const struct piece *row)
{
    const struct job *job = row->job;
    struct exact_sum sum;
    exact_sum_init(&sum, NULL, row->task.dtype, job->conjugate, job->wants_abs);
    enum error error = cuda_round_take_sum(batch->round, &sum);
    if (error != ERR_OK)
        return error;
    for (unsigned i = 0; i < dtype_part_count(row->task.dtype); i++)
        sum.part[i].sum_abs = job->value[row->task.first + i].sum_abs;
    partial_add_exact(job->partial, &sum, row->task.n);
    return ERR_OK;
}

/* A row that the arena cannot hold, or one for a partial: part after part, each added to the same
 * value, or on the device to the same exact sum. */
static enum error add_row_in_parts(struct cuda_batch *batch, const struct piece *row)
{
    const size_t size = dtype_size(row->task.dtype);
    const uint64_t part_n = (batch->arena_bytes / 2 - GRID_LOAD_BYTES - ARENA_ALIGN) / size;
    uint64_t depth = 0, parts = 0;
    for (uint64_t done = 0; done < row->task.n; done += part_n, parts++) {
        const uint64_t left = row->task.n - done;
        struct piece part = *row;
        part.kind = left > part_n || row->job->partial != NULL ? PIECE_PART : PIECE_LAST_PART;
        part.task.n = left > part_n ? part_n : left;
        part.task.a += done * size;
        part.task.b += done * size;
        const uint64_t deep = cuda_round_depth(batch->round, part.task.dtype, part.task.n);
        depth = deep > depth ? deep : depth;
        enum error error = add_staged(batch, &part);
        if (error != ERR_OK)
            return error;
    }
    if (piece_is_exact(row) && row->job->partial != NULL)
        return add_exact_sum(batch, row);
    enum error error = cuda_round_flush(batch->round);
    if (error == ERR_OK && !piece_is_exact(row))
        settle_parts(row, depth + parts);
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
    rest.task.first += kept * (axis == 0 ? rest.value_stride : dtype_part_count(piece->task.dtype));
    return rest;
}

/* Enters a piece, cut as often as tables and arena ask for. Recursion halves rows: at most 64
 * deep. */
static enum error add_piece(struct cuda_batch *batch, struct piece piece,
                            const struct placed *placed)
{
    const struct dot_task *task = &piece.task;
    uint64_t rows = task->rows[0] * task->rows[1];
    bool fits = placed->d_data != NULL || piece_bytes(&piece) <= batch->arena_bytes;
    if (rows <= ROUND_ROWS && fits)
        return placed->d_data != NULL
                   ? cuda_round_add(batch->round, &piece, placed->d_data + (task->a - placed->from),
                                    placed->d_data + (task->b - placed->from))
                   : add_staged(batch, &piece);
    if (rows == 1)
        return add_row_in_parts(batch, &piece);
    struct piece rest = piece_halve(&piece);
    enum error error = add_piece(batch, piece, placed);
    return error == ERR_OK ? add_piece(batch, rest, placed) : error;
}

static bool is_in_place(const struct cuda_pinned *pinned, const struct job *job)
{
    uintptr_t base = (uintptr_t)job->base, data = (uintptr_t)pinned->data;
    return job->bytes <= IN_PLACE_BYTES && job->term_count <= IN_PLACE_TERMS &&
           pinned->data != NULL && base >= data && base - data <= pinned->size &&
           job->bytes <= pinned->size - (base - data);
}

/* What a job's tasks read, as bytes from its base. */
struct extent {
    size_t begin, end;
    uint64_t read; /* without the gaps */
};

static void extend(struct extent *extent, size_t begin, uint64_t size)
{
    extent->begin = begin < extent->begin ? begin : extent->begin;
    extent->end = begin + size > extent->end ? begin + size : extent->end;
    extent->read += size;
}

/* Of a slice it is a part of the job's operands. */
static struct extent extent_of(const struct job *job)
{
    struct extent extent = {.begin = SIZE_MAX};
    for (size_t i = 0; i < job->task_count; i++) {
        const struct dot_task *task = &job->task[i];
        extend(&extent, task->a, span_bytes(task, task->stride_a));
        extend(&extent, task->b, span_bytes(task, task->stride_b));
    }
    return extent;
}

/* Finds or makes one place for all that a job reads; *ret has none when that does not fit, or when
 * the gaps in it take longer to copy than a copy for each piece. */
static enum error job_place(struct cuda_batch *batch, const struct cuda_pinned *pinned,
                            const struct job *job, struct placed *ret)
{
    *ret = (struct placed){0};
    if (is_in_place(pinned, job)) {
        ret->d_data = pinned->d_data + ((const char *)job->base - pinned->data);
        return ERR_OK;
    }
    const struct extent extent = extent_of(job);
    const size_t size = extent.end - extent.begin, room = staged_bytes(size);
    if (room > batch->arena_bytes || size > extent.read + job->task_count * COPY_BYTES)
        return ERR_OK;
    char *d_room = NULL;
    enum error error = arena_take(batch, room, &d_room);
    if (error == ERR_OK)
        error = stage(batch, d_room, (const char *)job->base + extent.begin, size, &ret->d_data);
    ret->from = extent.begin;
    return error;
}

static enum error task_add(struct cuda_batch *batch, struct job *job, const struct dot_task *task,
                           const struct placed *placed)
{
    const uint64_t stride = task->rows[1] * dtype_part_count(task->dtype);
    const struct piece piece = {
        .job = job,
        .task = *task,
        .value_stride = stride,
        .kind = PIECE_ROWS,
    };
    for (uint64_t i = 0; i < task->rows[0] * stride; i++)
        job->value[task->first + i] = (struct dot_value){0};
    return job->partial != NULL ? add_row_in_parts(batch, &piece) : add_piece(batch, piece, placed);
}

static enum error job_add(struct cuda_batch *batch, const struct cuda_pinned *pinned,
                          struct job *job)
{
    struct placed placed = {0};
    if (job->task_count == 0)
        return ERR_OK;
    enum error error = ERR_OK;
    if (job->partial == NULL) /* its row is copied part by part */
        error = job_place(batch, pinned, job, &placed);
    for (size_t i = 0; error == ERR_OK && i < job->task_count; i++)
        error = task_add(batch, job, &job->task[i], &placed);
    return error;
}

enum error cuda_batch_compute(struct cuda_batch *batch, const struct cuda_pinned *pinned,
                              struct job *first, struct backend_times *ret, struct problem *problem)
{
    enum error error = ERR_OK;
    cuda_round_begin(batch->round, problem);
    batch->arena_used = 0;
    for (struct job *job = first; error == ERR_OK && job != NULL; job = job->next)
        error = job_add(batch, pinned, job);
    if (error == ERR_OK)
        error = cuda_round_flush(batch->round);
    *ret = cuda_round_times(batch->round);
    if (error == ERR_NOMEM && cuda_round_recover(batch->round) != ERR_OK)
        error = ERR_DEVICE;
    return error;
}
