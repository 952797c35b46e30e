/* The HTTP server. It reads a whole request into an exchange, passes the exchange on, and sends the reply that it gets.
 *
 * A few HTTP threads serve all connections with libmicrohttpd. A handler that may wait runs on a worker thread; the exchange's
 * connection is suspended until the worker replies. Everything that a client can send or keep open has a limit and a deadline. */
#ifndef OVERSELL_SERVICE_HTTP_SERVER_H
#define OVERSELL_SERVICE_HTTP_SERVER_H

#include "service/http/peers.h"

#include <jansson.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

enum {
    HTTP_BODY_MAX = 64 * 1024,      /* bytes; the reply to a larger body is 413 … */
    HTTP_DISCARD_MAX = 1024 * 1024, /* … after the server has read and dropped up to this many bytes of it */
    HTTP_HEADERS_MAX = 10,          /* headers that a handler may add to a reply */
    HTTP_THREADS_MAX = 64,
    HTTP_ROOM = 640,       /* bytes of an exchange's own room for a reply */
    HTTP_ARGUMENT_MAX = 80 /* the variable part of a path */
};

struct route;
struct http;
struct http_connection;

/* One request and its reply. One thread at a time owns it: the HTTP thread, or the worker that got it. */
struct exchange {
    const char *method;
    char *path;  /* as sent, without the query; not decoded */
    char *query; /* as sent, or NULL */
    char *body;  /* BODY_SIZE bytes and a NUL; NULL without a body */
    size_t body_size;
    char request_id[65];
    int64_t received_us; /* when it was complete */

    const struct route *route;
    char argument[HTTP_ARGUMENT_MAX];
    void *app;      /* http_options.app: the struct service */
    int64_t caller; /* the application's (service/api/access.h); 0 at first */

    int status; /* 0 until there is a reply */
    const char *content_type;
    char *reply; /* malloc'ed, or ROOM */
    size_t reply_size;
    char room[HTTP_ROOM]; /* for a short reply, which then cannot fail for lack of memory */
    struct {
        const char *name;
        const char *fixed; /* the value where it is a static one, else NULL */
        char value[100];
    } headers[HTTP_HEADERS_MAX];
    int header_count;
    bool close; /* end the connection after the reply */

    /* for the files of service/http only */
    struct http_connection *connection;
    struct loop *loop;
    void *transport;
    size_t body_room, body_seen;
    LIST_ENTRY(exchange) reading;
    bool is_reading;     /* in the list of its loop */
    bool is_unread;      /* its reply is ready, and counted in the server's unread */
    bool is_counted;     /* as a waiting call of its address, … */
    enum http_call kind; /* … of this kind */
};

/* A request header of the client, or NULL; valid as long as the exchange. */
const char *http_header(const struct exchange *x, const char *name);
/* How many headers of that name there are. */
int http_header_count(const struct exchange *x, const char *name);

/* A query parameter, decoded, into VALUE. 1 found, 0 absent, -1 malformed, too long, or given twice. */
int http_query(const struct exchange *x, const char *name, char *value, size_t size);
/* Is every parameter's name one of NAMES (ended by NULL)? */
bool http_query_names(const struct exchange *x, const char *const *names);

/* Sets the reply; a handler calls one of these once. The exchange takes over JSON, TEXT and BODY; the latter two are malloc'ed,
 * or the exchange's room. If JSON or TEXT is NULL for lack of memory, the reply is a problem that says so. */
void http_reply_json(struct exchange *x, int status, json_t *json);
void http_reply_text(struct exchange *x, int status, char *text); /* of JSON */
void http_reply_body(struct exchange *x, int status, const char *content_type, char *body, size_t size);
/* Frees what the reply owns. */
void http_forget_reply(struct exchange *x);
/* Adds a header to the reply; NAME is static. */
void http_set_header(struct exchange *x, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same with a static value, of any length. */
void http_set_fixed_header(struct exchange *x, const char *name, const char *value);

/* The client's address as limits count it (service/http/peers.h), or "unknown". */
void http_client_address(const struct exchange *x, char *ret_text, size_t size);

/* Do the connections of the client's address have a limit? If not, many clients may share the address. */
bool http_address_has_limit(const struct exchange *x);

/* Counts the call as one that waits, until the exchange ends. *ret_earlier: calls of this kind of its address that wait
 * already, 0 if it has no limit. False: they are CALLS_PER_ADDRESS. Once for each exchange, within dispatch. */
bool http_count_call(struct exchange *x, enum http_call kind, unsigned *ret_earlier);

/* Suspends the connection. Dispatch calls it before it passes the exchange to another thread. */
void http_hand_over(struct exchange *x);
/* Sends the reply. The other thread calls it last; after this call it must not use the exchange. */
void http_finish(struct exchange *x);

struct http_options {
    const struct sockaddr *address;
    size_t address_size;
    unsigned threads; /* HTTP_THREADS_MAX at most */
    unsigned connections;
    unsigned connections_per_address; /* 0: any number */
    unsigned connections_of_loopback; /* of each loopback address; 0: any number */
    unsigned calls_per_address
        [HTTP_CALL_KINDS]; /* waiting calls of an address whose connections have a limit; 0: any number */
    int64_t request_timeout_ms;
    int64_t first_byte_ms;
    int64_t idle_timeout_ms;
    /* Called on an HTTP thread for each complete request. True: it has replied. False: it has handed over the exchange, and
     * http_finish follows. */
    bool (*dispatch)(struct exchange *x);
    /* Called on an HTTP thread to reply to a broken request (STATUS 400 or 413). */
    void (*refuse)(struct exchange *x, int status, const char *detail);
    void *app;
};

/* Starts to listen and to serve. NULL: it failed, and ERROR says why. */
struct http *http_start(const struct http_options *options, char *error, size_t error_size);
uint16_t http_port(const struct http *http);
/* Takes no further connections; requests on open connections still come in. */
void http_stop_listening(struct http *http);
/* Waits until all requests that have come in are answered, but at most MS. Returns how many are not. *ret_unread: how many of
 * these have a reply that the client does not read. */
int http_drain(struct http *http, int64_t ms, int *ret_unread);
/* Closes all connections and ends the HTTP threads. No other thread may have an exchange any more. */
void http_stop(struct http *http);
/* The number of open connections. Any thread. */
unsigned http_connections(void);

#endif
