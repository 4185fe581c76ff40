/* http_bare.c - the least that libmicrohttpd can do: what dotd is measured against.
 *
 * Usage: http_bare MODE THREADS. Prints "http_bare listening on PORT", serves until it is killed.
 *   fixed    throws the body away and sends an answer of 200 bytes, made once
 *   fresh    the same, with an answer made for each request that has dotd's size and headers
 *   suspend  the same, but each request sleeps until a worker thread has seen it
 *   jansson  reads a JSON body with jansson, computes the dot product and sends it
 * All modes: epoll inside libmicrohttpd, a pool of THREADS, memory for connections as dotd has it.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <jansson.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ANSWER_BYTES = 200,
    FRESH_BYTES = 406, /* as dotd tells one float64 */
    CONNECTION_BYTES = 40 << 10,
    GROWTH_BYTES = 64 << 10,
    CONNECTIONS = 16384,
    BACKLOG = 4096
};
enum mode { MODE_FIXED, MODE_FRESH, MODE_SUSPEND, MODE_JANSSON, MODE_COUNT };
static const char *const mode_names[MODE_COUNT] = {"fixed", "fresh", "suspend", "jansson"};

/* One request; the library's *req_cls. */
struct call {
    struct MHD_Connection *connection;
    struct call *next; /* worker.lock, while it waits */
    bool is_back;      /* the worker has seen it */
    char *body;        /* MODE_JANSSON only; owned */
    size_t size;
};

struct worker {
    pthread_mutex_t lock;
    pthread_cond_t not_empty; /* lock */
    struct call *waiting;     /* lock; newest first */
};

struct server {
    enum mode mode;             /* fixed */
    struct MHD_Response *fixed; /* fixed; shared by all answers of ANSWER_BYTES */
    struct worker worker;       /* MODE_SUSPEND only */
    struct MHD_Daemon *daemon;
};

static void worker_push(struct worker *worker, struct call *call)
{
    pthread_mutex_lock(&worker->lock);
    call->next = worker->waiting;
    worker->waiting = call;
    pthread_cond_signal(&worker->not_empty);
    pthread_mutex_unlock(&worker->lock);
}

static struct call *worker_take_all(struct worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    while (worker->waiting == NULL)
        pthread_cond_wait(&worker->not_empty, &worker->lock);
    struct call *calls = worker->waiting;
    worker->waiting = NULL;
    pthread_mutex_unlock(&worker->lock);
    return calls;
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    for (;;) {
        struct call *next;
        for (struct call *call = worker_take_all(worker); call != NULL; call = next) {
            next = call->next; /* the call may end as soon as it is resumed */
            call->is_back = true;
            MHD_resume_connection(call->connection);
        }
    }
    return NULL;
}

static void keep(struct call *call, const char *data, size_t size)
{
    call->body = realloc(call->body, call->size + size);
    assert(call->body != NULL);
    memcpy(call->body + call->size, data, size);
    call->size += size;
}

static double dot_of_body(const struct call *call)
{
    json_t *root = json_loadb(call->body, call->size, 0, NULL);
    const json_t *a = json_object_get(root, "a"), *b = json_object_get(root, "b");
    double sum = 0;
    for (size_t i = 0; i < json_array_size(a) && i < json_array_size(b); i++)
        sum += json_number_value(json_array_get(a, i)) * json_number_value(json_array_get(b, i));
    json_decref(root);
    return sum;
}

