/* emu.c - barriers, warps and the order of everything (see emu.h).
 *
 * A thread's fiber runs until it waits at a barrier or for its warp, or in lockstep until its next
 * watched access; then it hands over to the scheduler, which lets another go on that can. When
 * nobody can and some have not ended, some thread never reaches what the others wait for: without a
 * trace the program aborts and says where, with one the kernel is stopped and its fibers, whose
 * stacks hold half-done work, are made anew.
 */
#include "gpu/emu/emu.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/emu/fiber.h"
#include "gpu/emu/watch.h"

enum {
    SHARED_LIMIT_BYTES = 227 << 10, /* as on compute capability 9.0 */
    PATTERN = 0xa5,                 /* what shared memory holds before it is written */
    ALL_LANES = -1,
};

/* Each lane is in one of the first four sets, as bit l. Lanes write `in`; when the last has come,
 * all of it is `out`. */
struct warp {
    uint32_t ready, at_barrier, at_warp, ended;
    uint32_t all, begun;
    uint32_t writing; /* in lockstep: what the lane is about to do is no mere read */
    int kind;         /* of the operation that those at_warp wait for */
    bool is_mixed;    /* some of them wait for another, and hence all for good */
    uint64_t in[EMU_WARP], out[EMU_WARP];
};

/* All of it belongs to the thread that holds `lock`, inside emu_launch(). */
static struct {
    struct fiber fiber[EMU_THREADS_MAX], scheduler;
    char *stacks;
    uint32_t fiber_count;
    struct warp warp[EMU_WARPS_MAX];
    uint32_t threads, warps;   /* of a block */
    uint32_t current;          /* thread */
    uint32_t arrived, running; /* threads at the barrier; threads that have not ended */
    bool is_lockstep, is_stopping;
    struct emu_trace *trace;
    void (*body)(const void *context);
    const void *context;
    uint64_t random;
} emu;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct emu_settings settings = {/* lock */
                                       .seed = 1,
                                       .multiprocessors = 3,
                                       .blocks = 2,
                                       .shared_bytes = SHARED_LIMIT_BYTES};
static _Alignas(128) char shared[SHARED_LIMIT_BYTES]; /* likewise */

struct emu_index emu_thread, emu_block, emu_block_size, emu_grid_size;
bool emu_is_watching;

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

/* --- threads --- */

static struct warp *current_warp(void)
{
    return &emu.warp[emu.current / EMU_WARP];
}

static uint32_t current_bit(void)
{
    return 1u << emu.current % EMU_WARP;
}

/* Comes back never if the kernel was stopped meanwhile. */
static void yield(void)
{
    struct fiber *self = &emu.fiber[emu.current];
    fiber_switch(self, &emu.scheduler);
    if (emu.is_stopping)
        fiber_end(self, &emu.scheduler);
}

/* The current lane waits in *set until somebody makes it ready. */
static void wait_in(uint32_t *set)
{
    current_warp()->ready &= ~current_bit();
    *set |= current_bit();
    yield();
}

static _Noreturn void stop(void)
{
    emu.is_stopping = true;
    fiber_end(&emu.fiber[emu.current], &emu.scheduler);
}

/* Between blocks a fiber waits here. */
static void fiber_main(void)
{
    for (;;) {
        current_warp()->begun |= current_bit();
        emu.body(emu.context);
        emu.running--;
        wait_in(&current_warp()->ended);
    }
}

static void fibers_create(uint32_t count)
{
    if (emu.stacks == NULL)
        emu.stacks = fiber_stacks_create(EMU_THREADS_MAX);
    for (; emu.fiber_count < count; emu.fiber_count++)
        fiber_create(&emu.fiber[emu.fiber_count], emu.stacks, emu.fiber_count, fiber_main);
}

/* When the kernel was stopped: a fiber with half-done work gets the turn in which it ends, unless
 * it is the one that stopped, and a new beginning. */
static void fibers_renew(void)
{
    for (emu.current = 0; emu.current < emu.threads; emu.current++) {
        struct fiber *fiber = &emu.fiber[emu.current];
        if (!(current_warp()->begun & ~current_warp()->ended & current_bit()))
            continue;
        if (!fiber->is_over)
            fiber_switch(&emu.scheduler, fiber);
        fiber_create(fiber, emu.stacks, emu.current, fiber_main);
    }
    emu.is_stopping = false;
}

