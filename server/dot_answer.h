/* dot_answer.h - the answer to a dot product: in which form it was asked for, and how that is
 * sent. */
#ifndef SERVER_DOT_ANSWER_H
#define SERVER_DOT_ANSWER_H

#include "proto/error.h"

struct exchange;

/* Takes of the forms that Accept allows the one it likes best. ERR_ACCEPT: it allows none. */
enum error dot_settle_form(struct exchange *exchange, struct problem *problem);

/* Sends what exchange->job holds, done and without an error, and counts it. The operands' memory is
 * given back first. */
enum error dot_answer(struct exchange *exchange, struct problem *problem);

#endif
