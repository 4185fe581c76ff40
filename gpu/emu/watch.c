/* watch.c - what the emulation does at a watched access: recording, checking (see trace.h). */
#include "gpu/emu/emu.h"

#include <stdlib.h>

bool emu_is_watching;

bool trace_create(struct emu_trace **ret, size_t limit, uint32_t fault_limit)
{
    struct emu_trace *trace = calloc(1, sizeof *trace);
    if (trace == NULL)
        return false;
    trace->limit = limit;
    trace->fault_limit = fault_limit;
    *ret = trace;
    return true;
}

void trace_destroy(struct emu_trace *trace)
{
    free(trace);
}

void emu_before(const void *address, size_t size, enum emu_access access)
{
    (void)address, (void)size, (void)access;
}

void emu_after(const void *address, enum emu_access access, double value)
{
    (void)address, (void)access, (void)value;
}

void emu_name(const char *name, const void *data, uint32_t count, uint32_t size, bool is_shared)
{
    (void)name, (void)data, (void)count, (void)size, (void)is_shared;
}
