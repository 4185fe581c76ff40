/* lifeline.h - what ties a process that serves, a worker, to the one that supervises it.
 *
 * Door: the supervisor makes a lifeline for each worker, lifeline_pass() leads it through exec, and
 * the worker finds it with lifeline_adopt(). It is a shared page, whose descriptor is named by one
 * variable of the environment, and a pair of connected sockets: the page says what the worker gets
 * (listening sockets, the copy of the configuration file), whether it is the last, and until when
 * all of it was seen to move; the worker says words: ready, failed, replace me.
 */
#ifndef SERVER_LIFELINE_H
#define SERVER_LIFELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "server/listen.h"

enum { LIFELINE_TEXT_BYTES = 512 }; /* of a word's text, with the NUL */

/* Between two beats of a worker, and between two looks of its supervisor: an eighth of the time
 * after which it hangs (0: that is nobody's business), within bounds. */
uint64_t lifeline_period_ms(uint64_t hang_timeout_ms);

/* Which of the supervisor's workers a process is. Fixed at its start. */
struct lineage {
    uint32_t generation;     /* 1 for the first; 0 where nobody supervises */
    uint32_t restarts_total; /* workers lost before it; those that were replaced on request, or
                                tried behind a stopgap, do not count */
    char last_reason[96];    /* why the one before went; "" for the first */
    bool is_stopgap;         /* serves without CUDA until one with it is ready */
    bool had_cuda;           /* the last that was to have it had it: one without it is a stopgap */
};

/* What a worker says, once each. Values are what travels. */
enum lifeline_word {
    LIFELINE_READY = 'R',  /* serves from now on; the text tells of CUDA, or is "" */
    LIFELINE_FAILED = 'F', /* does not start; the text says why */
    LIFELINE_REPLACE =
        'L', /* must go, and serves until its successor is ready; the text says why */
};

/* The text of LIFELINE_READY. */
#define LIFELINE_HAS_CUDA   "cuda"    /* a device is in order */
#define LIFELINE_LACKS_CUDA "no cuda" /* none is, but one was and is to be */

struct lifeline_page; /* layout in lifeline.c */

struct lifeline {
    struct lifeline_page *page; /* mapped by both */
    int page_fd;
    int talk; /* this side's socket; non-blocking */
    int peer; /* the worker's, until it is started; then -1 */
};

/* ---- the supervisor's side ---- */

/* copy: of config_load_copy(); -1: none. False with errno. */
bool lifeline_create(struct lifeline *ret, const struct listen_set *sockets, int copy,
                     const struct lineage *lineage);
void lifeline_close(struct lifeline *lifeline); /* takes one that is closed */

/* In the child, between fork and exec: lets the descriptors through and names the page. */
bool lifeline_pass(const struct lifeline *lifeline);
void lifeline_passed(struct lifeline *lifeline); /* in the parent, after the fork */

/* The next word that came, or 0. text, of LIFELINE_TEXT_BYTES, is "" for a word without one. */
enum lifeline_word lifeline_hear(struct lifeline *lifeline, char *text);

/* The worker is about to be told to go, and none follows it: it refuses new work meanwhile. */
void lifeline_set_last(struct lifeline *lifeline);

/* Until when everything in the worker was seen to move, CLOCK_MONOTONIC; 0: it has not begun. part,
 * of LIFELINE_TEXT_BYTES, is what it waits for since then. */
int64_t lifeline_well_ns(const struct lifeline *lifeline, char *part);

/* ---- the worker's side ---- */

enum lifeline_adoption {
    LIFELINE_NONE,    /* nobody passed one: this is no worker */
    LIFELINE_ADOPTED, /* *ret, and its descriptors, are this process's */
    LIFELINE_BROKEN,  /* this is a worker whose supervisor is gone or of another version */
};

/* Before there are threads: reads and clears the variable. A variable that does not lead to a page
 * of a supervisor's is none. */
enum lifeline_adoption lifeline_adopt(struct lifeline *ret);

void lifeline_sockets(const struct lifeline *lifeline, struct listen_set *ret);
int lifeline_copy(const struct lifeline *lifeline);
struct lineage lifeline_lineage(const struct lifeline *lifeline);
pid_t lifeline_supervisor(const struct lifeline *lifeline);
bool lifeline_is_orphan(const struct lifeline *lifeline); /* the supervisor has died */
bool lifeline_is_last(const struct lifeline *lifeline);

/* From any thread. Nobody to hear it is no failure. */
void lifeline_say(const struct lifeline *lifeline, enum lifeline_word word, const char *text);

/* The main thread, again and again. part: what has not moved since; "" for nothing. */
void lifeline_beat(const struct lifeline *lifeline, int64_t well_ns, const char *part);

#endif
