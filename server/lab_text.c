/* lab_text.c - the answers of the lab as JSON (see lab_text.h). */
#include "server/lab_text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "gpu/kernels/ladder.h"
#include "proto/shortest.h"

/* ---- JSON ---------------------------------------------------------------------------------- */

/* A comma, unless what follows is the first of its object or array. */
static void separate(struct text *text)
{
    char last = text->size > 0 ? text->data[text->size - 1] : '{';
    if (last != '{' && last != '[')
        text_append(text, ", ", 2);
}

static void key(struct text *text, const char *field)
{
    separate(text);
    text_append(text, "\"", 1);
    text_string(text, field);
    text_append(text, "\": ", 3);
}

static void open_as(struct text *text, const char *field, char bracket)
{
    key(text, field);
    text_append(text, &bracket, 1);
}

static void open_next(struct text *text, char bracket)
{
    separate(text);
    text_append(text, &bracket, 1);
}

static void end(struct text *text, char bracket)
{
    text_append(text, &bracket, 1);
}

static void string_as(struct text *text, const char *field, const char *value)
{
    key(text, field);
    text_json_string(text, value);
}

static void uint_as(struct text *text, const char *field, uint64_t value)
{
    key(text, field);
    text_uint(text, value);
}

static void bool_as(struct text *text, const char *field, bool value)
{
    key(text, field);
    text_string(text, value ? "true" : "false");
}

