/* watch.c - at a watched access: recording it, and checking it against what came before.
 *
 * Beside every cell lies its shadow: the last plain write, and readers and atomic operations that
 * may still be unordered with what comes. One write is enough, for of two writes without an order
 * the second is a fault, and what is ordered after the second is so after the first. Of readers two
 * marks are enough: a mark holds accesses of one warp between two of its barriers, which nothing
 * orders; a later mark of the same warp, or one beyond a barrier of the block, takes an earlier's
 * place, because nobody is ordered after the later and not after the earlier; and two marks of
 * different warps conflict with any write, whoever else has read.
 */
#include "gpu/emu/watch.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/emu/banks.h"

enum { SHADOWS_MAX = 1 << 20 }; /* cells of one array; of a longer one nothing is checked */

/* Accesses of one warp with no barrier between them: up to two threads that made them. */
struct mark {
    uint32_t block, interval, round; /* round: barriers of the warp so far */
    uint16_t thread[2];
    uint8_t count; /* 0: no such access */
    uint8_t access;
};

enum { MARKS = 2 };

struct shadow {
    struct mark write, read[MARKS], atomic[MARKS];
    double value; /* that was written */
    bool is_written;
    uint8_t faults; /* bit of each kind that was found */
};

/* A trace and what is needed while a grid runs. */
struct record {
    struct emu_trace trace;
    size_t events_max, intervals_max, cells_max; /* that there is memory for */
    struct banks banks;
    struct shadow *shadow[EMU_ARRAYS_MAX]; /* of trace.array; NULL: not checked */
    bool is_live[EMU_ARRAYS_MAX];          /* the grid that runs has named it */
    uint32_t block, number;                /* of the interval that runs */
    size_t first_event;
    uint32_t active[EMU_WARPS_MAX];
    uint32_t instruction[EMU_THREADS_MAX]; /* accesses of each thread in this interval */
    uint32_t round[EMU_WARPS_MAX];
};

/* Of the grid that runs: whoever holds emu.c's lock. */
static struct record *record;

/* --- the trace --- */

bool trace_create(struct emu_trace **ret, size_t limit, uint32_t fault_limit)
{
    assert(fault_limit > 0);
    struct record *r = calloc(1, sizeof *r);
    struct emu_fault *fault = calloc(fault_limit, sizeof *fault);
    if (r == NULL || fault == NULL) {
        free(fault);
        free(r);
        return false;
    }
    r->trace.limit = limit;
    r->trace.fault_limit = fault_limit;
    r->trace.fault = fault;
    *ret = &r->trace;
    return true;
}

static struct record *record_of(struct emu_trace *trace)
{
    return (struct record *)(void *)trace; /* its first member */
}

static void shadows_free(struct record *r)
{
    for (int i = 0; i < EMU_ARRAYS_MAX; i++) {
        free(r->shadow[i]);
        r->shadow[i] = NULL;
        r->is_live[i] = false;
    }
}

void trace_destroy(struct emu_trace *trace)
{
    if (trace == NULL)
        return;
    shadows_free(record_of(trace));
    banks_fini(&record_of(trace)->banks);
    free(trace->event);
    free(trace->interval);
    free(trace->cell);
    free(trace->fault);
    free(trace);
}

void trace_clear(struct emu_trace *trace)
{
    const struct emu_trace old = *trace;
    shadows_free(record_of(trace));
    *trace = (struct emu_trace){
        .limit = old.limit,
        .fault_limit = old.fault_limit,
        .event = old.event,
        .interval = old.interval,
        .cell = old.cell,
        .fault = old.fault,
    };
}

/* Room for `more` records behind `count`, within the limit of all; NULL: the trace is cut now. */
static void *room(void **data, size_t *max, size_t count, size_t more, size_t size)
{
    struct emu_trace *trace = &record->trace;
    if (trace->is_cut ||
        trace->event_count + trace->interval_count + trace->cell_count + more > trace->limit) {
        trace->is_cut = true;
        return NULL;
    }
    if (count + more > *max) {
        size_t wanted = *max * 2 > count + more ? *max * 2 : count + more;
        void *larger = realloc(*data, wanted * size);
        if (larger == NULL) {
            trace->is_cut = true;
            return NULL;
        }
        *data = larger;
        *max = wanted;
    }
    return (char *)*data + count * size;
}

/* --- faults --- */

static const char *const done[] = {"read", "wrote", "atomically changed"};
static const char *const doing[] = {"reads", "writes", "atomically changes"};

/* A place for a fault; the trace is stopped if it is the last. NULL: the cell is known to have it,
 * or another fault of the same access was the last. */
