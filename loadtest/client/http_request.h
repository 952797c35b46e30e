/* What every HTTP request of the load test has in common, as settings of libcurl. */
#ifndef OVERSELL_LOADTEST_CLIENT_HTTP_REQUEST_H
#define OVERSELL_LOADTEST_CLIENT_HTTP_REQUEST_H

#include <curl/curl.h>

/* As libcurl calls it: takes in SIZE × COUNT bytes of the reply; returns how many it took. */
typedef size_t http_receive_fn(char *data, size_t size, size_t count, void *context);

/* Sets up CURL for requests to URL, which is copied, without a proxy and without signals. HEADERS must live as long as the
 * requests. Each reply goes to RECEIVE with CONTEXT. A request ends after TIMEOUT_MS; 0: never. Any thread; one at a time
 * for each CURL. */
void http_request_prepare(CURL *curl, const char *url, struct curl_slist *headers, long timeout_ms,
                          http_receive_fn *receive, void *context);

#endif
