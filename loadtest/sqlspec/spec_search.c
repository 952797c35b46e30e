/* Searches all interleavings of the sessions depth first. For each different outcome it keeps the simplest schedule, and names the
 * anomaly at the end. */
#include "loadtest/sqlspec/spec_search.h"

#include "base/clock.h"
#include "base/prng.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/cli/progress.h"
#include "loadtest/search/counterexamples.h"
#include "loadtest/search/run_search.h"
#include "loadtest/sqlspec/classify.h"
#include "loadtest/sqlspec/inside/step_footprints.h"
#include "loadtest/sqlspec/serial_numbers.h"
#include "loadtest/stats/verdict.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { OUTCOMES_MAX = 4096, REPEATS_MAX = 20 };

/* One of the different outcomes. */
struct found {
    char *text;
    struct sql_outcome outcome;
    struct counterexample simplest; /* the simplest schedule that leads to it */
    int64_t schedules;
    struct finding finding;
};

struct spec_search {
    struct connections *connections;
    const struct spec *spec;
    const struct spec_settings *settings;
    struct sql_execution execution;
    struct serial serial;
    struct search search;
    struct step_footprints footprints;
    bool has_failed;                /* a transaction, in the schedule that runs */
    size_t next[SPEC_SESSIONS_MAX]; /* of each session: the number of its next step */
    struct found found[OUTCOMES_MAX];
    size_t found_count;
    int64_t schedules; /* all that are known, also those that need not run since one that has run is alike */
    int64_t run, repeats;
    int repeats_in_turn;
    bool complete;
    struct progress progress;
};

/* ---- the program that is searched ---------------------------------------------------------------------- */

/* Bits of the sessions whose transaction is in STATE. */
static uint32_t in_state(const struct spec_search *search, enum transaction state)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < search->spec->session_count; i++) {
        const struct session *on = search->connections->sessions[i];
        bits |= on->driver->transaction(on) == state ? 1U << i : 0;
    }
    return bits;
}

static bool start(void *self)
{
    struct spec_search *search = self;
    const struct step_inside *inside = &search->execution.inside;
    memset(search->next, 0, sizeof search->next);
    search->has_failed = false;
    if (!sql_execution_begin(&search->execution, true) ||
        !step_footprints_learn(&search->footprints, search->spec, search->connections->control,
                               inside->routines_known ? &inside->routines : NULL))
        return false;
    step_footprints_begin(&search->footprints, search->spec, in_state(search, TRANSACTION_OPEN));
    return true;
}

static size_t enabled(void *self, struct transition *ret_transitions)
{
    const struct spec_search *search = self;
    size_t count = 0;
    for (size_t i = 0; i < search->spec->session_count && !search->execution.failed; i++)
        if (search->execution.running[i] == NO_STEP && !(search->execution.given_up & 1u << i) &&
            search->next[i] < search->spec->sessions[i].step_count)
            ret_transitions[count++] = (struct transition){.actor = (uint8_t)i, .kind = TRANSITION_STEP};
    return count;
}

static bool apply(void *self, struct transition transition)
{
    struct spec_search *search = self;
    size_t step = search->spec->sessions[transition.actor].steps[search->next[transition.actor]++];
    if (!sql_execution_step(&search->execution, step))
        return false;
    uint32_t running = 0;
    for (size_t i = 0; i < search->spec->session_count; i++)
        running |= search->execution.running[i] != NO_STEP ? 1U << i : 0;
    step_footprints_note(&search->footprints, search->spec, step, running,
                         in_state(search, TRANSACTION_OPEN));
    /* The server may have chosen whose transaction fails, and may choose another one when the steps are repeated. */
    search->has_failed |= in_state(search, TRANSACTION_FAILED) != 0;
    if (search->has_failed)
        footprint_add_all(&search->footprints.last);
    return true;
}

static void footprint(void *self, struct footprint *ret_footprint)
{
    const struct spec_search *search = self;
    *ret_footprint = search->footprints.last;
    if (!search->footprints.usable)
        footprint_add_all(ret_footprint);
}

static size_t remaining(void *self, unsigned actor)
{
    const struct spec_search *search = self;
    return actor < search->spec->session_count
               ? search->spec->sessions[actor].step_count - search->next[actor]
               : 0;
}

static uint64_t fingerprint(void *self)
{
    const struct spec_search *search = self;
    return search->execution.fingerprint;
}

/* ---- outcomes ------------------------------------------------------------------------------------------ */