static struct emu_fault *fault_add(enum emu_fault_kind kind, int array, uint32_t index)
{
    struct emu_trace *trace = &record->trace;
    if (trace->is_stopped)
        return NULL;
    if (array >= 0 && record->shadow[array] != NULL) {
        struct shadow *shadow = &record->shadow[array][index];
        if (shadow->faults >> kind & 1)
            return NULL;
        shadow->faults |= (uint8_t)(1u << kind);
    }
    struct emu_fault *fault = &trace->fault[trace->fault_count++];
    memset(fault, 0, sizeof *fault);
    fault->kind = kind;
    fault->array = array;
    fault->index = index;
    fault->interval = record->number;
    fault->by[0].block = record->block;
    if (trace->fault_count == trace->fault_limit || kind == EMU_BARRIER || kind == EMU_OUTSIDE)
        trace->is_stopped = true;
    return fault;
}

static void fault_race(int array, uint32_t index, const struct mark *before, uint32_t which,
                       const struct mark *now)
{
    struct emu_fault *fault = fault_add(EMU_RACE, array, index);
    if (fault == NULL)
        return;
    fault->by[0].block = before->block;
    fault->by[0].thread = before->thread[which];
    fault->by[0].access = (enum emu_access)before->access;
    fault->by[1].block = now->block;
    fault->by[1].thread = now->thread[0];
    fault->by[1].access = (enum emu_access)now->access;
    (void)snprintf(fault->text, sizeof fault->text,
                   "race: thread %u of block %u %s %s[%u], thread %u of block %u %s it in interval "
                   "%u, and %s",
                   fault->by[0].thread, fault->by[0].block, done[before->access],
                   record->trace.array[array].name, index, fault->by[1].thread, fault->by[1].block,
                   doing[now->access], now->interval,
                   before->block == now->block ? "no barrier lies between"
                                               : "nothing orders threads of different blocks");
}

static void fault_unwritten(int array, uint32_t index, const struct mark *now)
{
    struct emu_fault *fault = fault_add(EMU_UNWRITTEN, array, index);
    if (fault == NULL)
        return;
    fault->by[0].thread = now->thread[0];
    fault->by[0].access = (enum emu_access)now->access;
    (void)snprintf(fault->text, sizeof fault->text,
                   "unwritten: thread %u of block %u %s %s[%u] in interval %u, which no thread of "
                   "the block has written",
                   now->thread[0], now->block, doing[now->access], record->trace.array[array].name,
                   index, now->interval);
}

static void fault_outside(uint32_t thread, enum emu_access access)
{
    struct emu_fault *fault = fault_add(EMU_OUTSIDE, -1, 0);
    fault->by[0].thread = thread;
    fault->by[0].access = access;
    (void)snprintf(fault->text, sizeof fault->text,
                   "outside: thread %u of block %u %s memory in interval %u that is in none of the "
                   "kernel's watched arrays",
                   thread, record->block, doing[access], record->number);
}

static uint32_t count_of(const uint32_t *set)
{
    uint32_t count = 0;
    for (int i = 0; i < EMU_WARPS_MAX; i++)
        count += (uint32_t)__builtin_popcount(set[i]);
    return count;
}

/* The lowest of a set that is not empty. */
static uint32_t first_of(const uint32_t *set)
{
    uint32_t word = 0;
    while (set[word] == 0)
        word++;
    return word * EMU_WARP + (uint32_t)__builtin_ctz(set[word]);
}

void watch_describe(char *ret, size_t ret_size, uint32_t block, const struct watch_places *places)
{
    const struct {
        const uint32_t *set;
        const char *what;
    } group[] = {{places->barrier, "wait at a barrier"},
                 {places->warp, "wait for lanes of their warp"},
                 {places->ended, "have ended"}};
    size_t length = (size_t)snprintf(ret, ret_size, "barrier: block %u stands still: of %u threads",
                                     block, places->threads);
    const char *comma = " ";
    for (size_t i = 0; i < sizeof group / sizeof *group; i++) {
        const uint32_t count = count_of(group[i].set);
        if (count == 0 || length >= ret_size)
            continue;
        length += (size_t)snprintf(ret + length, ret_size - length, "%s%u %s (the first is %u)",
                                   comma, count, group[i].what, first_of(group[i].set));
        comma = ", ";
    }
}

