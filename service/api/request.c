/* Reads what a client sends, strictly: bodies, ids in paths, and parameters of the query. */
#include "service/api/request.h"

#include "base/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How many characters (code points) a string of valid UTF-8 has; 0 for NULL. */
static int64_t characters(const char *text)
{
    int64_t count = 0;
    for (; text && *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

static bool are_strings(const json_t *array)
{
    size_t i;
    json_t *value;
    json_array_foreach(array, i, value) {
        if (!json_is_string(value))
            return false;
    }
    return json_is_array(array);
}

/* Reads one member; false with a reply made. */
static bool read_member(struct exchange *x, const struct member *member, json_t *value)
{
    if (!value || (json_is_null(value) && !member->required && member->type == BODY_STRING)) {
        if (member->required)
            reply_problem(x, PROBLEM_BAD_REQUEST, NULL, "the member %s is missing", member->name);
        return !member->required;
    }
    if (member->type == BODY_INTEGER) {
        int64_t number = json_integer_value(value);
        if (!json_is_integer(value))
            reply_problem(x, PROBLEM_BAD_REQUEST, NULL, "the member %s must be an integer", member->name);
        else if (number < member->least || number > member->most)
            reply_problem(x, PROBLEM_INVALID_ORDER, json_pack("{s:s}", "member", member->name),
                          "%s must be from %lld to %lld", member->name, (long long)member->least,
                          (long long)member->most);
        else
            *(int64_t *)member->to = number;
    } else if (member->type == BODY_BOOLEAN) {
        if (!json_is_boolean(value))
            reply_problem(x, PROBLEM_BAD_REQUEST, NULL, "the member %s must be true or false", member->name);
        else
            *(bool *)member->to = json_is_true(value);
    } else if (member->type == BODY_NAMES) {
        int64_t count = (int64_t)json_array_size(value);
        if (!are_strings(value))
            reply_problem(x, PROBLEM_BAD_REQUEST, NULL, "the member %s must be an array of strings",
                          member->name);
        else if (count < member->least || count > member->most)
            reply_problem(x, PROBLEM_INVALID_ORDER, json_pack("{s:s}", "member", member->name),
                          "%s must have from %lld to %lld of them", member->name, (long long)member->least,
                          (long long)member->most);
        else
            *(json_t **)member->to = value;
    } else {
        int64_t length = characters(json_string_value(value));
        if (!json_is_string(value))
            reply_problem(x, PROBLEM_BAD_REQUEST, NULL, "the member %s must be a string", member->name);
        else if (length < member->least || length > member->most)
            reply_problem(x, PROBLEM_INVALID_ORDER, json_pack("{s:s}", "member", member->name),
                          "%s must have from %lld to %lld characters", member->name, (long long)member->least,
                          (long long)member->most);
        else
            *(const char **)member->to = json_string_value(value);
    }
    return x->status == 0;
}

static bool is_member(const struct member *members, const char *name)
{
    for (; members->name; members++)
        if (strcmp(members->name, name) == 0)
            return true;
    return false;
}

json_t *api_body(struct exchange *x, const struct member *members)
{
    json_error_t error;
    if (x->body && memchr(x->body, '\0', x->body_size)) { /* jansson passes over some of them */
        reply_problem(x, PROBLEM_BAD_REQUEST, NULL, "the body is not JSON: it contains a NUL byte");
        return NULL;
    }
    json_t *body = json_read(x->body ? x->body : "", x->body_size, JSON_REJECT_DUPLICATES, &error);
    if (!body && json_error_code(&error) == json_error_out_of_memory) {
        reply_problem(x, PROBLEM_INTERNAL_ERROR, NULL, "out of memory");
        return NULL;
    }
    if (!body) {
        reply_problem(x, PROBLEM_BAD_REQUEST, NULL, "the body is not JSON: %s at line %d, column %d",
                      error.text, error.line, error.column);
        return NULL;
    }
    if (!json_is_object(body)) {
        reply_problem(x, PROBLEM_BAD_REQUEST, NULL, "the body must be a JSON object");
        goto bad;
    }
    const char *name;
    json_t *value;
    json_object_foreach(body, name, value) {
        if (!is_member(members, name)) {
            reply_problem(x, PROBLEM_BAD_REQUEST, NULL, "there is no member '%.60s'", name);
            goto bad;
        }
    }
    for (; members->name; members++)
        if (!read_member(x, members, json_object_get(body, members->name)))
            goto bad;
    return body;
bad:
    json_decref(body);
    return NULL;
}

/* A positive decimal number without signs or leading zeros that fits 63 bits. */
static bool parse_id(const char *text, int64_t *ret_id)
{
    if (text[0] < '1' || text[0] > '9' || strspn(text, "0123456789") != strlen(text))
        return false;
    errno = 0;
    *ret_id = strtoll(text, NULL, 10);
    return errno == 0;
}

bool api_path_id(struct exchange *x, enum problem problem, int64_t *ret_id)
{
    if (parse_id(x->argument, ret_id))
        return true;
    reply_problem(x, problem, NULL, "'%s' is not an id; an id is a positive integer", x->argument);
    return false;
}

bool api_query_integer(struct exchange *x, const char *name, int64_t preset, int64_t least, int64_t most,
                       int64_t *ret_value)
{
    char text[32], *end;
    int found = http_query(x, name, text, sizeof text);
    *ret_value = preset;
    if (found == 0)
        return true;
    errno = 0;
    if (found > 0 && (text[0] == '-' || (text[0] >= '0' && text[0] <= '9'))) {
        *ret_value = strtoll(text, &end, 10);
        if (!errno && !*end && *ret_value >= least && *ret_value <= most)
            return true;
    }
    reply_problem(x, PROBLEM_BAD_REQUEST, NULL, "the parameter %s must be an integer from %lld to %lld", name,
                  (long long)least, (long long)most);
    return false;
}
