/* What the files of the HTTP server share. Each of them calls libmicrohttpd, and no other file does. */
#ifndef OVERSELL_SERVICE_HTTP_INTERNAL_H
#define OVERSELL_SERVICE_HTTP_INTERNAL_H

#include "service/http/peers.h"
#include "service/http/server.h"
#include "service/http/timeouts.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>

#define HTTP_BODY_TOO_LARGE "the body is longer than 65536 bytes; send a shorter one"

/* One HTTP thread and what it runs. */
struct loop {
    pthread_t thread;
    struct MHD_Daemon *daemon;
    int wake_fd;       /* an eventfd: a connection is resumed, or stop set */
    atomic_bool woken; /* wake_fd is readable, or about to be */
    atomic_bool stop;
    /* Its requests whose headers are not all in; only its thread uses the list. */
    LIST_HEAD(, exchange) reading;
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
    atomic_int unread;    /* of these, requests whose reply is ready; the client has to read it */
};

/* Exchanges find their server through the one that runs: a process has one. */
extern struct http *http_server;
extern _Thread_local struct loop *http_own_loop; /* of an HTTP thread, else NULL */

/* ---- connections.c: callback of the library, and the client's address; NULL if it is not known ---- */

void http_on_connection(void *unused, struct MHD_Connection *connection, void **context,
                        enum MHD_ConnectionNotificationCode what);
const struct sockaddr *http_peer(struct MHD_Connection *connection);

/* ---- exchange.c: callbacks of the library, and what ends an exchange ---- */

void *http_on_uri(void *unused, const char *uri, struct MHD_Connection *connection);
enum MHD_Result http_on_request(void *unused, struct MHD_Connection *connection, const char *url,
                                const char *method, const char *version, const char *data, size_t *size,
                                void **state);
void http_on_completed(void *unused, struct MHD_Connection *connection, void **state,
                       enum MHD_RequestTerminationCode reason);
void http_free_exchange(struct exchange *x);

/* ---- headers.c ---- */

/* Takes the client's request id if it is harmless in a log line, or makes one. */
void http_identify(struct exchange *x);
/* Checks the headers of a request. Returns the rule that they break, as a static sentence for the client, or NULL. *ret_status:
 * the status of the refusal. */
const char *http_check_headers(const struct exchange *x, int *ret_status);
/* The same for Content-Length alone. */
const char *http_check_length(const struct exchange *x, int *ret_status);

/* ---- refusals.c ---- */

/* The list of the requests of a loop whose headers are not all in. For the loop's thread. */
void http_start_reading(struct exchange *x);
void http_end_reading(struct exchange *x);
/* Answers a connection that its client address has no room for, before it sends a request, and closes it. */
void http_refuse_connection(int fd);
/* Frees a request that we have refused past the library, if the library has closed its connection without on_completed. */
void http_free_refused(const struct loop *loop, const struct MHD_Connection *connection);
/* The library's logger: the library logs why it refuses a request, before it answers. */
void http_log_from_library(void *unused, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

#endif
