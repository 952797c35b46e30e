/* The handlers of the HTTP API, by the file that has them, and what they offer each other. The table in service/api/routes.c
 * calls the handlers. */
#ifndef OVERSELL_SERVICE_API_API_H
#define OVERSELL_SERVICE_API_API_H

#include "service/api/access.h"
#include "service/api/request.h"
#include "service/api/service.h"
#include "service/http/problem.h"
#include "service/write_behind/reconcile.h"

/* Replies to the exchange. WORKER is NULL if the route's lane is LANE_HTTP or LANE_ORDERS. */
typedef void handler_fn(struct exchange *x, struct worker *worker);

/* service/api/orders.c */
handler_fn orders_create, orders_echo, orders_get, orders_list;

/* service/api/products.c */
handler_fn products_list, products_get, products_replace, products_set_stock, audit_get;
/* The audit of a product, wherever its stock lies. RECONCILED: *ret_json is JSON text that the caller frees. Otherwise it is
 * NULL, and RET has the status that says why. */
enum reconciled api_audit(struct worker *worker, int64_t id, struct reconciliation *ret, char **ret_json);
/* Pauses the orders of a product for a change; the caller ends the pause with product_resume. A teacher's call waits for another
 * change of the product; a learner's call fails instead. False: it has replied, and the product is not paused. */
bool api_pause(struct exchange *x, struct service *service, int64_t product_id);

/* service/api/strategies.c */
handler_fn strategies_list, strategies_get, strategy_get, strategy_set;
/* The strategies' names, separated by commas, for an error that lists what is valid. Valid until the thread's next call. */
const char *api_strategy_names(void);
/* The strategy that MEMBER of the body names; MEMBER is NULL for a parameter of the query. NULL: there is none, and it has replied
 * with the names that are valid. */
const struct strategy *api_strategy(struct exchange *x, const char *member, const char *name);
/* The caller's limits for settings; the caller of the function releases it with json_decref. */
json_t *strategy_limits(const struct exchange *x);
/* Replies that no further product can have its own settings (OWN_SETTINGS_MAX). */
void api_reply_no_own_settings(struct exchange *x);

/* service/api/locks.c */
handler_fn locks_hold;

/* service/api/runs.c */
handler_fn runs_create, runs_get, runs_get_traces, runs_delete;
/* The caller's limits for load runs; the caller of the function releases it with json_decref. */
json_t *runs_limits(const struct exchange *x);

/* service/api/sandboxes.c */
handler_fn sandboxes_create, sandboxes_list, sandboxes_delete, sandboxes_delete_address, sandboxes_put_limit,
    classroom_get, classroom_new_code;

/* service/api/class.c */
handler_fn class_news, class_board, class_address, class_ask, class_clear, class_close, class_push,
    class_vote, class_solved;

/* service/api/steps.c */
handler_fn steps_make, steps_search;
/* For calls of lanes that have steps. Counts a learner's step or search until steps_end_call. *ret_earlier: those that it has
 * already. False: it has replied, since the learner has as many as a learner may have. Calls of others are not counted. */
bool steps_begin_call(struct exchange *x, unsigned *ret_earlier);
/* The call has its reply. Call it once after steps_begin_call has returned true. */
void steps_end_call(const struct exchange *x);

/* service/api/live.c */
handler_fn live_get;
/* Drops the cached audit of a product that has changed, so that the next GET /live shows the change. Any thread. */
void live_forget(struct service *service, int64_t product_id);

/* service/page/page.c */
handler_fn page_get, steps_page, lessons_page, lessons_get, class_page, page_get_file;

/* service/api/status.c */
handler_fn health_get, ready_get, metrics_get, traces_get, openapi_get;

/* service/api/database.c: for calls other than orders */
/* The worker's database, with the deadlines that an order has. DB_OK, or why it does not serve. */
enum db_status api_database(struct worker *worker);
/* Replies with the problem for STATUS, which is not DB_OK. */
void api_reply_db(struct exchange *x, struct worker *worker, enum db_status status);
/* Replies with JSON text, which it takes over. NULL: replies with the problem MISSING; WHAT names the resource. */
void api_reply_json_text(struct exchange *x, char *json, enum problem missing, const char *what);

#endif
