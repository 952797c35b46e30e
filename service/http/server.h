/* The HTTP server as the rest of the service sees it: an exchange comes in complete and goes out complete.
 *
 * Behind it libmicrohttpd's epoll threads read requests; a handler that may wait runs on a worker thread while
 * the connection is suspended. Everything that a client can send or hold open has a bound and a deadline. */
#ifndef OVERSELL_SERVICE_HTTP_SERVER_H
#define OVERSELL_SERVICE_HTTP_SERVER_H

#include <jansson.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HTTP_BODY_MAX = 64 * 1024,      /* a larger body is answered 413 … */
    HTTP_DISCARD_MAX = 1024 * 1024, /* … after up to this much of it was read and thrown away */
    HTTP_HEADERS_MAX = 8,           /* headers of ours on a reply */
    HTTP_THREADS_MAX = 64,
    HTTP_ROOM = 640,
    HTTP_ARGUMENT_MAX = 80 /* the variable part of a path */
};

struct route;
struct http;
struct http_connection;

/* One request and its reply. Owned by one thread at a time: the HTTP thread, or the worker it was handed to. */
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
    void *app;       /* the service's own: struct service */
    void *work;      /* the handler's own, between its calls */
    bool is_teacher; /* access.c's: who makes the call … */
    int64_t owns;    /* … or whose sandbox's product this is; 0: nobody's */

    int status; /* 0 until there is a reply */
    const char *content_type;
    char *reply; /* malloc'ed, or ROOM */
    size_t reply_size;
    char room[HTTP_ROOM]; /* for a short reply, which then cannot fail for want of memory */
    struct {
        const char *name;
        const char *fixed; /* the value where it is a static one, else NULL */
        char value[100];
    } headers[HTTP_HEADERS_MAX];
    int header_count;
    bool close; /* end the connection after the reply */

    /* service/http/server.c's own */
    struct http_connection *connection;
    struct loop *loop;
    void *transport;
    size_t body_room, body_seen;
    struct exchange *next_reading, *previous_reading;
    bool is_reading; /* in the list of its loop */
};

/* A request header of the client, or NULL; valid as long as the exchange. */
const char *http_header(const struct exchange *x, const char *name);
/* How many headers of that name there are. */
int http_header_count(const struct exchange *x, const char *name);

/* A query parameter, decoded, into VALUE. 1 found, 0 absent, -1 malformed, too long, or given twice. */
int http_query(const struct exchange *x, const char *name, char *value, size_t size);
/* Is every parameter's name one of NAMES (ended by NULL)? */
bool http_query_names(const struct exchange *x, const char *const *names);

/* Replies; each may be called once. JSON is stolen; TEXT and BODY are malloc'ed and stolen, or the exchange's room. Without
 * memory for JSON or TEXT, which then is NULL, the reply is a problem that says so. */
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

/* Within dispatch, before the exchange is given to another thread. */
void http_hand_over(struct exchange *x);
/* The other thread is done with it; from here on the exchange is not its any more. */
void http_finish(struct exchange *x);

struct http_options {
    const struct sockaddr *address;
    size_t address_size;
    unsigned threads; /* HTTP_THREADS_MAX at most */
    unsigned connections;
    unsigned connections_per_address; /* 0: any number */
    unsigned connections_of_loopback; /* of each loopback address; 0: any number */
    int64_t request_timeout_ms;
    int64_t first_byte_ms;
    int64_t idle_timeout_ms;
    /* Called on an HTTP thread for each complete request: replies at once and returns true, or keeps the exchange
     * for a later http_finish and returns false. */
    bool (*dispatch)(struct exchange *x);
    /* Called on an HTTP thread where the request itself is bad (400, 413). */
    void (*refuse)(struct exchange *x, int status, const char *detail);
    void *app;
};

/* Listens and serves. NULL with a message in ERROR. */
struct http *http_start(const struct http_options *options, char *error, size_t error_size);
uint16_t http_port(const struct http *http);
/* Takes no more connections; requests on open ones still come in. */
void http_stop_listening(struct http *http);
/* Waits until every request that has come in is answered, for MS at most; how many are not. */
int http_drain(struct http *http, int64_t ms);
/* Closes what is open. No worker may hold an exchange any more. */
void http_stop(struct http *http);
/* Connections open now; for handlers. */
unsigned http_connections(void);

#endif
