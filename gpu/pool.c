/* pool.c - memory for operands (see pool.h).
 *
 * The region is cut into granules; every granule has a record beside the region. A run of granules
 * is free, or one large block, or a slab of small blocks of one class. A large block grows into the
 * free run behind it where there is one. A free small block holds the link of its list in its own
 * first bytes.
 */
#include "gpu/pool.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "gpu/processor.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(data, size)   ((void)(data), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(data, size) ((void)(data), (void)(size))
#endif

enum {
    CLASS_FIRST_BITS = 6, /* 64 bytes: LIMIT_OPERAND_ALIGN */
    CLASS_LAST_BITS = 19, /* POOL_SMALL_BYTES */
    CLASS_COUNT = CLASS_LAST_BITS - CLASS_FIRST_BITS + 1,
    SPARE_CLASSES = 9,      /* up to 16 KiB */
    SLAB_BYTES = 256 << 10, /* or one block, if that is longer */
    HUGE_BYTES = 2 << 20,
    AREA_COUNT = 2,
};
static_assert(1 << CLASS_FIRST_BITS >= LIMIT_OPERAND_ALIGN, "every block is aligned");
static_assert(1 << CLASS_LAST_BITS == POOL_SMALL_BYTES, "classes end where runs begin");

#define NO_RUN UINT32_MAX

enum run_state { RUN_FREE, RUN_LARGE, RUN_SLAB };

/* length counts at the first and at the last granule of a run; all else at the first, except that
 * every granule of a slab knows its first. */
struct granule {
    uint32_t length;         /* granules of the run */
    uint32_t first;          /* of a slab: where it begins */
    uint32_t previous, next; /* of a free run: neighbours in its area's list, or NO_RUN */
    uint16_t used;           /* of a slab: blocks in use */
    uint8_t state;           /* enum run_state; right at the first and last granule */
    uint8_t class;           /* of a slab */
};

struct small {
    struct small *next;
};

/* Part of the region; runs do not cross from one to the other, because memory that is pinned only
 * in part cannot be copied to a device in one piece. */
struct area {
    uint32_t begin, end; /* granules; fixed after pool_create() */
    uint32_t free;       /* free runs, by address: low memory is preferred */
    /* Free blocks by the processor that released them, the last one first: they are in its cache.
     * Out of that of another one, with whom it shares none, a copy into them takes five times as
     * long. */
    struct small *small[CLASS_COUNT][PROCESSORS];
};

/* The small block of each class that a processor released last: its next acquire takes it without
 * the lock, which would go from cache to cache twice a request, with all that it guards: 2 % of a
 * small one. For everything under the lock such a block is in use. No two processors' share a line,
 * wherever in one the first begins. */
struct spares {
    _Atomic(char *) block[SPARE_CLASSES]; /* any thread */
    char apart[3 * CACHE_LINE_BYTES - SPARE_CLASSES * sizeof(char *)];
};

struct pool {
    char *data;                   /* fixed; aligned to HUGE_BYTES */
    void *map;                    /* fixed; what munmap wants, with map_size */
    size_t map_size;              /* fixed */
    size_t budget_bytes;          /* fixed */
    size_t pinned_bytes;          /* fixed; area[0] */
    pthread_mutex_t lock;         /* innermost: no other lock is taken under it */
    size_t used_bytes;            /* lock; <= budget_bytes */
    size_t pinned_used_bytes;     /* lock; <= used_bytes */
    struct granule *granule;      /* lock; [area[1].end] */
    struct area area[AREA_COUNT]; /* lock; the pinned one, then the rest */
    struct spares spares[PROCESSORS];
};

static bool pool_is_sane(const struct pool *pool)
{
    return pool->used_bytes <= pool->budget_bytes && pool->pinned_used_bytes <= pool->used_bytes &&
           pool->pinned_used_bytes <= pool->pinned_bytes;
}

/* --- runs of granules --- */

static void run_mark(struct pool *pool, uint32_t first, uint32_t length, enum run_state state)
{
    struct granule *granule = pool->granule;
    granule[first].length = granule[first + length - 1].length = length;
    granule[first].state = granule[first + length - 1].state = (uint8_t)state;
}

static void run_unlink(struct pool *pool, struct area *area, uint32_t run)
{
    struct granule *granule = &pool->granule[run];
    if (granule->previous != NO_RUN)
        pool->granule[granule->previous].next = granule->next;
    else
        area->free = granule->next;
    if (granule->next != NO_RUN)
        pool->granule[granule->next].previous = granule->previous;
}

