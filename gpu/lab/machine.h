/* machine.h - the lab's machines, for its experiments.
 *
 * Door: on the lab's thread. A machine is opened when it is first asked for; one that reported
 * ERR_DEVICE is lost, and lab_place() avoids it from then on.
 */
#ifndef GPU_LAB_MACHINE_H
#define GPU_LAB_MACHINE_H

#include "gpu/ladder.h"
#include "gpu/lab.h"

/* ERR_CLOSED, ERR_DEADLINE: the job that runs was cancelled or is late, and is to be given up.
 * Experiments ask between sums, none of which takes long, so that a drain waits for no more. */
enum error machine_goes_on(struct lab *lab, struct problem *problem);

/* ladder_run(), if the job goes on, and ladder_measure() on a device of the lab. */
enum error machine_run(struct lab *lab, int device, const struct ladder_ask *ask,
                       struct ladder_answer *ret, struct problem *problem);
enum error machine_measure(struct lab *lab, int device, const struct ladder_ask *ask,
                           int64_t budget_ns, uint32_t runs_max, struct ladder_time *ret,
                           struct problem *problem);

struct shift_call;

/* The shift (kernels.h) on a CUDA device; what *call points to is the host's. */
enum error machine_shift(struct lab *lab, int device, const struct shift_call *call,
                         struct problem *problem);

/* The room that the lab borrows. */
struct gpu *machine_gpu(struct lab *lab);

#endif
