/* emu.c - fibers, barriers and the order of everything (see emu.h).
 *
 * A fiber runs until it waits at a barrier or for its warp, then hands over to the scheduler, which
 * goes round the fibers of the block. A round in which nobody came any further is a deadlock: some
 * thread never reaches what the others wait for. Then the program aborts and says where.
 */
#include "gpu/emu/emu.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

enum {
    WARP = 32,
    FIBER_LIMIT = 1024,
    WARP_LIMIT = FIBER_LIMIT / WARP,
    STACK_BYTES = 256 << 10, /* untouched pages cost nothing */
    GUARD_BYTES = 4096,
    SHARED_LIMIT_BYTES = 227 << 10, /* as on compute capability 9.0 */
    PATTERN = 0xa5,                 /* what shared memory holds before it is written */
};

struct fiber {
#if defined(__x86_64__)
    void *stack_pointer;
#else
    ucontext_t context;
#endif
    const void *stack; /* its lowest byte */
    size_t stack_bytes;
    void *fake_stack; /* ASan's, while the fiber is away */
    bool is_running;  /* its thread of the current block has not ended */
};

/* A barrier of a known number of threads; `round` tells those who wait that it has opened. */
struct barrier {
    uint32_t arrived, round;
};

/* Lanes write `in`; when the last has come, all of it is `out`. */
struct warp {
    struct barrier barrier;
    int kind;
    uint64_t in[WARP], out[WARP];
};

/* All of it belongs to the thread that holds `lock`, inside emu_run(). */
static struct {
    struct fiber fiber[FIBER_LIMIT], scheduler;
    uint32_t fiber_count, current, threads;
    struct barrier barrier;
    struct warp warp[WARP_LIMIT];
    uint64_t progress; /* counts barriers that opened and threads that ended */
    void (*body)(const void *context);
    const void *context;
    uint64_t random;
    char *stacks;
} emu;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct emu_settings settings = {
    .seed = 1, .multiprocessors = 3, .blocks = 2, .shared_bytes = SHARED_LIMIT_BYTES};
/* The last warp of a block may have fewer. */
static uint32_t lanes_of(uint32_t warp)
{
    uint32_t left = emu.threads - warp * WARP;
    return left < WARP ? left : WARP;
}

static _Alignas(128) char shared[SHARED_LIMIT_BYTES];

struct emu_index emu_thread, emu_block, emu_block_size, emu_grid_size;

void emu_set(const struct emu_settings *wanted)
{
    assert(wanted->multiprocessors > 0 && wanted->blocks > 0);
    assert(wanted->shared_bytes <= SHARED_LIMIT_BYTES);
    (void)pthread_mutex_lock(&lock);
    settings = *wanted;
    (void)pthread_mutex_unlock(&lock);
}

struct emu_settings emu_get(void)
{
    (void)pthread_mutex_lock(&lock);
    struct emu_settings copy = settings;
    (void)pthread_mutex_unlock(&lock);
    return copy;
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

/* ASan keeps its own idea of the current stack; it is told before a switch and after. */
static void fiber_leave(struct fiber *from, const struct fiber *to)
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&from->fake_stack, to->stack, to->stack_bytes);
#else
    (void)from, (void)to;
#endif
}

/* before: who was left; the scheduler's stack is whichever thread's runs the grid. */
static void fiber_enter(struct fiber *to, struct fiber *before)
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(to->fake_stack, &before->stack, &before->stack_bytes);
#else
    (void)to, (void)before;
#endif
}

static void fiber_switch(struct fiber *from, struct fiber *to)
{
    fiber_leave(from, to);
#if defined(__x86_64__)
    emu_switch(&from->stack_pointer, to->stack_pointer);
#else
    (void)swapcontext(&from->context, &to->context);
#endif
    fiber_enter(from, to);
}

/* Between the scheduler and the current fiber and nowhere else, so each was left for the other. */
static void yield(void)
{
    fiber_switch(&emu.fiber[emu.current], &emu.scheduler);
}

/* A fiber never returns: it waits for the next block. */
static void fiber_main(void)
{
    fiber_enter(&emu.fiber[emu.current], &emu.scheduler);
    for (;;) {
        emu.body(emu.context);
        emu.fiber[emu.current].is_running = false;
        emu.progress++;
        yield();
    }
}

static void fiber_create(struct fiber *fiber, char *stack)
{
    fiber->stack = stack;
    fiber->stack_bytes = STACK_BYTES;
#if defined(__x86_64__)
    /* As if fiber_main had been called: the stack is 8 bytes off a multiple of 16 at its entry. */
    void **top = (void **)(void *)(stack + STACK_BYTES) - 2;
    void (*entry)(void) = fiber_main;
    memcpy(top, &entry, sizeof entry);
    top[1] = NULL;
    top -= 6;
    memset(top, 0, 6 * sizeof *top);
    fiber->stack_pointer = top;
#else
    (void)getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = stack;
    fiber->context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&fiber->context, fiber_main, 0);
#endif
}

