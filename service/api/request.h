/* Reads what a client sends, strictly: bodies, ids in paths, and parameters of the query. Each function that returns false or
 * NULL has replied with the problem. Any thread that has the exchange may call. */
#ifndef OVERSELL_SERVICE_API_REQUEST_H
#define OVERSELL_SERVICE_API_REQUEST_H

#include "service/http/problem.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* A member that a JSON body may have. */
enum body_type { BODY_INTEGER, BODY_STRING, BODY_NAMES, BODY_BOOLEAN };
struct member {
    const char *name;
    enum body_type type;
    bool required;
    void *
        to; /* out: int64_t, const char *, json_t * (an array of strings) or bool; the body owns strings and arrays */
    int64_t least,
        most; /* BODY_INTEGER: the range; BODY_STRING: the length in characters; BODY_NAMES: how many */
};

/* Parses the body as an object with these members and no others, and stores their values. MEMBERS ends with a NULL name. The
 * value of an optional member that is absent or null stays as it is. The caller releases the body with json_decref. */
json_t *api_body(struct exchange *x, const struct member *members);

/* Reads the variable part of the path as an id. PROBLEM: the reply if it is not one. */
bool api_path_id(struct exchange *x, enum problem problem, int64_t *ret_id);
/* Reads a query parameter as an integer from LEAST to MOST; PRESET if it is absent. */
bool api_query_integer(struct exchange *x, const char *name, int64_t preset, int64_t least, int64_t most,
                       int64_t *ret_value);

static inline void api_decref(json_t **json)
{
    json_decref(*json);
}
/* A json_t pointer that is released at the end of its scope. */
#define AUTO_JSON __attribute__((cleanup(api_decref))) json_t *

#endif