/* Everything in which outcomes differ. */
static char *whole_text(const struct sql_outcome *outcome)
{
    char *text = sql_outcome_text(outcome, UINT32_MAX), *whole = NULL;
    if (text && asprintf(&whole, "%s %x %d %s", text, outcome->aborted, outcome->stuck,
                         outcome->broken ? outcome->broken : "") < 0)
        whole = NULL;
    free(text);
    return whole;
}

/* The simplest of the schedules that are like the one that ran. *RET_ALIKE: their number. */
static struct counterexample schedule_that_ran(struct spec_search *search, int64_t *ret_alike)
{
    struct counterexample ran = {.length = search->search.length};
    *ret_alike = search_alike(&search->search, NULL, 0, ran.transitions);
    ran.switches = ran.effort = context_switches(ran.transitions, ran.length);
    return ran;
}

static void steps_of(const struct spec *spec, const struct counterexample *schedule,
                     size_t ret_steps[SPEC_STEPS_MAX])
{
    size_t next[SPEC_SESSIONS_MAX] = {0};
    for (size_t i = 0; i < schedule->length; i++) {
        uint8_t session = schedule->transitions[i].actor;
        ret_steps[i] = spec->sessions[session].steps[next[session]++];
    }
}

static int64_t add_counts(int64_t one, int64_t other)
{
    return one > INT64_MAX - other ? INT64_MAX : one + other;
}

/* Counts an outcome, which it takes over. */
static bool count_outcome(struct spec_search *search, struct sql_outcome *outcome)
{
    char *text = whole_text(outcome);
    int64_t alike;
    const struct counterexample ran = schedule_that_ran(search, &alike);
    struct found *found = search->found;
    while (text && found < search->found + search->found_count && strcmp(found->text, text) != 0)
        found++;
    bool is_new = found == search->found + search->found_count, ok = text != NULL;
    if (!text)
        complain("out of memory");
    if (ok && is_new && search->found_count == OUTCOMES_MAX) {
        complain("%s: there are more than %d different outcomes. Select only values that matter",
                 search->settings->path, OUTCOMES_MAX);
        ok = false;
    }
    if (ok && is_new) {
        *found = (struct found){.text = text, .outcome = *outcome};
        *outcome = (struct sql_outcome){0};
        text = NULL;
        search->found_count++;
    }
    if (ok && (is_new || counterexample_is_before(&ran, &found->simplest)))
        found->simplest = ran;
    if (ok) {
        found->schedules = add_counts(found->schedules, alike);
        search->schedules = add_counts(search->schedules, alike);
    }
    free(text);
    sql_outcome_free(outcome);
    return ok;
}

static bool end(void *self)
{
    struct spec_search *search = self;
    struct sql_outcome outcome = {0};
    if (!sql_execution_end(&search->execution, &outcome))
        return false;
    if (!interrupted())
        return count_outcome(search, &outcome);
    sql_outcome_free(&outcome); /* a cancelled step changes it */
    return false;
}

/* ---- searching ----------------------------------------------------------------------------------------- */

static bool goes_on(void *self)
{
    const struct spec_search *search = self;
    int64_t most = search->settings->samples ? search->settings->samples : search->settings->limit;
    return !most || search->run < most;
}

static bool ran(void *self)
{
    struct spec_search *search = self;
    char run[40];
    search->repeats_in_turn = 0;
    search->run++;
    (void)snprintf(run, sizeof run, " run: %" PRId64, search->run);
    progress_update(&search->progress, search_coverage(&search->search), run);
    return true;
}

/* Ends a schedule whose outcome is not to be counted. */
static bool stop(void *self)
{
    struct spec_search *search = self;
    struct sql_outcome unused = {0};
    bool ended = sql_execution_end(&search->execution, &unused);
    sql_outcome_free(&unused);
    return ended;
}

static bool again(void *self, enum search_outcome why)
{
    struct spec_search *search = self;
    (void)why;
    if (++search->repeats_in_turn > REPEATS_MAX) {
        complain("%s: the same steps do not lead to the same results. Select only values that depend on the "
                 "schedule, and sort rows",
                 search->settings->path);
        return false;
    }
    search->repeats++;
    return stop(search);
}

static bool reduces(const struct spec_search *search)
{
    return strcmp(search->settings->reduce, "none") != 0;
}

