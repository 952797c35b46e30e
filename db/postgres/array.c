/* Arrays as PostgreSQL reads them from text: {1,NULL,"with \"quotes\""}. */
#include "db/postgres/array.h"

#include <inttypes.h>
#include <stdlib.h>

/* A memory stream that cannot grow says so here, and in no error flag. */
static void put(struct array *array, char c)
{
    array->cut |= fputc(c, array->out) == EOF;
}

void arrays_begin(struct array *arrays, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        arrays[i] = (struct array){0};
        arrays[i].out = open_memstream(&arrays[i].text, &arrays[i].size);
        if (arrays[i].out)
            put(&arrays[i], '{');
    }
}

static void separate(struct array *array)
{
    if (ftell(array->out) > 1)
        put(array, ',');
}

void array_add(struct array *array, const char *element)
{
    if (!array->out)
        return;
    separate(array);
    if (!element) {
        array->cut |= fputs("NULL", array->out) == EOF;
        return;
    }
    put(array, '"');
    for (; *element; element++) {
        if (*element == '"' || *element == '\\')
            put(array, '\\');
        put(array, *element);
    }
    put(array, '"');
}

void array_add_number(struct array *array, int64_t element)
{
    if (!array->out)
        return;
    separate(array);
    array->cut |= fprintf(array->out, "%" PRId64, element) < 0;
}

/* Closes the stream, which makes the text whole: it is moved, and lost where there is no memory for that. */
static bool end(struct array *array)
{
    if (!array->out)
        return false;
    put(array, '}');
    array->cut |= fclose(array->out) != 0;
    array->out = NULL;
    return array->text && !array->cut;
}

bool arrays_end(struct array *arrays, size_t count, const char **ret_values)
{
    bool whole = true;
    for (size_t i = 0; i < count; i++) {
        whole &= end(&arrays[i]);
        ret_values[i] = arrays[i].text;
    }
    return whole;
}

void arrays_free(struct array *arrays, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (arrays[i].out)
            fclose(arrays[i].out);
        free(arrays[i].text);
    }
}
