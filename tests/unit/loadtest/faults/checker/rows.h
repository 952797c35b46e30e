/* Rows as PostgreSQL returns them, for tests of what reads rows. */
#ifndef OVERSELL_TESTS_UNIT_LOADTEST_FAULTS_CHECKER_ROWS_H
#define OVERSELL_TESTS_UNIT_LOADTEST_FAULTS_CHECKER_ROWS_H

#include <libpq-fe.h>
#include <string.h>

enum { ROW_CELLS = 8 };

/* A result with COUNT rows of COLUMNS cells each, to be cleared. A cell that is NULL is SQL's NULL. */
static inline PGresult *rows_of(int columns, const char *const (*rows)[ROW_CELLS], size_t count)
{
    static char name[] = "column";
    PGresAttDesc columns_of_all[ROW_CELLS];
    PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    memset(columns_of_all, 0, sizeof columns_of_all);
    for (int i = 0; i < columns; i++)
        columns_of_all[i].name = name;
    assert_non_null(result);
    assert_true(PQsetResultAttrs(result, columns, columns_of_all));
    for (size_t i = 0; i < count; i++)
        for (int column = 0; column < columns; column++) {
            const char *text = rows[i][column];
            char value[200] = "";
            if (text)
                snprintf(value, sizeof value, "%s", text);
            assert_true(
                PQsetvalue(result, (int)i, column, text ? value : NULL, text ? (int)strlen(text) : -1));
        }
    return result;
}

#endif
