/* setting.c - what each setting may be, made from SETTING_MAP (see setting.h). */
#include "server/setting.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct setting settings[SETTING_COUNT] = {
#define SECTION_ROW(name_) {.kind = SETTING_SECTION, .name = name_},
#define TEXT_ROW(name_, text_, help_)          \
    {.kind = SETTING_TEXT,                     \
     .name = #name_,                           \
     .offset = offsetof(struct config, name_), \
     .text = text_,                            \
     .help = help_},
#define WORD_ROW(name_, text_, words_, help_)  \
    {.kind = SETTING_WORD,                     \
     .name = #name_,                           \
     .offset = offsetof(struct config, name_), \
     .text = text_,                            \
     .words = words_,                          \
     .help = help_},
#define NUMBER_ROW(name_, number_, min_, max_, help_) \
    {.kind = SETTING_NUMBER,                          \
     .name = #name_,                                  \
     .offset = offsetof(struct config, name_),        \
     .number = number_,                               \
     .min = min_,                                     \
     .max = max_,                                     \
     .help = help_},
    SETTING_MAP(SECTION_ROW, TEXT_ROW, WORD_ROW, NUMBER_ROW)
#undef SECTION_ROW
#undef TEXT_ROW
#undef WORD_ROW
#undef NUMBER_ROW
};

const struct setting *setting_find(const char *name)
{
    for (size_t i = 0; i < SETTING_COUNT; i++)
        if (settings[i].kind != SETTING_SECTION && strcmp(settings[i].name, name) == 0)
            return &settings[i];
    return NULL;
}

const char *setting_section(const struct setting *setting)
{
    while (setting->kind != SETTING_SECTION)
        setting--; /* the table begins with a section */
    return setting->name;
}

bool setting_section_exists(const char *name)
{
    for (size_t i = 0; i < SETTING_COUNT; i++)
        if (settings[i].kind == SETTING_SECTION && strcmp(settings[i].name, name) == 0)
            return true;
    return false;
}

bool setting_is_live(const struct setting *setting)
{
    static const size_t offsets[] = {
#define LIVE_OFFSET(name_) offsetof(struct config, name_),
        SETTING_LIVE_MAP(LIVE_OFFSET)
#undef LIVE_OFFSET
    };
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++)
        if (setting->kind != SETTING_SECTION && setting->offset == offsets[i])
            return true;
    return false;
}

