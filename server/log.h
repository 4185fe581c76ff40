/* log.h - the daemon's log: one line an event, text on a terminal, JSON lines otherwise.
 *
 * Door: log_event() from any thread; a line is one write(2) to stderr, so lines never mix. Only
 * server/ logs: proto/ and gpu/ return errors. Values are escaped: a client cannot forge a line.
 */
#ifndef SERVER_LOG_H
#define SERVER_LOG_H

#include <stdint.h>

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARNING, LOG_LEVEL_ERROR };
enum log_format { LOG_FORMAT_AUTO, LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

enum { LOG_PROCESS_BYTES = 24 }; /* "worker-4294967295", with the NUL */

struct log_field {
    const char *key;
    const char *string; /* NULL: number is the value */
    int64_t number;
};

#define LOG_S(key_, value_)               \
    {                                     \
        .key = (key_), .string = (value_) \
    }
#define LOG_N(key_, value_)                        \
    {                                              \
        .key = (key_), .number = (int64_t)(value_) \
    }

/* process: a field of every line, plain ASCII of LOG_PROCESS_BYTES at most; NULL: one process
 * writes them all. Before there are other threads. */
void log_open(enum log_level level, enum log_format format, const char *process);
void log_set_level(enum log_level level); /* from any thread */

/* log_event(LOG_LEVEL_INFO, "listening", LOG_S("address", text), LOG_N("port", port)) writes
 *   2026-11-29T20:15:34.123Z info listening address=127.0.0.1 port=8080
 * or the same as {"time":..., "level":"info", "event":"listening", "address":..., "port":8080}. */
#define log_event(level, event, ...) \
    log_write((level), (event), (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){.key = 0}})
void log_write(enum log_level level, const char *event, const struct log_field *fields);

#endif
