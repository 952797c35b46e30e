/* Orders under way, many at once, on one thread that never waits: libcurl's multi interface behind epoll. */
#include "loadtest/openloop/transfer.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/client/http_request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define EVENTS_MAX 16 /* between two looks at the schedule */
#define OTHER_FILES 64
#define REPLY_KEPT 1024  /* enough of a problem to know which */
#define WAIT_MAX_MS 1000 /* of one epoll_wait; the timer ends it in time */

struct transfer {
    TAILQ_ENTRY(transfer) link; /* among the free or those under way */
    CURL *easy;
    size_t tag;
    char *url;
    char body[80];
    struct http_reply reply;
};

TAILQ_HEAD(transfer_list, transfer);

struct transfers {
    CURLM *multi;
    struct curl_slist *headers;
    int epoll, timer;
    int64_t timer_us; /* what the timer is set to */
    int64_t curl_us;  /* when libcurl wants to be called; INT64_MAX: it does not */
    struct transfer *all;
    size_t count, under_way_count;
    struct transfer_list free, under_way; /* the latter by their start */
    bool connecting;                      /* requests are no orders yet */
    size_t refused;                       /* of those */
    void (*ended)(void *context, const struct transfer_end *end);
    void *context;
};

/* ---- what libcurl asks for ----------------------------------------------------------------------------- */

static int watch_socket(CURL *easy, curl_socket_t socket, int what, void *context, void *is_watched)
{
    (void)easy;
    struct transfers *transfers = context;
    struct epoll_event event = {.data.fd = socket};
    event.events = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
    if (what == CURL_POLL_REMOVE) {
        /* It may be closed already, and then it is no longer watched either. */
        (void)epoll_ctl(transfers->epoll, EPOLL_CTL_DEL, socket, NULL);
        return 0;
    }
    if (epoll_ctl(transfers->epoll, is_watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, &event) != 0)
        return -1;
    return curl_multi_assign(transfers->multi, socket, transfers) == CURLM_OK ? 0 : -1;
}

static int set_curl_timer(CURLM *multi, long ms, void *context)
{
    (void)multi;
    struct transfers *transfers = context;
    transfers->curl_us = ms < 0 ? INT64_MAX : monotonic_us() + ms * 1000;
    return 0;
}

/* ---- opening and closing ------------------------------------------------------------------------------- */

static bool prepare(struct transfers *transfers, struct transfer *transfer, const char *service)
{
    transfer->easy = curl_easy_init();
    char *first = NULL; /* asked for nothing but to open the connection */
    if (asprintf(&transfer->url, "%s/orders", service) < 0)
        transfer->url = NULL;
    if (asprintf(&first, "%s/healthz", service) < 0)
        first = NULL;
    if (!transfer->easy || !transfer->url || !first) {
        free(first);
        return false;
    }
    CURL *easy = transfer->easy;
    /* The order may have been made, and a second one is no part of the schedule. */
    transfer->reply = (struct http_reply){.most = REPLY_KEPT, .once = true};
    http_request_prepare(easy, first, transfers->headers, 0, &transfer->reply);
    free(first);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
    TAILQ_INSERT_TAIL(&transfers->free, transfer, link);
    return true;
}

static bool prepare_all(struct transfers *transfers, const struct testbed *testbed)
{
    transfers->multi = curl_multi_init();
    transfers->headers = curl_slist_append(NULL, "Content-Type: application/json");
    transfers->all = calloc(transfers->count, sizeof *transfers->all);
    transfers->epoll = epoll_create1(EPOLL_CLOEXEC);
    transfers->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = transfers->timer};
    if (!transfers->multi || !transfers->headers || !transfers->all || transfers->epoll < 0 ||
        transfers->timer < 0 || epoll_ctl(transfers->epoll, EPOLL_CTL_ADD, transfers->timer, &event) != 0)
        return false;
    curl_multi_setopt(transfers->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
    curl_multi_setopt(transfers->multi, CURLMOPT_SOCKETDATA, transfers);
    curl_multi_setopt(transfers->multi, CURLMOPT_TIMERFUNCTION, set_curl_timer);
    curl_multi_setopt(transfers->multi, CURLMOPT_TIMERDATA, transfers);
    curl_multi_setopt(transfers->multi, CURLMOPT_MAXCONNECTS, (long)transfers->count);
    for (size_t i = 0; i < transfers->count; i++)
        if (!prepare(transfers, &transfers->all[i], service_client_url(testbed->clients[i % testbed->count])))
            return false;
    return true;
}

