/* Finds what one request does wrong by itself. */
#include "loadtest/own/cause/request_mistake.h"

#include "base/recorder.h"

#include <stdio.h>
#include <string.h>

static const char *text_of(const struct run_shapes *run, size_t step)
{
    return run->record->steps[step].text;
}

static const struct table_use *written(const struct run_shapes *run, size_t step)
{
    return shape_use(&run->shape[step], NULL, ACCESS_UPDATE, ACCESS_INSERT);
}

static long status_of(const struct run_shapes *run, size_t step)
{
    return run->record->answers[run->record->steps[step].actor].status;
}

/* A step of another request that sent the same words and wrote. */
static bool has_peer(const struct run_shapes *run, size_t step, bool sold)
{
    for (size_t i = 0; i < run->count; i++)
        if (!run_same_request(run, i, step) && run_wrote(run, i, NULL) && (!sold || run_was_sold(run, i)) &&
            sql_same_words(text_of(run, i), text_of(run, step)))
            return true;
    return false;
}

/* ---- UPDATE 0 ------------------------------------------------------------------------------------------------------------------- */

/* Another write of the same request that was committed, and the last write to the table of STEP did nothing. None: the number of steps. */
static size_t kept_write(const struct run_shapes *run, size_t step)
{
    size_t kept = run->count;
    for (size_t i = 0; i < run->count; i++) {
        if (!run_same_request(run, i, step) || !run_wrote(run, i, NULL))
            continue;
        if (run_wrote(run, i, written(run, step)->table) && i > step)
            return run->count; /* it tried again */
        kept = i;
    }
    return kept;
}

bool say_ignored_zero(const struct run_shapes *run, char ret_text[static CAUSE_TEXT])
{
    for (size_t i = 0; i < run->count; i++) {
        if (!written(run, i) || run->shape[i].unknown || !run_found_nothing(run, i) ||
            run_was_refused(run, i) || !has_peer(run, i, false))
            continue;
        size_t kept = kept_write(run, i);
        if (kept == run->count)
            continue;
        snprintf(
            ret_text, CAUSE_TEXT,
            "Statement %zu of %c changed no row of %s (%s), and %c ignored that: it committed what statement %zu wrote. If a statement "
            "that has to take units changes no row, roll back and refuse.",
            i + 1, run_name(run, i), written(run, i)->table, run->record->steps[i].answer, run_name(run, i),
            kept + 1);
        return true;
    }
    return false;
}

/* ---- a refused request -------------------------------------------------------------------------------------------------------------- */

/* A later statement of the same request takes the write of STEP back. */
static bool is_taken_back(const struct run_shapes *run, size_t step)
{
    const char *table = written(run, step)->table;
    bool inserted = written(run, step)->access == ACCESS_INSERT;
    for (size_t i = step + 1; i < run->count; i++)
        if (run_same_request(run, i, step) && run_wrote(run, i, table) &&
            shape_use(&run->shape[i], table, inserted ? ACCESS_DELETE : ACCESS_UPDATE, ACCESS_DELETE))
            return true;
    return false;
}

bool say_refused_write(const struct run_shapes *run, char ret_text[static CAUSE_TEXT])
{
    for (size_t i = 0; i < run->count; i++) {
        if (!run_was_refused(run, i) || !run_wrote(run, i, NULL) || is_taken_back(run, i) ||
            !has_peer(run, i, true))
            continue;
        snprintf(
            ret_text, CAUSE_TEXT,
            "%c was refused (%ld), but what its statement %zu wrote to %s was committed (%zu) and stays. Roll back or delete what a "
            "refused request has written.",
            run_name(run, i), status_of(run, i), i + 1, written(run, i)->table, run_visible_from(run, i) + 1);
        return true;
    }
    return false;
}

/* ---- two lines -------------------------------------------------------------------------------------------------------------------- */

/* The last read of the request before step WRITE. None: the number of steps. */
static size_t last_read(const struct run_shapes *run, size_t write)
{
    for (size_t i = write; i-- > 0;)
        if (run_same_request(run, i, write) && shape_use(&run->shape[i], NULL, ACCESS_READ, ACCESS_LOCK))
            return i;
    return run->count;
}

