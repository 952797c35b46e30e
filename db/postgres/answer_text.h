/* Describes PostgreSQL's answer to a statement in a few words, for people. */
#ifndef OVERSELL_DB_POSTGRES_ANSWER_TEXT_H
#define OVERSELL_DB_POSTGRES_ANSWER_TEXT_H

#include <libpq-fe.h>
#include <stddef.h>

/* Writes "1 row: stock 1, version 4", "UPDATE 0", "COMMIT", or "ERROR 40001: could not serialize …" to RET_TEXT (SIZE bytes;
 * cut off if it is longer). Leaves out the columns that only the program needs. */
void pg_answer_text(const PGresult *result, char *ret_text, size_t size);

#endif
