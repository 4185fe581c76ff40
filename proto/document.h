/* document.h - a JSON text read as a whole by jansson, and in our words when it is none.
 *
 * Door: document_load() for a body, document_finish() for what the splitter leaves of one.
 */
#ifndef PROTO_DOCUMENT_H
#define PROTO_DOCUMENT_H

#include <jansson.h>

#include "proto/error.h"

/* Reads an object or array without repeated keys; flags are jansson's. ERR_SYNTAX, ERR_OPTION (a
 * key stands twice), ERR_VALUE (a number beyond every type, \u0000 in a string), ERR_NOMEM; the
 * problem's offset counts in the text. */
enum error document_load(const char *text, size_t size, size_t flags, json_t **ret,
                         struct problem *problem);

struct splitter;

/* Ends the splitter's body and reads the object that it leaves. As document_load(), and as
 * splitter_finish(); offsets count in the body. */
enum error document_finish(struct splitter *splitter, json_t **ret, struct problem *problem);

/* "an array", "a whole number": for details of problems. */
const char *document_type(json_type type);

#endif
