/* config.h - every setting: its name, default, bounds and meaning, in one table.
 *
 * Door: config_load() reads, in rising order, the defaults, config file, environment (DOTD_NAME)
 * and command line (--name=value). --help, --print-config, config/dotd.ini, GET /v1/limits and the
 * tests all come from SETTING_MAP, so a new setting is one row.
 */
#ifndef SERVER_CONFIG_H
#define SERVER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { CONFIG_THREADS_MAX = 256 };  /* of http_threads, also when it is 0 */
enum { CONFIG_STRING_BYTES = 160 }; /* name and text fit the 198 bytes that inih keeps of a line */

/* S(name, default, help)             text
 * E(name, default, "one|two", help)  one word of a list; the field is its index
 * N(name, default, min, max, help)   whole number; *_bytes take the suffixes KiB, MiB and GiB
 * Sections become [section] lines of the file. */
#define SETTING_MAP(SECTION, S, E, N)                                                              \
    SECTION("listen")                                                                              \
    S(listen, "127.0.0.1:8080",                                                                    \
      "address:port to listen on; [::1]:8080 for IPv6, port 0 for any free one. Sockets handed "   \
      "over by systemd are used instead when there are some.")                                     \
    N(http_threads, 0, 0, CONFIG_THREADS_MAX, "threads that speak HTTP; 0: one a core")            \
    N(max_connections, 16384, 1, 1048576, "connections at once; further ones wait in the backlog") \
    SECTION("processes")                                                                           \
    E(supervise, "on", "off|on",                                                                   \
      "on: one process holds the port, another serves and is replaced when it dies or hangs")      \
    N(hang_timeout_ms, 30000, 0, 3600000,                                                          \
      "a thread that has been busy with one thing for so long is hung; 0: none ever is")           \
    N(restart_pause_max_ms, 5000, 0, 600000,                                                       \
      "longest pause before the next process is started while they keep failing")                  \
    SECTION("limits")                                                                              \
    N(max_body_bytes, 1ull << 30, 1, 1ull << 40, "largest request body")                           \
    N(memory_budget_bytes, 0, 0, 1ull << 44,                                                       \
      "memory for all operands together; 0: a quarter of what control group and ulimit allow")     \
    N(max_results, 1ull << 20, 1, 1ull << 32, "most dot products in one request")                  \
    N(head_timeout_ms, 10000, 100, 3600000, "a request's head must be complete within this time")  \
    N(body_timeout_ms, 120000, 100, 86400000, "a body must be complete within this time")          \
    N(idle_timeout_ms, 60000, 100, 86400000, "a kept-alive connection may be idle for so long")    \
    N(write_timeout_ms, 60000, 100, 86400000,                                                      \
      "a client must have read its answer within this time")                                       \
    N(job_timeout_ms, 60000, 1, 86400000,                                                          \
      "a result must be ready within this time, unless the request's timeout_ms asks for less")    \
    N(drain_timeout_ms, 30000, 0, 3600000, "after SIGTERM, accepted work may take so long")        \
    SECTION("devices")                                                                             \
    E(cuda, "auto", "off|auto", "auto: use every CUDA device that opens")                          \
    N(pinned_bytes, 256ull << 20, 0, 1ull << 40, "operand memory pinned at start, where CUDA is")  \
    N(device_bytes, 256ull << 20, 1ull << 20, 1ull << 40, "staging memory on each CUDA device")    \
    N(queue_jobs, 4096, 1, 1048576, "jobs that may wait for one device")                           \
    N(queue_bytes, 0, 0, 1ull << 44, "operand bytes that may wait; 0: the memory budget")          \
    N(client_share_percent, 75, 1, 100,                                                            \
      "of both, what one client's address may take; 100: all, as behind a proxy")                  \
    N(batch_jobs, 1024, 1, 65536, "most jobs in one launch")                                       \
    N(inline_terms, 1ull << 20, 0, 1ull << 40,                                                     \
      "a CPU job of at most so many products, of 8-byte elements half and of 16-byte ones a "      \
      "quarter as many, is computed by the HTTP thread itself")                                    \
    N(cuda_min_bytes, 0, 0, 1ull << 44,                                                            \
      "device auto sends jobs of at least so many operand bytes to CUDA, smaller ones to the "     \
      "CPU; 0: each to where it is expected to be done first")                                     \
    SECTION("lab")                                                                                 \
    E(lab, "on", "off|on", "serve /v1/lab/: experiments, one after the other on a thread apart")   \
    N(lab_jobs, 16, 1, 1024, "experiments and named kernels that may wait for that thread")        \
    SECTION("answers")                                                                             \
    E(accuracy, "exact", "exact|fast", "what a request that does not say gets")                    \
    E(console, "on", "off|on", "browsers that ask for / get a page instead of JSON")               \
    SECTION("log")                                                                                 \
    E(log_level, "info", "debug|info|warning|error", "least severe line that is written")          \
    E(log_format, "auto", "auto|text|json", "auto: text on a terminal, JSON lines elsewhere")      \
    E(access_log, "off", "off|on", "a line for each request, at info")

