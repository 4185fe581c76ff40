/* call.h - one request and its answer, on a curl handle of its own.
 *
 * Door: account_init() once a client; then call_create(), call_begin() as often as wanted, the
 * transfer by whoever drives curl, call_end(), call_destroy().
 */
#ifndef DOTD_CALL_H
#define DOTD_CALL_H

#include <curl/curl.h>
#include <locale.h>
#include <stdbool.h>

#include "dotd.h"

/* What all calls of a client share; fixed after account_init(). */
struct account {
    char *url;
    struct curl_slist *headers;
    unsigned timeout_ms, retries;
    locale_t numbers;
};

enum dotd_code account_init(struct account *ret, const struct dotd_config *config,
                            struct dotd_error *error);
void account_fini(struct account *account); /* takes what account_init() left, zeros too */

struct call;

/* DOTD_NO_MEMORY */
enum dotd_code call_create(struct call **ret, const struct account *account);
void call_destroy(struct call *call); /* takes NULL */

CURL *call_easy(const struct call *call);

/* Makes the handle ready to be performed. a and b are borrowed until call_end(). */
enum dotd_code call_begin(struct call *call, const void *a, const void *b, size_t n,
                          const struct dotd_options *options, struct dotd_error *error);

/* The same request once more, with the time that is left. */
void call_repeat(struct call *call, unsigned timeout_ms);

/* The call's own timeout. */
unsigned call_timeout_ms(const struct call *call);

/* What came of it, by curl's word. error may be NULL. */
enum dotd_code call_end(struct call *call, CURLcode done, struct dotd_result *ret,
                        struct dotd_error *error);

#endif
