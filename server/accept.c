/* accept.c - reading an Accept header (see accept.h). */
#include "server/accept.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

/* How closely range[0..size) names type: 0 not at all, 1 all types, 2 the type's family, 3
 * itself. */
static int specificity(const char *range, size_t size, const char *type)
{
    size_t family = strcspn(type, "/") + 1;
    if (size == strlen(type) && strncasecmp(range, type, size) == 0)
        return 3;
    if (size == family + 1 && strncasecmp(range, type, family) == 0 && range[family] == '*')
        return 2;
    return size == 3 && strncmp(range, "*/*", 3) == 0 ? 1 : 0;
}

/* "0.75" in thousandths; what is not a weight counts as 1. */
static unsigned parse_weight(const char *text)
{
    if (*text != '0')
        return 1000;
    unsigned weight = 0, place = 100;
    if (text[1] == '.')
        for (text += 2; *text >= '0' && *text <= '9' && place > 0; text++, place /= 10)
            weight += (unsigned)(*text - '0') * place;
    return weight;
}

/* The weight among the parameters in text[0..size): 1000 when there is none. */
static unsigned find_weight(const char *text, size_t size)
{
    const char *end = text + size;
    while ((text = memchr(text, ';', (size_t)(end - text))) != NULL) {
        text += 1 + strspn(text + 1, " \t");
        if ((*text == 'q' || *text == 'Q') && text[1] == '=')
            return parse_weight(text + 2);
    }
    return 1000;
}

unsigned accept_quality(const char *accept, const char *type)
{
    if (accept == NULL || accept[strspn(accept, " \t,")] == '\0')
        return 1000;
    int best = 0;
    unsigned quality = 0;
    while (*accept != '\0') {
        accept += strspn(accept, " \t,");
        size_t item = strcspn(accept, ","), range = strcspn(accept, " \t,;");
        int match = specificity(accept, range, type);
        if (match > best) {
            best = match;
            quality = find_weight(accept, item);
        }
        accept += item;
    }
    return quality;
}
