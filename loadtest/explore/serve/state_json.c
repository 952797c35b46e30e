/* Writes the state in the middle of a schedule as JSON: orders with their enabled transitions, lock, database, events. */
#include "loadtest/explore/serve/state_json.h"
#include "base/clock.h"

#include "loadtest/explore/exec/lock_admin.h"
#include "loadtest/explore/explain/lock_waits.h"
#include "loadtest/explore/explain/narration.h"
#include "loadtest/explore/explain/sent_requests.h"
#include "loadtest/explore/spec/scenario.h"
#include "lock/lock_driver.h"

#include <stdio.h>
#include <string.h>

/* ---- one order ------------------------------------------------------------------------------------------------ */

/* The enabled transitions. */
struct transitions {
    struct transition list[ENABLED_MAX];
    size_t count;
};

static bool can(const struct transitions *transitions, size_t actor, enum transition_kind kind)
{
    for (size_t i = 0; i < transitions->count; i++)
        if (transitions->list[i].actor == actor && transitions->list[i].kind == kind)
            return true;
    return false;
}

/* Does this event happen to an order, and not by the order itself? */
static bool is_done_to_it(uint8_t what)
{
    return what == EVENT_EXPIRED || what == EVENT_RESTARTED || what == EVENT_CUT || what == EVENT_LOCK_STOLEN;
}

/* The last event of ACTOR's own, or NULL where it has not begun. */
static const struct event *last_event(const struct execution *execution, size_t actor)
{
    for (size_t i = execution->trace.event_count; i > 0; i--) {
        const struct event *event = &execution->trace.events[i - 1];
        if (event->actor == actor && !is_done_to_it(event->what))
            return event;
    }
    return NULL;
}

static bool has_ended(const struct execution *execution, size_t actor)
{
    return execution_has_reported(execution, actor, EVENT_ENDED);
}

static bool is_dead(const struct execution *execution, size_t actor)
{
    return execution_has_reported(execution, actor, EVENT_CRASHED);
}

static const char *state_name(const struct execution *execution, const struct transitions *transitions,
                              size_t actor)
{
    return is_dead(execution, actor)                  ? "crashed"
           : has_ended(execution, actor)              ? "ended"
           : can(transitions, actor, TRANSITION_STEP) ? "ready"
                                                      : "waiting";
}

/* ---- the lock ------------------------------------------------------------------------------------------------- */

/* Does ACTOR believe that it holds the lock, or did it crash and leave the lock on its server? A crash ends locks in memory and on
 * connections. An order that has deleted the lock's key knows that it holds it no longer. */
static bool has_lock(const struct execution *execution, size_t actor)
{
    const struct lock_hold *hold = &execution->actors[actor].hold;
    if (execution_has_reported(execution, actor, STEP_DEL))
        return false;
    bool has = hold->depth > 0 || (hold->has_grant && !hold->is_place && !hold->is_over);
    return has && (!is_dead(execution, actor) || (execution->lock_admin && !hold->is_over));
}

/* Does the server say so too? */
static bool server_agrees(const struct execution *execution, size_t actor)
{
    const struct lock_hold *hold = &execution->actors[actor].hold;
    return !hold->is_over && lock_admin_is_held(execution->lock_admin, hold);
}

/* How long the grant of ACTOR will last, in ms; null if it has no end. The server counts from a moment later. */
static json_t *ttl_json(const struct execution *execution, size_t actor)
{
    int64_t end_us = execution->actors[actor].hold.grant.lease_end_us, left_us = end_us - monotonic_us();
    size_t set = trace_last(&execution->trace, 0, actor, STEP_SETNX);
    /* Its second command has not given the key an end yet. */
    bool is_half_taken = set != NO_EVENT &&
                         trace_last(&execution->trace, set, actor, STEP_EXPIRE) == NO_EVENT;
    bool is_endless = end_us == INT64_MAX || is_half_taken;
    return is_endless ? json_null() : json_integer(left_us > 0 ? left_us / 1000 : 0);
}

/* Adds to LOCK what its server has: ACTOR's grant, or nothing if ACTOR is ACTORS_MAX. */
static void add_grant(const struct execution *execution, size_t actor, json_t *lock)
{
    bool is_held = actor < ACTORS_MAX, on_server = execution->settings.strategy->lock->server;
    char name = actor_name((unsigned)actor);
    const struct lock_grant *grant = is_held ? &execution->actors[actor].hold.grant : NULL;
    json_object_set_new(lock, "owner", is_held ? json_stringn(&name, 1) : json_null());
    json_object_set_new(lock, "key", is_held && *grant->key ? json_string(grant->key) : json_null());
    json_object_set_new(lock, "value",
                        is_held && on_server && *grant->token ? json_string(grant->token) : json_null());
    json_object_set_new(lock, "ttl_ms", is_held && on_server ? ttl_json(execution, actor) : json_null());
}

