/* cuda_tables.c - the memory of a round, and its results (see cuda_tables.h). */
#include "gpu/cuda_tables.h"

#include <stdlib.h>

#include "gpu/bound.h"
#include "gpu/cuda_check.h"

/* --- memory --- */

/* Pinned memory that kernels reach as *ret_device. */
static enum error allocate_mapped(void **ret_host, void **ret_device, size_t size,
                                  struct problem *problem)
{
    enum error error =
        cuda_check(cudaHostAlloc(ret_host, size, cudaHostAllocMapped), "pinned memory", problem);
    if (error == ERR_OK)
        error = cuda_check(cudaHostGetDevicePointer(ret_device, *ret_host, 0),
                           "address of pinned memory", problem);
    return error;
}

static enum error allocate_all_mapped(struct cuda_tables *tables, struct problem *problem)
{
    const struct {
        void **host, **device;
        size_t size;
    } mapped[] = {
        {(void **)&tables->task, (void **)&tables->d_task, ROUND_TASKS * sizeof *tables->task},
        {(void **)&tables->task_of_block, (void **)&tables->d_task_of_block,
         ROUND_BLOCKS * sizeof *tables->task_of_block},
        {(void **)&tables->sum, (void **)&tables->d_sum, ROUND_VALUES * sizeof *tables->sum},
        {(void **)&tables->value, (void **)&tables->d_value, ROUND_VALUES * sizeof *tables->value},
        {(void **)&tables->row, (void **)&tables->d_row, ROUND_VALUES * sizeof *tables->row},
    };
    enum error error = ERR_OK;
    for (size_t i = 0; error == ERR_OK && i < sizeof mapped / sizeof *mapped; i++)
        error = allocate_mapped(mapped[i].host, mapped[i].device, mapped[i].size, problem);
    return error;
}

/* What is copied, and its copies. */
static enum error allocate_copied(struct cuda_tables *tables, struct problem *problem)
{
    const size_t split_bytes = ROUND_VALUES * sizeof *tables->split;
    enum error error = cuda_check(cudaMalloc((void **)&tables->d_split, split_bytes),
                                  "device memory for sums", problem);
    if (error == ERR_OK)
        error = cuda_check(
            cudaMalloc((void **)&tables->d_total, ROUND_TOTALS * sizeof *tables->d_total),
            "device memory for exact sums", problem);
    if (error == ERR_OK)
        error =
            cuda_check(cudaHostAlloc((void **)&tables->split, split_bytes, cudaHostAllocDefault),
                       "pinned memory for sums", problem);
    if (error == ERR_OK)
        error = cuda_check(
            cudaHostAlloc((void **)&tables->total, sizeof *tables->total, cudaHostAllocDefault),
            "pinned memory for an exact sum", problem);
    return error;
}

enum error cuda_tables_open(struct cuda_tables *tables, struct problem *problem)
{
    tables->entry = calloc(ROUND_TASKS, sizeof *tables->entry);
    if (tables->entry == NULL)
        return problem_set(problem, ERR_NOMEM, "no memory for a round's pieces");
    enum error error = allocate_all_mapped(tables, problem);
    return error == ERR_OK ? allocate_copied(tables, problem) : error;
}

/* Results are ignored: a device that was lost cannot free. */
void cuda_tables_close(struct cuda_tables *tables)
{
    (void)cudaFree(tables->d_split);
    (void)cudaFree(tables->d_total);
    (void)cudaFreeHost(tables->total);
    (void)cudaFreeHost(tables->split);
    (void)cudaFreeHost(tables->row);
    (void)cudaFreeHost(tables->value);
    (void)cudaFreeHost(tables->sum);
    (void)cudaFreeHost(tables->task_of_block);
    (void)cudaFreeHost(tables->task);
    free(tables->entry);
}

