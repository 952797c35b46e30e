/* Placeholders in the texts of a description, such as {port}, and the values that they stand for. Any thread. */
#ifndef OVERSELL_LOADTEST_OWN_PLACEHOLDERS_H
#define OVERSELL_LOADTEST_OWN_PLACEHOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kinds of placeholders, to be or-ed. */
enum placeholder {
    PLACE_PORT = 1,
    PLACE_POSTGRES = 2,
    PLACE_REDIS = 4,
    PLACE_STOCK = 8,
    PLACE_INSTANCE = 16,
    PLACE_REQUEST = 32,
};

/* What placeholders stand for; NULL and -1: nothing. */
struct shop_values {
    const char *postgres,
        *redis; /* {postgres}, {redis}: addresses. {pghost}, {pgport}, {pguser}, {pgpassword} and {pgdatabase}
                                   * are the parts of the former. */
    int64_t port, instance, stock, request; /* {port}; {instance}, from 1; {stock}; {request}, from 1 */
};
#define SHOP_NO_VALUES                                                                                       \
    {                                                                                                        \
        .port = -1, .instance = -1, .stock = -1, .request = -1                                               \
    }

/* TEXT with the values in place of the placeholders, to be freed; NULL when out of memory. A placeholder without a value, and
 * braces around anything else, stay as they are. */
char *shop_expand(const char *text, const struct shop_values *values);
/* TEXT has the placeholder "{NAME}". */
bool shop_mentions(const char *text, const char *name);
/* Looks for a placeholder whose kind is not ALLOWED, or, if STRICT, for any other word in braces. Returns it, with its length; NULL: there is
 * none. */
const char *placeholder_without_value(const char *text, unsigned allowed, bool strict, size_t *ret_length);
/* Writes the placeholders of the ALLOWED kinds, each after a space. */
void placeholders_list(unsigned allowed, char *ret_list, size_t size);

#endif
