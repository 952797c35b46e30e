/* The last orders of each worker, kept in a ring and shown as JSON. */
#include "service/orders/trace.h"
#include "base/clock.h"
#include "service/engine/create_order.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* A part of a ring, of orders that were placed or of others. */
struct traces {
    struct trace *kept; /* CAPACITY of them, from the ADDEDth on */
    int capacity;
    uint64_t added;
};

struct trace_ring {
    pthread_mutex_t mutex;
    struct traces parts[2]; /* not placed, placed */
    struct trace memory[];
};

static atomic_uint_fast64_t last_number;

struct trace_ring *trace_ring_new(int capacity)
{
    int others = 1 + capacity / 4;
    struct trace_ring *ring = calloc(1, sizeof *ring + (size_t)(capacity + others) * sizeof ring->memory[0]);
    if (!ring)
        return NULL;
    pthread_mutex_init(&ring->mutex, NULL);
    ring->parts[0] = (struct traces){.kept = ring->memory, .capacity = others};
    ring->parts[1] = (struct traces){.kept = ring->memory + others, .capacity = capacity};
    return ring;
}

void trace_ring_free(struct trace_ring *ring)
{
    if (!ring)
        return;
    pthread_mutex_destroy(&ring->mutex);
    free(ring);
}

void trace_ring_add(struct trace_ring *ring, const struct trace *trace)
{
    pthread_mutex_lock(&ring->mutex);
    struct traces *part = &ring->parts[trace->order_id != 0];
    struct trace *kept = &part->kept[part->added++ % (uint64_t)part->capacity];
    *kept = *trace;
    kept->number = atomic_fetch_add(&last_number, 1) + 1; /* under the mutex: see traces_count */
    pthread_mutex_unlock(&ring->mutex);
}

/* A trace gets its number while its ring's mutex is held. A reader that takes the mutex afterwards finds the trace. */
uint64_t traces_count(void)
{
    return atomic_load(&last_number);
}

static int by_start(const void *a, const void *b)
{
    const struct trace *x = a, *y = b;
    return (x->started_us > y->started_us) - (x->started_us < y->started_us);
}

/* Copies those of a part that are wanted to TO; returns how many. */
static int copy_part(const struct traces *part, const struct trace_query *query, struct trace *to)
{
    int found = 0, kept = part->added < (uint64_t)part->capacity ? (int)part->added : part->capacity;
    for (int i = 0; i < kept; i++)
        if (part->kept[i].number > query->after &&
            (query->product_id == 0 || part->kept[i].product_id == query->product_id))
            to[found++] = part->kept[i];
    return found;
}

/* A sorted copy of the traces that are wanted; *ret_count of them. The caller frees. */
static struct trace *collect(struct trace_ring *const *rings, int count, const struct trace_query *query,
                             int *ret_count)
{
    int room = 1, found = 0;
    for (int i = 0; i < count; i++)
        room += rings[i]->parts[0].capacity + rings[i]->parts[1].capacity;
    struct trace *all = malloc((size_t)room * sizeof *all);
    if (!all)
        return NULL;
    for (int i = 0; i < count; i++) {
        pthread_mutex_lock(&rings[i]->mutex);
        for (int part = 0; part < 2; part++)
            found += copy_part(&rings[i]->parts[part], query, all + found);
        pthread_mutex_unlock(&rings[i]->mutex);
    }
    qsort(all, (size_t)found, sizeof *all, by_start);
    int skipped = found > query->limit ? found - query->limit : 0;
    for (int i = skipped; i < found; i++)
        all[i - skipped] = all[i];
    *ret_count = found - skipped;
    return all;
}

static int kept_steps(const struct trace *t)
{
    return t->step_count < TRACE_STEPS ? t->step_count : TRACE_STEPS;
}

static json_t *value_json(int64_t value)
{
    return value == STEP_NO_VALUE ? json_null() : json_integer(value);
}

static json_t *steps_json(const struct trace *t)
{
    json_t *steps = json_array();
    int64_t begun_us = t->started_us;
    for (int i = 0; i < kept_steps(t); i++) {
        json_t *step = json_pack("{s:s, s:I, s:I, s:o}", "step", step_name(t->steps[i].step), "begin_us",
                                 (json_int_t)begun_us, "end_us", (json_int_t)t->steps[i].at_us, "value",
                                 value_json(t->steps[i].value));
        if (t->steps[i].think_us > 0)
            json_object_set_new(step, "think_us", json_integer(t->steps[i].think_us));
        json_array_append_new(steps, step);
        begun_us = t->steps[i].at_us;
    }
    return steps;
}

/* The step in which the order may have waited for another one's lock in PostgreSQL. */
static json_t *locks_at_json(const struct strategy *strategy)
{
    enum step step = strategy->place == place_in_one_statement ? STEP_COMMIT : strategy->take_stock->locks_at;
    return step ? json_string(step_name(step)) : json_null();
}

