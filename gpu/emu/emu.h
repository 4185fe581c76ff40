/* emu.h - CUDA on the CPU: a grid's threads as fibers of the calling thread.
 *
 * Door: emu_launch() runs one grid, from C++ with a lambda that calls the kernel (device.h).
 * Kernels come in through cuda_runtime_api.h beside this, whose declarations stand for CUDA's own:
 * .cu files are compiled as C++ against it. The daemon links the library `emulation`: this and the
 * kernels of the ladder and of the lab. Tests link `gpu_emu` as well: the CUDA backend, unchanged,
 * on a runtime (runtime.c) that launches through emu_run().
 *
 * What it shows  a wrong index, a missing block or barrier when the order of threads matters, an
 *                operation of a warp that not every lane reaches, memory errors and undefined
 *                behaviour (under ASan and UBSan), and any arithmetic: the results have the
 *                device's bits. With a trace: every access to watched memory, races, reads of
 *                shared memory that nobody wrote, bank conflicts (trace.h). In lockstep: what plain
 *                additions to one variable lose.
 * What it hides  blocks run one after another, in an order drawn from the seed; threads change only
 *                at barriers, warp operations and, in lockstep, watched accesses. Races through
 *                memory that is not watched are compute-sanitizer's business.
 * Threads        one grid at a time in the process: other callers wait at a lock. The stacks of
 *                1024 threads are kept between grids; untouched pages of them cost nothing.
 */
#ifndef GPU_EMU_EMU_H
#define GPU_EMU_EMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/emu/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

struct emu_settings {
    uint64_t seed;            /* of the order of blocks and threads */
    uint32_t multiprocessors; /* of the one device */
    uint32_t blocks;          /* that a multiprocessor is said to hold at once */
    uint32_t shared_bytes;    /* that a block may have at most; 227 KiB is the most */
};

/* Not while a kernel runs. */
void emu_set(const struct emu_settings *settings);
struct emu_settings emu_get(void);

/* The `count` copies after the next `skipped` ones fail with a status of cuda_runtime_api.h. */
void emu_fail_copies(int status, unsigned skipped, unsigned count);

struct emu_grid {
    uint32_t blocks, threads; /* of a block: 1 .. 1024; the last warp may have fewer lanes */
    size_t shared_bytes;      /* dynamic shared memory */
    uint64_t seed;            /* of the order of blocks, threads and, in lockstep, warps */
    /* Lanes of a warp make their k-th watched access together: all that read before any that
     * writes. Warps take turns as the seed says. Else a thread runs until it waits. */
    bool is_lockstep;
    struct emu_trace *trace; /* cleared and filled; NULL: a barrier that is not reached aborts */
    void (*body)(const void *context); /* the kernel, in every thread */
    const void *context;
};

/* The caller's thread waits. False: stopped by a fault that is the last of the trace's. */
bool emu_launch(const struct emu_grid *grid);

/* For the runtime of the emulated device: by the settings, every launch in another order. */
void emu_run(uint32_t blocks, uint32_t threads, size_t shared_bytes,
             void (*body)(const void *context), const void *context);

/* --- for the running kernel --- */

struct emu_index {
    unsigned x, y, z;
};

/* The current thread's; set before each switch to it. */
extern struct emu_index emu_thread, emu_block, emu_block_size, emu_grid_size;

void *emu_shared(void); /* the block's dynamic shared memory */
void emu_block_barrier(void);

/* Something wants to know of watched accesses: a trace or lockstep. Fixed while a grid runs. */
extern bool emu_is_watching;

/* Before and after a watched access; the second is told the value (see emu_event). */
void emu_before(const void *address, size_t size, enum emu_access access);
void emu_after(const void *address, enum emu_access access, double value);
void emu_name(const char *name, const void *data, uint32_t count, uint32_t size, bool is_shared);

/* All lanes of the warp come here with the same `kind`; returns what each one brought, in place
 * until the lane's next call. */
const uint64_t *emu_exchange(unsigned mask, int kind, uint64_t mine);

#ifdef __cplusplus
}
#endif

#endif
