/* Runs one sequence of steps as PostgreSQL's isolation tester does: a step is sent, and the next one follows when the first has
 * ended or waits for a lock. A marker can delay the report of a step's end. */
#include "loadtest/sqlspec/permutation.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/search/waits.h"

#include <inttypes.h>
#include <string.h>

enum { ASK_AFTER_MS = 5, SAY_US = 5000000 };

/* A step that was sent and not reported as ended. */
struct active_step {
    const struct permutation_step *step;
    size_t notices[SPEC_MARKERS_MAX]; /* of each marker: the number that its session has to reach */
    int64_t began_us;
    bool cancelled;
};

struct run {
    struct connections *connections;
    struct active_step active[SPEC_SESSIONS_MAX]; /* step NULL: the session is free */
    /* sessions whose steps were reported as waiting, the first one first */
    size_t waiting[SPEC_SESSIONS_MAX];
    size_t waiting_count;
    size_t notices; /* of all sessions when they were last compared */
    bool ends_waits, said;
    bool failed;
};

enum attempt {
    FIRST,      /* just sent: it may end, or begin to wait */
    LATER,      /* it was reported as waiting */
    MUST_FINISH /* the same, and nothing else can be done before it ends */
};

static const struct spec_step *step_of(const struct run *run, size_t session)
{
    return &run->connections->spec->steps[run->active[session].step->step];
}

static json_t *holders_json(const struct spec *spec, uint32_t holders)
{
    json_t *names = json_array();
    for (size_t i = 0; names && i < spec->session_count; i++)
        if (holders & 1u << i)
            (void)json_array_append_new(names, json_string(spec->sessions[i].name));
    return names;
}

static void report_waiting(struct run *run, size_t session, uint32_t holders)
{
    const struct spec_step *step = step_of(run, session);
    connections_report(run->connections, "waiting",
                       json_pack("{s:s, s:s, s:o}", "step", step->name, "sql", step->block.sql, "for",
                                 holders_json(run->connections->spec, holders)));
}

/* The sender of a notification is a number for the server and a name for us. */
static void name_senders(const struct connections *connections, json_t *results)
{
    size_t i;
    json_t *result;
    json_array_foreach(results, i, result) {
        json_int_t id = json_integer_value(json_object_get(result, "from"));
        for (size_t n = 0; id && n < connections->spec->session_count; n++)
            if (connections->sessions[n]->id == id)
                (void)json_object_set_new(result, "from", json_string(connections->spec->sessions[n].name));
    }
}

/* A marker other than (*) keeps the step from being reported as ended. */
static bool is_held(const struct run *run, const struct active_step *active)
{
    for (size_t i = 0; i < active->step->marker_count; i++) {
        const struct spec_marker *marker = &active->step->markers[i];
        if (marker->kind == MARKER_ONCE)
            continue;
        size_t other = run->connections->spec->steps[marker->step].session;
        const struct permutation_step *runs = run->active[other].step;
        if (marker->kind == MARKER_STEP ? runs && runs->step == marker->step
                                        : run->connections->sessions[other]->notices < active->notices[i])
            return true;
    }
    return false;
}

static void cancel(struct run *run, size_t session, const char *why)
{
    struct session *on = run->connections->sessions[session];
    run->active[session].cancelled = true;
    connections_report(run->connections, "cancelled",
                       json_pack("{s:s, s:I, s:s*}", "step", step_of(run, session)->name, "ms",
                                 (json_int_t)(run->connections->step_us / 1000), "why", why));
    on->driver->cancel(on);
}

/* Cancels a step that takes too long; twice as long is a failure. */
static void check_time(struct run *run, size_t session)
{
    struct active_step *active = &run->active[session];
    int64_t limit_us = run->connections->step_us, past_us = monotonic_us() - active->began_us;
    if (past_us > limit_us && !active->cancelled) {
        cancel(run, session, NULL);
    } else if (past_us > SAY_US && !run->said && !active->cancelled) {
        run->said = true;
        complain("%s: step %s still runs after %d s. The command cancels it after %" PRId64
                 " ms (--step-time)",
                 run->connections->path, step_of(run, session)->name, SAY_US / 1000000, limit_us / 1000);
    } else if (past_us > 2 * limit_us) {
        complain("%s: step %s did not end after it was cancelled", run->connections->path,
                 step_of(run, session)->name);
        run->failed = true;
    }
    run->failed |= interrupted() != 0;
}

/* Cancels the step of SESSION, which has to end before anything else can happen, if it waits for a session that is idle or waits too. Two answers
 * of the server have to agree. */
