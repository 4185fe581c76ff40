/* trap.h - a device that is lost, on purpose. */
#ifndef TESTS_GPU_TRAP_H
#define TESTS_GPU_TRAP_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ends the current CUDA device for this process. False: it lives on. */
bool device_trap(void);

#ifdef __cplusplus
}
#endif

#endif
