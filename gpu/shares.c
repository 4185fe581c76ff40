/* shares.c - jobs and bytes by client (see shares.h).
 *
 * Linear probing. A client who has nothing left is taken out, and those behind him move up, so that
 * there are no tombstones: D. Knuth, The Art of Computer Programming 3, section 6.4, algorithm R.
 */
#include "gpu/shares.h"

#include <assert.h>
#include <stdlib.h>

struct entry {
    uint64_t client;
    struct share share; /* no jobs: the place is free */
};

struct shares {
    unsigned shift;       /* fixed: 64 - log2 of the places */
    uint64_t mask;        /* fixed: places - 1 */
    struct entry entry[]; /* at most half of them taken */
};

enum error shares_create(struct shares **ret, uint32_t jobs)
{
    unsigned bits = 1;
    while ((uint64_t)1 << bits < 2 * (uint64_t)jobs)
        bits++;
    struct shares *shares = calloc(1, sizeof *shares + ((size_t)1 << bits) * sizeof(struct entry));
    if (shares == NULL)
        return ERR_NOMEM;
    shares->shift = 64 - bits;
    shares->mask = ((uint64_t)1 << bits) - 1;
    *ret = shares;
    return ERR_OK;
}

void shares_destroy(struct shares *shares)
{
    free(shares);
}

/* Fibonacci hashing: the upper bits of a product with 2^64 over the golden ratio. */
static uint64_t home(const struct shares *shares, uint64_t client)
{
    return client * 0x9e3779b97f4a7c15u >> shares->shift;
}

/* Where the client is, or would be. */
static uint64_t place_of(const struct shares *shares, uint64_t client)
{
    uint64_t place = home(shares, client);
    while (shares->entry[place].share.jobs > 0 && shares->entry[place].client != client)
        place = (place + 1) & shares->mask;
    return place;
}

struct share shares_of(const struct shares *shares, uint64_t client)
{
    return shares->entry[place_of(shares, client)].share;
}

void shares_add(struct shares *shares, uint64_t client, uint64_t bytes)
{
    struct entry *entry = &shares->entry[place_of(shares, client)];
    entry->client = client;
    entry->share.jobs++;
    entry->share.bytes += bytes;
}

/* Fills the gap with the next entry that may stand there, and so on with the gap it leaves. */
static void close_gap(struct shares *shares, uint64_t gap)
{
    uint64_t place = gap;
    for (;;) {
        place = (place + 1) & shares->mask;
        const struct entry *entry = &shares->entry[place];
        if (entry->share.jobs == 0)
            break;
        uint64_t from_home = (place - home(shares, entry->client)) & shares->mask;
        if (from_home < ((place - gap) & shares->mask))
            continue; /* its home lies behind the gap */
        shares->entry[gap] = *entry;
        gap = place;
    }
    shares->entry[gap] = (struct entry){0};
}

void shares_remove(struct shares *shares, uint64_t client, uint64_t bytes)
{
    uint64_t place = place_of(shares, client);
    struct share *share = &shares->entry[place].share;
    assert(share->jobs > 0 && share->bytes >= bytes);
    share->jobs--;
    share->bytes -= bytes;
    assert(share->jobs > 0 || share->bytes == 0);
    if (share->jobs == 0)
        close_gap(shares, place);
}
