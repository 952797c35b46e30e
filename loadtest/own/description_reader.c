/* Says where a description of a user's service is wrong, and names its members as the user sees them. */
#include "loadtest/own/description_reader.h"

#include "loadtest/cli/complain.h"
#include "loadtest/own/json_lines.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void complain_of(const struct reader *reader, const char *member, const char *format,
                        va_list arguments)
{
    char what[800];
    const char *quote = *member ? "\"" : "";
    (void)vsnprintf(what, sizeof what, format, arguments);
    complain("%s:%d: %s%s%s %s", reader->path, json_line_of(reader->text, member), quote,
             *member ? member : "the file", quote, what);
}

bool wrong(const struct reader *reader, const char *member, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    complain_of(reader, member, format, arguments);
    va_end(arguments);
    return false;
}

void shop_complain(const struct shop_description *description, const char *member, const char *format, ...)
{
    const struct reader reader = {.path = description->path, .text = description->text};
    va_list arguments;
    va_start(arguments, format);
    complain_of(&reader, member, format, arguments);
    va_end(arguments);
}

const char *kind_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: return "a string";
    case JSON_INTEGER:
    case JSON_REAL: return "a number";
    case JSON_TRUE:
    case JSON_FALSE: return "true or false";
    case JSON_NULL: return "null";
    }
    return "something else";
}

bool member_is_comment(const char *name)
{
    return strncmp(name, "//", 2) == 0;
}

void path_of_member(const char *parent, const char *name, char ret_path[static MEMBER_MAX])
{
    snprintf(ret_path, MEMBER_MAX, "%.60s%s%.60s", parent, *parent ? "." : "", name);
}

void path_of_item(const char *parent, size_t index, char ret_path[static MEMBER_MAX])
{
    snprintf(ret_path, MEMBER_MAX, "%.90s[%zu]", parent, index);
}

bool only_members(const struct reader *reader, const char *parent, const json_t *object,
                  const char *const *names)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value) {
        size_t i = 0;
        while (names[i] && strcmp(names[i], name) != 0)
            i++;
        if (names[i] || member_is_comment(name))
            continue;
        char member[MEMBER_MAX], list[300] = "";
        path_of_member(parent, name, member);
        for (size_t j = 0, used = 0; names[j] && used < sizeof list; j++)
            used += (size_t)snprintf(list + used, sizeof list - used, " %s", names[j]);
        return wrong(reader, member, "is unknown (valid:%s; a name that starts with // is a comment)", list);
    }
    return true;
}
