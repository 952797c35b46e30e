/* A step's footprint is that of its statements. A step that ends a transaction, also that of a session that waited for it, has the footprint of
 * the whole transaction: its changes are seen from then on, and its locks are free. */
#include "loadtest/sqlspec/inside/step_footprints.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"

#include <string.h>

enum { ASK_US = 10000000 };

static const char *cell(const json_t *rows, size_t row, size_t column)
{
    const char *text = json_string_value(json_array_get(json_array_get(rows, row), column));
    return text ? text : "";
}

static const json_t *rows_of(const struct session *control)
{
    return json_object_get(json_array_get(control->results, 0), "rows");
}

/* Do all sessions work at READ COMMITTED? */
static bool read_committed(const struct spec *spec, const struct session *control)
{
    bool is_clear = strcmp(cell(rows_of(control), 0, 0), "read committed") == 0;
    for (size_t i = 0; i < spec->setup_count; i++)
        is_clear &= !statement_isolates(spec->setups[i].sql);
    for (size_t i = 0; i < spec->session_count; i++)
        is_clear &= !spec->sessions[i].setup.sql || !statement_isolates(spec->sessions[i].setup.sql);
    for (size_t i = 0; i < spec->step_count; i++)
        is_clear &= !statement_isolates(spec->steps[i].block.sql);
    return is_clear;
}

bool step_footprints_learn(struct step_footprints *footprints, const struct spec *spec,
                           struct session *control, const struct routines *routines)
{
    if (footprints->known)
        return true;
    footprints->known = true;
    footprints->routines = routines;
    if (control->driver != &postgres_driver)
        return true;
    if (!session_run(control, "SHOW default_transaction_isolation", monotonic_us() + ASK_US)) {
        complain("cannot ask for the isolation level: %s", control->error);
        return false;
    }
    footprints->usable = read_committed(spec, control) && routines;
    if (!session_run(control, TABLES_SQL, monotonic_us() + ASK_US)) {
        complain("cannot list the tables: %s", control->error);
        return false;
    }
    const json_t *rows = rows_of(control);
    footprints->tables.numbers_matter = true; /* they are results */
    for (size_t i = 0; i < json_array_size(rows); i++)
        if (!known_tables_add(&footprints->tables, cell(rows, i, 0), cell(rows, i, 1), cell(rows, i, 2))) {
            complain("out of memory");
            return false;
        }
    return true;
}

void step_footprints_begin(struct step_footprints *footprints, const struct spec *spec, uint32_t open)
{
    if (!footprints->usable)
        return;
    for (size_t i = 0; i < spec->session_count; i++)
        footprints->transactions[i] = spec->sessions[i].setup.sql
                                          ? statement_footprint(&footprints->tables, footprints->routines,
                                                                spec->sessions[i].setup.sql)
                                          : (struct footprint){0};
    for (size_t i = 0; i < spec->step_count; i++)
        footprints->steps[i] = statement_footprint(&footprints->tables, footprints->routines,
                                                   spec->steps[i].block.sql);
    footprints->running = 0;
    footprints->in_transaction = open;
}

void step_footprints_note(struct step_footprints *footprints, const struct spec *spec, size_t step,
                          uint32_t running, uint32_t open)
{
    const size_t session = spec->steps[step].session;
    const uint32_t went_on = (footprints->running & ~running) | 1U << session;
    footprints->last = footprints->steps[step];
    footprint_join(&footprints->transactions[session], &footprints->steps[step]);
    for (size_t i = 0; i < spec->session_count; i++) {
        if (!(went_on & 1U << i) && !(footprints->in_transaction & ~open & 1U << i))
            continue;
        /* A session that still waits has changed nothing for others. */
        if (i == session && running & 1U << i)
            continue;
        /* What it did while it waited belongs to this step, too. */
        if (i != session || !(open & 1U << i))
            footprint_join(&footprints->last, &footprints->transactions[i]);
        if (!(open & 1U << i))
            footprints->transactions[i] = (struct footprint){0};
    }
    footprints->running = running;
    footprints->in_transaction = open;
}

void step_footprints_free(struct step_footprints *footprints)
{
    known_tables_free(&footprints->tables);
}
