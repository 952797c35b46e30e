/* Closes connections whose client is too slow.
 *
 * libmicrohttpd's own timeout counts inactivity only, so a client that sends a byte now and then would keep its connection for
 * ever. libmicrohttpd also calls us only after the last header. But the kernel knows when a socket last received data: if that
 * is later than the last reply, the next request has begun. */
#include "service/http/timeouts.h"

#include "base/clock.h"

#include <linux/tcp.h> /* its struct tcp_info counts the bytes; the one of libc does not */
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum { TCP_CLOSE_WAIT = 8 };         /* the kernel's number for "the peer has closed its side" */
enum { CLOCK_GRAIN_US = 10 * 1000 }; /* how coarsely the kernel remembers when data came */

struct http_timeouts {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t stopping;
    bool stop;
    int64_t limit_us, first_byte_us;
    LIST_HEAD(, http_connection) connections;
    unsigned count;
};

void http_timeouts_phase(struct http_connection *c, enum http_phase phase)
{
    if (!c)
        return;
    int64_t now_us = monotonic_us();
    if (phase == HTTP_IDLE)
        atomic_store(&c->answered_us, now_us);
    atomic_store(&c->since_us, now_us);
    atomic_store(&c->phase, phase);
}

/* Has the client closed its side in the middle of a request? The HTTP thread may still have to read what the client sent
 * before. So the answer is yes only when nothing is unread and a second look finds no change. */
static bool has_gone(struct http_connection *c, int64_t since_us)
{
    int unread = 0;
    if (ioctl(c->fd, FIONREAD, &unread) != 0 || unread > 0)
        return false;
    bool unchanged = c->gone_since_us == since_us;
    c->gone_since_us = since_us;
    return unchanged;
}

/* Is the client too slow? Also true if the client has gone in the middle of a request, because libmicrohttpd notices that only
 * when it next reads. */
static bool is_to_be_cut(const struct http_timeouts *timeouts, struct http_connection *c, int64_t now_us)
{
    /* The loads are in the reverse order of the stores in http_timeouts_phase. So the time is never that of an earlier phase,
     * which may have begun long ago: a reply would then be cut as soon as it begins. */
    enum http_phase phase = (enum http_phase)atomic_load(&c->phase);
    int64_t since_us = atomic_load(&c->since_us), answered_us = atomic_load(&c->answered_us);
    if (c->begun_us < answered_us) /* of the request before, if nobody looked between the two */
        c->begun_us = 0;
    if (phase == HTTP_SERVING || phase == HTTP_REPLYING) {
        c->begun_us = 0;
        return phase == HTTP_REPLYING && now_us - since_us > timeouts->limit_us;
    }
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    if (getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
        return false;
    if (info.tcpi_state == TCP_CLOSE_WAIT && has_gone(c, since_us))
        return true;
    int64_t received_us = now_us - (int64_t)info.tcpi_last_data_recv * 1000;
    bool has_begun = answered_us ? received_us > since_us + CLOCK_GRAIN_US : info.tcpi_bytes_received > 0;
    if (phase == HTTP_IDLE && !has_begun) {
        c->begun_us = 0;
        return !answered_us && now_us - since_us > timeouts->first_byte_us;
    }
    if (c->begun_us == 0)
        c->begun_us = since_us > received_us ? since_us : received_us;
    return now_us - c->begun_us > timeouts->limit_us;
}

static void *check_connections(void *arg)
{
    struct http_timeouts *timeouts = arg;
    int64_t shorter_us = timeouts->limit_us < timeouts->first_byte_us ? timeouts->limit_us
                                                                      : timeouts->first_byte_us;
    int64_t tick_us = shorter_us / 8 < 1000000 ? shorter_us / 8 : 1000000;
    pthread_mutex_lock(&timeouts->mutex);
    while (!timeouts->stop) {
        (void)wait_until(&timeouts->stopping, &timeouts->mutex, monotonic_us() + tick_us);
        int64_t now_us = monotonic_us();
        for (struct http_connection *c = LIST_FIRST(&timeouts->connections); c; c = LIST_NEXT(c, others))
            if (is_to_be_cut(timeouts, c, now_us))
                shutdown(c->fd, SHUT_RDWR); /* libmicrohttpd then closes it */
    }
    pthread_mutex_unlock(&timeouts->mutex);
    return NULL;
}

struct http_timeouts *http_timeouts_start(int64_t ms, int64_t first_byte_ms)
{
    struct http_timeouts *timeouts = calloc(1, sizeof *timeouts);
    if (!timeouts)
        return NULL;
    timeouts->limit_us = ms * 1000;
    timeouts->first_byte_us = first_byte_ms * 1000;
    pthread_mutex_init(&timeouts->mutex, NULL);
    pthread_cond_init(&timeouts->stopping, NULL);
    if (pthread_create(&timeouts->thread, NULL, check_connections, timeouts) != 0) {
        free(timeouts);
        return NULL;
    }
    return timeouts;
}

void http_timeouts_stop(struct http_timeouts *timeouts)
{
    if (!timeouts)
        return;
    pthread_mutex_lock(&timeouts->mutex);
    timeouts->stop = true;
    pthread_cond_signal(&timeouts->stopping);
    pthread_mutex_unlock(&timeouts->mutex);
    pthread_join(timeouts->thread, NULL);
    pthread_cond_destroy(&timeouts->stopping);
    pthread_mutex_destroy(&timeouts->mutex);
    free(timeouts);
}

struct http_connection *http_timeouts_add(struct http_timeouts *timeouts, int fd)
{
    struct http_connection *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->fd = fd;
    atomic_init(&c->since_us, monotonic_us());
    pthread_mutex_lock(&timeouts->mutex);
    LIST_INSERT_HEAD(&timeouts->connections, c, others);
    timeouts->count++;
    pthread_mutex_unlock(&timeouts->mutex);
    return c;
}

void http_timeouts_remove(struct http_timeouts *timeouts, struct http_connection *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&timeouts->mutex);
    LIST_REMOVE(c, others);
    timeouts->count--;
    pthread_mutex_unlock(&timeouts->mutex);
    free(c);
}

unsigned http_timeouts_count(struct http_timeouts *timeouts)
{
    pthread_mutex_lock(&timeouts->mutex);
    unsigned count = timeouts->count;
    pthread_mutex_unlock(&timeouts->mutex);
    return count;
}
