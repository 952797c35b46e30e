/* The order job: the HTTP thread puts it into the admission queue; a worker takes it out, has it placed, and frees it. */
#include "service/orders/order_job.h"

#include "service/http/problem.h"
#include "service/orders/order_reply.h"
#include "service/orders/order_worker.h"
#include "service/orders/place_orders.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- on the HTTP thread -------------------------------------------------------------------------------------- */

void order_job_close(struct order_job *job)
{
    if (job->x)
        http_finish(job->x);
    json_decref(job->body);
    free(job->key);
    free(job->work);
    free(job);
}

static void queue_job(struct order_pipeline *pipeline, struct exchange *x,
                      const struct order_request *request, json_t *body, const struct queued_order *queued,
                      bool echo)
{
    struct order_job *job = calloc(1, sizeof *job);
    char *key = NULL;
    /* A learner's keys are the learner's alone: another one may use the same. No client's key contains a space. */
    if (!job || (request->idempotency_key && x->owns &&
                 asprintf(&key, "%lld %s", (long long)x->owns, request->idempotency_key) < 0)) {
        reply_problem(x, PROBLEM_INTERNAL_ERROR, NULL, "out of memory");
        http_finish(x);
        json_decref(body);
        free(job);
        return;
    }
    job->queued = *queued;
    job->queued.deadline_us = x->received_us + pipeline->config->order_timeout_ms * 1000;
    job->x = x;
    job->request = *request;
    job->echo = echo;
    job->key = key;
    if (key)
        job->request.idempotency_key = key;
    if (request->receiver_name || request->receiver_mobile)
        job->body = body;
    else
        json_decref(body); /* a thousand orders may wait, and most have no strings */
    switch (admission_add(pipeline->queue, &job->queued)) {
    case ADMITTED: return;
    case QUEUE_FULL:
        reply_problem(x, PROBLEM_OVERLOADED, NULL, "the admission queue is full; try again in a moment");
        break;
    case PRODUCT_FULL:
        reply_problem(x, PROBLEM_OVERLOADED, NULL, "%lld %s are already waiting; try again in a moment",
                      (long long)pipeline->config->product_queue,
                      echo ? "echo calls" : "orders of this product");
        break;
    }
    order_job_close(job);
}

void order_job_queue(struct order_pipeline *pipeline, struct exchange *x, const struct order_request *request,
                     json_t *body, const struct strategy *strategy)
{
    queue_job(pipeline, x, request, body,
              &(const struct queued_order){.product_id = request->product_id, .strategy = strategy}, false);
}

void order_job_queue_echo(struct order_pipeline *pipeline, struct exchange *x,
                          const struct order_request *request, json_t *body)
{
    queue_job(pipeline, x, request, body, &(const struct queued_order){0}, true);
}

/* ---- on a worker --------------------------------------------------------------------------------------------- */

/* False: memory is out, and the job is answered. */
static bool begin_work(struct order_job *job, struct order_batch *batch, struct order_worker *worker)
{
    job->work = calloc(1, sizeof *job->work);
    if (!job->work) {
        reply_problem(job->x, PROBLEM_INTERNAL_ERROR, NULL, "out of memory");
        return false;
    }
    job->work->job = job;
    job->work->batch = batch;
    job->work->worker = worker;
    return true;
}

/* In a class a sandbox can go to another learner while orders of the previous learner wait. These must not be placed in
 * the new learner's sale. Refuses them, moves the other orders to the front, and returns the number of the others. */
static size_t begin_all(struct order_job **jobs, size_t count, struct order_batch *batch,
                        struct order_worker *worker)
{
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        struct order_job *job = jobs[i];
        if (!worker->pipeline->may_order(job->x, job->request.product_id) || !begin_work(job, batch, worker))
            continue;
        jobs[i] = jobs[left];
        jobs[left++] = job;
    }
    return left;
}

void order_jobs_run(struct order_batch *batch, struct order_worker *worker)
{
    struct order_job *jobs[ORDER_BATCH_MAX], *first = (struct order_job *)batch->orders;
    size_t all = 0, count;
    bool in_turn = false;
    struct queued_order *order = batch->orders;
    do { /* a batch has one order at least */
        jobs[all++] = (struct order_job *)order;
        order = order->next;
    } while (order);
    if (batch->expired)
        reply_problem(first->x, PROBLEM_OVERLOADED, NULL,
                      "the order's deadline passed while it waited in the admission queue; order again");
    else if (first->echo)
        order_reply_echo(first->x, &first->request);
    else if ((count = begin_all(jobs, all, batch, worker)) > 1 &&
             (in_turn = batch->settings.strategy->combining == COMBINE_IN_TURN))
        place_in_turn(jobs, count, batch, worker);
    else if (count > 0)
        place_orders(jobs, count, batch, worker);
    admission_end(worker->pipeline->queue, batch);
    for (size_t i = in_turn ? count : 0; i < all; i++)
        order_job_close(jobs[i]);
}