/* --- waiting --- */

static void where_all_are(struct watch_places *ret)
{
    ret->threads = emu.threads;
    for (uint32_t i = 0; i < EMU_WARPS_MAX; i++) {
        const bool is_used = i < emu.warps;
        ret->barrier[i] = is_used ? emu.warp[i].at_barrier : 0;
        ret->warp[i] = is_used ? emu.warp[i].at_warp : 0;
        ret->ended[i] = is_used ? emu.warp[i].ended : 0;
    }
}

/* The kernel cannot go on. Returns only when there is a trace to hold it. */
static void stand_still(void)
{
    struct watch_places places;
    where_all_are(&places);
    if (emu.trace == NULL) {
        char text[sizeof emu.trace->fault->text];
        watch_describe(text, sizeof text, emu_block.x, &places);
        (void)fprintf(stderr, "emu: %s\n", text);
        abort();
    }
    watch_stand_still(&places);
    emu.is_stopping = true;
}

/* In lockstep the last to come starts again with those that it let go, not an access ahead. */
static void go_on_together(void)
{
    if (emu.is_lockstep)
        yield();
}

void emu_block_barrier(void)
{
    if (++emu.arrived < emu.threads) {
        wait_in(&current_warp()->at_barrier);
        return;
    }
    emu.arrived = 0;
    for (uint32_t i = 0; i < emu.warps; i++) {
        emu.warp[i].ready |= emu.warp[i].at_barrier;
        emu.warp[i].at_barrier = 0;
    }
    if (emu.trace != NULL)
        watch_barrier();
    go_on_together();
}

/* `out` is written only when all lanes have come, hence have read what it held before. */
const uint64_t *emu_exchange(unsigned mask, int kind, uint64_t mine)
{
    struct warp *warp = current_warp();
    assert(mask == (unsigned)ALL_LANES || mask == warp->all);
    if (warp->at_warp == 0)
        warp->kind = kind;
    warp->is_mixed |= warp->kind != kind;
    warp->in[emu.current % EMU_WARP] = mine;
    if (warp->is_mixed || (warp->at_warp | current_bit()) != warp->all) {
        wait_in(&warp->at_warp);
        return warp->out;
    }
    memcpy(warp->out, warp->in, sizeof warp->out);
    warp->ready |= warp->at_warp;
    warp->at_warp = 0;
    if (emu.trace != NULL)
        watch_warp_barrier(emu.current / EMU_WARP);
    go_on_together();
    return warp->out;
}

void *emu_shared(void)
{
    return shared;
}

/* --- watched accesses --- */

void emu_before(const void *address, size_t size, enum emu_access access)
{
    if (emu.is_lockstep) {
        if (access == EMU_READ)
            current_warp()->writing &= ~current_bit();
        else
            current_warp()->writing |= current_bit();
        yield();
    }
    if (emu.trace != NULL && !watch_before(emu.current, address, size, access))
        stop();
}

void emu_after(const void *address, enum emu_access access, double value)
{
    if (emu.trace != NULL && !watch_after(emu.current, address, access, value))
        stop();
}

void emu_name(const char *name, const void *data, uint32_t count, uint32_t size, bool is_shared)
{
    if (emu.trace != NULL)
        watch_name(name, data, count, size, is_shared);
}

/* --- taking turns --- */

static uint32_t random_below(uint32_t limit)
{
    emu.random = emu.random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((emu.random >> 33) % limit);
}

static void run_thread(uint32_t thread)
{
    if (emu.is_stopping)
        return;
    emu.current = thread;
    emu_thread.x = thread;
    fiber_switch(&emu.scheduler, &emu.fiber[thread]);
}

/* A turn for each thread that can go on, from a random one on. False: there was none. */
static bool turn(void)
{
    bool any = false;
    uint32_t thread = random_below(emu.threads);
    for (uint32_t i = 0; i < emu.threads; i++) {
        if (emu.warp[thread / EMU_WARP].ready >> thread % EMU_WARP & 1) {
            run_thread(thread);
            any = true;
        }
        thread = thread + 1 < emu.threads ? thread + 1 : 0;
    }
    return any;
}

