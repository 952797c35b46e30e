/* Sandboxes over HTTP: a learner gets a product; the teacher lists, limits and ends sandboxes, and replaces the class code. */
#include "base/clock.h"
#include "service/api/api.h"

#include "base/log.h"
#include "db/products/audit.h"
#include "db/products/products.h"
#include "service/classroom/addresses.h"
#include "service/classroom/board.h"
#include "service/classroom/sandbox.h"
#include "service/write_behind/reconcile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IDS_TRIED = 20, ID_STEP = 256, ID_STEP_LEAST = 40, ID_STEP_MOST = 390 };

static const struct stock new_stock = {STOCK_COUNTER, SANDBOX_STOCK};

/* Makes a product with an unused id; *ret_id is 0 if none was found. Ids of different places
 * differ modulo SALES_MAX, so no sandbox shares its beginning of a sale (sales.h) with another. */
static enum db_status make_product(struct worker *worker, struct redis_keeper *keeper, int place,
                                   int64_t *ret_id)
{
    enum db_status status = DB_OK;
    *ret_id = 0;
    for (int try = 0; try < IDS_TRIED && status == DB_OK && *ret_id == 0; try++) {
        int64_t id = ID_STEP * (ID_STEP_LEAST + random() % (ID_STEP_MOST - ID_STEP_LEAST)) + place;
        char *json = NULL, name[40];
        enum product_change change;
        snprintf(name, sizeof name, "Sandbox %d", place + 1);
        status = view_product(worker->db, id, &json);
        if (status == DB_OK && !json)
            status = products_put(worker->db, id, name, "19.90", &new_stock, worker->service->instance,
                                  &keeper->base, &change);
        if (status == DB_OK && !json)
            *ret_id = id;
        free(json);
    }
    return status;
}

/* A sale of a product that another learner has had, as if it were new. DB_AWAY where its stock lies in Redis, which could
 * not be asked to throw it away. */
static enum db_status empty_product(struct worker *worker, struct redis_keeper *keeper, int64_t id)
{
    enum product_change change;
    enum db_status status = products_reset(worker->db, id, &new_stock, worker->service->instance,
                                           &keeper->base, &change);
    return status == DB_OK && (change == PRODUCT_KEPT || change == PRODUCT_AWAITED) ? DB_AWAY : status;
}

/* The place's own product: ID, which a learner before had, or a new one (0). */
static enum db_status ready_product(struct worker *worker, int place, int64_t *id)
{
    struct redis_keeper keeper;
    enum db_status status = worker_stock(worker) ? api_database(worker) : DB_ERROR;
    if (status != DB_OK)
        return status;
    redis_keeper_init(&keeper, worker->db, worker->stock,
                      monotonic_us() + worker->service->config.order_timeout_ms * 1000);
    return *id ? empty_product(worker, &keeper, *id) : make_product(worker, &keeper, place, id);
}

/* Makes the place a learner's: a product as if it were new, with its own settings, which are the common ones. ID is the
 * product that the learner before had, or 0. Orders of that learner which still wait are refused after the pause, since the
 * token that came with them is not valid any more. False with a reply made. */
static bool settle(struct exchange *x, struct worker *worker, int place, int64_t *id)
{
    struct service *service = worker->service;
    int64_t deadline_us = monotonic_us() + 2 * service->config.order_timeout_ms * 1000;
    int64_t before = *id;
    if (!before &&
        !own_settings_left(service->orders.queue)) { /* asked first, so that no product is made in vain */
        api_reply_no_own_settings(x);
        return false;
    }
    if (before) {
        log_line(LOG_INFO, "the sandbox with product %lld goes to another learner", (long long)before);
        runs_end_product(service->runs, before,
                         true); /* its orders are the teacher's, which nobody refuses */
    }
    if (before && !product_pause(service->orders.queue, before, deadline_us)) {
        reply_problem(x, PROBLEM_OVERLOADED, NULL,
                      "orders of the previous learner are still in progress; try again in a moment");
        return false;
    }
    enum db_status status = ready_product(worker, place, id);
    bool ready = status == DB_OK && *id != 0 &&
                 (before || product_pause(service->orders.queue, *id, deadline_us));
    bool room = false;
    if (ready) {
        struct settings settings, common = product_settings(service->orders.queue, 0);
        room = product_set_own(service->orders.queue, *id, &common, &settings);
        sale_begins(&service->sales, *id);
    }
    if (before || ready)
        product_resume(service->orders.queue, *id);
    if (status != DB_OK)
        api_reply_db(x, worker, status);
    else if (*id == 0)
        reply_problem(x, PROBLEM_OVERLOADED, NULL,
                      "no unused product id was found for the sandbox; try again");
    else if (!ready)
        reply_problem(x, PROBLEM_OVERLOADED, NULL,
                      "orders of the sandbox's product are still in progress; try again in a moment");
    else if (!room)
        api_reply_no_own_settings(x);
    return room;
}

