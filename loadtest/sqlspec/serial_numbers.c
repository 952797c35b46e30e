/* Whether SQL depends on generated numbers. Each serial execution runs once more with sequences that nobody has moved, and once more with
 * sequences that count down, which changes the sequence of the numbers and nothing else. */
#include "loadtest/sqlspec/serial_numbers.h"

#include "loadtest/sqlspec/numbers/number_order.h"

#include <stdlib.h>
#include <string.h>

/* What one serial execution says. */
struct dependence {
    bool on_values, on_sequence;
};

static bool same_text(char *one, char *other)
{
    bool same = one && other && strcmp(one, other) == 0;
    free(one);
    free(other);
    return same;
}

/* Runs ORDER with other numbers: unmoved ones, or REVERSED. False, having said why. */
static bool run_with(struct sql_execution *execution, const struct serial_outcome *moved, bool reversed,
                     bool *ret_same)
{
    struct sequences *sequences = &execution->sequences;
    struct sql_outcome outcome = {0};
    sequences->off = !reversed;
    sequences->reversed = reversed;
    bool ok = sql_execution_run_serial(execution, moved->order, moved->count, &outcome);
    sequences->off = sequences->reversed = false;
    if (!ok)
        return false;
    *ret_same = reversed
                    ? same_text(sql_outcome_text(&moved->outcome, UINT32_MAX),
                                sql_outcome_text(&outcome, UINT32_MAX))
                    : same_text(sql_outcome_small_text(&moved->outcome), sql_outcome_small_text(&outcome));
    sql_outcome_free(&outcome);
    return true;
}

static bool look_at(struct serial *serial, struct sql_execution *execution, const uint8_t *order,
                    size_t count, struct dependence *dependence)
{
    const struct serial_outcome *moved = serial_run(serial, execution, order, count);
    bool same = true;
    if (!moved)
        return false;
    if (execution->sequences.numbers.count == 0)
        return true;
    if (!run_with(execution, moved, false, &same))
        return false;
    dependence->on_values |= !same;
    if (!execution->sequences.reverse_sql || dependence->on_values)
        return true;
    if (!run_with(execution, moved, true, &same))
        return false;
    dependence->on_sequence |= !same;
    return true;
}

/* The next permutation of ORDER in the sequence of dictionaries. False: it was the last one. */
static bool next_order(uint8_t *order, size_t count)
{
    if (count == 0)
        return false;
    size_t at = count - 1, last = count - 1;
    while (at > 0 && order[at - 1] >= order[at])
        at--;
    if (at == 0)
        return false;
    while (order[last] <= order[at - 1])
        last--;
    const uint8_t swapped = order[at - 1];
    order[at - 1] = order[last];
    order[last] = swapped;
    for (size_t end = count - 1; at < end; at++, end--) {
        const uint8_t moved = order[at];
        order[at] = order[end];
        order[end] = moved;
    }
    return true;
}

static bool spec_may_sort(const struct spec *spec)
{
    bool may = false;
    for (size_t i = 0; i < spec->setup_count; i++)
        may |= number_order_matters(spec->setups[i].sql);
    for (size_t i = 0; i < spec->session_count; i++)
        may |= spec->sessions[i].setup.sql && number_order_matters(spec->sessions[i].setup.sql);
    for (size_t i = 0; i < spec->step_count; i++)
        may |= number_order_matters(spec->steps[i].block.sql);
    return may;
}

bool serial_allow_numbers(struct serial *serial, struct sql_execution *execution)
{
    const struct spec *spec = execution->connections->spec;
    struct sequences *sequences = &execution->sequences;
    struct dependence dependence = {0};
    uint8_t order[SERIAL_SESSIONS_MAX] = {0};
    for (size_t i = 0; i < spec->session_count; i++)
        order[i] = (uint8_t)i;
    do {
        if (!look_at(serial, execution, order, spec->session_count, &dependence))
            return false;
    } while (sequences->numbers.count > 0 && !dependence.on_values && next_order(order, spec->session_count));
    if (sequences->numbers.count == 0)
        return true;
    if (dependence.on_values) {
        sequences->off = true;
        sequences->why =
            "The SQL depends on the values of these numbers. Use currval, RETURNING or LAST_INSERT_ID in the place of "
            "a number.";
        sequences->numbers.count = 0;
        sql_execution_forget_tables(execution);
    } else if (dependence.on_sequence || (!sequences->reverse_sql && spec_may_sort(spec))) {
        sequences->numbers.by_size = true;
    } else {
        return true;
    }
    serial_free(serial); /* their texts were made with other names */
    return true;
}
