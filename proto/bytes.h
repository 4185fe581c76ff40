/* bytes.h - moving raw elements: past the cache, and from the other byte order. */
#ifndef PROTO_BYTES_H
#define PROTO_BYTES_H

#include <stdbool.h>
#include <stddef.h>

/* As memcpy(), for what leaves the cache before it is read. Ordinary stores would first read the
 * lines that they are about to overwrite, and push out what is of use: measured 19 to 31 ms against
 * 11 to 18 for 256 MiB. Readers in other threads are ordered by a fence. */
void copy_past_cache(char *to, const char *from, size_t size);

/* Puts what came at data to its place, if it was not received right there; past the cache where it
 * is_large. */
void bytes_place(char *place, const char *data, size_t size, bool is_large);

/* Turns the bytes of each number on its own: the two parts of a complex element keep their places.
 * size is a multiple of number_size, which is 1, 2, 4 or 8. */
void swap_numbers(char *data, size_t size, size_t number_size);

#endif
