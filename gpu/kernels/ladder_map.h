/* ladder_map.h - the table of the ladder, from the first rung to the last; the one list of rungs.
 *
 * Door: X(symbol, name, file, members of struct rung). cuda_SYMBOL() and, in the emulation,
 * emu_SYMBOL() launch the rung, and takes_SYMBOL() in ladder.c says what it takes. For the ladder's
 * own files: everybody else reads ladder_rows().
 */
#ifndef GPU_KERNELS_LADDER_MAP_H
#define GPU_KERNELS_LADDER_MAP_H

#define LADDER_MAP(X)                                                                              \
    X(race, "race", "race.cu", .idea = "Every thread adds its product to one variable, plainly.",  \
      .point = "additions are lost: read, add and write are three steps, and others come between", \
      .arithmetic = "products and sums in the element type", .order = RUNG_ORDER_ANY,              \
      .is_lab_only = true)                                                                         \
    X(serial, "serial", "serial.cu",                                                               \
      .idea = "One block brings its products to shared memory, and behind a barrier thread 0 adds" \
              " them all.",                                                                        \
      .point = "right, and all threads but one watch",                                             \
      .arithmetic = "products and sums in the element type", .order = RUNG_ORDER_FIXED,            \
      .max_n = RUNG_THREADS_MAX)                                                                   \
    X(tree_pairs, "tree-pairs", "tree_pairs.cu",                                                   \
      .idea = "One block adds neighbours in shared memory, then the neighbours that are left: the" \
              " stride doubles.",                                                                  \
      .point = "log2 steps, but half-empty warps, and cells that share a bank",                    \
      .arithmetic = "products and sums in the element type", .order = RUNG_ORDER_FIXED,            \
      .max_n = RUNG_THREADS_MAX)                                                                   \
    X(tree, "tree", "tree.cu",                                                                     \
      .idea = "One block adds the upper half of shared memory to the lower one, and again: the"    \
              " stride halves, with a barrier for all behind each step.",                          \
      .point = "log2 steps by dense warps, each bank asked once",                                  \
      .arithmetic = "products and sums in the element type", .order = RUNG_ORDER_FIXED,            \
      .max_n = RUNG_THREADS_MAX)                                                                   \
    X(thread_atomic, "thread-atomic", "thread_atomic.cu",                                          \
      .idea = "Many blocks, and every thread adds its product to the total by atomicAdd.",         \
      .point = "right for any length, and a queue as long as the vector",                          \
      .arithmetic = "products and sums in the element type", .order = RUNG_ORDER_ANY,              \
      .is_atomic = true)                                                                           \
    X(block_atomic, "block-atomic", "block_atomic.cu",                                             \
      .idea = "Many blocks, each a tree whose tail threads bring zero, and one atomicAdd a block"  \
              " to a total that was zero before.",                                                 \
      .point = "the answer to long vectors: the queue is shorter by a block's threads",            \
      .arithmetic = "products and sums in the element type", .order = RUNG_ORDER_ANY,              \
      .is_atomic = true)                                                                           \
    X(warp_shuffle, "warp-shuffle", "warp_shuffle.cu",                                             \
      .idea = "As block-atomic, but the last warp of each tree adds in registers, lane to lane.",  \
      .point = "five steps without a barrier and without shared memory",                           \
      .arithmetic = "products and sums in the element type", .order = RUNG_ORDER_ANY,              \
      .is_atomic = true, .takes_warps = true)                                                      \
    X(grid_atomic, "grid-atomic", "grid_atomic.cu",                                                \
      .idea = "As many blocks as the device holds stride over the vectors with 128-bit loads,"     \
              " several in flight, and end with shuffles and two atomicAdds a block.",             \
      .point = "the memory's bandwidth; what fast asks for",                                       \
      .arithmetic = "products and sums in float64", .order = RUNG_ORDER_ANY, .is_float64 = true,   \
      .chooses_block = true)                                                                       \
    X(two_pass, "two-pass", "two_pass.cu",                                                         \
      .idea = "At most 1024 blocks leave their partial sums in global memory, and one block adds"  \
              " them in a second launch.",                                                         \
      .point = "no atomics, one order: the same bits in every run of one grid",                    \
      .arithmetic = "products and sums in the element type", .order = RUNG_ORDER_FIXED)            \
    X(exact, "exact", "exact_rows.cuh",                                                            \
      .idea = "Products go as integers into limbs so wide that nothing rounds, blocks meet by"     \
              " atomicAdd on limbs, and the total is rounded once.",                               \
      .point = "the same bits in every order, on every device; what exact asks for",               \
      .arithmetic = "integers; one rounding, of the total", .order = RUNG_ORDER_MATTERS_NOT,       \
      .is_float64 = true, .is_exact = true, .chooses_block = true)

#endif
