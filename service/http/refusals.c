/* Refusals that the library knows nothing about: of requests that it rejects itself, and of connections that are too many. */
#include "service/http/internal.h"

#include "base/log.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

void http_start_reading(struct exchange *x)
{
    LIST_INSERT_HEAD(&x->loop->reading, x, reading);
    x->is_reading = true;
}

void http_end_reading(struct exchange *x)
{
    if (x->is_reading)
        LIST_REMOVE(x, reading);
    x->is_reading = false;
}

void http_free_refused(const struct loop *loop, const struct MHD_Connection *connection)
{
    for (struct exchange *x = LIST_FIRST(&loop->reading); x; x = LIST_NEXT(x, reading))
        if (x->transport == connection && x->status) {
            http_free_exchange(x);
            return;
        }
}

/* Closes the connection with a reply that the library does not know about. A client that does not read loses it. */
static void send_last(int fd, const char *head, size_t head_size, const char *body, size_t body_size)
{
    if (send(fd, head, head_size, MSG_NOSIGNAL | MSG_DONTWAIT | MSG_MORE) == (ssize_t)head_size)
        (void)send(fd, body, body_size, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)shutdown(fd, SHUT_RDWR);
}

void http_refuse_connection(int fd)
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

/* The request that the library is refusing: its headers are all in, but we were not given it, and it has no answer yet. */
static struct exchange *find_refused_by_library(const struct loop *loop)
{
    for (struct exchange *x = LIST_FIRST(&loop->reading); x; x = LIST_NEXT(x, reading))
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
    http_identify(x);
    int status;
    const char *broken = http_check_length(x, &status);
    if (strstr(reason, "`Host'"))
        http_server->options.refuse(x, 400, "a request of HTTP/1.1 needs a Host header");
    else if (broken)
        http_server->options.refuse(x, status, broken);
    else
        http_server->options.refuse(x, 400, "the headers are too large; send fewer or shorter ones");
    char head[512];
    int size = snprintf(head, sizeof head,
                        "HTTP/1.1 %d %s\r\nX-Request-Id: %s\r\nX-Content-Type-Options: nosniff\r\n"
                        "Content-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
                        x->status, MHD_get_reason_phrase_for((unsigned)x->status), x->request_id,
                        x->content_type, x->reply_size);
    send_last(info->connect_fd, head, (size_t)size, x->reply, x->reply_size);
}

void http_log_from_library(void *unused, const char *format, va_list args)
{
    (void)unused;
    char text[256];
    vsnprintf(text, sizeof text, format, args);
    log_line(LOG_DEBUG, "libmicrohttpd: %s", text);
    struct exchange *x = http_own_loop ? find_refused_by_library(http_own_loop) : NULL;
    if (x)
        refuse_past_library(x, text);
}
