/* Decodes the parameters of a query strictly, because a value that two programs read differently is a security hole. */
#include "service/http/server.h"

#include <string.h>

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Decodes LENGTH characters; false where an escape is bad, stands for NUL, or the value does not fit. */
static bool decode(const char *from, size_t length, char *to, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        int c = (unsigned char)from[i];
        if (c == '%') {
            int high = i + 1 < length ? hex_digit(from[i + 1]) : -1;
            int low = i + 2 < length ? hex_digit(from[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = high * 16 + low;
            i += 2;
        } else if (c == '+') {
            c = ' ';
        }
        if (c == 0 || used + 1 >= size)
            return false;
        to[used++] = (char)c;
    }
    to[used] = '\0';
    return true;
}

/* The parameter at *CURSOR, which moves on; false at the end. */
static bool next_parameter(const char **cursor, const char **ret_name, size_t *ret_name_length,
                           const char **ret_value, size_t *ret_value_length)
{
    while (**cursor == '&')
        (*cursor)++;
    if (!**cursor)
        return false;
    size_t length = strcspn(*cursor, "&");
    size_t name_length = strcspn(*cursor, "=&");
    *ret_name = *cursor;
    *ret_name_length = name_length;
    *ret_value = *cursor + name_length + (name_length < length);
    *ret_value_length = length - name_length - (name_length < length);
    *cursor += length;
    return true;
}

int http_query(const struct exchange *x, const char *name, char *value, size_t size)
{
    int found = 0;
    const char *cursor = x->query ? x->query : "", *key, *text;
    size_t key_length, text_length;
    while (next_parameter(&cursor, &key, &key_length, &text, &text_length)) {
        if (key_length != strlen(name) || memcmp(key, name, key_length) != 0)
            continue;
        if (found || !decode(text, text_length, value, size))
            return -1;
        found = 1;
    }
    return found;
}

bool http_query_names(const struct exchange *x, const char *const *names)
{
    const char *cursor = x->query ? x->query : "", *key, *text;
    size_t key_length, text_length;
    while (next_parameter(&cursor, &key, &key_length, &text, &text_length)) {
        const char *const *name = names;
        while (*name && (strlen(*name) != key_length || memcmp(*name, key, key_length) != 0))
            name++;
        if (!*name)
            return false;
    }
    return true;
}