/* Linear in the free runs of the area: some dozens, and only for what is larger than a slab. */
static void run_link(struct pool *pool, struct area *area, uint32_t run)
{
    uint32_t previous = NO_RUN, next = area->free;
    while (next != NO_RUN && next < run) {
        previous = next;
        next = pool->granule[next].next;
    }
    pool->granule[run].previous = previous;
    pool->granule[run].next = next;
    if (previous != NO_RUN)
        pool->granule[previous].next = run;
    else
        area->free = run;
    if (next != NO_RUN)
        pool->granule[next].previous = run;
}

/* Gives the run so many granules, of which those from `free` on were a free run; the rest of that
 * stays free. */
static void run_claim(struct pool *pool, struct area *area, uint32_t run, uint32_t length,
                      enum run_state state, uint32_t free)
{
    const uint32_t end = run + length, rest = free + pool->granule[free].length - end;
    run_unlink(pool, area, free);
    run_mark(pool, run, length, state);
    if (rest > 0) {
        run_mark(pool, end, rest, RUN_FREE);
        run_link(pool, area, end);
    }
}

/* First fit. NO_RUN when there is none. */
static uint32_t run_take(struct pool *pool, struct area *area, uint32_t length,
                         enum run_state state)
{
    uint32_t run = area->free;
    while (run != NO_RUN && pool->granule[run].length < length)
        run = pool->granule[run].next;
    if (run != NO_RUN)
        run_claim(pool, area, run, length, state, run);
    return run;
}

/* Takes what a large run lacks from the free one behind it. */
static bool run_extend(struct pool *pool, struct area *area, uint32_t run, uint32_t length)
{
    const struct granule *granule = pool->granule;
    uint32_t more = length - granule[run].length, end = run + granule[run].length;
    assert(granule[run].state == RUN_LARGE && length > granule[run].length);
    if (end >= area->end || granule[end].state != RUN_FREE || granule[end].length < more)
        return false;
    run_claim(pool, area, run, length, RUN_LARGE, end);
    return true;
}

/* Joins the run with free neighbours in its area. */
static void run_give(struct pool *pool, struct area *area, uint32_t run)
{
    const struct granule *granule = pool->granule;
    uint32_t length = granule[run].length, end = run + length;
    assert(run >= area->begin && end <= area->end && granule[run].state != RUN_FREE);
    if (end < area->end && granule[end].state == RUN_FREE) {
        length += granule[end].length;
        run_unlink(pool, area, end);
    }
    if (run > area->begin && granule[run - 1].state == RUN_FREE) {
        run -= granule[run - 1].length;
        length += granule[run].length;
        run_unlink(pool, area, run);
    }
    run_mark(pool, run, length, RUN_FREE);
    run_link(pool, area, run);
}

static char *run_data(const struct pool *pool, uint32_t run)
{
    return pool->data + (size_t)run * POOL_GRANULE_BYTES;
}

static uint32_t run_of(const struct pool *pool, const void *data)
{
    return (uint32_t)((size_t)((const char *)data - pool->data) / POOL_GRANULE_BYTES);
}

/* --- slabs of small blocks --- */

static unsigned class_of(size_t size)
{
    unsigned bits = size <= 1 ? 0 : 64 - (unsigned)__builtin_clzl(size - 1);
    return bits < CLASS_FIRST_BITS ? 0 : bits - CLASS_FIRST_BITS;
}

static size_t class_size(unsigned class)
{
    return (size_t)1 << (class + CLASS_FIRST_BITS);
}

static uint32_t slab_granules(unsigned class)
{
    return (class_size(class) > SLAB_BYTES ? class_size(class) : SLAB_BYTES) / POOL_GRANULE_BYTES;
}

static void small_push(struct small **list, unsigned class, char *data)
{
    struct small *small = (struct small *)data;
    small->next = *list;
    *list = small;
    ASAN_POISON_MEMORY_REGION(data, class_size(class));
}

static char *small_pop(struct small **list, unsigned class)
{
    struct small *small = *list;
    if (small == NULL)
        return NULL;
    ASAN_UNPOISON_MEMORY_REGION(small, class_size(class));
    *list = small->next;
    return (char *)small;
}

/* Another processor's block rather than memory that nobody has touched. */
static char *small_pop_any(struct area *area, unsigned class)
{
    const unsigned here = processor_here();
    char *data = NULL;
    for (unsigned i = 0; data == NULL && i < PROCESSORS; i++)
        data = small_pop(&area->small[class][(here + i) % PROCESSORS], class);
    return data;
}

