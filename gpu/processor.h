/* processor.h - what a processor keeps for itself, so that no line of a cache goes from one to
 * another with every request: where a thread is now, and counts that are kept there. And what it is
 * told where lines must go: that it waits for one, or will need several.
 *
 * Door: processor_here(); processor_count_add() from any thread, processor_count_sum() for who asks;
 * processor_relax(), processor_fetch().
 */
#ifndef GPU_PROCESSOR_H
#define GPU_PROCESSOR_H

#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PROCESSORS = 64, /* told apart; of more, several are taken for one */
    CACHE_LINE_BYTES = 64,
};

/* Below PROCESSORS. The thread may move right away, which costs time only. */
static inline unsigned processor_here(void)
{
    return (unsigned)sched_getcpu() % PROCESSORS;
}

/* In a loop that waits for another thread: leaves the core to the one that shares it. */
static inline void processor_relax(void)
{
#ifdef __x86_64__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

/* Asks for memory that is about to be read and written, all of it at once. */
static inline void processor_fetch(const void *data, size_t size)
{
    for (size_t at = 0; at < size; at += CACHE_LINE_BYTES)
        __builtin_prefetch((const char *)data + at, 1);
}

/* All zeros at first. One count for all took 1 % of a small request where two processors share no
 * cache. */
struct processor_count {
    struct {
        char apart[CACHE_LINE_BYTES - sizeof(atomic_ullong)];
        atomic_ullong value; /* any thread, relaxed: a statistic only */
    } at[PROCESSORS];
};

static inline void processor_count_add(struct processor_count *count)
{
    (void)atomic_fetch_add_explicit(&count->at[processor_here()].value, 1, memory_order_relaxed);
}

static inline uint64_t processor_count_sum(struct processor_count *count)
{
    uint64_t sum = 0;
    for (int i = 0; i < PROCESSORS; i++)
        sum += atomic_load_explicit(&count->at[i].value, memory_order_relaxed);
    return sum;
}

#endif
