/* What every HTTP request of the load test has in common: the settings of libcurl, the reply that is kept, and that it is sent once. */
#ifndef OVERSELL_LOADTEST_CLIENT_HTTP_REQUEST_H
#define OVERSELL_LOADTEST_CLIENT_HTTP_REQUEST_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

/* The reply to a request. The caller sets the first three members, and frees BODY by http_reply_free. */
struct http_reply {
    size_t most; /* bytes of the body to keep */
    bool whole;  /* a longer body is a failure; otherwise its beginning is kept */
    /* Libcurl sends a request again, without notice, if a kept connection breaks before an answer. The server may have read the first
     * one, so with ONCE the second is not sent, which is a failure. */
    bool once;
    unsigned sent; /* how many times libcurl has sent the request */
    char *body;    /* ended by a 0; NULL: empty */
    size_t length, size;
};

/* The body, "" where it is empty. */
static inline const char *http_reply_text(const struct http_reply *reply)
{
    return reply->body ? reply->body : "";
}

/* Forgets the last reply, before another request. */
void http_reply_begin(struct http_reply *reply);
void http_reply_free(struct http_reply *reply);

/* Sets up CURL for requests to URL, which is copied, without a proxy and without signals. HEADERS and REPLY must live as long as the
 * requests. A request ends after TIMEOUT_MS; 0: never. Any thread; one at a time for each CURL. */
void http_request_prepare(CURL *curl, const char *url, struct curl_slist *headers, long timeout_ms,
                          struct http_reply *reply);
/* The status of the answer that has come; 0: none. */
long http_request_status(CURL *curl);

#endif
