/* Workers: threads that each own a connection and locks, and share nothing but the queue that they serve. */
#include "base/clock.h"
#include "service/api/service.h"

#include "base/log.h"
#include "db/schema/migrate.h"
#include "service/api/router.h"
#include "service/orders/order_job.h"
#include "service/runs/explorer.h"

#include <stdlib.h>

/* The next exchange, NULL at the end. An explorer that nobody has asked for a while is ended meanwhile. */
static struct exchange *next(struct worker *worker)
{
    struct queue *queue = worker->service->queues[worker->lane];
    struct exchange *x = NULL;
    if (worker->explorer && (x = queue_pop_until(queue, monotonic_us() + EXPLORER_IDLE_US)) == NULL) {
        explorer_end(worker->explorer);
        worker->explorer = NULL;
    }
    return x ? x : queue_pop(queue);
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    struct exchange *x;
    while ((x = next(worker)) != NULL) {
        x->route->handle(x, worker);
        http_finish(x);
    }
    return NULL;
}

static void *work_orders(void *arg)
{
    struct worker *worker = arg;
    struct turn turn;
    while (product_queues_next(worker->service->orders, &turn))
        order_jobs_run(&turn, worker);
    return NULL;
}

static bool worker_init(struct worker *worker, struct service *service, enum lane lane, int id)
{
    char name[64];
    static const char *const lanes[LANE_COUNT] = {"http", "orders", "reads", "changes", "holds", "steps"};
    snprintf(name, sizeof name, "oversell %s %d", lanes[lane], id);
    worker->service = service;
    worker->lane = lane;
    worker->id = id;
    worker->db = db_new(service->config.database_url, name);
    worker->locks = calloc(strategy_count, sizeof worker->locks[0]);
    if (lane == LANE_ORDERS)
        worker->traces = service->traces[id] = trace_ring_new(1 + TRACES_MAX / (int)service->config.workers);
    return worker->db && worker->locks && (lane != LANE_ORDERS || worker->traces);
}

static void worker_release(struct worker *worker)
{
    for (size_t i = 0; worker->locks && i < strategy_count; i++)
        lock_close(worker->locks[i]);
    free(worker->locks);
    db_free(worker->db);
    redis_stock_free(worker->stock);
    trace_ring_free(worker->traces);
}

/* Ends the first COUNT threads and frees everything. */
static void stop(struct service *service, int count)
{
    product_queues_close(service->orders);
    for (int lane = LANE_ORDERS; lane < LANE_COUNT; lane++)
        if (service->queues[lane])
            queue_close(service->queues[lane]);
    for (int i = 0; i < count; i++)
        pthread_join(service->workers[i].thread, NULL);
    for (int i = 0; service->workers && i < service->worker_count; i++)
        worker_release(&service->workers[i]);
    for (int lane = LANE_ORDERS; lane < LANE_COUNT; lane++)
        queue_free(service->queues[lane]);
    free(service->workers);
    free(service->traces);
}

bool workers_start(struct service *service)
{
    const struct {
        int workers;
        size_t queue;
    } lanes[LANE_COUNT] = {
        [LANE_ORDERS] = {(int)service->config.workers, 0}, /* served by the admission queue */
        [LANE_READS] = {READ_WORKERS, SIDE_QUEUE},         [LANE_CHANGES] = {CHANGE_WORKERS, SIDE_QUEUE},
        [LANE_HOLDS] = {HOLD_WORKERS, HOLD_WORKERS},       [LANE_STEPS] = {STEP_WORKERS, SIDE_QUEUE},
    };
    for (int lane = LANE_ORDERS; lane < LANE_COUNT; lane++)
        service->worker_count += lanes[lane].workers;
    service->workers = calloc((size_t)service->worker_count, sizeof service->workers[0]);
    service->traces = calloc((size_t)service->config.workers, sizeof service->traces[0]);
    bool ready = service->workers && service->traces;
    struct worker *next = service->workers;
    for (int lane = LANE_ORDERS; lane < LANE_COUNT && ready; lane++) {
        service->queues[lane] = lane == LANE_ORDERS ? NULL : queue_new(lanes[lane].queue);
        ready = lane == LANE_ORDERS || service->queues[lane];
        for (int id = 0; id < lanes[lane].workers && ready; id++)
            ready = worker_init(next++, service, (enum lane)lane, id);
    }
    for (int i = 0; i < service->worker_count; i++) {
        struct worker *worker = &service->workers[i];
        if (!ready || pthread_create(&worker->thread, NULL, worker->lane == LANE_ORDERS ? work_orders : work,
                                     worker) != 0) {
            stop(service, ready ? i : 0);
            return false;
        }
    }
    return true;
}

void workers_stop(struct service *service)
{
    stop(service, service->worker_count);
}

int orders_running(const struct service *service, int64_t product_id)
{
    const struct product_load load = product_queues_load(service->orders, product_id);
    /* After the load: an order that fails enters its units in the list before it ends. */
    int unsold = unsold_list_count(service->unsold, product_id);
    return (int)(load.placing + load.held + load.ready) + unsold;
}

enum db_status service_database(struct service *service, struct db *db)
{
    static pthread_mutex_t migrating = PTHREAD_MUTEX_INITIALIZER;
    enum db_status status = db_ready(db);
    if (status == DB_OK && !atomic_load(&service->migrated)) {
        pthread_mutex_lock(&migrating);
        if (!atomic_load(&service->migrated)) {
            status = db_migrate(db);
            atomic_store(&service->migrated, status == DB_OK);
        }
        pthread_mutex_unlock(&migrating);
    }
    if (status != DB_OK)
        log_seldom(LOG_WARNING, "postgresql: %s", db_error(db));
    return status;
}

enum db_status worker_database(struct worker *worker, int64_t deadline_us, int64_t lock_deadline_us)
{
    db_set_deadline(worker->db, deadline_us, lock_deadline_us);
    return service_database(worker->service, worker->db);
}

struct redis_stock *worker_stock(struct worker *worker)
{
    if (!worker->stock)
        worker->stock = redis_stock_new();
    return worker->stock;
}

struct lock *worker_lock(struct worker *worker, const struct strategy *strategy, enum lock_status *ret_status)
{
    *ret_status = LOCK_OK;
    if (!strategy->lock)
        return NULL;
    struct lock **lock = &worker->locks[strategy_index(strategy)];
    if (!*lock)
        *ret_status = lock_open(strategy->lock, lock);
    return *lock;
}
