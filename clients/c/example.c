/* example.c - two dot products, one after the other and at once.
 *
 *     cc example.c $(pkg-config --cflags --libs dotd libcurl) -o example && ./example
 */
#include <curl/curl.h>
#include <dotd.h>
#include <stdio.h>

static const float a[] = {1, 2, 3}, b[] = {4, 5, 6};

static int one(const char *url)
{
    struct dotd_config config = {.size = sizeof config, .url = url};
    struct dotd_options options = {.size = sizeof options, .dtype = DOTD_FLOAT32};
    struct dotd_error error = {.code = DOTD_OK};
    struct dotd_result result;
    struct dotd *client = NULL;
    if (dotd_open(&client, &config, &error) == DOTD_OK &&
        dotd_dot(client, a, b, 3, &options, &result, &error) == DOTD_OK) {
        printf("%g by %s on %s in %.1f us\n", result.number[0].value, result.kernel, result.device,
               result.timing_us.total);
        dotd_result_clear(&result);
    }
    dotd_close(client);
    if (error.code != DOTD_OK)
        fprintf(stderr, "%s: %s\n", url, error.detail);
    return error.code == DOTD_OK ? 0 : 1;
}

static int many(const char *url)
{
    static const char *const names[] = {"first", "second"};
    struct dotd_config config = {.size = sizeof config, .url = url};
    struct dotd_options options = {.size = sizeof options, .dtype = DOTD_FLOAT32};
    struct dotd_error error;
    struct dotd_multi *multi;
    int failed = 0;
    if (dotd_multi_open(&multi, &config, &error) != DOTD_OK)
        return 1;
    for (int i = 0; i < 2; i++)
        if (dotd_multi_add(multi, a + i, b + i, 2, &options, (void *)names[i], &error) != DOTD_OK)
            failed = 1;
    while (dotd_multi_pending(multi) > 0) {
        struct dotd_result result;
        enum dotd_code code;
        void *name;
        dotd_multi_wait(multi, -1);
        while (dotd_multi_next(multi, &name, &code, &result, &error)) {
            if (code == DOTD_OK) {
                printf("%s: %g\n", (const char *)name, result.number[0].value);
                dotd_result_clear(&result);
            } else {
                fprintf(stderr, "%s: %s\n", (const char *)name, error.detail);
                failed = 1;
            }
        }
    }
    dotd_multi_close(multi);
    return failed;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "http://127.0.0.1:8080";
    curl_global_init(CURL_GLOBAL_DEFAULT);
    int status = one(url);
    if (status == 0)
        status = many(url);
    curl_global_cleanup();
    return status;
}
