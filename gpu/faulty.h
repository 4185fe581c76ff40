/* faulty.h - a device for tests that fails, or waits, when it is told to.
 *
 * Door: put &backend_faulty behind &backend_cpu in gpu_open_backends(). It calls itself "cuda:0",
 * pins memory in name, computes as the CPU does, and obeys the calls below, from any thread.
 */
#ifndef GPU_FAULTY_H
#define GPU_FAULTY_H

#include <stdbool.h>

#include "gpu/backend.h"

enum faulty_point { FAULTY_OPEN, FAULTY_PIN, FAULTY_COMPUTE, FAULTY_POINTS };

/* From now on that step returns error; ERR_OK: it works again. */
void faulty_set(enum faulty_point point, enum error error);

/* While held, a batch waits inside compute(). faulty_wait_held() returns once one does. */
void faulty_hold(bool held);
void faulty_wait_held(void);

#endif
