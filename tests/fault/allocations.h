/* allocations.h - malloc(), calloc(), realloc() and mmap() that fail when a test says so.
 *
 * Door: a program that links allocations.c calls the functions below. As a library of its own, put
 * in front of a daemon (LD_PRELOAD), it obeys the file that ALLOCATIONS_FILE names, which holds a
 * struct allocations. Allocations of the calling thread can be left out.
 */
#ifndef TESTS_FAULT_ALLOCATIONS_H
#define TESTS_FAULT_ALLOCATIONS_H

#include <stdbool.h>
#include <stdint.h>

struct allocations {
    _Atomic uint64_t count; /* so far */
    _Atomic uint64_t first; /* the first that fails; 0: none does */
    _Atomic uint64_t last;  /* and the last */
};

/* The first to last allocations from now on fail, 1 being the next one. */
void allocations_fail(uint64_t first, uint64_t last);

/* None fails from now on. Returns how many there were since. */
uint64_t allocations_allow(void);

/* The calling thread's do not count, and do not fail. */
void allocations_spare_thread(void);

#endif
