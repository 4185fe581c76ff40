/* words.c - values of headers and options: what is read is read within bounds, and reads the same
 * again. */
#include <inttypes.h>

#include "proto/encoding.h"
#include "server/accept.h"
#include "tests/fuzz/fuzz.h"

/* A list and the same list once more prefer the same. */
static void check_accept(const char *text)
{
    static const char *const types[] = {"application/json", "application/octet-stream",
                                        "application/problem+json", "text/html"};
    char *twice = malloc(2 * strlen(text) + 2);
    CHECK(twice != NULL, "no memory");
    (void)sprintf(twice, "%s,%s", text, text);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        unsigned quality = accept_quality(text, types[i]), again = accept_quality(twice, types[i]);
        CHECK(quality <= 1000 && quality == again, "%s: %u, %u", types[i], quality, again);
    }
    free(twice);
}

static void check_media(const char *text)
{
    const struct encoding *encoding = NULL, *again = NULL;
    struct problem problem;
    problem_clear(&problem);
    enum error err = encoding_for(text, &encoding, &problem);
    CHECK(err == problem.error && (err == ERR_OK) == (encoding != NULL), "%d", err);
    char *spaced = malloc(strlen(text) + 3);
    CHECK(spaced != NULL, "no memory");
    (void)sprintf(spaced, " %s ", text);
    CHECK(encoding_for(spaced, &again, &problem) == err && again == encoding, "%s", spaced);
    free(spaced);
}

static void check_dtype(const char *text)
{
    enum dtype dtype, again;
    enum byte_order order, other;
    if (dtype_parse(text, &dtype, &order) == ERR_OK)
        CHECK(dtype_parse(dtype_name(dtype), &again, &other) == ERR_OK && again == dtype &&
                  other == ORDER_LITTLE,
              "%s", text);
}

static void check_shape(const char *text)
{
    struct shape shape, again;
    if (shape_parse(text, &shape) != ERR_OK)
        return;
    char spelled[LIMIT_RANK * 21 + 1] = "";
    CHECK(shape.rank >= 1 && shape.rank <= LIMIT_RANK, "rank %d", shape.rank);
    for (int i = 0, used = 0; i < shape.rank; i++)
        used += sprintf(spelled + used, "%s%" PRIu64, i > 0 ? "," : "", shape.dim[i]);
    CHECK(shape_parse(spelled, &again) == ERR_OK && again.rank == shape.rank, "%s", spelled);
    for (int i = 0; i < shape.rank; i++)
        CHECK(shape.dim[i] == again.dim[i], "%s, %s", text, spelled);
}

/* Set once, the same value contradicts nothing; twice in one place it is refused. */
static void check_option(const struct option_row *row, const char *text)
{
    struct request request;
    struct problem problem;
    unsigned seen = 0, elsewhere = 0;
    request_init(&request, &buffer_heap);
    problem_clear(&problem);
    enum error err = options_set(&request.options, &seen, row->name, text, &problem);
    CHECK(err == problem.error, "%s=%s: %d", row->name, text, err);
    if (err == ERR_OK) {
        CHECK(options_set(&request.options, &elsewhere, row->name, text, &problem) == ERR_OK,
              "%s=%s: %s", row->name, text, problem.detail);
        CHECK(options_set(&request.options, &seen, row->name, text, &problem) == ERR_OPTION,
              "%s=%s", row->name, text);
    }
    request_fini(&request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct option_row *row;
    size_t row_count = options_rows(&row);
    struct input input = {data, size};
    unsigned choice = input_byte(&input) % (4 + (unsigned)row_count);
    char *text = text_of(input.data, input.size);
    static void (*const check[])(const char *text) = {check_accept, check_media, check_dtype,
                                                      check_shape};
    if (choice < 4)
        check[choice](text);
    else
        check_option(&row[choice - 4], text);
    free(text);
    return 0;
}
