/* The one table from SQLSTATE to meaning. */
#include "db/postgres/sqlstate.h"

#include <stddef.h>
#include <string.h>

/* A code of two characters stands for its whole class; the first match counts. */
static const struct {
    const char *code;
    enum db_status status;
} meanings[] = {
    {"40001", DB_SERIALIZATION}, /* serialization_failure */
    {"40P01", DB_DEADLOCK},      /* deadlock_detected */
    {"55P03", DB_LOCK_TIMEOUT},  /* lock_not_available */
    {"57014", DB_TIMEOUT},       /* query_canceled: statement_timeout, or a cancel of ours */
    {"23505", DB_UNIQUE},        /* unique_violation */
    {"23514", DB_CHECK},         /* check_violation */
    {"23503", DB_FOREIGN_KEY},   /* foreign_key_violation */
    {"22003", DB_OUT_OF_RANGE},  /* numeric_value_out_of_range */
    {"25P03", DB_AWAY},          /* idle_in_transaction_session_timeout: the session is gone */
    {"57P01", DB_AWAY},          /* admin_shutdown */
    {"57P02", DB_AWAY},          /* crash_shutdown */
    {"57P03", DB_AWAY},          /* cannot_connect_now */
    {"57P05", DB_AWAY},          /* idle_session_timeout */
    {"08", DB_AWAY},             /* connection exceptions */
    {"53300", DB_AWAY},          /* too_many_connections: passes */
    {"53", DB_REFUSED},          /* disk full, out of memory */
    {"28", DB_REFUSED},          /* invalid password or role */
    {"3D", DB_REFUSED},          /* no such database */
    {"25006", DB_AWAY},          /* read_only_sql_transaction: a standby; connect again */
    {"42501", DB_REFUSED},       /* insufficient_privilege */
    {"58", DB_REFUSED},          /* the operating system failed the server */
};

enum db_status db_status_of(const char *sqlstate)
{
    if (!sqlstate)
        return DB_AWAY;
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (strncmp(sqlstate, meanings[i].code, strlen(meanings[i].code)) == 0)
            return meanings[i].status;
    return DB_ERROR;
}
