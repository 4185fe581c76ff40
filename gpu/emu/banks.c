/* banks.c - counting bank conflicts (see banks.h). */
#include "gpu/emu/banks.h"

#include <stdlib.h>
#include <string.h>

enum { BANKS = 32, WORD_BYTES = 4, ROUND_BYTES = BANKS * WORD_BYTES };

void banks_fini(struct banks *banks)
{
    free(banks->access);
    memset(banks, 0, sizeof *banks);
}

static bool put(struct banks *banks, uint64_t part, uint32_t word)
{
    if (banks->count == banks->max) {
        size_t wanted = banks->max > 0 ? 2 * banks->max : 1024;
        struct bank_access *larger = realloc(banks->access, wanted * sizeof *larger);
        if (larger == NULL)
            return false;
        banks->access = larger;
        banks->max = wanted;
    }
    banks->access[banks->count++] = (struct bank_access){part, word};
    return true;
}

/* A part is as many lanes as ask for 128 bytes together. */
bool banks_add(struct banks *banks, uint32_t thread, uint32_t instruction, enum emu_access access,
               int array, size_t offset, size_t size)
{
    const size_t lane_bytes = size > WORD_BYTES ? size : WORD_BYTES;
    const size_t lanes = ROUND_BYTES / lane_bytes, lane = thread % EMU_WARP;
    const uint64_t part = (uint64_t)instruction << 32 | (uint64_t)(thread / EMU_WARP) << 16 |
                          (uint64_t)array << 12 | (uint64_t)access << 8 | lane / lanes;
    for (size_t i = 0; i < lane_bytes; i += WORD_BYTES)
        if (!put(banks, part, (uint32_t)((offset + i) / WORD_BYTES)))
            return false;
    return true;
}

static int compare(const void *one, const void *other)
{
    const struct bank_access *x = one, *y = other;
    if (x->part != y->part)
        return x->part < y->part ? -1 : 1;
    return (x->word > y->word) - (x->word < y->word);
}

/* Of one part, sorted by words; a word that several lanes ask for is read once. */
static uint64_t rounds(const struct bank_access *access, size_t count)
{
    uint32_t asked[BANKS] = {0}, most = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && access[i].word == access[i - 1].word)
            continue;
        uint32_t words = ++asked[access[i].word % BANKS];
        most = words > most ? words : most;
    }
    return most;
}

uint64_t banks_count(struct banks *banks)
{
    uint64_t conflicts = 0;
    if (banks->count > 0)
        qsort(banks->access, banks->count, sizeof *banks->access, compare);
    for (size_t begin = 0, end; begin < banks->count; begin = end) {
        for (end = begin; end < banks->count; end++)
            if (banks->access[end].part != banks->access[begin].part)
                break;
        conflicts += rounds(banks->access + begin, end - begin) - 1;
    }
    banks->count = 0;
    return conflicts;
}
