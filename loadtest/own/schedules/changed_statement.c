/* Compares the statements of a replay with those of the saved schedule. */
#include "loadtest/own/schedules/changed_statement.h"

#include "loadtest/report/result.h"
#include "loadtest/search/schedule_notation.h"
#include "loadtest/sql/statement_words.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    CUT_FROM = MESSAGE_TEXT - 8
}; /* a text of this length may have been cut off, within a character too */

static bool same_sql(const char *one, const char *other)
{
    bool one_is_cut = strlen(one) >= CUT_FROM, other_is_cut = strlen(other) >= CUT_FROM;
    struct sql_word a, b;
    bool has_a, has_b;
    do {
        has_a = sql_word_next(&one, &a);
        has_b = sql_word_next(&other, &b);
    } while (has_a && has_b && sql_same_word(&a, &b));
    return has_a == has_b ? !has_a || (!*one && one_is_cut) || (!*other && other_is_cut)
                          : (has_b && one_is_cut) || (has_a && other_is_cut);
}

static bool same_command(const char *one, const char *other)
{
    size_t length = strcspn(one, " ");
    return strcspn(other, " ") == length && strncasecmp(one, other, length) == 0;
}

/* The statement NUMBER of ACTOR, from 0; NULL: it sent fewer. */
static const char *saved_statement(const json_t *saved, unsigned actor, size_t number)
{
    size_t i;
    const json_t *step;
    json_array_foreach(saved, i, step) {
        const char *text = result_text(step, "text");
        if (*result_text(step, "actor") == actor_name(actor) && strncmp(text, "(fault:", 7) != 0 &&
            number-- == 0)
            return text;
    }
    return NULL;
}

static bool is_statement(const struct run_step *step)
{
    return step->kind == TRANSITION_STEP || step->kind == TRANSITION_CUT;
}

/* Its request ends the transaction at step AT and sends no more SQL. */
static bool ends_sql(const struct run_record *record, size_t at)
{
    const struct run_step *step = &record->steps[at];
    for (size_t i = at + 1; i < record->count; i++)
        if (record->steps[i].actor == step->actor && record->steps[i].server == RUNS_POSTGRES &&
            is_statement(&record->steps[i]))
            return false;
    return step->server == RUNS_POSTGRES &&
           (same_command(step->text, "COMMIT") || same_command(step->text, "ROLLBACK"));
}

void changed_statement(const json_t *saved, const struct run_record *record,
                       char ret_text[static CHANGED_TEXT])
{
    size_t sent[ACTORS_MAX] = {0};
    bool refused[ACTORS_MAX] = {false};
    ret_text[0] = '\0';
    for (size_t i = 0; i < record->count; i++) {
        const struct run_step *step = &record->steps[i];
        const char *before = is_statement(step) ? saved_statement(saved, step->actor, sent[step->actor]++)
                                                : NULL;
        if (!before || refused[step->actor] ||
            (step->server == RUNS_REDIS ? same_command : same_sql)(before, step->text))
            continue;
        refused[step->actor] = ends_sql(record, i);
        if (refused[step->actor])
            continue;
        snprintf(
            ret_text, CHANGED_TEXT,
            "Request %c now sends '%s' as statement %zu, where it sent '%s' when the schedule was saved. If "
            "that statement is not what you repaired, the schedule no longer fits: run loadtest explore without "
            "--replay, and save the schedule again.",
            actor_name(step->actor), step->text, sent[step->actor], before);
        return;
    }
}