static json_t *lock_json(const struct execution *execution)
{
    const struct lock_driver *lock = execution->settings.strategy->lock;
    json_t *holders = json_array();
    size_t owner = ACTORS_MAX;
    for (size_t i = 0; lock && i < execution->settings.actors; i++) {
        char name[] = {actor_name((unsigned)i), '\0'};
        int64_t fence = execution->actors[i].hold.grant.fence;
        if (!has_lock(execution, i))
            continue;
        bool is_held = server_agrees(execution, i);
        if (is_held && owner == ACTORS_MAX)
            owner = i;
        json_array_append_new(holders, json_pack("{s:s, s:o, s:b, s:b}", "order", name, "fence",
                                                 fence ? json_integer((json_int_t)fence) : json_null(),
                                                 "held", is_held, "crashed", is_dead(execution, i)));
    }
    if (!lock) {
        json_decref(holders);
        return json_null();
    }
    json_t *object = json_pack("{s:s, s:s?, s:o}", "name", lock->name, "server",
                               lock->server ? lock->server->name : NULL, "holders", holders);
    add_grant(execution, owner, object);
    return object;
}

/* ---- why an order waits --------------------------------------------------------------------------------------- */

static json_t *names_of(const struct execution *execution, unsigned bits)
{
    json_t *names = json_array();
    for (size_t i = 0; i < execution->settings.actors; i++)
        if (bits & 1u << i)
            json_array_append_new(names, json_stringn((char[]){actor_name((unsigned)i)}, 1));
    return names;
}

/* "A", "A and B" */
static const char *list_names(const struct execution *execution, unsigned bits, char ret_text[static 32])
{
    size_t used = 0;
    ret_text[0] = '\0';
    for (size_t i = 0; i < execution->settings.actors; i++)
        if (bits & 1u << i)
            used += (size_t)snprintf(ret_text + used, 32 - used, "%s%c", used ? " and " : "",
                                     actor_name((unsigned)i));
    return ret_text;
}

/* Bits of the actors that ACTOR waits for in the strategy's lock; RET_REASON (SIZE bytes) says for what. */
static unsigned waits_for_lock(const struct execution *execution, size_t actor, char *ret_reason, size_t size)
{
    unsigned holders,
        others = lock_waits_for(execution, (unsigned)actor, execution->trace.event_count, &holders);
    bool all_dead = true;
    char names[32];
    for (size_t i = 0; i < execution->settings.actors; i++) {
        unsigned bit = 1u << i;
        if (others & holders & bit && !server_agrees(execution, i))
            others &= ~bit;
        all_dead &= !(others & bit) || is_dead(execution, i);
    }
    const char *verb = others & (others - 1) ? "have" : "has";
    list_names(execution, others, names);
    if (!others)
        snprintf(ret_reason, size, "waits for a lock that none of these orders has");
    else if (others & holders)
        snprintf(ret_reason, size,
                 all_dead ? "waits for the lock that %s died with" : "waits for the lock, which %s %s", names,
                 verb);
    else
        snprintf(ret_reason, size, "waits in the lock's queue behind %s%s", names,
                 all_dead ? ", which died" : "");
    return others;
}

/* Bits of the actors that ACTOR waits for; RET_REASON (SIZE bytes) says for what. */
static unsigned waits_for(const struct execution *execution, const struct database_view *view, size_t actor,
                          char *ret_reason, size_t size)
{
    const struct event *event = last_event(execution, actor);
    char names[32];
    if (event && event->what == EVENT_WAITS && event->value == WAITS_FOR_EVER) {
        snprintf(ret_reason, size, "sleeps, and nobody will wake it");
        return 0;
    }
    unsigned in_database = event && event->what == EVENT_WAITS ? (unsigned)event->value : 0;
    if (in_database) {
        snprintf(ret_reason, size, "waits for %s's %s", list_names(execution, in_database, names),
                 view->awaited_lock[actor] ? view->awaited_lock[actor] : "transaction");
        return in_database;
    }
    return waits_for_lock(execution, actor, ret_reason, size);
}

/* ---- an order as JSON ----------------------------------------------------------------------------------------- */

