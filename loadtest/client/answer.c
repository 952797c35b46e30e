/* How an order was answered: the HTTP API's problems by their codes, and the two ways to be made. */
#include "loadtest/client/answer.h"

#include <string.h>

static const char *const NAMES[ANSWER_COUNT] = {
    [ANSWER_CREATED] = "created",         [ANSWER_ACCEPTED] = "accepted",
    [ANSWER_SOLD_OUT] = "sold-out",       [ANSWER_LOCK_BUSY] = "lock-busy",
    [ANSWER_CONFLICT] = "conflict",       [ANSWER_OVERLOADED] = "overloaded",
    [ANSWER_LOCK_LOST] = "lock-lost",     [ANSWER_UNAVAILABLE] = "backend-unavailable",
    [ANSWER_UNKNOWN] = "outcome-unknown", [ANSWER_OTHER] = "other",
};

const char *answer_name(enum answer answer)
{
    return NAMES[answer];
}

enum answer answer_of(long status, const char *body, size_t length)
{
    static const char PROBLEMS[] = "/problems/";
    if (status == 201 || status == 202)
        return status == 201 ? ANSWER_CREATED : ANSWER_ACCEPTED;
    const char *code = memmem(body, length, PROBLEMS, sizeof PROBLEMS - 1);
    if (!code)
        return ANSWER_OTHER;
    code += sizeof PROBLEMS - 1;
    size_t left = (size_t)(body + length - code);
    for (int i = ANSWER_SOLD_OUT; i < ANSWER_OTHER; i++) {
        size_t name = strlen(NAMES[i]);
        if (left > name && strncmp(code, NAMES[i], name) == 0 && code[name] == '"')
            return (enum answer)i;
    }
    return ANSWER_OTHER;
}
