/* pages.h - everything that only tells: probes, status, limits, problems, the front page. */
#ifndef SERVER_PAGES_H
#define SERVER_PAGES_H

#include "proto/error.h"

struct exchange;

enum error page_livez(struct exchange *exchange, struct problem *problem);
enum error page_readyz(struct exchange *exchange, struct problem *problem);
enum error page_status(struct exchange *exchange, struct problem *problem);
enum error page_devices(struct exchange *exchange, struct problem *problem);
enum error page_limits(struct exchange *exchange, struct problem *problem);
enum error page_problem(struct exchange *exchange, struct problem *problem);
enum error page_index(struct exchange *exchange, struct problem *problem);

#endif
