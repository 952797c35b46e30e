/* Sends many requests to a user's service at once, and counts the answers. */
#ifndef OVERSELL_LOADTEST_OWN_SHOP_LOAD_H
#define OVERSELL_LOADTEST_OWN_SHOP_LOAD_H

#include "loadtest/own/shop_request.h"
#include "loadtest/own/shop_service.h"
#include "loadtest/stats/hdr.h"

enum { SHOP_CONNECTIONS_MAX = 256, SHOP_STATUSES = 600 };

struct shop_load {
    const struct shop_service *service;
    int64_t requests;
    int64_t connections; /* each has one request at a time; to one instance after the other */
    int64_t first;       /* the number of the first request */
    int64_t timeout_ms;  /* an answer may take as long */
};

struct shop_counts {
    int64_t statuses[SHOP_STATUSES]; /* answers with each status */
    int64_t sold;                    /* 200 to 299 */
    int64_t sold_out;                /* those that the description names */
    int64_t other;                   /* all other answers */
    int64_t unanswered;              /* requests without an answer, which may have been placed */
    double seconds;
    struct hdr times; /* of the answers */
    struct shop_answer
        odd; /* the first of the other answers; status 0: why one is missing; no text: there is none */
};

/* Sends all requests. False, having said why on stderr, unless it was an interrupt. */
bool shop_load_run(const struct shop_load *load, struct shop_counts *ret_counts);

#endif