/* A file descriptor for each connection, and some for the rest of the program. */
static bool allow_sockets(size_t count)
{
    struct rlimit limit;
    rlim_t needed = (rlim_t)count + OTHER_FILES;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed)
        return true;
    limit.rlim_cur = needed;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

struct transfers *transfers_open(const struct testbed *testbed, size_t count,
                                 void (*ended)(void *context, const struct transfer_end *end), void *context)
{
    struct transfers *transfers = calloc(1, sizeof *transfers);
    if (!transfers) {
        complain("out of memory");
        return NULL;
    }
    transfers->count = count;
    transfers->epoll = transfers->timer = -1;
    transfers->curl_us = INT64_MAX;
    transfers->ended = ended;
    transfers->context = context;
    TAILQ_INIT(&transfers->free);
    TAILQ_INIT(&transfers->under_way);
    if (allow_sockets(count) && prepare_all(transfers, testbed))
        return transfers;
    complain("not enough memory for %zu connections: %s", count, strerror(errno));
    transfers_close(transfers);
    return NULL;
}

void transfers_close(struct transfers *transfers)
{
    if (!transfers)
        return;
    for (size_t i = 0; transfers->all && i < transfers->count; i++) {
        struct transfer *transfer = &transfers->all[i];
        if (transfer->easy) {
            curl_multi_remove_handle(transfers->multi, transfer->easy); /* where it is there */
            curl_easy_cleanup(transfer->easy);
        }
        free(transfer->url);
        http_reply_free(&transfer->reply);
    }
    curl_multi_cleanup(transfers->multi);
    curl_slist_free_all(transfers->headers);
    free(transfers->all);
    if (transfers->epoll >= 0)
        close(transfers->epoll);
    if (transfers->timer >= 0)
        close(transfers->timer);
    free(transfers);
}

/* ---- starting and ending ------------------------------------------------------------------------------- */

bool transfers_free(const struct transfers *transfers)
{
    return !TAILQ_EMPTY(&transfers->free);
}

size_t transfers_under_way(const struct transfers *transfers)
{
    return transfers->under_way_count;
}

/* Libcurl sends within this call, unless there is no connection yet. */
static bool push(struct transfers *transfers, struct transfer *transfer)
{
    http_reply_begin(&transfer->reply);
    TAILQ_REMOVE(&transfers->free, transfer, link);
    TAILQ_INSERT_TAIL(&transfers->under_way, transfer, link);
    transfers->under_way_count++;
    int running;
    CURLMcode code = curl_multi_add_handle(transfers->multi, transfer->easy);
    if (code == CURLM_OK)
        code = curl_multi_socket_action(transfers->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    if (code != CURLM_OK)
        complain("an order cannot be sent: %s", curl_multi_strerror(code));
    return code == CURLM_OK;
}

bool transfer_start(struct transfers *transfers, size_t tag, int64_t product, int64_t quantity)
{
    struct transfer *transfer = TAILQ_FIRST(&transfers->free);
    int length = snprintf(transfer->body, sizeof transfer->body,
                          "{\"product_id\":%" PRId64 ",\"quantity\":%" PRId64 "}", product, quantity);
    transfer->tag = tag;
    curl_easy_setopt(transfer->easy, CURLOPT_POSTFIELDSIZE, (long)length);
    curl_easy_setopt(transfer->easy, CURLOPT_POSTFIELDS, transfer->body);
    return push(transfers, transfer);
}

/* Frees it for the next order. Where it has not ended, its connection is closed. */
static void pull(struct transfers *transfers, struct transfer *transfer)
{
    curl_multi_remove_handle(transfers->multi, transfer->easy);
    TAILQ_REMOVE(&transfers->under_way, transfer, link);
    TAILQ_INSERT_TAIL(&transfers->free, transfer, link);
    transfers->under_way_count--;
}

size_t transfers_oldest(const struct transfers *transfers)
{
    return TAILQ_FIRST(&transfers->under_way)->tag;
}

void transfers_abandon_oldest(struct transfers *transfers)
{
    pull(transfers, TAILQ_FIRST(&transfers->under_way));
}

static void collect_ended(struct transfers *transfers)
{
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(transfers->multi, &left));) {
        struct transfer *transfer;
        CURLcode code = message->data.result; /* gone once the handle is removed */
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&transfer);
        struct transfer_end end = {
            .answered = code == CURLE_OK,
            .answer = answer_of(http_request_status(message->easy_handle), http_reply_text(&transfer->reply),
                                transfer->reply.length),
            .tag = transfer->tag,
        };
        pull(transfers, transfer);
        if (transfers->connecting)
            transfers->refused += !end.answered;
        else
            transfers->ended(transfers->context, &end);
    }
}

