/* Arrays as PostgreSQL reads them from text: {1,NULL,"with \"quotes\""}. */
#include "db/array.h"

#include <inttypes.h>
#include <stdlib.h>

void arrays_begin(struct array *arrays, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        arrays[i] = (struct array){0};
        arrays[i].out = open_memstream(&arrays[i].text, &arrays[i].size);
        if (arrays[i].out)
            fputc('{', arrays[i].out);
    }
}

static void separate(struct array *array)
{
    if (ftell(array->out) > 1)
        fputc(',', array->out);
}

void array_add(struct array *array, const char *element)
{
    if (!array->out)
        return;
    separate(array);
    if (!element) {
        fputs("NULL", array->out);
        return;
    }
    fputc('"', array->out);
    for (; *element; element++) {
        if (*element == '"' || *element == '\\')
            fputc('\\', array->out);
        fputc(*element, array->out);
    }
    fputc('"', array->out);
}

void array_add_number(struct array *array, int64_t element)
{
    if (!array->out)
        return;
    separate(array);
    fprintf(array->out, "%" PRId64, element);
}

/* Closes the stream, which makes the text whole. */
static bool end(struct array *array)
{
    if (!array->out)
        return false;
    fputc('}', array->out);
    bool whole = !ferror(array->out);
    whole &= fclose(array->out) == 0;
    array->out = NULL;
    return whole;
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
