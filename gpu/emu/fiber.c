/* fiber.c - switching stacks (see fiber.h). */
#include "gpu/emu/fiber.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

enum { GUARD_BYTES = 4096, STEP_BYTES = FIBER_STACK_BYTES + GUARD_BYTES };

/* The last switch. */
static struct fiber *left, *arrived;

/* --- AddressSanitizer --- */

/* Right before a switch. A fiber that is over takes ASan's fake stack with it. */
static void announce(struct fiber *from, struct fiber *to)
{
    left = from;
    arrived = to;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(from->is_over ? NULL : &from->fake_stack, to->stack,
                                   to->stack_bytes);
#endif
}

/* Right after a switch. Only now is it known where the stack lies that was left, if a thread's. */
static void arrive(void)
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(arrived->fake_stack, &left->stack, &left->stack_bytes);
#endif
}

/* The functions of a fiber that ended never returned: what they poisoned is free again. */
static void clean(struct fiber *fiber)
{
#if defined(__SANITIZE_ADDRESS__)
    ASAN_UNPOISON_MEMORY_REGION(fiber->stack, fiber->stack_bytes);
    fiber->fake_stack = NULL;
#else
    (void)fiber;
#endif
}

/* --- switching --- */

#if defined(__x86_64__)
/* Saves what a function must keep on the stack, and continues where `load` was saved. */
void emu_switch(void **save, void *load);
__asm__(".text\n"
        ".globl emu_switch\n"
        ".type emu_switch, @function\n"
        "emu_switch:\n"
        "    push %rbx\n"
        "    push %rbp\n"
        "    push %r12\n"
        "    push %r13\n"
        "    push %r14\n"
        "    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15\n"
        "    pop %r14\n"
        "    pop %r13\n"
        "    pop %r12\n"
        "    pop %rbp\n"
        "    pop %rbx\n"
        "    ret\n"
        ".size emu_switch, . - emu_switch\n");
#endif

static void jump(struct fiber *from, struct fiber *to)
{
#if defined(__x86_64__)
    emu_switch(&from->stack_pointer, to->stack_pointer);
#else
    (void)swapcontext(&from->context, &to->context);
#endif
}

void fiber_switch(struct fiber *from, struct fiber *to)
{
    announce(from, to);
    jump(from, to);
    arrive();
}

void fiber_end(struct fiber *from, struct fiber *to)
{
    from->is_over = true;
    announce(from, to);
    jump(from, to);
    abort();
}

/* --- creating --- */

static void start(void)
{
    arrive();
    arrived->main();
    abort();
}

char *fiber_stacks_create(uint32_t count)
{
    char *stacks = mmap(NULL, (size_t)count * STEP_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert(stacks != MAP_FAILED); /* nothing is reserved but addresses */
    return stacks;
}

void fiber_create(struct fiber *fiber, char *stacks, uint32_t index, void (*main)(void))
{
    char *guard = stacks + (size_t)index * STEP_BYTES, *stack = guard + GUARD_BYTES;
    (void)mprotect(guard, GUARD_BYTES, PROT_NONE);
    fiber->main = main;
    fiber->stack = stack;
    fiber->stack_bytes = FIBER_STACK_BYTES;
    clean(fiber);
    fiber->is_over = false;
#if defined(__x86_64__)
    /* As if start() had been called: the stack is 8 bytes off a multiple of 16 at its entry. */
    void **top = (void **)(void *)(stack + FIBER_STACK_BYTES) - 2;
    void (*entry)(void) = start;
    memcpy(top, &entry, sizeof entry);
    top[1] = NULL;
    top -= 6;
    memset(top, 0, 6 * sizeof *top);
    fiber->stack_pointer = top;
#else
    (void)getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = stack;
    fiber->context.uc_stack.ss_size = FIBER_STACK_BYTES;
    makecontext(&fiber->context, start, 0);
#endif
}