/* Cuts a new slab. Its blocks are linked so that low addresses come first. */
static bool slab_add(struct pool *pool, struct area *area, unsigned class)
{
    const uint32_t granules = slab_granules(class), run = run_take(pool, area, granules, RUN_SLAB);
    if (run == NO_RUN)
        return false;
    pool->granule[run].used = 0;
    pool->granule[run].class = (uint8_t) class;
    for (uint32_t i = 0; i < granules; i++)
        pool->granule[run + i].first = run;
    const size_t bytes = (size_t)granules * POOL_GRANULE_BYTES;
    ASAN_UNPOISON_MEMORY_REGION(run_data(pool, run), bytes);
    struct small **list = &area->small[class][processor_here()];
    for (size_t end = bytes; end > 0; end -= class_size(class))
        small_push(list, class, run_data(pool, run) + end - class_size(class));
    return true;
}

static char *slab_acquire(struct pool *pool, struct area *area, unsigned class)
{
    char *data = small_pop_any(area, class);
    if (data == NULL && slab_add(pool, area, class))
        data = small_pop_any(area, class);
    if (data != NULL)
        pool->granule[pool->granule[run_of(pool, data)].first].used++;
    return data;
}

static void slab_release(struct pool *pool, struct area *area, struct block block)
{
    struct granule *slab = &pool->granule[pool->granule[run_of(pool, block.data)].first];
    assert(slab->state == RUN_SLAB && class_size(slab->class) == block.size && slab->used > 0);
    slab->used--;
    small_push(&area->small[slab->class][processor_here()], slab->class, block.data);
}

/* Of a list, unlinks the blocks of slabs that nobody uses, and gives those slabs back. */
static bool list_reclaim(struct pool *pool, struct area *area, struct small **list, unsigned class)
{
    bool reclaimed = false;
    struct small *kept = NULL, **end = &kept;
    for (char *data; (data = small_pop(list, class)) != NULL;) {
        uint32_t run = pool->granule[run_of(pool, data)].first;
        struct small *small = (struct small *)data;
        if (pool->granule[run].used > 0) {
            *end = small;
            end = &small->next;
        } else if (data == run_data(pool, run)) {
            run_give(pool, area, run);
            reclaimed = true;
        }
    }
    *end = NULL;
    *list = kept;
    return reclaimed;
}

/* Slow (it walks every free block), and only run when the alternative is to refuse. */
static bool slab_reclaim(struct pool *pool, struct area *area)
{
    bool reclaimed = false;
    for (unsigned class = 0; class < CLASS_COUNT; class ++)
        for (unsigned i = 0; i < PROCESSORS; i++)
            reclaimed |= list_reclaim(pool, area, &area->small[class][i], class);
    return reclaimed;
}

/* --- the door --- */

static void area_init(struct pool *pool, struct area *area, uint32_t begin, uint32_t end)
{
    *area = (struct area){.begin = begin, .end = end, .free = NO_RUN};
    if (begin < end) {
        run_mark(pool, begin, end - begin, RUN_FREE);
        run_link(pool, area, begin);
    }
}

/* Address space only: memory is taken page by page on first touch. Huge pages make that touch some
 * twelve times cheaper a byte. */
static bool region_map(struct pool *pool, size_t size)
{
    pool->map_size = size + HUGE_BYTES;
    pool->map = mmap(NULL, pool->map_size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pool->map == MAP_FAILED)
        return false;
    size_t over = (uintptr_t)pool->map % HUGE_BYTES;
    pool->data = (char *)pool->map + (over > 0 ? HUGE_BYTES - over : 0);
    (void)madvise(pool->data, size, MADV_HUGEPAGE); /* refused by some kernels: then small pages */
    return true;
}

/* The second area holds the whole budget, so that one block of that size fits beside the pinned
 * part, and a slab of every class besides: rounding up costs address space, not memory. */
