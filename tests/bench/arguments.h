/* arguments.h - what a measuring program may be told: numbers in their order, each with a default.
 *
 * Door: arguments_read(), first of all in main().
 */
#ifndef TESTS_BENCH_ARGUMENTS_H
#define TESTS_BENCH_ARGUMENTS_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

struct argument {
    const char *name;
    double value; /* the default, until another is told */
    double least, most;
};

/* Says what may be told, for more too if that takes something behind the numbers; returns main()'s
 * status. */
static inline int arguments_usage(const struct argument *argument, int count, const char *more)
{
    (void)fprintf(stderr, "usage: %s", program_invocation_short_name);
    for (int i = 0; i < count; i++)
        (void)fprintf(stderr, " [%s", argument[i].name);
    (void)fprintf(stderr, "%s", more);
    for (int i = 0; i < count; i++)
        (void)fprintf(stderr, "]");
    (void)fprintf(stderr, "\n");
    for (int i = 0; i < count; i++)
        (void)fprintf(stderr, "  %s: %.10g to %.10g, by default %.10g\n", argument[i].name,
                      argument[i].least, argument[i].most, argument[i].value);
    return 2;
}

static inline bool argument_read(const char *text, struct argument *argument)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= argument->least && value <= argument->most))
        return false;
    argument->value = value;
    return true;
}

/* Where anything else is told, --help too, the program says what it takes, and ends. */
static inline void arguments_read(int argc, char **argv, struct argument *argument, int count)
{
    bool is_fine = argc - 1 <= count;
    for (int i = 1; is_fine && i < argc; i++)
        is_fine = argument_read(argv[i], &argument[i - 1]);
    if (!is_fine)
        exit(arguments_usage(argument, count, ""));
}

#endif
