/* reload.c - what a configuration read again changes (see reload.h). */
#include "server/reload.h"

#include <stdio.h>
#include <string.h>

#include "server/setting.h"

/* The names of all settings fit: there are a few dozen, of a dozen letters each. */
static void name_add(char names[RELOAD_NAMES_BYTES], const char *name)
{
    size_t size = strlen(names);
    (void)snprintf(names + size, RELOAD_NAMES_BYTES - size, "%s%s", size > 0 ? ", " : "", name);
}

void reload_apply(struct config *read, struct config *in_force, const struct config *again,
                  struct reload *ret)
{
    *ret = (struct reload){.applied = ""};
    for (const struct setting *s = settings; s < settings + SETTING_COUNT; s++) {
        if (s->kind == SETTING_SECTION || setting_equal(s, read, again))
            continue;
        if (!setting_is_live(s)) {
            name_add(ret->waiting, s->name);
            continue;
        }
        name_add(ret->applied, s->name);
        setting_copy(s, read, again);
        setting_copy(s, in_force, again);
    }
}
