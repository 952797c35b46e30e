/* What a connection knows of itself: the state of its transaction, and its last error. */
#include "db/postgres/connection_impl.h"

#include <stdio.h>
#include <string.h>

void db_set_transaction(struct db *db, enum transaction transaction)
{
    db->transaction = transaction;
}

void db_note_error(struct db *db, const char *text, const char *constraint)
{
    snprintf(db->error, sizeof db->error, "%s", text);
    db->error[strcspn(db->error, "\n")] = '\0';
    db->error_line = 0;
    snprintf(db->constraint, sizeof db->constraint, "%s", constraint ? constraint : "");
}

const char *db_error(const struct db *db)
{
    return db->error;
}

int db_error_line(const struct db *db)
{
    return db->error_line;
}

const char *db_error_constraint(const struct db *db)
{
    return db->constraint;
}