/* Runs the schedules. False, having said why. */
static bool run_schedules(struct spec_search *search)
{
    const struct program program = {.self = search,
                                    .start = start,
                                    .enabled = enabled,
                                    .apply = apply,
                                    .end = end,
                                    .remaining = remaining,
                                    .fingerprint = fingerprint,
                                    .footprint = reduces(search) ? footprint : NULL,
                                    .stop = stop};
    const struct spec_settings *settings = search->settings;
    const struct search_caller caller = {
        search, settings->time_ms ? monotonic_us() + settings->time_ms * 1000 : INT64_MAX, goes_on, ran,
        again};
    search->search.bound = (int)settings->bound;
    search->search.samples = settings->samples > 0;
    search->search.random = random_from((uint64_t)settings->seed);
    enum search_outcome outcome = run_search(&search->search, &program, &caller);
    search->complete = search->search.done && !search->search.cut && !search->execution.inside.is_open;
    return (outcome == SEARCH_RAN || outcome == SEARCH_DONE) && !interrupted() &&
           (search->run > 0 || !interrupt_came());
}

static bool name_outcomes(struct spec_search *search)
{
    for (size_t i = 0; i < search->found_count; i++) {
        struct found *found = &search->found[i];
        size_t steps[SPEC_STEPS_MAX];
        steps_of(search->spec, &found->simplest, steps);
        if (!classify(&search->execution, &search->serial, steps, found->simplest.length, &found->outcome,
                      &found->finding))
            return false;
    }
    return true;
}

/* The same serial execution must give the same outcome twice. Otherwise a comparison means nothing. */
static bool is_reproducible(struct spec_search *search)
{
    uint8_t order[SERIAL_SESSIONS_MAX];
    uint32_t all = (uint32_t)((UINT64_C(1) << search->spec->session_count) - 1);
    struct sql_outcome again = {0};
    for (size_t i = 0; i < search->spec->session_count; i++)
        order[i] = (uint8_t)i;
    const struct serial_outcome *first = serial_run(&search->serial, &search->execution, order,
                                                    search->spec->session_count);
    if (!first || !sql_execution_run_serial(&search->execution, order, search->spec->session_count, &again))
        return false;
    char *text = sql_outcome_text(&again, all);
    bool same = text && strcmp(text, first->text) == 0;
    if (!same) {
        struct difference difference;
        (void)sql_outcome_difference(&search->execution, &first->outcome, &again, &difference);
        complain(
            "%s: two serial executions in the same sequence give different results. Select only values that "
            "depend on the schedule, and sort rows. In %s: %s in one, and %s in the other. A column whose "
            "DEFAULT is a time or a random value is left out",
            search->settings->path, difference.where, difference.one, difference.other);
    }
    free(text);
    sql_outcome_free(&again);
    return same;
}

/* ---- steps that always fail ------------------------------------------------------------------------------- */

/* What the serial executions say of the steps. */
struct failures {
    size_t executions, failed[SPEC_STEPS_MAX];
    char error[SPEC_STEPS_MAX][200];
};

static bool add_execution(struct spec_search *search, const uint8_t *order, struct failures *failures)
{
    const struct serial_outcome *found = serial_run(&search->serial, &search->execution, order,
                                                    search->spec->session_count);
    if (!found)
        return false;
    failures->executions++;
    for (size_t i = 0; i < search->spec->step_count; i++) {
        const struct spec_step *step = &search->spec->steps[i];
        const json_t *results = json_object_get(found->outcome.sessions[step->session], step->name), *result;
        size_t n;
        json_array_foreach(results, n, result) {
            const char *error = json_string_value(json_object_get(result, "error"));
            if (!error)
                continue;
            failures->failed[i]++;
            (void)snprintf(failures->error[i], sizeof failures->error[i], "%s", error);
            break;
        }
    }
    return true;
}

/* A step that fails in every serial execution is a mistake of the file, and shows nothing about concurrency. Each session comes first once, which
 * is enough. */
static bool steps_work(struct spec_search *search)
{
    const struct spec *spec = search->spec;
    struct failures *failures = calloc(1, sizeof *failures);
    uint8_t order[SERIAL_SESSIONS_MAX];
    bool ok = failures != NULL;
    for (size_t first = 0; first < spec->session_count && ok; first++) {
        for (size_t i = 0; i < spec->session_count; i++)
            order[i] = (uint8_t)((first + i) % spec->session_count);
        ok = add_execution(search, order, failures);
    }
    for (size_t i = 0; i < spec->step_count && ok; i++)
        if (failures->failed[i] == failures->executions) {
            complain("%s:%d: step %s fails in every serial execution: %s. Correct its SQL",
                     search->settings->path, spec->steps[i].block.line, spec->steps[i].name,
                     failures->error[i]);
            ok = false;
        }
    free(failures);
    return ok;
}

/* ---- the result ---------------------------------------------------------------------------------------- */

