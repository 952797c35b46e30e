/* Parses JSON correctly even when memory runs out meanwhile, which jansson alone does not. */
#ifndef OVERSELL_BASE_JSON_H
#define OVERSELL_BASE_JSON_H

#include <jansson.h>

/* As json_loadb; but where memory was out, NULL with json_error_out_of_memory, and never what is not in TEXT. Any thread. */
json_t *json_read(const char *text, size_t size, size_t flags, json_error_t *ret_error);

#endif
