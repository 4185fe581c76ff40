/* json.h - finds fields of a JSON object and reads them, for answers that the library knows.
 *
 * Door: json_fields() once an answer, then json_text(), json_number(), json_each() for what it
 * found. Nothing is copied but texts; what is not well-formed is told, never read past.
 */
#ifndef DOTD_JSON_H
#define DOTD_JSON_H

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_span { /* of one value; begin NULL: not there */
    const char *begin, *end;
};

/* Finds the values of count names in the object that text is. False: it is no JSON object. */
bool json_fields(struct json_span text, const char *const *name, size_t count,
                 struct json_span *ret);

/* Copies a string's characters, cut to capacity with the terminating NUL. A value that is no string
 * becomes "". */
void json_text(struct json_span value, char *ret, size_t capacity);

/* A number, in the locale "C" that numbers is; other where the value is none. */
double json_number(struct json_span value, locale_t numbers, double other);

/* Likewise a whole number, as far as a double has them: up to 2^53. */
int64_t json_whole(struct json_span value, locale_t numbers, int64_t other);

/* Calls each() for every value that is no array, in order, in arrays however nested. each() returns
 * false to stop. False: stopped, or not well-formed. */
bool json_each(struct json_span value, bool (*each)(void *context, struct json_span leaf),
               void *context);

bool json_is(struct json_span value, const char *word); /* literally, quotes included */

#endif
