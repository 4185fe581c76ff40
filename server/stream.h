/* stream.h - one dot product that is reduced while its operands arrive.
 *
 * Door: stream_create() once a decoder has said that a body is streamed; stream_take() is its sink;
 * stream_advance() after each piece of the body; stream_end() after the last. Where the thread
 * computes for itself, elements are added where they arrived, but for slices of a long upload that
 * the CPU's worker takes while it is idle. Otherwise they are collected into slices, each a job
 * that adds to a sum of its own on the device: elements of b, which an upload (upload.h) puts there
 * itself, and those of a where they will not stay or the device is slow to read them. A few slices
 * are on their way at once, and while those are, the body waits. The sums are merged as they come
 * back, on the loop's thread.
 */
#ifndef SERVER_STREAM_H
#define SERVER_STREAM_H

#include <stdint.h>

#include "gpu/gpu.h"

struct exchange;
struct stream;

/* The shortest concatenated body that is worth it: what is shorter has come almost at once. */
enum { STREAM_BYTES_MIN = 256 << 10 };

/* With the exchange's options settled. ERR_NOMEM. */
enum error stream_create(struct stream **ret, struct exchange *exchange, int device);

/* No slice may be with a device. Takes NULL. */
void stream_destroy(struct stream *stream);

/* A sink's take(): the exchange is its context. */
void stream_take(void *exchange, const void *a, const void *b, uint64_t n);

/* Likewise its place(): in the slice in hand. */
char *stream_place(void *exchange, size_t *ret_room);

/* Hands full slices to the device, and pauses the exchange when that has enough of them. */
enum error stream_advance(struct stream *stream);

/* All elements are there: hands over what is left. True: the sum is complete; false: slices are
 * with the device, and exchange->jobs_out counts them. */
enum error stream_end(struct stream *stream, bool *ret_is_complete);

/* A slice is back: merges it, and goes on with a paused exchange. */
void stream_on_slice(struct stream *stream, struct job *job);
struct exchange *stream_exchange(struct job *slice);

/* Slices that no device has begun are not begun any more. Takes NULL. */
void stream_cancel(struct stream *stream);

/* Completes the exchange's job with the sum, as a device would. */
void stream_settle(struct stream *stream, struct job *job);

/* Spent adding on this thread, and waiting for a device in the middle of the body. */
int64_t stream_compute_ns(const struct stream *stream); /* takes NULL */
int64_t stream_paused_ns(const struct stream *stream);  /* takes NULL */

#endif
