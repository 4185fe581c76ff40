/* request.c - one dot request as a value (see request.h). */
#include "proto/request.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/pointer.h"

void request_init(struct request *request, const struct buffer_source *source)
{
    *request = (struct request){
        .options = {.dtype = DTYPE_UNKNOWN, .result_dtype = DTYPE_UNKNOWN, .device_index = -1},
    };
    buffer_init(&request->buffer, source);
}

void request_fini(struct request *request)
{
    if (request->pair != &request->pair_one)
        free(request->pair);
    request->pair = NULL;
    request->pair_count = 0;
    buffer_fini(&request->buffer);
}

enum error request_stream(struct request *request, struct problem *problem)
{
    const struct sink *sink = request->sink;
    assert(!request->is_streamed && request->options.dtype != DTYPE_UNKNOWN);
    bool takes = true;
    enum error err = sink->begin != NULL ? sink->begin(sink->context, &takes, problem) : ERR_OK;
    if (err == ERR_OK)
        request->is_streamed = takes;
    return err;
}

enum error request_pairs(struct request *request, size_t count, struct problem *problem)
{
    assert(request->pair == NULL);
    struct tensor_pair *pair = &request->pair_one;
    if (count > 1)
        pair = calloc(count, sizeof *pair);
    if (pair == NULL)
        return problem_set(problem, ERR_NOMEM, "no memory for %zu pairs", count);
    request->pair = pair;
    request->pair_count = count;
    return ERR_OK;
}

/* count UINT64_MAX: more than can be counted. */
static enum error too_many_results(uint64_t count, uint64_t max_results, struct problem *problem)
{
    char asked[24] = "more than 2^63";
    if (count != UINT64_MAX)
        (void)snprintf(asked, sizeof asked, "%" PRIu64, count);
    problem_set(problem, ERR_TOO_LARGE, "the request asks for %s results, more than %" PRIu64,
                asked, max_results);
    return problem_limit(problem, max_results, "max_results");
}

/* The results of one pair. A dimension of 0 makes none, yet the others still nest in the answer
 * (1,000,000 times [] for a shape of (1000000,0)), so they count against max_results as well. */
static enum error pair_results(const struct shape *result, uint64_t max_results, uint64_t *ret,
                               struct problem *problem)
{
    struct shape lists = *result;
    for (int axis = 0; axis < lists.rank; axis++)
        if (lists.dim[axis] == 0)
            lists.dim[axis] = 1;
    uint64_t count;
    if (shape_count(&lists, &count) != ERR_OK)
        count = UINT64_MAX;
    if (count > max_results)
        return too_many_results(count, max_results, problem);
    enum error err = shape_count(result, ret);
    assert(err == ERR_OK); /* it is lists' count, or 0 */
    return err;
}

/* Adds one pair to the request's counts. */
static enum error pair_check(struct request *request, struct tensor_pair *pair,
                             uint64_t max_results, struct problem *problem)
{
    assert(pair->a.dtype != DTYPE_UNKNOWN && pair->b.dtype != DTYPE_UNKNOWN);
    if (pair->a.dtype != pair->b.dtype)
        return problem_set(problem, ERR_VALUE, "a is %s and b is %s: both must be of one type",
                           dtype_name(pair->a.dtype), dtype_name(pair->b.dtype));
    struct shape result;
    enum error err = shape_dot(&pair->a.shape, &pair->b.shape, &result, problem);
    if (err != ERR_OK)
        return err;
    if (request->is_pairs && result.rank > 0)
        return problem_set(problem, ERR_SHAPE,
                           "the operands of pairs have one dimension each, not %d and %d",
                           pair->a.shape.rank, pair->b.shape.rank);
    uint64_t count, terms;
    err = pair_results(&result, max_results, &count, problem);
    if (err != ERR_OK)
        return err;
    if (count > max_results - request->result_count)
        return too_many_results(request->pair_count, max_results, problem); /* one each */
    request->result_count += count;
    if (__builtin_mul_overflow(count, tensor_length(&pair->a), &terms) ||
        __builtin_add_overflow(request->term_count, terms, &request->term_count))
        return problem_set(problem, ERR_TOO_LARGE, "the request asks for more than 2^64 products");
    pair->result = result;
    return ERR_OK;
}

static enum dtype default_result(enum dtype dtype)
{
    if (dtype_is_integer(dtype))
        return DTYPE_INT64;
    return dtype_is_complex(dtype) ? DTYPE_COMPLEX128 : DTYPE_FLOAT64;
}

/* Exact integers may be wanted as such, or rounded to a float type; nothing else changes kind. */
static bool result_is_possible(enum dtype dtype, enum dtype result)
{
    if (dtype_is_complex(dtype))
        return dtype_is_complex(result);
    return dtype_is_float(result) || (dtype_is_integer(dtype) && result == DTYPE_INT64);
}

enum error request_check_options(struct request *request, struct problem *problem)
{
    struct options *options = &request->options;
    options_settle_dtype(options);
    if (options->result_dtype == DTYPE_UNKNOWN)
        options->result_dtype = default_result(options->dtype);
    if (result_is_possible(options->dtype, options->result_dtype))
        return ERR_OK;
    const char *known = dtype_is_complex(options->dtype) ? "complex64 and complex128"
                                                         : "float16, bfloat16, float32 and float64";
    problem_set(problem, ERR_VALUE, "results of %s are not given as %s, but as %s%s",
                dtype_name(options->dtype), dtype_name(options->result_dtype), known,
                dtype_is_integer(options->dtype) ? ", or exactly as int64" : "");
    return pointer_set(problem, "/result_dtype");
}

enum error request_check(struct request *request, uint64_t max_results, struct problem *problem)
{
    enum error err = request_check_options(request, problem);
    if (err != ERR_OK)
        return err;
    assert(request->is_pairs || request->pair_count == 1);
    request->result_count = 0;
    request->term_count = 0;
    for (size_t i = 0; i < request->pair_count; i++) {
        err = pair_check(request, &request->pair[i], max_results, problem);
        if (err != ERR_OK)
            return request->is_pairs ? pointer_set(problem, "/pairs/%zu", i) : err;
    }
    return ERR_OK;
}
