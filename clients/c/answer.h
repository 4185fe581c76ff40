/* answer.h - what came back, as a result or as an error.
 *
 * Door: answer_result() for status 200, answer_problem() for others.
 */
#ifndef DOTD_ANSWER_H
#define DOTD_ANSWER_H

#include <locale.h>

#include "dotd.h"
#include "json.h"

/* Names as the service has them; NULL for what is no type. */
const char *dtype_name(enum dotd_dtype dtype);

/* DOTD_BAD_ANSWER, DOTD_NO_MEMORY: ret is untouched. */
enum dotd_code answer_result(struct json_span body, locale_t numbers, struct dotd_result *ret);

/* Fills error from a problem document, or from a text that a proxy may have written. */
void answer_problem(struct json_span body, int status, locale_t numbers, struct dotd_error *error);

/* An error without an answer. error may be NULL; returns code. */
enum dotd_code error_set(struct dotd_error *error, enum dotd_code code, const char *detail);

#endif
