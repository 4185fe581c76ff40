/* shares.h - who has how much of a queue: jobs and bytes by client, exactly.
 *
 * Door: shares_create() for at most so many jobs at once; shares_of(), shares_add() and
 * shares_remove() in O(1). An open hash table of twice as many places, so that nothing is allocated
 * for a job. Under the lock of whoever owns it.
 */
#ifndef GPU_SHARES_H
#define GPU_SHARES_H

#include <stdint.h>

#include "proto/error.h"

struct shares; /* layout in shares.c */

struct share {
    uint32_t jobs;
    uint64_t bytes;
};

enum error shares_create(struct shares **ret, uint32_t jobs);
void shares_destroy(struct shares *shares); /* takes NULL */

struct share shares_of(const struct shares *shares, uint64_t client); /* zeros: nothing */
void shares_add(struct shares *shares, uint64_t client, uint64_t bytes);
void shares_remove(struct shares *shares, uint64_t client, uint64_t bytes); /* of what was added */

#endif
