/* lab_call.h - POST /v1/lab/...: from a short body over an experiment to its answer.
 *
 * Door: lab_call_begin() to lab_call_resume() are the steps of the lab's routes (route.h). A short
 * body is read and settled on the HTTP thread, so that a refusal needs no queue; a long one, the
 * experiment, and the text of its answer are the work of the lab's thread (gpu/lab.h) while the
 * exchange is in WORK.
 */
#ifndef SERVER_LAB_CALL_H
#define SERVER_LAB_CALL_H

#include <stddef.h>

#include "proto/error.h"

struct exchange;
struct lab_call; /* of one exchange; layout in lab_call.c */

enum error lab_call_begin(struct exchange *exchange, struct problem *problem);
enum error lab_call_body(struct exchange *exchange, const char *data, size_t size,
                         struct problem *problem);
enum error lab_call_finish(struct exchange *exchange, struct problem *problem);
enum error lab_call_resume(struct exchange *exchange, struct problem *problem);
enum error lab_call_late(struct exchange *exchange, struct problem *problem);

void lab_call_free(struct lab_call *call); /* takes NULL */

#endif
