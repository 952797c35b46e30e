/* Runs a few requests to a user's service, each held at its next statement until the caller lets it run. */
#include "loadtest/own/schedules/request_runner_impl.h"

#include "base/clock.h"
#include "base/hash.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/search/statement_inside.h"
#include "loadtest/sql/statement_words.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    QUIET_TIMES = 10,  /* the longest silence that was measured counts so often */
    LATE_US = 2000000, /* libcurl looks at the time once a second */
    END_US = 1000000,  /* for a request whose connections were closed */
};

/* ---- requests ------------------------------------------------------------------------------------------------------- */

static int stop_if_late(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const struct actor *actor = context;
    (void)a, (void)b, (void)c, (void)d;
    return interrupted() || monotonic_us() > atomic_load(&actor->until_us);
}

/* All requests that have not ended get as long as an answer may take. */
static void limit_requests(struct request_runner *runner)
{
    int64_t until_us = monotonic_us() + runner->settings.service->description->timeout_ms * 1000;
    for (size_t i = 0; i < ACTORS_MAX; i++)
        atomic_store(&runner->actors[i].until_us, until_us);
    for (size_t i = 0; i < OCCUPIERS_MAX; i++)
        atomic_store(&runner->occupiers[i].until_us, until_us);
}

static void *send_request(void *context)
{
    struct actor *actor = context;
    struct request_runner *runner = actor->runner;
    const struct shop_service *service = runner->settings.service;
    const struct shop_description *description = service->description;
    struct shop_values values = shop_values_of(service, actor->number % service->count);
    values.stock = runner->settings.stock;
    values.request = actor->nth;
    bool sent = shop_exchange_prepare(&actor->exchange, &description->request, &values, 0);
    if (sent) {
        curl_easy_setopt(actor->exchange.easy, CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(actor->exchange.easy, CURLOPT_XFERINFOFUNCTION, stop_if_late);
        curl_easy_setopt(actor->exchange.easy, CURLOPT_XFERINFODATA, actor);
    }
    CURLcode code = sent ? curl_easy_perform(actor->exchange.easy) : CURLE_OUT_OF_MEMORY;
    shop_exchange_answer(&actor->exchange, description, code, &actor->answer);
    if (code == CURLE_ABORTED_BY_CALLBACK)
        snprintf(actor->answer.text, sizeof actor->answer.text, "no answer in time");
    gate_lock(runner->settings.gate);
    actor->ended = true;
    actor->failed = !sent;
    gate_changed(runner->settings.gate);
    gate_unlock(runner->settings.gate);
    return NULL;
}

static void join(struct actor *actor)
{
    if (actor->has_thread)
        pthread_join(actor->thread, NULL);
    actor->has_thread = false;
}

/* ---- the fingerprint -------------------------------------------------------------------------------------------------- */

static void add_text(struct request_runner *runner, unsigned actor, const char *text)
{
    runner->fingerprint = sql_shape(hash_add_number(runner->fingerprint, actor), text);
}

/* ---- schedules -------------------------------------------------------------------------------------------------------------- */

struct run_step *runner_add_step(struct request_runner *runner, unsigned actor, enum transition_kind kind)
{
    struct run_record *record = &runner->record;
    if (record->count == RUN_STEPS_MAX) {
        complain(
            "the requests have sent %d statements and have not ended; the last one is '%.150s'. Let the service give up after a "
            "few tries",
            RUN_STEPS_MAX, record->steps[RUN_STEPS_MAX - 1].text);
        return NULL;
    }
    struct run_step *step = &record->steps[record->count++];
    step->actor = actor;
    step->kind = kind;
    step->after = runner->actors[actor].state;
    return step;
}

/* A service that the last schedule has left without an end may have no connection left in its pool, so it begins again. */
static bool start_again(struct request_runner *runner)
{
    if (runner->stopped && !shop_service_start(runner->settings.plan, runner->settings.service))
        return false;
    runner->stopped = false;
    return true;
}

bool runner_starts_again(const struct request_runner *runner)
{
    return runner->stopped;
}

bool runner_send(struct request_runner *runner, struct actor *actor)
{
    const struct shop_description *description = runner->settings.service->description;
    actor->ended = actor->failed = false;
    /* Before the silence is measured nothing else ends a request that hangs. */
    atomic_store(&actor->until_us,
                 runner->quiet_us > 0 ? INT64_MAX : monotonic_us() + description->timeout_ms * 1000);
    actor->has_thread = pthread_create(&actor->thread, NULL, send_request, actor) == 0;
    if (!actor->has_thread)
        complain("out of memory");
    return actor->has_thread && runner_settle(runner, actor);
}

bool runner_start(struct request_runner *runner)
{
    struct gate *gate = runner->settings.gate;
    runner->record = (struct run_record){0};
    runner->fingerprint = HASH_OF_NOTHING;
    gate_lock(gate);
    gate_hold(gate, false);
    gate_unlock(gate);
    if (!start_again(runner) || !runner_empty_redis(runner) ||
        !shop_service_reset(runner->settings.service, runner->settings.database, runner->settings.stock))
        return false;
    gate_lock(gate);
    gate_hold(gate, true);
    for (size_t i = 0; i < GATE_CONNECTIONS; i++)
        gate_connection(gate, i)->owner = gate_connection(gate, i)->host = GATE_NO_OWNER;
    for (size_t i = 0; i < runner->settings.requests; i++) {
        runner->actors[i].at = NOWHERE;
        runner->actors[i].waits = NULL;
        runner->actors[i].state = REQUEST_ENDED;
        runner->actors[i].crashed = runner->actors[i].cuts = false;
        runner->actors[i].steps = runner->actors[i].sent = 0;
        runner->actors[i].alone = 0;
        memset(runner->actors[i].met, 0, sizeof runner->actors[i].met);
    }
    runner->polls = (struct idle_polls){.tables_alone = runner->nature.tables_alone};
    memset(runner->waited, 0, sizeof runner->waited);
    runner->holds = runner->ended_rows = 0;
    bool ok = runner_send_occupiers(runner);
    for (size_t i = 0; i < runner->settings.requests && ok; i++)
        ok = runner_send(runner, &runner->actors[i]);
    ok = ok && runner_await_deadlock(runner);
    runner_footprints_begin(runner);
    gate_unlock(gate);
    return ok;
}

size_t runner_enabled(struct request_runner *runner, struct transition *ret_transitions)
{
    size_t count = 0;
    gate_lock(runner->settings.gate);
    const bool may_join = runner->settings.fault == TRANSITION_STEP ||
                          runner->settings.fault == TRANSITION_EXPIRE;
    for (size_t i = 0; i < runner->settings.requests && may_join; i++)
        if (runner_ends_nothing(runner, &runner->actors[i])) {
            ret_transitions[0] = (struct transition){.actor = (uint8_t)i, .kind = TRANSITION_STEP};
            gate_unlock(runner->settings.gate);
            return 1;
        }
    for (size_t i = 0; i < runner->settings.requests; i++)
        if (runner->actors[i].state == REQUEST_HELD && !runner_repeats_idly(runner, &runner->actors[i]) &&
            !runner_polls(runner, &runner->actors[i]))
            ret_transitions[count++] = (struct transition){.actor = (uint8_t)i, .kind = TRANSITION_STEP};
    for (size_t i = 0; i < runner->settings.requests; i++)
        if (runner_can_wait_out(runner, &runner->actors[i]))
            ret_transitions[count++] = (struct transition){.actor = (uint8_t)i, .kind = TRANSITION_TIMEOUT};
    for (size_t i = 0; i < runner->settings.requests; i++)
        if (runner_can_fault(runner, &runner->actors[i]))
            ret_transitions[count++] = (struct transition){.actor = (uint8_t)i,
                                                           .kind = (uint8_t)runner->settings.fault};
    gate_unlock(runner->settings.gate);
    return count;
}

bool runner_runs_alone(const struct gate_connection *connection)
{
    return connection->transaction == 'I' && !connection->begins;
}

bool runner_splits(const struct request_runner *runner, const struct gate_connection *connection)
{
    if (connection->server != RUNS_POSTGRES || !runner->routines || connection->commits ||
        !runner_runs_alone(connection) || !connection->whole)
        return false;
    const struct statement_inside inside = statement_inside(runner->routines, connection->text);
    return inside.splits && inside.can_split;
}

/* Another request has a transaction open, or, if OR_GOES_ON, has not ended. With the gate's lock. */
static bool another_is_open(struct request_runner *runner, const struct actor *actor, bool or_goes_on)
{
    bool is_open = false;
    for (size_t i = 0; i < runner->settings.requests; i++)
        is_open |= or_goes_on && i != actor->number && runner->actors[i].state != REQUEST_ENDED;
    for (size_t i = 0; i < GATE_CONNECTIONS; i++) {
        const struct gate_connection *connection = gate_connection(runner->settings.gate, i);
        is_open |= connection->used && connection->transaction != 'I' &&
                   connection->owner != (int)actor->number && connection->owner != GATE_NO_OWNER;
    }
    return is_open;
}

/* COMMAND, which ACTOR has sent and which takes several snapshots, has run or waits while another request was at work. Nothing is missed
 * only if it waits for the other one before it has looked at anything. DEFERS: it is a COMMIT, which no schedule divides. With the
 * gate's lock, which is not held while PostgreSQL is asked. */
static bool note_inside(struct request_runner *runner, const struct actor *actor,
                        const struct gate_connection *command, bool defers)
{
    bool waits_first = false, ok = true;
    char *text = runner_runs_alone(command) || defers ? runner->record.inside : runner->record.inside_open;
    if (actor->state == REQUEST_BLOCKED) {
        gate_unlock(runner->settings.gate);
        ok = shop_database_waits_first(runner->settings.database, command->pid, &waits_first);
        gate_lock(runner->settings.gate);
    }
    if (!waits_first && !*text)
        snprintf(text, MESSAGE_TEXT, "%s", command->text);
    return ok;
}

/* COMMAND is a COMMIT in which a deferred trigger runs that reads. */
static bool runs_deferred(const struct request_runner *runner, const struct actor *actor,
                          const struct gate_connection *command)
{
    bool defers = false;
    if (command->server != RUNS_POSTGRES || !runner->routines ||
        (strncasecmp(command->text, "COMMIT", 6) != 0 && strncasecmp(command->text, "END", 3) != 0))
        return false;
    for (size_t i = 0; i < runner->record.count; i++)
        defers |= runner->record.steps[i].actor == actor->number &&
                  runner->record.steps[i].server == RUNS_POSTGRES &&
                  statement_defers(runner->routines, runner->record.steps[i].text);
    return defers;
}

/* Lets the statement run at which ACTOR is held. With the gate's lock. */
bool runner_run_statement(struct request_runner *runner, struct actor *actor, struct run_step *step)
{
    struct gate *gate = runner->settings.gate;
    size_t at = actor->at;
    struct gate_connection *connection = gate_connection(gate, at);
    const struct gate_connection command = *connection;
    const bool is_sql = command.server == RUNS_POSTGRES && runner->routines && !command.commits;
    const struct statement_inside inside = is_sql ? statement_inside(runner->routines, command.text)
                                                  : (struct statement_inside){0};
    connection->splits = runner_splits(runner, &command);
    const bool defers = runs_deferred(runner, actor, &command);
    const bool is_overtaken = (inside.several &&
                               another_is_open(runner, actor,
                                               runner_runs_alone(&command) && !connection->splits)) ||
                              (defers && another_is_open(runner, actor, false));
    snprintf(step->text, sizeof step->text, "%s", command.text);
    step->server = command.server;
    add_text(runner, actor->number, *command.shape ? command.shape : command.text);
    connection->answer[0] = connection->sqlstate[0] = '\0';
    if (!command.commits)
        runner_note_sent(runner, actor, command.text);
    connection->keep_answers |= actor->cuts;
    gate_release(gate, at);
    bool ok = runner_settle(runner, actor) && (!is_overtaken || note_inside(runner, actor, &command, defers));
    connection = gate_connection(gate, at);
    connection->host = connection->transaction == 'I' ? GATE_NO_OWNER : (int)actor->number;
    snprintf(step->answer, sizeof step->answer, "%s",
             step->kind == TRANSITION_CUT ? "(fault: the connection is lost before the answer)"
                                          : connection->answer);
    /* A connection for each request is closed with its transaction. */
    step->has_stock = runner->settings.reads_stock && command.server == RUNS_POSTGRES &&
                      (!connection->used || connection->transaction == 'I') &&
                      actor->state != REQUEST_BLOCKED;
    actor->steps++;
    if (command.server == RUNS_POSTGRES)
        runner_note_statement(runner, actor, at, &command);
    else
        poll_history_clear(&runner->polls.history[actor->number]);
    if (!ok || command.server != RUNS_REDIS || actor->state == REQUEST_BLOCKED)
        return ok;
    gate_unlock(gate);
    ok = runner_note_command(runner, actor, &command);
    gate_lock(gate);
    return ok;
}

bool runner_apply(struct request_runner *runner, struct transition transition)
{
    struct gate *gate = runner->settings.gate;
    struct actor *actor = &runner->actors[transition.actor];
    struct run_step *step = runner_add_step(runner, transition.actor, (enum transition_kind)transition.kind);
    bool ok = step != NULL;
    if (!ok)
        return false;
    gate_lock(gate);
    runner->record.faulted |= transition.kind != TRANSITION_STEP && transition.kind != TRANSITION_TIMEOUT;
    actor->cuts = transition.kind == TRANSITION_CUT;
    runner_footprint_before(runner, actor, step->kind);
    if (transition.kind == TRANSITION_EXPIRE) {
        add_text(runner, transition.actor, "!expire");
        ok = (!held_keys_has(&runner->held, actor->number, NULL) ||
              runner_end_keys(runner, actor, step->text)) &&
             (!(runner->holds & 1U << actor->number) || runner_end_rows(runner, step->text));
    } else if (transition.kind == TRANSITION_CRASH) {
        add_text(runner, transition.actor, "!crash");
        snprintf(step->text, sizeof step->text,
                 "(fault: the request crashes; nothing more of it reaches a server)");
        ok = runner_crash(runner, actor);
        idle_polls_changed(&runner->polls);
    } else if (transition.kind == TRANSITION_TIMEOUT) {
        enum poll_end poll_end;
        add_text(runner, transition.actor, "!timeout");
        ok = runner_wait_out(runner, actor, step, &poll_end);
    } else {
        ok = runner_run_statement(runner, actor, step);
    }
    step->fingerprint = runner->fingerprint;
    step->after = actor->state;
    step->blockers = actor->state == REQUEST_BLOCKED ? actor->blockers : 0;
    actor->waits = actor->state == REQUEST_BLOCKED ? step : NULL;
    runner_free_connection(runner);
    ok = ok && runner_wake_waiters(runner) && runner_await_deadlock(runner) && runner_pass_time(runner);
    runner_note_polls(runner);
    runner_note_repeats(runner);
    runner_footprint_after(runner, actor, step->kind);
    for (size_t i = 0; i < GATE_CONNECTIONS; i++)
        runner->record.deadlock |= gate_connection(gate, i)->deadlock;
    gate_unlock(gate);
    return ok && (!step->has_stock || shop_database_read(runner->settings.database, &step->stock));
}

static bool is_stuck(const struct request_runner *runner)
{
    for (size_t i = 0; i < runner->settings.requests; i++)
        if (runner->actors[i].state != REQUEST_ENDED && !runner->actors[i].crashed)
            return true;
    return false;
}

/* Requests that are held and cannot continue end as if they crashed, so that connections in a pool stay. One that has crashed may try again,
 * and must not reach a server: it is refused until it gives up. With the gate's lock. */
static bool end_requests(struct request_runner *runner)
{
    int64_t end = monotonic_us() + runner->settings.service->description->timeout_ms * 1000 + LATE_US;
    bool ok = true;
    limit_requests(runner);
    while (ok && runner_has(runner, REQUEST_HELD)) {
        for (size_t i = 0; i < runner->settings.requests && ok; i++)
            if (runner->actors[i].state == REQUEST_HELD)
                ok = runner_crash(runner, &runner->actors[i]);
        ok = ok && runner_wake_waiters(runner);
    }
    for (size_t i = 0; i < runner->settings.requests; i++)
        while (ok && runner->actors[i].crashed && runner->actors[i].state != REQUEST_ENDED &&
               !interrupted() && monotonic_us() < end)
            ok = runner_settle(runner, &runner->actors[i]);
    return ok;
}

/* The connections are closed: have all requests ended in the time after which one counts as waiting in the program? */
static bool await_ends(struct request_runner *runner)
{
    int64_t until_us = monotonic_us() + runner->quiet_us + END_US;
    for (;;) {
        bool all_ended = true;
        gate_lock(runner->settings.gate);
        for (size_t i = 0; i < ACTORS_MAX; i++)
            all_ended &= runner->actors[i].ended || !runner->actors[i].has_thread;
        for (size_t i = 0; i < OCCUPIERS_MAX; i++)
            all_ended &= runner->occupiers[i].ended || !runner->occupiers[i].has_thread;
        bool waits = !all_ended && monotonic_us() < until_us && !interrupted();
        if (waits)
            gate_wait(runner->settings.gate, until_us);
        gate_unlock(runner->settings.gate);
        if (!waits)
            return all_ended;
    }
}

/* A request that was ended has left its transaction open, in a connection that the program keeps. With the gate's lock. */
static bool left_open(struct request_runner *runner)
{
    bool crashed = false, open = false;
    for (size_t i = 0; i < runner->settings.requests; i++)
        crashed |= runner->actors[i].crashed;
    for (size_t i = 0; i < GATE_CONNECTIONS; i++) {
        const struct gate_connection *connection = gate_connection(runner->settings.gate, i);
        open |= connection->used && connection->server == RUNS_POSTGRES && connection->transaction != 'I';
    }
    return crashed && open;
}

bool runner_end(struct request_runner *runner)
{
    struct gate *gate = runner->settings.gate;
    struct run_record *record = &runner->record;
    gate_lock(gate);
    runner->settings.service->struck |= record->faulted;
    record->stuck = is_stuck(runner);
    bool ok = end_requests(runner), all_ended = true;
    for (size_t i = 0; i < runner->settings.requests; i++)
        all_ended &= runner->actors[i].state == REQUEST_ENDED;
    record->stuck |= !all_ended;
    if (all_ended)
        ok = ok && runner_await_transactions(runner) && runner_note_left(runner);
    record->stuck |= *record->left != 0;
    /* Requests that occupy connections have done nothing so far, and may do something when they lose them. So the service is stopped before
     * that, with all that its pool has kept. */
    const bool stops = runner->occupied > 0;
    for (size_t i = runner->freed ? 1 : 0; i < runner->occupied; i++)
        record->escaped |= runner->occupiers[i].ended && runner->settings.requests > 0;
    const bool keeps = all_ended && (left_open(runner) || *record->left);
    bool read = false;
    if (stops) {
        gate_unlock(gate);
        /* A program that does not survive that a connection was closed for this schedule is not to blame for it. */
        record->escaped |= runner->freed && !shop_service_is_alive(runner->settings.service);
        read = ok && (record->escaped || shop_service_runs(runner->settings.service)) &&
               shop_database_read(runner->settings.database, &record->after);
        shop_service_stop(runner->settings.service);
        runner->stopped = true;
        gate_lock(gate);
    }
    if (!all_ended || stops || keeps) {
        gate_cut(gate);
        gate_hold(gate, false);
        limit_requests(runner);
    }
    for (size_t i = 0; i < GATE_CONNECTIONS; i++)
        gate_connection(gate, i)->deadlock = false;
    gate_unlock(gate);
    if (!stops && (!all_ended || keeps)) { /* a program may keep what was cut, and fail from then on */
        shop_service_stop(runner->settings.service);
        runner->stopped = true;
    }
    for (size_t i = 0; i < runner->settings.requests; i++) {
        join(&runner->actors[i]);
        record->answers[i] = runner->actors[i].answer;
    }
    for (size_t i = 0; i < OCCUPIERS_MAX; i++)
        join(&runner->occupiers[i]);
    if (stops)
        return read;
    return ok && shop_service_runs(runner->settings.service) &&
           shop_database_read(runner->settings.database, &record->after);
}

uint64_t runner_fingerprint(const struct request_runner *runner)
{
    return runner->fingerprint;
}

const struct run_record *runner_record(const struct request_runner *runner)
{
    return &runner->record;
}

int64_t runner_quiet_ms(const struct request_runner *runner)
{
    return runner->quiet_us / 1000;
}

void runner_measure(struct request_runner *runner)
{
    int64_t quiet_us = runner->silence_us * QUIET_TIMES;
    runner->quiet_us = quiet_us > QUIET_LEAST_US ? quiet_us : QUIET_LEAST_US;
}

void runner_watch(struct request_runner *runner, bool watches)
{
    runner->watches = watches;
}

const char *runner_at_once(const struct request_runner *runner)
{
    return runner->at_once;
}

void runner_set_routines(struct request_runner *runner, const struct routines *routines)
{
    runner->routines = routines;
}

void runner_set_nature(struct request_runner *runner, const struct shop_nature *nature)
{
    runner->nature = *nature;
}

void runner_set(struct request_runner *runner, size_t requests, bool reads_stock)
{
    runner->settings.requests = requests;
    runner->settings.reads_stock = reads_stock;
}

/* ---- opening and closing ------------------------------------------------------------------------------------------------------- */

struct request_runner *runner_open(const struct runner_settings *settings)
{
    struct request_runner *runner = calloc(1, sizeof *runner);
    if (!runner) {
        complain("out of memory");
        return NULL;
    }
    runner->settings = *settings;
    for (size_t i = 0; i < ACTORS_MAX; i++)
        runner->actors[i] = (struct actor){
            .runner = runner, .number = (unsigned)i, .nth = (unsigned)i + 1, .at = NOWHERE};
    for (size_t i = 0; i < OCCUPIERS_MAX; i++)
        runner->occupiers[i] = (struct actor){
            .runner = runner, .number = ACTORS_MAX, .nth = (unsigned)(ACTORS_MAX + i) + 1, .at = NOWHERE};
    return runner;
}

void runner_close(struct request_runner *runner)
{
    if (!runner)
        return;
    gate_lock(runner->settings.gate);
    gate_cut(runner->settings.gate);
    gate_hold(runner->settings.gate, false);
    gate_unlock(runner->settings.gate);
    limit_requests(runner);
    if (!await_ends(runner))
        shop_service_stop(runner->settings.service);
    for (size_t i = 0; i < ACTORS_MAX; i++) {
        join(&runner->actors[i]);
        shop_exchange_close(&runner->actors[i].exchange);
    }
    for (size_t i = 0; i < OCCUPIERS_MAX; i++) {
        join(&runner->occupiers[i]);
        shop_exchange_close(&runner->occupiers[i].exchange);
    }
    free(runner);
}