static void number(struct text *text, double value, enum dtype dtype)
{
    if (!isfinite(value)) {
        text_string(text, isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
        return;
    }
    char *room = text_room(text, SHORTEST_BYTES);
    if (room != NULL)
        text_advance(text, dtype == DTYPE_FLOAT32 ? shortest_float32((float)value, room)
                                                  : shortest_float64(value, room));
}

static void number_as(struct text *text, const char *field, double value, enum dtype dtype)
{
    key(text, field);
    number(text, value, dtype);
}

/* What was worked out in float64, whatever the elements are. */
static void double_as(struct text *text, const char *field, double value)
{
    number_as(text, field, value, DTYPE_FLOAT64);
}

static void bits_as(struct text *text, const char *field, double value, enum dtype dtype)
{
    key(text, field);
    if (dtype == DTYPE_FLOAT32) {
        float narrow = (float)value;
        uint32_t bits;
        memcpy(&bits, &narrow, sizeof bits);
        text_printf(text, "\"0x%08" PRIx32 "\"", bits);
    } else {
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        text_printf(text, "\"0x%016" PRIx64 "\"", bits);
    }
}

static void uints_as(struct text *text, const char *field, const uint32_t *value, size_t count)
{
    open_as(text, field, '[');
    for (size_t i = 0; i < count; i++) {
        separate(text);
        text_uint(text, value[i]);
    }
    end(text, ']');
}

static void numbers_as(struct text *text, const char *field, const double *value, size_t count,
                       enum dtype dtype)
{
    open_as(text, field, '[');
    for (size_t i = 0; i < count; i++) {
        separate(text);
        number(text, value[i], dtype);
    }
    end(text, ']');
}

/* ---- what every answer has ----------------------------------------------------------------- */

static void device_as(struct text *text, const struct lab_device *device)
{
    string_as(text, "device", device->id);
    string_as(text, "device_name", device->name);
    bool_as(text, "is_emulated", device->is_emulated);
}

static void fault_next(struct text *text, const struct lab_fault *fault)
{
    open_next(text, '{');
    string_as(text, "kind", lab_fault_name(fault->kind));
    string_as(text, "text", fault->text);
    uint_as(text, "block", fault->block);
    uints_as(text, "threads", fault->thread, fault->thread_count);
    if (fault->cell >= 0)
        uint_as(text, "cell", (uint64_t)fault->cell);
    end(text, '}');
}

static void faults_as(struct text *text, const struct lab_faults *faults)
{
    open_as(text, "faults", '[');
    for (uint32_t i = 0; i < faults->count; i++)
        fault_next(text, &faults->fault[i]);
    end(text, ']');
    uint_as(text, "faults_total", faults->total);
}

/* ---- reduce -------------------------------------------------------------------------------- */

static void shared_as(struct text *text, const struct lab_step *step, enum dtype dtype)
{
    open_as(text, "shared", '[');
    for (uint32_t i = 0; i < step->cell_count; i++) {
        separate(text);
        if (step->is_written[i])
            number(text, step->shared[i], dtype);
        else
            text_string(text, "null");
    }
    end(text, ']');
}

static void warps_as(struct text *text, uint32_t active)
{
    open_as(text, "active_warps", '[');
    for (uint32_t warp = 0; warp < 32; warp++) {
        if ((active >> warp & 1) == 0)
            continue;
        separate(text);
        text_uint(text, warp);
    }
    end(text, ']');
}

static void accesses_as(struct text *text, const char *field, const struct lab_access *access,
                        size_t count)
{
    open_as(text, field, '[');
    for (size_t i = 0; i < count; i++) {
        open_next(text, '[');
        text_uint(text, access[i].thread);
        text_append(text, ", ", 2);
        text_uint(text, access[i].cell);
        end(text, ']');
    }
    end(text, ']');
}

static void step_next(struct text *text, const struct lab_step *step, enum dtype dtype)
{
    open_next(text, '{');
    uint_as(text, "block", step->block);
    uint_as(text, "step", step->step);
    string_as(text, "what", lab_what_name(step->what));
    shared_as(text, step, dtype);
    uints_as(text, "active", step->active, step->active_count);
    uint_as(text, "warps", step->warps);
    warps_as(text, step->active_warps);
    uint_as(text, "bank_conflicts", step->bank_conflicts);
    accesses_as(text, "reads", step->reads, step->read_count);
    accesses_as(text, "writes", step->writes, step->write_count);
    end(text, '}');
}

static void counts_as(struct text *text, const struct lab_reduce *reduce)
{
    open_as(text, "counts", '{');
    uint_as(text, "steps", reduce->steps);
    uint_as(text, "barriers", reduce->barriers);
    uint_as(text, "atomics", reduce->atomics);
    uint_as(text, "bank_conflicts", reduce->bank_conflicts);
    uint_as(text, "idle_warps", reduce->idle_warps);
    uint_as(text, "active_threads", reduce->active_threads);
    end(text, '}');
}

void lab_text_reduce(struct text *text, const struct lab_device *device,
                     const struct lab_reduce_ask *ask, const struct lab_reduce *reduce)
{
    enum dtype dtype = ask->dtype;
    open_next(text, '{');
    string_as(text, "scheme", ask->scheme->name);
    string_as(text, "kernel", ask->scheme->kernel);
    device_as(text, device);
    string_as(text, "dtype", dtype_name(dtype));
    uint_as(text, "n", ask->n);
    uint_as(text, "block", ask->block);
    uint_as(text, "blocks", reduce->blocks);
    number_as(text, "value", reduce->value, dtype);
    bits_as(text, "bits", reduce->value, dtype);
    double_as(text, "exact", reduce->exact.sum);
    string_as(text, "order", rung_order_name(ladder_find(ask->scheme->kernel)->order));
    counts_as(text, reduce);
    open_as(text, "steps", '[');
    for (size_t i = 0; i < reduce->step_count; i++)
        step_next(text, &reduce->step[i], dtype);
    end(text, ']');
    bool_as(text, "is_cut", reduce->is_cut);
    faults_as(text, &reduce->faults);
    end(text, '}');
}

/* ---- race ---------------------------------------------------------------------------------- */

/* What an addition lost took with it is 1. */
static void counted_as(struct text *text, double value, const struct lab_race_ask *ask)
{
    number_as(text, "value", value, DTYPE_FLOAT64);
    double_as(text, "lost", (double)ask->n - value);
}

void lab_text_race(struct text *text, const struct lab_device *device,
                   const struct lab_race_ask *ask, const struct lab_race *race)
{
    open_next(text, '{');
    string_as(text, "kernel", "race");
    device_as(text, device);
    uint_as(text, "n", ask->n);
    uint_as(text, "right", ask->n);
    open_as(text, "runs", '[');
    for (uint32_t i = 0; i < race->runs; i++) {
        open_next(text, '{');
        counted_as(text, race->value[i], ask);
        end(text, '}');
    }
    end(text, ']');
    open_as(text, "atomic", '{');
    string_as(text, "kernel", "thread-atomic");
    counted_as(text, race->atomic, ask);
    end(text, '}');
    faults_as(text, &race->faults);
    end(text, '}');
}

/* ---- shift --------------------------------------------------------------------------------- */

static void read_next(struct text *text, const struct lab_read *read)
{
    open_next(text, '{');
    uint_as(text, "thread", read->thread);
    uint_as(text, "cell", read->cell);
    number_as(text, "value", read->value, DTYPE_FLOAT64);
    number_as(text, "expected", read->expected, DTYPE_FLOAT64);
    bool_as(text, "raced", read->has_raced);
    end(text, '}');
}

void lab_text_shift(struct text *text, const struct lab_device *device,
                    const struct lab_shift_ask *ask, const struct lab_shift *shift)
{
    open_next(text, '{');
    device_as(text, device);
    uint_as(text, "n", shift->n);
    uint_as(text, "barriers", ask->barriers);
    numbers_as(text, "expected", shift->expected, shift->n, DTYPE_FLOAT64);
    numbers_as(text, "result", shift->result, shift->n, DTYPE_FLOAT64);
    uints_as(text, "wrong", shift->wrong, shift->wrong_count);
    open_as(text, "reads", '[');
    for (uint32_t i = 0; i < shift->read_count; i++)
        read_next(text, &shift->read[i]);
    end(text, ']');
    faults_as(text, &shift->faults);
    end(text, '}');
}

/* ---- barrier ------------------------------------------------------------------------------- */

void lab_text_barrier(struct text *text, const struct lab_device *device,
                      const struct lab_barrier_ask *ask, const struct lab_barrier *barrier)
{
    const struct lab_faults *faults = &barrier->faults;
    open_next(text, '{');
    device_as(text, device);
    uint_as(text, "n", ask->n);
    string_as(text, "where", lab_where_name(ask->where));
    bool_as(text, "stopped", barrier->is_stopped);
    if (barrier->is_stopped)
        string_as(text, "report", faults->count > 0 ? faults->fault[0].text : "");
    else
        number_as(text, "value", barrier->value, DTYPE_FLOAT64);
    uints_as(text, "waiting", barrier->waiting, barrier->waiting_count);
    uints_as(text, "ended", barrier->ended, barrier->ended_count);
    faults_as(text, faults);
    end(text, '}');
}

/* ---- rounding ------------------------------------------------------------------------------ */

static void sum_next(struct text *text, const struct lab_sum *sum, enum dtype dtype)
{
    open_next(text, '{');
    string_as(text, "how", lab_how_name(sum->how));
    if (sum->kernel != NULL)
        string_as(text, "kernel", sum->kernel);
    if (sum->how == LAB_ATOMIC)
        uint_as(text, "order", sum->order);
    number_as(text, "value", sum->value, dtype);
    bits_as(text, "bits", sum->value, dtype);
    key(text, "ulps");
    if (sum->ulps == UINT64_MAX)
        text_string(text, "null");
    else
        text_uint(text, sum->ulps);
    double_as(text, "error", sum->error);
    double_as(text, "bound", sum->bound);
    end(text, '}');
}

void lab_text_rounding(struct text *text, const struct lab_device *device,
                       const struct lab_rounding_ask *ask, const struct lab_rounding *rounding)
{
    enum dtype dtype = ask->dtype;
    open_next(text, '{');
    device_as(text, device);
    string_as(text, "dtype", dtype_name(dtype));
    uint_as(text, "n", ask->n);
    open_as(text, "exact", '{');
    number_as(text, "value", rounding->exact.sum, dtype);
    bits_as(text, "bits", rounding->exact.sum, dtype);
    end(text, '}');
    double_as(text, "sum_abs", rounding->exact.sum_abs);
    double_as(text, "condition", rounding->condition);
    double_as(text, "bound", rounding->bound);
    open_as(text, "sums", '[');
    for (uint32_t i = 0; i < rounding->sum_count; i++)
        sum_next(text, &rounding->sum[i], dtype);
    end(text, ']');
    uint_as(text, "distinct", rounding->distinct);
    end(text, '}');
}

/* ---- measure ------------------------------------------------------------------------------- */

void lab_text_measure(struct text *text, const struct lab_device *device,
                      const struct lab_measure_ask *ask, const struct lab_measure *measure)
{
    open_next(text, '{');
    string_as(text, "kernel", ask->kernel);
    uint_as(text, "n", ask->n);
    string_as(text, "dtype", dtype_name(ask->dtype));
    device_as(text, device);
    uint_as(text, "runs", measure->runs);
    double_as(text, "time_us", measure->time_us);
    double_as(text, "time_us_min", measure->time_us_min);
    double_as(text, "gb_s", measure->gb_s);
    uint_as(text, "max_time_ms", measure->max_time_ms);
    end(text, '}');
}
