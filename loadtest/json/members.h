/* The members of a JSON object as a table, by which a struct is packed into the object and unpacked from it. */
#ifndef OVERSELL_LOADTEST_JSON_MEMBERS_H
#define OVERSELL_LOADTEST_JSON_MEMBERS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum member_type {
    MEMBER_NUMBER, /* int64_t */
    MEMBER_REAL,   /* double; packed as null if it is no finite number */
    MEMBER_BOOL,   /* bool */
    MEMBER_TEXT, /* const char *; NULL is packed as null, and a text that is unpacked belongs to the object */
};

struct json_member {
    const char *name;
    enum member_type type;
    size_t offset;    /* in the struct */
    bool is_optional; /* for unpacking: where it is missing, the struct keeps its value */
};

struct json_members {
    const struct json_member *member;
    size_t count;
};

/* The row for a member of a struct; its type is that of the struct's member. */
#define JSON_MEMBER(name, structure, member, is_optional)                                                      \
    {                                                                                                          \
        name,                                                                                                \
            _Generic(((structure *)0)->member, int64_t                                                       \
                     : MEMBER_NUMBER, double                                                                 \
                     : MEMBER_REAL, bool                                                                     \
                     : MEMBER_BOOL, const char *                                                             \
                     : MEMBER_TEXT),                                                                         \
            offsetof(structure, member), is_optional \
    }

#define JSON_MEMBERS(array)                                                                                  \
    {                                                                                                        \
        array, sizeof(array) / sizeof(array)[0]                                                              \
    }

/* A new object with the members of the struct at FROM, in the table's order; NULL when out of memory. Any thread. */
json_t *members_pack(const struct json_members *members, const void *from);
/* Reads the members of OBJECT into the struct at TO. Returns the name of the first member that is missing or of another type,
 * or NULL if there is none. Any thread. */
const char *members_unpack(const struct json_members *members, const json_t *object, void *to);

#endif
