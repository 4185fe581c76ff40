/* oip.c - what the Open Inference Protocol asks besides inference (see oip.h). */
#include "server/oip.h"

#include <jansson.h>
#include <string.h>

#include "server/admit.h"
#include "server/answer.h"
#include "server/exchange.h"
#include "server/loop.h"
#include "server/oip_metrics.h"
#include "server/oip_path.h"

bool oip_is_asked(const struct exchange *exchange)
{
    const char *path = exchange->target;
    return strncmp(path, "/v2", 3) == 0 && (path[3] == '\0' || path[3] == '/');
}

static struct http *http_of(const struct exchange *exchange)
{
    return loop_http(exchange->loop);
}

static bool is_ready(const struct exchange *exchange)
{
    return atomic_load(&http_of(exchange)->is_ready) && !exchange_is_draining(exchange);
}

/* ---- the server ---------------------------------------------------------------------------- */

/* What is beyond the protocol: extensions as its other servers name them. */
enum error oip_server(struct exchange *exchange, struct problem *problem)
{
    (void)problem;
    return answer_send_json(exchange, 200,
                            json_pack("{s:s, s:s, s:[s, s, s, s]}", "name", "dotd", "version",
                                      DOTD_VERSION, "extensions", "binary_tensor_data",
                                      "parameters", "model_configuration", "statistics"));
}

enum error oip_live(struct exchange *exchange, struct problem *problem)
{
    (void)problem;
    return answer_send_json(exchange, 200, json_pack("{s:b}", "live", 1));
}

enum error oip_ready(struct exchange *exchange, struct problem *problem)
{
    (void)problem;
    bool ready = is_ready(exchange);
    return answer_send_json(exchange, ready ? 200 : 503, json_pack("{s:b}", "ready", ready));
}

static json_t *describe_state(const struct oip_model *model, bool ready)
{
    return json_pack("{s:s, s:s, s:s}", "name", model->name, "version", OIP_VERSION, "state",
                     ready ? "READY" : "UNAVAILABLE");
}

enum error oip_index(struct exchange *exchange, struct problem *problem)
{
    (void)problem;
    json_t *list = json_array();
    for (unsigned i = 0; i < OIP_MODELS; i++)
        (void)json_array_append_new(list, describe_state(oip_model(i), is_ready(exchange)));
    return answer_send_json(exchange, 200, list);
}

/* What may be asked is {"ready":true}; the answer is the same. */
enum error oip_index_body(struct exchange *exchange, const char *data, size_t size,
                          struct problem *problem)
{
    (void)data, (void)size;
    return admit_size(exchange, LIMIT_INDEX_BODY_BYTES, NULL, problem);
}

/* ---- a model ------------------------------------------------------------------------------- */

static enum error no_version(const char *version, size_t size, struct problem *problem)
{
    return problem_set(problem, ERR_NOT_FOUND,
                       "there is no version \"%.*s\"; models have version " OIP_VERSION,
                       size < 64 ? (int)size : 64, version);
}

enum error oip_path_model(const struct exchange *exchange, const struct oip_model **ret,
                          struct problem *problem)
{
    static const char models[] = "/v2/models/", versions[] = "/versions/";
    const char *name = exchange->target + sizeof models - 1;
    size_t size = strcspn(name, "/");
    const struct oip_model *model = oip_model_find(name, size);
    if (model == NULL)
        return problem_set(
            problem, ERR_NOT_FOUND,
            "there is no model \"%.*s\"; there are dot, dot_fp64, dot_fp16, dot_bf16 "
            "and dot_int8",
            size < 64 ? (int)size : 64, name);
    const char *rest = name + size;
    if (strncmp(rest, versions, sizeof versions - 1) == 0) {
        const char *version = rest + sizeof versions - 1;
        size = strcspn(version, "/");
        if (size != strlen(OIP_VERSION) || memcmp(version, OIP_VERSION, size) != 0)
            return no_version(version, size, problem);
    }
    *ret = model;
    return ERR_OK;
}

static json_t *describe_tensor(const char *name, enum dtype dtype, int last)
{
    return json_pack("{s:s, s:s, s:[i, i]}", "name", name, "datatype", dtype_oip(dtype), "shape",
                     -1, last);
}

enum error oip_metadata(struct exchange *exchange, struct problem *problem)
{
    const struct oip_model *model = NULL;
    enum error error = oip_path_model(exchange, &model, problem);
    if (error != ERR_OK)
        return error;
    return answer_send_json(exchange, 200,
                            json_pack("{s:s, s:[s], s:s, s:[o, o], s:[o]}", "name", model->name,
                                      "versions", OIP_VERSION, "platform", "dotd_dot", "inputs",
                                      describe_tensor("a", model->dtype, -1),
                                      describe_tensor("b", model->dtype, -1), "outputs",
                                      describe_tensor("result", model->result_dtype, 1)));
}

