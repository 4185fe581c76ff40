/* leaf.c - numbers and words, one at a time (see leaf.h). */
#include "proto/leaf.h"

#include <assert.h>
#include <math.h>
#include <string.h>

struct word {
    const char *text;
    double value;
    const char *refused; /* what a value that is no number is called; NULL for numbers */
};

static const struct word words[] = {
    {"NaN", NAN, NULL},
    {"Infinity", INFINITY, NULL},
    {"-Infinity", -INFINITY, NULL},
    {"\"NaN\"", NAN, NULL},
    {"\"Infinity\"", INFINITY, NULL},
    {"\"-Infinity\"", -INFINITY, NULL},
    {"null", 0, "null"},
    {"true", 0, "true"},
    {"false", 0, "false"},
};

/* How many bytes of word the text begins with. */
static size_t word_match(const char *p, const char *word)
{
    size_t i = 0;
    while (word[i] != '\0' && p[i] == word[i])
        i++;
    return i;
}

static enum error word_fail(const char *p, size_t matched, struct leaf *ret)
{
    if (*p == '"' || *p == '{') {
        ret->stop = p;
        ret->what = *p == '"' ? "a string" : "an object";
        return ERR_VALUE;
    }
    ret->stop = p + matched;
    ret->what = "a number";
    return ERR_SYNTAX;
}

/* Reads what does not start like a number. The byte to blame is the first that fits no word. */
static enum error word_read(const char *p, struct leaf *ret)
{
    size_t longest = 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const struct word *word = &words[i];
        size_t matched = word_match(p, word->text);
        longest = matched > longest ? matched : longest;
        if (word->text[matched] != '\0')
            continue;
        ret->is_word = true;
        ret->word = word->value;
        ret->what = word->refused;
        ret->stop = word->refused == NULL ? p + matched : p;
        return word->refused == NULL ? ERR_OK : ERR_VALUE;
    }
    return word_fail(p, longest, ret);
}

static bool begins_with(const char *p, const char *lower)
{
    while (*lower != '\0' && (*p | 0x20) == *lower) {
        p++;
        lower++;
    }
    return *lower == '\0';
}

/* Such as nan, -inf, +Infinity, which other programs write. */
static bool is_misspelt_word(const char *p)
{
    p += *p == '-' || *p == '+';
    return begins_with(p, "nan") || begins_with(p, "inf");
}

enum error leaf_read(const char *p, struct leaf *ret)
{
    enum error err = ERR_OK;
    ret->is_word = false;
    if (!is_digit(*p) && (*p != '-' || p[1] == 'I')) {
        err = word_read(p, ret);
    } else if (!decimal_scan(p, &ret->decimal, &ret->stop)) {
        ret->what = "a digit";
        err = ERR_SYNTAX;
    }
    if (err == ERR_SYNTAX && is_misspelt_word(p)) {
        ret->stop = p;
        ret->what = "a number, or one of NaN, Infinity and -Infinity, written so";
    }
    if (ret->stop - p > LIMIT_NUMBER_BYTES) {
        ret->stop = p;
        ret->what = "a longer text than a number may have";
        err = ERR_VALUE;
    }
    return err;
}

static enum error float32_store(const struct leaf *leaf, void *ret)
{
    float element = (float)leaf->word;
    enum error err = leaf->is_word ? ERR_OK : decimal_float32(&leaf->decimal, &element);
    if (err == ERR_OK)
        memcpy(ret, &element, sizeof element);
    return err;
}

static enum error float64_store(const struct leaf *leaf, void *ret)
{
    double element = leaf->word;
    enum error err = leaf->is_word ? ERR_OK : decimal_float64(&leaf->decimal, &element);
    if (err == ERR_OK)
        memcpy(ret, &element, sizeof element);
    return err;
}

static enum error narrow_store(const struct leaf *leaf, struct narrow type, void *ret)
{
    uint16_t element;
    enum error err = ERR_OK;
    if (leaf->is_word)
        element = narrow_bits(leaf->word, type);
    else
        err = decimal_narrow(&leaf->decimal, type, &element);
    if (err == ERR_OK)
        memcpy(ret, &element, sizeof element);
    return err;
}

/* The largest magnitude on each side of zero. */
static uint64_t magnitude_max(enum dtype dtype, bool is_negative)
{
    if (dtype == DTYPE_UINT8)
        return is_negative ? 0 : UINT8_MAX;
    return (UINT64_C(1) << (8 * dtype_size(dtype) - 1)) - !is_negative;
}

enum error integer_store(bool is_negative, uint64_t magnitude, enum dtype dtype, void *ret)
{
    assert(dtype_is_integer(dtype));
    if (magnitude > magnitude_max(dtype, is_negative))
        return ERR_VALUE;
    uint64_t element = is_negative ? -magnitude : magnitude;
    memcpy(ret, &element, dtype_size(dtype)); /* little-endian: its low bytes are the element */
    return ERR_OK;
}

static enum error whole_store(const struct leaf *leaf, enum dtype dtype, void *ret)
{
    uint64_t magnitude;
    if (leaf->is_word || !decimal_whole(&leaf->decimal, &magnitude))
        return ERR_VALUE;
    return integer_store(leaf->decimal.is_negative, magnitude, dtype, ret);
}

enum error leaf_store(const struct leaf *leaf, enum dtype dtype, void *ret)
{
    switch (dtype) {
    case DTYPE_FLOAT16:
        return narrow_store(leaf, narrow_float16(), ret);
    case DTYPE_BFLOAT16:
        return narrow_store(leaf, narrow_bfloat16(), ret);
    case DTYPE_FLOAT32:
        return float32_store(leaf, ret);
    case DTYPE_FLOAT64:
    case DTYPE_UNKNOWN:
        return float64_store(leaf, ret);
    case DTYPE_INT8:
    case DTYPE_UINT8:
    case DTYPE_INT32:
    case DTYPE_INT64:
        return whole_store(leaf, dtype, ret);
    case DTYPE_COMPLEX64:
    case DTYPE_COMPLEX128:
        break; /* two leaves each, stored as their parts */
    }
    return ERR_DTYPE;
}
