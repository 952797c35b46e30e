/* The handlers of the HTTP API, and what they share: reading a request strictly. */
#ifndef OVERSELL_SERVICE_API_API_H
#define OVERSELL_SERVICE_API_API_H

#include "service/api/access.h"
#include "service/api/service.h"
#include "service/http/problem.h"
#include "service/write_behind/reconcile.h"

typedef void handler_fn(struct exchange *x, struct worker *worker);

handler_fn orders_create, orders_echo, orders_get, orders_list; /* service/api/orders.c */

handler_fn products_list, products_get, products_replace, products_set_stock; /* service/api/products.c */
handler_fn audit_get;
/* The books of a product, wherever its stock lies, as JSON text that is the caller's to free. RECONCILED, or why not. */
enum reconciled api_audit(struct worker *worker, int64_t id, struct reconciliation *ret, char **ret_json);

handler_fn strategies_list, strategies_get, strategy_get, strategy_set;       /* service/api/strategies.c */
handler_fn locks_hold;                                                        /* service/api/locks.c */
handler_fn runs_create, runs_get, runs_get_traces, runs_delete;               /* service/api/runs.c */
handler_fn sandboxes_create, sandboxes_list, sandboxes_delete, classroom_get; /* service/api/sandboxes.c */
/* What the caller's runs and settings may be at most, each the caller's to json_decref. */
json_t *runs_limits(const struct exchange *x);
json_t *strategy_limits(const struct exchange *x);
handler_fn steps_make, steps_search;                                    /* service/api/steps.c */
handler_fn live_get;                                                    /* service/api/live.c */
handler_fn page_get, steps_page, page_get_file;                         /* page.c */
handler_fn health_get, ready_get, metrics_get, traces_get, openapi_get; /* service/api/status.c */

/* A member of a JSON object, read into the memory that TO points at. */
enum member_type { INTEGER, STRING, NAMES, BOOLEAN };
struct member {
    const char *name;
    enum member_type type;
    bool required;
    void *to; /* int64_t, const char *, bool or, for an array of strings, json_t * (borrowed from the JSON) */
    int64_t least, most; /* INTEGER: the range; STRING: the length in characters; NAMES: how many */
};

/* Parses the body as an object with these members and no others (MEMBERS ends with a NULL name); optional ones that
 * are absent or null leave their memory as it is. Returns it, the caller's to json_decref, or NULL with a reply made. */
json_t *api_body(struct exchange *x, const struct member *members);

/* The path's argument as an id; false with 404 replied. */
bool api_path_id(struct exchange *x, enum problem problem, int64_t *ret_id);
/* A query parameter as an integer of a range, PRESET where absent; false with a reply made. */
bool api_query_integer(struct exchange *x, const char *name, int64_t preset, int64_t least, int64_t most,
                       int64_t *ret_value);
/* The strategies' names, for an error that lists what is valid. */
const char *api_strategy_names(void);

/* The worker's database for a call other than an order: with an order's deadlines. */
enum db_status api_database(struct worker *worker);
/* Other books than those that open pages were shown last are to be expected. */
void live_forget(struct service *service, int64_t product_id);
/* Replies for a database that did not serve. */
void api_reply_db(struct exchange *x, struct worker *worker, enum db_status status);
/* Pauses the orders of a product for a change (product_pause) that is the caller's to end; false with a reply made. The
 * teacher waits for another change of the product, a learner does not. */
bool api_pause(struct exchange *x, struct service *service, int64_t product_id);
/* Replies that no further product can have settings of its own. */
void api_reply_no_own_settings(struct exchange *x);
/* Replies with JSON text that the database has made (stolen); NULL is the problem MISSING. */
void api_reply_json_text(struct exchange *x, char *json, enum problem missing, const char *what);

static inline void api_decref(json_t **json)
{
    json_decref(*json);
}
#define AUTO_JSON __attribute__((cleanup(api_decref))) json_t *

#endif