json_t *traces_json(struct trace_ring *const *rings, int count, const struct trace_query *query,
                    const char *instance)
{
    int found = 0;
    struct trace *traces = collect(rings, count, query, &found);
    if (!traces)
        return NULL;
    json_t *list = json_array();
    for (int i = 0; i < found; i++) {
        const struct trace *t = &traces[i];
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:i, s:I, s:I, s:o, s:s, s:i, s:o, s:o, s:I, s:I, s:I, s:b, s:o}",
                            "request_id", t->request_id, "strategy", t->strategy->name, "worker", t->worker,
                            "product_id", (json_int_t)t->product_id, "quantity", (json_int_t)t->quantity,
                            "order_id", t->order_id ? json_integer(t->order_id) : json_null(), "outcome",
                            outcome_name(t->outcome), "tries", t->tries, "fence",
                            t->fence ? json_integer(t->fence) : json_null(), "locks_at",
                            locks_at_json(t->strategy), "received_us", (json_int_t)t->received_us,
                            "started_us", (json_int_t)t->started_us, "ended_us", (json_int_t)t->ended_us,
                            "truncated", t->step_count > TRACE_STEPS, "steps", steps_json(t)));
    }
    free(traces);
    return json_pack("{s:s, s:i, s:I, s:o}", "instance", instance, "pid", (int)getpid(), "now_us",
                     (json_int_t)monotonic_us(), "traces", list);
}

/* Names the process (LANE 0) or one of its lanes. */
static json_t *chrome_name(const char *what, int lane, const char *name)
{
    json_t *event = json_pack("{s:s, s:i, s:s, s:{s:s}}", "ph", "M", "pid", (int)getpid(), "name", what,
                              "args", "name", name);
    if (lane > 0)
        json_object_set_new(event, "tid", json_integer(lane));
    return event;
}

/* A span on the worker's lane; spans of one lane nest. */
static json_t *chrome_span(int worker, int64_t from_us, int64_t to_us, const char *category, const char *name,
                           json_t *args)
{
    return json_pack("{s:s, s:i, s:i, s:I, s:I, s:s, s:s, s:o}", "ph", "X", "pid", (int)getpid(), "tid",
                     worker, "ts", (json_int_t)from_us, "dur", (json_int_t)(to_us - from_us), "cat", category,
                     "name", name, "args", args);
}

/* Holding a lock overlaps other lanes, so it is an asynchronous pair. */
static json_t *chrome_hold(const char *phase, int worker, int64_t at_us, const struct trace *t)
{
    return json_pack("{s:s, s:i, s:i, s:I, s:s, s:s, s:s}", "ph", phase, "pid", (int)getpid(), "tid", worker,
                     "ts", (json_int_t)at_us, "cat", "lock", "name", t->strategy->name, "id", t->request_id);
}

/* Ended by what broke, not by what others bought or hold. */
static bool is_fault(enum outcome outcome)
{
    return outcome == ORDER_LOCK_LOST || outcome == ORDER_BACKEND_UNAVAILABLE || outcome == ORDER_UNKNOWN ||
           outcome == ORDER_FAILED;
}

/* A mark at the end of an order that a fault ended. */
static json_t *chrome_fault(int worker, const struct trace *t)
{
    return json_pack("{s:s, s:i, s:i, s:I, s:s, s:s, s:s}", "ph", "i", "pid", (int)getpid(), "tid", worker,
                     "ts", (json_int_t)t->ended_us, "s", "t", "cat", "fault", "name",
                     outcome_name(t->outcome));
}

static void append_chrome_trace(json_t *events, const struct trace *t)
{
    int lane = t->worker + 1; /* 0 means "none" to the viewers */
    json_array_append_new(
        events,
        chrome_span(lane, t->started_us, t->ended_us, "order", t->strategy->name,
                    json_pack("{s:s, s:s, s:I, s:I, s:I}", "request_id", t->request_id, "outcome",
                              outcome_name(t->outcome), "order_id", (json_int_t)t->order_id, "product_id",
                              (json_int_t)t->product_id, "quantity", (json_int_t)t->quantity)));
    int64_t begun_us = t->started_us;
    bool held = false;
    for (int i = 0; i < kept_steps(t); i++) {
        enum step step = t->steps[i].step;
        int64_t at_us = t->steps[i].at_us, value = t->steps[i].value;
        bool is_stock = step == STEP_READ || step == STEP_WRITE || step == STEP_TAKE;
        json_t *args = value == STEP_NO_VALUE
                           ? json_object()
                           : json_pack("{s:I}", is_stock ? "count" : "value", (json_int_t)value);
        json_array_append_new(events, chrome_span(lane, begun_us, at_us, "step", step_name(step), args));
        held = step == STEP_LOCK || (held && step != STEP_UNLOCK);
        if (step == STEP_LOCK || step == STEP_UNLOCK)
            json_array_append_new(events, chrome_hold(step == STEP_LOCK ? "b" : "e", lane, at_us, t));
        if (step == STEP_WRITE || step == STEP_TAKE)
            json_array_append_new(events, json_pack("{s:s, s:i, s:I, s:s, s:{s:I}}", "ph", "C", "pid",
                                                    (int)getpid(), "ts", (json_int_t)at_us, "name", "stock",
                                                    "args", "count", (json_int_t)value));
        begun_us = at_us;
    }
    if (held) /* a lock that ends with its transaction has no separate step for that */
        json_array_append_new(events, chrome_hold("e", lane, t->ended_us, t));
    if (is_fault(t->outcome))
        json_array_append_new(events, chrome_fault(lane, t));
}

json_t *traces_chrome_json(struct trace_ring *const *rings, int count, const struct trace_query *query,
                           const char *instance)
{
    int found = 0;
    struct trace *traces = collect(rings, count, query, &found);
    if (!traces)
        return NULL;
    json_t *events = json_array();
    json_array_append_new(events, chrome_name("process_name", 0, instance));
    for (int i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "worker %d", i);
        json_array_append_new(events, chrome_name("thread_name", i + 1, name));
    }
    for (int i = 0; i < found; i++)
        append_chrome_trace(events, &traces[i]);
    free(traces);
    return json_pack("{s:o}", "traceEvents", events);
}
