/* Finds the line of a member in a JSON text, because a parsed value does not have it. */
#include "loadtest/own/json_lines.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const char *skip_space(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

/* AT is a quotation mark. Returns what follows the string. */
static const char *skip_string(const char *at)
{
    for (at++; *at && *at != '"'; at++)
        if (*at == '\\' && at[1])
            at++;
    return *at ? at + 1 : at;
}

/* Returns what follows the value. Brackets are only counted, so depth costs no stack. */
static const char *skip_value(const char *at)
{
    size_t depth = 0;
    for (at = skip_space(at); *at;) {
        if (*at == '"') {
            at = skip_string(at);
        } else if (*at == '{' || *at == '[') {
            depth++;
            at++;
        } else if (*at == '}' || *at == ']') {
            if (depth == 0)
                return at;
            depth--;
            at++;
        } else if (depth == 0) {
            at += strcspn(at, ",}] \t\r\n");
        } else {
            at++;
        }
        if (depth == 0)
            return at;
    }
    return at;
}

/* The value of the member called NAME of the object at AT; NULL if there is none. *ret_name is where the name stands. */
static const char *find_member(const char *at, const char *name, size_t length, const char **ret_name)
{
    if (*at != '{')
        return NULL;
    for (at = skip_space(at + 1); *at == '"'; at = skip_space(at + 1)) {
        const char *key = at, *end = skip_string(at);
        at = skip_space(end);
        if (*at != ':')
            return NULL;
        at = skip_space(at + 1);
        if ((size_t)(end - key) == length + 2 && strncmp(key + 1, name, length) == 0) {
            *ret_name = key;
            return at;
        }
        at = skip_space(skip_value(at));
        if (*at != ',')
            return NULL;
    }
    return NULL;
}

/* Item INDEX of the array at AT; NULL if there is none. */
static const char *find_item(const char *at, unsigned long index)
{
    if (*at != '[')
        return NULL;
    for (at = skip_space(at + 1); *at && *at != ']'; at = skip_space(at + 1)) {
        if (index-- == 0)
            return at;
        at = skip_space(skip_value(at));
        if (*at != ',')
            return NULL;
    }
    return NULL;
}

int json_line_of(const char *text, const char *path)
{
    const char *at = skip_space(text), *found = at;
    while (at && *path) {
        const char *name = NULL;
        if (*path == '[') {
            char *end;
            at = find_item(at, strtoul(path + 1, &end, 10));
            path = *end ? end + 1 : end;
            name = at;
        } else {
            path += *path == '.';
            size_t length = strcspn(path, ".[");
            at = find_member(at, path, length, &name);
            path += length;
        }
        if (at)
            found = name;
    }
    int line = 1;
    for (const char *c = text; c < found; c++)
        line += *c == '\n';
    return line;
}