/* Outcomes that are one row: the same kind, with the same invariant; of an anomaly, between the same sessions. */
static bool same_row(const struct found *one, const struct found *other)
{
    return one->finding.kind == other->finding.kind &&
           (one->finding.sessions == other->finding.sessions || !finding_is_anomaly(one->finding.kind)) &&
           one->outcome.broken == other->outcome.broken;
}

/* By kind, then the simplest. */
static int compare_found(const void *left, const void *right)
{
    const struct found *one = left, *other = right;
    if (one->finding.kind != other->finding.kind)
        return one->finding.kind < other->finding.kind ? -1 : 1;
    if (one->finding.sessions != other->finding.sessions)
        return one->finding.sessions < other->finding.sessions ? -1 : 1;
    if (one->simplest.switches != other->simplest.switches)
        return one->simplest.switches < other->simplest.switches ? -1 : 1;
    return strcmp(one->text, other->text);
}

static json_t *session_names(const struct spec *spec, uint32_t sessions)
{
    char names[1600] = "";
    size_t used = 0;
    for (size_t i = 0; i < spec->session_count; i++)
        if (sessions & 1u << i && used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                     spec->sessions[i].name);
    return json_string(names);
}

static json_t *step_names(const struct spec *spec, const struct counterexample *schedule)
{
    char *names = NULL;
    size_t size = 0, steps[SPEC_STEPS_MAX];
    steps_of(spec, schedule, steps);
    FILE *out = open_memstream(&names, &size);
    for (size_t i = 0; out && i < schedule->length; i++) {
        const char *name = spec->steps[steps[i]].name;
        (void)fprintf(out, strpbrk(name, " \"") ? "%s\"%s\"" : "%s%s", i ? " " : "", name);
    }
    json_t *text = out && fclose(out) == 0 ? json_string(names) : NULL;
    free(names);
    return text;
}

static json_t *results_json(const struct spec *spec, const struct sql_outcome *outcome)
{
    json_t *results = json_object();
    for (size_t i = 0; results && i < spec->session_count; i++)
        if (outcome->sessions[i])
            (void)json_object_set_new(results, spec->sessions[i].name,
                                      numbers_small(outcome->numbers, outcome->sessions[i]));
    return results;
}

/* Nothing wrong was found, and not all was searched: another session can act inside a step. */
static bool is_overtaken(const struct spec_search *search)
{
    for (size_t i = 0; i < search->found_count; i++)
        if (search->found[i].outcome.broken || finding_is_anomaly(search->found[i].finding.kind))
            return false;
    return search->execution.inside.found;
}

static json_t *row_of(const struct spec_search *search, const struct found *found, uint32_t sessions,
                      int64_t schedules)
{
    enum verdict verdict = found->outcome.broken                     ? VERDICT_INVARIANT
                           : finding_is_anomaly(found->finding.kind) ? VERDICT_ANOMALY
                           : is_overtaken(search)                    ? VERDICT_NOT_EXPLORED
                                                                     : VERDICT_OK;
    return json_pack(
        "{s:s, s:o, s:I, s:f, s:o, s:s, s:s, s:s?, s:o, s:o, s:s}", "outcome",
        finding_name(found->finding.kind), "sessions", session_names(search->spec, sessions), "schedules",
        (json_int_t)schedules, "share", (double)schedules / (double)search->schedules, "schedule",
        step_names(search->spec, &found->simplest), "text", found->finding.text, "code", found->outcome.code,
        "broken_invariant", found->outcome.broken, "results", results_json(search->spec, &found->outcome),
        "tables", numbers_small(found->outcome.numbers, found->outcome.tables), "verdict",
        verdict_name(verdict));
}

static json_t *rows_of(struct spec_search *search)
{
    json_t *rows = json_array();
    qsort(search->found, search->found_count, sizeof search->found[0], compare_found);
    for (size_t i = 0; rows && i < search->found_count; i++) {
        int64_t schedules = 0;
        uint32_t sessions = 0;
        bool first = true;
        for (size_t n = 0; n < search->found_count; n++)
            if (same_row(&search->found[i], &search->found[n])) {
                schedules += search->found[n].schedules;
                sessions |= search->found[n].finding.sessions;
                first = first && n >= i;
            }
        if (first &&
            json_array_append_new(rows, row_of(search, &search->found[i], sessions, schedules)) != 0) {
            json_decref(rows);
            return NULL;
        }
    }
    return rows;
}

