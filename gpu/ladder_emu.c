/* ladder_emu.c - the emulation as a machine of the ladder (see ladder_backend.h). */
#include <assert.h>
#include <stdlib.h>

#include "gpu/clock.h"
#include "gpu/ladder_backend.h"

struct ladder_device {
    void *a, *b; /* a measurement's operands */
};

static enum error emu_open(struct ladder_device **ret, int index, struct rung_machine *ret_machine,
                           struct problem *problem)
{
    (void)index;
    struct ladder_device *device = calloc(1, sizeof *device);
    if (device == NULL)
        return problem_set(problem, ERR_NOMEM, "no memory for the emulated machine");
    const int status = emu_machine(ret_machine);
    assert(status == 0); /* it has what the kernels ask for */
    *ret = device;
    return ERR_OK;
}

static void emu_close(struct ladder_device *device)
{
    free(device);
}

/* --- one sum --- */

static void run_rung(const struct rung_machine *machine, const struct ladder_ask *ask,
                     const void *a, const void *b, void *result)
{
    _Alignas(16) unsigned char scratch[RUNG_SCRATCH_BYTES];
    const struct rung_call call = {
        .machine = machine,
        .dtype = ask->dtype,
        .a = a,
        .b = b,
        .n = ask->n,
        .threads = ask->threads,
        .result = result,
        .scratch = scratch,
        .seed = ask->seed,
        .is_lockstep = ask->rung->is_lab_only,
    };
    const bool is_done = rung_emulated(ask->rung, &call);
    assert(is_done); /* nothing watches */
}

static enum error emu_run_ask(struct ladder_device *device, const struct rung_machine *machine,
                              const struct ladder_ask *ask, void *ret_result,
                              struct ladder_answer *ret_times, struct problem *problem)
{
    (void)device, (void)problem;
    const int64_t begin_ns = clock_ns();
    run_rung(machine, ask, ask->a, ask->b, ret_result);
    ret_times->compute_ns = clock_ns() - begin_ns;
    return ERR_OK;
}

/* --- measuring --- */

static enum error emu_begin(struct ladder_device *device, const struct ladder_ask *ask,
                            struct problem *problem)
{
    const size_t size = ask->n * dtype_size(ask->dtype);
    device->a = malloc(size);
    device->b = malloc(size);
    if (device->a == NULL || device->b == NULL)
        return problem_set(problem, ERR_NOMEM, "no memory for %zu bytes of operands", 2 * size);
    ladder_fill(device->a, ask->dtype, ask->n, ask->seed);
    ladder_fill(device->b, ask->dtype, ask->n, ~ask->seed);
    return ERR_OK;
}

static void emu_end(struct ladder_device *device)
{
    free(device->a);
    free(device->b);
    device->a = device->b = NULL;
}

static enum error emu_time(struct ladder_device *device, const struct rung_machine *machine,
                           const struct ladder_ask *ask, double *ret_us, struct problem *problem)
{
    (void)problem;
    _Alignas(16) unsigned char result[RUNG_RESULT_BYTES];
    const int64_t begin_ns = clock_ns();
    run_rung(machine, ask, device->a, device->b, result);
    *ret_us = (double)(clock_ns() - begin_ns) / 1e3;
    return ERR_OK;
}

const struct ladder_backend ladder_emulated = {
    .open = emu_open,
    .close = emu_close,
    .run = emu_run_ask,
    .begin = emu_begin,
    .time = emu_time,
    .end = emu_end,
};