void watch_stand_still(const struct watch_places *places)
{
    struct emu_trace *trace = &record->trace;
    struct emu_fault *fault = fault_add(EMU_BARRIER, -1, 0);
    for (int i = 0; i < EMU_WARPS_MAX; i++)
        trace->waiting[i] = places->barrier[i] | places->warp[i];
    memcpy(trace->ended, places->ended, sizeof trace->ended);
    fault->by[0].thread = first_of(trace->waiting);
    watch_describe(fault->text, sizeof fault->text, record->block, places);
}

/* --- order --- */

static bool is_same_warp(const struct mark *one, const struct mark *other)
{
    return one->thread[0] / EMU_WARP == other->thread[0] / EMU_WARP;
}

/* A barrier lies between the two, in this order. */
static bool is_ordered(const struct mark *before, const struct mark *now)
{
    return before->block == now->block &&
           (before->interval != now->interval ||
            (is_same_warp(before, now) && before->round != now->round));
}

/* Checks the access of one thread, `now`, against earlier ones. */
static void check(int array, uint32_t index, const struct mark *before, const struct mark *now)
{
    if (before->count == 0 || is_ordered(before, now))
        return;
    for (uint32_t i = 0; i < before->count; i++)
        if (before->block != now->block || before->thread[i] != now->thread[0]) {
            fault_race(array, index, before, i, now);
            return;
        }
}

static void mark_add(struct mark *marks, const struct mark *now)
{
    for (int i = 0; i < MARKS; i++) {
        struct mark *mark = &marks[i];
        if (mark->count == 0 || mark->block != now->block || !is_same_warp(mark, now) ||
            is_ordered(mark, now))
            continue;
        if (mark->count == 1 && mark->thread[0] != now->thread[0])
            mark->thread[mark->count++] = now->thread[0];
        return;
    }
    for (int i = 0; i < MARKS; i++)
        if (marks[i].count == 0 || is_ordered(&marks[i], now)) {
            marks[i] = *now;
            return;
        }
}

static void check_all(int array, uint32_t index, const struct mark *marks, const struct mark *now)
{
    for (int i = 0; i < MARKS; i++)
        check(array, index, &marks[i], now);
}

static void shadow_access(int array, uint32_t index, const struct mark *now, double value)
{
    struct shadow *shadow = &record->shadow[array][index];
    if (record->trace.array[array].is_shared && now->access != EMU_WRITE && !shadow->is_written)
        fault_unwritten(array, index, now);
    check(array, index, &shadow->write, now);
    if (now->access != EMU_READ)
        check_all(array, index, shadow->read, now);
    if (now->access != EMU_ATOMIC)
        check_all(array, index, shadow->atomic, now);
    if (now->access == EMU_READ) {
        mark_add(shadow->read, now);
        return;
    }
    if (now->access == EMU_WRITE)
        shadow->write = *now;
    else
        mark_add(shadow->atomic, now);
    shadow->is_written = true;
    shadow->value = value;
}

/* --- arrays --- */

/* Of the grid that runs; -1: there is none. */
static int array_at(const void *address, uint32_t *ret_index)
{
    for (uint32_t i = 0; i < record->trace.array_count; i++) {
        const struct emu_array *array = &record->trace.array[i];
        const size_t offset = (uintptr_t)address - (uintptr_t)array->data;
        if (record->is_live[i] && offset < (size_t)array->count * array->size) {
            *ret_index = (uint32_t)(offset / array->size);
            return (int)i;
        }
    }
    return -1;
}

/* Linear: every thread comes here for each array, and there are few. */
void watch_name(const char *name, const void *data, uint32_t count, uint32_t size, bool is_shared)
{
    struct emu_trace *trace = &record->trace;
    const struct emu_array wanted = {name, data, count, size, is_shared};
    uint32_t i = 0;
    while (i < trace->array_count &&
           (trace->array[i].data != data || trace->array[i].count != count ||
            trace->array[i].size != size || strcmp(trace->array[i].name, name) != 0))
        i++;
    if (i < trace->array_count && record->is_live[i])
        return;
    assert(i < EMU_ARRAYS_MAX);
    if (i == trace->array_count)
        trace->array[trace->array_count++] = wanted;
    record->is_live[i] = true;
    record->shadow[i] = count <= SHADOWS_MAX ? calloc(count, sizeof **record->shadow) : NULL;
    if (record->shadow[i] == NULL)
        trace->is_cut = true;
}

/* --- intervals --- */

static void interval_begin(void)
{
    record->first_event = record->trace.event_count;
    memset(record->active, 0, sizeof record->active);
    memset(record->instruction, 0, sizeof record->instruction);
}