void sandboxes_create(struct exchange *x, struct worker *worker)
{
    struct service *service = worker->service;
    const char *given = NULL;
    char name[BOARD_NAME_SIZE] = "";
    const struct member members[] = {{"name", BODY_STRING, false, &given, 0, BOARD_NAME_SIZE - 1}, {0}};
    AUTO_JSON body = api_body(x, members);
    if (!body ||
        !access_allows(x, service, ACCESS_LEARNER)) /* the class code may be new since the call came in */
        return;
    if (given && given[strspn(given, " ")] && !board_text(given, name, sizeof name)) {
        reply_problem(x, PROBLEM_INVALID_ORDER, json_pack("{s:s}", "member", "name"),
                      "a name has at most %d bytes, without control characters; choose a shorter name",
                      BOARD_NAME_SIZE - 1);
        return;
    }
    int64_t id = 0;
    struct sandbox_caller caller = {.is_teacher = access_teaches(x)};
    http_client_address(x, caller.address, sizeof caller.address);
    int place = sandbox_take(service->sandboxes, &caller, &id);
    if (place == SANDBOX_ADDRESS_FULL) {
        int64_t most = sandboxes_address_limit(service->sandboxes);
        reply_problem(
            x, PROBLEM_OVERLOADED,
            json_pack("{s:s, s:I}", "address", caller.address, "limit", (json_int_t)most),
            "%s already has %lld sandboxes, which is the limit for one address; ask the teacher to end some, or to "
            "raise the limit on the page (at the start it is --sandboxes-per-address)",
            caller.address, (long long)most);
        return;
    }
    if (place < 0) {
        reply_problem(x, PROBLEM_OVERLOADED, NULL,
                      "all %d sandboxes%s are in use; ask the teacher to end one",
                      caller.is_teacher ? SANDBOXES_MAX : SANDBOXES_OF_LEARNERS,
                      caller.is_teacher ? "" : " for learners");
        return;
    }
    board_leave(service->board, id); /* the learner who had the product */
    if (!settle(x, worker, place, &id)) {
        sandbox_drop(service->sandboxes, place, id);
        return;
    }
    char token[SECRET_SIZE];
    if (!name[0])
        snprintf(name, sizeof name, "Learner %d", place + 1);
    if (service->config.classroom && !caller.is_teacher)
        (void)board_join(service->board, id, name); /* which has room for all sandboxes */
    sandbox_give(service->sandboxes, place, id, token);
    live_forget(service, id);
    http_set_header(x, "Location", "/products/%lld", (long long)id);
    http_set_fixed_header(x, "Cache-Control", "no-store"); /* the reply has a secret token */
    http_reply_json(
        x, 201,
        json_pack("{s:I, s:s, s:i}", "product_id", (json_int_t)id, "token", token, "stock", SANDBOX_STOCK));
}

/* The learner's name on the class board, or NULL. */
static const char *name_of(const struct board_view *board, int64_t product_id)
{
    for (int i = 0; i < board->learner_count; i++)
        if (board->learners[i].product_id == product_id)
            return board->learners[i].name;
    return NULL;
}

void sandboxes_list(struct exchange *x, struct worker *worker)
{
    (void)worker;
    struct sandbox_info list[SANDBOXES_MAX];
    struct service *service = x->app;
    int count = sandbox_list(service->sandboxes, list), taken = 0;
    struct board_view board;
    board_look(service->board, &board);
    json_t *sandboxes = json_array();
    for (int i = 0; i < count; i++) {
        const struct sandbox_info *info = &list[i];
        taken += !info->is_expired;
        json_array_append_new(sandboxes,
                              json_pack("{s:i, s:s?, s:I, s:s, s:I, s:I, s:b, s:b}", "number", info->number,
                                        "name", name_of(&board, info->product_id), "product_id",
                                        (json_int_t)info->product_id, "address", info->address, "idle_ms",
                                        (json_int_t)info->idle_ms, "orders", (json_int_t)info->orders,
                                        "expired", info->is_expired, "teacher", info->is_teachers));
    }
    http_reply_json(x, 200,
                    json_pack("{s:o, s:{s:i, s:i, s:i, s:I}, s:o}", "sandboxes", sandboxes, "places",
                              "learners", SANDBOXES_OF_LEARNERS, "teacher", SANDBOXES_RESERVED, "taken",
                              taken, "per_address", (json_int_t)sandboxes_address_limit(service->sandboxes),
                              "run", runs_summary(service->runs)));
}