static enum MHD_Result answer_computed(struct MHD_Connection *connection, const struct call *call)
{
    char text[64];
    int size = snprintf(text, sizeof text, "{\"result\": %.17g}\n", dot_of_body(call));
    struct MHD_Response *response =
        MHD_create_response_from_buffer((size_t)size, text, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

/* What the library costs whoever has something to say. */
static enum MHD_Result answer_fresh(struct MHD_Connection *connection)
{
    static char text[FRESH_BYTES];
    struct MHD_Response *response =
        MHD_create_response_from_buffer(sizeof text, text, MHD_RESPMEM_PERSISTENT);
    MHD_add_response_header(response, "Content-Type", "application/json");
    MHD_add_response_header(response, "X-Request-Id", "0123456789abcdef");
    MHD_add_response_header(response, "Server-Timing",
                            "receive;dur=0.002684, decode;dur=0.003795, queue;dur=0.000571, "
                            "copy_in;dur=0.000000, compute;dur=0.000862, copy_out;dur=0.000000, "
                            "total;dur=0.007912");
    enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result finish(struct server *server, struct call *call)
{
    if (server->mode == MODE_JANSSON)
        return answer_computed(call->connection, call);
    if (server->mode == MODE_FRESH)
        return answer_fresh(call->connection);
    if (server->mode == MODE_SUSPEND && !call->is_back) {
        MHD_suspend_connection(call->connection);
        worker_push(&server->worker, call);
        return MHD_YES;
    }
    return MHD_queue_response(call->connection, MHD_HTTP_OK, server->fixed);
}

static enum MHD_Result on_request(void *closure, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *data_size, void **request)
{
    (void)url, (void)method, (void)version;
    struct server *server = closure;
    struct call *call = *request;
    if (call == NULL) { /* the head has come */
        call = calloc(1, sizeof *call);
        if (call == NULL)
            return MHD_NO;
        call->connection = connection;
        *request = call;
        return MHD_YES;
    }
    if (*data_size == 0)
        return finish(server, call);
    if (server->mode == MODE_JANSSON)
        keep(call, data, *data_size);
    *data_size = 0;
    return MHD_YES;
}

static void on_completed(void *closure, struct MHD_Connection *connection, void **request,
                         enum MHD_RequestTerminationCode code)
{
    (void)closure, (void)connection, (void)code;
    struct call *call = *request;
    if (call != NULL)
        free(call->body);
    free(call);
}

static int listen_on_loopback(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, BACKLOG) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
        perror("http_bare");
        exit(1);
    }
    printf("http_bare listening on %u\n", (unsigned)ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

static struct MHD_Response *fixed_response(void)
{
    static char text[ANSWER_BYTES + 1];
    (void)snprintf(text, sizeof text, "{\"result\": 32.0, \"fill\": \"%0*d\"}\n", ANSWER_BYTES - 29,
                   0);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(ANSWER_BYTES, text, MHD_RESPMEM_PERSISTENT);
    MHD_add_response_header(response, "Content-Type", "application/json");
    return response;
}

static void serve(struct server *server, unsigned threads)
{
    pthread_t thread;
    if (server->mode == MODE_SUSPEND &&
        pthread_create(&thread, NULL, worker_main, &server->worker) != 0)
        exit(1);
    server->daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, server,
        MHD_OPTION_LISTEN_SOCKET, listen_on_loopback(), MHD_OPTION_NOTIFY_COMPLETED, on_completed,
        NULL, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
        MHD_OPTION_CONNECTION_MEMORY_INCREMENT, (size_t)GROWTH_BYTES, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)CONNECTIONS, MHD_OPTION_THREAD_POOL_SIZE, threads > 1 ? threads : 0,
        MHD_OPTION_END);
    if (server->daemon == NULL) {
        fprintf(stderr, "http_bare: libmicrohttpd does not start\n");
        exit(1);
    }
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    static struct server server = {
        .worker = {.lock = PTHREAD_MUTEX_INITIALIZER, .not_empty = PTHREAD_COND_INITIALIZER}};
    int threads = argc == 3 ? atoi(argv[2]) : 0;
    while (argc == 3 && server.mode < MODE_COUNT && strcmp(argv[1], mode_names[server.mode]) != 0)
        server.mode++;
    if (argc != 3 || server.mode == MODE_COUNT || threads < 1) {
        fprintf(stderr, "usage: http_bare fixed|fresh|suspend|jansson THREADS\n");
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    server.fixed = fixed_response();
    serve(&server, (unsigned)threads);
}
