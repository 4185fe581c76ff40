/* faulty.h - a device for tests that fails, waits or errs when it is told to.
 *
 * Door: put &backend_faulty behind &backend_cpu in gpu_open_backends(). It calls itself "cuda:0",
 * pins memory in name, computes as the CPU does, and obeys the calls below, from any thread. A
 * build with DOTD_FAULTS has it in the daemon as well, in the place of CUDA, when the environment
 * variable DOTD_FAULT names a file; before each batch the file's word is read:
 *
 *   launch   the batch fails with ERR_DEVICE      slow   it takes 20 ms more
 *   sticky   so do all that follow                wrong  its values are off
 *   memory   it fails with ERR_NOMEM              hang   it waits until the file says something else;
 *                                                        meanwhile FILE.hanging is there
 *
 * No file, or any other word: all is well.
 */
#ifndef GPU_FAULTY_H
#define GPU_FAULTY_H

#include <stdbool.h>

#include "gpu/backend.h"

enum faulty_point { FAULTY_OPEN, FAULTY_PIN, FAULTY_COMPUTE, FAULTY_POINTS };

/* From now on that step returns error; ERR_OK: it works again. */
void faulty_set(enum faulty_point point, enum error error);

/* The next `batches` batches fail so, when their work is done; those behind them do not. */
void faulty_fail_next(enum error error, unsigned batches);

/* From now on the first value of a batch is off, or no more. */
void faulty_spoil(bool spoiled);

/* While held, a batch waits inside compute(). faulty_wait_held() returns once one does;
 * faulty_step() lets that one through and returns once the next waits. */
void faulty_hold(bool held);
void faulty_wait_held(void);
void faulty_step(void);

#endif
