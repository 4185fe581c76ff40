/* limits.h - every bound that is fixed when dotd is built. Bounds that an operator may move are
 * settings (config/dotd.ini); a bound here is one that an array or a type depends on. */
#ifndef PROTO_LIMITS_H
#define PROTO_LIMITS_H

enum limits {
    LIMIT_RANK = 8,                 /* dimensions of an operand */
    LIMIT_ID_BYTES = 128,           /* of a request's id, without the NUL */
    LIMIT_DETAIL_BYTES = 320,       /* of a problem's detail, with the NUL */
    LIMIT_POINTER_BYTES = 96,       /* of a problem's JSON pointer, with the NUL */
    LIMIT_NAME_BYTES = 64,          /* of a device, kernel or dtype name, with the NUL */
    LIMIT_QUERY_BYTES = 32 * 1024,  /* of a query string: the connection's memory holds it */
    LIMIT_SKELETON_BYTES = 4 << 20, /* of a JSON body once its arrays of numbers are taken out */
    LIMIT_PAIRS = 65536,            /* of one request */
    LIMIT_BLOCK_BYTES = 1 << 20,    /* of one operand's block in an interleaved body */
    LIMIT_HEADER_BYTES = 64 << 10,  /* of a .npy array's header */
    LIMIT_PART_HEAD_BYTES = 4096,   /* of a part's header lines in a multipart body */
    LIMIT_FIELD_BYTES = 1024,       /* of an option's value in one */
    LIMIT_PIECE_BYTES = 64 << 10,   /* of either operand, handed on at once (rounds.h) */
    LIMIT_NUMBER_BYTES = 4096,      /* of one number's text: longer is refused, not rounded */
    LIMIT_OPERAND_ALIGN = 64,       /* bytes; a cache line, and more than any vector load */

    /* The lab's: what one experiment may ask, so that none keeps the others waiting for long. */
    LIMIT_LAB_BODY_BYTES = 4 << 20,       /* of a call's body: two of the longest vectors as text */
    LIMIT_LAB_BLOCK = 1024,               /* threads of a block, as on every device */
    LIMIT_LAB_TRACED = 4096,              /* elements of a reduction that is watched */
    LIMIT_LAB_RUNS = 20,                  /* of a race */
    LIMIT_LAB_RACE = 1 << 24,             /* of a race on a device: float32 counts so far */
    LIMIT_LAB_RACE_EMULATED = 1 << 18,    /* and emulated: 20 runs take a second */
    LIMIT_LAB_ROUNDING = 65536,           /* elements of the vectors that are summed many times */
    LIMIT_LAB_ORDERS = 32,                /* orders of atomics */
    LIMIT_LAB_MEASURE = 1 << 27,          /* elements that a kernel is timed with, on a device */
    LIMIT_LAB_MEASURE_CPU = 1 << 24,      /* on the CPU */
    LIMIT_LAB_MEASURE_EMULATED = 1 << 16, /* emulated */
    LIMIT_LAB_DOT = 1 << 28,              /* products of a job computed by a rung, on a device */
    LIMIT_LAB_DOT_EMULATED = 1 << 20,     /* and emulated */
    LIMIT_LAB_ROWS = 4096,                /* and its rows: each is a launch */
};

#endif
