/* Closes connections whose client is too slow: to send a whole request, to read the reply, or to send a first byte. For
 * the files of service/http only. */
#ifndef OVERSELL_SERVICE_HTTP_TIMEOUTS_H
#define OVERSELL_SERVICE_HTTP_TIMEOUTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* What a connection waits for. */
enum http_phase {
    HTTP_IDLE,      /* for the client: the next request, whose first bytes may have come */
    HTTP_RECEIVING, /* for the client: the rest of a request whose first line has come */
    HTTP_SERVING,   /* for the service: the request is complete */
    HTTP_REPLYING,  /* for the client: to read the reply */
};

/* One open connection, as both the HTTP threads and the timeouts' thread see it. */
struct http_connection {
    int fd;
    atomic_int phase;
    atomic_llong since_us;    /* when the phase began */
    atomic_llong answered_us; /* when the last reply was sent; 0: none was */

    LIST_ENTRY(http_connection) others; /* under the mutex of the timeouts, as all below */
    int64_t begun_us; /* when the request that is coming in began, as far as was seen; 0: none is */
    /* since_us when the client was last seen to have closed its side with nothing left to read */
    int64_t gone_since_us;
};

struct http_timeouts;

/* Starts a thread that ends connections whose request, from its first byte, or whose reply takes longer than MS, and
 * new connections whose client sends nothing for FIRST_BYTE_MS. It looks several times within the shorter of the two.
 * NULL when out of memory or threads. */
struct http_timeouts *http_timeouts_start(int64_t ms, int64_t first_byte_ms);
void http_timeouts_stop(struct http_timeouts *timeouts);

/* Any thread; the socket must stay open until remove has returned. */
struct http_connection *http_timeouts_add(struct http_timeouts *timeouts, int fd);
void http_timeouts_remove(struct http_timeouts *timeouts, struct http_connection *connection);

/* Notes what the connection waits for from now on. For the HTTP thread; CONNECTION may be NULL. */
void http_timeouts_phase(struct http_connection *connection, enum http_phase phase);

unsigned http_timeouts_count(struct http_timeouts *timeouts);

#endif
