/* Brings the schema up to date, once for each version, also when several processes start at the same time. */
#ifndef OVERSELL_DB_SCHEMA_MIGRATE_H
#define OVERSELL_DB_SCHEMA_MIGRATE_H

#include "db/postgres/connection.h"

/* Applies what is missing and, in a shop without products, adds the first one with a stock of 100. Any error
 * leaves the last complete version in place. */
enum db_status db_migrate(struct db *db);

/* Connects DB, and brings the schema up to date unless a thread of this process has done so before. The thread that comes
 * first migrates; the others wait for it. Logs an error, at most once a second. Any thread, by DB's deadlines. */
enum db_status db_ready_with_schema(struct db *db);
/* Has a thread of this process found the schema up to date? Any thread. */
bool db_schema_is_ready(void);

#endif
