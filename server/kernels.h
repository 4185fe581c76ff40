/* kernels.h - GET /v1/kernels: the ladder, and what each of its rungs takes for n products. */
#ifndef SERVER_KERNELS_H
#define SERVER_KERNELS_H

#include "proto/error.h"

struct exchange;

enum error kernels_page(struct exchange *exchange, struct problem *problem);

#endif
