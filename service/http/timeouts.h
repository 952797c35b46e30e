/* One deadline for a whole request, and one for taking its reply, whatever dribbles in between. For service/http/server.c only. */
#ifndef OVERSELL_SERVICE_HTTP_TIMEOUTS_H
#define OVERSELL_SERVICE_HTTP_TIMEOUTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Whose turn it is on a connection. */
enum http_phase {
    HTTP_IDLE,      /* between requests, or in the middle of one's first bytes */
    HTTP_RECEIVING, /* the client's: a request line has come, and the rest is due */
    HTTP_SERVING,   /* ours: the request is complete */
    HTTP_REPLYING,  /* the client's: the reply is there to be read */
};

/* One open connection, as both service/http/server.c and the watch see it. */
struct http_connection {
    int fd;
    atomic_int phase;
    atomic_llong since_us;    /* when the phase began */
    atomic_llong answered_us; /* when the last request was done with on it; 0: none was */

    struct http_connection *next, *previous; /* under the watch's mutex, as all below */
    int64_t begun_us; /* when the request that is coming in began, as far as was seen; 0: none is */
    int64_t
        gone_since_us; /* since_us when the client was last seen to have closed its side with nothing left to read */
};

struct http_watch;

/* Starts a thread that ends connections whose request, from its first byte, or whose reply takes longer than MS, and
 * new connections whose client sends nothing for FIRST_BYTE_MS. It looks several times within the shorter of the two.
 * NULL when out of memory or threads. */
struct http_watch *http_watch_start(int64_t ms, int64_t first_byte_ms);
void http_watch_stop(struct http_watch *watch);

/* Any thread; the socket must stay open until remove has returned. */
struct http_connection *http_watch_add(struct http_watch *watch, int fd);
void http_watch_remove(struct http_watch *watch, struct http_connection *connection);

/* The HTTP thread tells whose turn it is. */
void http_watch_phase(struct http_connection *connection, enum http_phase phase);

unsigned http_watch_count(struct http_watch *watch);

#endif
