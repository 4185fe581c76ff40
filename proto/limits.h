/* limits.h - every bound that is fixed when dotd is built. Bounds that an operator may move are
 * settings (config/dotd.ini); a bound here is one that an array or a type depends on. */
#ifndef PROTO_LIMITS_H
#define PROTO_LIMITS_H

enum limits {
    LIMIT_RANK = 8,                  /* dimensions of an operand */
    LIMIT_ID_BYTES = 128,            /* of a request's id, without the NUL */
    LIMIT_DETAIL_BYTES = 320,        /* of a problem's detail, with the NUL */
    LIMIT_POINTER_BYTES = 96,        /* of a problem's JSON pointer, with the NUL */
    LIMIT_NAME_BYTES = 64,           /* of a device, kernel or dtype name, with the NUL */
    LIMIT_QUERY_BYTES = 32 * 1024,   /* of a query string: the connection's memory holds it */
    LIMIT_SKELETON_BYTES = 4 << 20,  /* of a JSON body once its arrays of numbers are taken out */
    LIMIT_PAIRS = 65536,             /* of one request */
    LIMIT_NUMBER_BYTES = 4096,       /* of one number's text: longer is refused, not rounded */
    LIMIT_PIECE_BYTES = 64 << 10,    /* of either operand, handed on at once (rounds.h) */
    LIMIT_BLOCK_BYTES = 1 << 20,     /* of one operand's block in an interleaved body */
    LIMIT_OPERAND_ALIGN = 64,        /* bytes; a cache line, and more than any vector load */
};

#endif
