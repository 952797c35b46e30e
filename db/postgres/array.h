/* Arrays as PostgreSQL reads them from text, built element by element: parameters that stand for many rows, an array
 * for each column. One thread. */
#ifndef OVERSELL_DB_POSTGRES_ARRAY_H
#define OVERSELL_DB_POSTGRES_ARRAY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct array {
    FILE *out;
    char *text;
    size_t size;
    bool cut; /* a part is missing, since memory was out */
};

/* Begins COUNT empty arrays; whatever happens then, arrays_free is due. */
void arrays_begin(struct array *arrays, size_t count);
void array_add(struct array *array, const char *element); /* NULL for null */
void array_add_number(struct array *array, int64_t element);
/* No more elements: VALUES[i] is the text of array i, valid until arrays_free. False when memory was out. */
bool arrays_end(struct array *arrays, size_t count, const char **ret_values);
void arrays_free(struct array *arrays, size_t count);

#endif
