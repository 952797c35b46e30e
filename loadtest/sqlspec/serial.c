/* Runs each serial execution of the sessions once, and compares other outcomes with those of the serial executions. */
#include "loadtest/sqlspec/serial.h"

#include "loadtest/cli/complain.h"

#include <stdlib.h>
#include <string.h>

void serial_free(struct serial *serial)
{
    for (size_t i = 0; i < serial->count; i++) {
        sql_outcome_free(&serial->item[i].outcome);
        free(serial->item[i].text);
    }
    serial->count = 0;
}

const struct serial_outcome *serial_run(struct serial *serial, struct sql_execution *execution,
                                        const uint8_t *order, size_t count)
{
    uint32_t sessions = 0;
    for (size_t i = 0; i < serial->count; i++)
        if (serial->item[i].count == count && memcmp(serial->item[i].order, order, count) == 0)
            return &serial->item[i];
    if (serial->count == SERIAL_ORDERS_MAX || count > SERIAL_SESSIONS_MAX)
        return NULL;
    struct serial_outcome *item = &serial->item[serial->count];
    *item = (struct serial_outcome){.count = count};
    if (count > 0)
        memcpy(item->order, order, count);
    for (size_t i = 0; i < count; i++)
        sessions |= 1u << order[i];
    if (!sql_execution_run_serial(execution, order, count, &item->outcome))
        return NULL;
    item->text = sql_outcome_text(&item->outcome, sessions);
    serial->count++;
    if (item->outcome.stuck) {
        complain("%s: in a serial execution, in which no other session runs: %s. Release that lock first",
                 execution->connections->path, item->outcome.waits);
        return NULL;
    }
    if (!item->text)
        complain("out of memory");
    return item->text ? item : NULL;
}

/* What a search for an order looks for. */
struct wanted {
    struct serial *serial;
    struct sql_execution *execution;
    const char *text; /* NULL: the tables */
    const json_t *tables;
    const struct serial_outcome *found;
    bool failed;
};

/* Tries all orders that begin with the COUNT sessions of ORDER and go through those of LEFT. */
static void try_orders(struct wanted *wanted, uint8_t *order, size_t count, uint32_t left)
{
    if (left == 0) {
        const struct serial_outcome *item = serial_run(wanted->serial, wanted->execution, order, count);
        wanted->failed = !item;
        if (item && (wanted->text ? strcmp(item->text, wanted->text) == 0
                                  : sql_tables_equal(&wanted->execution->sequences.numbers,
                                                     item->outcome.tables, (json_t *)wanted->tables)))
            wanted->found = item;
        return;
    }
    for (uint8_t i = 0; i < SPEC_SESSIONS_MAX && !wanted->failed && !wanted->found; i++)
        if (left & 1u << i && count < SERIAL_SESSIONS_MAX) {
            order[count] = i;
            try_orders(wanted, order, count + 1, left & ~(1u << i));
        }
}

static bool find(struct wanted *wanted, uint32_t sessions, const struct serial_outcome **ret_found)
{
    uint8_t order[SERIAL_SESSIONS_MAX];
    try_orders(wanted, order, 0, sessions);
    *ret_found = wanted->found;
    return !wanted->failed;
}

bool serial_find(struct serial *serial, struct sql_execution *execution, uint32_t sessions, const char *text,
                 const struct serial_outcome **ret_found)
{
    struct wanted wanted = {.serial = serial, .execution = execution, .text = text};
    return find(&wanted, sessions, ret_found);
}

bool serial_find_tables(struct serial *serial, struct sql_execution *execution, uint32_t sessions,
                        const json_t *tables, const struct serial_outcome **ret_found)
{
    struct wanted wanted = {.serial = serial, .execution = execution, .tables = tables};
    return find(&wanted, sessions, ret_found);
}
