/* dotd.h - client of dotd, the service of correctly rounded dot products. C and C++.
 *
 * Door: dotd_open(), then dotd_dot() as often as wanted, dotd_close(). Many calls at once:
 * dotd_multi_open(), which fits into any loop that can poll a descriptor.
 *
 * The library keeps no global state and starts no thread. A handle may be used by one thread at a
 * time, different handles by different threads. libcurl is what carries it: call
 * curl_global_init(CURL_GLOBAL_DEFAULT) before the first handle, while there is one thread only.
 *
 * Every struct that a caller fills in begins with its size, so that programs built today work with
 * libraries that know more fields: = {.size = sizeof(struct dotd_config)}, all else zero.
 */
#ifndef DOTD_H
#define DOTD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define DOTD_API __attribute__((visibility("default")))
#else
#define DOTD_API
#endif

enum {
    DOTD_RANK_MAX = 8,
    DOTD_ID_BYTES = 128,
    DOTD_NAME_BYTES = 64,
    DOTD_TEXT_BYTES = 512,
};

enum dotd_dtype {
    DOTD_DEFAULT, /* elements: float64; results: what the service says */
    DOTD_FLOAT16,
    DOTD_BFLOAT16,
    DOTD_FLOAT32,
    DOTD_FLOAT64,
    DOTD_INT8,
    DOTD_UINT8,
    DOTD_INT32,
    DOTD_INT64,
    DOTD_COMPLEX64, /* the real part, then the imaginary one, as in C and C++ */
    DOTD_COMPLEX128,
};

enum dotd_code {
    DOTD_OK,
    DOTD_BAD_ARGUMENT, /* nothing was sent */
    DOTD_NO_MEMORY,
    DOTD_UNREACHABLE, /* no connection, or it ended before the answer did */
    DOTD_LATE,        /* the timeout passed, or the service says so: status 504 */
    DOTD_REFUSED,     /* the service's problem document says why */
    DOTD_BAD_ANSWER,  /* what came is not an answer of this service */
};

/* Why a call brought nothing. Texts are empty and numbers -1 where the service says nothing. */
struct dotd_error {
    enum dotd_code code;
    int status;                    /* of HTTP; 0 when not even that came */
    char name[DOTD_NAME_BYTES];    /* the kind of problem: "length-mismatch" */
    char title[DOTD_TEXT_BYTES];   /* of that kind */
    char detail[DOTD_TEXT_BYTES];  /* what came, what was expected, what to do */
    char pointer[DOTD_TEXT_BYTES]; /* JSON pointer of the field or element */
    char setting[DOTD_NAME_BYTES]; /* moves the limit */
    char id[DOTD_ID_BYTES + 1];
    int64_t offset; /* byte of the body */
    int64_t limit;  /* that was passed */
    int retry_after_s;
};

struct dotd_config {
    size_t size;
    const char *url;     /* "http://127.0.0.1:8080"; copied */
    const char *token;   /* sent as a bearer; NULL: none; copied */
    unsigned timeout_ms; /* of a call with all of its retries; 0: 60000 */
    unsigned retries;    /* at most so many, where the service says when; 0: 3; DOTD_NO_RETRY */
};

#define DOTD_NO_RETRY (~0u)

struct dotd_shape {
    unsigned rank; /* 0: not said */
    uint64_t dim[DOTD_RANK_MAX];
};

/* Strings are read during the call only; NULL is the service's choice. */
struct dotd_options {
    size_t size;
    enum dotd_dtype dtype, result_dtype;
    const char *accuracy; /* "exact", "fast" */
    const char *kernel;   /* of GET /v1/kernels */
    const char *device;   /* "auto", "cpu", "cuda", "cuda:1" */
    const char *id;       /* the answer repeats it */
    int conjugate;        /* the elements of a complex a */
    int diagnostics;      /* asks for sum_abs and condition */
    unsigned timeout_ms;  /* 0: the client's */
    /* Leading axes broadcast. Both or neither; without, a and b are vectors of n elements. */
    struct dotd_shape shape_a, shape_b;
};

