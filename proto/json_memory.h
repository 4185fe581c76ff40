/* json_memory.h - whether jansson ran out of memory, which it does not always say itself: a key
 * without memory it calls bad syntax, and a value without memory is left out of its array.
 *
 * Door: json_memory_failed() by whoever has just read or made a document.
 */
#ifndef PROTO_JSON_MEMORY_H
#define PROTO_JSON_MEMORY_H

#include <stdbool.h>

/* Since this thread last asked. */
bool json_memory_failed(void);

#endif
