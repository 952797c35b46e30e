/* The outcome of an execution: its text, and the contents of the tables. */
#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/sqlspec/sql_execution.h"

#include <stdio.h>
#include <stdlib.h>

enum { CONTROL_US = 10000000, TABLES_MAX = 64, TABLE_ROWS_MAX = 1000 };

void sql_outcome_free(struct sql_outcome *outcome)
{
    for (size_t i = 0; i < SPEC_SESSIONS_MAX; i++)
        json_decref(outcome->sessions[i]);
    json_decref(outcome->tables);
    *outcome = (struct sql_outcome){0};
}

/* The results of SESSIONS and the tables. NULL: no memory. */
static json_t *parts_of(const struct sql_outcome *outcome, uint32_t sessions)
{
    json_t *parts = json_object();
    bool ok = parts && json_object_set(parts, "tables", outcome->tables) == 0;
    for (size_t i = 0; ok && i < SPEC_SESSIONS_MAX; i++)
        if (sessions & 1u << i && outcome->sessions[i]) {
            char name[8];
            (void)snprintf(name, sizeof name, "%zu", i);
            ok = json_object_set(parts, name, outcome->sessions[i]) == 0;
        }
    if (ok)
        return parts;
    json_decref(parts);
    return NULL;
}

char *sql_outcome_text(const struct sql_outcome *outcome, uint32_t sessions)
{
    json_auto_t *parts = parts_of(outcome, sessions);
    json_auto_t *renamed = parts ? numbers_canonical(outcome->numbers, parts) : NULL;
    return renamed ? json_dumps(renamed, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
}

char *sql_outcome_small_text(const struct sql_outcome *outcome)
{
    json_auto_t *parts = parts_of(outcome, UINT32_MAX);
    json_auto_t *small = parts ? numbers_small(outcome->numbers, parts) : NULL;
    return small ? json_dumps(small, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
}

bool sql_results_equal(const struct numbers *numbers, const json_t *one, const json_t *other)
{
    if (!one || !other || numbers->count == 0)
        return json_equal(one, other) != 0 || (!one && !other);
    json_auto_t *left = numbers_canonical(numbers, one), *right = numbers_canonical(numbers, other);
    return left && json_equal(left, right);
}

bool sql_tables_equal(const struct numbers *numbers, json_t *one, json_t *other)
{
    json_auto_t *left = json_pack("{s:O}", "tables", one), *right = json_pack("{s:O}", "tables", other);
    return left && right && sql_results_equal(numbers, left, right);
}

/* {step: results} of all sessions. */
static json_t *steps_of(const struct sql_outcome *outcome)
{
    json_t *steps = json_object();
    for (size_t i = 0; i < SPEC_SESSIONS_MAX; i++)
        if (outcome->sessions[i])
            (void)json_object_update(steps, outcome->sessions[i]);
    return steps;
}

size_t sql_outcome_difference(const struct sql_execution *execution, const struct sql_outcome *one,
                              const struct sql_outcome *other, struct difference *ret_first)
{
    json_auto_t *left = steps_of(one), *right = steps_of(other);
    const struct difference_side one_side = {.steps = left, .tables = one->tables},
                                 other_side = {.steps = right, .tables = other->tables};
    return difference_find(&execution->sequences.numbers, &one_side, &other_side, execution->columns,
                           ret_first);
}

/* SQL that reads all tables. The specification makes the same ones in every execution. */
static bool know_tables(struct sql_execution *execution)
{
    struct session *control = execution->connections->control;
    const char *driver_sql = execution->sequences.numbers.count > 0 ? control->driver->numbered_tables_sql
                                                                    : control->driver->tables_sql;
    char *sql = NULL;
    size_t size = 0, i;
    json_t *row;
    if (execution->tables_known)
        return true;
    if (!session_run(control, driver_sql, monotonic_us() + CONTROL_US)) {
        complain("cannot list the tables: %s", control->error);
        return false;
    }
    const json_t *rows = json_object_get(json_array_get(control->results, 0), "rows");
    FILE *out = open_memstream(&sql, &size);
    execution->columns = json_object();
    json_array_foreach(rows, i, row) {
        const char *table = json_string_value(json_array_get(row, 1)),
                   *columns = json_string_value(json_array_get(row, 2));
        if (table && columns)
            (void)json_object_set_new(execution->columns, table, json_loads(columns, 0, NULL));
        if (out)
            (void)fprintf(out, "%s(%s)", i ? " UNION ALL " : "", json_string_value(json_array_get(row, 0)));
    }
    execution->tables_too_large = json_array_size(rows) > TABLES_MAX;
    if (!out || fclose(out) != 0) {
        free(sql);
        complain("out of memory");
        return false;
    }
    execution->tables_known = true;
    if (size > 0 && !execution->tables_too_large)
        execution->tables_sql = sql;
    else
        free(sql);
    return true;
}

bool execution_read_tables(struct sql_execution *execution)
{
    struct session *control = execution->connections->control;
    if (!know_tables(execution))
        return false;
    execution->outcome.tables = json_array();
    if (!execution->tables_sql || execution->tables_too_large)
        return true;
    if (!session_run(control, execution->tables_sql, monotonic_us() + CONTROL_US)) {
        if (!interrupted())
            complain("cannot read the tables: %s", control->error);
        return false;
    }
    json_t *rows = json_object_get(json_array_get(control->results, 0), "rows");
    if (json_array_size(rows) > TABLE_ROWS_MAX) {
        execution->tables_too_large = true;
        return true;
    }
    json_decref(execution->outcome.tables);
    execution->outcome.tables = json_incref(rows);
    return true;
}
