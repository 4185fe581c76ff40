/* exposition.c - the text format of Prometheus (see exposition.h). */
#include "server/exposition.h"

#include <stdio.h>
#include <string.h>

void expose_family(struct exposition *exposition, const char *name, enum family_type type,
                   const char *help)
{
    static const char *const types[] = {
        [FAMILY_COUNTER] = "counter", [FAMILY_GAUGE] = "gauge", [FAMILY_HISTOGRAM] = "histogram"};
    exposition->name = name;
    text_printf(exposition->text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, types[type]);
}

/* A value's quotes, backslashes and line ends would end it or its line. */
static void print_value(struct text *text, const char *value)
{
    for (const char *special; *(special = value + strcspn(value, "\\\"\n")) != '\0';
         value = special + 1) {
        text_append(text, value, (size_t)(special - value));
        text_string(text, *special == '\n' ? "\\n" : *special == '"' ? "\\\"" : "\\\\");
    }
    text_string(text, value);
}

static void print_name(struct exposition *exposition, const char *suffix,
                       const struct label *labels)
{
    struct text *text = exposition->text;
    const char *separator = "{";
    text_string(text, exposition->name);
    text_string(text, suffix);
    for (; labels->name != NULL; labels++) {
        text_string(text, separator);
        text_string(text, labels->name);
        text_string(text, "=\"");
        print_value(text, labels->value);
        text_string(text, "\"");
        separator = ",";
    }
    text_string(text, *separator == ',' ? "} " : " ");
}

static void print_sample(struct exposition *exposition, const char *suffix,
                         const struct label *labels, uint64_t value)
{
    print_name(exposition, suffix, labels);
    text_uint(exposition->text, value);
    text_string(exposition->text, "\n");
}

enum { NUMBER_BYTES = 32 }; /* 20 digits, a point, as many zeros as callers want, and the NUL */

/* value / 10^decimals without zeros at its end ("0.5", "3"), somewhere in buffer. */
static const char *print_fixed(char buffer[static NUMBER_BYTES], uint64_t value, int decimals)
{
    char *first = buffer + NUMBER_BYTES - 1;
    *first = '\0';
    for (; decimals > 0 && value % 10 == 0; decimals--)
        value /= 10;
    for (int i = 0; i <= decimals || value > 0; i++, value /= 10) {
        if (i == decimals && i > 0)
            *--first = '.';
        *--first = (char)('0' + value % 10);
    }
    return first;
}

void expose_count(struct exposition *exposition, const struct label *labels, uint64_t value)
{
    print_sample(exposition, "", labels, value);
}

static void print_fixed_sample(struct exposition *exposition, const char *suffix,
                               const struct label *labels, uint64_t value, int decimals)
{
    char number[NUMBER_BYTES];
    print_name(exposition, suffix, labels);
    text_string(exposition->text, print_fixed(number, value, decimals));
    text_string(exposition->text, "\n");
}

void expose_fixed(struct exposition *exposition, const struct label *labels, uint64_t value,
                  int decimals)
{
    print_fixed_sample(exposition, "", labels, value, decimals);
}

void expose_durations(struct exposition *exposition, const struct histogram_tally *tally)
{
    uint64_t below = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        char number[NUMBER_BYTES];
        const char *bound = print_fixed(number, histogram_bound_us(i), 6);
        below += tally->bucket[i];
        print_sample(exposition, "_bucket", LABELS({"le", bound}), below);
    }
    print_sample(exposition, "_bucket", LABELS({"le", "+Inf"}), tally->count);
    print_fixed_sample(exposition, "_sum", LABELS(), tally->sum_ns, 9);
    print_sample(exposition, "_count", LABELS(), tally->count);
}

void expose_sizes(struct exposition *exposition, struct label label, const uint64_t *bucket,
                  unsigned bucket_count, uint64_t sum)
{
    uint64_t below = 0;
    for (unsigned i = 0; i < bucket_count; i++) {
        char bound[24];
        (void)snprintf(bound, sizeof bound, "%llu", 1ull << i);
        below += bucket[i];
        print_sample(exposition, "_bucket", LABELS(label, {"le", bound}), below);
    }
    below += bucket[bucket_count];
    print_sample(exposition, "_bucket", LABELS(label, {"le", "+Inf"}), below);
    print_sample(exposition, "_sum", LABELS(label), sum);
    print_sample(exposition, "_count", LABELS(label), below);
}
