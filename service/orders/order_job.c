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
    free(job);
}

static void queue_job(struct order_pipeline *pipeline, struct exchange *x,
                      const struct order_request *request, json_t *body, const struct queued_order *queued,
                      bool echo)
{
    struct order_job *job = calloc(1, sizeof *job);
    if (!job) {
        reply_problem(x, PROBLEM_INTERNAL_ERROR, NULL, "out of memory");
        http_finish(x);
        json_decref(body);
        return;
    }
    job->queued = *queued;
    job->queued.deadline_us = x->received_us + pipeline->config->order_timeout_ms * 1000;
    job->x = x;
    job->body = body;
    job->request = *request;
    job->echo = echo;
    /* A learner's keys are the learner's alone: another one may use the same. No client's key contains a space. */
    if (request->idempotency_key && x->owns) {
        snprintf(job->key, sizeof job->key, "%lld %s", (long long)x->owns, request->idempotency_key);
        job->request.idempotency_key = job->key;
    }
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

/* In a class a sandbox can go to another learner while orders of the previous learner wait. These must not be placed in
 * the new learner's sale. Refuses them, moves the other orders to the front, and returns the number of the others. */
static size_t refuse_strangers(struct order_job **jobs, size_t count, const struct order_pipeline *pipeline)
{
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        struct order_job *job = jobs[i];
        if (!pipeline->may_order(job->x, job->request.product_id))
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
    else if ((count = refuse_strangers(jobs, all, worker->pipeline)) > 1 &&
             (in_turn = batch->settings.strategy->combining == COMBINE_IN_TURN))
        place_in_turn(jobs, count, batch, worker);
    else if (count > 0)
        place_orders(jobs, count, batch, worker);
    admission_end(worker->pipeline->queue, batch);
    for (size_t i = in_turn ? count : 0; i < all; i++)
        order_job_close(jobs[i]);
}