/* What follows when the sandbox with this product was ended. */
static void after_eviction(struct exchange *x, struct service *service, int64_t id)
{
    board_leave(service->board, id);
    runs_end_product(service->runs, id, false); /* whoever gets the place waits for its end */
    char address[SANDBOX_ADDRESS_SIZE];
    http_client_address(x, address, sizeof address);
    log_line(LOG_INFO, "the teacher at %s ended the sandbox with product %lld", address, (long long)id);
}

void sandboxes_delete(struct exchange *x, struct worker *worker)
{
    int64_t id;
    if (!api_path_id(x, PROBLEM_NOT_FOUND, &id))
        return;
    if (!sandbox_evict(worker->service->sandboxes, id)) {
        reply_problem(x, PROBLEM_NOT_FOUND, NULL, "no learner has product %lld", (long long)id);
        return;
    }
    after_eviction(x, worker->service, id);
    http_reply_json(x, 200, json_pack("{s:I}", "product_id", (json_int_t)id));
}

void sandboxes_delete_address(struct exchange *x, struct worker *worker)
{
    char address[SANDBOX_ADDRESS_SIZE];
    if (http_query(x, "address", address, sizeof address) <= 0 || !address[0]) {
        reply_problem(x, PROBLEM_BAD_REQUEST, NULL,
                      "the parameter address must be one address that GET /sandboxes shows");
        return;
    }
    int64_t ended[SANDBOXES_MAX];
    int count = sandbox_evict_address(worker->service->sandboxes, address, ended);
    json_t *ids = json_array();
    for (int i = 0; i < count; i++) {
        after_eviction(x, worker->service, ended[i]);
        json_array_append_new(ids, json_integer((json_int_t)ended[i]));
    }
    http_reply_json(x, 200, json_pack("{s:o}", "product_ids", ids));
}

void sandboxes_put_limit(struct exchange *x, struct worker *worker)
{
    struct service *service = worker->service;
    int64_t most = 0;
    const struct member members[] = {{"per_address", BODY_INTEGER, true, &most, 1, SANDBOXES_OF_LEARNERS},
                                     {0}};
    AUTO_JSON body = api_body(x, members);
    if (!body)
        return;
    char address[SANDBOX_ADDRESS_SIZE];
    sandboxes_set_address_limit(service->sandboxes, most);
    http_client_address(x, address, sizeof address);
    log_line(LOG_INFO, "the teacher at %s set the limit of sandboxes for one address to %lld", address,
             (long long)most);
    http_reply_json(x, 200, json_pack("{s:I}", "per_address", (json_int_t)most));
}

void classroom_get(struct exchange *x, struct worker *worker)
{
    (void)worker;
    const struct service *service = x->app;
    bool classroom = service->config.classroom != 0;
    /* The teacher may have a sandbox as well, so its token comes in a separate header. */
    const char *named = http_header(x, "X-Sandbox");
    int64_t owns = named ? sandbox_owned(service->sandboxes, named) : 0;
    bool evicted = named && sandbox_was_evicted(service->sandboxes, named);
    if (named && named[0] && !owns)
        access_log_wrong_token(x);
    char code[CLASS_CODE_SIZE];
    sandboxes_code(service->sandboxes, code);
    json_t *addresses = classroom && access_teaches(x)
                            ? addresses_for_others(&service->config, atomic_load(&service->port))
                            : json_array();
    http_set_fixed_header(x, "Cache-Control", "no-store"); /* the code is for the teacher */
    http_reply_json(x, 200,
                    json_pack("{s:b, s:b, s:s?, s:o, s:b, s:i, s:o, s:b, s:{s:o, s:o}}", "classroom",
                              classroom, "teacher", access_teaches(x), "code",
                              classroom && access_teaches(x) ? code : NULL, "owns",
                              owns ? json_integer(owns) : json_null(), "evicted", evicted, "learners",
                              sandbox_count(service->sandboxes), "addresses", addresses, "container",
                              classroom && access_teaches(x) && is_in_container(), "limits", "run",
                              runs_limits(x), "strategy", strategy_limits(x)));
}

void classroom_new_code(struct exchange *x, struct worker *worker)
{
    (void)worker;
    struct service *service = x->app;
    const struct member members[] = {{0}};
    AUTO_JSON body = api_body(x, members);
    if (!body)
        return;
    if (!service->config.classroom) {
        reply_problem(x, PROBLEM_NOT_FOUND, NULL,
                      "there is no class, so there is no class code; start the service with --classroom");
        return;
    }
    char code[CLASS_CODE_SIZE], address[SANDBOX_ADDRESS_SIZE];
    sandboxes_new_code(service->sandboxes, code);
    http_client_address(x, address, sizeof address);
    log_line(LOG_INFO, "the teacher at %s replaced the class code", address);
    http_set_fixed_header(x, "Cache-Control", "no-store");
    http_reply_json(x, 200, json_pack("{s:s}", "code", code));
}
