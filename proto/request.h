/* request.h - one dot request as a value, whatever encoding it came in.
 *
 * A decoder (encoding.h) fills it; request_check() settles defaults and shapes; the server places
 * it and gpu/ computes it. Options come from the query string first, then from the body; the two
 * may not contradict each other.
 */
#ifndef PROTO_REQUEST_H
#define PROTO_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/buffer.h"
#include "proto/tensor.h"

const char *accuracy_name(enum accuracy accuracy);

/* One bit an option, in `given`: so that a repeated or contradicting one is found. */
enum option {
    OPTION_DTYPE = 1 << 0,
    OPTION_ACCURACY = 1 << 1,
    OPTION_KERNEL = 1 << 2,
    OPTION_RESULT_DTYPE = 1 << 3,
    OPTION_DEVICE = 1 << 4,
    OPTION_TIMEOUT_MS = 1 << 5,
    OPTION_ID = 1 << 6,
    OPTION_DIAGNOSTICS = 1 << 7,
    OPTION_CONJUGATE = 1 << 8,
    OPTION_SHAPE_A = 1 << 9,
    OPTION_SHAPE_B = 1 << 10,
    OPTION_LAYOUT = 1 << 11,
    OPTIONS_OF_RAW = OPTION_SHAPE_A | OPTION_SHAPE_B | OPTION_LAYOUT, /* of no other body */
};

struct options {
    unsigned given;         /* enum option bits */
    enum dtype dtype;       /* DTYPE_UNKNOWN until said, or settled */
    enum byte_order order;  /* of a raw body; ORDER_LITTLE unless dtype said '>' */
    enum accuracy accuracy; /* ACCURACY_DEFAULT until the server decides */
    char kernel[LIMIT_NAME_BYTES];
    enum dtype result_dtype; /* DTYPE_UNKNOWN until said; request_check() makes it the widest
                                    of dtype's kind: float64, complex128 or int64 */
    enum placement placement;
    int device_index;    /* of "cuda:1"; -1 when any will do */
    uint64_t timeout_ms; /* 0: none given */
    char id[LIMIT_ID_BYTES + 1];
    bool diagnostics;
    bool conjugate;                /* a's elements; without effect on real types */
    struct shape shape_a, shape_b; /* of a raw body, when given */
    uint64_t block;   /* of a raw body: so many elements of a and of b in turn; 0: all of a first */
    bool holds_pairs; /* of a raw body: many pairs, whose lengths come first */
};

/* Takes a row's elements as they arrive: n of a and of b, aligned to their parts' own size, in
 * native byte order; n is not 0, and either operand's bytes are at most LIMIT_PIECE_BYTES. */
struct sink {
    void (*take)(void *context, const void *a, const void *b, uint64_t n);
    void *context;
    uint64_t min_bytes; /* a body that is concatenated and shorter is not handed on */
    /* Where the next elements of b, *ret_room bytes of them, may lie already when they are taken:
     * it saves a copy. NULL, or returns NULL: they lie where they arrived. */
    char *(*place)(void *context, size_t *ret_room);
    /* Asked once, before the first elements and with every option known, if it takes the body.
     * NULL: it does. */
    enum error (*begin)(void *context, bool *ret_takes, struct problem *problem);
};

struct request {
    struct options options;
    const struct sink *sink;  /* borrowed; set before decoder_create(), NULL: there is none */
    const char *content_type; /* borrowed; set before decoder_create(), for it alone; NULL: none */
    bool is_streamed;         /* set by request_stream(): the operands go to the sink */
    bool is_pairs;            /* the "pairs" form: results are a list, one a pair */
    struct tensor_pair *pair; /* [pair_count], request_pairs()'s; exactly one unless is_pairs */
    size_t pair_count;
    uint64_t result_count;       /* set by request_check(), or before by who knows it; 0: not yet */
    uint64_t term_count;         /* products over all results, set by request_check() */
    struct buffer buffer;        /* all operands lie here */
    struct tensor_pair pair_one; /* pair of the common case: no allocation */
};

void request_init(struct request *request, const struct buffer_source *source);
void request_fini(struct request *request);

/* For decoders: the body is one row, and its elements may go to the sink; is_streamed tells if they
 * do. There is a sink, and the element type is known. */
enum error request_stream(struct request *request, struct problem *problem);

/* Makes room for count pairs, zeroed, once. They end with the request, which may not move. */
enum error request_pairs(struct request *request, size_t count, struct problem *problem);

/* As what a JSON body writes an option's value. It cannot say how raw elements lie. */
enum option_kind { OPTION_TEXT, OPTION_INTEGER, OPTION_BOOLEAN, OPTION_RAW };

/* One option, whatever place it is given in. A new one is a row in options.c, with its bit and
 * its field above, which options_equal() compares. */
struct option_row {
    const char *name;
    enum option bit;
    enum option_kind kind;
    enum error (*set)(struct options *options, const char *value);
    const char *words; /* what the value must be */
};

size_t options_rows(const struct option_row **ret);      /* all of them */
const struct option_row *options_find(const char *name); /* NULL: there is none */

/* ERR_OPTION: no `what` ("parameter") is called name; its detail lists those that are. others, such
 * as "a, b", come before the options; NULL: there are none, but shapes are options there. */
enum error options_unknown(const char *what, const char *name, const char *others,
                           struct problem *problem);

/* Sets one option from text, as a query parameter gives it ("dtype", "float32").
 * ERR_OPTION: unknown name, or given before with another value, or given twice in one place
 * (seen holds the bits of this place and is updated). ERR_DTYPE, ERR_VALUE: the value is wrong. */
enum error options_set(struct options *options, unsigned *seen, const char *name, const char *value,
                       struct problem *problem);

/* Once every place has been read, an element type that none of them gave is float64. */
void options_settle_dtype(struct options *options);

/* Reads a percent-encoded query string into options; a=, b= are left to `operand`, which gets the
 * decoded text of each (NULL: they are unknown parameters). query may be NULL. */
typedef enum error (*query_operand)(void *context, const char *name, const char *value,
                                    struct problem *problem);
enum error options_from_query(struct options *options, const char *query, query_operand operand,
                              void *context, struct problem *problem);

/* What request_check() needs no operands for: known as soon as every option is. */
enum error request_check_options(struct request *request, struct problem *problem);

/* Settles defaults, matches types and shapes, numbers the results. Nothing is computable before it.
 * Bounds: result_count <= max_results (ERR_TOO_LARGE). ERR_VALUE: a and b are of different
 * types, or their results cannot be given as result_dtype. */
enum error request_check(struct request *request, uint64_t max_results, struct problem *problem);

#endif