/* From a random lane on: which of several writes to one place stays is not for a kernel to know. */
static void run_lanes(uint32_t warp, uint32_t lanes)
{
    uint32_t first = random_below(EMU_WARP);
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        uint32_t lane = (first + i) % EMU_WARP;
        if (lanes >> lane & 1)
            run_thread(warp * EMU_WARP + lane);
    }
}

/* One step of one warp: each ready lane makes its access and goes on to its next, those that read
 * before those that write. False: no warp can. */
static bool step(void)
{
    uint32_t candidate[EMU_WARPS_MAX], count = 0;
    for (uint32_t i = 0; i < emu.warps; i++)
        if (emu.warp[i].ready != 0)
            candidate[count++] = i;
    if (count == 0)
        return false;
    uint32_t chosen = candidate[random_below(count)];
    const uint32_t ready = emu.warp[chosen].ready, writing = emu.warp[chosen].writing;
    run_lanes(chosen, ready & ~writing);
    run_lanes(chosen, ready & writing);
    return true;
}

/* --- running --- */

static void block_begin(uint32_t block, size_t shared_bytes)
{
    emu_block.x = block;
    emu.arrived = 0;
    emu.running = emu.threads;
    memset(shared, PATTERN, shared_bytes);
    for (uint32_t i = 0; i < emu.warps; i++) {
        const uint32_t lanes = emu.threads - i * EMU_WARP;
        struct warp *warp = &emu.warp[i];
        memset(warp, 0, sizeof *warp);
        memset(warp->in, PATTERN, sizeof warp->in); /* of lanes that do not exist */
        warp->all = lanes < EMU_WARP ? (1u << lanes) - 1 : (uint32_t)ALL_LANES;
        warp->ready = warp->all;
    }
}

static void run_block(uint32_t block, size_t shared_bytes)
{
    block_begin(block, shared_bytes);
    if (emu.trace != NULL)
        watch_block_begin(block);
    while (emu.running > 0 && !emu.is_stopping)
        if (!(emu.is_lockstep ? step() : turn()))
            stand_still();
    if (emu.trace != NULL)
        watch_block_end();
}

/* 0 .. count-1, shuffled. */
static uint32_t *shuffled(uint32_t count)
{
    uint32_t *order = malloc(count * sizeof *order);
    assert(order != NULL);
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    for (uint32_t i = count; i > 1; i--) {
        uint32_t other = random_below(i), last = order[i - 1];
        order[i - 1] = order[other];
        order[other] = last;
    }
    return order;
}

static void grid_begin(const struct emu_grid *grid)
{
    assert(grid->blocks > 0 && grid->threads > 0 && grid->threads <= EMU_THREADS_MAX);
    assert(grid->shared_bytes <= settings.shared_bytes);
    fibers_create(grid->threads);
    emu.random = grid->seed;
    emu.threads = grid->threads;
    emu.warps = (grid->threads + EMU_WARP - 1) / EMU_WARP;
    emu.is_lockstep = grid->is_lockstep;
    emu.trace = grid->trace;
    emu.body = grid->body;
    emu.context = grid->context;
    emu_is_watching = grid->is_lockstep || grid->trace != NULL;
    emu_block_size = (struct emu_index){grid->threads, 1, 1};
    emu_grid_size = (struct emu_index){grid->blocks, 1, 1};
}

/* The lock is held. */
static bool run_grid(const struct emu_grid *grid)
{
    if (grid->trace != NULL && grid->trace->is_stopped)
        return false;
    grid_begin(grid);
    if (grid->trace != NULL)
        watch_grid_begin(grid->trace);
    uint32_t *order = shuffled(grid->blocks);
    for (uint32_t i = 0; i < grid->blocks && !emu.is_stopping; i++)
        run_block(order[i], grid->shared_bytes);
    free(order);
    emu_is_watching = false;
    if (!emu.is_stopping)
        return true;
    fibers_renew();
    return false;
}

bool emu_launch(const struct emu_grid *grid)
{
    (void)pthread_mutex_lock(&lock);
    bool is_done = run_grid(grid);
    (void)pthread_mutex_unlock(&lock);
    return is_done;
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
    (void)run_grid(&grid);
    (void)pthread_mutex_unlock(&lock);
}
