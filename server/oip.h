/* oip.h - the Open Inference Protocol: what it asks of a server of models, and inference.
 *
 * A model is a dot product of one element type (proto/oip.h), so its requests are computed as those
 * of /v1/dot are (dot.h). Below /v2 whatever is refused is told in the protocol's own form, and
 * after the body has been read to its end: the protocol's clients do not look for an answer before
 * they have sent all, and send it again when they find the connection closed.
 */
#ifndef SERVER_OIP_H
#define SERVER_OIP_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/error.h"

struct exchange;

/* Is the path one of the protocol's, served or not? */
bool oip_is_asked(const struct exchange *exchange);

/* /v2, /v2/health/live and /ready */
enum error oip_server(struct exchange *exchange, struct problem *problem);
enum error oip_live(struct exchange *exchange, struct problem *problem);
enum error oip_ready(struct exchange *exchange, struct problem *problem);

/* /v2/models/{model}, alone and with /ready, /config and /stats, /versions/{version} before
 * them. */
enum error oip_metadata(struct exchange *exchange, struct problem *problem);
enum error oip_model_ready(struct exchange *exchange, struct problem *problem);
enum error oip_config(struct exchange *exchange, struct problem *problem);
enum error oip_stats(struct exchange *exchange, struct problem *problem);

/* /v2/models/stats, /v2/repository/index; a body of the latter is read and changes nothing. */
enum error oip_all_stats(struct exchange *exchange, struct problem *problem);
enum error oip_index(struct exchange *exchange, struct problem *problem);
enum error oip_index_body(struct exchange *exchange, const char *data, size_t size,
                          struct problem *problem);

/* .../infer: the steps of route.h. */
enum error oip_infer_begin(struct exchange *exchange, struct problem *problem);
enum error oip_infer_body(struct exchange *exchange, const char *data, size_t size,
                          struct problem *problem);
enum error oip_infer_finish(struct exchange *exchange, struct problem *problem);
enum error oip_infer_resume(struct exchange *exchange, struct problem *problem);

#endif
