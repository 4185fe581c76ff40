/* emu.h - CUDA on the CPU: a grid's threads as fibers of the calling thread. For tests, not for
 * speed.
 *
 * Door: emu_set() before a test; kernels come in through cuda_runtime_api.h beside this, whose
 * declarations stand for CUDA's own: the .cu files are compiled as C++ against it and the host code
 * of the CUDA backend is linked against it, unchanged.
 *
 * What it shows  a wrong index, a missing block or barrier when the order of threads matters, an
 *                operation of a warp that not every lane reaches, memory errors and undefined
 *                behaviour (under ASan and UBSan), shared memory used before it is written (it is
 *                filled with a pattern), and any arithmetic: the results have the device's bits.
 * What it hides  blocks run one after another, in an order drawn from the seed, and threads change
 *                only at barriers and warp operations: real races are compute-sanitizer's business.
 */
#ifndef GPU_EMU_EMU_H
#define GPU_EMU_EMU_H

#include <stddef.h>
#include <stdint.h>

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

/* Runs body(context) in every thread of every block; the caller's thread waits. One grid at a time
 * in the process. threads: of a block, at most 1024, whole warps. */
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

/* All lanes of the warp come here with the same `kind`; returns what each one brought, in place
 * until the lane's next call. */
const uint64_t *emu_exchange(unsigned mask, int kind, uint64_t mine);

#ifdef __cplusplus
}
#endif

#endif
