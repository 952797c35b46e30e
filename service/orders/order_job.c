/* The order job on the HTTP thread, which puts it into the admission queue. A worker takes it out (place_orders.c). */
#include "service/orders/order_job.h"

#include "service/http/problem.h"

#include <stdlib.h>

void order_job_close(struct order_job *job)
{
    if (job->x)
        http_finish(job->x);
    json_decref(job->body);
    free(job->work);
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
    job->request = *request;
    job->echo = echo;
    job->body = body;
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
                          const struct order_request *request)
{
    queue_job(pipeline, x, request, NULL, &(const struct queued_order){0}, true);
}
