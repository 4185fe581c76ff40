/* json_memory.c - jansson's allocations, watched (see json_memory.h). */
#include "proto/json_memory.h"

#include <jansson.h>
#include <stdlib.h>

static _Thread_local bool has_failed;

static void *watched_malloc(size_t size)
{
    void *block = malloc(size);
    has_failed |= block == NULL;
    return block;
}

/* jansson wants this before its first call, whoever makes that. */
__attribute__((constructor)) static void watch(void)
{
    json_set_alloc_funcs(watched_malloc, free);
}

bool json_memory_failed(void)
{
    bool ret = has_failed;
    has_failed = false;
    return ret;
}
