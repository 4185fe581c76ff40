/* systemd.h - what the service manager is told: ready, stopping, alive. No-ops elsewhere.
 * Source: sd_notify(3), the protocol it documents. */
#ifndef SERVER_SYSTEMD_H
#define SERVER_SYSTEMD_H

#include <stdint.h>

void systemd_notify(const char *state); /* "READY=1", "STOPPING=1", "WATCHDOG=1" */
uint64_t systemd_watchdog_us(void);     /* how often WATCHDOG=1 is due at the latest; 0: never */

#endif
