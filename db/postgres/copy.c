/* Runs scripts of several statements, and COPY with its data. Both need libpq outside its pipeline mode. */
#include "db/postgres/connection_impl.h"

#include <poll.h>
#include <string.h>

enum { COPY_PART = 65536 };

/* Answers COPY … FROM STDIN: with DATA, or, if that is NULL, with an error. False: the connection is lost. */
static bool send_copy(struct db *db, const char *data, size_t length)
{
    size_t sent = 0;
    for (;;) {
        bool is_end = !data || sent == length;
        size_t part = length - sent < COPY_PART ? length - sent : COPY_PART;
        int done = is_end ? PQputCopyEnd(db->pg, data ? NULL : "no rows follow COPY")
                          : PQputCopyData(db->pg, data + sent, (int)part);
        if (done < 0 || (done == 0 && !db_wait_socket(db, POLLOUT, db->deadline_us)))
            return false;
        if (done > 0 && is_end)
            return true;
        sent += done > 0 ? part : 0;
    }
}

/* PostgreSQL counts characters of SQL, and the rows of COPY, which begin in the line after it. */
static int line_of_error(const PGresult *result, const char *sql, bool has_data)
{
    const char *position = PQresultErrorField(result, PG_DIAG_STATEMENT_POSITION),
               *context = PQresultErrorField(result, PG_DIAG_CONTEXT),
               *row = has_data && context ? strstr(context, ", line ") : NULL;
    long left = position ? strtol(position, NULL, 10) - 1 : 0;
    int line = 1;
    for (; left > 0 && *sql; sql++) {
        line += *sql == '\n';
        left -= (sql[1] & 0xc0) != 0x80; /* the last byte of a character in UTF-8 */
    }
    return row ? 1 + (int)strtol(row + strlen(", line "), NULL, 10) : position ? line : 0;
}

enum db_status db_run_copy(struct db *db, const char *sql, const char *data, size_t length)
{
    db_finish(db);
    if (!db->pg)
        return DB_AWAY;
    if (!PQexitPipelineMode(db->pg) || !PQsendQuery(db->pg, sql))
        return db_hang_up(db, PQerrorMessage(db->pg));
    enum db_status status = DB_OK;
    bool lost = false;
    PGresult *result;
    while (!lost && (result = db_next_result(db, db->deadline_us, &lost)) != NULL) {
        ExecStatusType kind = PQresultStatus(result);
        if (kind == PGRES_COPY_IN) {
            lost = !send_copy(db, data, length);
        } else if (kind == PGRES_COPY_OUT) {
            db_note_error(db, "COPY TO STDOUT has nowhere to go", NULL);
            lost = true;
        } else if (status == DB_OK && kind != PGRES_COMMAND_OK && kind != PGRES_TUPLES_OK) {
            status = db_status_of(PQresultErrorField(result, PG_DIAG_SQLSTATE));
            db_note_error(db, PQresultErrorMessage(result), NULL);
            db->error_line = line_of_error(result, sql, data != NULL);
        }
        PQclear(result);
    }
    db->round_trips++;
    if (lost || !PQenterPipelineMode(db->pg)) {
        db_disconnect(db, DB_UNKNOWN);
        return DB_AWAY;
    }
    return status;
}

enum db_status db_run_script(struct db *db, const char *sql)
{
    return db_run_copy(db, sql, NULL, 0);
}
