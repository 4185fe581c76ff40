/* backend.h - what one kind of device must be able to do: a table of functions.
 *
 * Door: a backend is one `struct backend` and one row in the list of gpu.c. Rows there are the CPU
 * first, then CUDA where it was built in; tests open lists of their own (gpu_open_backends).
 */
#ifndef GPU_BACKEND_H
#define GPU_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include "gpu/gpu.h"
#include "gpu/slice.h"

struct backend_device; /* each backend's own */

/* Durations of a batch's copies; what is left of the batch's time is computing. */
struct backend_times {
    int64_t copy_in_ns, copy_out_ns;
};

struct backend {
    const char *name;         /* "cpu", "cuda" */
    struct slice_limit slice; /* some 2 to 4 ms: a batch ends with the job that fills it, and long
                                 jobs are cut into as much, so that nobody waits for much more */

    /* How long, where there are cores enough, its worker looks for more work before it sleeps, and
     * who brought its only job for that; 0: not at all. */
    int64_t look_ns;

    /* Devices to try; 0 when there are none, with a sentence that says why in problem->detail. */
    int (*count)(struct problem *problem);

    /* ERR_NOMEM, ERR_DEVICE: not usable, with a sentence in problem->detail. */
    enum error (*open)(struct backend_device **ret, int index, const struct gpu_config *config,
                       struct problem *problem);
    void (*close)(struct backend_device *device); /* takes NULL */

    /* Fills id, name, kernel, is_cuda, memory_bytes, multiprocessors, capability. */
    void (*describe)(struct backend_device *device, struct device_info *ret);

    /* Lets the device read host memory in place; told to every device that is open, before the
     * first job. NULL where any memory will do. unpin: after the last job. */
    enum error (*pin)(struct backend_device *device, void *data, size_t size);
    void (*unpin)(struct backend_device *device);

    /* Computes a chain of jobs as one batch and returns when their values are there and settled
     * (bound.h). A job with a partial comes alone, is one row or none, and adds its products to it.
     * One thread at a time, except for the CPU. On failure no value and no partial is good;
     * ERR_DEVICE says that the device is lost, ERR_NOMEM that less may go. */
    enum error (*compute)(struct backend_device *device, struct job *first,
                          struct backend_times *ret, struct problem *problem);
};

extern const struct backend backend_cpu;
extern const struct backend backend_cuda;   /* only where CUDA is built in */
extern const struct backend backend_faulty; /* for tests: fails on demand (faulty.h) */

/* gpu_open() with a list of backends that ends in NULL. Device 0 must be a CPU. */
enum error gpu_open_backends(struct gpu **ret, const struct gpu_config *config,
                             const struct backend *const *backends, struct problem *problem);

#endif
