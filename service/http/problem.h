/* Problems: the closed list of errors that a client can meet, as application/problem+json (RFC 9457). */
#ifndef OVERSELL_SERVICE_HTTP_PROBLEM_H
#define OVERSELL_SERVICE_HTTP_PROBLEM_H

#include "service/http/server.h"

enum problem {
    BAD_REQUEST,
    INVALID_ORDER,
    UNKNOWN_PRODUCT,
    UNKNOWN_ORDER,
    NOT_FOUND,
    METHOD_NOT_ALLOWED,
    STOCK_SOLD_OUT,
    TRIES_USED_UP,
    IDEMPOTENCY_MISMATCH,
    IDEMPOTENCY_IN_PROGRESS,
    PAYLOAD_TOO_LARGE,
    UNSUPPORTED_MEDIA_TYPE,
    LOCK_WAIT_OVER,
    LOCK_WAS_LOST,
    OVERLOADED,
    WRONG_KIND_OF_STOCK,
    RUN_IN_PROGRESS,
    INVALID_SCHEDULE,
    EXPLORER_UNAVAILABLE,
    OUTCOME_NOT_KNOWN,
    BACKEND_UNAVAILABLE,
    UNAUTHORIZED,
    FORBIDDEN_ORIGIN,
    NOT_YOURS,
    INTERNAL_ERROR,
};

/* Replies with the problem. FORMAT is the detail, for a person; MEMBERS (stolen, may be NULL) are the problem's
 * own members, as available or strategy. */
void reply_problem(struct exchange *x, enum problem problem, json_t *members, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
