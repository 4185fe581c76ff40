/* client.c - one call at a time, with retries (see dotd.h). */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "answer.h"
#include "call.h"

enum { PAUSE_MS = 50 }; /* before a new connection, when the last one ended at once; doubled */

struct dotd {
    struct account account;
    struct call *call; /* its handle keeps the connection */
};

enum dotd_code dotd_open(struct dotd **ret, const struct dotd_config *config,
                         struct dotd_error *error)
{
    struct dotd *client = calloc(1, sizeof *client);
    if (client == NULL)
        return error_set(error, DOTD_NO_MEMORY, "no memory for a client");
    enum dotd_code code = account_init(&client->account, config, error);
    if (code == DOTD_OK && call_create(&client->call, &client->account) != DOTD_OK)
        code = error_set(error, DOTD_NO_MEMORY, "no memory for a curl handle");
    if (code != DOTD_OK) {
        dotd_close(client);
        return code;
    }
    *ret = client;
    return DOTD_OK;
}

void dotd_close(struct dotd *client)
{
    if (client == NULL)
        return;
    call_destroy(client->call);
    account_fini(&client->account);
    free(client);
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void sleep_ms(int64_t pause_ms)
{
    struct timespec left = {pause_ms / 1000, pause_ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

/* How long to wait before the same call may succeed; -1: it will not. A dot product changes nothing
 * at the service, so that a connection that ends without an answer is tried again too. */
static int64_t pause_of(const struct dotd_error *error, CURLcode done, int64_t pause_ms)
{
    if (error->code == DOTD_REFUSED && (error->status == 429 || error->status == 503))
        return error->retry_after_s >= 0 ? (int64_t)error->retry_after_s * 1000 : -1;
    bool has_ended =
        done == CURLE_GOT_NOTHING || done == CURLE_SEND_ERROR || done == CURLE_RECV_ERROR;
    return has_ended && error->status == 0 ? pause_ms : -1;
}

enum dotd_code dotd_dot(struct dotd *client, const void *a, const void *b, size_t n,
                        const struct dotd_options *options, struct dotd_result *ret,
                        struct dotd_error *error)
{
    struct call *call = client->call;
    struct dotd_error why;
    struct dotd_result result;
    enum dotd_code code = call_begin(call, a, b, n, options, error);
    if (code != DOTD_OK)
        return code;
    int64_t end_ms = now_ms() + call_timeout_ms(call), pause_ms = PAUSE_MS;
    for (unsigned left = client->account.retries;; left--, pause_ms *= 2) {
        CURLcode done = curl_easy_perform(call_easy(call));
        code = call_end(call, done, &result, &why);
        if (code == DOTD_OK)
            break;
        int64_t wait_ms = pause_of(&why, done, pause_ms), left_ms = end_ms - now_ms();
        if (left == 0 || wait_ms < 0 || wait_ms >= left_ms)
            break;
        sleep_ms(wait_ms);
        call_repeat(call, (unsigned)(left_ms - wait_ms));
    }
    if (code == DOTD_OK)
        *ret = result;
    else if (error != NULL)
        *error = why;
    return code;
}
