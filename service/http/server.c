/* The HTTP server. It is the only file that calls libmicrohttpd.
 *
 * Each HTTP thread runs a daemon of the library's, which calls on_request for every piece of a request. A complete one is
 * dispatched; where that hands it to a worker the connection is suspended, and resumed when the worker is done, which
 * makes the library call on_request once more to take the reply.
 *
 * The threads are ours because the library's own sleep when they should not: having taken exactly as many events at
 * once as they ask for (128), they wait for more before they look at those. A crowd that waits for its answers sends
 * none (0.9.75 to 0.9.77, MHD_epoll). So we wait, and have the library look without waiting; then it has no way either
 * to be told that a connection is resumed, and we wake its thread ourselves. */
#include "service/http/server.h"

#include "base/clock.h"
#include "base/log.h"
#include "service/http/peers.h"
#include "service/http/problem.h"
#include "service/http/timeouts.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
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

/* One thread and what it runs. */
struct loop {
    pthread_t thread;
    struct MHD_Daemon *daemon;
    int wake_fd;       /* an eventfd: a connection is resumed, or stop set */
    atomic_bool woken; /* wake_fd is readable, or about to be */
    atomic_bool stop;
    struct exchange *reading; /* its requests whose headers are not all in; only its thread uses the list */
};

struct http {
    struct loop loops[HTTP_THREADS_MAX];
    unsigned loop_count;
    struct http_timeouts *timeouts;
    struct http_peers *peers;
    struct http_options options;
    MHD_socket listening;
    uint64_t id_prefix;
    atomic_ullong id_count;
    atomic_int in_flight; /* requests that are complete and whose reply is not yet out */
};

/* Exchanges find their server through the one that runs: a process has one. */
static struct http *server;
static _Thread_local struct loop *own_loop; /* of an HTTP thread */

static bool is_sane_id(const char *id)
{
    size_t length = strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-");
    return length >= 1 && length <= 64 && !id[length];
}

static void identify(struct exchange *x)
{
    const char *given = http_header(x, "X-Request-Id");
    if (given && is_sane_id(given))
        snprintf(x->request_id, sizeof x->request_id, "%s", given);
    else
        snprintf(x->request_id, sizeof x->request_id, "%016llx-%llu", (unsigned long long)server->id_prefix,
                 atomic_fetch_add(&server->id_count, 1));
}

static void start_reading(struct exchange *x)
{
    x->next_reading = x->loop->reading;
    if (x->next_reading)
        x->next_reading->previous_reading = x;
    x->loop->reading = x;
    x->is_reading = true;
}

static void end_reading(struct exchange *x)
{
    if (!x->is_reading)
        return;
    x->is_reading = false;
    if (x->previous_reading)
        x->previous_reading->next_reading = x->next_reading;
    else
        x->loop->reading = x->next_reading;
    if (x->next_reading)
        x->next_reading->previous_reading = x->previous_reading;
}

/* libmicrohttpd's first sign of a request: its URI as sent. What this returns comes back as *state. */
static void *on_uri(void *unused, const char *uri, struct MHD_Connection *connection)
{
    (void)unused;
    struct exchange *x = calloc(1, sizeof *x);
    if (!x)
        return NULL;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection,
                                                                   MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    x->transport = connection;
    x->connection = info ? info->socket_context : NULL;
    x->app = server->options.app;
    x->loop = own_loop;
    x->path = strdup(uri);
    char *mark = x->path ? strchr(x->path, '?') : NULL;
    if (mark) {
        *mark = '\0';
        x->query = mark + 1;
    }
    start_reading(x);
    http_timeouts_phase(x->connection, HTTP_RECEIVING);
    return x;
}

static const struct sockaddr *peer_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection,
                                                                   MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    return info ? info->client_addr : NULL;
}

static void free_exchange(struct exchange *x)
{
    end_reading(x);
    const struct sockaddr *peer = x->is_counted ? peer_of(x->transport) : NULL;
    if (peer)
        http_peers_end_call(server->peers, peer, x->kind);
    http_timeouts_phase(x->connection, HTTP_IDLE);
    if (x->received_us)
        atomic_fetch_sub(&server->in_flight, 1);
    free(x->path);
    free(x->body);
    http_forget_reply(x);
    free(x);
}

static void on_completed(void *unused, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode reason)
{
    (void)unused;
    (void)connection;
    (void)reason;
    struct exchange *x = *state;
    if (x)
        free_exchange(x);
    *state = NULL;
}

/* Frees a request that we have refused past the library, if the library has closed its connection without on_completed. */
static void free_refused(const struct loop *loop, const struct MHD_Connection *connection)
{
    for (struct exchange *x = loop->reading; x; x = x->next_reading)
        if (x->transport == connection && x->status) {
            free_exchange(x);
            return;
        }
}

