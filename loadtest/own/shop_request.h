/* One HTTP request to a user's service, as its description has it. */
#ifndef OVERSELL_LOADTEST_OWN_SHOP_REQUEST_H
#define OVERSELL_LOADTEST_OWN_SHOP_REQUEST_H

#include "loadtest/own/description.h"

#include <stdint.h>

/* A connection, which is kept from one request to the next. One thread at a time. */
struct shop_connection;

/* NULL: out of memory. */
struct shop_connection *shop_connection_open(void);
void shop_connection_close(struct shop_connection *connection);

enum { SHOP_ANSWER_KEPT = 200 };

struct shop_answer {
    long status;                     /* 0: no answer came */
    int64_t us;                      /* how long it took */
    char text[SHOP_ANSWER_KEPT + 1]; /* the beginning of the body; without an answer the reason */
};

/* Sends REQUEST, an object of the description, with the placeholders of VALUES, and waits for the answer for TIMEOUT_MS at most, or
 * until an interrupt. It is sent once: never again over another connection. False, having said why on stderr: out of memory. */
bool shop_request_send(struct shop_connection *connection, const json_t *request,
                       const struct placeholder *values, int64_t timeout_ms, struct shop_answer *ret_answer);

#endif