enum error oip_model_ready(struct exchange *exchange, struct problem *problem)
{
    const struct oip_model *model = NULL;
    enum error error = oip_path_model(exchange, &model, problem);
    if (error != ERR_OK)
        return error;
    bool ready = is_ready(exchange);
    return answer_send_json(exchange, ready ? 200 : 503,
                            json_pack("{s:s, s:b}", "name", model->name, "ready", ready));
}

/* Without the dimension of batches, which max_batch_size tells of. */
static json_t *configure_tensor(const char *name, enum dtype dtype, int last)
{
    return json_pack("{s:s, s:o, s:[i]}", "name", name, "data_type",
                     json_sprintf("TYPE_%s", dtype_oip(dtype)), "dims", last);
}

static json_t *configure_instances(const struct oip_model *model, struct gpu *gpu)
{
    json_t *list = json_array();
    for (int i = 0; i < gpu_device_count(gpu); i++) {
        struct device_info info = gpu_device_info(gpu, i);
        json_t *instance =
            json_pack("{s:o, s:s, s:i}", "name", json_sprintf("%s_%d", model->name, i), "kind",
                      info.is_cuda ? "KIND_GPU" : "KIND_CPU", "count", 1);
        if (instance != NULL && info.is_cuda) /* device 0 is the CPU */
            (void)json_object_set_new(instance, "gpus", json_pack("[i]", i - 1));
        (void)json_array_append_new(list, instance);
    }
    return list;
}

/* max_batch_size is an int32 where it is read. */
static json_int_t max_batch_size(const struct exchange *exchange)
{
    uint64_t max_results = http_of(exchange)->config->max_results;
    return max_results < INT32_MAX ? (json_int_t)max_results : INT32_MAX;
}

enum error oip_config(struct exchange *exchange, struct problem *problem)
{
    const struct oip_model *model = NULL;
    enum error error = oip_path_model(exchange, &model, problem);
    if (error != ERR_OK)
        return error;
    json_t *document =
        json_pack("{s:s, s:s, s:s, s:{s:{s:i}}, s:I, s:[o, o], s:[o], s:o, s:{s:i}, s:{s:b}}",
                  "name", model->name, "platform", "dotd_dot", "backend", "dotd", "version_policy",
                  "latest", "num_versions", 1, "max_batch_size", max_batch_size(exchange), "input",
                  configure_tensor("a", model->dtype, -1), configure_tensor("b", model->dtype, -1),
                  "output", configure_tensor("result", model->result_dtype, 1), "instance_group",
                  configure_instances(model, http_of(exchange)->gpu), "dynamic_batching",
                  "max_queue_delay_microseconds", 0, "model_transaction_policy", "decoupled", 0);
    return answer_send_json(exchange, 200, document);
}

/* ---- statistics ---------------------------------------------------------------------------- */

static json_t *describe_time(uint64_t count, uint64_t ns)
{
    return json_pack("{s:I, s:I}", "count", (json_int_t)count, "ns", (json_int_t)ns);
}

static json_t *describe_stats(const struct http *http, unsigned index)
{
    struct oip_tally tally = {.executions = 0};
    for (unsigned i = 0; i < http->loop_count; i++)
        oip_metrics_collect(metrics_oip(loop_metrics(http->loop[i])), index, &tally);
    json_t *times = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "success",
                              describe_time(tally.requests, tally.total_ns), "fail",
                              describe_time(tally.failures, 0), "queue",
                              describe_time(tally.requests, tally.queue_ns), "compute_input",
                              describe_time(tally.requests, tally.input_ns), "compute_infer",
                              describe_time(tally.requests, tally.compute_ns), "compute_output",
                              describe_time(tally.requests, tally.output_ns), "cache_hit",
                              describe_time(0, 0), "cache_miss", describe_time(0, 0));
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:o, s:{}, s:[], s:[]}", "name",
                     oip_model(index)->name, "version", OIP_VERSION, "last_inference",
                     (json_int_t)tally.last_unix_ms, "inference_count", (json_int_t)tally.results,
                     "execution_count", (json_int_t)tally.executions, "inference_stats", times,
                     "response_stats", "batch_stats", "memory_usage");
}

enum error oip_stats(struct exchange *exchange, struct problem *problem)
{
    const struct oip_model *model = NULL;
    enum error error = oip_path_model(exchange, &model, problem);
    if (error != ERR_OK)
        return error;
    return answer_send_json(exchange, 200,
                            json_pack("{s:[o]}", "model_stats",
                                      describe_stats(http_of(exchange), oip_model_index(model))));
}

enum error oip_all_stats(struct exchange *exchange, struct problem *problem)
{
    (void)problem;
    json_t *list = json_array();
    for (unsigned i = 0; i < OIP_MODELS; i++)
        (void)json_array_append_new(list, describe_stats(http_of(exchange), i));
    return answer_send_json(exchange, 200, json_pack("{s:o}", "model_stats", list));
}
