/* Ids for orders that are accepted before PostgreSQL hears of them: drawn from its sequence in advance, so that the order
 * will have the id that its client was told. Any thread may call. */
#ifndef OVERSELL_SERVICE_WRITE_BEHIND_ORDER_IDS_H
#define OVERSELL_SERVICE_WRITE_BEHIND_ORDER_IDS_H

#include "db/orders/write_behind.h"

#include <stddef.h>

enum { ORDER_IDS_MAX = 16384 }; /* that lie ready: as many orders can be accepted while PostgreSQL is away */

struct order_ids;

/* NULL when out of memory. */
struct order_ids *order_ids_new(void);
void order_ids_free(struct order_ids *ids);

/* COUNT ids, or none and false where so many do not lie ready. *ret_shop is the name of the database that they are of. */
bool order_ids_take(struct order_ids *ids, int64_t *ret_ids, size_t count,
                    char ret_shop[static SHOP_NAME_SIZE]);
/* Gives back ID of the database SHOP, which was not used. An id of a database that has been replaced is dropped. */
void order_ids_return(struct order_ids *ids, const char *shop, int64_t id);

/* At most half of ORDER_IDS_MAX lie ready: it is time to draw more. */
bool order_ids_run_low(struct order_ids *ids);
/* Draws a quarter of ORDER_IDS_MAX through DB. */
enum db_status order_ids_draw(struct order_ids *ids, struct db *db);

#endif
