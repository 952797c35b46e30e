/* A request from its first line to its reply: the callbacks in which the library passes the pieces of a request. */
#include "service/http/internal.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

/* libmicrohttpd's first sign of a request: its URI as sent. What this returns comes back as *state. */
void *http_on_uri(void *unused, const char *uri, struct MHD_Connection *connection)
{
    (void)unused;
    struct exchange *x = calloc(1, sizeof *x);
    if (!x)
        return NULL;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection,
                                                                   MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    x->transport = connection;
    x->connection = info ? info->socket_context : NULL;
    x->app = http_server->options.app;
    x->loop = http_own_loop;
    x->path = strdup(uri);
    char *mark = x->path ? strchr(x->path, '?') : NULL;
    if (mark) {
        *mark = '\0';
        x->query = mark + 1;
    }
    http_start_reading(x);
    http_timeouts_phase(x->connection, HTTP_RECEIVING);
    return x;
}

void http_free_exchange(struct exchange *x)
{
    http_end_reading(x);
    const struct sockaddr *peer = x->is_counted ? http_peer(x->transport) : NULL;
    if (peer)
        http_peers_end_call(http_server->peers, peer, x->kind);
    http_timeouts_phase(x->connection, HTTP_IDLE);
    if (x->is_unread)
        atomic_fetch_sub(&http_server->unread, 1);
    if (x->received_us)
        atomic_fetch_sub(&http_server->in_flight, 1);
    free(x->path);
    free(x->body);
    http_forget_reply(x);
    free(x);
}

void http_on_completed(void *unused, struct MHD_Connection *connection, void **state,
                       enum MHD_RequestTerminationCode reason)
{
    (void)unused;
    (void)connection;
    (void)reason;
    struct exchange *x = *state;
    if (x)
        http_free_exchange(x);
    *state = NULL;
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

/* Queues the reply. MHD_NO closes the connection if memory is out: no answer is better than a part of one. */
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
        x->is_unread = x->received_us != 0;
        if (x->is_unread)
            atomic_fetch_add(&http_server->unread, 1);
        result = MHD_queue_response(x->transport, (unsigned)x->status, response);
    }
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result refuse(struct exchange *x, int status, const char *detail)
{
    x->close = true;
    http_server->options.refuse(x, status, detail);
    return send_reply(x);
}

/* All headers have arrived. Refuses what can be refused before the body is read. */
static enum MHD_Result begin(struct exchange *x, const char *method)
{
    x->method = method;
    http_end_reading(x);
    http_identify(x);
    if (!x->path)
        return MHD_NO;
    int status;
    const char *broken = http_check_headers(x, &status);
    return broken ? refuse(x, status, broken) : MHD_YES;
}

/* Keeps up to HTTP_BODY_MAX bytes of the body. Drops a limited number of further bytes, so that the client reads its 413. */
static enum MHD_Result collect(struct exchange *x, const char *data, size_t size)
{
    x->body_seen += size;
    if (x->body_seen > HTTP_DISCARD_MAX)
        return MHD_NO;
    if (x->body_seen > HTTP_BODY_MAX)
        return MHD_YES;
    if (x->body_size + size + 1 > x->body_room) {
        size_t room = x->body_room ? x->body_room * 2 : 96;
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

enum MHD_Result http_on_request(void *unused, struct MHD_Connection *connection, const char *url,
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
        return refuse(x, 413, HTTP_BODY_TOO_LARGE);

    x->received_us = monotonic_us();
    atomic_fetch_add(&http_server->in_flight, 1);
    http_timeouts_phase(x->connection, HTTP_SERVING);
    if (http_server->options.dispatch(x))
        return send_reply(x);
    return MHD_YES;
}
