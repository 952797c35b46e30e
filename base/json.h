/* Parses JSON correctly even if memory runs out while it parses; jansson itself does not. */
#ifndef OVERSELL_BASE_JSON_H
#define OVERSELL_BASE_JSON_H

#include <jansson.h>

/* As json_loadb. If memory runs out, returns NULL with json_error_out_of_memory, never a value that is not in TEXT. Any thread. */
json_t *json_read(const char *text, size_t size, size_t flags, json_error_t *ret_error);

#endif
