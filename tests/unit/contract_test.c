/* contract_test.c - the contract and the table of routes tell of the same calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "server/config.h"
#include "server/contract.h"
#include "server/route.h"

static const struct config everything = {.lab = 1, .console = 1};

static json_t *contract_load(void)
{
    size_t size;
    json_error_t error;
    const char *text = contract_json_text(&size);
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL)
        fail_msg("openapi.json: %s at %d", error.text, error.position);
    return root;
}

/* The path with a segment "x" for each of its parameters. */
static void path_fill(const char *path, char *ret, size_t size)
{
    size_t used = 0;
    while (*path != '\0' && used + 1 < size) {
        ret[used++] = *path == '{' ? 'x' : *path;
        path += *path == '{' ? strcspn(path, "}") + 1 : 1;
    }
    ret[used] = '\0';
}

static void check_methods(const char *path, const json_t *operations)
{
    static const struct {
        const char *name, *operation;
    } methods[] = {{"GET", "get"},       {"POST", "post"},   {"PUT", "put"},
                   {"DELETE", "delete"}, {"PATCH", "patch"}, {"OPTIONS", "options"}};
    char filled[128];
    path_fill(path, filled, sizeof filled);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        const struct route *route;
        struct problem problem;
        char allow[64];
        bool is_served = route_find(&everything, filled, method_parse(methods[i].name), &route,
                                    allow, sizeof allow, &problem) == ERR_OK;
        bool is_told = json_object_get(operations, methods[i].operation) != NULL;
        if (is_served != is_told)
            fail_msg("%s %s: served %d, in the contract %d", methods[i].name, path, is_served,
                     is_told);
    }
}

static void every_call_of_the_contract_is_served_under_its_methods_alone(void **state)
{
    (void)state;
    json_t *root = contract_load(), *operations;
    const char *path;
    json_object_foreach(json_object_get(root, "paths"), path, operations)
    {
        check_methods(path, operations);
    }
    json_decref(root);
}

/* A row stands for its path; what is below a path that ends with '/' counts for that. */
static bool is_told(const json_t *paths, const char *row)
{
    const char *path;
    json_t *operations;
    json_object_foreach((json_t *)paths, path, operations)
    {
        char filled[128];
        path_fill(path, filled, sizeof filled);
        if (strcmp(route_path(route_index(filled)), row) == 0)
            return true;
    }
    return false;
}

static void every_route_is_in_the_contract(void **state)
{
    (void)state;
    json_t *root = contract_load();
    for (unsigned i = 0; i < route_count(); i++)
        if (!is_told(json_object_get(root, "paths"), route_path(i)))
            fail_msg("%s is not in the contract", route_path(i));
    json_decref(root);
}

static void the_contract_has_the_version_of_the_program(void **state)
{
    (void)state;
    json_t *root = contract_load();
    const json_t *info = json_object_get(root, "info");
    assert_string_equal(json_string_value(json_object_get(info, "version")), DOTD_VERSION);
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_of_the_contract_is_served_under_its_methods_alone),
        cmocka_unit_test(every_route_is_in_the_contract),
        cmocka_unit_test(the_contract_has_the_version_of_the_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
