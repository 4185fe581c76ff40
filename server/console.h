/* console.h - the page that people see: the files of clients/web, held in the binary.
 *
 * Door: two handlers of the table of routes. Everything is answered with an ETag and a policy that
 * lets the page load, run and call nothing but this daemon.
 */
#ifndef SERVER_CONSOLE_H
#define SERVER_CONSOLE_H

#include <stdbool.h>

#include "proto/error.h"

struct exchange;

/* True when the console is on and the client likes HTML better than JSON, as browsers do. */
bool console_is_wanted(const struct exchange *exchange);

enum error console_page(struct exchange *exchange, struct problem *problem);  /* of GET / */
enum error console_asset(struct exchange *exchange, struct problem *problem); /* below /console/ */

#endif
