/* Whole requests, from the routes to the handlers, up to where a server would be asked: every one is away.
 *
 * The input is a byte of modes (1 an admin token, 2 a class, 4 shutting down), then a request as in HTTP, with lines that end
 * in \n: method and target, headers, an empty line, the body. Whatever it is, there is one answer, well formed, and it is
 * not "internal error". */
#include "base/clock.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/service/http/fake_exchange.h"

#include "base/log.h"
#include "service/api/lock_servers.h"
#include "service/api/router.h"
#include "service/classroom/board.h"
#include "service/engine/unsold.h"
#include "service/orders/order_job.h"

enum { TOKEN = 1, CLASSROOM = 2, DRAINING = 4, HEADERS_MOST = FAKE_HEADERS_MAX - 1 };

/* ---- in the place of what would wait, or ask a server ------------------------------------------------------ */

static struct exchange *queued;

bool queue_push_turn(struct queue *queue, void *item, unsigned rounds)
{
    (void)queue;
    (void)rounds;
    MUST(!queued);
    queued = item;
    return true;
}

bool queue_push_first(struct queue *queue, void *item)
{
    return queue_push_turn(queue, item, 0);
}

size_t queue_depth(struct queue *queue)
{
    (void)queue;
    return 0;
}

int unsold_list_count(struct unsold_list *list, int64_t product_id)
{
    (void)list;
    (void)product_id;
    return 0;
}

int orders_running(const struct order_pipeline *pipeline, int64_t product_id)
{
    (void)pipeline;
    (void)product_id;
    return 0;
}

unsigned http_connections(void)
{
    return 0;
}

enum db_status worker_database(struct worker *worker, int64_t deadline_us, int64_t lock_deadline_us)
{
    (void)worker;
    (void)deadline_us;
    (void)lock_deadline_us;
    return DB_AWAY;
}

struct redis_stock *worker_stock(struct worker *worker)
{
    (void)worker;
    return (struct redis_stock *)(void *)&queued; /* never looked at, since the database is away */
}

void lock_servers_ask(void)
{
}

bool lock_server_is_up(const struct lock_server *server, char *ret_reason, size_t size)
{
    (void)server;
    snprintf(ret_reason, size, "away");
    return false;
}

enum lock_status lock_open(const struct lock_driver *driver, struct lock **ret_lock)
{
    (void)driver;
    (void)ret_lock;
    return LOCK_UNAVAILABLE;
}

enum run_start runs_start(struct runs *runs, const struct run_order *order, uint16_t port, int64_t *ret_id)
{
    (void)runs;
    (void)port;
    MUST(json_array_size(order->strategies) >= 1 && order->product_id >= 1);
    MUST(order->quantity >= 1 && order->quantity <= order->stock && order->stock <= 10000);
    MUST(order->connections >= 1 && order->connections <= 256 && order->duration_ms <= 30000);
    *ret_id = 1;
    return RUN_GOES_ON;
}

/* An order that was read: is it what the checks promise? */
static void look_at(const struct order_request *request)
{
    MUST(request->product_id >= 1 && request->quantity >= 1 && request->quantity <= 1000000);
    for (const char *c = request->idempotency_key; c && *c; c++)
        MUST(*c > ' ' && *c < 0x7f);
    if (request->idempotency_key)
        MUST(strlen(request->idempotency_key) >= 1 && strlen(request->idempotency_key) <= ORDER_KEY_MAX);
    if (request->receiver_name) /* characters of up to four bytes */
        MUST(strlen(request->receiver_name) <= (size_t)4 * ORDER_NAME_MAX);
}

void order_job_queue(struct order_pipeline *pipeline, struct exchange *x, const struct order_request *request,
                     json_t *body, const struct strategy *strategy)
{
    (void)pipeline;
    (void)strategy;
    look_at(request);
    json_decref(body);
    reply_problem(x, PROBLEM_BACKEND_UNAVAILABLE, NULL, "the order was read");
    http_finish(x);
}

void order_job_queue_echo(struct order_pipeline *pipeline, struct exchange *x,
                          const struct order_request *request)
{
    order_job_queue(pipeline, x, request, NULL, NULL);
}