/* Shared memory as it is now. */
static void take_snapshot(struct emu_interval *interval)
{
    struct emu_trace *trace = &record->trace;
    interval->first_cell = trace->cell_count;
    for (uint32_t i = 0; i < trace->array_count; i++) {
        const struct emu_array *array = &trace->array[i];
        if (!array->is_shared || !record->is_live[i] || record->shadow[i] == NULL)
            continue;
        struct emu_cell *cell = room((void **)&trace->cell, &record->cells_max, trace->cell_count,
                                     array->count, sizeof *cell);
        if (cell == NULL)
            return;
        for (uint32_t k = 0; k < array->count; k++) {
            const struct shadow *shadow = &record->shadow[i][k];
            cell[k] = (struct emu_cell){shadow->is_written ? shadow->value : 0, shadow->is_written};
        }
        trace->cell_count += array->count;
    }
    interval->cell_count = trace->cell_count - interval->first_cell;
}

static void interval_end(bool ends_at_barrier)
{
    struct emu_trace *trace = &record->trace;
    struct emu_interval interval = {
        .launch = trace->launches - 1,
        .block = record->block,
        .number = record->number,
        .first_event = record->first_event,
        .event_count = trace->event_count - record->first_event,
        .active_threads = count_of(record->active),
        .bank_conflicts = banks_count(&record->banks),
        .ends_at_barrier = ends_at_barrier,
    };
    memcpy(interval.active, record->active, sizeof interval.active);
    for (int i = 0; i < EMU_WARPS_MAX; i++)
        interval.active_warps += record->active[i] != 0;
    trace->bank_conflicts += interval.bank_conflicts;
    take_snapshot(&interval);
    struct emu_interval *place = room((void **)&trace->interval, &record->intervals_max,
                                      trace->interval_count, 1, sizeof *place);
    if (place == NULL)
        return;
    *place = interval;
    trace->interval_count++;
}

void watch_grid_begin(struct emu_trace *trace)
{
    record = record_of(trace);
    shadows_free(record);
    trace->launches++;
}

void watch_block_begin(uint32_t block)
{
    record->block = block;
    record->number = 0;
    memset(record->round, 0, sizeof record->round);
    for (uint32_t i = 0; i < record->trace.array_count; i++)
        if (record->trace.array[i].is_shared && record->shadow[i] != NULL)
            memset(record->shadow[i], 0, record->trace.array[i].count * sizeof **record->shadow);
    interval_begin();
}

void watch_barrier(void)
{
    record->trace.barriers++;
    interval_end(true);
    record->number++;
    interval_begin();
}

void watch_warp_barrier(uint32_t warp)
{
    record->round[warp]++;
}

void watch_block_end(void)
{
    interval_end(false);
}

/* --- accesses --- */

bool watch_before(uint32_t thread, const void *address, size_t size, enum emu_access access)
{
    uint32_t index = 0;
    int array = array_at(address, &index);
    assert(array < 0 || record->trace.array[array].size == size);
    if (array < 0)
        fault_outside(thread, access);
    return !record->trace.is_stopped;
}

static void keep_event(int array, uint32_t index, const struct mark *now, double value)
{
    struct emu_trace *trace = &record->trace;
    struct emu_event *event =
        room((void **)&trace->event, &record->events_max, trace->event_count, 1, sizeof *event);
    if (event == NULL)
        return;
    *event = (struct emu_event){
        .value = value,
        .block = now->block,
        .interval = now->interval,
        .index = index,
        .thread = now->thread[0],
        .array = (uint8_t)array,
        .access = now->access,
    };
    trace->event_count++;
}

bool watch_after(uint32_t thread, const void *address, enum emu_access access, double value)
{
    uint32_t index = 0;
    const int array = array_at(address, &index);
    const struct mark now = {
        .block = record->block,
        .interval = record->number,
        .round = record->round[thread / EMU_WARP],
        .thread = {(uint16_t)thread},
        .count = 1,
        .access = (uint8_t)access,
    };
    record->trace.atomics += access == EMU_ATOMIC;
    keep_event(array, index, &now, value);
    const uint32_t instruction = record->instruction[thread]++;
    if (record->trace.array[array].is_shared) {
        record->active[thread / EMU_WARP] |= 1u << thread % EMU_WARP;
        if (!record->trace.is_cut && !banks_add(&record->banks, thread, instruction, access, array,
                                                (size_t)index * record->trace.array[array].size,
                                                record->trace.array[array].size))
            record->trace.is_cut = true;
    }
    if (record->shadow[array] != NULL)
        shadow_access(array, index, &now, value);
    return !record->trace.is_stopped;
}
