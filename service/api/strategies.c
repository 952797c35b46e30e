/* The strategy table over HTTP, and switching between its rows. */
#include "base/clock.h"
#include "service/api/api.h"

#include "base/log.h"
#include "db/products/audit.h"
#include "service/api/lock_servers.h"

#include <stdlib.h>

/* A learner's orders share the workers with everybody's, so none may keep one for long. */
enum { LEARNER_WAIT_MAX_MS = 5000, LEARNER_THINK_MAX_MS = 200 };

const char *api_strategy_names(void)
{
    static _Thread_local char names[2048];
    size_t used = 0;
    for (size_t i = 0; i < strategy_count && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                                 strategies[i].name);
    return names;
}

const struct strategy *api_strategy(struct exchange *x, const char *member, const char *name)
{
    const struct strategy *strategy = strategy_find(name);
    if (!strategy)
        reply_problem(x, PROBLEM_INVALID_ORDER, member ? json_pack("{s:s}", "member", member) : NULL,
                      "there is no strategy '%s'; valid: %s", name, api_strategy_names());
    return strategy;
}

void api_reply_no_own_settings(struct exchange *x)
{
    reply_problem(
        x, PROBLEM_OVERLOADED, NULL,
        "%d products have separate settings, which is the limit; restart the service to remove them",
        OWN_SETTINGS_MAX);
}

static json_t *perils_json(unsigned perils)
{
    static const struct {
        enum lock_peril peril;
        const char *name;
    } names[] = {{PERIL_PAUSE, "pause"},
                 {PERIL_DISCONNECT, "disconnect"},
                 {PERIL_CLOCK, "clock"},
                 {PERIL_RESTART, "restart"}};
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (perils & names[i].peril)
            json_array_append_new(list, json_string(names[i].name));
    return list;
}

static json_t *lock_json(const struct lock_driver *lock)
{
    if (!lock)
        return json_null();
    const struct lock_properties *p = &lock->properties;
    return json_pack("{s:s, s:s, s:s?, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:o}", "name", lock->name,
                     "mechanism", p->mechanism, "server", lock->server ? lock->server->name : NULL,
                     "reentrant", p->reentrant, "blocking", p->blocking, "fair", p->fair, "leased",
                     p->carrier == CARRIER_LEASE, "renewed", p->renewed, "fenced", p->fenced,
                     "survives_crash", p->survives_crash, "survives_minority", p->survives_minority,
                     "ended_by", perils_json(p->perils));
}

/* What shows the flaw, joined by "+", as "second-process+crash". */
static void describe_shown_by(unsigned shown_by, char *text, size_t size)
{
    static const struct {
        enum shown_by what;
        const char *name;
    } names[] = {{SHOWN_BY_LOAD, "load"},
                 {SHOWN_BY_SECOND_PROCESS, "second-process"},
                 {SHOWN_BY_EXPIRY, "expire"},
                 {SHOWN_BY_CRASH, "crash"}};
    size_t used = 0;
    snprintf(text, size, "nothing");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (shown_by & names[i].what)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "+" : "", names[i].name);
}

/* Where a worker combines the waiting orders of a product into one transaction or one script. */
static const char *combined_name(enum combining combining)
{
    return combining == COMBINE_IN_POSTGRES ? "postgresql" : combining == COMBINE_IN_REDIS ? "redis" : "none";
}

static json_t *strategy_json(const struct strategy *s)
{
    char shown_by[64], use[USE_MAX], reason[250];
    describe_shown_by(s->shown_by, shown_by, sizeof shown_by);
    const struct stock_policy *policy = s->take_stock;
    bool available = lock_server_is_up(strategy_server(s), reason, sizeof reason);
    return json_pack(
        "{s:s, s:s, s:s, s:s?, s:s, s:s, s:o, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:b, s:b, s:b, s:s, s:b, s:s?}",
        "name", s->name, "title", s->title, "why", s->why, "use_for", strategy_use_for(s, use), "guarantee",
        guarantee_name(s->guarantee), "shown_by", shown_by, "lock", lock_json(s->lock), "span",
        span_name(s->span), "scope", scope_name(s->scope), "fence", fence_name(s->fencing), "isolation",
        isolation_name(s->isolation), "stock", policy->name, "stock_kind",
        stock_kinds[s->take_stock->kind].name, "max_tries", s->max_tries > 1 ? s->max_tries : 1, "explorable",
        strategy_has_steps(s), "in_turn", s->combining == COMBINE_IN_TURN, "locks_all", policy->locks_all,
        "combined", combined_name(s->combining), "available", available, "reason", available ? NULL : reason);
}

static json_t *settings_json(const struct settings *settings)
{
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:b}", "name", settings->strategy->name, "guarantee",
                     guarantee_name(settings->strategy->guarantee), "lock_ttl_ms",
                     (json_int_t)settings->lock_ttl_ms, "lock_wait_ms", (json_int_t)settings->lock_wait_ms,
                     "think_ms", (json_int_t)settings->think_ms, "product_limit",
                     (json_int_t)settings->product_limit, "in_turn", settings->in_turn == 1);
}

void strategies_list(struct exchange *x, struct worker *worker)
{
    (void)worker;
    json_t *list = json_array();
    lock_servers_ask();
    for (size_t i = 0; i < strategy_count; i++)
        json_array_append_new(list, strategy_json(&strategies[i]));
    http_reply_json(x, 200, json_pack("{s:o}", "strategies", list));
}