static void fibers_create(uint32_t count)
{
    const size_t step = STACK_BYTES + GUARD_BYTES;
    if (emu.stacks == NULL) {
        emu.stacks = mmap(NULL, FIBER_LIMIT * step, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        assert(emu.stacks != MAP_FAILED);
    }
    for (; emu.fiber_count < count; emu.fiber_count++) {
        char *guard = emu.stacks + emu.fiber_count * step;
        (void)mprotect(guard, GUARD_BYTES, PROT_NONE);
        fiber_create(&emu.fiber[emu.fiber_count], guard + GUARD_BYTES);
    }
}

/* --- waiting --- */

/* True for the last to come: the barrier is open again. */
static bool barrier_arrive(struct barrier *barrier, uint32_t threads)
{
    if (++barrier->arrived < threads)
        return false;
    barrier->arrived = 0;
    barrier->round++;
    emu.progress++;
    return true;
}

static void barrier_wait(const struct barrier *barrier, uint32_t round)
{
    while (barrier->round == round)
        yield();
}

void emu_block_barrier(void)
{
    uint32_t round = emu.barrier.round;
    if (!barrier_arrive(&emu.barrier, emu.threads))
        barrier_wait(&emu.barrier, round);
}

/* `out` is written only when all lanes have come, hence have read what it held before. */
const uint64_t *emu_exchange(unsigned mask, int kind, uint64_t mine)
{
    struct warp *warp = &emu.warp[emu.current / WARP];
    uint32_t round = warp->barrier.round;
    assert(mask == 0xffffffff);
    assert(warp->barrier.arrived == 0 || warp->kind == kind);
    warp->kind = kind;
    warp->in[emu.current % WARP] = mine;
    if (barrier_arrive(&warp->barrier, lanes_of(emu.current / WARP)))
        memcpy(warp->out, warp->in, sizeof warp->out);
    else
        barrier_wait(&warp->barrier, round);
    return warp->out;
}

void *emu_shared(void)
{
    return shared;
}

/* --- running --- */

static uint64_t random_below(uint64_t limit)
{
    emu.random = emu.random * 6364136223846793005u + 1442695040888963407u;
    return (emu.random >> 33) % limit;
}

static void deadlock(void)
{
    (void)fprintf(stderr, "emu: block %u stands still: %u of %u threads wait at a barrier;",
                  emu_block.x, emu.barrier.arrived, emu.threads);
    for (uint32_t warp = 0; warp * WARP < emu.threads; warp++)
        if (emu.warp[warp].barrier.arrived > 0)
            (void)fprintf(stderr, " warp %u: %u lanes wait;", warp, emu.warp[warp].barrier.arrived);
    (void)fprintf(stderr, " the others have ended\n");
    abort();
}

/* One turn for each fiber, from a random one on. Returns how many have not ended. */
static uint32_t turn(void)
{
    uint32_t left = 0, first = (uint32_t)random_below(emu.threads);
    for (uint32_t i = 0; i < emu.threads; i++) {
        uint32_t thread = (first + i) % emu.threads;
        if (!emu.fiber[thread].is_running)
            continue;
        emu.current = thread;
        emu_thread.x = thread;
        fiber_switch(&emu.scheduler, &emu.fiber[thread]);
        left += emu.fiber[thread].is_running;
    }
    return left;
}

static void run_block(uint32_t block, size_t shared_bytes)
{
    emu_block.x = block;
    memset(shared, PATTERN, shared_bytes);
    memset(&emu.barrier, 0, sizeof emu.barrier);
    memset(emu.warp, 0, sizeof emu.warp);
    for (uint32_t thread = 0; thread < emu.threads; thread++)
        emu.fiber[thread].is_running = true;
    uint64_t before;
    uint32_t left;
    do {
        before = emu.progress;
        left = turn();
        if (left > 0 && emu.progress == before)
            deadlock();
    } while (left > 0);
}

/* 0 .. count-1, shuffled. */
static uint32_t *shuffled(uint32_t count)
{
    uint32_t *order = malloc(count * sizeof *order);
    assert(order != NULL);
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    for (uint32_t i = count; i > 1; i--) {
        uint32_t other = (uint32_t)random_below(i), last = order[i - 1];
        order[i - 1] = order[other];
        order[other] = last;
    }
    return order;
}

/* The lock is held. */
static void run_grid(const struct emu_grid *grid)
{
    assert(grid->blocks > 0 && grid->threads > 0 && grid->threads <= FIBER_LIMIT);
    assert(grid->shared_bytes <= settings.shared_bytes);
    fibers_create(grid->threads);
    emu.random = grid->seed;
    emu.threads = grid->threads;
    emu.body = grid->body;
    emu.context = grid->context;
    emu_block_size = (struct emu_index){grid->threads, 1, 1};
    emu_grid_size = (struct emu_index){grid->blocks, 1, 1};
    uint32_t *order = shuffled(grid->blocks);
    for (uint32_t i = 0; i < grid->blocks; i++)
        run_block(order[i], grid->shared_bytes);
    free(order);
}

bool emu_launch(const struct emu_grid *grid)
{
    (void)pthread_mutex_lock(&lock);
    run_grid(grid);
    (void)pthread_mutex_unlock(&lock);
    return true;
}

void emu_run(uint32_t blocks, uint32_t threads, size_t shared_bytes,
             void (*body)(const void *context), const void *context)
{
    (void)pthread_mutex_lock(&lock);
    settings.seed += 0x9e3779b97f4a7c15u; /* every launch another order */
    const struct emu_grid grid = {.blocks = blocks,
                                  .threads = threads,
                                  .shared_bytes = shared_bytes,
                                  .seed = settings.seed,
                                  .body = body,
                                  .context = context};
    run_grid(&grid);
    (void)pthread_mutex_unlock(&lock);
}
