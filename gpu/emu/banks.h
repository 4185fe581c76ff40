/* banks.h - how often the banks of shared memory keep a warp waiting (rule: struct emu_interval).
 *
 * Door: banks_add() for every access of an interval, in any order; banks_count() at its end.
 */
#ifndef GPU_EMU_BANKS_H
#define GPU_EMU_BANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/emu/trace.h"

struct bank_access {
    uint64_t part; /* which part of which warp's instruction asks */
    uint32_t word; /* of the array, which starts at bank 0 */
};

/* Zero is empty. */
struct banks {
    struct bank_access *access; /* [count], room for max */
    size_t count, max;
};

void banks_fini(struct banks *banks);

/* instruction: the thread's accesses before this one in the interval. False: no memory. */
bool banks_add(struct banks *banks, uint32_t thread, uint32_t instruction, enum emu_access access,
               int array, size_t offset, size_t size);

/* Rounds beyond the first of every part; forgets the accesses. */
uint64_t banks_count(struct banks *banks);

#endif
