/* How an order was answered: the HTTP API's problems by their codes, and the two ways to be made. */
#ifndef OVERSELL_LOADTEST_CLIENT_ANSWER_H
#define OVERSELL_LOADTEST_CLIENT_ANSWER_H

#include <stddef.h>

enum answer {
    ANSWER_CREATED,  /* 201 */
    ANSWER_ACCEPTED, /* 202: written behind */
    ANSWER_SOLD_OUT,
    ANSWER_LOCK_BUSY,
    ANSWER_CONFLICT,
    ANSWER_OVERLOADED,
    ANSWER_LOCK_LOST,
    ANSWER_UNAVAILABLE,
    ANSWER_UNKNOWN, /* the service does not know whether the order was made */
    ANSWER_OTHER,   /* what a right order should never get */
    ANSWER_COUNT
};

/* "created", "accepted", "other", or the problem's code; static storage. */
const char *answer_name(enum answer answer);
/* BODY need not end with 0, and its beginning is enough. */
enum answer answer_of(long status, const char *body, size_t length);

#endif
