/* What stands beneath the table of an exploration, in words. */
#include "loadtest/report/notes.h"

#include "loadtest/report/result.h"

#include <inttypes.h>
#include <stdio.h>

bool notes_of_explore(const json_t *document, struct notes *notes)
{
    const json_t *rows = json_object_get(document, "rows");
    size_t i, counts[VERDICT_COUNT], failed = result_verdicts(rows, counts);
    json_t *row;
    bool well = true;
    int64_t schedules = 0;
    json_array_foreach(rows, i, row) {
        schedules += result_number(row, "schedules") +
                     result_number(json_object_get(row, "larger_orders"), "schedules");
        if (*result_text(row, "broken_by"))
            well &= notes_add(notes, NOTE_WARNING, "%s: %s", result_text(row, "strategy"),
                              result_text(row, "broken_by"));
        if (*result_text(row, "reason"))
            well &= notes_add(notes, NOTE_WARNING, "%s: %s", result_text(row, "strategy"),
                              result_text(row, "reason"));
        const json_t *counterexample = json_object_get(row, "witness");
        if (json_is_object(counterexample))
            well &= notes_add(notes, NOTE_WITNESS, "%s  (%d of 10 runs)  %s",
                              result_text(counterexample, "replay"),
                              (int)json_integer_value(json_object_get(counterexample, "reproduced")),
                              result_text(counterexample, "explanation"));
    }
    if (json_object_get(document, "seconds"))
        well &= notes_add(notes, NOTE_ADVICE, "%" PRId64 " schedules in %.1f s, by up to %d processes.",
                          schedules, json_real_value(json_object_get(document, "seconds")),
                          (int)json_integer_value(json_object_get(document, "jobs")));
    const json_t *missing = json_object_get(document, "missing");
    if (json_array_size(missing) > 0) {
        char names[600] = "";
        size_t used = 0;
        json_array_foreach(missing, i, row) {
            if (used < sizeof names)
                used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                                         json_string_value(row));
        }
        well &= notes_add(
            notes, NOTE_WARNING, "%s; not explored: %s",
            json_is_true(json_object_get(document, "interrupted")) ? "Interrupted" : "Not finished", names);
    }
    if (failed > 0)
        return well && notes_add(notes, NOTE_CLOSING,
                                 "%zu of %zu rows did not keep what they promise, or were not caught.",
                                 failed, json_array_size(rows));
    size_t kept = counts[VERDICT_OK], shown = counts[VERDICT_OVERSOLD_AS_EXPECTED],
           open = counts[VERDICT_UNKNOWN] + counts[VERDICT_UNAVAILABLE] + json_array_size(missing);
    if (open > 0)
        return well &&
               notes_add(
                   notes, NOTE_CLOSING,
                   "As expected: %zu kept what they promise, %zu showed their flaw; %zu were not looked at in full.",
                   kept, shown, open);
    return well &&
           notes_add(notes, NOTE_CLOSING,
                     "All as expected: %zu kept what they promise, %zu showed their flaw.", kept, shown);
}
