/* The order pipeline: the admission queue, the workers that place its orders, and what these share. */
#include "service/orders/order_pipeline.h"

#include "service/classroom/sandbox.h"
#include "service/orders/order_worker.h"
#include "service/orders/place_orders.h"

#include <stdlib.h>

/* The thread of a worker. It ends once the admission queue is closed and empty. */
static void *pipeline_work(void *arg)
{
    struct order_worker *worker = arg;
    struct order_batch batch;
    while (admission_next(worker->pipeline->queue, &batch))
        place_orders(&batch, worker);
    return NULL;
}

static bool start_worker(struct order_pipeline *p, int id)
{
    struct order_worker *worker = &p->workers[id];
    return order_worker_prepare(worker, p, id) &&
           pthread_create(&worker->thread, NULL, pipeline_work, worker) == 0;
}

/* Ends the threads of the first COUNT workers and frees all workers. */
static void end_workers(struct order_pipeline *p, int count)
{
    admission_close(p->queue);
    for (int i = 0; i < count; i++)
        pthread_join(p->workers[i].thread, NULL);
    for (int i = 0; i < p->config->workers; i++)
        order_worker_release(&p->workers[i]);
    free(p->workers);
    free(p->traces);
}

static bool start_workers(struct order_pipeline *p)
{
    int workers = (int)p->config->workers, count = 0;
    p->workers = calloc((size_t)workers, sizeof p->workers[0]);
    p->traces = calloc((size_t)workers, sizeof p->traces[0]);
    if (!p->workers || !p->traces) {
        free(p->workers);
        free(p->traces);
        return false;
    }
    while (count < workers && start_worker(p, count))
        count++;
    if (count < workers)
        end_workers(p, count);
    return count == workers;
}

bool order_pipeline_start(struct order_pipeline *p)
{
    const struct config *config = p->config;
    const struct settings settings = {
        strategy_find(config->strategy), config->lock_ttl_ms, config->lock_wait_ms, config->think_ms,
        config->product_limit,           config->in_turn};
    /* All learners together cannot fill the queue, so how many sandboxes one of them has does not matter to the others. */
    int64_t of_learners = config->classroom ? SANDBOXES_MAX * config->product_queue : 0;
    p->queue = admission_new(
        &settings, &(const struct admission_bounds){.orders = (size_t)(2 * config->queue + of_learners),
                                                    .orders_of_product = (size_t)config->product_queue,
                                                    .workers_of_product = config->product_workers});
    p->ids = order_ids_new();
    p->unsold = unsold_list_start(config->database_url, p->instance);
    if (p->queue && p->ids && p->unsold &&
        writer_start(config->database_url, p->instance, p->ids, &p->writer) && start_workers(p))
        return true;
    writer_stop(p->writer);
    unsold_list_stop(p->unsold);
    return false;
}

void order_pipeline_stop(struct order_pipeline *p)
{
    end_workers(p, (int)p->config->workers);
    writer_stop(p->writer);
    unsold_list_stop(p->unsold);
}

void order_pipeline_free(struct order_pipeline *p)
{
    order_ids_free(p->ids);
    admission_free(p->queue);
}

int orders_running(const struct order_pipeline *p, int64_t product_id)
{
    const struct admission_load load = admission_load(p->queue, product_id);
    /* After the load: an order that fails enters its units in the list before it ends. */
    int unsold = unsold_list_count(p->unsold, product_id);
    return (int)(load.placing + load.held + load.ready) + unsold;
}
