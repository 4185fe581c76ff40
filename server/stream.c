/* stream.c - one dot product that is reduced while its operands arrive (see stream.h). */
#include "server/stream.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/clock.h"
#include "gpu/partial.h"
#include "server/exchange.h"
#include "server/loop.h"

enum {
    SLICE_BYTES = 2 << 20, /* of either operand: copies of that size keep a bus busy */
    SLICES_OUT_MAX = 2,    /* one is computed while the next one waits */
};

struct slice {
    struct job job; /* its device's while the slice is in out */
    struct stream *stream;
    struct slice *next;
    struct block block; /* b from 0, a from SLICE_BYTES unless it stays where it is */
    const char *a;      /* where a begins, once something is used */
    size_t used;        /* bytes of either operand */
    struct partial partial;
};

/* Everything is touched by the loop's thread only. */
struct stream {
    struct exchange *exchange; /* borrowed: it owns the stream */
    int device;
    bool is_inline;                 /* this thread adds; there are no slices */
    struct slice *filling;          /* NULL: the next element begins one */
    struct slice *full, **full_end; /* in order; to be handed over */
    struct slice *out;              /* with the device, in any order */
    unsigned out_count;
    enum error error; /* the first; then nothing is handed over any more */
    int64_t compute_ns, paused_ns, paused_since_ns;
    bool is_rerouted; /* some slice was */
    struct device_answer {
        int device;          /* of a rerouted stream: who stood in */
        uint32_t batch_size; /* 0: none came back */
        struct job_times times;
    } last; /* of the slice that came back last */
    struct partial partial;
};

static struct gpu *gpu_of(const struct stream *stream)
{
    return loop_http(stream->exchange->loop)->gpu;
}

static const struct options *options_of(const struct stream *stream)
{
    return &stream->exchange->dot.request.options;
}

static void partial_begin(const struct stream *stream, struct partial *ret)
{
    const struct options *options = options_of(stream);
    partial_init(ret, options->dtype, dot_accuracy(options), options->conjugate,
                 options->diagnostics);
}

enum error stream_create(struct stream **ret, struct exchange *exchange, int device)
{
    struct stream *stream = malloc(sizeof *stream);
    if (stream == NULL)
        return ERR_NOMEM;
    *stream = (struct stream){.exchange = exchange, .device = device};
    stream->is_inline = gpu_is_inline(gpu_of(stream), device, 1);
    stream->full_end = &stream->full;
    partial_begin(stream, &stream->partial);
    *ret = stream;
    return ERR_OK;
}

/* ---- slices -------------------------------------------------------------------------------- */

static void slice_destroy(struct stream *stream, struct slice *slice)
{
    if (slice == NULL)
        return;
    const struct buffer_source *source = gpu_buffers(gpu_of(stream));
    job_fini(&slice->job);
    source->release(source->context, slice->block);
    free(slice);
}

static enum error slice_create(struct stream *stream, struct slice **ret)
{
    const struct buffer_source *source = gpu_buffers(gpu_of(stream));
    struct slice *slice = malloc(sizeof *slice);
    if (slice == NULL)
        return ERR_NOMEM;
    *slice = (struct slice){.stream = stream};
    enum error error = source->acquire(source->context, 2 * SLICE_BYTES, &slice->block);
    if (error != ERR_OK) {
        free(slice);
        return error;
    }
    *ret = slice;
    return ERR_OK;
}

static void drop_unsent(struct stream *stream)
{
    slice_destroy(stream, stream->filling);
    stream->filling = NULL;
    while (stream->full != NULL) {
        struct slice *next = stream->full->next;
        slice_destroy(stream, stream->full);
        stream->full = next;
    }
    stream->full_end = &stream->full;
}

void stream_destroy(struct stream *stream)
{
    if (stream == NULL)
        return;
    assert(stream->out == NULL);
    drop_unsent(stream);
    free(stream);
}

static void slice_close(struct stream *stream)
{
    struct slice *slice = stream->filling;
    stream->filling = NULL;
    slice->next = NULL;
    *stream->full_end = slice;
    stream->full_end = &slice->next;
}

/* ---- elements ------------------------------------------------------------------------------ */

/* The request holds a as a whole, and the device is not slowed down by where that is. Blocks of a
 * that come in turn with b's lie one where the other did. */
static bool stays(const struct stream *stream, const char *a)
{
    const struct request *request = &stream->exchange->dot.request;
    const char *held = request->buffer.block.data;
    return request->options.block == 0 && a >= held && a < held + request->buffer.used &&
           gpu_is_near(gpu_of(stream), stream->device, a);
}

