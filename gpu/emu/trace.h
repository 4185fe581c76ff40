/* trace.h - what the emulation saw of one grid: accesses, intervals, faults.
 *
 * Door: trace_create() with its limits, then emu_launch() with it, which adds to what is there: the
 * launches of one computation share a trace, and a barrier stands between them. The fields are for
 * reading. Once a fault stopped a kernel, later launches with the trace do nothing. Only accesses
 * to watched<T> (watched.h) are seen, and of them only those to arrays that the kernel names by
 * watch_shared() or watch_global().
 *
 * Interval   what a block does between two barriers; counted from 0 in each block.
 * Race       two accesses of one cell by two threads, one of them a write, not both atomic, and
 *            nothing that orders them: a barrier of the block between; or, for lanes of one warp,
 *            __syncwarp() or a shuffle. Threads of different blocks are never ordered. That is the
 *            model of the PTX ISA (memory consistency) without fences: an order that is made by
 *            fences, or by atomics that release and acquire, is not understood and reported as a
 *            race.
 * Barrier    not every thread of the block comes to it: some have ended, or wait for their warp.
 *            (A device since compute capability 7.0 lets those that ended go; the CUDA guide
 *            promises nothing.) Also operations of a warp that not all lanes reach.
 * Unwritten  a cell of shared memory is read, or added to, before any thread wrote it.
 * Outside    a watched access beyond every array that the kernel named.
 */
#ifndef GPU_EMU_TRACE_H
#define GPU_EMU_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { EMU_WARP = 32, EMU_THREADS_MAX = 1024, EMU_WARPS_MAX = EMU_THREADS_MAX / EMU_WARP };
enum { EMU_ARRAYS_MAX = 8 };

enum emu_access { EMU_READ, EMU_WRITE, EMU_ATOMIC };

struct emu_array {
    const char *name;
    const void *data;
    uint32_t count, size; /* cells, and the bytes of one */
    bool is_shared;
};

/* One access of one thread. The k-th accesses of a warp's lanes in an interval, if of one kind and
 * to one array, count as one instruction of the warp. */
struct emu_event {
    double value; /* what was read, was written, or is there after the atomic operation */
    uint32_t block, interval, index;
    uint16_t thread;
    uint8_t array;  /* of emu_trace.array */
    uint8_t access; /* enum emu_access */
};

struct emu_interval {
    uint32_t launch, block, number;
    size_t first_event, event_count;
    size_t first_cell, cell_count;  /* the launch's shared arrays when it ended, in their order */
    uint32_t active[EMU_WARPS_MAX]; /* bit l of word w: lane l of warp w touched shared memory */
    uint32_t active_threads, active_warps;
    /* A warp's access to shared memory goes through 32 banks of 4 bytes: as many rounds as one
     * bank is asked for different words; wider elements go in parts of the warp that ask for 128
     * bytes together, hence 8-byte ones in two half-warps. This counts the rounds of a part beyond
     * the first, every array starting at bank 0. (CUDA C++ Programming Guide: shared memory of
     * compute capability 5.x and later; 8 bytes as it says of 2.x.) */
    uint64_t bank_conflicts;
    bool ends_at_barrier; /* else with the block, or where the kernel was stopped */
};

struct emu_cell {
    double value;
    bool is_written; /* by a thread of this block so far; else `value` is 0 */
};

enum emu_fault_kind { EMU_RACE, EMU_BARRIER, EMU_UNWRITTEN, EMU_OUTSIDE };

struct emu_fault {
    enum emu_fault_kind kind;
    /* race: the earlier access, then the later one; else [0] is who was caught. */
    struct {
        uint32_t block, thread;
        enum emu_access access;
    } by[2];
    int array; /* of emu_trace.array; -1: none */
    uint32_t index, interval;
    char text[224]; /* a sentence */
};

struct emu_trace {
    /* Set by trace_create(). limit: events, cells and intervals that are kept, together.
     * fault_limit: races and unwritten reads that are kept; the last of them stops the kernel, so
     * with 1 the first does. One fault a cell and kind. The other kinds always stop it. */
    size_t limit;
    uint32_t fault_limit;

    struct emu_array array[EMU_ARRAYS_MAX];
    uint32_t array_count, launches;
    struct emu_event *event;       /* in the order of execution, an interval's together */
    struct emu_interval *interval; /* block after block in the order in which they ran */
    struct emu_cell *cell;
    size_t event_count, interval_count, cell_count;
    struct emu_fault *fault;
    uint32_t fault_count;
    uint64_t barriers; /* of blocks, that opened; summed over all blocks */
    uint64_t atomics;  /* on watched memory */
    uint64_t bank_conflicts;
    bool is_stopped; /* by a fault, and the rest of the grid never ran */
    bool is_cut;     /* the limit was reached or memory ran out: what came later is not kept, of
                        bank conflicts not counted; faults and other counts go on */
    uint32_t waiting[EMU_WARPS_MAX], ended[EMU_WARPS_MAX]; /* EMU_BARRIER: bit l of word w */
};

/* False: no memory. */
bool trace_create(struct emu_trace **ret, size_t limit, uint32_t fault_limit);
void trace_destroy(struct emu_trace *trace); /* takes NULL */

/* As it was created; its memory is used again. */
void trace_clear(struct emu_trace *trace);

#ifdef __cplusplus
}
#endif

#endif
