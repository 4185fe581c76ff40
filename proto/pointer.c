/* pointer.c - JSON pointers of problems (see pointer.h). */
#include "proto/pointer.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum error pointer_set(struct problem *problem, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(problem->pointer, sizeof problem->pointer, format, args);
    va_end(args);
    return problem->error;
}

enum error pointer_key(struct problem *problem, const char *prefix, const char *key)
{
    char escaped[LIMIT_POINTER_BYTES];
    size_t used = 0;
    for (; *key != '\0' && used + 2 < sizeof escaped; key++) {
        bool is_special = *key == '~' || *key == '/';
        escaped[used++] = is_special ? '~' : *key;
        if (is_special)
            escaped[used++] = *key == '~' ? '0' : '1';
    }
    escaped[used] = '\0';
    return pointer_set(problem, "%s/%s", prefix, escaped);
}

enum error pointer_prefix(struct problem *problem, const char *prefix)
{
    char rest[LIMIT_POINTER_BYTES];
    memcpy(rest, problem->pointer, sizeof rest);
    return pointer_set(problem, "%s%s", prefix, rest);
}
