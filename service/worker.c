/* Workers: threads that each own a connection and locks, and share nothing but their lane's queue. */
#include "service/service.h"

#include "db/migrate.h"
#include "service/explorer.h"
#include "service/log.h"
#include "service/router.h"

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
        if (worker->lane != LANE_ORDERS) /* an order may be answered later, by another worker */
            http_finish(x);
    }
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
        [LANE_ORDERS] = {(int)service->config.workers, (size_t)service->config.queue},
        [LANE_READS] = {READ_WORKERS, SIDE_QUEUE},
        [LANE_CHANGES] = {CHANGE_WORKERS, SIDE_QUEUE},
        [LANE_HOLDS] = {HOLD_WORKERS, HOLD_WORKERS},
        [LANE_STEPS] = {STEP_WORKERS, SIDE_QUEUE},
    };
    for (int lane = LANE_ORDERS; lane < LANE_COUNT; lane++)
        service->worker_count += lanes[lane].workers;
    service->workers = calloc((size_t)service->worker_count, sizeof service->workers[0]);
    service->traces = calloc((size_t)service->config.workers, sizeof service->traces[0]);
    bool ready = service->workers && service->traces;
    struct worker *next = service->workers;
    for (int lane = LANE_ORDERS; lane < LANE_COUNT && ready; lane++) {
        service->queues[lane] = queue_new(lanes[lane].queue);
        ready = service->queues[lane] != NULL;
        for (int id = 0; id < lanes[lane].workers && ready; id++)
            ready = worker_init(next++, service, (enum lane)lane, id);
    }
    for (int i = 0; i < service->worker_count; i++)
        if (!ready || pthread_create(&service->workers[i].thread, NULL, work, &service->workers[i]) != 0) {
            stop(service, ready ? i : 0);
            return false;
        }
    return true;
}

void workers_stop(struct service *service)
{
    stop(service, service->worker_count);
}

size_t orders_waiting(const struct service *service, int64_t product_id)
{
    return turns_waiting(service->batches, product_id) + turns_waiting(service->takes, product_id) +
           turns_waiting(service->turns, product_id);
}

int orders_running(const struct service *service, int64_t product_id)
{
    int count = (int)orders_waiting(service, product_id);
    for (int i = 0; i < service->worker_count; i++) {
        int64_t placing = atomic_load(&service->workers[i].product_id);
        if (placing != 0 && (product_id == 0 || placing == product_id))
            count += atomic_load(&service->workers[i].orders);
    }
    return count;
}

int workers_busy(const struct service *service)
{
    int count = 0;
    for (int i = 0; i < service->worker_count; i++)
        count += atomic_load(&service->workers[i].product_id) != 0;
    return count;
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
