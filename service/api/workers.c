/* Workers for HTTP calls that may wait, other than orders: threads that each own a connection and share a queue per lane. */
#include "service/api/workers.h"

#include "base/clock.h"
#include "db/schema/migrate.h"
#include "service/api/api.h"
#include "service/api/router.h"
#include "service/http/problem.h"
#include "service/runs/explorer.h"
#include "service/write_behind/redis_stock.h"

#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *name;
    int workers;
    size_t queue;
} lanes[LANE_COUNT] = {
    [LANE_READS] = {"reads", READ_WORKERS, SIDE_QUEUE},
    [LANE_READY] = {"ready", READY_WORKERS, SIDE_QUEUE},
    [LANE_CHANGES] = {"changes", CHANGE_WORKERS, SIDE_QUEUE},
    [LANE_HOLDS] = {"holds", HOLD_WORKERS, HOLD_WORKERS},
    [LANE_STEPS] = {"steps", STEP_WORKERS, SIDE_QUEUE},
    [LANE_SEARCHES] = {"searches", SEARCH_WORKERS, SEARCH_QUEUE},
};

/* The next exchange, NULL at the end. Ends an explorer that nobody has asked for a while. */
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

static void *work_until_end(void *arg)
{
    struct worker *worker = arg;
    struct exchange *x;
    while ((x = next(worker)) != NULL) {
        if (atomic_load(&worker->service->stopping))
            reply_problem(x, PROBLEM_OVERLOADED, NULL, "the service is shutting down");
        else
            x->route->handle(x, worker);
        if (lane_has_steps(worker->lane))
            steps_end_call(x);
        http_finish(x);
    }
    return NULL;
}

static bool start(struct worker *worker, struct service *service, enum lane lane, int id)
{
    char name[64];
    snprintf(name, sizeof name, "oversell %s %d", lanes[lane].name, id);
    worker->service = service;
    worker->lane = lane;
    worker->db = db_new(service->config.database_url, name);
    return worker->db && pthread_create(&worker->thread, NULL, work_until_end, worker) == 0;
}

static void join(struct service *service, int count, bool of_holds)
{
    for (int i = 0; i < count; i++)
        if ((service->workers[i].lane == LANE_HOLDS) == of_holds)
            pthread_join(service->workers[i].thread, NULL);
}

/* Ends the first COUNT threads and frees everything. False: as workers_stop. */
static bool stop(struct service *service, int count)
{
    atomic_store(&service->stopping, true);
    for (int lane = 0; lane < LANE_COUNT; lane++)
        if (service->queues[lane])
            queue_close(service->queues[lane]);
    join(service, count, false);
    if (atomic_load(&service->holds) > 0)
        return false;
    join(service, count, true);
    for (int i = 0; service->workers && i < service->worker_count; i++) {
        db_free(service->workers[i].db);
        redis_stock_free(service->workers[i].stock);
    }
    for (int lane = 0; lane < LANE_COUNT; lane++)
        queue_free(service->queues[lane]);
    free(service->workers);
    return true;
}

bool workers_start(struct service *service)
{
    int count = 0;
    for (int lane = 0; lane < LANE_COUNT; lane++)
        service->worker_count += lanes[lane].workers;
    service->workers = calloc((size_t)service->worker_count, sizeof service->workers[0]);
    bool ready = service->workers != NULL;
    for (int lane = 0; lane < LANE_COUNT && ready; lane++) {
        if (lanes[lane].workers > 0)
            ready = (service->queues[lane] = queue_new(lanes[lane].queue)) != NULL;
        for (int id = 0; id < lanes[lane].workers && ready; id++) {
            ready = start(&service->workers[count], service, (enum lane)lane, id);
            count += ready;
        }
    }
    if (!ready)
        (void)stop(service, count);
    return ready;
}

bool workers_stop(struct service *service)
{
    return stop(service, service->worker_count);
}

enum db_status worker_database(struct worker *worker, int64_t deadline_us, int64_t lock_deadline_us)
{
    db_set_deadline(worker->db, deadline_us, lock_deadline_us);
    return db_ready_with_schema(worker->db);
}

struct redis_stock *worker_stock(struct worker *worker)
{
    if (!worker->stock)
        worker->stock = redis_stock_new();
    return worker->stock;
}