/* ---- one request ------------------------------------------------------------------------------------------- */

static struct service service;

__attribute__((constructor)) static void set_up(void)
{
    log_setup(LOG_ERROR, false, "fuzz");
    service.config.order_timeout_ms = 1000;
    service.config.allowed_hosts = "";
    snprintf(service.instance, sizeof service.instance, "fuzz");
    service.responses = response_cache_new();
    service.sandboxes = sandboxes_new(30LL * 60 * 1000, 0);
    service.runs = runs_new(&service.config);
    service.board = board_new(0);
    MUST(service.responses && service.sandboxes && service.runs && service.board);
    sandboxes_set_code(service.sandboxes, "abcd-2345");
}

/* As no switch of a request before has left it. */
static void begin(uint8_t modes)
{
    const struct settings settings = {.strategy = strategy_find("atomic-decrement"), .lock_ttl_ms = 1000};
    admission_free(service.orders.queue);
    service.orders.queue = admission_new(&settings, &(const struct admission_bounds){.orders = 10});
    MUST(service.orders.queue);
    service.config.admin_token = modes & (TOKEN | CLASSROOM) ? "teachers-secret" : "";
    service.config.classroom = (modes & CLASSROOM) != 0;
    atomic_store(&service.draining, (modes & DRAINING) != 0);
    queued = NULL;
}

/* Cuts LINE at the first byte of STOPS and returns what stands behind it; "" where there is none. */
static char *cut(char *line, const char *stops)
{
    char *end = line + strcspn(line, stops);
    if (!*end)
        return end;
    *end = '\0';
    return end + 1 + strspn(end + 1, " ");
}

static void look_at_reply(const struct exchange *x)
{
    MUST(x->status >= 200 && x->status < 600 && x->status != 500);
    for (int i = 0; i < x->header_count; i++)
        MUST(!x->headers[i].fixed == !!*x->headers[i].value && !strpbrk(x->headers[i].value, "\r\n"));
    const char *type = x->content_type ? x->content_type : "";
    MUST(x->status < 400 || strcmp(type, "application/problem+json") == 0);
    if (!strstr(type, "json"))
        return;
    json_t *json = json_loadb(x->reply, x->reply_size, JSON_REJECT_DUPLICATES, NULL);
    MUST(json_is_object(json));
    if (x->status >= 400)
        MUST(json_integer_value(json_object_get(json, "status")) == x->status);
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    static struct fake_exchange fake;
    struct worker worker = {.service = &service};
    if (size == 0)
        return 0;
    fake = (struct fake_exchange){.service = &service};
    begin(fuzz_byte(&input));
    int headers = 0;
    char *lines[HEADERS_MOST + 1] = {fuzz_text(&input, '\n')}, *line = lines[0];
    char *target = cut(line, " ");
    (void)cut(target, " "); /* the version */
    char *query = target + strcspn(target, "?");
    char *path = strndup(target, (size_t)(query - target));
    while (input.left > 0 && headers < HEADERS_MOST && *(lines[headers + 1] = fuzz_text(&input, '\n')))
        headers++;
    if (headers < HEADERS_MOST && lines[headers + 1])
        free(lines[headers + 1]);
    fake_request(&fake, line, path, input.left ? (const char *)input.at : NULL, input.left);
    fake.x.query = *query ? strdup(query + 1) : NULL;
    fake.x.received_us = monotonic_us();
    for (int i = 1; i <= headers; i++) {
        char *value = cut(lines[i], ":");
        fake_header(&fake, lines[i], value);
    }

    bool answered = service_dispatch(&fake.x);
    if (queued) {
        queued->route->handle(queued, &worker);
        if (lane_has_steps(queued->route->lane))
            steps_end_call(queued);
    }
    MUST(answered == !fake.connection.suspended && !(answered && queued));
    look_at_reply(&fake.x);
    for (int i = 0; i <= headers; i++)
        free(lines[i]);
    free(path);
    fake_free(&fake);
    return 0;
}
