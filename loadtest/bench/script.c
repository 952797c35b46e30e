/* Makes scripts for pgbench from the service's own statements, so that both run the same SQL.
 *
 * A row of steps lists the statements that the engine sends for one order. Null parameters are written into the
 * statement, because pgbench has no null variables. */
#include "loadtest/bench/script.h"

#include "db/postgres/statements.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
#define BEGINS {.statement = &ST_BEGIN[DB_READ_COMMITTED]}
#define COMMITS {.statement = &ST_COMMIT}

const struct script SCRIPT_SELECT_FOR_UPDATE = {
    "select-for-update",
    1,
    {
        BEGINS,
        {&ST_READ_FOR_UPDATE, {":product"}, "seen_", "\\set target :seen_count - :quantity"},
        {&ST_STOCK_WRITE_TARGET, {":product", ":target", ":instance", ":seen_stock_epoch"}, "wrote_", NULL},
        {&ST_INSERT_ORDER,
         {":product", ":quantity", ":seen_price", "NULL", "NULL", "NULL", ":instance", ":seen_count", ":strategy",
          ":seen_clock_timestamp", "NULL", ":wrote_pg_current_xact_id"},
         NULL,
         NULL},
        COMMITS,
    },
};

const struct script SCRIPT_ATOMIC_DECREMENT = {
    "atomic-decrement",
    1,
    {
        BEGINS,
        {&ST_GUARDED, {":product", ":quantity", ":instance"}, "took_", NULL},
        {&ST_INSERT_ORDER,
         {":product", ":quantity", ":took_price", "NULL", "NULL", "NULL", ":instance", "NULL", ":strategy", "NULL",
          "NULL", ":took_pg_current_xact_id"},
         NULL,
         NULL},
        COMMITS,
    },
};

const struct script SCRIPT_ATOMIC_STATEMENT = {
    "atomic-statement",
    1,
    {
        {&ST_PLACE_IN_ONE, {":product", ":quantity", "NULL", "NULL", "NULL", ":instance", ":strategy"}, NULL, NULL},
    },
};

/* An array of as many as SCRIPT_BATCHED has orders. */
#define TEN(element) element "," element "," element "," element "," element "," element "," element "," element "," element "," element
#define FIFTY(element) "'{" TEN(element) "," TEN(element) "," TEN(element) "," TEN(element) "," TEN(element) "}'"

const struct script SCRIPT_BATCHED = {
    "batched",
    50,
    {
        BEGINS,
        {&ST_READ_FOR_UPDATE, {":product"}, "seen_", "\\set target :seen_count - 50 * :quantity"},
        {&ST_INSERT_BATCH,
         {":product", ":target", ":seen_price", ":instance", ":strategy", ":seen_clock_timestamp", FIFTY("1"), FIFTY("1"),
          FIFTY("NULL"), FIFTY("NULL"), FIFTY("NULL")},
         NULL,
         NULL},
        COMMITS,
    },
};

const struct script SCRIPT_REDIS_STOCK = {.strategy = "redis-stock"};

/* clang-format on */

/* A literal, from its opening quote on. pgbench looks for variables inside of them, too, so a literal with a colon
 * is written as one with escapes. Returns what follows it. */
static const char *put_literal(FILE *out, const char *sql)
{
    size_t length = 1; /* without the closing quote; two quotes are one inside of it */
    while (sql[length] && (sql[length] != '\'' || sql[length + 1] == '\''))
        length += sql[length] == '\'' ? 2 : 1;
    bool escapes = memchr(sql, ':', length) != NULL;
    fputs(escapes ? "E'" : "'", out);
    for (size_t i = 1; i < length; i++) {
        if (escapes && sql[i] == ':')
            fputs("\\x3A", out);
        else if (escapes && sql[i] == '\\')
            fputs("\\\\", out);
        else
            fputc(sql[i], out);
    }
    fputc('\'', out);
    return sql + length + (sql[length] == '\'');
}

/* Writes the statement with its values in the places of $1…; false where there is no value for one. */
static bool put_statement(FILE *out, const struct script_step *step)
{
    const char *sql = step->statement->sql;
    int values = 0;
    while (values < SCRIPT_VALUES_MAX && step->values[values])
        values++;
    if (values != step->statement->parameters)
        return false;
    while (*sql) {
        if (*sql == '\'') {
            sql = put_literal(out, sql);
        } else if (*sql == '$') {
            char *end;
            long i = strtol(sql + 1, &end, 10);
            if (i < 1 || i > values)
                return false;
            fputs(step->values[i - 1], out);
            sql = end;
        } else {
            fputc(*sql++, out);
        }
    }
    return true;
}

char *script_text(const struct script *script)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    bool well = true;
    fputs("\\set product random(:first, :last)\n", out);
    for (const struct script_step *step = script->steps; step->statement && well; step++) {
        well = put_statement(out, step);
        if (step->keep)
            fprintf(out, " \\gset %s\n", step->keep);
        else
            fputs(";\n", out);
        if (step->then)
            fprintf(out, "%s\n", step->then);
    }
    if (fclose(out) == 0 && well)
        return text;
    free(text);
    return NULL;
}