/* The steps of its current try, with their values. */
static json_t *did_json(const struct execution *execution, size_t actor, int *ret_tries)
{
    json_t *did = json_array();
    *ret_tries = 1;
    for (size_t i = 0; i < execution->trace.event_count; i++) {
        const struct event *event = &execution->trace.events[i];
        if (event->actor != actor)
            continue;
        if (event->what == EVENT_RETRY) {
            json_array_clear(did);
            ++*ret_tries;
        } else if (event->what < STEP_COUNT) {
            json_t *value = event->value == STEP_NO_VALUE ? json_null()
                                                          : json_integer((json_int_t)event->value);
            json_array_append_new(did,
                                  json_pack("{s:s, s:o}", "step", stop_name(event->what), "value", value));
        }
    }
    return did;
}

static json_t *order_json(const struct execution *execution, const struct database_view *view,
                          const struct transitions *transitions, size_t actor)
{
    const struct event *last = last_event(execution, actor);
    const char *state = state_name(execution, transitions, actor);
    uint8_t next = execution_next_step(execution, (unsigned)actor, execution->trace.event_count);
    bool is_over = has_ended(execution, actor) || is_dead(execution, actor),
         waits = strcmp(state, "waiting") == 0;
    char name[] = {actor_name((unsigned)actor), '\0'}, reason[120];
    unsigned others = waits ? waits_for(execution, view, actor, reason, sizeof reason) : 0;
    const char *outcome = has_ended(execution, actor) ? outcome_name((enum outcome)last->value) : NULL;
    int tries;
    json_t *did = did_json(execution, actor, &tries);
    return json_pack(
        "{s:s, s:I, s:s, s:b, s:i, s:o, s:s?, s:s?, s:s?, s:o, s:{s:b, s:b, s:b, s:b, s:b}}", "name", name,
        "wants", (json_int_t)execution->settings.quantities[actor], "state", state, "begun", last != NULL,
        "tries", tries, "did", did, "next", is_over || next == STEP_COUNT ? NULL : stop_name(next), "reason",
        waits ? reason : NULL, "outcome", outcome, "waits_for", names_of(execution, others), "can", "step",
        can(transitions, actor, TRANSITION_STEP), "expire", can(transitions, actor, TRANSITION_EXPIRE),
        "crash", can(transitions, actor, TRANSITION_CRASH), "restart",
        can(transitions, actor, TRANSITION_RESTART), "cut", can(transitions, actor, TRANSITION_CUT));
}

/* ---- the database --------------------------------------------------------------------------------------------- */

static bool ends_transaction(uint8_t what)
{
    return what == STEP_COMMIT || what == STEP_COMMIT_STOCK || what == EVENT_RETRY || what == EVENT_ENDED ||
           what == EVENT_CRASHED;
}

/* The last uncommitted write of ACTOR, or NULL. */
static const struct event *unseen_write(const struct execution *execution, size_t actor)
{
    const struct event *written = NULL;
    for (size_t i = 0; i < execution->trace.event_count; i++) {
        const struct event *event = &execution->trace.events[i];
        if (event->actor != actor)
            continue;
        if (event->what == STEP_WRITE || event->what == STEP_TAKE)
            written = event;
        else if (ends_transaction(event->what))
            written = NULL;
    }
    return written;
}

/* Writes that are not committed. */
static json_t *unseen_json(const struct execution *execution)
{
    json_t *unseen = json_array();
    for (size_t i = 0; i < execution->settings.actors; i++) {
        const struct event *written = unseen_write(execution, i);
        char name[] = {actor_name((unsigned)i), '\0'};
        if (written && written->value != STEP_NO_VALUE)
            json_array_append_new(
                unseen, json_pack("{s:s, s:I}", "order", name, "stock", (json_int_t)written->value));
    }
    return unseen;
}

/* The token on the row; null if the strategy has no fence. */
static json_t *fence_json(const struct execution *execution, const struct database_view *view)
{
    return execution->settings.strategy->fencing == FENCE_NONE ? json_null() : json_integer(view->row_fence);
}

static json_t *database_json(const struct execution *execution, const struct database_view *view)
{
    return json_pack("{s:I, s:I, s:I, s:o, s:o, s:o}", "left", (json_int_t)view->audit.left, "sold",
                     (json_int_t)view->audit.sold, "orders", (json_int_t)view->audit.orders, "row_locked_by",
                     names_of(execution, view->row_holders), "uncommitted", unseen_json(execution), "fence",
                     fence_json(execution, view));
}

