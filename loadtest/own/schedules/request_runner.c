/* Runs a few requests to a user's service, each held at its next statement until the caller lets it run. */
#include "loadtest/own/schedules/request_runner.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"

#include <ctype.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOK_US = 2000, /* between two looks at PostgreSQL's lock table */
    QUIET_LEAST_US = 500000,
    QUIET_TIMES = 10,   /* the longest silence that was measured counts so often */
    STUCK_US = 4000000, /* longer than PostgreSQL's deadlock_timeout of one second */
    ASK_US = 5000000,
    NOWHERE = GATE_CONNECTIONS,
};

struct actor {
    struct request_runner *runner;
    unsigned number;
    struct shop_exchange exchange;
    pthread_t thread;
    bool has_thread, ended, failed; /* ENDED: the answer is there; with the gate's lock */
    struct run_answer answer;
    enum request_state state;
    size_t at; /* the connection that is held or blocked; NOWHERE */
    unsigned blockers;
    struct run_step *waits; /* its last step, if that waited; the answer is noted when it comes */
};

struct request_runner {
    struct runner_settings settings;
    struct actor actors[ACTORS_MAX];
    int64_t quiet_us, silence_us; /* SILENCE_US: the longest that was seen */
    struct run_record record;
    uint64_t fingerprint;
};

/* ---- requests ------------------------------------------------------------------------------------------------------- */

