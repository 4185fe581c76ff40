/* oip_path.h - which model a path is about. Private to server/oip*.c. */
#ifndef SERVER_OIP_PATH_H
#define SERVER_OIP_PATH_H

#include "proto/oip.h"

struct exchange;

/* ERR_NOT_FOUND names the models that there are, or the version. */
enum error oip_path_model(const struct exchange *exchange, const struct oip_model **ret,
                          struct problem *problem);

#endif
