/* fiber.h - stacks that hand over to each other within one thread.
 *
 * Door: fiber_stacks_create() and fiber_create() once for as many as are wanted, then
 * fiber_switch() between them and the thread's own stack, which is a zeroed fiber to begin with.
 * One thread at a time: emu.c's lock. AddressSanitizer is told of every switch, for it keeps a
 * stack's state. ThreadSanitizer could be (__tsan_switch_to_fiber), but each switch then merges the
 * clocks of a thousand fibers: 15 s of CPU for tests/emu/watch_test.c, not 0.3. Instead what runs
 * on fibers is compiled without it: it would be confused by functions that enter on one stack and
 * leave on another, and the fibers of one thread do not race.
 */
#ifndef GPU_EMU_FIBER_H
#define GPU_EMU_FIBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

struct fiber {
#if defined(__x86_64__)
    void *stack_pointer;
#else
    ucontext_t context;
#endif
    void (*main)(void); /* must not return */
    const void *stack;  /* its lowest byte */
    size_t stack_bytes;
    void *fake_stack; /* ASan's, while the fiber is away */
    bool is_over;     /* fiber_end() was called */
};

enum { FIBER_STACK_BYTES = 256 << 10 };

/* Stacks for `count` fibers, with a guard page below each. Untouched pages cost nothing. */
char *fiber_stacks_create(uint32_t count);

/* Its first turn calls main. A fiber that is over may be created again, on the same stack. */
void fiber_create(struct fiber *fiber, char *stacks, uint32_t index, void (*main)(void));

void fiber_switch(struct fiber *from, struct fiber *to);
_Noreturn void fiber_end(struct fiber *from, struct fiber *to); /* never to come back */

#endif
