/* ladder_backend.h - what a machine of the ladder must be able to do: a table of functions.
 *
 * Door: ladder_emulated (ladder_emu.c) and, where CUDA is built in, ladder_cuda (ladder_cuda.c).
 */
#ifndef GPU_LADDER_BACKEND_H
#define GPU_LADDER_BACKEND_H

#include "gpu/ladder.h"

struct ladder_device; /* each backend's own */

struct ladder_backend {
    /* Fills *ret_machine too. ERR_NOMEM, ERR_DEVICE. */
    enum error (*open)(struct ladder_device **ret, int index, struct rung_machine *ret_machine,
                       struct problem *problem);
    void (*close)(struct ladder_device *device); /* takes NULL */

    /* Leaves RUNG_RESULT_BYTES at ret_result, and the times. */
    enum error (*run)(struct ladder_device *device, const struct rung_machine *machine,
                      const struct ladder_ask *ask, void *ret_result,
                      struct ladder_answer *ret_times, struct problem *problem);

    /* Of a measurement: operands from the seed; one run, timed; the operands go. `end` always
     * follows `begin`, also a failed one. */
    enum error (*begin)(struct ladder_device *device, const struct ladder_ask *ask,
                        struct problem *problem);
    enum error (*time)(struct ladder_device *device, const struct rung_machine *machine,
                       const struct ladder_ask *ask, double *ret_us, struct problem *problem);
    void (*end)(struct ladder_device *device);
};

extern const struct ladder_backend ladder_emulated, ladder_cuda;

#endif
