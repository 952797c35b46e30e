/* Makes the JSON document of `loadtest explore shop.json`, from which the other formats are made. */
#include "base/text.h"
#include "loadtest/cli/complain.h"
#include "loadtest/own/schedules/explore_own_impl.h"
#include "loadtest/own/schedules/explore_own_result.h"
#include "loadtest/report/result.h"
#include "loadtest/search/schedule_notation.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A row for each verdict that was found, the worst first. */
static json_t *rows_of(const struct explore_own *explore)
{
    char words[SCHEDULE_TEXT];
    json_t *rows = json_array();
    bool ok = rows != NULL;
    for (int i = VERDICT_COUNT - 1; i >= 0 && ok; i--) {
        const struct counterexample *simplest = &explore->simplest[i];
        if (explore->found[i])
            ok = json_array_append_new(
                     rows, json_pack("{s:s, s:I, s:f, s:s}", "verdict", verdict_name((enum verdict)i),
                                     "schedules", (json_int_t)explore->found[i], "share",
                                     (double)explore->found[i] / (double)explore->schedules, "schedule",
                                     schedule_write(simplest->transitions, simplest->length, words))) == 0;
    }
    if (ok)
        return rows;
    json_decref(rows);
    return NULL;
}

/* Most of the texts quote the beginning of a statement. */
static bool add_warning(json_t *warnings, const char *text)
{
    char whole[CHANGED_TEXT];
    snprintf(whole, sizeof whole, "%s", text);
    text_mend(whole);
    return json_array_append_new(warnings, json_string(whole)) == 0;
}

static bool warn_of_fault(const struct explore_own *explore, json_t *warnings)
{
    if (strcmp(explore->faults, "none") == 0 || explore->faulted)
        return true;
    return add_warning(
        warnings,
        strcmp(explore->faults, "expire") == 0
            ? "No fault happened: no request held a key that looks like a lock, and none wrote to the table of \"expires\". Name the "
              "key with --expire-key, or correct \"expires\"."
            : "No fault happened: no request sent a statement at which this fault can happen.");
}

static bool warn_of_unseen(const struct explore_own *explore, json_t *warnings)
{
    char text[200];
    bool ok = true;
    for (unsigned i = 0; i < ACTORS_MAX && ok; i++) {
        if (!(explore->unseen & 1U << i))
            continue;
        snprintf(
            text, sizeof text,
            "Request %c sent no statement that the gate holds, and placed an order, so this search shows "
            "nothing about that order. Let each request write its own order over {postgres}.",
            actor_name(i));
        ok = add_warning(warnings, text);
    }
    return ok;
}

static bool warn_of_sleep(const struct explore_own *explore, json_t *warnings)
{
    char text[300];
    snprintf(
        text, sizeof text,
        "A request was silent for longer than %" PRId64
        " ms and then continued by itself, for example after a pause before a retry. The search left out the schedules in "
        "which it continues at another point. Shorten the pauses of the service for this test.",
        runner_quiet_ms(explore->runner));
    return !explore->slept || add_warning(warnings, text);
}

static bool warn_of_inside(const struct explore_own *explore, json_t *warnings)
{
    static const char WHAT[] =
        "it runs several statements (in a function, a trigger or its own text), and the "
        "gate cannot hold it between them. Run loadtest check as well";
    char text[2 * MESSAGE_TEXT];
    bool ok = true;
    if (*explore->overtaken) {
        snprintf(text, sizeof text, "Not explored: inside '%.200s'; %s.", explore->overtaken, WHAT);
        ok = add_warning(warnings, text);
    }
    if (*explore->overtaken_open && ok) {
        snprintf(text, sizeof text,
                 "Schedules in which another request acts inside '%.200s' are not in this search: %s.",
                 explore->overtaken_open, WHAT);
        ok = add_warning(warnings, text);
    }
    return ok;
}

static bool warn_of_two(const struct explore_own *explore, json_t *warnings)
{
    char text[2 * MESSAGE_TEXT];
    snprintf(
        text, sizeof text,
        "One request sends %.320s at the same time. The search runs them one after the other, always in the same sequence, so it "
        "leaves the other schedules out.",
        runner_at_once(explore->runner));
    return !*runner_at_once(explore->runner) || add_warning(warnings, text);
}

static bool warn_of_pool(const struct explore_own *explore, json_t *warnings)
{
    char text[200];
    snprintf(
        text, sizeof text,
        "The service opens %d connections or more at the same time, so no schedule let requests share one. If it has a pool, make that "
        "smaller for this test.",
        OCCUPIERS_MAX);
    static const char STUCK[] =
        "A request needs more than one connection at a time. If as many requests as the pool has connections hold one each, none of them "
        "can continue. Let a request use one connection.";
    static const char ESCAPED[] =
        "The requests that were to occupy the other connections of the pool continued over another connection, so this search does not "
        "cover all schedules in which two requests share one. Run loadtest check with more connections than the pool has as well.";
    return (explore->pool_size < OCCUPIERS_MAX || add_warning(warnings, text)) &&
           (!explore->pool_escaped || add_warning(warnings, ESCAPED)) &&
           (!explore->pool_stuck || add_warning(warnings, STUCK));
}