void http_client_address(const struct exchange *x, char *ret_text, size_t size)
{
    const struct sockaddr *address = peer_of(x->transport);
    if (address)
        http_peers_name(address, ret_text, size);
    else
        snprintf(ret_text, size, "unknown");
}

/* Closes the connection with a reply that the library does not know about. A client that does not read loses it. */
static void send_last(int fd, const char *head, size_t head_size, const char *body, size_t body_size)
{
    if (send(fd, head, head_size, MSG_NOSIGNAL | MSG_DONTWAIT | MSG_MORE) == (ssize_t)head_size)
        (void)send(fd, body, body_size, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)shutdown(fd, SHUT_RDWR);
}

bool http_address_has_limit(const struct exchange *x)
{
    const struct sockaddr *peer = peer_of(x->transport);
    return peer && http_peers_limits(server->peers, peer);
}

bool http_count_call(struct exchange *x, enum http_call kind, unsigned *ret_earlier)
{
    const struct sockaddr *peer = peer_of(x->transport);
    *ret_earlier = 0;
    x->kind = kind;
    x->is_counted = peer && http_peers_begin_call(server->peers, peer, kind, ret_earlier);
    return !peer || x->is_counted;
}

/* Answers a connection that its client address has no room for, before it sends a request, and closes it. */
static void refuse_connection(int fd)
{
#define TOO_MANY                                                                                               \
    "{\"type\":\"/problems/overloaded\",\"title\":\"The service is overloaded\",\"status\":503,"               \
    "\"detail\":\"Your address has too many connections open. Close some, or start the service with a higher " \
    "--connections-per-address.\"}"
    static const char head[] =
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n"
        "Retry-After: 1\r\nConnection: close\r\n\r\n";
    send_last(fd, head, sizeof head - 1, TOO_MANY, sizeof TOO_MANY - 1);
#undef TOO_MANY
}

static void on_connection(void *unused, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    (void)unused;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection,
                                                                       MHD_CONNECTION_INFO_CONNECTION_FD);
        *context = info ? http_timeouts_add(server->timeouts, info->connect_fd) : NULL;
        const struct sockaddr *peer = peer_of(connection);
        if (peer && !http_peers_add(server->peers, peer) && info) {
            log_seldom(LOG_WARNING, "an address has more connections than --connections-per-address allows");
            refuse_connection(info->connect_fd);
        }
    } else {
        if (own_loop)
            free_refused(own_loop, connection);
        const struct sockaddr *peer = peer_of(connection);
        if (peer)
            http_peers_remove(server->peers, peer);
        http_timeouts_remove(server->timeouts, *context);
        *context = NULL;
    }
}

/* We decode what we need ourselves: a decoded path could hide a slash or end at a NUL. */
static size_t leave_escapes(void *unused, struct MHD_Connection *connection, char *text)
{
    (void)unused;
    (void)connection;
    return strlen(text);
}

/* The request that the library is refusing: its headers are all in, but we were not given it, and it has no answer yet. */
static struct exchange *find_refused_by_library(const struct loop *loop)
{
    for (struct exchange *x = loop->reading; x; x = x->next_reading)
        if (!x->status && MHD_get_connection_info(x->transport, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE) &&
            !MHD_get_connection_info(x->transport, MHD_CONNECTION_INFO_HTTP_STATUS))
            return x;
    return NULL;
}

/* Answers a request whose headers the library refuses. Its own answer has the block of headers twice (0.9.75; not in 1.0),
 * which a proxy may take for two answers. So we write ours to the socket and close it; the library's goes nowhere.
 * REASON: what the library logs. */
static void refuse_past_library(struct exchange *x, const char *reason)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(x->transport,
                                                                   MHD_CONNECTION_INFO_CONNECTION_FD);
    if (!info)
        return;
    identify(x);
    const char *length = http_header(x, "Content-Length");
    bool is_number = length && length[0] && !length[strspn(length, "0123456789")];
    if (strstr(reason, "`Host'"))
        server->options.refuse(x, 400, "a request of HTTP/1.1 needs a Host header");
    else if (length && !is_number)
        server->options.refuse(x, 400, "Content-Length must be one number, in decimal digits only");
    else if (length && strtoull(length, NULL, 10) > HTTP_DISCARD_MAX)
        server->options.refuse(x, 413, "the body may have 65536 bytes at most");
    else
        server->options.refuse(x, 400, "the headers are too large; send fewer or shorter ones");
    char head[512];
    int size = snprintf(head, sizeof head,
                        "HTTP/1.1 %d %s\r\nX-Request-Id: %s\r\nX-Content-Type-Options: nosniff\r\n"
                        "Content-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
                        x->status, MHD_get_reason_phrase_for((unsigned)x->status), x->request_id,
                        x->content_type, x->reply_size);
    send_last(info->connect_fd, head, (size_t)size, x->reply, x->reply_size);
}

