/* console.c - serving the files of clients/web from the binary (see console.h). */
#include "server/console.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "server/accept.h"
#include "server/answer.h"
#include "server/exchange.h"
#include "server/loop.h"

/* Every file that is served: X(symbol, path in clients/web, type). The first one is the page. */
#define CONSOLE_MAP(X)                                           \
    X(index, "index.html", "text/html; charset=utf-8")           \
    X(style, "style.css", "text/css; charset=utf-8")             \
    X(icon, "icon.svg", "image/svg+xml")                         \
    X(main, "main.js", "text/javascript; charset=utf-8")         \
    X(api, "api.js", "text/javascript; charset=utf-8")           \
    X(cells, "cells.js", "text/javascript; charset=utf-8")       \
    X(compute, "compute.js", "text/javascript; charset=utf-8")   \
    X(dom, "dom.js", "text/javascript; charset=utf-8")           \
    X(kernels, "kernels.js", "text/javascript; charset=utf-8")   \
    X(lesson, "lesson.js", "text/javascript; charset=utf-8")     \
    X(lessons, "lessons.js", "text/javascript; charset=utf-8")   \
    X(numbers, "numbers.js", "text/javascript; charset=utf-8")   \
    X(operand, "operand.js", "text/javascript; charset=utf-8")   \
    X(plot, "plot.js", "text/javascript; charset=utf-8")         \
    X(reduce, "reduce.js", "text/javascript; charset=utf-8")     \
    X(rounding, "rounding.js", "text/javascript; charset=utf-8") \
    X(status, "status.js", "text/javascript; charset=utf-8")     \
    X(text, "text.js", "text/javascript; charset=utf-8")         \
    X(trainer, "trainer.js", "text/javascript; charset=utf-8")   \
    X(en, "texts/en.json", "application/json")                   \
    X(ru, "texts/ru.json", "application/json")                   \
    X(uk, "texts/uk.json", "application/json")

/* The assembler takes each file in as it is: an array in C source would want a program that writes
 * it. server/CMakeLists.txt has this file compiled again when one of them changes. */
#define EMBED(symbol, path, type)                                                    \
    __asm__(".pushsection .rodata\n"                                                 \
            "console_file_" #symbol ":\n"                                            \
            ".incbin \"" CONSOLE_FOLDER "/" path "\"\n"                              \
            "console_end_" #symbol ":\n"                                             \
            ".byte 0\n"                                                              \
            ".popsection\n");                                                        \
    extern const char console_file_##symbol[] __attribute__((visibility("hidden"))); \
    extern const char console_end_##symbol[] __attribute__((visibility("hidden")));
CONSOLE_MAP(EMBED)
#undef EMBED

enum { ETAG_BYTES = 20 }; /* a 64-bit hash in hexadecimal, quotes, NUL */

static struct file {
    const char *path, *type, *data, *end;
    char etag[ETAG_BYTES]; /* set once, before the first answer */
} files[] = {
#define ROW(symbol, path, type) {path, type, console_file_##symbol, console_end_##symbol, {0}},
    CONSOLE_MAP(ROW)
#undef ROW
};

enum { FILE_COUNT = sizeof files / sizeof *files };

static pthread_once_t etags_made = PTHREAD_ONCE_INIT;

/* FNV-1a. An ETag tells this binary's bytes from another's; nobody gains by making two collide. */
static void make_etags(void)
{
    for (size_t i = 0; i < FILE_COUNT; i++) {
        uint64_t hash = 0xcbf29ce484222325;
        for (const char *byte = files[i].data; byte < files[i].end; byte++)
            hash = (hash ^ (unsigned char)*byte) * 0x100000001b3;
        (void)snprintf(files[i].etag, ETAG_BYTES, "\"%016llx\"", (unsigned long long)hash);
    }
}

/* "W/" before it makes no difference (RFC 9110 section 13.1.2); no other tag contains ours. */
static bool is_fresh(const struct exchange *exchange, const char *etag)
{
    const char *list = MHD_lookup_connection_value(exchange->mhd, MHD_HEADER_KIND, "If-None-Match");
    return list != NULL && (strcmp(list, "*") == 0 || strstr(list, etag) != NULL);
}

static bool is_on(const struct exchange *exchange)
{
    return loop_http(exchange->loop)->config->console;
}

static enum error send_file(struct exchange *exchange, const struct file *file)
{
    (void)pthread_once(&etags_made, make_etags);
    bool fresh = is_fresh(exchange, file->etag);
    struct answer answer = {.status = fresh ? 304 : 200, .content_type = file->type};
    answer_header(&answer, "ETag", file->etag);
    answer_header(&answer, "Cache-Control", "no-cache"); /* ask each time: a new binary is seen */
    answer_header(&answer, "X-Content-Type-Options", "nosniff");
    answer_header(&answer, "Referrer-Policy", "no-referrer");
    answer_header(&answer, "Content-Security-Policy",
                  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
                  "connect-src 'self'; form-action 'none'; frame-ancestors 'none'; "
                  "base-uri 'none'");
    if (file == &files[0])
        answer_header(&answer, "Vary", "Accept");
    /* Under 304 libmicrohttpd sends the file's length and leaves the file out, as for HEAD. */
    text_clear(&exchange->out);
    text_append(&exchange->out, file->data, (size_t)(file->end - file->data));
    return answer_send(exchange, &answer);
}

bool console_is_wanted(const struct exchange *exchange)
{
    const char *accept = exchange->head.accept;
    return is_on(exchange) &&
           accept_quality(accept, "text/html") > accept_quality(accept, "application/json");
}

enum error console_page(struct exchange *exchange, struct problem *problem)
{
    (void)problem;
    return send_file(exchange, &files[0]);
}

enum error console_asset(struct exchange *exchange, struct problem *problem)
{
    const char *path = exchange->target + strlen("/console/");
    for (size_t i = 1; is_on(exchange) && i < FILE_COUNT; i++)
        if (strcmp(files[i].path, path) == 0)
            return send_file(exchange, &files[i]);
    return problem_set(problem, ERR_NOT_FOUND,
                       is_on(exchange) ? "the console has no file %s"
                                       : "the console is switched off, and %s with it",
                       path);
}
