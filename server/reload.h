/* reload.h - a configuration read again while dotd runs: what of it counts at once. */
#ifndef SERVER_RELOAD_H
#define SERVER_RELOAD_H

#include "server/config.h"

enum { RELOAD_NAMES_BYTES = 1024 };

/* Names of settings, "log_level, access_log"; "" for none. */
struct reload {
    char applied[RELOAD_NAMES_BYTES]; /* live, and changed */
    char waiting[RELOAD_NAMES_BYTES]; /* changed, but read at a process's start only */
};

/* *read is what the process goes by, as it was read, and *in_force the same with every 0 settled:
 * both get the live settings of *again. What waits is named each time, as long as it waits. */
void reload_apply(struct config *read, struct config *in_force, const struct config *again,
                  struct reload *ret);

#endif
