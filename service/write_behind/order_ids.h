/* Order ids in stock: taken from PostgreSQL's sequence in advance, so that an order that is accepted in Redis already has the id
 * that PostgreSQL will store. Any thread may call. */
#ifndef OVERSELL_SERVICE_WRITE_BEHIND_ORDER_IDS_H
#define OVERSELL_SERVICE_WRITE_BEHIND_ORDER_IDS_H

#include "db/orders/write_behind.h"

#include <stddef.h>

/* Ids in stock: the number of orders that can be accepted while PostgreSQL is away. */
enum { ORDER_IDS_MAX = 16384 };

struct order_ids;

/* NULL when out of memory. */
struct order_ids *order_ids_new(void);
void order_ids_free(struct order_ids *ids);

/* Takes COUNT ids. False: there are fewer, and none is taken. *ret_shop: the name of the database that they are from. */
bool order_ids_take(struct order_ids *ids, int64_t *ret_ids, size_t count,
                    char ret_shop[static SHOP_NAME_SIZE]);
/* Gives back ID of the database SHOP, which was not used. An id of a database that has been replaced is dropped. */
void order_ids_return(struct order_ids *ids, const char *shop, int64_t id);

/* Are at most half of ORDER_IDS_MAX left? Then it is time for order_ids_draw. */
bool order_ids_run_low(struct order_ids *ids);
/* Adds a quarter of ORDER_IDS_MAX from DB. DB_OK, or why not. */
enum db_status order_ids_draw(struct order_ids *ids, struct db *db);

#endif
