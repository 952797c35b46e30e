/* Runs a few requests to a user's service, each held at its next statement until the caller lets it run. */
#include "loadtest/own/schedules/request_runner.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/own/redis/held_keys.h"
#include "loadtest/own/redis/idle_repeats.h"

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
    TRIES_MOST = 5, /* of commands that change nothing, when nothing else can happen */
    NOWHERE = GATE_CONNECTIONS,
};

struct actor {
    struct request_runner *runner;
    unsigned number;
    struct shop_exchange exchange;
    pthread_t thread;
    bool has_thread, ended, failed; /* ENDED: the answer is there; with the gate's lock */
    bool crashed, cuts;             /* CUTS: the answer to its statement will be lost */
    unsigned steps;
    size_t queued; /* bytes behind the statement at which it is held */
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
    bool has_faulted;
    unsigned tries;
    int64_t changes; /* what redis_control_changes said last */
    struct held_keys held;
    struct idle_repeats repeats;
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

/* Sets the bits of what the statement that runs on connection AT waits for; 0: it does not wait. The gate's lock is not held while the
 * servers are asked. False, having said why on stderr. */
static bool ask_blockers(struct request_runner *runner, size_t at, unsigned *ret_blockers)
{
    const struct gate_connection connection = *gate_connection(runner->settings.gate, at);
    int32_t pids[SHOP_BLOCKERS_MAX];
    size_t count = 0;
    bool asked = true, waits = false;
    gate_unlock(runner->settings.gate);
    if (connection.server == RUNS_POSTGRES)
        asked = shop_database_blockers(runner->settings.database, connection.pid, pids, &count);
    else if (connection.may_wait)
        asked = redis_control_waits(runner->settings.redis, connection.port, &waits);
    gate_lock(runner->settings.gate);
    *ret_blockers = waits ? RUN_WAITS_FOR_COMMAND : 0;
    for (size_t i = 0; i < count; i++) {
        int actor = actor_of_pid(runner, pids[i]);
        *ret_blockers |= actor == GATE_NO_OWNER ? RUN_WAITS_FOR_OTHERS : 1U << (unsigned)actor;
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
        if (actor->crashed)
            gate_refuse(gate, i);
        else if (connection->trivial)
            gate_release(gate, i);
        else
            return i;
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

/* Requests can share a connection to Redis, where commands keep their sequence. Then that of one is queued behind the one at which another is
 * held. False, having said so on stderr, or that the gate cannot hold what comes. */
static bool can_be_held(struct request_runner *runner, const struct actor *actor)
{
    const char *problem = gate_problem(runner->settings.gate);
    if (problem)
        complain("%s", problem);
    for (size_t i = 0; i < runner->settings.requests && !problem; i++) {
        const struct actor *other = &runner->actors[i];
        if (other == actor || other->state != REQUEST_HELD || other->at == NOWHERE)
            continue;
        const struct gate_connection *connection = gate_connection(runner->settings.gate, other->at);
        if (connection->server != RUNS_REDIS || connection->queued <= other->queued)
            continue;
        complain(
            "requests %c and %c share a connection to Redis, on which no command overtakes another, so the gate cannot hold one of "
            "them alone. Start an instance for each request with --instances, or give each request a connection",
            'A' + (char)other->number, 'A' + (char)actor->number);
        return false;
    }
    return !problem;
}

static void note_queues(struct request_runner *runner)
{
    for (size_t i = 0; i < runner->settings.requests; i++)
        if (runner->actors[i].at != NOWHERE)
            runner->actors[i].queued = gate_connection(runner->settings.gate, runner->actors[i].at)->queued;
}

/* With the gate's lock: waits until the actor, which runs, has come to rest. */
static bool settle(struct request_runner *runner, struct actor *actor)
{
    struct gate *gate = runner->settings.gate;
    int64_t begin = monotonic_us(), end = begin + runner->settings.service->description->timeout_ms * 1000,
            silent_since = begin;
    actor->at = NOWHERE;
    actor->blockers = 0;
    note_queues(runner);
    while (!interrupted() && monotonic_us() < end + STUCK_US) {
        if (!can_be_held(runner, actor))
            return false;
        if (has_come_to_rest(runner, actor, false)) {
            int64_t silence = monotonic_us() - silent_since;
            runner->silence_us = silence > runner->silence_us ? silence : runner->silence_us;
            return !actor->failed;
        }
        size_t running = find_running(runner, actor);
        if (actor->cuts && running != NOWHERE && gate_connection(gate, running)->has_answers) {
            gate_close_connection(gate, running);
            actor->cuts = false;
            continue;
        }
        if (a_connection_starts(runner))
            silent_since = monotonic_us();
        gate_wait(gate, monotonic_us() + LOOK_US);
        if (has_come_to_rest(runner, actor, false))
            continue;
        if (running != NOWHERE && find_running(runner, actor) == running) {
            silent_since = monotonic_us();
            if (monotonic_us() - begin < LOOK_US)
                continue;
            if (!ask_blockers(runner, running, &actor->blockers))
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
                if (!ask_blockers(runner, at, &actor->blockers))
                    return false;
                if (actor->blockers != 0)
                    break;
                gate_wait(gate, monotonic_us() + LOOK_US);
            }
            if (gate_connection(gate, at)->used && !gate_connection(gate, at)->has_answers)
                continue;
            if (gate_connection(gate, at)->server == RUNS_REDIS)
                idle_repeats_changed(&runner->repeats);
            if (!actor->cuts)
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

/* ---- Redis ------------------------------------------------------------------------------------------------------------------ */

static bool empty_redis(struct request_runner *runner)
{
    struct redis_control *redis = runner->settings.redis;
    runner->held.count = 0;
    runner->repeats = (struct idle_repeats){0};
    runner->tries = 0;
    return !redis || ((!runner->settings.redis_is_ours || redis_control_flush(redis)) &&
                      redis_control_changes(redis, &runner->changes));
}

/* ACTOR's command, of which CONNECTION is a copy, has ended. */
static bool note_command(struct request_runner *runner, const struct actor *actor,
                         const struct gate_connection *command)
{
    struct redis_control *redis = runner->settings.redis;
    int64_t before = runner->changes;
    if (!held_keys_update(&runner->held, redis, actor->number, command->keys, command->may_lock,
                          runner->settings.expire_key) ||
        !redis_control_changes(redis, &runner->changes))
        return false;
    idle_repeats_ended(&runner->repeats, actor->number, idle_repeats_command(command->text, command->keys),
                       command->may_lock, before != runner->changes);
    return true;
}

/* It is about to repeat a command in vain. With the gate's lock. */
static bool repeats_idly(const struct request_runner *runner, const struct actor *actor)
{
    if (actor->state != REQUEST_HELD || actor->at == NOWHERE)
        return false;
    const struct gate_connection *connection = gate_connection(runner->settings.gate, actor->at);
    return connection->server == RUNS_REDIS &&
           idle_repeats_is(&runner->repeats, actor->number,
                           idle_repeats_command(connection->text, connection->keys));
}

/* The keys that ACTOR holds in Redis end. With the gate's lock, which is not held while Redis is asked. */
static bool end_keys(struct request_runner *runner, const struct actor *actor, char *ret_text)
{
    gate_unlock(runner->settings.gate);
    snprintf(ret_text, MESSAGE_TEXT, "(fault: the key expires) ");
    bool well = held_keys_end(&runner->held, runner->settings.redis, actor->number, ret_text) &&
                redis_control_changes(runner->settings.redis, &runner->changes);
    idle_repeats_changed(&runner->repeats);
    gate_lock(runner->settings.gate);
    return well;
}

static struct run_step *add_step(struct request_runner *runner, unsigned actor, enum transition_kind kind)
{
    struct run_record *record = &runner->record;
    if (record->count == RUN_STEPS_MAX) {
        complain(
            "the requests have sent %d statements and have not ended; does the service try again for ever?",
            RUN_STEPS_MAX);
        return NULL;
    }
    struct run_step *step = &record->steps[record->count++];
    step->actor = actor;
    step->kind = kind;
    step->after = runner->actors[actor].state;
    return step;
}

/* If all that is left repeats commands in vain, time passes: what expires in Redis does so. If nothing does, the requests try again, but
 * not for ever. */
static bool pass_time(struct request_runner *runner)
{
    bool repeats = false, expired = false;
    for (size_t i = 0; i < runner->settings.requests; i++) {
        if (runner->actors[i].state == REQUEST_HELD && !repeats_idly(runner, &runner->actors[i]))
            return true;
        repeats |= runner->actors[i].state == REQUEST_HELD;
    }
    for (size_t i = 0; i < runner->settings.requests && repeats; i++) {
        struct run_step *step = NULL;
        if (!held_keys_has(&runner->held, (unsigned)i, NULL))
            continue;
        step = add_step(runner, (unsigned)i, TRANSITION_EXPIRE);
        if (!step || !end_keys(runner, &runner->actors[i], step->text))
            return false;
        expired = true;
    }
    if (repeats && !expired && runner->tries++ < TRIES_MOST)
        idle_repeats_changed(&runner->repeats);
    return true;
}

/* ---- faults ------------------------------------------------------------------------------------------------------------------- */

/* Its answer says that what it did lasts. */
static bool commits(const struct gate_connection *connection)
{
    static const char *const WRITES[] = {"INSERT", "UPDATE", "DELETE", "WITH", "MERGE", "END"};
    if (connection->server != RUNS_POSTGRES)
        return false;
    if (strcasestr(connection->text, "COMMIT"))
        return true;
    for (size_t i = 0; i < sizeof WRITES / sizeof *WRITES; i++)
        if (strncasecmp(connection->text, WRITES[i], strlen(WRITES[i])) == 0)
            return connection->transaction == 'I' || strcmp(WRITES[i], "END") == 0;
    return false;
}

/* With the gate's lock. */
static bool can_fault(const struct request_runner *runner, const struct actor *actor)
{
    bool another_runs = false;
    if (runner->has_faulted || actor->state == REQUEST_ENDED)
        return false;
    for (size_t i = 0; i < runner->settings.requests; i++)
        another_runs |= i != actor->number && runner->actors[i].state != REQUEST_ENDED;
    switch (runner->settings.fault) {
    case TRANSITION_EXPIRE: return another_runs && held_keys_has(&runner->held, actor->number, NULL);
    case TRANSITION_CRASH: return actor->state == REQUEST_HELD && actor->steps > 0;
    case TRANSITION_CUT:
        return actor->state == REQUEST_HELD && commits(gate_connection(runner->settings.gate, actor->at));
    default: return false;
    }
}

/* PostgreSQL ends a session whose connection was closed as soon as it sees that. */
static bool await_end_of_session(struct request_runner *runner, int32_t pid)
{
    int64_t end = monotonic_us() + ASK_US;
    bool has = true;
    while (has && monotonic_us() < end && !interrupted()) {
        gate_unlock(runner->settings.gate);
        bool asked = shop_database_has_session(runner->settings.database, pid, &has);
        gate_lock(runner->settings.gate);
        if (!asked)
            return false;
        if (has)
            gate_wait(runner->settings.gate, monotonic_us() + LOOK_US);
    }
    if (has && !interrupted())
        complain("PostgreSQL did not end the session of a closed connection within %d s", ASK_US / 1000000);
    return !has;
}

/* A connection that is in no transaction is in a pool, for others. With the gate's lock. */
static bool crash(struct request_runner *runner, struct actor *actor)
{
    struct gate *gate = runner->settings.gate;
    bool well = true;
    actor->crashed = true;
    actor->at = NOWHERE;
    for (size_t i = 0; i < GATE_CONNECTIONS && well; i++) {
        const struct gate_connection *connection = gate_connection(gate, i);
        if (!connection->used || connection->owner != (int)actor->number)
            continue;
        int32_t pid = connection->pid;
        if (connection->server == RUNS_POSTGRES && (connection->held || connection->transaction != 'I')) {
            gate_close_connection(gate, i);
            well = await_end_of_session(runner, pid);
        } else if (connection->held) {
            gate_refuse(gate, i);
        }
    }
    return well && settle(runner, actor);
}

/* ---- schedules -------------------------------------------------------------------------------------------------------------- */

bool runner_start(struct request_runner *runner)
{
    struct gate *gate = runner->settings.gate;
    runner->record = (struct run_record){0};
    runner->fingerprint = 14695981039346656037U;
    runner->has_faulted = false;
    gate_lock(gate);
    gate_hold(gate, false);
    gate_unlock(gate);
    if (!empty_redis(runner) ||
        !shop_service_reset(runner->settings.service, runner->settings.database, runner->settings.stock))
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
        runner->actors[i].crashed = runner->actors[i].cuts = false;
        runner->actors[i].steps = 0;
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
    gate_lock(runner->settings.gate);
    for (size_t i = 0; i < runner->settings.requests; i++)
        if (runner->actors[i].state == REQUEST_HELD && !repeats_idly(runner, &runner->actors[i]))
            ret_transitions[count++] = (struct transition){.actor = (uint8_t)i, .kind = TRANSITION_STEP};
    for (size_t i = 0; i < runner->settings.requests; i++)
        if (can_fault(runner, &runner->actors[i]))
            ret_transitions[count++] = (struct transition){.actor = (uint8_t)i,
                                                           .kind = (uint8_t)runner->settings.fault};
    gate_unlock(runner->settings.gate);
    return count;
}

/* Lets the statement run at which ACTOR is held. With the gate's lock. */
static bool run_statement(struct request_runner *runner, struct actor *actor, struct run_step *step)
{
    struct gate *gate = runner->settings.gate;
    size_t at = actor->at;
    struct gate_connection *connection = gate_connection(gate, at);
    const struct gate_connection command = *connection;
    snprintf(step->text, sizeof step->text, "%s", command.text);
    step->server = command.server;
    add_text(runner, actor->number, *command.shape ? command.shape : command.text);
    connection->answer[0] = '\0';
    connection->keep_answers |= actor->cuts;
    gate_release(gate, at);
    bool well = settle(runner, actor);
    connection = gate_connection(gate, at);
    snprintf(step->answer, sizeof step->answer, "%s",
             step->kind == TRANSITION_CUT ? "(fault: the connection is lost before the answer)"
                                          : connection->answer);
    /* A connection for each request is closed with its transaction. */
    step->has_stock = runner->settings.reads_stock && command.server == RUNS_POSTGRES &&
                      (!connection->used || connection->transaction == 'I') &&
                      actor->state != REQUEST_BLOCKED;
    actor->steps++;
    if (!well || command.server != RUNS_REDIS || actor->state == REQUEST_BLOCKED)
        return well;
    gate_unlock(gate);
    well = note_command(runner, actor, &command);
    gate_lock(gate);
    return well;
}

bool runner_apply(struct request_runner *runner, struct transition transition)
{
    struct gate *gate = runner->settings.gate;
    struct actor *actor = &runner->actors[transition.actor];
    struct run_step *step = add_step(runner, transition.actor, (enum transition_kind)transition.kind);
    bool well = step != NULL;
    if (!well)
        return false;
    gate_lock(gate);
    runner->has_faulted |= transition.kind != TRANSITION_STEP;
    runner->record.could_fault |= runner->has_faulted;
    actor->cuts = transition.kind == TRANSITION_CUT;
    if (transition.kind == TRANSITION_EXPIRE) {
        add_text(runner, transition.actor, "!expire");
        well = end_keys(runner, actor, step->text);
    } else if (transition.kind == TRANSITION_CRASH) {
        add_text(runner, transition.actor, "!crash");
        snprintf(step->text, sizeof step->text,
                 "(fault: the request crashes; nothing more of it reaches a server)");
        well = crash(runner, actor);
    } else {
        well = run_statement(runner, actor, step);
    }
    step->after = actor->state;
    step->blockers = actor->state == REQUEST_BLOCKED ? actor->blockers : 0;
    actor->waits = actor->state == REQUEST_BLOCKED ? step : NULL;
    well = well && wake_all_waiters(runner) && await_deadlock(runner) && pass_time(runner);
    for (size_t i = 0; i < GATE_CONNECTIONS; i++)
        runner->record.deadlock |= gate_connection(gate, i)->deadlock;
    gate_unlock(gate);
    return well && (!step->has_stock || shop_database_read(runner->settings.database, &step->stock));
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
    int64_t end = monotonic_us() + runner->settings.service->description->timeout_ms * 1000;
    bool well = true;
    while (well && any(runner, REQUEST_HELD)) {
        for (size_t i = 0; i < runner->settings.requests && well; i++)
            if (runner->actors[i].state == REQUEST_HELD)
                well = crash(runner, &runner->actors[i]);
        well = well && wake_all_waiters(runner);
    }
    for (size_t i = 0; i < runner->settings.requests; i++)
        while (well && runner->actors[i].crashed && runner->actors[i].state != REQUEST_ENDED &&
               !interrupted() && monotonic_us() < end)
            well = settle(runner, &runner->actors[i]);
    return well;
}

bool runner_end(struct request_runner *runner)
{
    struct gate *gate = runner->settings.gate;
    struct run_record *record = &runner->record;
    gate_lock(gate);
    record->stuck = is_stuck(runner);
    bool well = end_requests(runner), all_ended = true;
    for (size_t i = 0; i < runner->settings.requests; i++)
        all_ended &= runner->actors[i].state == REQUEST_ENDED;
    record->stuck |= !all_ended;
    if (!all_ended) {
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
    return well && shop_service_runs(runner->settings.service) &&
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