static void *send_request(void *context)
{
    struct actor *actor = context;
    struct request_runner *runner = actor->runner;
    const struct shop_service *service = runner->settings.service;
    const struct shop_description *description = service->description;
    struct shop_values values = shop_values_of(service, actor->number % service->count);
    values.stock = runner->settings.stock;
    values.request = actor->number + 1;
    bool sent = shop_exchange_prepare(&actor->exchange, &description->request, &values,
                                      description->timeout_ms);
    CURLcode code = sent ? curl_easy_perform(actor->exchange.easy) : CURLE_OUT_OF_MEMORY;
    actor->answer.status = 0;
    if (code == CURLE_OK)
        curl_easy_getinfo(actor->exchange.easy, CURLINFO_RESPONSE_CODE, &actor->answer.status);
    snprintf(actor->answer.text, sizeof actor->answer.text, "%s",
             code == CURLE_OK ? actor->exchange.answer : curl_easy_strerror(code));
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

static void add_byte(struct request_runner *runner, unsigned char byte)
{
    runner->fingerprint = (runner->fingerprint ^ byte) * 1099511628211U; /* FNV-1a */
}

/* The text without quoted literals, numbers and parameters. */
static void add_text(struct request_runner *runner, unsigned actor, const char *text)
{
    const char *end = strstr(text, " [");
    add_byte(runner, (unsigned char)('A' + actor));
    for (; *text && text != end; text++) {
        if (*text == '\'') {
            const char *quote = strchr(text + 1, '\'');
            if (!quote)
                break;
            text = quote;
        } else if (!isdigit((unsigned char)*text)) {
            add_byte(runner, (unsigned char)*text);
        }
    }
}

/* ---- waiting until a request is held, blocked or at its end ---------------------------------------------------------------- */

static int actor_of_pid(struct request_runner *runner, int32_t pid)
{
    for (size_t i = 0; i < GATE_CONNECTIONS; i++) {
        const struct gate_connection *connection = gate_connection(runner->settings.gate, i);
        if (connection->used && connection->pid == pid)
            return connection->owner;
    }
    return GATE_NO_OWNER;
}

/* Sets the bits of the requests for which the session of process PID waits; 0: it does not wait. The gate's lock is not held while
 * PostgreSQL is asked. False, having said why on stderr. */
static bool ask_blockers(struct request_runner *runner, int32_t pid, unsigned *ret_blockers)
{
    int32_t pids[SHOP_BLOCKERS_MAX];
    size_t count;
    gate_unlock(runner->settings.gate);
    bool asked = shop_database_blockers(runner->settings.database, pid, pids, &count);
    gate_lock(runner->settings.gate);
    *ret_blockers = 0;
    for (size_t i = 0; i < count; i++) {
        int actor = actor_of_pid(runner, pids[i]);
        /* A session that is none of the requests' may hold the lock too. */
        *ret_blockers |= actor == GATE_NO_OWNER ? 1U << ACTORS_MAX : 1U << (unsigned)actor;
    }
    return asked;
}

static bool another_is_inside(const struct request_runner *runner, const struct actor *actor)
{
    for (size_t i = 0; i < runner->settings.requests; i++)
        if (&runner->actors[i] != actor && runner->actors[i].state == REQUEST_INSIDE)
            return true;
    return false;
}

/* The connection over which ACTOR's next statement has come; NOWHERE. Trivial statements pass. If another request waits in the program, a
 * statement outside a transaction may be that one's: it counts as ACTOR's only if ACTOR is QUIET and has not ended. */
static size_t find_held(struct request_runner *runner, struct actor *actor, bool quiet)
{
    bool is_unclear = !quiet && another_is_inside(runner, actor);
    struct gate *gate = runner->settings.gate;
    for (size_t i = 0; i < GATE_CONNECTIONS; i++) {
        struct gate_connection *connection = gate_connection(gate, i);
        if (!connection->used || !connection->held)
            continue;
        bool is_others = false;
        for (size_t other = 0; other < runner->settings.requests; other++)
            is_others |= runner->actors[other].at == i && &runner->actors[other] != actor;
        if (is_others || (is_unclear && connection->transaction == 'I'))
            continue;
        connection->owner = (int)actor->number;
        if (!connection->trivial)
            return i;
        gate_release(gate, i);
    }
    return NOWHERE;
}

/* The connection on which a statement of ACTOR runs. */
static size_t find_running(struct request_runner *runner, const struct actor *actor)
{
    for (size_t i = 0; i < GATE_CONNECTIONS; i++) {
        const struct gate_connection *connection = gate_connection(runner->settings.gate, i);
        if (connection->used && connection->running && connection->owner == (int)actor->number)
            return i;
    }
    return NOWHERE;
}

/* The program opens a connection, so it is not silent, however long PostgreSQL takes. */
static bool a_connection_starts(const struct request_runner *runner)
{
    for (size_t i = 0; i < GATE_CONNECTIONS; i++)
        if (gate_connection(runner->settings.gate, i)->starts)
            return true;
    return false;
}

static bool has_come_to_rest(struct request_runner *runner, struct actor *actor, bool quiet)
{
    if (actor->ended) {
        actor->state = REQUEST_ENDED;
        actor->at = NOWHERE;
        return true;
    }
    actor->at = find_held(runner, actor, quiet);
    actor->state = REQUEST_HELD;
    return actor->at != NOWHERE;
}

/* With the gate's lock: waits until the actor, which runs, has come to rest. */
static bool settle(struct request_runner *runner, struct actor *actor)
{
    struct gate *gate = runner->settings.gate;
    int64_t begin = monotonic_us(), end = begin + runner->settings.service->description->timeout_ms * 1000,
            silent_since = begin;
    actor->at = NOWHERE;
    actor->blockers = 0;
    while (!interrupted() && monotonic_us() < end + STUCK_US) {
        if (has_come_to_rest(runner, actor, false)) {
            int64_t silence = monotonic_us() - silent_since;
            runner->silence_us = silence > runner->silence_us ? silence : runner->silence_us;
            return !actor->failed;
        }
        size_t running = find_running(runner, actor);
        if (a_connection_starts(runner))
            silent_since = monotonic_us();
        gate_wait(gate, monotonic_us() + LOOK_US);
        if (has_come_to_rest(runner, actor, false))
            continue;
        if (running != NOWHERE && find_running(runner, actor) == running) {
            silent_since = monotonic_us();
            if (monotonic_us() - begin < LOOK_US)
                continue;
            if (!ask_blockers(runner, gate_connection(gate, running)->pid, &actor->blockers))
                return false;
            if (actor->blockers == 0 || find_running(runner, actor) != running)
                continue;
            gate_connection(gate, running)->keep_answers = true;
            /* It may have gone on since the question: then its answer is kept, and it counts as blocked until its turn. */
            actor->at = running;
            actor->state = REQUEST_BLOCKED;
            return true;
        }
        if (runner->quiet_us > 0 && monotonic_us() - silent_since > runner->quiet_us) {
            if (!has_come_to_rest(runner, actor, true))
                actor->state = REQUEST_INSIDE;
            return true;
        }
    }
    if (!interrupted())
        complain("request %c did not end within %" PRId64
                 " ms, and did not wait in PostgreSQL; give it more time with --timeout",
                 'A' + (char)actor->number, runner->settings.service->description->timeout_ms);
    return false;
}

/* Lets those go on that waited for what has just run. True in *RET_WENT if one did. */
static bool wake_waiters(struct request_runner *runner, bool *ret_went)
{
    struct gate *gate = runner->settings.gate;
    *ret_went = false;
    for (size_t i = 0; i < runner->settings.requests; i++) {
        struct actor *actor = &runner->actors[i];
        if (actor->state == REQUEST_BLOCKED) {
            size_t at = actor->at;
            while (!gate_connection(gate, at)->has_answers && gate_connection(gate, at)->used) {
                if (!ask_blockers(runner, gate_connection(gate, at)->pid, &actor->blockers))
                    return false;
                if (actor->blockers != 0)
                    break;
                gate_wait(gate, monotonic_us() + LOOK_US);
            }
            if (gate_connection(gate, at)->used && !gate_connection(gate, at)->has_answers)
                continue;
            gate_release_answers(gate, at);
        } else if (actor->state != REQUEST_INSIDE) {
            continue;
        }
        enum request_state before = actor->state;
        size_t at = actor->at;
        if (!settle(runner, actor))
            return false;
        if (actor->waits && actor->state != REQUEST_BLOCKED) {
            snprintf(actor->waits->answer, sizeof actor->waits->answer, "%s",
                     gate_connection(gate, at)->answer);
            actor->waits = NULL;
        }
        *ret_went |= before != actor->state;
    }
    return true;
}

static bool wake_all_waiters(struct request_runner *runner)
{
    bool went = true;
    while (went)
        if (!wake_waiters(runner, &went))
            return false;
    return true;
}

static bool any(const struct request_runner *runner, enum request_state state)
{
    for (size_t i = 0; i < runner->settings.requests; i++)
        if (runner->actors[i].state == state)
            return true;
    return false;
}

/* If all wait for each other PostgreSQL ends one of them after its deadlock_timeout; and a slow program is not stuck. */
static bool await_deadlock(struct request_runner *runner)
{
    int64_t end = monotonic_us() + STUCK_US;
    while (!any(runner, REQUEST_HELD) && any(runner, REQUEST_BLOCKED) && monotonic_us() < end &&
           !interrupted()) {
        gate_wait(runner->settings.gate, monotonic_us() + LOOK_US);
        if (!wake_all_waiters(runner))
            return false;
    }
    return true;
}

/* ---- schedules -------------------------------------------------------------------------------------------------------------- */

bool runner_start(struct request_runner *runner)
{
    struct gate *gate = runner->settings.gate;
    runner->record = (struct run_record){0};
    runner->fingerprint = 14695981039346656037U;
    gate_lock(gate);
    gate_hold(gate, false);
    gate_unlock(gate);
    if (!shop_service_reset(runner->settings.service, runner->settings.database, runner->settings.stock))
        return false;
    gate_lock(gate);
    gate_hold(gate, true);
    for (size_t i = 0; i < GATE_CONNECTIONS; i++)
        gate_connection(gate, i)->owner = GATE_NO_OWNER;
    bool well = true;
    for (size_t i = 0; i < runner->settings.requests; i++) {
        runner->actors[i].at = NOWHERE;
        runner->actors[i].waits = NULL;
        runner->actors[i].state = REQUEST_ENDED;
    }
    for (size_t i = 0; i < runner->settings.requests && well; i++) {
        struct actor *actor = &runner->actors[i];
        actor->ended = actor->failed = false;
        well = pthread_create(&actor->thread, NULL, send_request, actor) == 0;
        actor->has_thread = well;
        if (!well)
            complain("out of memory");
        well = well && settle(runner, actor);
    }
    gate_unlock(gate);
    return well;
}

size_t runner_enabled(struct request_runner *runner, struct transition *ret_transitions)
{
    size_t count = 0;
    for (size_t i = 0; i < runner->settings.requests; i++)
        if (runner->actors[i].state == REQUEST_HELD)
            ret_transitions[count++] = (struct transition){.actor = (uint8_t)i, .kind = TRANSITION_STEP};
    return count;
}

bool runner_apply(struct request_runner *runner, unsigned number)
{
    struct gate *gate = runner->settings.gate;
    struct actor *actor = &runner->actors[number];
    struct run_record *record = &runner->record;
    if (record->count == RUN_STEPS_MAX) {
        complain(
            "the requests have sent %d statements and have not ended; does the service try again for ever?",
            RUN_STEPS_MAX);
        return false;
    }
    struct run_step *step = &record->steps[record->count++];
    gate_lock(gate);
    size_t at = actor->at;
    struct gate_connection *connection = gate_connection(gate, at);
    step->actor = number;
    snprintf(step->text, sizeof step->text, "%s", connection->text);
    add_text(runner, number, step->text);
    connection->answer[0] = '\0';
    gate_release(gate, at);
    bool well = settle(runner, actor);
    connection = gate_connection(gate, at);
    snprintf(step->answer, sizeof step->answer, "%s", connection->answer);
    step->after = actor->state;
    step->blockers = actor->state == REQUEST_BLOCKED ? actor->blockers : 0;
    actor->waits = actor->state == REQUEST_BLOCKED ? step : NULL;
    /* A connection for each request is closed with its transaction. */
    bool is_over = (!connection->used || connection->transaction == 'I') && actor->state != REQUEST_BLOCKED;
    well = well && wake_all_waiters(runner) && await_deadlock(runner);
    for (size_t i = 0; i < GATE_CONNECTIONS; i++)
        record->deadlock |= gate_connection(gate, i)->deadlock;
    gate_unlock(gate);
    step->has_stock = runner->settings.reads_stock && is_over;
    return well && (!step->has_stock || shop_database_read(runner->settings.database, &step->stock));
}

bool runner_end(struct request_runner *runner)
{
    struct gate *gate = runner->settings.gate;
    struct run_record *record = &runner->record;
    gate_lock(gate);
    for (size_t i = 0; i < runner->settings.requests; i++)
        record->stuck |= runner->actors[i].state != REQUEST_ENDED;
    if (record->stuck) {
        gate_cut(gate);
        gate_hold(gate, false);
    }
    for (size_t i = 0; i < GATE_CONNECTIONS; i++)
        gate_connection(gate, i)->deadlock = false;
    gate_unlock(gate);
    for (size_t i = 0; i < runner->settings.requests; i++) {
        join(&runner->actors[i]);
        record->answers[i] = runner->actors[i].answer;
    }
    return shop_service_runs(runner->settings.service) &&
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
        runner->actors[i] = (struct actor){.runner = runner, .number = (unsigned)i, .at = NOWHERE};
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
    for (size_t i = 0; i < ACTORS_MAX; i++) {
        join(&runner->actors[i]);
        shop_exchange_close(&runner->actors[i].exchange);
    }
    free(runner);
}
