/* child.h - one worker as its supervisor sees it: a process, its lifeline, its state.
 *
 * Door: child_start() forks and executes the image; child_hung_ms() watches it;
 * child_order() and child_kill() end it; child_bury() once it is reaped. The states are a line,
 * with shortcuts to its end:
 *
 *   STARTING ──▶ SERVING ──▶ LEAVING ──▶ (reaped)    KILLED: no longer reckoned with
 *       └───────────┴───────────┴──▶ KILLED ──▶ (reaped)
 *
 * The supervisor has one thread.
 */
#ifndef SERVER_CHILD_H
#define SERVER_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "server/lifeline.h"

enum child_state { CHILD_NONE, CHILD_STARTING, CHILD_SERVING, CHILD_LEAVING, CHILD_KILLED };

/* What a worker is made from. */
struct image {
    int exe;  /* the program, O_PATH; -1: there is no image */
    int copy; /* of the configuration file, config_load_copy(); -1: there is no file */
};

struct child {
    enum child_state state;
    pid_t pid;
    uint32_t generation;
    bool is_renewal;     /* made from a new image, on request */
    bool is_stopgap;     /* another is to follow that has CUDA, which this one has not */
    bool wants_to_go;    /* has said LIFELINE_REPLACE */
    int64_t since_ns;    /* when the state began */
    int64_t deadline_ns; /* it is killed then; INT64_MAX: not */
    struct lifeline lifeline;
    char failure[LIFELINE_TEXT_BYTES]; /* why it does not start, once it has said so */
};

/* The program at path as it is now, so that it stays the same whatever happens to the path. False
 * with errno. */
bool image_open(struct image *ret, const char *path, int copy);
void image_close(struct image *image); /* takes none */

/* ret->state is CHILD_STARTING then. False with errno. */
bool child_start(struct child *ret, const struct image *image, char **argv,
                 const struct listen_set *sockets, const struct lineage *lineage);

/* Sends the signal and moves it to LEAVING or KILLED; after_ms later it is killed for good. */
void child_order(struct child *child, int signal, enum child_state state, uint64_t after_ms);
void child_kill(struct child *child);

void child_enter(struct child *child, enum child_state state); /* from now on, without a deadline */
uint64_t child_age_ms(const struct child *child);              /* of its state */

/* How long a serving one has not moved; part, of LIFELINE_TEXT_BYTES, gets what hangs. */
uint64_t child_hung_ms(const struct child *child, char *part);

void child_bury(struct child *child); /* reaped: closes what was kept for it */

/* "exited with status 1", "died of SIGKILL". */
void child_describe_end(int wait_status, char *ret, size_t size);

#endif