/* The library logs why it refuses a request, before it answers. */
__attribute__((format(printf, 2, 0))) static void log_from_library(void *unused, const char *format,
                                                                   va_list args)
{
    (void)unused;
    char text[256];
    vsnprintf(text, sizeof text, format, args);
    log_line(LOG_DEBUG, "libmicrohttpd: %s", text);
    struct exchange *x = own_loop ? find_refused_by_library(own_loop) : NULL;
    if (x)
        refuse_past_library(x, text);
}

static bool add_headers(struct MHD_Response *response, const struct exchange *x)
{
    bool added = MHD_add_response_header(response, "X-Request-Id", x->request_id) == MHD_YES &&
                 MHD_add_response_header(response, "X-Content-Type-Options", "nosniff") == MHD_YES;
    if (x->content_type)
        added = added && MHD_add_response_header(response, "Content-Type", x->content_type) == MHD_YES;
    for (int i = 0; i < x->header_count; i++)
        added = added && MHD_add_response_header(response, x->headers[i].name,
                                                 x->headers[i].fixed ? x->headers[i].fixed
                                                                     : x->headers[i].value) == MHD_YES;
    if (x->close)
        added = added && MHD_add_response_header(response, "Connection", "close") == MHD_YES;
    return added;
}

/* MHD_NO, which closes the connection, where there is no memory: no answer is better than a part of one. */
static enum MHD_Result send_reply(struct exchange *x)
{
    enum MHD_Result result = MHD_NO;
    bool in_room = x->reply == x->room;
    struct MHD_Response *response = MHD_create_response_from_buffer(
        x->reply_size, x->reply, in_room ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_FREE);
    if (!response)
        return MHD_NO;
    x->reply = NULL; /* the response's now */
    if (add_headers(response, x)) {
        http_timeouts_phase(x->connection, HTTP_REPLYING);
        result = MHD_queue_response(x->transport, (unsigned)x->status, response);
    }
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result refuse(struct exchange *x, int status, const char *detail)
{
    x->close = true;
    server->options.refuse(x, status, detail);
    return send_reply(x);
}

/* MHD_NO, which ends the search, at a header that RFC 9112 forbids (5.1 and 5.2): a space in its name or before the colon, or a
 * value that goes on in the next line. Somebody before us may have read "Content-Length : 5" as a length. The library hides
 * where the lines end, but leaves a header in its place, and copies only a value that it joins from several lines. */
static enum MHD_Result check_header(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    bool *is_whole = arg;
    size_t length = strcspn(name, " \t");
    *is_whole = length > 0 && !name[length];
    if (*is_whole && value) {
        const char *place = name + length + 1;
        *is_whole = place + strspn(place, " \t") == value;
    }
    return *is_whole ? MHD_YES : MHD_NO;
}

static bool has_whole_headers(const struct exchange *x)
{
    bool is_whole = true;
    MHD_get_connection_values(x->transport, MHD_HEADER_KIND, check_header, &is_whole);
    return is_whole;
}

/* The headers are in: what can be refused now is not worth reading a body for. */
static enum MHD_Result begin(struct exchange *x, const char *method)
{
    x->method = method;
    end_reading(x);
    identify(x);
    if (!x->path)
        return MHD_NO;
    if (!has_whole_headers(x))
        return refuse(x, 400, "a header must have no space before its colon, and be on one line");
    /* Two lengths, or a length beside chunks, are how requests are smuggled past a proxy. */
    int lengths = http_header_count(x, "Content-Length");
    int encodings = http_header_count(x, "Transfer-Encoding");
    if (lengths + encodings > 1)
        return refuse(x, 400, "the length of the body is given more than once");
    if (http_header_count(x, "Host") > 1) /* a proxy may have checked the other one */
        return refuse(x, 400, "the Host header is given more than once");
    if (encodings > 0 && strcasecmp(http_header(x, "Transfer-Encoding"), "chunked") != 0)
        return refuse(x, 400, "the only Transfer-Encoding is chunked");
    const char *length = http_header(x, "Content-Length");
    if (length && strtoull(length, NULL, 10) > HTTP_DISCARD_MAX)
        return refuse(x, 413, "the body may have 65536 bytes at most");
    return MHD_YES;
}

/* Keeps what fits the bound of a body; beyond that reads on only for a while, so that the client sees its 413. */
static enum MHD_Result collect(struct exchange *x, const char *data, size_t size)
{
    x->body_seen += size;
    if (x->body_seen > HTTP_DISCARD_MAX)
        return MHD_NO;
    if (x->body_seen > HTTP_BODY_MAX)
        return MHD_YES;
    if (x->body_size + size + 1 > x->body_room) {
        size_t room = x->body_room ? x->body_room * 2 : 512;
        while (room < x->body_size + size + 1)
            room *= 2;
        char *body = realloc(x->body, room);
        if (!body)
            return MHD_NO;
        x->body = body;
        x->body_room = room;
    }
    memcpy(x->body + x->body_size, data, size);
    x->body_size += size;
    x->body[x->body_size] = '\0';
    return MHD_YES;
}

static enum MHD_Result on_request(void *unused, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data, size_t *size,
                                  void **state)
{
    (void)unused;
    (void)connection;
    (void)url;
    (void)version;
    struct exchange *x = *state;
    if (!x)
        return MHD_NO;
    if (!x->method)
        return begin(x, method);
    if (*size > 0) {
        enum MHD_Result result = collect(x, data, *size);
        *size = 0;
        return result;
    }
    if (x->status)
        return send_reply(x);
    if (x->body_seen > HTTP_BODY_MAX)
        return refuse(x, 413, "the body may have 65536 bytes at most");

    x->received_us = monotonic_us();
    atomic_fetch_add(&server->in_flight, 1);
    http_timeouts_phase(x->connection, HTTP_SERVING);
    if (server->options.dispatch(x))
        return send_reply(x);
    return MHD_YES;
}

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

const char *http_header(const struct exchange *x, const char *name)
{
    return MHD_lookup_connection_value(x->transport, MHD_HEADER_KIND, name);
}

struct header_counter {
    const char *name;
    int count;
};

static enum MHD_Result count_header(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    (void)value;
    struct header_counter *counter = arg;
    if (strcasecmp(name, counter->name) == 0)
        counter->count++;
    return MHD_YES;
}

int http_header_count(const struct exchange *x, const char *name)
{
    struct header_counter counter = {name, 0};
    MHD_get_connection_values(x->transport, MHD_HEADER_KIND, count_header, &counter);
    return counter.count;
}

void http_set_header(struct exchange *x, const char *name, const char *format, ...)
{
    if (x->header_count == HTTP_HEADERS_MAX)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(x->headers[x->header_count].value, sizeof x->headers[0].value, format, args);
    va_end(args);
    x->headers[x->header_count++].name = name;
}

void http_set_fixed_header(struct exchange *x, const char *name, const char *value)
{
    if (x->header_count == HTTP_HEADERS_MAX)
        return;
    x->headers[x->header_count].fixed = value;
    x->headers[x->header_count++].name = name;
}

void http_forget_reply(struct exchange *x)
{
    if (x->reply != x->room)
        free(x->reply);
    x->reply = NULL;
}

void http_reply_body(struct exchange *x, int status, const char *content_type, char *body, size_t size)
{
    http_forget_reply(x);
    x->status = status;
    x->content_type = content_type;
    x->reply = body;
    x->reply_size = size;
}

void http_reply_json(struct exchange *x, int status, json_t *json)
{
    http_reply_text(x, status, json ? json_dumps(json, JSON_COMPACT) : NULL);
    json_decref(json);
}

void http_reply_text(struct exchange *x, int status, char *text)
{
    if (text)
        http_reply_body(x, status, "application/json", text, strlen(text));
    else
        reply_problem(x, PROBLEM_INTERNAL_ERROR, NULL, "out of memory");
}

static unsigned connections_of(const struct loop *loop)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(loop->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    return info ? info->num_connections : 0;
}

/* Where there were too many connections, the library takes new ones from the run on after the one in which some ended; when
 * all ended in one, nobody is left who would be the cause of another. */
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
    struct loop *loop = own_loop = arg;
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
        {MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)on_uri, NULL},
        {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)on_completed, NULL},
        {MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)on_connection, NULL},
        {listening != MHD_INVALID_SOCKET ? MHD_OPTION_LISTEN_SOCKET : MHD_OPTION_END, listening, NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    return MHD_start_daemon(flags, 0, NULL, NULL, on_request, NULL, MHD_OPTION_EXTERNAL_LOGGER,
                            log_from_library, NULL, MHD_OPTION_ARRAY, items, MHD_OPTION_END);
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
    server = http;
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

int http_drain(struct http *http, int64_t ms)
{
    int64_t until_us = monotonic_us() + ms * 1000;
    int left;
    while ((left = atomic_load(&http->in_flight)) > 0 && monotonic_us() < until_us) {
        struct timespec pause = {.tv_nsec = DRAIN_LOOK_NS};
        nanosleep(&pause, NULL);
    }
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
    server = NULL;
}

unsigned http_connections(void)
{
    return http_timeouts_count(server->timeouts);
}
