/* The step-through over HTTP: passes a schedule in the explorer's notation to an explorer, and replies with the state after it. */
#include "base/clock.h"
#include "base/hash.h"
#include "service/api/api.h"

#include "service/api/lock_servers.h"
#include "service/api/router.h"
#include "service/engine/create_order.h"
#include "service/runs/explorer.h"

#include <string.h>

enum {
    SCHEDULE_MAX = 2500, /* bytes */
    MOVE_MAX = 20,
    STEP_MS = 15000,
    SEARCH_MS = 30000,
    STEPS_OF_LEARNER = 4, /* that wait or are made: some tabs */
    SEARCHES_OF_LEARNER = 1,
};

static bool is_search(const struct exchange *x)
{
    return x->route->lane == LANE_SEARCHES;
}

bool steps_begin_call(struct exchange *x, unsigned *ret_earlier)
{
    struct service *service = x->app;
    unsigned most = is_search(x) ? SEARCHES_OF_LEARNER : STEPS_OF_LEARNER;
    int64_t sandbox = access_sandbox(x); /* the operator's calls have no such limit */
    *ret_earlier = 0;
    if (sandbox == 0 || sandbox_begin_call(service->sandboxes, sandbox, is_search(x), most, ret_earlier))
        return true;
    reply_problem(
        x, PROBLEM_OVERLOADED, NULL,
        "you have %u %s in progress or waiting, which is the limit for a learner; wait for a reply before you send the next",
        most, is_search(x) ? "search" : "steps");
    return false;
}

void steps_end_call(const struct exchange *x)
{
    if (access_sandbox(x))
        sandbox_end_call(((struct service *)x->app)->sandboxes, access_sandbox(x), is_search(x));
}

/* The strategy is the schedule's first word; false with a reply made where it cannot be stepped. */
static bool can_be_stepped(struct exchange *x, const char *schedule)
{
    char name[64], reason[250];
    if (strlen(schedule) > SCHEDULE_MAX) {
        reply_problem(x, PROBLEM_INVALID_SCHEDULE, json_pack("{s:s}", "member", "schedule"),
                      "the schedule is longer than %d bytes; start again with fewer steps", SCHEDULE_MAX);
        return false;
    }
    size_t length = strcspn(schedule, " \t");
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : 0), schedule);
    const struct strategy *strategy = strategy_find(name);
    if (!strategy) {
        reply_problem(
            x, PROBLEM_INVALID_SCHEDULE, json_pack("{s:s}", "member", "schedule"),
            "the schedule must begin with the name of a strategy, as in 'read-write s=1 q=1,1 A>read'");
        return false;
    }
    const struct lock_server *server = strategy_server(strategy);
    if (lock_server_is_up(server, reason, sizeof reason))
        return true;
    reply_problem(x, PROBLEM_BACKEND_UNAVAILABLE, json_pack("{s:s}", "backend", server->name), "%s", reason);
    return false;
}

static void reply_answer(struct exchange *x, json_t *answer)
{
    const char *problem = json_string_value(json_object_get(answer, "problem"));
    const char *detail = json_string_value(json_object_get(answer, "detail"));
    json_t *backend = json_object_get(answer, "backend");
    if (!problem) {
        http_reply_json(x, 200, answer);
        return;
    }
    if (backend)
        reply_problem(x, PROBLEM_BACKEND_UNAVAILABLE, json_pack("{s:O}", "backend", backend), "%s", detail);
    else
        reply_problem(x, PROBLEM_INVALID_SCHEDULE, NULL, "%s", detail);
    json_decref(answer);
}

/* Has no order of this state a next step? One may wait forever: in some exercises that is the end. */
static bool is_end_of_schedule(const json_t *state)
{
    const json_t *orders = json_object_get(state, "orders"), *order;
    size_t i;
    json_array_foreach(orders, i, order) {
        if (!json_is_false(json_object_get(json_object_get(order, "can"), "step")))
            return false;
    }
    return json_array_size(orders) > 0;
}

