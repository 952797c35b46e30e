/* Problems: the table of all errors that a client can meet, and the reply for each. */
#include "service/http/problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *type;
    int status;
    const char *title;
    int retry_after_s; /* 0: trying again does not help by itself */
} problems[] = {
    [PROBLEM_BAD_REQUEST] = {"bad-request", 400, "The request cannot be understood", 0},
    [PROBLEM_INVALID_ORDER] = {"invalid-order", 422, "A value is out of range", 0},
    [PROBLEM_NO_SUCH_PRODUCT] = {"no-such-product", 404, "There is no such product", 0},
    [PROBLEM_NO_SUCH_ORDER] = {"no-such-order", 404, "There is no such order", 0},
    [PROBLEM_NOT_FOUND] = {"not-found", 404, "There is nothing at this path", 0},
    [PROBLEM_METHOD_NOT_ALLOWED] = {"method-not-allowed", 405, "This path does not accept this method", 0},
    [PROBLEM_SOLD_OUT] = {"sold-out", 409, "Fewer units are left than were ordered", 0},
    [PROBLEM_CONFLICT] = {"conflict", 409, "The product changed during every attempt", 0},
    [PROBLEM_IDEMPOTENCY_MISMATCH] = {"idempotency-mismatch", 422,
                                      "The Idempotency-Key belongs to another order", 0},
    [PROBLEM_IDEMPOTENCY_IN_PROGRESS] = {"idempotency-in-progress", 409,
                                         "The first request is still in progress", 1},
    [PROBLEM_INVALID_SCHEDULE] = {"invalid-schedule", 422, "The schedule or step is not possible", 0},
    [PROBLEM_EXPLORER_UNAVAILABLE] = {"explorer-unavailable", 503, "The explorer does not answer", 0},
    [PROBLEM_PAYLOAD_TOO_LARGE] = {"payload-too-large", 413, "The body is too large", 0},
    [PROBLEM_UNSUPPORTED_MEDIA_TYPE] = {"unsupported-media-type", 415, "The body must be application/json",
                                        0},
    [PROBLEM_LOCK_TIMEOUT] = {"lock-busy", 503, "The lock was not available in time", 1},
    [PROBLEM_LOCK_LOST] = {"lock-lost", 503, "The lock ended before the write; nothing was sold", 1},
    [PROBLEM_OVERLOADED] = {"overloaded", 503, "The service is overloaded", 1},
    [PROBLEM_WRONG_STOCK_KIND] = {"wrong-stock-kind", 409,
                                  "The product has another kind of stock than this strategy needs", 0},
    [PROBLEM_RUN_IN_PROGRESS] = {"run-in-progress", 409, "Another load run is in progress", 1},
    [PROBLEM_QUESTION_CLOSED] = {"question-closed", 409, "The question is closed", 0},
    [PROBLEM_EXERCISE_MISSING] = {"exercise-missing", 409,
                                  "More lessons were reported than exercises were run", 0},
    [PROBLEM_OUTCOME_UNKNOWN] = {"outcome-unknown", 504, "It is unknown whether the order was placed", 0},
    [PROBLEM_BACKEND_UNAVAILABLE] = {"backend-unavailable", 503,
                                     "A server that this request needs does not answer", 1},
    [PROBLEM_UNAUTHORIZED] = {"unauthorized", 401, "This call needs the admin token", 0},
    [PROBLEM_FORBIDDEN_ORIGIN] = {"forbidden-origin", 403, "Pages of other origins may not make this call",
                                  0},
    [PROBLEM_NOT_YOURS] = {"not-yours", 403, "This does not belong to the caller", 0},
    [PROBLEM_INTERNAL_ERROR] = {"internal-error", 500, "An unexpected error occurred", 0},
};

void reply_problem(struct exchange *x, enum problem problem, json_t *members, const char *format, ...)
{
    char type[64], detail[400];
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    snprintf(type, sizeof type, "/problems/%s", problems[problem].type);

    /* A detail that quotes a client may not be valid UTF-8, or be cut inside a character. */
    json_t *detail_json = json_string(detail);
    json_t *json = json_pack("{s:s, s:s, s:i, s:o, s:s}", "type", type, "title", problems[problem].title,
                             "status", problems[problem].status, "detail",
                             detail_json ? detail_json : json_string(problems[problem].title), "request_id",
                             x->request_id);
    if (json && members)
        json_object_update(json, members);
    json_decref(members);

    if (problem == PROBLEM_UNAUTHORIZED)
        http_set_header(x, "WWW-Authenticate", "Bearer realm=\"oversell\"");
    if (problems[problem].retry_after_s)
        http_set_header(x, "Retry-After", "%d", problems[problem].retry_after_s);
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    if (!text) { /* out of memory, but the client must learn which problem it is */
        text = x->room;
        snprintf(x->room, sizeof x->room,
                 "{\"type\":\"%s\",\"title\":\"%s\",\"status\":%d,"
                 "\"detail\":\"there was no memory for the details\",\"request_id\":\"%s\"}",
                 type, problems[problem].title, problems[problem].status, x->request_id);
    }
    http_reply_body(x, problems[problem].status, "application/problem+json", text, strlen(text));
}
