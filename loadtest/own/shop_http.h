/* Sends the HTTP requests of a description to a user's service. */
#ifndef OVERSELL_LOADTEST_OWN_SHOP_HTTP_H
#define OVERSELL_LOADTEST_OWN_SHOP_HTTP_H

#include "loadtest/own/description.h"

#include <curl/curl.h>

enum { SHOP_ANSWER_KEPT = 200 };

/* A connection, and the request that is on its way over it or was the last one. All zero: none. One thread at a time. */
struct shop_exchange {
    CURL *easy;
    struct curl_slist *headers;
    bool sent;
    char answer[SHOP_ANSWER_KEPT +
                1]; /* the beginning of the body, with other characters than printable ones as blanks */
    size_t length;
};

/* Makes EASY ready to send REQUEST with VALUES, and to end after TIMEOUT_MS; 0: never. An earlier connection stays open. A request is sent
 * once, also if the connection breaks. False: out of memory. */
bool shop_exchange_prepare(struct shop_exchange *exchange, const struct shop_request *request,
                           const struct shop_values *values, int64_t timeout_ms);
void shop_exchange_close(struct shop_exchange *exchange);

/* Sends REQUEST and waits for the answer, until an interrupt at most. Returns its status; 0: none came, and RET_ERROR of SIZE bytes
 * says why. With a status, RET_ERROR is the beginning of the answer's body. */
long shop_http_send(const struct shop_request *request, const struct shop_values *values, int64_t timeout_ms,
                    char *ret_error, size_t size);
/* Does something listen where URL points to? The answer comes within TIMEOUT_MS. */
bool shop_http_listens(const char *url, const struct shop_values *values, int64_t timeout_ms);

#endif
