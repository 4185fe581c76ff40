/* tiles.cuh - how warps read many short rows: tile after tile, with copies on their way whatever a
 * warp does with what has arrived.
 *
 * Door: tiles_of() a task of form GRID_TILE_ROW, as the block's warps share it; run_tiles() shows a
 * worker its warp's tiles, with SIDE rows side by side in each lane and TEAM lanes a row:
 *   struct Worker {
 *       void add(bool is_first, const uint4 (&x)[SIDE], const uint4 (&y)[SIDE or 1]);
 *                                    the next vector of each of the lane's rows: of zeros where
 *                                    there is none; is_first: the rows begin
 *       void end_rows(uint32_t row); they end; row: the lane's first one in the tile, and the next
 *                                    ones come every 32 / TEAM
 *       void finish(uint32_t row, uint32_t count);   a tile ends: of so many rows from that one on
 *   };
 * By whole warps. put_partials() and total_of() bring what the lanes of a row have to one lane a
 * row.
 *
 * Idea      a short row is not enough to keep loads on their way, and what ends a row, folding
 *           lanes, rounding, storing, costs a warp the same for one row as for 32. So a tile has up
 *           to 32 rows, a lane reads some of them side by side, and what has to be done for a row is
 *           done for all of a tile, by a lane a row.
 */
#ifndef GPU_KERNELS_TILES_CUH
#define GPU_KERNELS_TILES_CUH

#include "gpu/kernels/rows.cuh"

namespace
{

enum {
    TILE_SLOTS = 4,             /* vectors of a lane in one batch of copies */
    TILE_AHEAD = 3,             /* batches on their way */
    TILE_PARTIALS = GRID_TEAM,  /* of a row that one lane adds up */
    TILE_PITCH = GRID_WARP + 4, /* cells from a partial to the next: banks are 16 cells */
    SLOT_BYTES = GRID_WARP * GRID_LOAD_BYTES,
    BATCH_BYTES = TILE_SLOTS * SLOT_BYTES,
    RING_BYTES = TILE_AHEAD * BATCH_BYTES,   /* of a warp */
    CELL_COUNT = TILE_PARTIALS * TILE_PITCH, /* of 8 bytes: one number a row */
};

/* The rows of a task, and which tiles of them are a warp's. */
struct tiles {
    const char *a, *b;
    uint64_t stride_a, stride_b; /* bytes */
    uint32_t rows, vectors;      /* vectors: of a row */
    uint32_t height, count;      /* rows of a tile; tiles */
    uint32_t first, step;        /* the warp's first tile, and how far its next one is */
};

/* Tiles are dealt to blocks first. If one operand is the same for all rows it is b, for products
 * do not care. */
template <int SIZE> __device__ inline struct tiles tiles_of(const struct grid_task &task)
{
    const bool swaps = task.stride_a[1] == 0;
    struct tiles tiles;
    tiles.a = (const char *)(swaps ? task.b : task.a);
    tiles.b = (const char *)(swaps ? task.a : task.b);
    tiles.stride_a = (swaps ? task.stride_b : task.stride_a)[1] * SIZE;
    tiles.stride_b = (swaps ? task.stride_a : task.stride_b)[1] * SIZE;
    tiles.rows = task.rows;
    tiles.vectors = (uint32_t)(task.n * SIZE / GRID_LOAD_BYTES);
    tiles.height = task.height;
    tiles.count = (task.rows - 1) / task.height + 1;
    tiles.first = threadIdx.x / GRID_WARP * task.blocks + (blockIdx.x - task.first_block);
    tiles.step = blockDim.x / GRID_WARP * task.blocks;
    return tiles;
}

/* --- reading --- */

/* How a warp reads: SIDE rows side by side in each lane, TEAM lanes a row. */
template <int LANES, bool HAS_ONE_B> struct reading {
    enum { TEAM = LANES, ACROSS = GRID_WARP / TEAM };
    enum { ONE_B = HAS_ONE_B, SIDE = ONE_B ? TILE_SLOTS : TILE_SLOTS / 2 };
    enum { SIDE_B = ONE_B ? 1 : SIDE, ROWS = SIDE * ACROSS }; /* ROWS: of the warp */
};

/* Where a warp stands: a tile, its first row there and its first vector. */
struct stand {
    uint32_t tile, row, vector;
};

/* To the next vectors, rows or tile. True if rows begin. */
template <typename Reading>
__device__ inline bool advance(const struct tiles &tiles, struct stand &stand)
{
    stand.vector += Reading::TEAM;
    if (stand.vector < tiles.vectors)
        return false;
    stand.vector = 0;
    stand.row += Reading::ROWS;
    if (stand.row >= tiles.height) {
        stand.row = 0;
        stand.tile += tiles.step;
    }
    return true;
}

/* For what is read once: in the cache it goes before the results, which would otherwise be written
 * to memory in between, and turn it round each time. */
__device__ inline uint64_t policy_of_once()
{
    uint64_t policy = 0;
#ifndef DOTD_EMU
    asm("createpolicy.fractional.L2::evict_first.b64 %0;" : "=l"(policy));
#endif
    return policy;
}

/* As copy_ahead(), of what is read once. */
__device__ inline void copy_once(char *to, const char *from, bool is_there, uint64_t policy)
{
#ifdef DOTD_EMU
    copy_ahead(to, from, is_there);
    (void)policy;
#else
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(is_there ? GRID_LOAD_BYTES : 0), "l"(policy)
                 : "memory");
#endif
}

