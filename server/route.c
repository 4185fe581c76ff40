/* route.c - the table of routes (see route.h). Linear scan: some forty rows. */
#include "server/route.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "server/config.h"
#include "server/console.h"
#include "server/contract.h"
#include "server/dot.h"
#include "server/kernels.h"
#include "server/lab_call.h"
#include "server/oip.h"
#include "server/pages.h"
#include "server/scrape.h"

/* A call to the lab; experiments[] of lab_call.c has its row. */
#define LAB(path)                                                                           \
    {                                                                                       \
        path, METHOD_POST, lab_call_begin, lab_call_body, lab_call_finish, lab_call_resume, \
            lab_call_late, offsetof(struct config, lab)                                     \
    }

/* A call about a model, of the version that is named or of the one that there is. */
#define MODEL(call, ...)                                          \
    {"/v2/models/{model}" call, __VA_ARGS__},                     \
    {                                                             \
        "/v2/models/{model}/versions/{version}" call, __VA_ARGS__ \
    }

static const struct route routes[] = {
    {"/v1/dot", METHOD_POST, dot_begin, dot_body, dot_finish, dot_resume, .late = dot_late},
    {"/v1/dot", METHOD_GET, .finish = dot_finish_query, .resume = dot_resume, .late = dot_late},
    {"/v1/kernels", METHOD_GET, .finish = kernels_page},
    LAB("/v1/lab/reduce"),
    LAB("/v1/lab/race"),
    LAB("/v1/lab/shift"),
    LAB("/v1/lab/barrier"),
    LAB("/v1/lab/rounding"),
    LAB("/v1/lab/measure"),
    MODEL("/infer", METHOD_POST, oip_infer_begin, oip_infer_body, oip_infer_finish,
          oip_infer_resume, .late = dot_late),
    {"/v2", METHOD_GET, .finish = oip_server},
    {"/v2/{$}", METHOD_GET, .finish = oip_server},
    {"/v2/health/live", METHOD_GET, .finish = oip_live},
    {"/v2/health/ready", METHOD_GET, .finish = oip_ready},
    {"/v2/models/stats", METHOD_GET, .finish = oip_all_stats},
    MODEL("", METHOD_GET, .finish = oip_metadata),
    MODEL("/ready", METHOD_GET, .finish = oip_model_ready),
    MODEL("/config", METHOD_GET, .finish = oip_config),
    MODEL("/stats", METHOD_GET, .finish = oip_stats),
    {"/v2/repository/index", METHOD_GET | METHOD_POST, .body = oip_index_body, .finish = oip_index},
    {"/livez", METHOD_GET, .finish = page_livez},
    {"/readyz", METHOD_GET, .finish = page_readyz},
    {"/v1/status", METHOD_GET, .finish = page_status},
    {"/v1/devices", METHOD_GET, .finish = page_devices},
    {"/v1/limits", METHOD_GET, .finish = page_limits},
    {"/metrics", METHOD_GET, .finish = page_metrics},
    {"/openapi.yaml", METHOD_GET, .finish = contract_yaml},
    {"/openapi.json", METHOD_GET, .finish = contract_json},
    {"/problems/", METHOD_GET, .finish = page_problem},
    {"/console/", METHOD_GET, .finish = console_asset},
    {"/", METHOD_GET, .finish = page_index},
};

static_assert(offsetof(struct config, lab) > 0, "0 is no switch");

static const struct {
    const char *name;
    enum method method;
} methods[] = {
    {"GET", METHOD_GET},      {"HEAD", METHOD_HEAD},     {"POST", METHOD_POST},
    {"PUT", METHOD_OTHERS},   {"DELETE", METHOD_OTHERS}, {"OPTIONS", METHOD_OTHERS},
    {"PATCH", METHOD_OTHERS}, {"TRACE", METHOD_OTHERS},  {"CONNECT", METHOD_OTHERS},
    {"QUERY", METHOD_OTHERS},
};

enum {
    ROUTE_COUNT = sizeof routes / sizeof *routes,
    METHOD_COUNT = sizeof methods / sizeof *methods
};

enum method method_parse(const char *name)
{
    for (size_t i = 0; i < METHOD_COUNT; i++)
        if (strcmp(methods[i].name, name) == 0)
            return methods[i].method;
    return 0;
}

/* Goes along both: characters that are the same, or a segment for a "{name}". */
static bool matches(const struct route *route, const char *path)
{
    const char *pattern = route->path;
    for (;;) {
        size_t same = 0;
        while (pattern[same] != '\0' && pattern[same] != '{' && pattern[same] == path[same])
            same++;
        pattern += same;
        path += same;
        if (*pattern != '{')
            break;
        size_t segment = strcspn(path, "/");
        if (pattern[1] == '$' ? *path != '\0' : segment == 0)
            return false;
        pattern += strcspn(pattern, "}") + 1;
        path += segment;
    }
    bool is_below = pattern > route->path + 1 && pattern[-1] == '/';
    return *pattern == '\0' && (*path == '\0' || is_below);
}

static bool is_on(const struct route *route, const struct config *config)
{
    return route->setting == 0 ||
           *(const unsigned *)(const void *)((const char *)config + route->setting) != 0;
}

/* HEAD goes wherever GET goes. */
static unsigned methods_of(const struct route *route)
{
    return route->methods | (route->methods & METHOD_GET ? METHOD_HEAD : 0);
}

static void print_methods(unsigned set, char *text, size_t size)
{
    size_t used = 0;
    *text = '\0';
    for (size_t i = 0; i < METHOD_COUNT && used < size; i++)
        if (set & methods[i].method)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "",
                                     methods[i].name);
}

enum error route_find(const struct config *config, const char *path, enum method method,
                      const struct route **ret, char *allow, size_t allow_size,
                      struct problem *problem)
{
    unsigned served = 0;
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        if (!matches(&routes[i], path) || !is_on(&routes[i], config))
            continue;
        if (methods_of(&routes[i]) & method) {
            *ret = &routes[i];
            return ERR_OK;
        }
        served |= methods_of(&routes[i]);
    }
    if (served == 0)
        return problem_set(problem, ERR_NOT_FOUND,
                           "nothing is served at %s; GET / names a call "
                           "that works",
                           path);
    print_methods(served, allow, allow_size);
    return problem_set(problem, ERR_METHOD, "%s takes %s", path, allow);
}

unsigned route_count(void)
{
    return ROUTE_COUNT;
}

unsigned route_index(const char *path)
{
    unsigned index = 0;
    while (index < ROUTE_COUNT && !matches(&routes[index], path))
        index++;
    return index;
}

const char *route_path(unsigned index)
{
    assert(index < ROUTE_COUNT);
    return routes[index].path;
}

bool route_computes_dot(unsigned index)
{
    assert(index < ROUTE_COUNT);
    return routes[index].resume == dot_resume || routes[index].resume == oip_infer_resume;
}

/* "{$}" is no text that it matches itself, so the second spelling of a path is not listed. */
bool route_is_listed(const struct config *config, unsigned index)
{
    assert(index < ROUTE_COUNT);
    const struct route *route = &routes[index];
    return is_on(route, config) && route->finish != console_asset &&
           route_index(route->path) == index;
}
