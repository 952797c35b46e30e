/* The notes below a result table: counterexamples, advice, warnings and a closing sentence. */
#include "loadtest/report/notes.h"

#include "loadtest/report/result.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define BUSY_SHARE 0.25 /* of the processors, that other programs used before the start */

void notes_add(struct notes *notes, enum note_kind kind, const char *format, ...)
{
    struct note *longer = realloc(notes->item, (notes->count + 1) * sizeof *longer);
    struct note note = {.kind = kind};
    va_list arguments;
    if (longer)
        notes->item = longer;
    va_start(arguments, format);
    if (longer && vasprintf(&note.text, format, arguments) >= 0)
        notes->item[notes->count++] = note;
    else
        notes->failed = true;
    va_end(arguments);
}

void notes_append(struct notes *notes, const char *format, ...)
{
    char *more, *whole;
    if (notes->failed)
        return;
    struct note *last = &notes->item[notes->count - 1];
    va_list arguments;
    va_start(arguments, format);
    notes->failed = vasprintf(&more, format, arguments) < 0;
    va_end(arguments);
    if (notes->failed)
        return;
    notes->failed = asprintf(&whole, "%s%s", last->text, more) < 0;
    free(more);
    if (notes->failed)
        return;
    free(last->text);
    last->text = whole;
}

void notes_free(struct notes *notes)
{
    for (size_t i = 0; i < notes->count; i++)
        free(notes->item[i].text);
    free(notes->item);
    *notes = (struct notes){0};
}

void notes_add_busy_machine(struct notes *notes, const json_t *document)
{
    double load = json_number_value(json_object_get(json_object_get(document, "settings"), "load_average"));
    double cpus = json_number_value(json_object_get(json_object_get(document, "machine"), "cpus"));
    if (load > BUSY_SHARE * fmax(cpus, 1))
        notes_add(
            notes, NOTE_WARNING,
            "The machine was busy before the start (load average %.1f on %.0f processors): repeat the measurement "
            "on an idle machine.",
            load, cpus);
}

void notes_add_unavailable(struct notes *notes, const json_t *rows)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) {
        if (result_verdict(row) == VERDICT_UNAVAILABLE)
            notes_add(notes, NOTE_WARNING, "%s: not available: %s", result_text(row, "strategy"),
                      result_text(row, "reason"));
    }
}

void notes_add_verdicts(struct notes *notes, const json_t *rows, const char *one, const char *several)
{
    size_t counts[VERDICT_COUNT], used = 0, total = json_array_size(rows);
    size_t failed = result_verdicts(rows, counts);
    char list[256] = "";
    for (enum verdict verdict = VERDICT_OK; verdict < VERDICT_COUNT; verdict++)
        if (counts[verdict] > 0 && used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%zu %s", used ? ", " : "",
                                     counts[verdict], verdict_name(verdict));
    notes_add(notes, NOTE_CLOSING, "%zu %s: %s. %s", total, total == 1 ? one : several, list,
              failed ? "NOT all as expected." : "All as expected.");
}
