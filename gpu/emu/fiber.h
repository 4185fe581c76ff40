/* fiber.h - stacks that hand over to each other within one thread.
 *
 * Door: fibers_create() once for as many as are wanted, then fiber_switch() between them and the
 * thread's own stack, which is a fiber too (fiber_of_thread()). One thread at a time: emu.c's lock.
 * AddressSanitizer and ThreadSanitizer are told of every switch, for they keep a stack's state.
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
    void *sanitizer; /* ASan: its fake stack while the fiber is away. TSan: its name of the fiber */
    bool is_over;    /* fiber_end() was called */
};

enum { FIBER_STACK_BYTES = 256 << 10 };

/* Stacks for `count` fibers, with a guard page below each. Untouched pages cost nothing. */
char *fiber_stacks_create(uint32_t count);

/* Its first turn calls main. A fiber that is over may be created again, on the same stack. */
void fiber_create(struct fiber *fiber, char *stacks, uint32_t index, void (*main)(void));

/* The caller's own stack, to be switched back to. */
void fiber_of_thread(struct fiber *fiber);

void fiber_switch(struct fiber *from, struct fiber *to);
_Noreturn void fiber_end(struct fiber *from, struct fiber *to); /* never to come back */

#endif