/* The step in a transaction inside which another session can commit; NULL: there is none. */
static const char *undivided_step(const struct spec_search *search)
{
    const struct step_inside *inside = &search->execution.inside;
    return inside->is_open ? search->spec->steps[inside->open_step].name : NULL;
}

static json_t *warnings_of(const struct spec_search *search)
{
    static const struct {
        const char *is, *remedy;
    } INSIDE[] = {
        [INSIDE_ALONE] = {"which is not atomic outside a transaction",
                          "Put the step into BEGIN and COMMIT, and the statements of a function into steps"},
        [INSIDE_COMMIT] = {"a COMMIT in which a deferred trigger runs",
                           "Put SET CONSTRAINTS ALL IMMEDIATE before it, as a step"},
        [INSIDE_TRIGGER] = {"in which a trigger or a function reads", "Write its statements as steps"},
    };
    json_t *warnings = json_array();
    if (search->execution.tables_too_large)
        (void)json_array_append_new(
            warnings,
            json_string(
                "The contents of the tables were not compared: there are more than 64 tables or 1,000 rows."));
    if (search->execution.sequences.numbers.by_size)
        (void)json_array_append_new(
            warnings,
            json_string(
                "The SQL compares or sorts generated numbers, so an outcome in which they were generated in "
                "another sequence is another outcome."));
    if (search->execution.sequences.why)
        (void)json_array_append_new(
            warnings, json_sprintf("The columns whose numbers sequences generate were not compared. %s",
                                   search->execution.sequences.why));
    if (is_overtaken(search))
        (void)json_array_append_new(
            warnings,
            json_sprintf(
                "Not explored: inside step %s, %s. Another session can act in between, and no schedule "
                "does that. %s.",
                search->spec->steps[search->execution.inside.step].name,
                INSIDE[search->execution.inside.why].is, INSIDE[search->execution.inside.why].remedy));
    if (search->execution.inside.is_open)
        (void)json_array_append_new(
            warnings,
            json_sprintf(
                "Schedules in which another session commits inside step %s are not in this search: the step "
                "runs several statements. Write its statements as steps.",
                undivided_step(search)));
    if (search->search.uncounted)
        (void)json_array_append_new(
            warnings, json_string("The schedules that did not have to run were too many to count, so the "
                                  "figures are those of the schedules that were run."));
    if (search->repeats > 0)
        (void)json_array_append_new(
            warnings, json_sprintf("%" PRId64
                                   " schedules gave other results when they ran again, so a server's choice, "
                                   "such as which transaction a deadlock ends, may differ in another run.",
                                   search->repeats));
    return warnings;
}

static void free_search(struct spec_search *search)
{
    for (size_t i = 0; i < search->found_count; i++) {
        free(search->found[i].text);
        sql_outcome_free(&search->found[i].outcome);
    }
    serial_free(&search->serial);
    step_footprints_free(&search->footprints);
    sql_execution_close(&search->execution);
    free(search);
}

json_t *spec_search(struct connections *connections, const struct spec_settings *settings)
{
    struct spec_search *search = calloc(1, sizeof *search);
    int64_t began_us = monotonic_us();
    json_t *result = NULL;
    if (!search) {
        complain("out of memory");
        return NULL;
    }
    search->connections = connections;
    search->spec = connections->spec;
    search->settings = settings;
    search->progress = progress_begin(1);
    progress_label(&search->progress, "schedules");
    sql_execution_open(&search->execution, connections);
    if (search->spec->session_count > SERIAL_SESSIONS_MAX)
        complain("%s has %zu sessions, but a search takes at most %d. Add permutation lines, or use --replay",
                 settings->path, search->spec->session_count, SERIAL_SESSIONS_MAX);
    else if (connections_reset(connections) && serial_allow_numbers(&search->serial, &search->execution) &&
             is_reproducible(search) && steps_work(search) && run_schedules(search) && name_outcomes(search))
        result = json_pack("{s:o, s:I, s:I, s:I, s:b, s:f, s:I, s:I, s:f, s:o, s:s?}", "rows",
                           rows_of(search), "schedules", (json_int_t)search->schedules, "run",
                           (json_int_t)search->run, "pruned", (json_int_t)search->search.pruned, "complete",
                           search->complete, "coverage", search_coverage(&search->search), "outcomes",
                           (json_int_t)search->found_count, "serial_orders", (json_int_t)search->serial.count,
                           "seconds", (double)(monotonic_us() - began_us) / 1e6, "warnings",
                           warnings_of(search), "undivided_step", undivided_step(search));
    progress_wipe();
    sql_execution_abandon(&search->execution);
    free_search(search);
    return result;
}