/* The product's row: what is committed, and the versions of it that only their writers see. */
static json_t *row_json(const struct execution *execution, const struct database_view *view)
{
    return json_pack("{s:I, s:I, s:I, s:o, s:o}", "id", (json_int_t)execution->schema->product_id, "stock",
                     (json_int_t)view->audit.left, "version", (json_int_t)view->row_version, "token",
                     fence_json(execution, view), "uncommitted", unseen_json(execution));
}

/* ---- the whole ------------------------------------------------------------------------------------------------ */

/* The events so far, each with the number of its transition. */
static json_t *told_json(const struct execution *execution, const struct replay *replay)
{
    json_t *steps = events_json(execution, replay), *step;
    size_t i, transition = 0;
    json_array_foreach(steps, i, step) {
        while (i >= execution->transition_ends[transition])
            transition++;
        json_object_set_new(step, "move", json_integer((json_int_t)transition + 1));
        const struct event *event = &execution->trace.events[i];
        bool has_value = event->what < STEP_COUNT && event->value != STEP_NO_VALUE;
        json_object_set_new(step, "value", has_value ? json_integer(event->value) : json_null());
        sent_set(execution, i, step);
        if (event->what == EVENT_WAITS)
            json_object_set_new(step, "waits_for", names_of(execution, event_waits_for(execution, i)));
        if (event->what == EVENT_LOCK_STOLEN)
            json_object_set_new(step, "by", json_stringn((char[]){actor_name((unsigned)event->value)}, 1));
    }
    return steps;
}

/* The schedules that lead to the states after 0, 1, 2 … transitions. */
static json_t *history_json(struct execution *execution)
{
    static char words[SCENARIO_TEXT];
    static struct script script;
    json_t *history = json_array();
    size_t count = execution->transition_count;
    for (execution->transition_count = 0; execution->transition_count <= count;
         execution->transition_count++) {
        script_of_execution(execution, &script);
        size_t length = strlen(scenario_short(&execution->settings, &script, words));
        json_array_append_new(history,
                              json_stringn(words, length - (script.count == 0))); /* less its last space */
    }
    execution->transition_count = count;
    return history;
}

/* Only a lock on several servers offers a restart of one. */
static void leave_out_restarts(const struct execution *execution, struct transitions *transitions)
{
    const struct lock_driver *lock = execution->settings.strategy->lock;
    size_t kept = 0;
    bool may_restart = lock && lock->properties.survives_minority && lock->server == redlock.server &&
                       execution->restarts < (unsigned)lock_count_servers(lock_config.redlock_urls);
    for (size_t i = 0; i < transitions->count; i++)
        if (may_restart || transitions->list[i].kind != TRANSITION_RESTART)
            transitions->list[kept++] = transitions->list[i];
    transitions->count = kept;
}

/* No order can continue, and none could if the leases of crashed orders ended. */
static bool is_over(const struct execution *execution, const struct transitions *transitions)
{
    bool somebody_waits = false, time_may_help = false;
    for (size_t i = 0; i < execution->settings.actors; i++) {
        if (can(transitions, i, TRANSITION_STEP))
            return false;
        somebody_waits |= !has_ended(execution, i) && !is_dead(execution, i);
        time_may_help |= can(transitions, i, TRANSITION_EXPIRE);
    }
    return !(somebody_waits && time_may_help);
}

json_t *state_json(struct execution *execution, const struct replay *replay, const struct database_view *view,
                   bool *ret_over)
{
    struct transitions transitions;
    json_t *steps = json_array(), *orders = json_array();
    transitions.count = execution_enabled(execution, transitions.list);
    leave_out_restarts(execution, &transitions);
    *ret_over = is_over(execution, &transitions);
    for (size_t i = 0; i < execution->profile_length; i++)
        json_array_append_new(steps, json_string(stop_name(execution->profile[i])));
    for (size_t i = 0; i < execution->settings.actors; i++)
        json_array_append_new(orders, order_json(execution, view, &transitions, i));
    json_t *history = history_json(execution);
    return json_pack("{s:O, s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "schedule",
                     json_array_get(history, execution->transition_count), "strategy",
                     execution->settings.strategy->name, "stock", (json_int_t)execution->settings.stock,
                     "steps", steps, "orders", orders, "lock", lock_json(execution), "database",
                     database_json(execution, view), "row", row_json(execution, view), "told",
                     told_json(execution, replay), "history", history, "over", *ret_over);
}