static void collect_a(const struct stream *stream, struct slice *slice, const char *a, size_t size)
{
    char *room = (char *)slice->block.data + SLICE_BYTES;
    if (slice->used == 0)
        slice->a = stays(stream, a) ? a : room;
    if (slice->a == room)
        memcpy(room + slice->used, a, size);
    else
        assert(a == slice->a + slice->used);
}

/* Takes as many of n elements as the slice in hand has room for. */
static uint64_t collect(struct stream *stream, const char *a, const char *b, uint64_t n)
{
    struct slice *slice = stream->filling;
    const size_t size = dtype_size(options_of(stream)->dtype);
    size_t room = (SLICE_BYTES - slice->used) / size, count = n < room ? n : room;
    char *place = (char *)slice->block.data + slice->used;
    collect_a(stream, slice, a, count * size);
    if (b != place) /* stream_place() */
        memcpy(place, b, count * size);
    slice->used += count * size;
    if (slice->used == SLICE_BYTES)
        slice_close(stream);
    return count;
}

/* False: there is an error. */
static bool is_filling(struct stream *stream)
{
    if (stream->error == ERR_OK && stream->filling == NULL)
        stream->error = slice_create(stream, &stream->filling);
    return stream->error == ERR_OK;
}

static void collect_all(struct stream *stream, const char *a, const char *b, uint64_t n)
{
    const size_t size = dtype_size(options_of(stream)->dtype);
    for (uint64_t done = 0; done < n && is_filling(stream);)
        done += collect(stream, a + done * size, b + done * size, n - done);
}

char *stream_place(void *exchange, size_t *ret_room)
{
    struct stream *stream = ((struct exchange *)exchange)->dot.stream;
    if (stream->is_inline || !is_filling(stream))
        return NULL; /* whoever takes the elements finds the error */
    *ret_room = SLICE_BYTES - stream->filling->used;
    return (char *)stream->filling->block.data + stream->filling->used;
}

void stream_take(void *exchange, const void *a, const void *b, uint64_t n)
{
    struct stream *stream = ((struct exchange *)exchange)->dot.stream;
    if (!stream->is_inline) {
        collect_all(stream, a, b, n);
        return;
    }
    int64_t start_ns = clock_ns();
    partial_add(&stream->partial, a, b, n);
    stream->compute_ns += clock_ns() - start_ns;
}

/* ---- handing over -------------------------------------------------------------------------- */

static enum error slice_plan(struct stream *stream, struct slice *slice)
{
    const enum dtype dtype = options_of(stream)->dtype;
    const struct shape shape = {1, {slice->used / dtype_size(dtype)}};
    const char *a = slice->a, *b = slice->block.data, *base = a < b ? a : b;
    const struct tensor_pair pair = {
        .a = {.dtype = dtype, .shape = shape, .offset = (size_t)(a - base)},
        .b = {.dtype = dtype, .shape = shape, .offset = (size_t)(b - base)},
    };
    job_fini(&slice->job); /* of an attempt that met a full queue */
    slice->job = (struct job){0};
    enum error error = job_plan(&slice->job, &pair, 1);
    if (error != ERR_OK)
        return error;
    dot_fill_job(stream->exchange, &slice->job);
    slice->job.base = base; /* of the pool, whose memory is one region */
    slice->job.bytes = 2 * slice->used;
    slice->job.partial = &slice->partial;
    slice->job.port = loop_slice_port(stream->exchange->loop);
    partial_begin(stream, &slice->partial);
    return ERR_OK;
}

static enum error slice_submit(struct stream *stream, struct slice *slice)
{
    enum error error = slice_plan(stream, slice);
    if (error == ERR_OK)
        error = gpu_submit(gpu_of(stream), stream->device, &slice->job);
    if (error != ERR_OK)
        return error;
    stream->full = slice->next;
    if (stream->full == NULL)
        stream->full_end = &stream->full;
    slice->next = stream->out;
    stream->out = slice;
    stream->out_count++;
    stream->exchange->jobs_out++;
    return ERR_OK;
}

/* Hands over full slices in order, up to out_max at once. A full queue is no error while a slice is
 * on its way: with its return there is another try. */