bool transfers_connect(struct transfers *transfers, int64_t ms)
{
    int64_t end_us = monotonic_us() + ms * 1000;
    bool ok = true;
    transfers->connecting = true;
    for (size_t i = 0; ok && i < transfers->count; i++) {
        curl_easy_setopt(transfers->all[i].easy, CURLOPT_HTTPGET, 1L);
        ok = push(transfers, &transfers->all[i]);
    }
    while (ok && transfers->under_way_count > 0 && monotonic_us() < end_us && !interrupted())
        ok = transfers_work(transfers, end_us);
    if (ok && !interrupted() && (transfers->under_way_count > 0 || transfers->refused > 0)) {
        complain("%zu connections: %zu could not be opened", transfers->count,
                 transfers->under_way_count + transfers->refused);
        ok = false;
    }
    transfers->connecting = false;
    for (size_t i = 0; i < transfers->count; i++)
        curl_easy_setopt(transfers->all[i].easy, CURLOPT_URL, transfers->all[i].url);
    return ok && !interrupted();
}

/* ---- working ------------------------------------------------------------------------------------------- */

static bool act(struct transfers *transfers, curl_socket_t socket, int what)
{
    int running;
    CURLMcode code = curl_multi_socket_action(transfers->multi, socket, what, &running);
    if (code != CURLM_OK)
        complain("libcurl: %s", curl_multi_strerror(code));
    collect_ended(transfers);
    return code == CURLM_OK;
}

/* Epoll counts in milliseconds; the timer ends its wait to the microsecond. */
static bool set_timer(struct transfers *transfers, int64_t at_us)
{
    if (at_us == transfers->timer_us)
        return true;
    struct itimerspec at = {.it_value = {.tv_sec = at_us / 1000000, .tv_nsec = at_us % 1000000 * 1000}};
    if (timerfd_settime(transfers->timer, TFD_TIMER_ABSTIME, &at, NULL) != 0) {
        complain("cannot create a timer: %s", strerror(errno));
        return false;
    }
    transfers->timer_us = at_us;
    return true;
}

static bool on_event(struct transfers *transfers, const struct epoll_event *event)
{
    if (event->data.fd == transfers->timer) {
        uint64_t times;
        if (read(transfers->timer, &times, sizeof times) == sizeof times)
            transfers->timer_us = 0;
        return true;
    }
    int what = (event->events & EPOLLIN ? CURL_CSELECT_IN : 0) |
               (event->events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
               (event->events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
    return act(transfers, event->data.fd, what);
}

bool transfers_work(struct transfers *transfers, int64_t until_us)
{
    struct epoll_event events[EVENTS_MAX];
    collect_ended(transfers); /* what ended as it was sent */
    if (monotonic_us() >= transfers->curl_us) {
        transfers->curl_us = INT64_MAX;
        if (!act(transfers, CURL_SOCKET_TIMEOUT, 0))
            return false;
    }
    int64_t wake_us = until_us < transfers->curl_us ? until_us : transfers->curl_us;
    bool waits = wake_us > monotonic_us();
    if (waits && !set_timer(transfers, wake_us))
        return false;
    int count = epoll_wait(transfers->epoll, events, EVENTS_MAX, waits ? WAIT_MAX_MS : 0);
    if (count < 0 && errno != EINTR) {
        complain("epoll: %s", strerror(errno));
        return false;
    }
    for (int i = 0; i < count; i++)
        if (!on_event(transfers, &events[i]))
            return false;
    return true;
}
