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

/* Notes what the setup has made, and the SQL that moves it. */
static bool look(struct sequences *sequences, struct session *control)
{
    size_t i, size = 0;
    json_t *row;
    bool can_move = true;
    if (!ask(control, control->driver->sequences_sql))
        return false;
    FILE *out = open_memstream(&sequences->move_sql, &size);
    json_array_foreach(rows_of(control), i, row) {
        char sql[SEQUENCE_SQL_SIZE];
        struct numbers *numbers = &sequences->numbers;
        if (json_object_get(sequences->before, cell(row, 1)))
            continue;
        can_move = can_move && strcmp(cell(row, 4), "1") == 0 && numbers->count < NUMBERS_SEQUENCES_MAX;
        if (!can_move)
            break;
        int64_t first = NUMBERS_FIRST + (int64_t)numbers->count * NUMBERS_EACH;
        numbers->next[numbers->count++] = strtoll(cell(row, 2), NULL, 10);
        control->driver->sequence_sql(cell(row, 0), first, strtoll(cell(row, 3), NULL, 10), sql, sizeof sql);
        if (out)
            (void)fprintf(out, "%s;", sql);
    }
    if (!can_move) {
        sequences->numbers.count = 0;
        sequences->why = "A sequence of the setup cannot count from a number with ten digits.";
    }
    sequences->known = true;
    if (out && fclose(out) == 0)
        return true;
    complain("out of memory");
    return false;
}

bool sequences_after_setup(struct sequences *sequences, struct session *control)
{
    if (sequences->off)
        return true;
    if (!sequences->known && !look(sequences, control))
        return false;
    return sequences->numbers.count == 0 || ask(control, sequences->move_sql);
}

void sequences_free(struct sequences *sequences)
{
    json_decref(sequences->before);
    free(sequences->move_sql);
    *sequences = (struct sequences){0};
}
