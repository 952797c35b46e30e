/* The SQL of a description: it resets the stock, and tells how much is left and how much was sold. */
#ifndef OVERSELL_LOADTEST_OWN_SHOP_DATABASE_H
#define OVERSELL_LOADTEST_OWN_SHOP_DATABASE_H

#include "loadtest/own/description.h"

/* What the database says, at one moment. */
struct shop_stock {
    int64_t left, sold;
    int broken; /* the first invariant that is not true; -1: none */
};

/* Each of these connects to the PostgreSQL at ADDRESS, waits 10 s at most for each statement, and returns false after having said on
 * stderr what is wrong. */

/* Runs the file of "schema". */
bool shop_database_load(const char *address, const struct shop_description *description);
/* Runs the SQL of "reset", with {stock} as STOCK. */
bool shop_database_reset(const char *address, const struct shop_description *description, int64_t stock);
/* Runs "stock", "sold" and each "invariant" in one snapshot. */
bool shop_database_read(const char *address, const struct shop_description *description, int64_t stock,
                        struct shop_stock *ret_stock);

#endif
