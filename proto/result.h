/* result.h - one answer as a value, and its encodings.
 *
 * gpu/ computes struct dot_value: exact ones rounded to result_dtype, fast ones in float64, which
 * result_round() rounds. A complex result is two of them. The encoders write what api.md
 * section 3 promises. Fields are borrowed: nothing here owns memory.
 */
#ifndef PROTO_RESULT_H
#define PROTO_RESULT_H

#include <stdint.h>

#include "proto/request.h"
#include "proto/text.h"
#include "proto/value.h"

/* Stages of a request in the order in which they happen; their sum is the total. */
#define TIMING_MAP(X) X(receive) X(decode) X(queue) X(copy_in) X(compute) X(copy_out)

struct timing {
#define X(stage) int64_t stage##_ns;
    TIMING_MAP(X)
#undef X
};

struct result {
    const struct request *request;
    struct dot_value
        *value; /* one a result, two a complex one; in result_dtype after result_round() */
    enum accuracy accuracy;  /* as it was asked for; integer results are exact in any case */
    const char *kernel;      /* "exact", "grid-atomic", "cpu-avx512" */
    const char *device;      /* "cpu", "cuda:0" */
    const char *device_name; /* "NVIDIA H200" */
    uint32_t batch_size;     /* jobs in the launch that computed this */
    struct timing timing;
};

/* Rounds every value of a fast sum to request->options.result_dtype, once, and widens its bound by
 * what that rounding may have moved; sets the flags overflow and underflow where they apply (also
 * for float64, where no value moves). Exact values have been rounded already, and so have those of
 * integer operands. */
void result_round(struct result *result);

int64_t timing_total_ns(const struct timing *timing);

/* The JSON object of api.md section 3. Results nest as the result's shape does, a complex one as
 * [re, im]; bits, error_bound, result_text, sum_abs and condition nest the same way, so that they
 * tell of each number. text->failed tells of no memory. */
void result_encode_json(const struct result *result, struct text *text);

/* The results' bits, little-endian, in C order. ERR_VALUE, and nothing is written: an integer needs
 * more than the 64 bits of its type. */
enum error result_encode_raw(const struct result *result, struct text *text,
                             struct problem *problem);

/* The same as a NumPy array (.npy, version 1.0). */
enum error result_encode_npy(const struct result *result, struct text *text,
                             struct problem *problem);

/* Header values: "3,4" (empty for a scalar), "inexact,overflow" (empty for none), the largest bound
 * in shortest form or "Infinity", and W3C Server-Timing in milliseconds, exact to the nanosecond
 * ("receive;dur=0.011000, ..., total;dur=0.018400"). */
void result_header_shape(const struct result *result, struct text *text);
void result_header_flags(const struct result *result, struct text *text);
void result_header_error_bound(const struct result *result, struct text *text);
void result_header_dtype(const struct result *result, struct text *text); /* "float64" */

/* The id, with every byte that is no visible ASCII, and '%', as %XX (RFC 3986 section 2.1): what a
 * client chose must not become a line of its own. Empty when none was given. */
void result_header_id(const struct result *result, struct text *text);

/* A scalar's diagnostics, as error_bound is written; empty unless they were asked for. */
void result_header_sum_abs(const struct result *result, struct text *text);
void result_header_condition(const struct result *result, struct text *text);
void result_header_server_timing(const struct result *result, struct text *text);

/* ERR_OPTION: headers do not carry what the options ask for, diagnostics of more than one number.
 * The request has been checked. */
enum error result_headers_suffice(const struct request *request, struct problem *problem);

/* The problem+json of api.md section 4. id NULL or empty: none. */
void problem_encode_json(const struct problem *problem, const char *id, struct text *text);

#endif
