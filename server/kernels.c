/* kernels.c - GET /v1/kernels (see kernels.h). */
#include "server/kernels.h"

#include <inttypes.h>
#include <jansson.h>
#include <microhttpd.h>
#include <string.h>

#include "gpu/kernels/ladder.h"
#include "proto/pointer.h"
#include "server/answer.h"
#include "server/exchange.h"

/* What is asked for; block 0: each rung's own choice. */
struct ask {
    uint64_t n, block;
    enum dtype dtype;
    struct problem *problem; /* ERR_OK until a parameter is wrong */
};

static bool number_read(const char *text, uint64_t max, uint64_t *ret)
{
    uint64_t value = 0;
    if (text == NULL || *text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return false;
        value = 10 * value + (uint64_t)(*text - '0');
        if (value > max)
            return false;
    }
    *ret = value;
    return value > 0;
}

static void refuse_number(struct ask *ask, const char *name, uint64_t max, const char *text)
{
    (void)problem_set(ask->problem, ERR_VALUE,
                      "%s must be a whole number from 1 to %" PRIu64 ", not \"%.32s\"", name, max,
                      text != NULL ? text : "");
    (void)pointer_key(ask->problem, "", name);
}

static void read_dtype(struct ask *ask, const char *text)
{
    enum byte_order order;
    if (text != NULL && dtype_parse(text, &ask->dtype, &order) == ERR_OK &&
        (ask->dtype == DTYPE_FLOAT32 || ask->dtype == DTYPE_FLOAT64))
        return;
    (void)problem_set(ask->problem, ERR_DTYPE, "rungs take float32 and float64");
    (void)pointer_set(ask->problem, "/dtype");
}

static enum MHD_Result read_parameter(void *closure, enum MHD_ValueKind kind, const char *name,
                                      const char *value)
{
    struct ask *ask = closure;
    (void)kind;
    if (strcmp(name, "n") == 0) {
        if (!number_read(value, LIMIT_LAB_DOT, &ask->n))
            refuse_number(ask, name, LIMIT_LAB_DOT, value);
    } else if (strcmp(name, "block") == 0) {
        if (!number_read(value, LIMIT_LAB_BLOCK, &ask->block))
            refuse_number(ask, name, LIMIT_LAB_BLOCK, value);
    } else if (strcmp(name, "dtype") == 0) {
        read_dtype(ask, value);
    } else {
        (void)problem_set(ask->problem, ERR_OPTION,
                          "unknown parameter \"%.64s\"; known are n, block, dtype", name);
    }
    return ask->problem->error == ERR_OK ? MHD_YES : MHD_NO;
}

/* null when the rung does not take that n, or that block. */
static json_t *describe_takes(const struct rung *rung, const struct ask *ask)
{
    struct problem why;
    struct rung_takes takes;
    uint32_t threads = rung->chooses_block ? 0 : (uint32_t)ask->block;
    if (rung_check(rung, ask->dtype, ask->n, threads, &why) != ERR_OK)
        return json_null();
    rung_takes(rung, NULL, ask->dtype, ask->n, threads, &takes);
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "launches", (json_int_t)takes.launches,
                     "blocks", (json_int_t)takes.blocks, "threads", (json_int_t)takes.threads,
                     "steps", (json_int_t)takes.steps, "barriers", (json_int_t)takes.barriers,
                     "atomics", (json_int_t)takes.atomics);
}

static json_t *describe_rung(const struct rung *rung, const struct ask *ask)
{
    json_t *max_n = rung->max_n > 0 ? json_integer(rung->max_n) : json_null();
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:[s, s], s:o, s:s, s:b, s:o}", "name", rung->name,
                     "idea", rung->idea, "point", rung->point, "source", rung->source, "arithmetic",
                     rung->arithmetic, "dtypes", dtype_name(DTYPE_FLOAT32),
                     dtype_name(DTYPE_FLOAT64), "max_n", max_n, "order",
                     rung_order_name(rung->order), "lab_only", rung->is_lab_only, "takes",
                     describe_takes(rung, ask));
}

enum error kernels_page(struct exchange *exchange, struct problem *problem)
{
    struct ask ask = {.n = 1024, .dtype = DTYPE_FLOAT32, .problem = problem};
    (void)MHD_get_connection_values(exchange->mhd, MHD_GET_ARGUMENT_KIND, read_parameter, &ask);
    if (problem->error != ERR_OK)
        return problem->error;
    size_t count;
    const struct rung *rungs = ladder_rows(&count);
    json_t *kernels = json_array();
    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(kernels, describe_rung(&rungs[i], &ask));
    json_t *block = ask.block > 0 ? json_integer((json_int_t)ask.block) : json_null();
    return answer_send_json(exchange, 200,
                            json_pack("{s:I, s:o, s:s, s:o}", "n", (json_int_t)ask.n, "block",
                                      block, "dtype", dtype_name(ask.dtype), "kernels", kernels));
}
