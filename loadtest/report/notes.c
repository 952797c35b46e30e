/* What stands beneath a table in words: witnesses, what to do about what was found, and a closing
 * sentence. */
#include "loadtest/report/notes.h"

#include "loadtest/compare/row.h"
#include "loadtest/report/result.h"
#include "loadtest/stats/verdict.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the list ------------------------------------------------------------------------------------------ */

bool notes_add(struct notes *notes, enum note_kind kind, const char *format, ...)
{
    struct note *longer = realloc(notes->item, (notes->count + 1) * sizeof *longer);
    if (!longer)
        return false;
    notes->item = longer;
    va_list arguments;
    va_start(arguments, format);
    char *text;
    bool made = vasprintf(&text, format, arguments) >= 0;
    va_end(arguments);
    if (made)
        notes->item[notes->count++] = (struct note){.kind = kind, .text = text};
    return made;
}

void notes_free(struct notes *notes)
{
    for (size_t i = 0; i < notes->count; i++)
        free(notes->item[i].text);
    free(notes->item);
    *notes = (struct notes){0};
}

bool notes_add_verdicts(struct notes *notes, const json_t *rows, const char *one, const char *several)
{
    size_t counts[VERDICT_COUNT], used = 0, total = json_array_size(rows);
    size_t failed = result_verdicts(rows, counts);
    char list[256] = "";
    for (enum verdict verdict = VERDICT_OK; verdict < VERDICT_COUNT; verdict++)
        if (counts[verdict] > 0 && used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%zu %s", used ? ", " : "",
                                     counts[verdict], verdict_name(verdict));
    return notes_add(notes, NOTE_CLOSING, "%zu %s: %s. %s", total, total == 1 ? one : several, list,
                     failed ? "NOT all as expected." : "All as expected.");
}

/* ---- what a row is ------------------------------------------------------------------------------------- */

static bool has_guarantee(const json_t *row, const char *guarantee)
{
    return strcmp(result_text(row, "guarantee"), guarantee) == 0;
}

static bool oversold_unsafe(const json_t *row)
{
    return result_verdict(row) == VERDICT_OVERSOLD_AS_EXPECTED && !has_guarantee(row, "one-process");
}

static bool oversold_by_second_process(const json_t *row)
{
    return result_verdict(row) == VERDICT_OVERSOLD_AS_EXPECTED && has_guarantee(row, "one-process");
}

static bool needs_second_process(const json_t *row)
{
    return result_verdict(row) == VERDICT_FLAWED && has_guarantee(row, "one-process");
}

static bool needs_more_than_load(const json_t *row)
{
    return result_verdict(row) == VERDICT_FLAWED && !has_guarantee(row, "one-process");
}

static bool has_errors(const json_t *row)
{
    return result_number(row, "errors") > 0;
}

static bool sold_out_early(const json_t *row)
{
    return json_is_true(json_object_get(row, "sold_out_early"));
}

static bool lost_answers(const json_t *row)
{
    return json_is_false(json_object_get(json_object_get(row, "kept"), "answers"));
}

static bool not_caught(const json_t *row)
{
    return result_verdict(row) == VERDICT_NOT_CAUGHT;
}

static bool mixed(const json_t *row)
{
    return result_verdict(row) == VERDICT_MIXED;
}

static bool broken(const json_t *row)
{
    return result_verdict(row) == VERDICT_BROKEN;
}

/* For the rows that match, named in front. */
static const struct rule {
    bool (*matches)(const json_t *row);
    enum note_kind kind;
    const char *text;
} RULES[] = {
    {oversold_unsafe, NOTE_ADVICE,
     "as it must be, these sell what is not there. Let the database check and write in one step, as "
     "atomic-decrement does, or hold the row from the read to the commit, as select-for-update does."},
    {oversold_by_second_process, NOTE_ADVICE,
     "right within one process, and each process has a mutex of its own. Keep the lock where the stock "
     "is: in the database."},
    {needs_second_process, NOTE_ADVICE,
     "clean in one process. See a second one sell the same stock: --instances 2."},
    {needs_more_than_load, NOTE_ADVICE,
     "clean under plain load, which does not do what shows their flaw (the column shown_by of the CSV and "
     "JSON)."},
    {has_errors, NOTE_WARNING,
     "some orders ended in errors. The service's log says why; fewer connections may help."},
    {sold_out_early, NOTE_ADVICE,
     "sold all that a product of its kind can have before the time was up, so no rate can be told. Take a "
     "shorter --duration, or fewer units an order."},
    {lost_answers, NOTE_WARNING,
     "the orders that clients were told of are not those in the database. Is somebody else ordering the "
     "same product? If not, this is a bug."},
    {mixed, NOTE_WARNING,
     "orders of other strategies came between, so nothing can be said. Give the load test a product of "
     "its own: --product."},
    {not_caught, NOTE_WARNING,
     "should have oversold under this load, and did not. Try more --connections, or a longer --think-ms."},
    {broken, NOTE_WARNING,
     "promised more than it kept. This is a bug: keep the result (--export-json) and report it."},
};

