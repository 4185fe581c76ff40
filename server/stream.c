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
    SLICE_BYTES = 2 << 20,  /* of either operand: copies of that size keep a bus busy */
    HELPED_BYTES = 1 << 20, /* likewise, for the CPU's worker: a quarter of a millisecond */
    SLICES_OUT_MAX = 2,     /* one is computed while the next one waits */
    HELPED_CORES = 4,       /* with fewer, the client and this thread leave none idle */
};

struct slice {
    struct job job; /* its device's while the slice is in out */
    struct stream *stream;
    struct slice *next;
    struct block block; /* b, and behind it room for a, which may stay where it is */
    const char *a;      /* where a begins, once something is used */
    size_t used;        /* bytes of either operand */
    struct partial partial;
};

/* Everything is touched by the loop's thread only. */
struct stream {
    struct exchange *exchange; /* borrowed: it owns the stream */
    int device;
    bool is_inline;                 /* this thread adds */
    bool may_be_helped;             /* of which the CPU's worker may take slices */
    size_t slice_bytes;             /* of either operand in a full slice */
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
    stream->is_inline = gpu_is_inline(gpu_of(stream), device, options_of(stream)->dtype, 1);
    stream->may_be_helped = stream->is_inline && options_of(stream)->block == 0 &&
                            !exchange->head.is_chunked &&
                            gpu_device_info(gpu_of(stream), device).multiprocessors >= HELPED_CORES;
    stream->slice_bytes = stream->is_inline ? HELPED_BYTES : SLICE_BYTES;
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
    enum error error = source->acquire(source->context, 2 * stream->slice_bytes, &slice->block);
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
    char *room = (char *)slice->block.data + stream->slice_bytes;
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
    size_t room = (stream->slice_bytes - slice->used) / size, count = n < room ? n : room;
    char *place = (char *)slice->block.data + slice->used;
    collect_a(stream, slice, a, count * size);
    if (b != place) /* stream_place() */
        memcpy(place, b, count * size);
    slice->used += count * size;
    if (slice->used == stream->slice_bytes)
        slice_close(stream);
    return count;
}

/* Whether there is a slice in hand. Where the thread adds, only stream_place() begins one. */
static bool is_filling(struct stream *stream)
{
    if (stream->filling == NULL && !stream->is_inline && stream->error == ERR_OK)
        stream->error = slice_create(stream, &stream->filling);
    return stream->filling != NULL;
}

/* Elements that a slice took. */
static uint64_t collect_all(struct stream *stream, const char *a, const char *b, uint64_t n)
{
    const size_t size = dtype_size(options_of(stream)->dtype);
    uint64_t done = 0;
    while (done < n && is_filling(stream))
        done += collect(stream, a + done * size, b + done * size, n - done);
    return done;
}

static void add_here(struct stream *stream, const char *a, const char *b, uint64_t n)
{
    int64_t start_ns = clock_ns();
    partial_add(&stream->partial, a, b, n);
    stream->compute_ns += clock_ns() - start_ns;
}

void stream_take(void *exchange, const void *a, const void *b, uint64_t n)
{
    struct stream *stream = ((struct exchange *)exchange)->dot.stream;
    const size_t size = dtype_size(options_of(stream)->dtype);
    const uint64_t done = collect_all(stream, a, b, n);
    if (stream->is_inline && done < n)
        add_here(stream, (const char *)a + done * size, (const char *)b + done * size, n - done);
}

/* Receiving takes about as long as adding: while the CPU's worker has time, it adds every other
 * slice. Not the last one, for which the answer would wait. */
static bool is_helped(const struct stream *stream)
{
    const struct exchange *exchange = stream->exchange;
    return stream->may_be_helped &&
           exchange->head.content_length - exchange->body_bytes > 2 * stream->slice_bytes &&
           gpu_load_jobs(gpu_of(stream), stream->device) < SLICES_OUT_MAX;
}

char *stream_place(void *exchange, size_t *ret_room)
{
    struct stream *stream = ((struct exchange *)exchange)->dot.stream;
    if (stream->is_inline && stream->filling == NULL && is_helped(stream))
        (void)slice_create(stream, &stream->filling); /* if it cannot be, the thread adds */
    if (!is_filling(stream))
        return NULL; /* whoever takes the elements finds the error */
    *ret_room = stream->slice_bytes - stream->filling->used;
    return (char *)stream->filling->block.data + stream->filling->used;
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

static void unlink_full(struct stream *stream)
{
    stream->full = stream->full->next;
    if (stream->full == NULL)
        stream->full_end = &stream->full;
}

static enum error slice_submit(struct stream *stream, struct slice *slice)
{
    enum error error = slice_plan(stream, slice);
    if (error == ERR_OK)
        error = gpu_submit(gpu_of(stream), stream->device, &slice->job);
    if (error != ERR_OK)
        return error;
    unlink_full(stream);
    slice->next = stream->out;
    stream->out = slice;
    stream->out_count++;
    stream->exchange->jobs_out++;
    return ERR_OK;
}

/* The worker that was to help takes no more work. */
static void take_back(struct stream *stream, struct slice *slice)
{
    const uint64_t n = slice->used / dtype_size(options_of(stream)->dtype);
    unlink_full(stream);
    add_here(stream, slice->a, slice->block.data, n);
    slice_destroy(stream, slice);
}

/* Hands over full slices in order, up to out_max at once. A full queue is no error while a slice is
 * on its way: with its return there is another try. */
static void submit_full(struct stream *stream, unsigned out_max)
{
    while (stream->error == ERR_OK && stream->full != NULL && stream->out_count < out_max) {
        enum error error = slice_submit(stream, stream->full);
        if (error != ERR_OK && stream->is_inline)
            take_back(stream, stream->full);
        else if (error == ERR_BUSY && stream->out_count > 0)
            return;
        else
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
        job->error = stream->error;
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
