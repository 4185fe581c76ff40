/* admit.c - refusals on the head and the size of a body (see admit.h). */
#include "server/admit.h"

#include <inttypes.h>

#include "server/exchange.h"
#include "server/http_priv.h"
#include "server/loop.h"

enum error admit_open(const struct exchange *exchange, struct problem *problem)
{
    if (exchange_is_draining(exchange))
        return problem_set(problem, ERR_CLOSED, "the server is shutting down");
    if (!atomic_load(&loop_http(exchange->loop)->is_ready))
        return problem_set(problem, ERR_STARTING, "the self-test is running");
    return ERR_OK;
}

enum error admit_coding(const struct exchange *exchange, enum coding *ret, struct problem *problem)
{
    if (exchange->head.repeats_encoding)
        return problem_set(problem, ERR_MEDIA, "Content-Encoding is given twice; one is undone");
    return coding_for(exchange->head.content_encoding, ret, problem);
}

enum error admit_plain(const struct exchange *exchange, struct problem *problem)
{
    enum coding coding;
    enum error error = admit_coding(exchange, &coding, problem);
    if (error != ERR_OK || coding == CODING_NONE)
        return error;
    return problem_set(problem, ERR_MEDIA,
                       "Content-Encoding is \"%s\"; here bodies are read as they are",
                       exchange->head.content_encoding);
}

uint64_t admit_body_bytes(const struct exchange *exchange, enum coding coding)
{
    const struct head *head = &exchange->head;
    return head->is_chunked || coding != CODING_NONE ? BODY_CHUNKED : head->content_length;
}

enum error admit_size(const struct exchange *exchange, uint64_t limit, const char *setting,
                      struct problem *problem)
{
    const struct head *head = &exchange->head;
    if ((head->is_chunked ? exchange->body_bytes : head->content_length) <= limit)
        return ERR_OK;
    (void)problem_set(problem, ERR_TOO_LARGE, "the body is larger than %" PRIu64 " bytes", limit);
    return problem_limit(problem, limit, setting);
}
