/* Ends connections whose client is too slow.
 *
 * libmicrohttpd's own time-out counts inactivity only, so a client that sends a byte now and then holds its
 * connection for ever, and before the last header has come our code is not even told of the request. The kernel
 * knows when each socket last received something: later than the last answer means that the next request has begun. */
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

struct http_watch {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t stopping;
    bool stop;
    int64_t limit_us, first_byte_us;
    struct http_connection *first;
    unsigned count;
};

void http_watch_phase(struct http_connection *c, enum http_phase phase)
{
    if (!c)
        return;
    int64_t now_us = monotonic_us();
    if (phase == HTTP_IDLE)
        atomic_store(&c->answered_us, now_us);
    atomic_store(&c->since_us, now_us);
    atomic_store(&c->phase, phase);
}

/* Has the client closed its side in the middle of a request? What it sent before, perhaps a whole request, may have to be
 * read still, or is being read now: so only when a second look finds that nothing has changed. */
static bool has_gone(struct http_connection *c, int64_t since_us)
{
    int unread = 0;
    if (ioctl(c->fd, FIONREAD, &unread) != 0 || unread > 0)
        return false;
    bool unchanged = c->gone_since_us == since_us;
    c->gone_since_us = since_us;
    return unchanged;
}

/* Is it the client's fault that nothing moves? Also where it has gone in the middle of a request: libmicrohttpd
 * notices that only when it next reads. */
static bool is_to_be_cut(const struct http_watch *watch, struct http_connection *c, int64_t now_us)
{
    /* Against the order in which they are written: with a phase never comes the time of one before it, which may have been
     * long, so that a reply would be cut as it begins. */
    enum http_phase phase = (enum http_phase)atomic_load(&c->phase);
    int64_t since_us = atomic_load(&c->since_us), answered_us = atomic_load(&c->answered_us);
    if (c->begun_us < answered_us) /* of the request before, if nobody looked between the two */
        c->begun_us = 0;
    if (phase == HTTP_SERVING || phase == HTTP_REPLYING) {
        c->begun_us = 0;
        return phase == HTTP_REPLYING && now_us - since_us > watch->limit_us;
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
        return !answered_us && now_us - since_us > watch->first_byte_us;
    }
    if (c->begun_us == 0)
        c->begun_us = since_us > received_us ? since_us : received_us;
    return now_us - c->begun_us > watch->limit_us;
}

static void *watch_connections(void *arg)
{
    struct http_watch *watch = arg;
    int64_t shorter_us = watch->limit_us < watch->first_byte_us ? watch->limit_us : watch->first_byte_us;
    int64_t tick_us = shorter_us / 8 < 1000000 ? shorter_us / 8 : 1000000;
    pthread_mutex_lock(&watch->mutex);
    while (!watch->stop) {
        int64_t next_us = monotonic_us() + tick_us;
        struct timespec until = {.tv_sec = next_us / 1000000, .tv_nsec = next_us % 1000000 * 1000};
        pthread_cond_clockwait(&watch->stopping, &watch->mutex, CLOCK_MONOTONIC, &until);
        int64_t now_us = monotonic_us();
        for (struct http_connection *c = watch->first; c; c = c->next)
            if (is_to_be_cut(watch, c, now_us))
                shutdown(c->fd, SHUT_RDWR); /* libmicrohttpd then closes it */
    }
    pthread_mutex_unlock(&watch->mutex);
    return NULL;
}

struct http_watch *http_watch_start(int64_t ms, int64_t first_byte_ms)
{
    struct http_watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        return NULL;
    watch->limit_us = ms * 1000;
    watch->first_byte_us = first_byte_ms * 1000;
    pthread_mutex_init(&watch->mutex, NULL);
    pthread_cond_init(&watch->stopping, NULL);
    if (pthread_create(&watch->thread, NULL, watch_connections, watch) != 0) {
        free(watch);
        return NULL;
    }
    return watch;
}

void http_watch_stop(struct http_watch *watch)
{
    if (!watch)
        return;
    pthread_mutex_lock(&watch->mutex);
    watch->stop = true;
    pthread_cond_signal(&watch->stopping);
    pthread_mutex_unlock(&watch->mutex);
    pthread_join(watch->thread, NULL);
    pthread_cond_destroy(&watch->stopping);
    pthread_mutex_destroy(&watch->mutex);
    free(watch);
}

struct http_connection *http_watch_add(struct http_watch *watch, int fd)
{
    struct http_connection *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->fd = fd;
    atomic_init(&c->since_us, monotonic_us());
    pthread_mutex_lock(&watch->mutex);
    c->next = watch->first;
    if (watch->first)
        watch->first->previous = c;
    watch->first = c;
    watch->count++;
    pthread_mutex_unlock(&watch->mutex);
    return c;
}

void http_watch_remove(struct http_watch *watch, struct http_connection *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&watch->mutex);
    if (c->previous)
        c->previous->next = c->next;
    else
        watch->first = c->next;
    if (c->next)
        c->next->previous = c->previous;
    watch->count--;
    pthread_mutex_unlock(&watch->mutex);
    free(c);
}

unsigned http_watch_count(struct http_watch *watch)
{
    pthread_mutex_lock(&watch->mutex);
    unsigned count = watch->count;
    pthread_mutex_unlock(&watch->mutex);
    return count;
}