/* One number of the results; a complex one is two, its real part first. */
struct dotd_number {
    double value;              /* what bits say; an integer that a double cannot hold is rounded */
    uint64_t bits[3];          /* the lowest word first. Integers: two's complement of 192 bits */
    double error_bound;        /* the exact sum is no farther away; infinity: nothing is promised */
    double sum_abs, condition; /* with diagnostics; else NaN */
};

/* Flags of all numbers together. */
enum {
    DOTD_INEXACT = 1,
    DOTD_INVALID = 2,
    DOTD_NAN_INPUT = 4,
    DOTD_OVERFLOW = 8,
    DOTD_UNDERFLOW = 16,
};

struct dotd_timing { /* microseconds at the service; the stages add up to total */
    double receive, decode, queue, copy_in, compute, copy_out, total;
};

struct dotd_result {
    struct dotd_number *number; /* [count], in C order; dotd_result_clear() frees it */
    size_t count;
    struct dotd_shape shape; /* rank 0: one number, or one pair of a complex one */
    enum dotd_dtype dtype;   /* of the numbers */
    unsigned flags;
    unsigned batch_size; /* jobs that were computed together with this one */
    char kernel[DOTD_NAME_BYTES];
    char device[DOTD_NAME_BYTES];
    char device_name[DOTD_TEXT_BYTES];
    char id[DOTD_ID_BYTES + 1];
    struct dotd_timing timing_us;
};

DOTD_API void dotd_result_clear(struct dotd_result *result);

/* Bytes of an element; 0 for what is no type. */
DOTD_API size_t dotd_size(enum dotd_dtype dtype);

/* ---- one call at a time ---- */

struct dotd;

/* Checks the address, connects to nobody yet. error may be NULL here and below. */
DOTD_API enum dotd_code dotd_open(struct dotd **ret, const struct dotd_config *config,
                                  struct dotd_error *error);

/* Takes NULL. */
DOTD_API void dotd_close(struct dotd *client);

/* The dot product along the last axis, of n elements each or of the options' shapes (then n is not
 * read). Sends from where a and b lie. options may be NULL. On failure ret is untouched, and what
 * is returned is also error->code. A call that the service puts off (429 or 503 with Retry-After)
 * is made again within the timeout: then this sleeps. */
DOTD_API enum dotd_code dotd_dot(struct dotd *client, const void *a, const void *b, size_t n,
                                 const struct dotd_options *options, struct dotd_result *ret,
                                 struct dotd_error *error);

/* ---- many calls at once ---- */

struct dotd_multi;

DOTD_API enum dotd_code dotd_multi_open(struct dotd_multi **ret, const struct dotd_config *config,
                                        struct dotd_error *error);

/* Gives up what is not done. Takes NULL. */
DOTD_API void dotd_multi_close(struct dotd_multi *multi);

/* Begins a call; tag comes back with its answer. a and b must stay until then. Nothing is made
 * again here: error->retry_after_s says when it may be. */
DOTD_API enum dotd_code dotd_multi_add(struct dotd_multi *multi, const void *a, const void *b,
                                       size_t n, const struct dotd_options *options, void *tag,
                                       struct dotd_error *error);

/* A descriptor that is readable when dotd_multi_step() has something to do, timeouts included. The
 * library's: it may be polled, nothing else. */
DOTD_API int dotd_multi_fd(const struct dotd_multi *multi);

/* Does what can be done without waiting. Take what is done from dotd_multi_next() after it. */
DOTD_API void dotd_multi_step(struct dotd_multi *multi);

/* Waits for at most timeout_ms (-1: without end) for something to do, and does it. Returns at once
 * when dotd_multi_next() has something to hand out. */
DOTD_API void dotd_multi_wait(struct dotd_multi *multi, int timeout_ms);

/* Calls whose answers dotd_multi_next() has not handed out. */
DOTD_API size_t dotd_multi_pending(const struct dotd_multi *multi);

/* Hands out a call that is done: 1 with its tag and *code, and then ret or error filled; 0 when
 * there is none now. */
DOTD_API int dotd_multi_next(struct dotd_multi *multi, void **tag, enum dotd_code *code,
                             struct dotd_result *ret, struct dotd_error *error);

#ifdef __cplusplus
}
#endif
#endif
