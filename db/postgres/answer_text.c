/* Describes a result of PostgreSQL: the number of rows, and the columns about the stock or a lock. */
#include "db/postgres/answer_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { ROWS_SHOWN = 3 };

/* Times, and numbers that PostgreSQL gives to orders, transactions and resets: they tell a reader nothing, and differ in every run. */
static const char *const FOR_PROGRAMS[] = {"id",
                                           "status",
                                           "price",
                                           "purchase_price",
                                           "stock_kind",
                                           "clock_timestamp",
                                           "created_at",
                                           "xid",
                                           "to_char",
                                           "snapshot",
                                           "pg_current_snapshot",
                                           "read_at",
                                           "pg_current_xact_id",
                                           "?column?",
                                           "stock_epoch"};

static bool is_shown(const PGresult *result, int row, int column)
{
    for (size_t i = 0; i < sizeof FOR_PROGRAMS / sizeof FOR_PROGRAMS[0]; i++)
        if (strcmp(PQfname(result, column), FOR_PROGRAMS[i]) == 0)
            return false;
    return PQgetisnull(result, row, column) || *PQgetvalue(result, row, column);
}

static void append(char *text, size_t size, const char *word)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s", word);
}

/* ": stock 1, version 4", or nothing. */
static void append_rows(const PGresult *result, char *text, size_t size)
{
    const char *before = ": ";
    for (int row = 0; row < PQntuples(result) && row < ROWS_SHOWN; row++) {
        for (int column = 0; column < PQnfields(result); column++) {
            const char *name = PQfname(result, column);
            if (!is_shown(result, row, column))
                continue;
            append(text, size, before);
            append(text, size, strcmp(name, "count") == 0 ? "stock" : name);
            append(text, size, " ");
            append(text, size, PQgetisnull(result, row, column) ? "null" : PQgetvalue(result, row, column));
            before = ", ";
        }
        before = "; ";
    }
}

void pg_answer_text(const PGresult *result, char *ret_text, size_t size)
{
    const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    ExecStatusType got = PQresultStatus(result);
    if (got == PGRES_PIPELINE_ABORTED) {
        snprintf(ret_text, size, "not run: a statement before it failed");
    } else if (got != PGRES_COMMAND_OK && got != PGRES_TUPLES_OK) {
        snprintf(ret_text, size, "ERROR %s: %s", code ? code : "", message ? message : "no reason given");
    } else if (strncmp(PQcmdStatus((PGresult *)result), "SELECT", strlen("SELECT")) == 0) {
        snprintf(ret_text, size, "%d row%s", PQntuples(result), PQntuples(result) == 1 ? "" : "s");
        append_rows(result, ret_text, size);
    } else {
        snprintf(ret_text, size, "%s", PQcmdStatus((PGresult *)result));
        append_rows(result, ret_text, size);
    }
}
