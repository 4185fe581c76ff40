/* contract.h - proto/openapi.yaml and openapi.json, held in the binary. */
#ifndef SERVER_CONTRACT_H
#define SERVER_CONTRACT_H

#include <stddef.h>

#include "proto/error.h"

struct exchange;

enum error contract_yaml(struct exchange *exchange, struct problem *problem); /* /openapi.yaml */
enum error contract_json(struct exchange *exchange, struct problem *problem); /* /openapi.json */

/* The latter's text. */
const char *contract_json_text(size_t *ret_size);

#endif