void strategies_get(struct exchange *x, struct worker *worker)
{
    (void)worker;
    const struct strategy *strategy = strategy_find(x->argument);
    if (strategy)
        http_reply_json(x, 200, strategy_json(strategy));
    else
        reply_problem(x, PROBLEM_NOT_FOUND, NULL, "there is no strategy '%s'; valid: %s", x->argument,
                      api_strategy_names());
}

/* The product that a call is about: 0 where it is about all products without their own settings. */
static bool asked_product(struct exchange *x, int64_t *ret_product_id)
{
    if (http_query_names(x, (const char *const[]){"product_id", NULL}))
        return api_query_integer(x, "product_id", 0, 1, INT64_MAX, ret_product_id);
    reply_problem(x, PROBLEM_BAD_REQUEST, NULL, "unknown query parameter; valid: product_id");
    return false;
}

void strategy_get(struct exchange *x, struct worker *worker)
{
    (void)worker;
    int64_t product_id;
    if (!asked_product(x, &product_id))
        return;
    struct settings settings = product_settings(((struct service *)x->app)->orders.queue, product_id);
    http_reply_json(x, 200, settings_json(&settings));
}

/* Own settings are kept while the process lives, so a product that does not exist must not get any; false with a reply
 * made. */
static bool can_have_own(struct exchange *x, struct worker *worker, int64_t product_id)
{
    char *json = NULL;
    if (product_id == 0 || product_has_own(worker->service->orders.queue, product_id))
        return true;
    enum db_status status = api_database(worker);
    if (status == DB_OK)
        status = view_product(worker->db, product_id, &json);
    bool exists = json != NULL;
    free(json);
    if (status != DB_OK)
        api_reply_db(x, worker, status);
    else if (!exists)
        reply_problem(x, PROBLEM_NO_SUCH_PRODUCT, NULL, "there is no product %lld", (long long)product_id);
    return exists;
}

/* Makes the changes for all products that follow the common settings; false with a reply made. */
static bool switch_common(struct exchange *x, struct service *service, const struct settings *changes,
                          struct settings *ret_settings)
{
    int64_t deadline_us = monotonic_us() + 2 * service->config.order_timeout_ms * 1000;
    if (admission_switch(service->orders.queue, changes, deadline_us, ret_settings))
        return true;
    reply_problem(x, PROBLEM_LOCK_TIMEOUT, NULL,
                  "orders of the current strategy are still in progress; nothing was changed. Try again");
    return false;
}

/* Makes the changes for one product; false with a reply made. */
static bool switch_product(struct exchange *x, struct service *service, int64_t product_id,
                           const struct settings *changes, struct settings *ret_settings)
{
    if (!api_pause(x, service, product_id))
        return false;
    bool owns = access_owns(
        x, product_id); /* checked again: the sandbox may have gone to another learner during the wait */
    bool room = owns && product_set_own(service->orders.queue, product_id, changes, ret_settings);
    product_resume(service->orders.queue, product_id);
    if (owns && !room)
        api_reply_no_own_settings(x);
    return room;
}

json_t *strategy_limits(const struct exchange *x)
{
    return json_pack("{s:i, s:i, s:i}", "lock_ttl_ms", LOCK_TTL_MAX_MS, "lock_wait_ms",
                     access_teaches(x) ? LOCK_WAIT_MAX_MS : LEARNER_WAIT_MAX_MS, "think_ms",
                     access_teaches(x) ? THINK_MAX_MS : LEARNER_THINK_MAX_MS);
}

void strategy_set(struct exchange *x, struct worker *worker)
{
    struct service *service = worker->service;
    struct settings changes = {.lock_ttl_ms = -1,
                               .lock_wait_ms = -1,
                               .think_ms = -1,
                               .product_limit = -1,
                               .in_turn = -1},
                    settings;
    const char *name = NULL;
    bool in_turn = false;
    const struct member members[] = {
        {"name", BODY_STRING, true, &name, 1, 64},
        {"lock_ttl_ms", BODY_INTEGER, false, &changes.lock_ttl_ms, 10, LOCK_TTL_MAX_MS},
        {"lock_wait_ms", BODY_INTEGER, false, &changes.lock_wait_ms, 0,
         access_teaches(x) ? LOCK_WAIT_MAX_MS : LEARNER_WAIT_MAX_MS},
        {"think_ms", BODY_INTEGER, false, &changes.think_ms, 0,
         access_teaches(x) ? THINK_MAX_MS : LEARNER_THINK_MAX_MS},
        {"product_limit", BODY_INTEGER, false, &changes.product_limit, 0, PRODUCT_LIMIT_MAX},
        {"in_turn", BODY_BOOLEAN, false, &in_turn, 0, 0},
        {0},
    };
    int64_t product_id;
    if (!asked_product(x, &product_id))
        return;
    AUTO_JSON body = api_body(x, members);
    if (!body || !access_owns(x, product_id))
        return;
    if (json_object_get(body, "in_turn"))
        changes.in_turn = in_turn;
    changes.strategy = api_strategy(x, "name", name);
    if (!changes.strategy || !access_uses(x, changes.strategy) || !can_have_own(x, worker, product_id))
        return;
    if (!(product_id ? switch_product(x, service, product_id, &changes, &settings)
                     : switch_common(x, service, &changes, &settings)))
        return;
    log_line(LOG_INFO,
             "strategy %s for product %lld (0: all), lock ttl %lld ms, lock wait %lld ms, think %lld ms",
             settings.strategy->name, (long long)product_id, (long long)settings.lock_ttl_ms,
             (long long)settings.lock_wait_ms, (long long)settings.think_ms);
    http_reply_json(x, 200, settings_json(&settings));
}
