/* limits.h - every bound that is fixed when dotd is built. Bounds that an operator may move are
 * settings (config/dotd.ini); a bound here is one that an array or a type depends on. */
#ifndef PROTO_LIMITS_H
#define PROTO_LIMITS_H

/* X(LIMIT, name, value, what): what a client can run into. GET /v1/limits tells it by that name,
 * and a test holds the table of API.md to these rows. The lab's are there so that no experiment
 * keeps the others waiting for long. */
#define LIMIT_MAP(X)                                                                              \
    X(LIMIT_RANK, rank, 8, "dimensions of an operand")                                            \
    X(LIMIT_PAIRS, pairs, 65536, "pairs of a request")                                            \
    X(LIMIT_ID_BYTES, id_bytes, 128, "bytes of an `id`")                                          \
    X(LIMIT_HEAD_BYTES, head_bytes, 40 << 10, "bytes of a head, and of what is kept of it")       \
    X(LIMIT_QUERY_BYTES, query_bytes, 32 << 10, "bytes of a query string")                        \
    X(LIMIT_QUERY_PARAMETERS, query_parameters, 64, "parameters in it")                           \
    X(LIMIT_NUMBER_BYTES, number_bytes, 4096, "bytes of one number's text")                       \
    X(LIMIT_SKELETON_BYTES, json_without_arrays_bytes, 4 << 20,                                   \
      "bytes of a JSON body besides its operands")                                                \
    X(LIMIT_BLOCK_BYTES, block_bytes, 1 << 20, "bytes of a block of interleaved operands")        \
    X(LIMIT_HEADER_BYTES, npy_header_bytes, 64 << 10, "bytes of a `.npy` array's header")         \
    X(LIMIT_PART_HEAD_BYTES, part_head_bytes, 4096, "bytes of a form's part before its content")  \
    X(LIMIT_FIELD_BYTES, form_field_bytes, 1024, "bytes of an option's value in a form")          \
    X(LIMIT_INDEX_BODY_BYTES, index_body_bytes, 4096, "bytes sent to `/v2/repository/index`")     \
    X(LIMIT_LAB_BODY_BYTES, lab_body_bytes, 4 << 20, "bytes of a call to the lab")                \
    X(LIMIT_LAB_BLOCK, lab_block, 1024, "threads of a block")                                     \
    X(LIMIT_LAB_TRACED, lab_traced, 4096, "elements of a reduction that is watched")              \
    X(LIMIT_LAB_RUNS, lab_runs, 20, "runs of a race")                                             \
    X(LIMIT_LAB_RACE, lab_race, 1 << 24, "additions in one, on a device: float32 counts so far")  \
    X(LIMIT_LAB_RACE_EMULATED, lab_race_emulated, 1 << 18, "and emulated: 20 runs take a second") \
    X(LIMIT_LAB_ROUNDING, lab_rounding, 65536, "elements that are summed in many orders")         \
    X(LIMIT_LAB_ORDERS, lab_orders, 32, "orders of atomics among them")                           \
    X(LIMIT_LAB_MEASURE, lab_measure, 1 << 27, "elements that a kernel is timed with, on a GPU")  \
    X(LIMIT_LAB_MEASURE_CPU, lab_measure_cpu, 1 << 24, "on the CPU")                              \
    X(LIMIT_LAB_MEASURE_EMULATED, lab_measure_emulated, 1 << 16, "emulated")                      \
    X(LIMIT_LAB_DOT, kernel_terms, 1 << 28, "products of a request with a rung's name, on a GPU") \
    X(LIMIT_LAB_DOT_EMULATED, kernel_terms_emulated, 1 << 20, "emulated")                         \
    X(LIMIT_LAB_ROWS, kernel_rows, 4096, "and its results: each is a launch")

enum limits {
#define LIMIT_ROW(limit, name, value, what) limit = value,
    LIMIT_MAP(LIMIT_ROW)
#undef LIMIT_ROW

    /* Room that is ours: nobody is refused for these. */
    LIMIT_DETAIL_BYTES = 320,     /* of a problem's detail, with the NUL */
    LIMIT_POINTER_BYTES = 96,     /* of a problem's JSON pointer, with the NUL */
    LIMIT_NAME_BYTES = 64,        /* of a device, kernel or dtype name, with the NUL */
    LIMIT_PIECE_BYTES = 64 << 10, /* of either operand, handed on at once (rounds.h) */
    LIMIT_OPERAND_ALIGN = 64,     /* bytes; a cache line, and more than any vector load */
};

#endif
