/* setting.h - the rows of SETTING_MAP at run time: looked up, set from text, spelled as text.
 *
 * Door: for config.c, which knows where values come from; here is only what a value may be.
 */
#ifndef SERVER_SETTING_H
#define SERVER_SETTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/config.h"

enum setting_kind { SETTING_SECTION, SETTING_TEXT, SETTING_WORD, SETTING_NUMBER };

struct setting {
    enum setting_kind kind;
    const char *name;  /* of a section: the section's */
    size_t offset;     /* of the field in struct config */
    const char *text;  /* default of a text or word */
    const char *words; /* "one|two" */
    uint64_t number, min, max;
    const char *help;
};

enum {
#define ONE(...) +1
    SETTING_COUNT = SETTING_MAP(ONE, ONE, ONE, ONE), /* rows, sections among them */
#undef ONE
    SETTING_NAME_BYTES = 64 /* of a name in any spelling, with the NUL */
};

extern const struct setting settings[SETTING_COUNT]; /* in the order of the file */

const struct setting *setting_find(const char *name);       /* NULL: there is none */
const char *setting_section(const struct setting *setting); /* the section that it stands in */
bool setting_section_exists(const char *name);
bool setting_is_live(const struct setting *setting); /* SIGHUP changes it: SETTING_LIVE_MAP */

/* Reads value into the setting's field. False when it is not allowed: config is untouched. */
bool setting_set(struct config *config, const struct setting *setting, const char *value);
void setting_set_defaults(struct config *config);

bool setting_equal(const struct setting *setting, const struct config *a, const struct config *b);
void setting_copy(const struct setting *setting, struct config *to, const struct config *from);

/* What setting_set() takes, to stand after "must be": "one of off|auto". */
void setting_allows(const struct setting *setting, char *ret, size_t size);

/* The value in the shortest spelling that setting_set() reads back: 1GiB, 1536MiB, auto. */
void setting_spell(const struct setting *setting, const struct config *config,
                   char ret[CONFIG_STRING_BYTES]);

/* "largest request body (default 1GiB; 1 to 1024GiB; live)" */
void setting_describe(const struct setting *setting, char *ret, size_t size);

/* Letters to insert, delete or replace to make b of a. Names are short. */
unsigned name_distance(const char *a, const char *b);

#endif
