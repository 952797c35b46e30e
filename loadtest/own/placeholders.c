/* Puts values in the place of placeholders. */
#include "loadtest/own/placeholders.h"

#include "db/postgres/connection.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name;
    enum placeholder bit;
} PLACEHOLDERS[] = {
    {"port", PLACE_PORT},           {"postgres", PLACE_POSTGRES},   {"redis", PLACE_REDIS},
    {"stock", PLACE_STOCK},         {"instance", PLACE_INSTANCE},   {"request", PLACE_REQUEST},
    {"pghost", PLACE_POSTGRES},     {"pgport", PLACE_POSTGRES},     {"pguser", PLACE_POSTGRES},
    {"pgpassword", PLACE_POSTGRES}, {"pgdatabase", PLACE_POSTGRES},
};

#define PLACEHOLDER_COUNT (sizeof PLACEHOLDERS / sizeof PLACEHOLDERS[0])

/* The placeholder at AT, which begins with '{': its index, and its length with the braces; PLACEHOLDER_COUNT if it is none of
 * ours. The length is 0 if no word in braces stands there. */
static size_t placeholder_at(const char *at, size_t *ret_length)
{
    size_t length = strspn(at + 1, "abcdefghijklmnopqrstuvwxyz_"), i = 0;
    *ret_length = length > 0 && at[1 + length] == '}' ? length + 2 : 0;
    while (i < PLACEHOLDER_COUNT && (*ret_length != strlen(PLACEHOLDERS[i].name) + 2 ||
                                     strncmp(at + 1, PLACEHOLDERS[i].name, length) != 0))
        i++;
    return i;
}

void placeholders_list(unsigned allowed, char *ret_list, size_t size)
{
    size_t used = 0;
    ret_list[0] = 0;
    for (size_t i = 0; i < PLACEHOLDER_COUNT && used < size; i++)
        if (PLACEHOLDERS[i].bit & allowed)
            used += (size_t)snprintf(ret_list + used, size - used, " {%s}", PLACEHOLDERS[i].name);
}

const char *placeholder_without_value(const char *text, unsigned allowed, bool strict, size_t *ret_length)
{
    for (const char *at = strchr(text, '{'); at; at = strchr(at + 1, '{')) {
        size_t i = placeholder_at(at, ret_length);
        if (i < PLACEHOLDER_COUNT ? (PLACEHOLDERS[i].bit & allowed) == 0 : strict && *ret_length > 0)
            return at;
    }
    return NULL;
}

bool shop_mentions(const char *text, const char *name)
{
    size_t length, i;
    for (const char *at = strchr(text, '{'); at; at = strchr(at + 1, '{')) {
        i = placeholder_at(at, &length);
        if (i < PLACEHOLDER_COUNT && strcmp(PLACEHOLDERS[i].name, name) == 0)
            return true;
    }
    return false;
}

/* ---- expanding ----------------------------------------------------------------------------------------- */

/* A part of the address of PostgreSQL, such as {pghost}, to FILE. */
static void print_postgres_part(const char *address, const char *name, FILE *out)
{
    char *variables[32] = {NULL};
    size_t length = strlen(name);
    if (db_url_environment(address, variables, 32))
        for (size_t i = 0; i < 32 && variables[i]; i++)
            if (strncasecmp(variables[i], name, length) == 0 && variables[i][length] == '=')
                fputs(variables[i] + length + 1, out);
    for (size_t i = 0; i < 32 && variables[i]; i++)
        free(variables[i]);
}

/* False: it has no value. */
static bool print_value(size_t placeholder, const struct shop_values *values, FILE *out)
{
    int64_t number = -1;
    switch (PLACEHOLDERS[placeholder].bit) {
    case PLACE_POSTGRES:
        if (values->postgres && strcmp(PLACEHOLDERS[placeholder].name, "postgres") == 0)
            fputs(values->postgres, out);
        else if (values->postgres)
            print_postgres_part(values->postgres, PLACEHOLDERS[placeholder].name, out);
        return values->postgres != NULL;
    case PLACE_REDIS:
        if (values->redis)
            fputs(values->redis, out);
        return values->redis != NULL;
    case PLACE_PORT: number = values->port; break;
    case PLACE_STOCK: number = values->stock; break;
    case PLACE_INSTANCE: number = values->instance; break;
    case PLACE_REQUEST: number = values->request; break;
    }
    if (number >= 0)
        fprintf(out, "%" PRId64, number);
    return number >= 0;
}

char *shop_expand(const char *text, const struct shop_values *values)
{
    char *expanded = NULL;
    size_t size, length;
    FILE *out = open_memstream(&expanded, &size);
    if (!out)
        return NULL;
    while (*text) {
        size_t i = *text == '{' ? placeholder_at(text, &length) : PLACEHOLDER_COUNT;
        if (i < PLACEHOLDER_COUNT && print_value(i, values, out))
            text += length;
        else
            fputc(*text++, out);
    }
    bool failed = ferror(out);
    if (fclose(out) != 0 || failed) {
        free(expanded);
        return NULL;
    }
    return expanded;
}
