/* Sends many orders at once to a user's service: each connection sends its next request when the last one was answered. */
#ifndef OVERSELL_LOADTEST_OWN_SHOP_LOAD_H
#define OVERSELL_LOADTEST_OWN_SHOP_LOAD_H

#include "loadtest/own/shop_http.h"
#include "loadtest/own/shop_service.h"
#include "loadtest/stats/hdr.h"

enum { SHOP_STATUS_KINDS = 16 };

struct shop_load {
    const struct shop_description *description;
    struct shop_service *service; /* its instances get the connections in turn */
    int64_t stock;                /* for {stock} */
    int64_t requests, first;      /* {request} counts from FIRST */
    size_t connections;
};

/* What the answers said. */
struct shop_answers {
    int64_t sold, sold_out, accepted;
    int64_t failed;     /* any other status */
    int64_t unanswered; /* no answer in time, or a connection that broke */
    struct {
        long status;
        int64_t count;
    } statuses
        [SHOP_STATUS_KINDS]; /* by the status; those that have no room count in the last one, as status 0 */
    size_t status_count;
    /* the first answer of FAILED, or why the first was UNANSWERED */
    char first_failure[SHOP_ANSWER_KEPT + 1];
    /* What the file may lack: for the first answer that counts as sold because its status is 2xx, and for the first that failed; "": nothing. */
    char doubt[SHOP_HINT], hint[SHOP_HINT];
    double seconds;
    struct hdr latency; /* of all answers */
};

/* Counts one answer by its status and its meaning. */
void shop_answers_add(struct shop_answers *answers, const struct shop_answer *answer);

/* Sends the requests and waits for their answers. False, having said why on stderr unless it was an interrupt: the service ended,
 * or it gave no answer to twice as many requests in a row as there are connections. Each request takes timeout_ms at most.
 * PROGRESS, called with CONTEXT, gets the number of requests that have ended. */
bool shop_load_run(const struct shop_load *load, struct shop_answers *ret_answers,
                   void (*progress)(void *context, int64_t ended), void *context);

#endif