/* What a lane sends for next. */
template <typename Reading> class sender
{
  public:
    __device__ sender(const struct tiles &tiles)
        : tiles_(tiles), policy_(policy_of_once()), stand_({tiles.first, 0, 0})
    {
        aim();
    }

    /* A batch; what does not exist is zeros. to: the lane's place. */
    __device__ void send(char *to)
    {
        const bool is_there = stand_.vector + threadIdx.x % Reading::TEAM < tiles_.vectors;
        const uint32_t rows = is_there ? rows_ : 0;
        const char *a = a_, *b = b_;
#pragma unroll
        for (int k = 0; k < Reading::SIDE; k++) {
            const bool copies = (uint32_t)k * Reading::ACROSS < rows;
            copy_once(to + k * SLOT_BYTES, a, copies, policy_);
            if (!Reading::ONE_B)
                copy_once(to + (Reading::SIDE + k) * SLOT_BYTES, b, copies, policy_);
            a += Reading::ACROSS * tiles_.stride_a;
            b += Reading::ACROSS * tiles_.stride_b;
        }
        end_pair();
        a_ += Reading::TEAM * GRID_LOAD_BYTES;
        b_ += Reading::TEAM * GRID_LOAD_BYTES;
        if (advance<Reading>(tiles_, stand_))
            aim();
    }

  private:
    __device__ void aim()
    {
        const uint32_t lane = threadIdx.x % GRID_WARP, team = lane / Reading::TEAM;
        const uint64_t row = (uint64_t)stand_.tile * tiles_.height + stand_.row + team;
        a_ = tiles_.a + row * tiles_.stride_a + lane % Reading::TEAM * GRID_LOAD_BYTES;
        b_ = tiles_.b + row * tiles_.stride_b + lane % Reading::TEAM * GRID_LOAD_BYTES;
        rows_ = row < tiles_.rows ? tiles_.rows - (uint32_t)row : 0;
    }

    const struct tiles &tiles_;
    const uint64_t policy_;
    struct stand stand_;
    const char *a_, *b_; /* the lane's vectors of its first row */
    uint32_t rows_;      /* from that one on to the last */
};

/* What all rows have in common comes from the cache. */
template <typename Reading>
__device__ inline uint4 load_common(const struct tiles &tiles, const struct stand &stand)
{
    const uint32_t vector = stand.vector + threadIdx.x % Reading::TEAM;
    const uint4 zero = {0, 0, 0, 0};
    return vector < tiles.vectors ? __ldg((const uint4 *)tiles.b + vector) : zero;
}

