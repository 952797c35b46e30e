/* Reads shop.json, which tells the load test about a user's service: how to start it, its requests, and where its stock is. */
#ifndef OVERSELL_LOADTEST_OWN_DESCRIPTION_H
#define OVERSELL_LOADTEST_OWN_DESCRIPTION_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The members as docs/shop.schema.json explains them. All but FOLDER belong to DOCUMENT; NULL: not given. */
struct description {
    json_t *document;
    char folder[PATH_MAX]; /* of the file: the service starts there, and SCHEMA is relative to it */
    const json_t *start;   /* the program and its arguments; NULL: the service runs already */
    const json_t *env;
    const char *ready;
    const char *database; /* NULL: a private PostgreSQL */
    const char *schema;
    bool redis;          /* the service needs a private Redis */
    const json_t *reset; /* an array of SQL statements, or a request */
    const json_t *request;
    const json_t *sold_out; /* an array of HTTP statuses */
    int64_t units;          /* that one request orders */
    const char *stock, *sold;
    const json_t *invariant; /* an array of SQL statements */
};

/* Reads the file at PATH, and checks all that can be checked without starting anything. False, having said on stderr what is wrong
 * and where; then there is nothing to close. */
bool description_load(const char *path, struct description *ret_description);
void description_close(struct description *description);

/* What stands for a name in braces, such as {port}. */
struct placeholder {
    const char *name, *value;
};

/* TEXT with the value for each placeholder of VALUES, which a NULL name ends; to be freed. Other braces stay as they are. NULL: out of
 * memory. Any thread. */
char *description_expand(const char *text, const struct placeholder *values);

/* The start file that `loadtest init` writes. */
extern const char description_example[];

#endif
