/* error.c - the table of errors, spelled out (see error.h). */
#include "proto/error.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct row {
    int status;
    const char *name, *title, *text;
};

static const struct row rows[] = {
#define X(code, status, name, title, text) [code] = {status, name, title, text},
    ERROR_MAP(X)
#undef X
};

static const struct row *row_of(enum error error)
{
    assert(error < ERROR_COUNT);
    return &rows[error];
}

int error_status(enum error error)
{
    return row_of(error)->status;
}

const char *error_name(enum error error)
{
    return row_of(error)->name;
}

const char *error_title(enum error error)
{
    return row_of(error)->title;
}

const char *error_text(enum error error)
{
    return row_of(error)->text;
}

enum error error_from_name(const char *name)
{
    for (enum error error = ERR_OK + 1; error < ERROR_COUNT; error++)
        if (strcmp(rows[error].name, name) == 0)
            return error;
    return ERR_OK;
}

void problem_clear(struct problem *problem)
{
    problem->error = ERR_OK;
    problem->detail[0] = problem->pointer[0] = '\0'; /* what is behind them is half a kilobyte */
    problem->offset = -1;
    problem->limit = 0;
    problem->setting = NULL;
}

enum error problem_set(struct problem *problem, enum error error, const char *format, ...)
{
    problem_clear(problem);
    problem->error = error;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(problem->detail, sizeof problem->detail, format, args);
    va_end(args);
    return error;
}

enum error problem_limit(struct problem *problem, uint64_t limit, const char *setting)
{
    problem->limit = limit;
    problem->setting = setting;
    return problem->error;
}

enum error problem_at(struct problem *problem, uint64_t offset)
{
    problem->offset = (int64_t)offset;
    return problem->error;
}
