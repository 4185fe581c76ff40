/* lab_request.h - what a call to the lab says: a short JSON object, read whole.
 *
 * Door: lab_request_read() once the body is complete. Which fields a call takes is its own affair;
 * what they may hold together, gpu/lab/experiments.h settles. Numbers are read as float64 and
 * rounded to dtype; NaN and infinities are quoted, as JSON has no other way.
 */
#ifndef SERVER_LAB_REQUEST_H
#define SERVER_LAB_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "gpu/lab/experiments.h"
#include "proto/request.h"

/* One bit a field: which are given, which a call takes. */
enum lab_field {
    FIELD_A = 1 << 0,
    FIELD_B = 1 << 1,
    FIELD_VALUES = 1 << 2,
    FIELD_N = 1 << 3,
    FIELD_BLOCK = 1 << 4,
    FIELD_SEED = 1 << 5,
    FIELD_RUNS = 1 << 6,
    FIELD_ORDERS = 1 << 7,
    FIELD_BARRIERS = 1 << 8,
    FIELD_SCHEME = 1 << 9,
    FIELD_WHERE = 1 << 10,
    FIELD_DTYPE = 1 << 11,
    FIELD_DEVICE = 1 << 12,
    FIELD_KERNEL = 1 << 13,
};

struct lab_operand {
    void *data; /* owned; [count] of the request's dtype; values: float64 */
    uint64_t count;
};

struct lab_request {
    unsigned given; /* enum lab_field bits */
    struct options
        options; /* dtype (float32 unless given), device, kernel: as /v1/dot reads them */
    struct lab_operand a, b, values;
    uint64_t n, block, seed, runs, orders, barriers; /* 0 unless given */
    const struct lab_scheme *scheme;                 /* the first one unless given */
    enum lab_where where;
};

/* Fills a zeroed request from body[0..size). takes and needs are enum lab_field bits; no operand
 * may have more than max_values. ERR_SYNTAX, ERR_OPTION (an unknown field, or one twice),
 * ERR_VALUE, ERR_DTYPE, ERR_TOO_LARGE, ERR_NOMEM. */
enum error lab_request_read(struct lab_request *request, const char *body, size_t size,
                            unsigned takes, unsigned needs, uint64_t max_values,
                            struct problem *problem);
void lab_request_fini(struct lab_request *request); /* zeroed is fine */

#endif