enum error pool_create(struct pool **ret, size_t budget_bytes, size_t pinned_bytes)
{
    size_t pinned =
        (pinned_bytes < budget_bytes ? pinned_bytes : budget_bytes) / POOL_GRANULE_BYTES;
    size_t total = pinned + budget_bytes / POOL_GRANULE_BYTES + 1;
    for (unsigned class = 0; class < CLASS_COUNT; class ++)
        total += slab_granules(class);
    if (total >= NO_RUN)
        return ERR_NOMEM;
    struct pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return ERR_NOMEM;
    pool->granule = calloc(total, sizeof *pool->granule);
    if (pool->granule == NULL || !region_map(pool, total * POOL_GRANULE_BYTES)) {
        free(pool->granule);
        free(pool);
        return ERR_NOMEM;
    }
    pool->budget_bytes = budget_bytes;
    pool->pinned_bytes = pinned * POOL_GRANULE_BYTES;
    (void)pthread_mutex_init(&pool->lock, NULL);
    area_init(pool, &pool->area[0], 0, (uint32_t)pinned);
    area_init(pool, &pool->area[1], (uint32_t)pinned, (uint32_t)total);
    *ret = pool;
    return ERR_OK;
}

void *pool_pinnable(struct pool *pool, size_t *ret_size)
{
    *ret_size = pool->pinned_bytes;
    return pool->data;
}

static size_t block_size(size_t size)
{
    if (size <= POOL_SMALL_BYTES)
        return class_size(class_of(size));
    return (size + POOL_GRANULE_BYTES - 1) / POOL_GRANULE_BYTES * POOL_GRANULE_BYTES;
}

static char *area_acquire(struct pool *pool, struct area *area, size_t size)
{
    if (area->begin == area->end)
        return NULL; /* no pinned memory: not one of all those lists has a block */
    if (size <= POOL_SMALL_BYTES)
        return slab_acquire(pool, area, class_of(size));
    uint32_t run = run_take(pool, area, (uint32_t)(size / POOL_GRANULE_BYTES), RUN_LARGE);
    if (run == NO_RUN)
        return NULL;
    ASAN_UNPOISON_MEMORY_REGION(run_data(pool, run), size);
    return run_data(pool, run);
}

static char *areas_acquire(struct pool *pool, size_t size)
{
    char *data = area_acquire(pool, &pool->area[0], size);
    return data != NULL ? data : area_acquire(pool, &pool->area[1], size);
}

static bool is_run_pinned(const struct pool *pool, uint32_t run)
{
    return run < pool->area[0].end;
}

/* Under the lock. */
static void release_locked(struct pool *pool, struct block block)
{
    const uint32_t run = run_of(pool, block.data);
    const bool is_pinned = is_run_pinned(pool, run);
    struct area *area = &pool->area[is_pinned ? 0 : 1];
    assert(run < pool->area[1].end && block.size <= pool->used_bytes);
    pool->used_bytes -= block.size;
    if (is_pinned)
        pool->pinned_used_bytes -= block.size;
    if (block.size <= POOL_SMALL_BYTES) {
        slab_release(pool, area, block);
    } else {
        assert(pool->granule[run].state == RUN_LARGE &&
               pool->granule[run].length == block.size / POOL_GRANULE_BYTES);
        run_give(pool, area, run);
        ASAN_POISON_MEMORY_REGION(block.data, block.size);
    }
}

/* Leaves data (NULL: nothing) as this processor's spare block of a class, and returns what was. */
static char *spare_swap(struct pool *pool, unsigned class, char *data)
{
    if (data != NULL)
        ASAN_POISON_MEMORY_REGION(data, class_size(class));
    char *was = atomic_exchange(&pool->spares[processor_here()].block[class], data);
    if (was != NULL)
        ASAN_UNPOISON_MEMORY_REGION(was, class_size(class));
    return was;
}

/* Under the lock: all of them. */
static void spares_release(struct pool *pool)
{
    for (unsigned i = 0; i < PROCESSORS; i++)
        for (unsigned class = 0; class < SPARE_CLASSES; class ++) {
            char *data = atomic_exchange(&pool->spares[i].block[class], NULL);
            if (data == NULL)
                continue;
            ASAN_UNPOISON_MEMORY_REGION(data, class_size(class));
            release_locked(pool, (struct block){data, class_size(class)});
        }
}

void pool_destroy(struct pool *pool)
{
    if (pool == NULL)
        return;
    spares_release(pool);
    assert(pool->used_bytes == 0);
    ASAN_UNPOISON_MEMORY_REGION(pool->map, pool->map_size);
    (void)munmap(pool->map, pool->map_size);
    (void)pthread_mutex_destroy(&pool->lock);
    free(pool->granule);
    free(pool);
}

/* Under the lock. NULL: over the budget, or no run is long enough even without idle slabs. */
static char *acquire_locked(struct pool *pool, size_t size)
{
    if (size > pool->budget_bytes - pool->used_bytes)
        return NULL;
    char *data = areas_acquire(pool, size);
    if (data == NULL && (slab_reclaim(pool, &pool->area[0]) | slab_reclaim(pool, &pool->area[1])))
        data = areas_acquire(pool, size);
    if (data == NULL)
        return NULL;
    pool->used_bytes += size;
    if (data < run_data(pool, pool->area[0].end))
        pool->pinned_used_bytes += size;
    return data;
}

