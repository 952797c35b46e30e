/* The statements of a schedule that ran, as cause.c looks at them. */
#include "loadtest/own/cause/run_shapes.h"

#include <string.h>

void run_shapes_of(const struct run_record *record, struct run_shapes *ret_run)
{
    ret_run->record = record;
    ret_run->count = record->count;
    for (size_t i = 0; i < record->count; i++) {
        const struct run_step *step = &record->steps[i];
        bool is_sql = step->kind == TRANSITION_STEP && step->server == RUNS_POSTGRES;
        /* A text that almost fills its room may have been cut off, within a character too. */
        ret_run->shape[i] = statement_shape(is_sql ? step->text : "", MESSAGE_TEXT - 8);
    }
}

char run_name(const struct run_shapes *run, size_t step)
{
    return (char)('A' + (char)run->record->steps[step].actor);
}

bool run_same_request(const struct run_shapes *run, size_t one, size_t other)
{
    return run->record->steps[one].actor == run->record->steps[other].actor;
}

static const struct shop_answer *reply_to(const struct run_shapes *run, size_t step)
{
    return &run->record->answers[run->record->steps[step].actor];
}

bool run_was_refused(const struct run_shapes *run, size_t step)
{
    const struct shop_answer *answer = reply_to(run, step);
    return answer->status > 0 && answer->meaning == SHOP_REFUSED;
}

bool run_was_sold(const struct run_shapes *run, size_t step)
{
    const struct shop_answer *answer = reply_to(run, step);
    return answer->status > 0 && answer->meaning == SHOP_SOLD;
}

bool run_found_nothing(const struct run_shapes *run, size_t step)
{
    static const char *const NONE[] = {"SELECT 0", "UPDATE 0", "DELETE 0", "INSERT 0 0", "MERGE 0"};
    for (size_t i = 0; i < sizeof NONE / sizeof *NONE && !run->shape[step].several; i++)
        if (strcmp(run->record->steps[step].answer, NONE[i]) == 0)
            return true;
    return false;
}

bool run_failed(const struct run_shapes *run, size_t step)
{
    return strncmp(run->record->steps[step].answer, "error: ", 7) == 0;
}

bool run_ends_transaction(const struct run_shapes *run, size_t step, bool *ret_failed)
{
    enum shape_end ends = run->shape[step].ends;
    const struct run_step *of = &run->record->steps[step];
    *ret_failed = ends == ENDS_ROLLBACK || (ends == ENDS_COMMIT && strcmp(of->answer, "ROLLBACK") == 0);
    return of->kind == TRANSITION_STEP && (ends != ENDS_NOTHING || of->has_stock);
}

size_t run_visible_from(const struct run_shapes *run, size_t write)
{
    bool failed;
    for (size_t i = write; i < run->count; i++)
        if (run_same_request(run, i, write) && run_ends_transaction(run, i, &failed))
            return failed ? run->count : i;
    return write;
}

bool run_wrote(const struct run_shapes *run, size_t step, const char *table)
{
    return shape_use(&run->shape[step], table, ACCESS_UPDATE, ACCESS_INSERT) && !run_failed(run, step) &&
           !run_found_nothing(run, step) && run_visible_from(run, step) < run->count;
}
