/* The members of a JSON object as a table, by which a struct is packed into the object and unpacked from it. */
#include "loadtest/json/members.h"

#include <math.h>

static json_t *pack(const struct json_member *member, const void *at)
{
    switch (member->type) {
    case MEMBER_NUMBER: return json_integer((json_int_t) * (const int64_t *)at);
    case MEMBER_REAL: return isfinite(*(const double *)at) ? json_real(*(const double *)at) : json_null();
    case MEMBER_BOOL: return json_boolean(*(const bool *)at);
    case MEMBER_TEXT: return *(const char *const *)at ? json_string(*(const char *const *)at) : json_null();
    }
    return NULL;
}

json_t *members_pack(const struct json_members *members, const void *from)
{
    json_t *object = json_object();
    for (size_t i = 0; object && i < members->count; i++) {
        const struct json_member *member = &members->member[i];
        if (json_object_set_new(object, member->name, pack(member, (const char *)from + member->offset)) !=
            0) {
            json_decref(object);
            object = NULL;
        }
    }
    return object;
}

static bool unpack(const struct json_member *member, const json_t *value, void *at)
{
    switch (member->type) {
    case MEMBER_NUMBER: *(int64_t *)at = (int64_t)json_integer_value(value); return json_is_integer(value);
    case MEMBER_REAL: *(double *)at = json_number_value(value); return json_is_number(value);
    case MEMBER_BOOL: *(bool *)at = json_is_true(value); return json_is_boolean(value);
    case MEMBER_TEXT: *(const char **)at = json_string_value(value); return json_is_string(value);
    }
    return false;
}

const char *members_unpack(const struct json_members *members, const json_t *object, void *to)
{
    for (size_t i = 0; i < members->count; i++) {
        const struct json_member *member = &members->member[i];
        const json_t *value = json_object_get(object, member->name);
        if (!(value ? unpack(member, value, (char *)to + member->offset) : member->is_optional))
            return member->name;
    }
    return NULL;
}
