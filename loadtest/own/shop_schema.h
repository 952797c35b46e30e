/* Loads the file of "schema", which may be a dump of pg_dump, into the private PostgreSQL. */
#ifndef OVERSELL_LOADTEST_OWN_SHOP_SCHEMA_H
#define OVERSELL_LOADTEST_OWN_SHOP_SCHEMA_H

#include "db/postgres/connection.h"
#include "loadtest/own/description.h"

/* Runs each statement of the file by itself, as psql does, within 10 s. False, having said on stderr what is wrong, in which line of the file,
 * unless it was an interrupt. */
bool shop_schema_load(struct db *db, const struct shop_description *description);

#endif
