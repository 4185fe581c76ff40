/* multi.c - many calls at once (see dotd.h).
 *
 * curl tells which sockets it waits for and until when; both go into one epoll instance, whose
 * descriptor is all that a caller's loop has to know.
 */
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "answer.h"
#include "call.h"

enum { EVENTS = 64 };

struct pending {
    struct call *call;
    void *tag;
    CURLcode done;
    struct pending *next; /* in done, or in idle */
};

struct dotd_multi {
    struct account account;
    CURLM *curl;
    int epoll, timer;              /* -1 before they are open */
    struct pending *first, **last; /* done, in the order of their answers */
    struct pending *idle;          /* handles to be used again */
    struct pending **all;          /* [count], owned: idle, running or done */
    size_t count, capacity;
    size_t pending; /* running or done */
};

/* curl's callbacks; multi is their closure. */

static int on_socket(CURL *easy, curl_socket_t socket, int what, void *closure, void *known)
{
    struct dotd_multi *multi = closure;
    (void)easy;
    struct epoll_event event = {.data.fd = socket};
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(multi->epoll, EPOLL_CTL_DEL, socket, NULL);
        return 0;
    }
    if (what != CURL_POLL_OUT)
        event.events |= EPOLLIN;
    if (what != CURL_POLL_IN)
        event.events |= EPOLLOUT;
    if (epoll_ctl(multi->epoll, known != NULL ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, &event) != 0)
        return -1;
    curl_multi_assign(multi->curl, socket, multi); /* anything but NULL: it is known */
    return 0;
}

static int on_timer(CURLM *curl, long timeout_ms, void *closure)
{
    struct dotd_multi *multi = closure;
    struct itimerspec when = {0};
    (void)curl;
    if (timeout_ms == 0)
        when.it_value.tv_nsec = 1; /* zero would disarm */
    if (timeout_ms > 0) {
        when.it_value.tv_sec = timeout_ms / 1000;
        when.it_value.tv_nsec = timeout_ms % 1000 * 1000000;
    }
    return timerfd_settime(multi->timer, 0, &when, NULL) == 0 ? 0 : -1;
}