/* ---- comparisons --------------------------------------------------------------------------------------- */

static bool add_witness(const json_t *row, struct notes *notes)
{
    int64_t oversold = result_number(row, "oversold"), drift = result_number(row, "drift");
    const char *witness = result_text(row, "witness");
    if (oversold == 0 && drift == 0 && !*witness)
        return true;
    char damage[160];
    if (oversold > 0)
        snprintf(damage, sizeof damage, "sold %" PRId64 " of %" PRId64, result_number(row, "sold"),
                 result_number(row, "stock"));
    else
        snprintf(damage, sizeof damage, "the stock is off by %" PRId64, drift);
    return notes_add(notes, NOTE_WITNESS, "%s: %s%s%s.", result_text(row, "strategy"), damage,
                     *witness ? "; " : "", witness);
}

/* Adds the finding of a broken row. */
static bool add_finding(const json_t *row, struct notes *notes)
{
    const char *finding = result_text(row, "finding");
    return !*finding || notes_add(notes, NOTE_WARNING, "%s: %s.", result_text(row, "strategy"), finding);
}

/* A row that had to be given another load than the rest is not ranked with them, and says why. */
static bool add_slowdown(const json_t *row, struct notes *notes)
{
    if (!json_is_true(json_object_get(row, "slowed_down")))
        return true;
    return notes_add(
        notes, NOTE_ADVICE,
        "%s: plain speed did not catch it, so it was sold out again with a think time of %" PRId64
        " ms between read and write, which widens the race.",
        result_text(row, "strategy"), result_number(row, "think_ms"));
}

/* Names the rows that match, then says what the rule has to say. */
static bool apply_rule(const json_t *rows, const struct rule *rule, struct notes *notes)
{
    char *names = NULL;
    size_t size, i, count = 0;
    json_t *row;
    FILE *out = open_memstream(&names, &size);
    if (!out)
        return false;
    json_array_foreach(rows, i, row) {
        if (rule->matches(row))
            fprintf(out, "%s%s", count++ ? ", " : "", result_text(row, "strategy"));
    }
    bool well = fclose(out) == 0 && (count == 0 || notes_add(notes, rule->kind, "%s: %s", names, rule->text));
    free(names);
    return well;
}

bool notes_of_compare(const json_t *document, struct notes *notes)
{
    const json_t *rows = json_object_get(document, "rows");
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) {
        if (!add_witness(row, notes))
            return false;
    }
    json_array_foreach(rows, i, row) {
        if (!add_slowdown(row, notes) || !add_finding(row, notes))
            return false;
    }
    for (i = 0; i < sizeof RULES / sizeof RULES[0]; i++)
        if (!apply_rule(rows, &RULES[i], notes))
            return false;
    json_array_foreach(rows, i, row) {
        if (result_verdict(row) == VERDICT_UNAVAILABLE &&
            !notes_add(notes, NOTE_WARNING, "%s: not available: %s", result_text(row, "strategy"),
                       result_text(row, "reason")))
            return false;
    }
    return notes_add_verdicts(notes, rows, "strategy", "strategies");
}

/* ---- two neighbours ------------------------------------------------------------------------------------ */

bool notes_of_diff(const json_t *document, struct notes *notes)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(document, "rows"), i, row) {
        const json_t *rate = json_object_get(row, "orders_per_s");
        char speed[64] = "";
        if (json_is_number(rate))
            snprintf(speed, sizeof speed, ", %.0f orders/s", json_number_value(rate));
        if (!notes_add(notes, NOTE_CLOSING,
                       "%s: %s; sold %" PRId64 " of %" PRId64 ", drift %" PRId64 "%s%s%s.",
                       result_text(row, "strategy"), result_text(row, "verdict"), result_number(row, "sold"),
                       result_number(row, "stock"), result_number(row, "drift"), speed,
                       *result_text(row, "witness") ? "; " : "", result_text(row, "witness")) ||
            !notes_add(notes, NOTE_ADVICE, "%s", result_text(json_object_get(row, "cells"), "why")))
            return false;
    }
    return true;
}