static void end_wait(struct run *run, size_t session)
{
    struct connections *connections = run->connections;
    uint32_t first[SPEC_SESSIONS_MAX], holders[SPEC_SESSIONS_MAX];
    struct session *on = connections->sessions[session];
    size_t count = connections->spec->session_count;
    char lock[LOCK_TEXT_SIZE];
    if (!connections_waits(connections, first) || !connections_waits(connections, holders)) {
        run->failed = true;
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (first[i] != holders[i] ||
            (!holders[i] && connections->sessions[i]->driver->pump(connections->sessions[i]) == SESSION_BUSY))
            return;
    if (waits_have_circle(holders, count) || on->driver->pump(on) != SESSION_BUSY)
        return;
    connections_describe_wait(connections, session, holders[session], lock);
    cancel(run, session, lock);
}

/* Waits until the step of SESSION has ended, or, unless it must finish, is blocked. False: it still runs. */
static bool await(struct run *run, size_t session, enum attempt attempt, uint32_t *ret_holders)
{
    struct connections *connections = run->connections;
    struct session *on = connections->sessions[session];
    while (!run->failed && on->driver->pump(on) == SESSION_BUSY) {
        uint32_t holders[SPEC_SESSIONS_MAX];
        session_poll(&on, 1, ASK_AFTER_MS);
        if (on->driver->pump(on) != SESSION_BUSY)
            break;
        if (attempt != MUST_FINISH) {
            if (!connections_waits(connections, holders)) {
                run->failed = true;
            } else if (holders[session] && on->driver->pump(on) == SESSION_BUSY) {
                *ret_holders = holders[session];
                return false;
            }
        } else if (run->ends_waits && !run->active[session].cancelled) {
            end_wait(run, session);
        }
        check_time(run, session);
    }
    return true;
}

/* True: the step has ended and was reported. */
static bool try_to_end(struct run *run, size_t session, enum attempt attempt)
{
    struct active_step *active = &run->active[session];
    struct session *on = run->connections->sessions[session];
    uint32_t holders = 0;
    bool ended = true;
    for (size_t i = 0; attempt == FIRST && i < active->step->marker_count; i++)
        if (active->step->markers[i].kind == MARKER_ONCE)
            ended = false;
    ended = ended && await(run, session, attempt, &holders) && !is_held(run, active);
    if (run->failed)
        return false;
    if (!ended) {
        if (attempt == FIRST)
            report_waiting(run, session, holders);
        return false;
    }
    if (on->state == SESSION_LOST && !results_error(on->results)) {
        complain("%s:%d: step %s cannot run: %s", run->connections->path, step_of(run, session)->block.line,
                 step_of(run, session)->name, on->error);
        run->failed = true;
        return false;
    }
    name_senders(run->connections, on->results);
    const struct spec_step *step = step_of(run, session);
    connections_report(run->connections, attempt == FIRST ? "step" : "completed",
                       json_pack("{s:s, s:s, s:s, s:O}", "step", step->name, "session",
                                 run->connections->spec->sessions[session].name, "sql", step->block.sql,
                                 "results", on->results));
    active->step = NULL;
    return true;
}

static size_t count_notices(const struct run *run)
{
    size_t notices = 0;
    for (size_t i = 0; i < run->connections->spec->session_count; i++)
        notices += run->connections->sessions[i]->notices;
    return notices;
}

/* Tries each waiting step. If one ended or a notice came while another is held by a marker, tries again. */
static void try_waiting(struct run *run, enum attempt attempt)
{
    bool again;
    do {
        size_t left = 0, before = run->waiting_count, notices = count_notices(run);
        bool marked = false;
        for (size_t i = 0; i < before; i++) {
            size_t session = run->waiting[i];
            if (run->active[session].step && !try_to_end(run, session, attempt)) {
                marked |= run->active[session].step->marker_count > 0;
                run->waiting[left++] = session;
            }
        }
        run->waiting_count = left;
        again = marked && (left < before || count_notices(run) > notices);
    } while (again && !run->failed);
}

/* The session is busy with an earlier step, which has to end before the next one of the session. */
static void finish_earlier(struct run *run, size_t session)
{
    int64_t since_us = monotonic_us();
    while (run->active[session].step && !run->failed) {
        (void)try_to_end(run, session, MUST_FINISH);
        try_waiting(run, LATER);
        if (run->active[session].step && monotonic_us() - since_us > 2 * run->connections->step_us) {
            complain("%s: step %s never ends, because a marker makes it wait", run->connections->path,
                     step_of(run, session)->name);
            run->failed = true;
        }
    }
}

static void run_step(struct run *run, const struct permutation_step *step)
{
    struct connections *connections = run->connections;
    const struct spec *spec = connections->spec;
    size_t session = spec->steps[step->step].session;
    finish_earlier(run, session);
    if (run->failed)
        return;
    struct active_step *active = &run->active[session];
    *active = (struct active_step){.step = step, .began_us = monotonic_us()};
    for (size_t i = 0; i < step->marker_count; i++)
        if (step->markers[i].kind == MARKER_NOTICES)
            active->notices[i] = connections->sessions[spec->steps[step->markers[i].step].session]->notices +
                                 (size_t)step->markers[i].notices;
    if (!connections_start(connections, step->step)) {
        run->failed = true;
        return;
    }
    bool ended = try_to_end(run, session, FIRST);
    try_waiting(run, LATER);
    if (!ended)
        run->waiting[run->waiting_count++] = session;
}

static void report_start(struct connections *connections, const struct spec_permutation *permutation)
{
    json_t *names = json_array();
    for (size_t i = 0; names && i < permutation->count; i++)
        (void)json_array_append_new(names,
                                    json_string(connections->spec->steps[permutation->steps[i].step].name));
    connections_report(connections, "starting", json_pack("{s:o}", "steps", names));
}

bool permutation_run(struct connections *connections, const struct spec_permutation *permutation,
                     bool ends_waits, const char **ret_broken)
{
    struct run run = {.connections = connections, .ends_waits = ends_waits};
    size_t sessions = connections->spec->session_count;
    report_start(connections, permutation);
    if (!connections_set_up(connections))
        return false;
    for (size_t i = 0; i < sessions && !run.failed; i++)
        run.failed = !connections_set_up_session(connections, i);
    for (size_t i = 0; i < permutation->count && !run.failed; i++)
        run_step(&run, &permutation->steps[i]);
    if (!run.failed)
        try_waiting(&run, MUST_FINISH);
    if (!run.failed && run.waiting_count > 0) {
        complain("%s:%d: the steps of this permutation wait for each other. Change their sequence or markers",
                 connections->path, permutation->line);
        run.failed = true;
    }
    for (size_t i = 0; i < sessions; i++)
        if (run.failed)
            connections_end_session(connections, i);
        else
            connections_tear_down_session(connections, i);
    bool ok = !run.failed && connections_check_invariants(connections, ret_broken);
    connections_tear_down(connections);
    return ok;
}