static enum dotd_code set_up(struct dotd_multi *multi)
{
    struct epoll_event event = {.events = EPOLLIN};
    multi->curl = curl_multi_init();
    multi->epoll = epoll_create1(EPOLL_CLOEXEC);
    multi->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    event.data.fd = multi->timer;
    if (multi->curl == NULL || multi->epoll < 0 || multi->timer < 0 ||
        epoll_ctl(multi->epoll, EPOLL_CTL_ADD, multi->timer, &event) != 0)
        return DOTD_NO_MEMORY;
    curl_multi_setopt(multi->curl, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(multi->curl, CURLMOPT_SOCKETDATA, multi);
    curl_multi_setopt(multi->curl, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(multi->curl, CURLMOPT_TIMERDATA, multi);
    return DOTD_OK;
}

enum dotd_code dotd_multi_open(struct dotd_multi **ret, const struct dotd_config *config,
                               struct dotd_error *error)
{
    struct dotd_multi *multi = calloc(1, sizeof *multi);
    if (multi == NULL)
        return error_set(error, DOTD_NO_MEMORY, "no memory for a client");
    multi->epoll = multi->timer = -1;
    multi->last = &multi->first;
    enum dotd_code code = account_init(&multi->account, config, error);
    if (code == DOTD_OK && set_up(multi) != DOTD_OK)
        code = error_set(error, DOTD_NO_MEMORY, "no memory or no descriptor for a curl handle");
    if (code != DOTD_OK) {
        dotd_multi_close(multi);
        return code;
    }
    *ret = multi;
    return DOTD_OK;
}

void dotd_multi_close(struct dotd_multi *multi)
{
    if (multi == NULL)
        return;
    for (size_t i = 0; i < multi->count; i++) {
        curl_multi_remove_handle(multi->curl, call_easy(multi->all[i]->call));
        call_destroy(multi->all[i]->call);
        free(multi->all[i]);
    }
    free(multi->all);
    curl_multi_cleanup(multi->curl); /* closes connections, and so calls on_socket() */
    if (multi->timer >= 0)
        close(multi->timer);
    if (multi->epoll >= 0)
        close(multi->epoll);
    account_fini(&multi->account);
    free(multi);
}

static bool make_room(struct dotd_multi *multi)
{
    if (multi->count < multi->capacity)
        return true;
    size_t capacity = multi->capacity > 0 ? 2 * multi->capacity : 16;
    struct pending **all = reallocarray(multi->all, capacity, sizeof *all);
    if (all == NULL)
        return false;
    multi->all = all;
    multi->capacity = capacity;
    return true;
}

/* An idle handle, or a new one. NULL: no memory. */
static struct pending *take(struct dotd_multi *multi)
{
    struct pending *pending = multi->idle;
    if (pending != NULL) {
        multi->idle = pending->next;
        return pending;
    }
    pending = calloc(1, sizeof *pending);
    if (pending == NULL || !make_room(multi) ||
        call_create(&pending->call, &multi->account) != DOTD_OK) {
        free(pending);
        return NULL;
    }
    curl_easy_setopt(call_easy(pending->call), CURLOPT_PRIVATE, pending);
    multi->all[multi->count++] = pending;
    return pending;
}

static void put_back(struct dotd_multi *multi, struct pending *pending)
{
    pending->next = multi->idle;
    multi->idle = pending;
}

enum dotd_code dotd_multi_add(struct dotd_multi *multi, const void *a, const void *b, size_t n,
                              const struct dotd_options *options, void *tag,
                              struct dotd_error *error)
{
    struct pending *pending = take(multi);
    if (pending == NULL)
        return error_set(error, DOTD_NO_MEMORY, "no memory for a call");
    enum dotd_code code = call_begin(pending->call, a, b, n, options, error);
    if (code == DOTD_OK && curl_multi_add_handle(multi->curl, call_easy(pending->call)) != CURLM_OK)
        code = error_set(error, DOTD_NO_MEMORY, "no memory for a call");
    if (code != DOTD_OK) {
        put_back(multi, pending);
        return code;
    }
    pending->tag = tag;
    multi->pending++;
    return DOTD_OK;
}

int dotd_multi_fd(const struct dotd_multi *multi)
{
    return multi->epoll;
}

size_t dotd_multi_pending(const struct dotd_multi *multi)
{
    return multi->pending;
}

static void act(struct dotd_multi *multi, const struct epoll_event *event)
{
    int running, what = 0;
    if (event->data.fd == multi->timer) {
        uint64_t expirations;
        if (read(multi->timer, &expirations, sizeof expirations) < 0)
            return; /* set anew by an event before this one */
        curl_multi_socket_action(multi->curl, CURL_SOCKET_TIMEOUT, 0, &running);
        return;
    }
    if (event->events & EPOLLIN)
        what |= CURL_CSELECT_IN;
    if (event->events & EPOLLOUT)
        what |= CURL_CSELECT_OUT;
    if (event->events & (EPOLLERR | EPOLLHUP))
        what |= CURL_CSELECT_ERR;
    curl_multi_socket_action(multi->curl, event->data.fd, what, &running);
}

static void gather(struct dotd_multi *multi)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(multi->curl, &left)) != NULL) {
        struct pending *pending = NULL;
        CURL *easy = message->easy_handle;
        CURLcode done = message->data.result; /* gone with the handle */
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&pending);
        curl_multi_remove_handle(multi->curl, easy);
        pending->done = done;
        pending->next = NULL;
        *multi->last = pending;
        multi->last = &pending->next;
    }
}

void dotd_multi_wait(struct dotd_multi *multi, int timeout_ms)
{
    struct epoll_event event[EVENTS];
    if (multi->first != NULL)
        timeout_ms = 0; /* there is something for dotd_multi_next() */
    int count = epoll_wait(multi->epoll, event, EVENTS, timeout_ms);
    for (int i = 0; i < count; i++)
        act(multi, &event[i]);
    gather(multi);
}

void dotd_multi_step(struct dotd_multi *multi)
{
    dotd_multi_wait(multi, 0);
}

int dotd_multi_next(struct dotd_multi *multi, void **tag, enum dotd_code *code,
                    struct dotd_result *ret, struct dotd_error *error)
{
    struct pending *pending = multi->first;
    if (pending == NULL)
        return 0;
    multi->first = pending->next;
    if (multi->first == NULL)
        multi->last = &multi->first;
    *tag = pending->tag;
    *code = call_end(pending->call, pending->done, ret, error);
    multi->pending--;
    put_back(multi, pending);
    return 1;
}
