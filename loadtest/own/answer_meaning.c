/* Tells what an answer of a user's service means: check and explore count by the same rules. */
#include "loadtest/own/answer_meaning.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKEN_MAX = 128, HINT_DEPTH = 5, POINTER_MAX = 120 };

bool shop_rule_looks_inside(const struct shop_rule *rule)
{
    return rule->has || rule->lacks || rule->location || rule->text;
}

/* ---- values in JSON ------------------------------------------------------------------------------------- */

/* Copies the next part of a JSON Pointer (RFC 6901), which *AT stands before; false: it is too long. */
static bool next_part(const char **at, char ret_part[static TOKEN_MAX])
{
    size_t length = 0;
    const char *text = *at + 1;
    while (*text && *text != '/' && length + 1 < TOKEN_MAX) {
        bool is_escape = text[0] == '~' && (text[1] == '0' || text[1] == '1');
        ret_part[length] = *text;
        if (is_escape && text[1] == '1')
            ret_part[length] = '/';
        length++;
        text += is_escape ? 2 : 1;
    }
    ret_part[length] = 0;
    *at = text;
    return !*text || *text == '/';
}

static const json_t *item_of(const json_t *array, const char *part)
{
    bool is_index = *part && part[strspn(part, "0123456789")] == 0 && (part[0] != '0' || !part[1]);
    return is_index ? json_array_get(array, strtoul(part, NULL, 10)) : NULL;
}

/* The value to which POINTER leads is there, and is not null, false, "", [] or {}. */
static bool has_value(const json_t *value, const char *pointer)
{
    char part[TOKEN_MAX];
    while (value && *pointer)
        if (!next_part(&pointer, part))
            return false;
        else
            value = json_is_array(value) ? item_of(value, part) : json_object_get(value, part);
    if (json_is_string(value))
        return json_string_length(value) > 0;
    if (json_is_array(value) || json_is_object(value))
        return json_array_size(value) + json_object_size(value) > 0;
    return value && !json_is_null(value) && !json_is_false(value);
}

static json_t *read_body(const struct shop_reply *reply)
{
    return reply->body ? json_loads(reply->body, JSON_DECODE_ANY, NULL) : NULL;
}

/* ---- rules ------------------------------------------------------------------------------------------------ */

static bool fits_json(const struct shop_rule *rule, const struct shop_reply *reply)
{
    if (!rule->has && !rule->lacks)
        return true;
    json_auto_t *body = read_body(reply);
    return body && (!rule->has || has_value(body, rule->has)) &&
           (!rule->lacks || !has_value(body, rule->lacks));
}

static bool fits(const struct shop_rule *rule, const struct shop_reply *reply)
{
    return rule->status == reply->status &&
           (!rule->location || (reply->location && strstr(reply->location, rule->location))) &&
           (!rule->text || (reply->body && strstr(reply->body, rule->text))) && fits_json(rule, reply);
}

/* SHOP_UNCLEAR: no rule fits. */
static enum shop_meaning meaning_by_rules(const struct shop_description *description,
                                          const struct shop_reply *reply)
{
    for (int pass = 0; pass < 2; pass++)
        for (int meaning = 0; meaning < SHOP_MEANINGS; meaning++)
            for (size_t i = 0; i < description->answers[meaning].count; i++) {
                const struct shop_rule *rule = &description->answers[meaning].rule[i];
                if (shop_rule_looks_inside(rule) == (pass == 0) && fits(rule, reply))
                    return (enum shop_meaning)meaning;
            }
    return SHOP_UNCLEAR;
}

enum shop_meaning shop_meaning_of(const struct shop_description *description, const struct shop_reply *reply)
{
    enum shop_meaning meaning = meaning_by_rules(description, reply);
    bool is_2xx = reply->status >= 200 && reply->status < 300;
    return meaning == SHOP_UNCLEAR && is_2xx && description->all_2xx_sold ? SHOP_SOLD : meaning;
}

/* ---- hints ------------------------------------------------------------------------------------------------ */

/* Looks for a member that tells of an error, in VALUE, to which RET_POINTER leads; appends the rest of the way to it. */
static bool find_error(const json_t *value, int depth, char ret_pointer[static POINTER_MAX],
                       const char **ret_condition)
{
    static const char *const ERRORS[] = {"errors", "error", "userErrors"}, *const GOOD[] = {"success", "ok"};
    size_t length = strlen(ret_pointer);
    const char *name;
    json_t *member;
    for (size_t i = 0; i < sizeof ERRORS / sizeof ERRORS[0]; i++)
        if (has_value(json_object_get(value, ERRORS[i]), "")) {
            snprintf(ret_pointer + length, POINTER_MAX - length, "/%s", ERRORS[i]);
            *ret_condition = "has";
            return true;
        }
    for (size_t i = 0; i < sizeof GOOD / sizeof GOOD[0]; i++)
        if (json_is_false(json_object_get(value, GOOD[i]))) {
            snprintf(ret_pointer + length, POINTER_MAX - length, "/%s", GOOD[i]);
            *ret_condition = "lacks";
            return true;
        }
    json_object_foreach((json_t *)value, name, member) {
        if (depth == 0 || strpbrk(name, "/~\""))
            continue;
        snprintf(ret_pointer + length, POINTER_MAX - length, "/%.40s", name);
        if (find_error(member, depth - 1, ret_pointer, ret_condition))
            return true;
        ret_pointer[length] = 0;
    }
    return false;
}

static void hint_at_error(const struct shop_reply *reply, char ret_hint[static SHOP_HINT])
{
    char pointer[POINTER_MAX] = "";
    const char *condition;
    bool may_have = reply->body && (strstr(reply->body, "rror") || strstr(reply->body, "success") ||
                                    strstr(reply->body, "\"ok\""));
    json_auto_t *body = may_have ? read_body(reply) : NULL;
    if (find_error(body, HINT_DEPTH, pointer, &condition))
        snprintf(ret_hint, SHOP_HINT, "{\"status\": %ld, \"%s\": \"%s\"} to \"refused\" in \"answers\"",
                 reply->status, condition, pointer);
}

/* The path of an address, which stays the same on every port. */
static const char *path_in(const char *location)
{
    const char *host = strstr(location, "://");
    const char *path = host ? strchr(host + 3, '/') : location;
    return path ? path : "/";
}

void shop_hint_of(const struct shop_description *description, const struct shop_reply *reply,
                  char ret_hint[static SHOP_HINT])
{
    ret_hint[0] = 0;
    if (meaning_by_rules(description, reply) != SHOP_UNCLEAR)
        return;
    if (reply->status == 202)
        snprintf(ret_hint, SHOP_HINT, "202 to \"accepted\" in \"answers\", and \"settled\"");
    else if (reply->status >= 200 && reply->status < 300)
        hint_at_error(reply, ret_hint);
    else if (reply->status >= 300 && reply->status < 400 && reply->location)
        snprintf(ret_hint, SHOP_HINT,
                 "{\"status\": %ld, \"location\": \"%.120s\"} to \"sold\" or \"refused\" in \"answers\"",
                 reply->status, path_in(reply->location));
    text_mend(ret_hint);
}