/* From step FIRST to step SECOND the request looks at what it has written. */
static bool looks_between(const struct run_shapes *run, size_t first, size_t second, const char *checked)
{
    const char *table = written(run, first)->table;
    for (size_t i = first + 1; i < second; i++)
        if (run_same_request(run, i, first) &&
            (run->shape[i].unknown || shape_use(&run->shape[i], table, ACCESS_READ, ACCESS_LOCK) ||
             shape_use(&run->shape[i], checked, ACCESS_UPDATE, ACCESS_UPDATE)))
            return true;
    return false;
}

/* The next step of the same request that writes another such line. None: the number of steps. */
static size_t second_line(const struct run_shapes *run, size_t first)
{
    for (size_t i = first + 1; i < run->count; i++)
        if (run_same_request(run, i, first) && run_wrote(run, i, NULL) &&
            sql_same_words(text_of(run, i), text_of(run, first)))
            return i;
    return run->count;
}

bool say_two_lines(const struct run_shapes *run, char ret_text[static CAUSE_TEXT])
{
    for (size_t i = run->count; i-- > 0;) { /* the last request is the one that should have been refused */
        const struct statement_shape *shape = &run->shape[i];
        size_t second, read;
        if (!written(run, i) || !run_wrote(run, i, NULL) || shape->conditional || shape->unknown ||
            run_was_refused(run, i) || shape_use(shape, NULL, ACCESS_READ, ACCESS_LOCK))
            continue;
        second = second_line(run, i);
        read = last_read(run, i);
        if (second == run->count || read == run->count)
            continue;
        const char *checked = shape_use(&run->shape[read], NULL, ACCESS_READ, ACCESS_LOCK)->table;
        if (looks_between(run, i, second, checked))
            continue;
        snprintf(
            ret_text, CAUSE_TEXT,
            "%c read %s (statement %zu), and then wrote two lines to %s (%zu, %zu)%s. A check of each line alone passes although there is "
            "not enough for both: compare the sum of the lines of a product with its stock.",
            run_name(run, i), checked, read + 1, written(run, i)->table, i + 1, second + 1,
            strcmp(text_of(run, i), text_of(run, second)) == 0 ? " that take from the same product" : "");
        return true;
    }
    return false;
}

/* ---- sold without a write ----------------------------------------------------------------------------------------------------------- */

bool say_sold_without_write(const struct run_shapes *run, char ret_text[static CAUSE_TEXT])
{
    for (size_t i = 0; i < run->count; i++) {
        bool nothing = run_failed(run, i) || (written(run, i) && run_found_nothing(run, i)),
             lost = written(run, i) && run_visible_from(run, i) == run->count;
        if (!run_was_sold(run, i) || (!nothing && !lost) ||
            (written(run, i) && kept_write(run, i) < run->count))
            continue;
        snprintf(ret_text, CAUSE_TEXT, "%c was answered %ld, but its statement %zu %s", run_name(run, i),
                 status_of(run, i), i + 1,
                 run_failed(run, i) ? "failed. Answer only after COMMIT has succeeded."
                 : nothing          ? "changed no row. Check how many rows it changed before you answer."
                                    : "was rolled back. Answer only after COMMIT has succeeded.");
        return true;
    }
    return false;
}

/* ---- turned away ------------------------------------------------------------------------------------------------------------------ */

void say_turned_away(const struct run_shapes *run, char ret_text[static CAUSE_TEXT])
{
    char answer[80];
    size_t refused = run->count, step = run->count;
    for (size_t i = 0; i < run->count; i++) {
        if (!run_was_refused(run, i))
            continue;
        refused = i;
        if (run_failed(run, i) || run_found_nothing(run, i))
            step = i;
    }
    if (step < run->count) {
        recorder_shorten(run->record->steps[step].answer, answer, sizeof answer);
        snprintf(
            ret_text, CAUSE_TEXT,
            "%c was refused (%ld) although units were left at the end. The answer to its statement %zu was '%s': that can also mean that "
            "another request was at work. Then wait or try again, and refuse a request only if the stock is not enough for it.",
            run_name(run, step), status_of(run, step), step + 1, answer);
    } else if (refused < run->count) {
        snprintf(ret_text, CAUSE_TEXT,
                 "%c was refused (%ld) although units were left at the end. Its statements do not show why.",
                 run_name(run, refused), status_of(run, refused));
    } else {
        snprintf(ret_text, CAUSE_TEXT, "A request was refused although units were left at the end.");
    }
}
