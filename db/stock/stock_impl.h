/* What the stock policies share: reading the row, writing it, and turning a reply into a take_status. */
#ifndef OVERSELL_DB_STOCK_STOCK_IMPL_H
#define OVERSELL_DB_STOCK_STOCK_IMPL_H

#include "base/observer.h"
#include "db/stock/stock.h"

/* Runs READ (ST_STOCK_READ or one with the same columns), checks that enough is left, reports STEP_READ. */
enum take_status stock_read(struct db *db, const struct statement *read, const struct stock_want *want,
                            struct stock_taken *ret_taken);

/* Runs WRITE ($1 product, $2 VALUE, $3 updated_by, $4 GUARD and $5 the epoch of the stock that was read, where the statement
 * has them), which returns the transaction's id and the new count; reports STEP_WRITE. No row written is TAKE_CONFLICT.
 * A reset or a PUT between the read and the write replaces the stock. What was computed from the old stock must not be
 * written then, so each WRITE demands the epoch or the version that was read. */
enum take_status stock_write(struct db *db, const struct statement *write, const struct stock_want *want,
                             int64_t value, int64_t guard, struct stock_taken *taken);

/* As read-write from here on: writes the target count that the program has computed. */
enum take_status stock_write_target(struct db *db, const struct stock_want *want, struct stock_taken *taken);

/* Reads under READ COMMITTED without any lock. */
extern const struct statement ST_STOCK_READ;

/* Is the product's kind of stock the one that the policy takes? If not, it is noted for TAKE_WRONG_KIND. */
bool stock_is_of_kind(const char *name, enum stock_kind kind, struct stock_taken *taken);

/* Notes the price and the transaction's id: the first two columns of ROW. */
void stock_note_taken(const PGresult *row, struct stock_taken *taken);

/* The TAKE_FAILED for STATUS. */
enum take_status stock_failed(enum db_status status, struct stock_taken *taken);

#endif