static bool warn_of_failures(const struct explore_own *explore, json_t *warnings)
{
    const struct shop_answer *first = &explore->first_unclear;
    char text[SHOP_ANSWER_KEPT + SHOP_HINT + 300], waited[100] = "";
    if (explore->gave_up > 0)
        snprintf(waited, sizeof waited,
                 " (%" PRId64 " of them gave up because the search kept a lock from them)", explore->gave_up);
    snprintf(text, sizeof text,
             "%" PRId64 " of %" PRId64
             " answers say neither sold nor sold out%s. The first one: %ld, %.200s%s%s",
             explore->unclear, explore->answers, waited, first->status,
             *first->text ? first->text : "an empty answer", *first->hint ? ". Add " : "", first->hint);
    return explore->unclear == 0 || add_warning(warnings, text);
}

static bool warn_of_stranger(const struct explore_own *explore, json_t *warnings)
{
    char text[2 * MESSAGE_TEXT];
    snprintf(
        text, sizeof text,
        "A request sent '%.150s' in the transaction of another request, after that one's '%.150s': both used one connection of "
        "the pool. Keep one connection from BEGIN to COMMIT.",
        explore->stranger, explore->host);
    return !*explore->stranger || add_warning(warnings, text);
}

static bool warn_of_polls(const struct explore_own *explore, json_t *warnings)
{
    char text[2 * MESSAGE_TEXT];
    snprintf(
        text, sizeof text,
        "A request repeats '%.200s' without success, and was held there until another request changed something. %s.",
        explore->polled,
        explore->polls_unknown
            ? "The command does not know whether it gives up after some tries. Schedules in which it does are not in this search"
            : "When no other request acted for up to 6 s, it did not give up. Schedules in which it gives up later are not in this search");
    return !*explore->polled || add_warning(warnings, text);
}

static bool warn_of_repeats(const struct explore_own *explore, json_t *warnings)
{
    char text[2 * MESSAGE_TEXT];
    snprintf(
        text, sizeof text,
        "A request repeats the command '%.200s' to Redis without success, and was held there until another request changed something. "
        "Schedules in which it gives up after some tries are not in this search.",
        explore->repeated);
    return !*explore->repeated || add_warning(warnings, text);
}

json_t *explore_own_warnings(const struct explore_own *explore)
{
    json_t *warnings = json_array();
    if (warnings && warn_of_fault(explore, warnings) && warn_of_unseen(explore, warnings) &&
        warn_of_sleep(explore, warnings) && warn_of_inside(explore, warnings) &&
        warn_of_failures(explore, warnings) && warn_of_pool(explore, warnings) &&
        warn_of_two(explore, warnings) && warn_of_stranger(explore, warnings) &&
        warn_of_polls(explore, warnings) && warn_of_repeats(explore, warnings) &&
        (!*explore->changed || add_warning(warnings, explore->changed)))
        return warnings;
    json_decref(warnings);
    return NULL;
}

/* Every schedule ran, each one held all that its requests did, and time alone changed nothing. */
static bool is_complete(const struct explore_own *explore)
{
    return explore->search.done && !*runner_at_once(explore->runner) && !explore->unseen && !explore->slept &&
           !*explore->overtaken && !*explore->overtaken_open && !explore->polls_unknown;
}

static enum verdict worst_of(const struct explore_own *explore)
{
    int worst = VERDICT_COUNT - 1;
    while (worst > VERDICT_CLEAN && explore->found[worst] == 0)
        worst--;
    return (enum verdict)worst;
}

/* SHOWN: an array of schedules. */
json_t *explore_own_document(const struct explore_own *explore, json_t *shown)
{
    json_t *settings = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:s?, s:s, s:s}", "file", explore->path,
                                 "stock", (json_int_t)explore->stock, "requests",
                                 (json_int_t)explore->requests, "instances", (json_int_t)explore->instances,
                                 "max_schedules", (json_int_t)explore->max_schedules, "time_limit_ms",
                                 (json_int_t)explore->time_limit_ms, "replay", explore->replay, "faults",
                                 explore->faults, "reduce", explore->reduce);
    json_t *document = result_new(explore_own_result.name, settings), *first = json_array_get(shown, 0);
    json_auto_t *found = json_pack(
        "{s:s, s:I, s:I, s:I, s:f, s:b, s:I, s:I, s:I, s:f, s:{s:I, s:I, s:I}, s:o, s:o, s:O?, s:O, s:b}",
        "verdict", verdict_name(worst_of(explore)), "schedules", (json_int_t)explore->schedules, "run",
        (json_int_t)explore->run, "pruned", (json_int_t)explore->search.pruned, "coverage",
        search_coverage(&explore->search), "complete", is_complete(explore), "deadlocks",
        (json_int_t)explore->deadlocks, "differed", (json_int_t)explore->differed, "quiet_ms",
        (json_int_t)runner_quiet_ms(explore->runner), "seconds", (double)explore->us / 1e6, "pool",
        "connections", (json_int_t)explore->pool_size, "clean", (json_int_t)explore->pool_clean, "shared",
        (json_int_t)explore->pool_shared, "rows", rows_of(explore), "warnings", explore_own_warnings(explore),
        "counterexample", first, "counterexamples", shown, "polls_on",
        *explore->polled || *explore->repeated);
    if (document && found && json_object_update(document, found) == 0)
        return document;
    complain("out of memory");
    json_decref(document);
    return NULL;
}