void cuda_tables_clear(struct cuda_tables *tables)
{
    tables->task_count = tables->block_count = tables->total_count = 0;
    tables->sum_count = tables->split_count = tables->value_count = 0;
}

/* --- collecting --- */

/* Where row (i, j) of an operand begins on the host. */
static const char *row_data(const struct job *job, size_t offset, const uint64_t stride[2],
                            uint64_t i, uint64_t j, enum dtype dtype)
{
    return (const char *)job->base + offset + (i * stride[0] + j * stride[1]) * dtype_size(dtype);
}

static void settle_row(const struct piece *piece, uint64_t i, uint64_t j, struct dot_value *value,
                       uint64_t depth)
{
    const struct dot_task *task = &piece->task;
    const char *a = row_data(piece->job, task->a, task->stride_a, i, j, task->dtype);
    const char *b = row_data(piece->job, task->b, task->stride_b, i, j, task->dtype);
    if (dtype_is_complex(task->dtype))
        value_settle_complex(value, task->dtype, piece->job->conjugate, a, b, task->n, depth);
    else
        value_settle(value, task->dtype, a, b, task->n, depth);
}

/* Adds a row's sums to its values. They began at zero, and only a row in parts has several. */
static void collect_fast(const struct entry *entry, uint64_t i, uint64_t j, struct dot_value *value,
                         const struct grid_sum *sum, uint64_t depth)
{
    const struct piece *piece = &entry->piece;
    for (uint32_t part = 0; part < dtype_part_count(piece->task.dtype); part++) {
        value[part].sum_abs += sum[part].sum_abs;
        if (entry->purpose == PURPOSE_FAST)
            value[part].sum += sum[part].sum;
    }
    if (entry->purpose == PURPOSE_FAST && piece->kind == PIECE_ROWS)
        settle_row(piece, i, j, value, depth);
}

/* The kernel leaves sum_abs zero, or says what it is when a product was not finite. */
static void collect_exact(struct dot_value *value, const struct dot_value *got, uint32_t parts)
{
    for (uint32_t part = 0; part < parts; part++) {
        const double sum_abs = value[part].sum_abs;
        value[part] = got[part];
        value[part].sum_abs += sum_abs;
    }
}

/* row: its place among the task's results. */
static void collect_exact_row(const struct cuda_tables *tables, const struct grid_task *grid,
                              uint64_t row, struct dot_value *value, uint32_t parts)
{
    const struct dot_value *got = tables->value + grid->result + row;
    struct dot_value unpacked;
    if (grid->form == GRID_TILE_ROW) {
        exact_row_value(&tables->row[grid->result + row], &unpacked);
        got = &unpacked;
    }
    collect_exact(value, got, parts);
}

static void collect_task(const struct cuda_tables *tables, const struct entry *entry,
                         const struct grid_task *grid)
{
    const struct piece *piece = &entry->piece;
    const uint32_t parts = dtype_part_count(piece->task.dtype);
    const struct grid_sum *sum = tables->sum + grid->result;
    if (grid->form == GRID_SPLIT_ROW)
        sum = tables->split + grid->total;
    const uint64_t depth = entry->purpose == PURPOSE_EXACT ? 0 : grid_depth(grid);
    for (uint64_t i = 0; i < piece->task.rows[0]; i++)
        for (uint64_t j = 0; j < piece->task.rows[1]; j++) {
            struct dot_value *value =
                piece->job->value + piece->task.first + i * piece->value_stride + j * parts;
            const uint64_t row = (i * piece->task.rows[1] + j) * parts;
            if (entry->purpose != PURPOSE_EXACT)
                collect_fast(entry, i, j, value, sum + row, depth);
            else if (piece->kind != PIECE_PART)
                collect_exact_row(tables, grid, row, value, parts);
        }
}

void cuda_tables_collect(const struct cuda_tables *tables)
{
    for (uint32_t i = 0; i < tables->task_count; i++)
        collect_task(tables, &tables->entry[i], &tables->task[i]);
}