/* A learner's schedule that was run to its end, or a search, is an exercise: it shows an oversell, or that none happened.
 * QUESTION: what was searched, or NULL. */
static void note_exercise(struct exchange *x, const json_t *answer, const json_t *question)
{
    const json_t *asked = question ? question : answer;
    const char *schedule = json_string_value(json_object_get(asked, "schedule"));
    const char *faults = question ? json_string_value(json_object_get(question, "faults")) : "";
    bool is_end = question ? json_object_get(answer, "schedules") != NULL : is_end_of_schedule(answer);
    if (access_sandbox(x) != 0 && schedule && faults && is_end)
        sandbox_note_exercise(
            ((struct service *)x->app)->sandboxes, access_sandbox(x),
            hash_add(hash_add(HASH_OF_NOTHING, schedule, strlen(schedule)), faults, strlen(faults)));
}

static void ask(struct exchange *x, struct worker *worker, const json_t *question, int64_t ms)
{
    json_t *answer = NULL;
    switch (explorer_ask(&worker->explorer, &worker->service->config, question, monotonic_us() + ms * 1000,
                         &answer)) {
    case EXPLORER_ANSWERED:
        note_exercise(x, answer, is_search(x) ? question : NULL);
        reply_answer(x, answer);
        break;
    case EXPLORER_MISSING:
        reply_problem(
            x, PROBLEM_EXPLORER_UNAVAILABLE, NULL,
            "the program loadtest, which contains the explorer, is not in the folder of order-service; install both there");
        break;
    case EXPLORER_SILENT:
        reply_problem(x, PROBLEM_EXPLORER_UNAVAILABLE, NULL,
                      "the explorer ended or did not answer within %lld s; try again", (long long)ms / 1000);
        break;
    }
}

void steps_make(struct exchange *x, struct worker *worker)
{
    const char *schedule = NULL, *move = NULL;
    bool every_step = false;
    const struct member members[] = {
        {"schedule", BODY_STRING, true, &schedule, 0, HTTP_BODY_MAX},
        {"move", BODY_STRING, false, &move, 0, HTTP_BODY_MAX},
        {"every_step", BODY_BOOLEAN, false, &every_step, 0, 0},
        {0},
    };
    AUTO_JSON body = api_body(x, members);
    if (!body || !can_be_stepped(x, schedule))
        return;
    if (move && strlen(move) > MOVE_MAX) {
        reply_problem(x, PROBLEM_INVALID_SCHEDULE, json_pack("{s:s}", "member", "move"),
                      "there is no such move; send one of those that the state offers");
        return;
    }
    AUTO_JSON question = json_pack("{s:s, s:s?, s:b}", "schedule", schedule, "move", move, "every_step",
                                   every_step);
    ask(x, worker, question, STEP_MS);
}

static bool is_fault(const char *faults)
{
    return strcmp(faults, "none") == 0 || strcmp(faults, "expire") == 0 || strcmp(faults, "crash") == 0;
}

void steps_search(struct exchange *x, struct worker *worker)
{
    const char *schedule = NULL, *faults = "none";
    const struct member members[] = {
        {"schedule", BODY_STRING, true, &schedule, 0, HTTP_BODY_MAX},
        {"faults", BODY_STRING, false, &faults, 0, HTTP_BODY_MAX},
        {0},
    };
    AUTO_JSON body = api_body(x, members);
    if (!body || !can_be_stepped(x, schedule))
        return;
    if (!is_fault(faults)) {
        reply_problem(x, PROBLEM_INVALID_SCHEDULE, json_pack("{s:s}", "member", "faults"),
                      "faults must be none, expire or crash");
        return;
    }
    AUTO_JSON question = json_pack("{s:s, s:s}", "schedule", schedule, "faults", faults);
    ask(x, worker, question, SEARCH_MS);
}