static const struct unit {
    const char *suffix;
    unsigned shift;
} units[] = {{"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"", 0}};

enum { UNIT_COUNT = sizeof units / sizeof units[0] };

static bool is_size(const struct setting *setting)
{
    size_t length = strlen(setting->name);
    return length > 6 && strcmp(setting->name + length - 6, "_bytes") == 0;
}

/* Digits alone, or for sizes digits and a suffix. */
static bool number_read(const struct setting *setting, const char *text, uint64_t *ret)
{
    if (!isdigit((unsigned char)text[0]))
        return false; /* strtoull would take blanks and signs */
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno != 0)
        return false;
    for (size_t i = 0; i < UNIT_COUNT; i++) {
        bool allowed = units[i].shift == 0 || is_size(setting);
        if (allowed && strcmp(end, units[i].suffix) == 0)
            return !__builtin_mul_overflow(number, UINT64_C(1) << units[i].shift, ret);
    }
    return false;
}

/* The shortest spelling that number_read() reads back: 1GiB, 1536MiB, 0. */
static const char *number_spell(const struct setting *setting, uint64_t number,
                                char ret[SETTING_NAME_BYTES])
{
    size_t i = 0;
    if (!is_size(setting) || number == 0)
        i = UNIT_COUNT - 1;
    while ((number & ((UINT64_C(1) << units[i].shift) - 1)) != 0)
        i++;
    (void)snprintf(ret, SETTING_NAME_BYTES, "%" PRIu64 "%s", number >> units[i].shift,
                   units[i].suffix);
    return ret;
}

/* The index of a word in "one|two", or -1. */
static int word_find(const char *words, const char *word)
{
    size_t length = strlen(word);
    int index = 0;
    for (;; index++) {
        size_t span = strcspn(words, "|");
        if (span == length && memcmp(words, word, span) == 0)
            return index;
        if (words[span] == '\0')
            return -1;
        words += span + 1;
    }
}

/* The word at an index that word_find() gave. */
static const char *word_at(const char *words, unsigned index, char ret[SETTING_NAME_BYTES])
{
    for (; index > 0; index--)
        words += strcspn(words, "|") + 1;
    (void)snprintf(ret, SETTING_NAME_BYTES, "%.*s", (int)strcspn(words, "|"), words);
    return ret;
}

/* What a file cannot hold is refused from everywhere, so that --print-config can be read back. */
static bool text_is_printable(const char *text)
{
    size_t length = strlen(text);
    if (length > 0 && (isspace((unsigned char)text[0]) || isspace((unsigned char)text[length - 1])))
        return false;
    for (; *text != '\0'; text++)
        if (iscntrl((unsigned char)*text) || *text == ';')
            return false;
    return true;
}

static void *field_of(struct config *config, const struct setting *setting)
{
    return (char *)config + setting->offset;
}

static bool text_set(struct config *config, const struct setting *setting, const char *value)
{
    size_t length = strlen(value);
    if (length == 0 || length >= CONFIG_STRING_BYTES || !text_is_printable(value))
        return false;
    memcpy(field_of(config, setting), value, length + 1);
    return true;
}

static bool word_set(struct config *config, const struct setting *setting, const char *value)
{
    int index = word_find(setting->words, value);
    if (index < 0)
        return false;
    *(unsigned *)field_of(config, setting) = (unsigned)index;
    return true;
}

static bool number_set(struct config *config, const struct setting *setting, const char *value)
{
    uint64_t number;
    if (!number_read(setting, value, &number) || number < setting->min || number > setting->max)
        return false;
    *(uint64_t *)field_of(config, setting) = number;
    return true;
}

bool setting_set(struct config *config, const struct setting *setting, const char *value)
{
    assert(setting->kind != SETTING_SECTION);
    if (setting->kind == SETTING_TEXT)
        return text_set(config, setting, value);
    if (setting->kind == SETTING_WORD)
        return word_set(config, setting, value);
    return number_set(config, setting, value);
}

static size_t field_bytes(const struct setting *setting)
{
    return setting->kind == SETTING_TEXT   ? CONFIG_STRING_BYTES
           : setting->kind == SETTING_WORD ? sizeof(unsigned)
                                           : sizeof(uint64_t);
}

bool setting_equal(const struct setting *setting, const struct config *a, const struct config *b)
{
    const char *left = (const char *)a + setting->offset;
    const char *right = (const char *)b + setting->offset;
    if (setting->kind == SETTING_TEXT)
        return strcmp(left, right) == 0;
    return memcmp(left, right, field_bytes(setting)) == 0;
}

void setting_copy(const struct setting *setting, struct config *to, const struct config *from)
{
    assert(setting->kind != SETTING_SECTION);
    memcpy(field_of(to, setting), (const char *)from + setting->offset, field_bytes(setting));
}

void setting_set_defaults(struct config *config)
{
    *config = (struct config){0};
    for (const struct setting *s = settings; s < settings + SETTING_COUNT; s++) {
        if (s->kind == SETTING_SECTION)
            continue;
        if (s->kind == SETTING_NUMBER) {
            assert(s->min <= s->number && s->number <= s->max);
            *(uint64_t *)field_of(config, s) = s->number;
        } else {
            bool is_allowed = setting_set(config, s, s->text);
            assert(is_allowed);
        }
    }
}

void setting_allows(const struct setting *setting, char *ret, size_t size)
{
    char min[SETTING_NAME_BYTES], max[SETTING_NAME_BYTES];
    if (setting->kind == SETTING_WORD)
        (void)snprintf(ret, size, "one of %s", setting->words);
    else if (setting->kind == SETTING_TEXT)
        (void)snprintf(ret, size, "1 to %d bytes without control characters or ;",
                       CONFIG_STRING_BYTES - 1);
    else
        (void)snprintf(ret, size, "a whole number%s, %s to %s",
                       is_size(setting) ? " or one with KiB, MiB or GiB" : "",
                       number_spell(setting, setting->min, min),
                       number_spell(setting, setting->max, max));
}

void setting_spell(const struct setting *setting, const struct config *config,
                   char ret[CONFIG_STRING_BYTES])
{
    const void *field = (const char *)config + setting->offset;
    assert(setting->kind != SETTING_SECTION);
    if (setting->kind == SETTING_TEXT)
        (void)snprintf(ret, CONFIG_STRING_BYTES, "%s", (const char *)field);
    else if (setting->kind == SETTING_WORD)
        (void)word_at(setting->words, *(const unsigned *)field, ret);
    else
        (void)number_spell(setting, *(const uint64_t *)field, ret);
}

void setting_describe(const struct setting *setting, char *ret, size_t size)
{
    char value[SETTING_NAME_BYTES], min[SETTING_NAME_BYTES], max[SETTING_NAME_BYTES];
    const char *live = setting_is_live(setting) ? "; live" : "";
    if (setting->kind == SETTING_NUMBER)
        (void)snprintf(ret, size, "%s (default %s; %s to %s%s)", setting->help,
                       number_spell(setting, setting->number, value),
                       number_spell(setting, setting->min, min),
                       number_spell(setting, setting->max, max), live);
    else if (setting->kind == SETTING_WORD)
        (void)snprintf(ret, size, "%s (default %s; one of %s%s)", setting->help, setting->text,
                       setting->words, live);
    else
        (void)snprintf(ret, size, "%s (default %s%s)", setting->help, setting->text, live);
}

/* Levenshtein's distance, one row of its table at a time. */
unsigned name_distance(const char *a, const char *b)
{
    unsigned row[SETTING_NAME_BYTES + 1];
    size_t length = strnlen(b, SETTING_NAME_BYTES);
    for (unsigned j = 0; j <= length; j++)
        row[j] = j;
    for (unsigned i = 1; a[i - 1] != '\0'; i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (unsigned j = 1; j <= length; j++) {
            unsigned best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            best = best < row[j] + 1 ? best : row[j] + 1;
            row[j] = best < row[j - 1] + 1 ? best : row[j - 1] + 1;
        }
    }
    return row[length];
}
