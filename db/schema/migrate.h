/* Brings the schema up to date, once for each version, also when several processes start at the same time. */
#ifndef OVERSELL_DB_SCHEMA_MIGRATE_H
#define OVERSELL_DB_SCHEMA_MIGRATE_H

#include "db/postgres/connection.h"

/* Applies what is missing and, in a shop without products, adds the first one with a stock of 100. Any error
 * leaves the last complete version in place. */
enum db_status db_migrate(struct db *db);

#endif
