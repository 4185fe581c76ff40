/* splitter.h - takes the arrays of numbers out of a JSON body while it arrives. Private to proto/.
 *
 * Door: splitter_feed() with pieces cut anywhere, then splitter_finish(). Where the value of an
 * operand (of /v1/dot: `a` or `b` of the object, or of an object inside its `pairs`) begins with
 * '[', the array goes to numbers_feed() and leaves "[K]" behind, K the index of its struct operand.
 * Every other byte is copied to the skeleton, which a JSON parser then judges. If the value is an
 * object, the string that is its `base64` goes to base64_feed() and leaves its index behind, as a
 * string.
 *
 * So an array or such a string that stands in an operand's place in the skeleton is always ours: a
 * client's never gets there. That holds for every skeleton that parses: the splitter follows
 * strings, escapes and nesting exactly up to the first byte that is not JSON, and such a byte stays
 * in the skeleton.
 */
#ifndef PROTO_SPLITTER_H
#define PROTO_SPLITTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base64.h"
#include "proto/numbers.h"
#include "proto/text.h"

/* One array or string that was taken out. */
struct operand {
    struct numbers *numbers; /* owned; NULL when it was read as its final dtype */
    struct tensor tensor;    /* set once numbers_convert() is done; of a string, its offset alone */
    size_t size_bytes;       /* of a string's bytes */
    size_t skeleton_end;     /* the skeleton goes on here after the placeholder, */
    uint64_t body_end;       /* and the body here after what was taken out */
};

enum splitter_expect { EXPECT_KEY, EXPECT_COLON, EXPECT_VALUE, EXPECT_COMMA };

/* The keys that the splitter knows. */
enum splitter_key { KEY_A, KEY_B, KEY_PAIRS, KEY_DTYPE, KEY_BASE64, KEY_OTHER };

/* What a kind of document calls its operands and the list of objects that may hold them. */
struct splitter_form {
    const char *name[KEY_OTHER]; /* by enum splitter_key; NULL: it has no such field */
    bool at_root;                /* operands stand in the document's own object too */
    const char *hint;            /* ends a refusal of what is no such document: "; send ..." */
};

struct splitter {
    const struct splitter_form *form; /* borrowed */
    struct buffer *buffer;            /* borrowed: where the numbers go */
    size_t max_bytes;                 /* of them */
    uint64_t announced;               /* bytes of the body, if its owner says so after init; or 0 */
    enum dtype dtype;                 /* DTYPE_UNKNOWN until the query or the body said it */

    struct text skeleton;
    struct operand *operand; /* [operand_count], owned */
    size_t operand_count, operand_capacity;
    uint64_t body_bytes; /* taken so far */
    int bom_bytes;       /* of a byte order mark, skipped */
    bool has_begun;      /* the '{' was seen */

    int depth;                   /* open containers */
    uint64_t is_object;          /* bit depth: the container at that depth is an object */
    bool is_string, is_escape;   /* inside a string; right after a backslash in it */
    size_t string_start;         /* in the skeleton, past the quote */
    enum splitter_expect expect; /* in the innermost container */
    enum splitter_key key;       /* the last one read, at whatever depth */
    bool in_pairs;               /* the container at depth 2 is the array of `pairs` */
    uint64_t pair_index;         /* in it */
    uint32_t value_count;        /* commas and brackets: bounds what the parser will allocate */

    int object_depth;             /* of the open object that is an operand; 0: there is none */
    enum splitter_key object_key; /* which operand that is */

    struct numbers *numbers; /* the array that is being read, or NULL */
    bool in_base64;          /* inside the string of one */
    struct base64 base64;    /* in_base64 */
    size_t bytes_start;      /* likewise: where in the buffer its bytes begin */
    uint64_t array_start;    /* of array or string, its offset in the body */
};

void splitter_init(struct splitter *splitter, const struct splitter_form *form,
                   struct buffer *buffer, enum dtype dtype, size_t max_bytes);
void splitter_fini(struct splitter *splitter);

enum error splitter_feed(struct splitter *splitter, const char *data, size_t size,
                         struct problem *problem);

/* The body is over: ERR_SYNTAX when it is blank or stops inside an array. */
enum error splitter_finish(struct splitter *splitter, struct problem *problem);

/* Where in the body byte `offset` of the skeleton was. */
uint64_t splitter_body_offset(const struct splitter *splitter, size_t offset);

#endif
