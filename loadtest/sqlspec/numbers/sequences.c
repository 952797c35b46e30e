/* Finds the sequences that the setup has made, and moves them after each setup. If one cannot be moved, none is: the comparison would know half of
 * the places where a number occurs. */
#include "loadtest/sqlspec/numbers/sequences.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTROL_US = 10000000 };

static bool ask(struct session *control, const char *sql)
{
    if (session_run(control, sql, monotonic_us() + CONTROL_US))
        return true;
    if (!interrupted())
        complain("cannot work with the sequences of the setup: %s", control->error);
    return false;
}

static const char *cell(const json_t *row, size_t column)
{
    const char *text = json_string_value(json_array_get(row, column));
    return text ? text : "";
}

static json_t *rows_of(const struct session *control)
{
    return json_object_get(json_array_get(control->results, 0), "rows");
}

bool sequences_before_setup(struct sequences *sequences, struct session *control)
{
    size_t i;
    json_t *row;
    if (sequences->before || sequences->off)
        return true;
    sequences->before = json_object();
    if (!ask(control, control->driver->sequences_sql))
        return false;
    json_array_foreach(rows_of(control), i, row) {
        (void)json_object_set_new(sequences->before, cell(row, 1), json_true());
    }
    return true;
}

/* Appends what moves a sequence to SQL, which it replaces. False: out of memory. */
static bool append(char **sql, const char *move)
{
    char *longer = NULL;
    if (asprintf(&longer, "%s%s;", *sql ? *sql : "", move) < 0)
        return false;
    free(*sql);
    *sql = longer;
    return true;
}

/* Adds the sequence of ROW. False: out of memory. */
static bool add(struct sequences *sequences, const struct sql_driver *driver, const json_t *row)
{
    char sql[SEQUENCE_SQL_SIZE];
    struct numbers *numbers = &sequences->numbers;
    int64_t first = NUMBERS_FIRST + (int64_t)numbers->count * NUMBERS_EACH,
            step = strtoll(cell(row, 3), NULL, 10);
    numbers->next[numbers->count++] = strtoll(cell(row, 2), NULL, 10);
    driver->sequence_sql(cell(row, 0), first, step, sql, sizeof sql);
    if (!append(&sequences->move_sql, sql))
        return false;
    if (!driver->reverse_sql)
        return true;
    driver->reverse_sql(cell(row, 0), first + NUMBERS_EACH - step, -step, sql, sizeof sql);
    return append(&sequences->reverse_sql, sql);
}

/* Notes what the setup has made, and the SQL that moves it. */
static bool look(struct sequences *sequences, struct session *control)
{
    size_t i;
    json_t *row;
    bool can_move = true, ok = true;
    if (!ask(control, control->driver->sequences_sql))
        return false;
    json_array_foreach(rows_of(control), i, row) {
        if (json_object_get(sequences->before, cell(row, 1)))
            continue;
        can_move = can_move && strcmp(cell(row, 4), "1") == 0 &&
                   sequences->numbers.count < NUMBERS_SEQUENCES_MAX;
        ok = ok && (!can_move || add(sequences, control->driver, row));
    }
    if (!can_move) {
        sequences->numbers.count = 0;
        sequences->why = "A sequence of the setup cannot count from a number with ten digits.";
    }
    sequences->known = true;
    if (!ok)
        complain("out of memory");
    return ok;
}

bool sequences_after_setup(struct sequences *sequences, struct session *control)
{
    if (sequences->off)
        return true;
    if (!sequences->known && !look(sequences, control))
        return false;
    const char *sql = sequences->reversed && sequences->reverse_sql ? sequences->reverse_sql
                                                                    : sequences->move_sql;
    return sequences->numbers.count == 0 || ask(control, sql);
}

void sequences_free(struct sequences *sequences)
{
    json_decref(sequences->before);
    free(sequences->move_sql);
    free(sequences->reverse_sql);
    *sequences = (struct sequences){0};
}