/* ring: of the warp, RING_BYTES on a boundary of 128. */
template <typename Reading, typename Worker>
__device__ inline void run_tiles(const struct tiles &tiles, char *ring, Worker &worker)
{
    char *const first = ring + threadIdx.x % GRID_WARP * GRID_LOAD_BYTES;
    char *const last = first + (TILE_AHEAD - 1) * BATCH_BYTES;
    sender<Reading> sender(tiles);
    struct stand stand = {tiles.first, 0, 0};
    for (char *to = first; to <= last; to += BATCH_BYTES)
        sender.send(to);
    char *at = first;
    while (stand.tile < tiles.count) {
        uint4 x[Reading::SIDE], y[Reading::SIDE_B];
        if (Reading::ONE_B)
            y[0] = load_common<Reading>(tiles, stand);
        await_pairs<TILE_AHEAD - 1>();
#pragma unroll
        for (int k = 0; k < Reading::SIDE; k++) {
            x[k] = *(const uint4 *)(at + k * SLOT_BYTES);
            if (!Reading::ONE_B)
                y[k] = *(const uint4 *)(at + (Reading::SIDE + k) * SLOT_BYTES);
        }
        sender.send(at); /* shared memory is read in order: before the copy arrives there */
        worker.add(stand.vector == 0, x, y);
        at = at == last ? first : at + BATCH_BYTES;
        const struct stand before = stand;
        if (!advance<Reading>(tiles, stand))
            continue;
        worker.end_rows(before.row + threadIdx.x % GRID_WARP / Reading::TEAM);
        if (stand.row == 0) {
            const uint32_t row = before.tile * tiles.height;
            worker.finish(row, min(tiles.height, tiles.rows - row));
        }
    }
    await_pairs<0>();
}

/* --- from lanes to rows --- */

/* Folds what the lanes of a row have to TILE_PARTIALS and puts these into the row's cells. row: the
 * lane's first one in the tile. */
template <typename Reading, typename Value>
__device__ inline void put_partials(Value *cell, uint32_t row, const Value (&value)[Reading::SIDE])
{
    const unsigned lane = threadIdx.x % Reading::TEAM;
#pragma unroll
    for (int k = 0; k < Reading::SIDE; k++) {
        Value total = value[k];
#pragma unroll
        for (unsigned half = Reading::TEAM / 2; half >= TILE_PARTIALS; half /= 2)
            total += __shfl_down_sync(ALL_LANES, total, half);
        if (lane < TILE_PARTIALS)
            cell[lane * TILE_PITCH + row + k * Reading::ACROSS] = total;
    }
}

template <typename Value> __device__ inline Value total_of(const Value *cell, uint32_t row)
{
    Value part[TILE_PARTIALS];
#pragma unroll
    for (int i = 0; i < TILE_PARTIALS; i++)
        part[i] = cell[i * TILE_PITCH + row];
#pragma unroll
    for (int half = TILE_PARTIALS / 2; half > 0; half /= 2)
#pragma unroll
        for (int i = 0; i < half; i++)
            part[i] += part[i + half];
    return part[0];
}

/* --- ways --- */

/* run(way) with the reading<> of a task. */
template <bool ONE_B, typename Run> __device__ inline void by_team(uint32_t team, Run run)
{
    if (team == GRID_TEAM)
        run(reading<GRID_TEAM, ONE_B>());
    else if (team == 2 * GRID_TEAM)
        run(reading<2 * GRID_TEAM, ONE_B>());
    else
        run(reading<4 * GRID_TEAM, ONE_B>());
}

template <typename Run> __device__ inline void by_team(uint32_t team, bool has_one_b, Run run)
{
    if (has_one_b)
        by_team<true>(team, run);
    else
        by_team<false>(team, run);
}

} // namespace

#endif
