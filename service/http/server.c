/* The HTTP server: its threads, and how it starts and ends.
 *
 * Each HTTP thread runs a daemon of libmicrohttpd, which passes every piece of a request to exchange.c. A complete request is
 * dispatched. If that hands it to a worker, the connection is suspended. When the worker has replied, it resumes the
 * connection, and the library calls exchange.c once more to take the reply.
 *
 * The threads are ours because the library's own threads sleep when they should not: after they took exactly as many events as
 * they ask for at once (128), they wait for more before they look at those. Clients that all wait for their replies send
 * none (0.9.75 to 0.9.77, MHD_epoll). So we wait, and have the library look without waiting. It then has no way to learn that
 * a connection is resumed, and we wake its thread ourselves. */
#include "service/http/internal.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    CONNECTION_MEMORY = 14 * 1024, /* per connection: bounds the headers of a request */
    ACCEPT_BACKLOG = 4096,
    DRAIN_LOOK_NS = 2000000,
    LONGEST_WAIT_MS = 60000,
};

struct http *http_server;
_Thread_local struct loop *http_own_loop;

/* Any thread. */
static void wake(struct loop *loop)
{
    if (!atomic_exchange(&loop->woken, true))
        (void)eventfd_write(loop->wake_fd, 1);
}

void http_hand_over(struct exchange *x)
{
    MHD_suspend_connection(x->transport);
}

void http_finish(struct exchange *x)
{
    struct loop *loop = x->loop; /* the exchange may be gone when the connection is resumed */
    MHD_resume_connection(x->transport);
    if (loop) /* an exchange without a server has none */
        wake(loop);
}

static unsigned connections_of(const struct loop *loop)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(loop->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    return info ? info->num_connections : 0;
}

/* At the limit of connections, the library takes new ones only in the run after the one in which some ended. If all ended in
 * one run, no event would cause the next run. */
static void run_once(const struct loop *loop)
{
    unsigned before = connections_of(loop);
    MHD_run(loop->daemon);
    if (connections_of(loop) < before)
        MHD_run(loop->daemon);
}

/* Clears the wake-up before the library looks which connections are resumed: one that comes later is not lost. */
static void *run_loop(void *arg)
{
    struct loop *loop = http_own_loop = arg;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(loop->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    struct pollfd fds[] = {{.fd = info->epoll_fd, .events = POLLIN}, {.fd = loop->wake_fd, .events = POLLIN}};
    while (!atomic_load(&loop->stop)) {
        MHD_UNSIGNED_LONG_LONG ms;
        int wait_ms = -1;
        if (MHD_get_timeout(loop->daemon, &ms) == MHD_YES)
            wait_ms = ms < LONGEST_WAIT_MS ? (int)ms : LONGEST_WAIT_MS;
        bool has_work = wait_ms == 0 &&
                        !atomic_load(&loop->woken); /* then a look at them is a call for nothing */
        if (!has_work && poll(fds, 2, wait_ms) > 0 && fds[1].revents) {
            eventfd_t unused;
            (void)eventfd_read(loop->wake_fd, &unused);
            atomic_exchange(&loop->woken, false);
        }
        run_once(loop);
    }
    return NULL;
}

/* We decode what we need ourselves: a decoded path could hide a slash or end at a NUL. */
static size_t leave_escapes(void *unused, struct MHD_Connection *connection, char *text)
{
    (void)unused;
    (void)connection;
    return strlen(text);
}

/* A daemon that takes connections from LISTENING, or listens itself where that is invalid. */
static struct MHD_Daemon *new_daemon(const struct http_options *options, MHD_socket listening)
{
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    if (options->address->sa_family == AF_INET6)
        flags |= MHD_USE_IPv6;
    struct sockaddr_storage address = {0}; /* the library takes no const one */
    memcpy(&address, options->address, options->address_size);
    struct MHD_OptionItem items[] = {
        {MHD_OPTION_SOCK_ADDR, 0, (void *)&address},
        {MHD_OPTION_LISTEN_BACKLOG_SIZE, ACCEPT_BACKLOG, NULL},
        {MHD_OPTION_CONNECTION_LIMIT, (options->connections + options->threads - 1) / options->threads, NULL},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, NULL},
        {MHD_OPTION_CONNECTION_TIMEOUT, options->idle_timeout_ms / 1000, NULL},
        {MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL},
        {MHD_OPTION_UNESCAPE_CALLBACK, (intptr_t)leave_escapes, NULL},
        {MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)http_on_uri, NULL},
        {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)http_on_completed, NULL},
        {MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)http_on_connection, NULL},
        {listening != MHD_INVALID_SOCKET ? MHD_OPTION_LISTEN_SOCKET : MHD_OPTION_END, listening, NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    return MHD_start_daemon(flags, 0, NULL, NULL, http_on_request, NULL, MHD_OPTION_EXTERNAL_LOGGER,
                            http_log_from_library, NULL, MHD_OPTION_ARRAY, items, MHD_OPTION_END);
}

