/* Puts a given number of earlier orders into the tables, to measure how orders become slower with those that are there. */
#ifndef OVERSELL_LOADTEST_BENCH_EARLIER_ORDERS_H
#define OVERSELL_LOADTEST_BENCH_EARLIER_ORDERS_H

#include "db/postgres/connection.h"

#include <stdbool.h>
#include <stdint.h>

/* The orders that the tables have before each measurement. */
struct earlier_orders {
    int64_t wanted;   /* 0: none */
    int64_t inserted; /* that are there now */
    int64_t last_id;  /* of those; a measurement's orders have greater ids */
    double insert_s;  /* seconds that the last inserts took */
};

/* Deletes the orders of the last measurement and inserts the earlier orders that are missing. Each has one unit, and the
 * products FIRST … FIRST + PRODUCTS - 1 take turns. Their units are taken out of the stock of STOCK units for each product, so
 * stock and orders balance. False on a failure or at an interrupt; db_error says why. */
bool earlier_orders_refresh(struct db *db, struct earlier_orders *orders, int64_t first, int64_t products,
                            int64_t stock);

#endif