/* What SIGHUP changes while dotd runs. Everything else is read at the start of a process. */
#define SETTING_LIVE_MAP(X) \
    X(hang_timeout_ms)      \
    X(restart_pause_max_ms) \
    X(max_body_bytes)       \
    X(max_results)          \
    X(head_timeout_ms)      \
    X(body_timeout_ms)      \
    X(idle_timeout_ms)      \
    X(write_timeout_ms)     \
    X(job_timeout_ms)       \
    X(drain_timeout_ms)     \
    X(accuracy)             \
    X(log_level)            \
    X(access_log)

struct config {
#define CONFIG_SECTION(name)
#define CONFIG_S(name, ...) char name[CONFIG_STRING_BYTES];
#define CONFIG_E(name, ...) unsigned name;
#define CONFIG_N(name, ...) uint64_t name;
    SETTING_MAP(CONFIG_SECTION, CONFIG_S, CONFIG_E, CONFIG_N)
#undef CONFIG_SECTION
#undef CONFIG_S
#undef CONFIG_E
#undef CONFIG_N
};

enum config_action {
    CONFIG_RUN,     /* start the daemon */
    CONFIG_HELP,    /* --help */
    CONFIG_VERSION, /* --version */
    CONFIG_CHECK,   /* --check-config FILE: it was read and is in order */
    CONFIG_PRINT,   /* --print-config: the settings in force, as a file */
    CONFIG_USAGE,   /* only beside a failure: the command line itself is wrong */
};

/* Reads everything. On failure (unknown key, value out of bounds, unreadable file, unknown flag)
 * returns false with one line in message that names the place, the key and what is allowed;
 * *ret_action is then CONFIG_USAGE when the place is the command line, and CONFIG_RUN otherwise.
 * The file is --config FILE, else $DOTD_CONFIG, else none. CONFIG_CHECK reads the file alone, not
 * the environment, and leaves "FILE: ok" in message. */
bool config_load(struct config *ret, enum config_action *ret_action, int argc, char **argv,
                 char *message, size_t message_size);

/* The same for a process that other processes follow. *copy is a memfd that holds the file's bytes:
 * they are read from there; -1: the file is read, and *copy becomes such a copy unless there is no
 * file. So all of them go by one text, whatever happens to the file meanwhile. */
bool config_load_copy(struct config *ret, enum config_action *ret_action, int argc, char **argv,
                      int *copy, char *message, size_t message_size);

/* A copy of the file as it is, whether or not it is in order; -1 with errno. There must be one. */
int config_copy_file(int argc, char **argv);

/* Makes copy hold what from holds; a reader at the same moment may see neither. -1 for either:
 * not. */
void config_copy_update(int copy, int from);

void config_help(FILE *out);
void config_print(FILE *out, const struct config *config); /* a complete, commented dotd.ini */

/* The least of what the control groups around this process (v2 and v1), its own limits (RLIMIT_AS,
 * RLIMIT_DATA) and the machine allow, bytes.
 * The second form finds proc/ and sys/ under a root other than "", for tests. */
uint64_t config_memory_limit(void);
uint64_t config_memory_limit_under(const char *root);

/* Calls back for every numeric setting, with its value in force: GET /v1/limits. */
void config_each_number(const struct config *config,
                        void (*each)(void *context, const char *name, uint64_t value),
                        void *context);

#endif
