/* settle.h - what the 0 of a setting stands for on this machine. */
#ifndef SERVER_SETTLE_H
#define SERVER_SETTLE_H

#include "server/config.h"

/* Puts in what 0 stands for, so that GET /v1/limits shows what is in force, and makes
 * max_connections true: raises the process's limit of descriptors, or lowers the setting and logs
 * that. */
void settle(struct config *config);

#endif
