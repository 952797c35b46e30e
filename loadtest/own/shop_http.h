/* Sends the HTTP requests of a description to a user's service. */
#ifndef OVERSELL_LOADTEST_OWN_SHOP_HTTP_H
#define OVERSELL_LOADTEST_OWN_SHOP_HTTP_H

#include "loadtest/client/http_request.h"
#include "loadtest/own/answer_meaning.h"

enum { SHOP_ANSWER_KEPT = 200 };

/* A connection, and the request that is on its way over it or was the last one. All zero: none. One thread at a time. */
struct shop_exchange {
    CURL *easy;
    struct curl_slist *headers;
    struct http_reply reply; /* up to 1 MiB of it */
};

/* The answer to a request that buys. */
struct shop_answer {
    long status; /* 0: none came, and TEXT says why */
    enum shop_meaning meaning;
    char text
        [SHOP_ANSWER_KEPT +
         1]; /* the beginning of the body, with blanks in the place of characters that cannot be printed */
    char hint[SHOP_HINT]; /* as shop_hint_of */
};

/* Makes EASY ready to send REQUEST with VALUES, and to end after TIMEOUT_MS; 0: never. An earlier connection stays open. A request is sent
 * once, also if the connection breaks. False: out of memory. */
bool shop_exchange_prepare(struct shop_exchange *exchange, const struct shop_request *request,
                           const struct shop_values *values, int64_t timeout_ms);
void shop_exchange_close(struct shop_exchange *exchange);
/* What the request led to, which has ended with CODE. */
void shop_exchange_answer(const struct shop_exchange *exchange, const struct shop_description *description,
                          CURLcode code, struct shop_answer *ret_answer);

/* Sends REQUEST and waits for the answer, until an interrupt at most. RET_ANSWER has its status and text; the rest of it is for requests that
 * buy. */
CURLcode shop_http_send(const struct shop_request *request, const struct shop_values *values,
                        int64_t timeout_ms, struct shop_answer *ret_answer);
/* Sends "request", in the same way. */
void shop_http_order(const struct shop_description *description, const struct shop_values *values,
                     struct shop_answer *ret_answer);
/* Says on stderr why ANSWER, of a request alone for LEFT units, does not mean sold. */
void shop_say_not_sold(const struct shop_description *description, const struct shop_answer *answer,
                       int64_t left);
/* Does something listen where URL points to, which speaks TLS for https? The answer comes within TIMEOUT_MS. CURLE_OK: yes. */
CURLcode shop_http_listens(const char *url, const struct shop_values *values, int64_t timeout_ms);
/* Trying again does not help after this failure, which is one of TLS. */
bool shop_http_is_refused(CURLcode code);

#endif