/* Spare blocks count only while nobody lacks what they are. */
static char *acquire_shared(struct pool *pool, size_t size)
{
    (void)pthread_mutex_lock(&pool->lock);
    char *data = acquire_locked(pool, size);
    if (data == NULL) {
        spares_release(pool);
        data = acquire_locked(pool, size);
    }
    assert(pool_is_sane(pool));
    (void)pthread_mutex_unlock(&pool->lock);
    return data;
}

enum error pool_acquire(struct pool *pool, size_t size, struct block *ret)
{
    if (size > pool->budget_bytes)
        return ERR_NOMEM; /* also: too large to round up */
    const size_t rounded = block_size(size);
    const unsigned class = class_of(rounded);
    char *data = class < SPARE_CLASSES ? spare_swap(pool, class, NULL) : NULL;
    if (data == NULL)
        data = acquire_shared(pool, rounded);
    if (data == NULL)
        return ERR_NOMEM;
    *ret = (struct block){.data = data, .size = rounded};
    return ERR_OK;
}

/* Under the lock. */
static bool extend_locked(struct pool *pool, size_t size, const struct block *block)
{
    const uint32_t run = run_of(pool, block->data);
    const bool is_pinned = is_run_pinned(pool, run);
    const size_t more = size - block->size;
    if (more > pool->budget_bytes - pool->used_bytes)
        spares_release(pool); /* as for who acquires */
    if (more > pool->budget_bytes - pool->used_bytes ||
        !run_extend(pool, &pool->area[is_pinned ? 0 : 1], run,
                    (uint32_t)(size / POOL_GRANULE_BYTES)))
        return false;
    pool->used_bytes += more;
    if (is_pinned)
        pool->pinned_used_bytes += more;
    ASAN_UNPOISON_MEMORY_REGION((char *)block->data + block->size, more);
    return true;
}

enum error pool_extend(struct pool *pool, size_t size, struct block *block)
{
    assert(size > block->size);
    if (size > pool->budget_bytes || block->size <= POOL_SMALL_BYTES)
        return ERR_NOMEM; /* the first also: too large to round up */
    const size_t rounded = block_size(size);
    (void)pthread_mutex_lock(&pool->lock);
    bool is_extended = extend_locked(pool, rounded, block);
    assert(pool_is_sane(pool));
    (void)pthread_mutex_unlock(&pool->lock);
    if (!is_extended)
        return ERR_NOMEM;
    block->size = rounded;
    return ERR_OK;
}

void pool_release(struct pool *pool, struct block block)
{
    const unsigned class = class_of(block.size);
    if (class < SPARE_CLASSES)
        block.data = spare_swap(pool, class, block.data);
    if (block.data == NULL)
        return;
    (void)pthread_mutex_lock(&pool->lock);
    release_locked(pool, block);
    assert(pool_is_sane(pool));
    (void)pthread_mutex_unlock(&pool->lock);
}

/* The bytes of spare blocks, and of those that are pinned. One that changes hands meanwhile may be
 * seen twice. */
static void spares_count(struct pool *pool, uint64_t *ret, uint64_t *ret_pinned)
{
    *ret = *ret_pinned = 0;
    for (unsigned i = 0; i < PROCESSORS; i++)
        for (unsigned class = 0; class < SPARE_CLASSES; class ++) {
            const char *data = atomic_load(&pool->spares[i].block[class]);
            const uint64_t bytes = data != NULL ? class_size(class) : 0;
            *ret += bytes;
            if (data != NULL && is_run_pinned(pool, run_of(pool, data)))
                *ret_pinned += bytes;
        }
}

static uint64_t difference(uint64_t all, uint64_t part)
{
    return part < all ? all - part : 0;
}

struct pool_state pool_state(struct pool *pool)
{
    uint64_t spare, spare_pinned;
    (void)pthread_mutex_lock(&pool->lock);
    spares_count(pool, &spare, &spare_pinned);
    struct pool_state state = {pool->budget_bytes, difference(pool->used_bytes, spare),
                               pool->pinned_bytes,
                               difference(pool->pinned_used_bytes, spare_pinned)};
    (void)pthread_mutex_unlock(&pool->lock);
    return state;
}