/* The threads share the socket that the first daemon listens on. */
static bool start_loops(struct http *http)
{
    for (unsigned i = 0; i < http->options.threads; i++) {
        struct loop *loop = &http->loops[i];
        loop->daemon = new_daemon(&http->options, http->listening);
        if (!loop->daemon)
            return false;
        if (i == 0)
            http->listening = MHD_get_daemon_info(loop->daemon, MHD_DAEMON_INFO_LISTEN_FD)->listen_fd;
        loop->wake_fd = eventfd(0, EFD_CLOEXEC);
        if (loop->wake_fd >= 0 && pthread_create(&loop->thread, NULL, run_loop, loop) == 0) {
            http->loop_count++;
            continue;
        }
        if (loop->wake_fd >= 0)
            close(loop->wake_fd);
        MHD_quiesce_daemon(loop->daemon);
        MHD_stop_daemon(loop->daemon);
        return false;
    }
    return true;
}

struct http *http_start(const struct http_options *options, char *error, size_t error_size)
{
    struct http *http = calloc(1, sizeof *http);
    if (!http)
        return NULL;
    http->options = *options;
    http->listening = MHD_INVALID_SOCKET;
    if (getrandom(&http->id_prefix, sizeof http->id_prefix, 0) != sizeof http->id_prefix)
        http->id_prefix = (uint64_t)monotonic_us();
    http->timeouts = http_timeouts_start(options->request_timeout_ms, options->first_byte_ms);
    http->peers = http_peers_new(options->connections_per_address, options->connections_of_loopback,
                                 options->calls_per_address);
    http_server = http;
    if (http->timeouts && http->peers && start_loops(http))
        return http;
    snprintf(error, error_size, "%s", errno ? strerrordesc_np(errno) : "libmicrohttpd did not start");
    http_stop_listening(http);
    http_stop(http);
    return NULL;
}

uint16_t http_port(const struct http *http)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->loops[0].daemon, MHD_DAEMON_INFO_BIND_PORT);
    return info ? info->port : 0;
}

void http_stop_listening(struct http *http)
{
    for (unsigned i = 0; i < http->loop_count; i++)
        (void)MHD_quiesce_daemon(http->loops[i].daemon);
    if (http->listening != MHD_INVALID_SOCKET)
        shutdown(http->listening, SHUT_RDWR); /* or clients would connect, and wait for nobody */
}

int http_drain(struct http *http, int64_t ms, int *ret_unread)
{
    int64_t until_us = monotonic_us() + ms * 1000;
    int left;
    while ((left = atomic_load(&http->in_flight)) > 0 && monotonic_us() < until_us) {
        struct timespec pause = {.tv_nsec = DRAIN_LOOK_NS};
        nanosleep(&pause, NULL);
    }
    *ret_unread = left > 0 ? atomic_load(&http->unread) : 0; /* later requests are none of those */
    return left;
}

void http_stop(struct http *http)
{
    for (unsigned i = 0; i < http->loop_count; i++) {
        struct loop *loop = &http->loops[i];
        atomic_store(&loop->stop, true);
        wake(loop);
        pthread_join(loop->thread, NULL);
        MHD_stop_daemon(loop->daemon);
        close(loop->wake_fd);
    }
    if (http->listening != MHD_INVALID_SOCKET)
        close(http->listening);
    http_timeouts_stop(http->timeouts);
    http_peers_free(http->peers);
    free(http);
    http_server = NULL;
}

unsigned http_connections(void)
{
    return http_timeouts_count(http_server->timeouts);
}
