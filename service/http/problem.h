/* Problems: the closed list of errors that a client can meet, as application/problem+json (RFC 9457). */
#ifndef OVERSELL_SERVICE_HTTP_PROBLEM_H
#define OVERSELL_SERVICE_HTTP_PROBLEM_H

#include "service/http/server.h"

enum problem {
    PROBLEM_BAD_REQUEST,
    PROBLEM_INVALID_ORDER,
    PROBLEM_NO_SUCH_PRODUCT,
    PROBLEM_NO_SUCH_ORDER,
    PROBLEM_NOT_FOUND,
    PROBLEM_METHOD_NOT_ALLOWED,
    PROBLEM_SOLD_OUT,
    PROBLEM_CONFLICT,
    PROBLEM_IDEMPOTENCY_MISMATCH,
    PROBLEM_IDEMPOTENCY_IN_PROGRESS,
    PROBLEM_PAYLOAD_TOO_LARGE,
    PROBLEM_UNSUPPORTED_MEDIA_TYPE,
    PROBLEM_LOCK_TIMEOUT,
    PROBLEM_LOCK_LOST,
    PROBLEM_OVERLOADED,
    PROBLEM_WRONG_STOCK_KIND,
    PROBLEM_RUN_IN_PROGRESS,
    PROBLEM_QUESTION_CLOSED,
    PROBLEM_EXERCISE_MISSING,
    PROBLEM_INVALID_SCHEDULE,
    PROBLEM_EXPLORER_UNAVAILABLE,
    PROBLEM_OUTCOME_UNKNOWN,
    PROBLEM_BACKEND_UNAVAILABLE,
    PROBLEM_UNAUTHORIZED,
    PROBLEM_FORBIDDEN_ORIGIN,
    PROBLEM_NOT_YOURS,
    PROBLEM_INTERNAL_ERROR,
};

/* Replies with the problem. FORMAT makes the detail, which a person reads. MEMBERS are further members of the JSON object, such
 * as "strategy"; the function takes them over, and they may be NULL. */
void reply_problem(struct exchange *x, enum problem problem, json_t *members, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
