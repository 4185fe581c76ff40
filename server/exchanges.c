/* exchanges.c - exchanges kept for reuse, and their ids (see exchanges.h). */
#include "server/exchanges.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "gpu/clock.h"
#include "server/answer.h"
#include "server/exchange.h"
#include "server/loop.h"

enum { EXCHANGES_KEPT = 256 }; /* for reuse, each with its answer's memory and its target's */

void exchanges_init(struct exchanges *all)
{
    *all = (struct exchanges){.kept = NULL};
    if (getrandom(&all->id_seed, sizeof all->id_seed, 0) != sizeof all->id_seed)
        all->id_seed = (uint64_t)clock_ns();
}

void exchanges_fini(struct exchanges *all)
{
    while (all->kept != NULL) {
        struct exchange *next = all->kept->next_kept;
        text_fini(&all->kept->out);
        text_fini(&all->kept->request_target);
        free(all->kept);
        all->kept = next;
    }
    text_fini(&all->scratch);
}

/* Only the loop's thread writes, so nothing can come between the load and the store. */
static void count(struct exchanges *all, int more)
{
    unsigned before = atomic_load_explicit(&all->count, memory_order_relaxed);
    atomic_store_explicit(&all->count, before + (unsigned)more, memory_order_relaxed);
}

struct exchange *exchange_new(struct exchanges *all)
{
    struct exchange *exchange = all->kept;
    struct text out = {0}, target = {0};
    if (exchange != NULL) {
        all->kept = exchange->next_kept;
        all->kept_count--;
        out = exchange->out;
        target = exchange->request_target;
    } else {
        exchange = malloc(sizeof *exchange);
        if (exchange == NULL)
            return NULL;
    }
    memset(exchange, 0, offsetof(struct exchange, id));
    exchange->out = out;
    exchange->request_target = target;
    text_clear(&exchange->out);
    text_clear(&exchange->request_target);
    exchange->id[0] = exchange->allow[0] = '\0';
    problem_clear(&exchange->problem);
    problem_clear(&exchange->job_problem);
    count(all, 1);
    return exchange;
}

void exchange_free(struct exchanges *all, struct exchange *exchange)
{
    assert(exchange->jobs_out == 0);
    deadlines_clear(loop_deadlines(exchange->loop), &exchange->deadline);
    job_fini(&exchange->job);
    dot_fini(&exchange->dot);
    lab_call_free(exchange->lab_call);
    answer_uncharge(exchange);
    count(all, -1);
    if (exchange->out.capacity > ANSWER_BYTES_KEPT)
        text_fini(&exchange->out);
    if (exchange->request_target.capacity > ANSWER_BYTES_KEPT)
        text_fini(&exchange->request_target);
    if (all->kept_count == EXCHANGES_KEPT) {
        text_fini(&exchange->out);
        text_fini(&exchange->request_target);
        free(exchange);
        return;
    }
    exchange->next_kept = all->kept;
    all->kept = exchange;
    all->kept_count++;
}

/* splitmix64 of a counter from a random seed: unique in this process, and not guessable in order.
 * Source: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", 2014. */
void exchange_make_id(struct exchanges *all, char ret[static 17])
{
    uint64_t x = all->id_seed + ++all->id_count * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    text_put_hex(ret, x);
    ret[16] = '\0';
}

struct text *exchanges_scratch(struct exchanges *all)
{
    text_clear(&all->scratch);
    return &all->scratch;
}
