/* Which strategies of the service's table are meant by names and groups. */
#include "loadtest/cli/selection.h"

#include "loadtest/cli/plain_text.h"

#include <stdio.h>
#include <string.h>

static const char *const GROUPS[] = {"all", "unsafe", "one-process", "while-lease-holds", "safe"};

#define GROUP_COUNT (sizeof GROUPS / sizeof GROUPS[0])

static bool equals(const char *word, size_t length, const char *name)
{
    return name && strlen(name) == length && strncmp(word, name, length) == 0;
}

bool selection_word_means(const char *word, size_t length, const char *name, const char *guarantee)
{
    return equals(word, length, "all") || equals(word, length, name) || equals(word, length, guarantee);
}

static bool list_means(const char *list, const json_t *row)
{
    return selection_means(list, json_string_value(json_object_get(row, "name")),
                           json_string_value(json_object_get(row, "guarantee")));
}

bool selection_next(const char **rest, const char **ret_word, size_t *ret_length)
{
    if (!*rest)
        return false;
    *ret_word = *rest;
    *ret_length = strcspn(*rest, ",");
    *rest = (*rest)[*ret_length] ? *rest + *ret_length + 1 : NULL;
    return true;
}

static bool is_group(const char *word, size_t length)
{
    for (size_t i = 0; i < GROUP_COUNT; i++)
        if (equals(word, length, GROUPS[i]))
            return true;
    return false;
}

static bool is_known(const json_t *table, const char *word, size_t length)
{
    size_t i;
    json_t *row;
    json_array_foreach(table, i, row) {
        if (equals(word, length, json_string_value(json_object_get(row, "name"))))
            return true;
    }
    return is_group(word, length);
}

static void print_valid(const json_t *table)
{
    size_t i;
    json_t *row;
    for (i = 0; i < GROUP_COUNT; i++)
        plain_print(stderr, " %s", GROUPS[i]);
    json_array_foreach(table, i, row) {
        const char *name = json_string_value(json_object_get(row, "name"));
        plain_print(stderr, " %s", name ? name : "?");
    }
    fputs(")\n", stderr);
}

bool selection_means(const char *list, const char *name, const char *guarantee)
{
    const char *word;
    size_t length;
    while (selection_next(&list, &word, &length))
        if (selection_word_means(word, length, name, guarantee))
            return true;
    return false;
}

json_t *selection_rows(const json_t *table, const char *list)
{
    const char *word, *rest = list;
    size_t length, i;
    while (selection_next(&rest, &word, &length))
        if (!is_known(table, word, length)) {
            plain_print(stderr, "loadtest: unknown strategy '%.*s' (valid:", (int)length, word);
            print_valid(table);
            return NULL;
        }
    json_t *rows = json_array(), *row;
    json_array_foreach(table, i, row) {
        if (list_means(list, row) && json_array_append(rows, row) != 0) {
            json_decref(rows);
            return NULL;
        }
    }
    if (json_array_size(rows) == 0) {
        plain_print(stderr, "loadtest: --strategies '%s' selects no strategy of this service (valid:", list);
        print_valid(table);
        json_decref(rows);
        return NULL;
    }
    return rows;
}

bool selection_names(const char *list, const char *name)
{
    const char *word;
    size_t length;
    while (selection_next(&list, &word, &length))
        if (!is_group(word, length) && equals(word, length, name))
            return true;
    return false;
}