static void submit_full(struct stream *stream, unsigned out_max)
{
    while (stream->error == ERR_OK && stream->full != NULL && stream->out_count < out_max) {
        enum error error = slice_submit(stream, stream->full);
        if (error == ERR_BUSY && stream->out_count > 0)
            return;
        stream->error = error;
    }
    if (stream->error == ERR_OK)
        return;
    drop_unsent(stream);
    stream_cancel(stream);
}

enum error stream_advance(struct stream *stream)
{
    if (stream->exchange->is_paused)
        return ERR_OK; /* the library had read a few more chunks; a slice's return sees to them */
    submit_full(stream, SLICES_OUT_MAX);
    if (stream->error != ERR_OK || stream->full == NULL)
        return stream->error;
    stream->paused_since_ns = clock_ns();
    exchange_pause(stream->exchange);
    dot_set_deadline(stream->exchange);
    return ERR_OK;
}

enum error stream_end(struct stream *stream, bool *ret_is_complete)
{
    if (stream->filling != NULL && stream->filling->used > 0)
        slice_close(stream);
    submit_full(stream, UINT32_MAX);
    *ret_is_complete = stream->out_count == 0;
    return stream->error;
}

/* ---- coming back --------------------------------------------------------------------------- */

static struct slice *slice_of(struct job *job)
{
    return (struct slice *)((char *)job - offsetof(struct slice, job));
}

struct exchange *stream_exchange(struct job *job)
{
    return slice_of(job)->stream->exchange;
}

/* A few at the most. */
static void unlink_out(struct stream *stream, struct slice *slice)
{
    struct slice **link = &stream->out;
    while (*link != slice)
        link = &(*link)->next;
    *link = slice->next;
    stream->out_count--;
}

static void unpause(struct stream *stream)
{
    stream->paused_ns += clock_ns() - stream->paused_since_ns;
    exchange_unpause(stream->exchange);
    dot_set_deadline(stream->exchange);
}

/* What the return of a slice allows: more slices, and more of a paused body. */
static void go_on(struct stream *stream)
{
    struct exchange *exchange = stream->exchange;
    bool is_ending = exchange->state == EXCHANGE_WORK;
    if (!is_ending && !exchange->is_paused)
        return; /* the next piece of the body finds out */
    submit_full(stream, is_ending ? UINT32_MAX : SLICES_OUT_MAX);
    if (is_ending)
        return;
    if (stream->error != ERR_OK) {
        (void)dot_refuse(exchange, stream->error, &exchange->problem);
        exchange_refuse(exchange);
    } else if (stream->full == NULL) {
        unpause(stream);
    }
}

void stream_on_slice(struct stream *stream, struct job *job)
{
    struct slice *slice = slice_of(job);
    unlink_out(stream, slice);
    if (job->error == ERR_OK)
        partial_merge(&stream->partial, &slice->partial);
    else if (stream->error == ERR_OK)
        stream->error = job->error;
    if (job->is_rerouted || !stream->is_rerouted)
        stream->last.device = job->device;
    stream->is_rerouted |= job->is_rerouted;
    stream->last.batch_size = job->batch_size;
    stream->last.times = job->times;
    slice_destroy(stream, slice);
    go_on(stream);
}

void stream_cancel(struct stream *stream)
{
    for (struct slice *slice = stream != NULL ? stream->out : NULL; slice; slice = slice->next)
        job_cancel(&slice->job);
}

static int64_t most(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

void stream_settle(struct stream *stream, struct job *job)
{
    if (stream->is_inline) {
        gpu_settle(gpu_of(stream), job, &stream->partial);
        return;
    }
    job->error = stream->error;
    job->device = stream->device;
    job->is_rerouted = stream->is_rerouted;
    job->batch_size = 1;
    if (stream->last.batch_size > 0) {
        job->device = stream->last.device;
        job->batch_size = stream->last.batch_size;
        job->times = stream->last.times;
    }
    const int64_t decoded_ns = stream->exchange->dot.decoded_ns;
    if (job->times.started_ns < decoded_ns) /* what it did while the body came is of no interest */
        job->times = (struct job_times){
            .started_ns = decoded_ns,
            .compute_ns = most(job->times.finished_ns - decoded_ns, 0),
            .finished_ns = most(job->times.finished_ns, decoded_ns),
        };
    if (job->error == ERR_OK)
        partial_settle(&stream->partial, job->result_dtype, job->value);
}

int64_t stream_compute_ns(const struct stream *stream)
{
    return stream != NULL ? stream->compute_ns : 0;
}

int64_t stream_paused_ns(const struct stream *stream)
{
    return stream != NULL ? stream->paused_ns : 0;
}
