/* Load runs: starts one at a time, keeps the results of the last ones, and ends a run on request.
 *
 * Each run has a thread that starts the load test, reads its output and waits for its end (service/runs/load_test.c). The load
 * test dies with that thread. One mutex guards all that this file tells about runs. */
#include "service/runs/runs_impl.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const state_names[] = {
    [RUN_RUNNING] = "running", [RUN_DONE] = "done", [RUN_CANCELLED] = "cancelled", [RUN_FAILED] = "failed"};

struct runs *runs_new(const struct config *config)
{
    struct runs *runs = calloc(1, sizeof *runs);
    if (!runs)
        return NULL;
    runs->config = config;
    pthread_mutex_init(&runs->mutex, NULL);
    pthread_cond_init(&runs->ended, NULL);
    return runs;
}

static void clear(struct run *run)
{
    json_decref(run->order.strategies);
    json_decref(run->load);
    json_decref(run->rows);
    json_decref(run->document);
    free(run->traces);
    free(run->text);
    *run = (struct run){0};
}

void runs_free(struct runs *runs)
{
    if (!runs)
        return;
    for (size_t i = 0; i < RUNS_KEPT; i++)
        clear(&runs->kept[i]);
    pthread_cond_destroy(&runs->ended);
    pthread_mutex_destroy(&runs->mutex);
    free(runs);
}

void run_changed(struct run *run)
{
    free(run->text);
    run->text = NULL;
}

/* The kept run of this id, or NULL; with the mutex held. */
static struct run *find(struct runs *runs, int64_t id)
{
    struct run *run = &runs->kept[(uint64_t)id % RUNS_KEPT];
    return id > 0 && run->id == id ? run : NULL;
}

/* ---- starting and ending ------------------------------------------------------------------------------- */

static void *run_in_thread(void *arg)
{
    struct runs *runs = arg;
    struct run *run = runs->current;
    run_load_test(runs, run);
    pthread_mutex_lock(&runs->mutex);
    if (run->state == RUN_RUNNING)
        run->state = runs->cancelled ? RUN_CANCELLED : run->document ? RUN_DONE : RUN_FAILED;
    if (run->state != RUN_FAILED)
        run->error[0] = '\0';
    run->ended_us = monotonic_us();
    log_line(run->state == RUN_FAILED ? LOG_WARNING : LOG_INFO, "run %lld %s%s%s", (long long)run->id,
             state_names[run->state], run->error[0] ? ": " : "", run->error);
    run_changed(run);
    runs->current = NULL;
    pthread_cond_broadcast(&runs->ended);
    pthread_mutex_unlock(&runs->mutex);
    return NULL;
}

/* Joins the thread of a run that has ended; with the mutex held, which such a thread does not want any more. */
static void collect_thread(struct runs *runs)
{
    if (runs->has_thread && !runs->current) {
        pthread_join(runs->thread, NULL);
        runs->has_thread = false;
    }
}

static void note_time(struct run *run)
{
    struct tm utc;
    time_t now = time(NULL);
    run->started_us = monotonic_us();
    if (gmtime_r(&now, &utc))
        (void)strftime(run->started_at, sizeof run->started_at, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

/* Returns the product's place in the queue for runs, which it takes or keeps; 0: the first. First removes products that
 * have not asked for RUN_PLACE_MS. */
static int keep_place(struct runs *runs, const struct run_order *order)
{
    int64_t product_id = order->product_id;
    int64_t now_us = monotonic_us();
    int kept = 0, found = -1;
    for (int i = 0; i < runs->place_count; i++) {
        struct run_place place = runs->places[i];
        if (place.product_id == product_id)
            place.asked_us = now_us;
        if (now_us - place.asked_us > (int64_t)RUN_PLACE_MS * 1000)
            continue;
        if (place.product_id == product_id)
            found = kept;
        runs->places[kept++] = place;
    }
    runs->place_count = kept;
    if (found < 0) {
        found = kept;
        if (kept < RUN_PLACES_MAX) {
            struct run_place *place = &runs->places[runs->place_count++];
            *place = (struct run_place){product_id, now_us, ""};
            memcpy(place->address, order->address, sizeof place->address);
        }
    }
    return found;
}

static void remove_place(struct runs *runs, int place)
{
    runs->place_count--;
    memmove(&runs->places[place], &runs->places[place + 1],
            (size_t)(runs->place_count - place) * sizeof runs->places[0]);
}

/* Moves the places of an address that has its run behind those of others, so that a client with many products has no more
 * turns than one with a single product. */
static void move_to_end(struct runs *runs, const char *address)
{
    for (int i = 0, left = runs->place_count; address[0] && left > 0; left--) {
        struct run_place place = runs->places[i];
        if (strcmp(place.address, address) != 0) {
            i++;
            continue;
        }
        remove_place(runs, i);
        runs->places[runs->place_count++] = place;
    }
}

enum run_start runs_start(struct runs *runs, const struct run_order *order, uint16_t port, int64_t *ret_id)
{
    pthread_mutex_lock(&runs->mutex);
    enum run_start result = RUN_IMPOSSIBLE;
    int place = keep_place(runs, order);
    if (runs->current) {
        *ret_id = runs->current->id;
        result = RUN_GOES_ON;
    } else if (place > 0) {
        *ret_id = runs->last_id;
        result = RUN_WAITS;
    } else if (!runs->stopping && port != 0) {
        collect_thread(runs);
        int64_t id = runs->last_id + 1;
        struct run *run = &runs->kept[(uint64_t)id % RUNS_KEPT];
        clear(run);
        *run = (struct run){.id = id, .order = *order, .port = port, .rows = json_array()};
        note_time(run);
        runs->cancelled = false;
        runs->current = run;
        runs->has_thread = run->rows && pthread_create(&runs->thread, NULL, run_in_thread, runs) == 0;
        if (runs->has_thread) {
            *ret_id = runs->last_id = id;
            remove_place(runs, 0); /* the product, which was the first of the line, has its run */
            move_to_end(runs, order->address);
            result = RUN_STARTED;
        } else {
            runs->current = NULL;
            run->order.strategies = NULL; /* still the caller's */
            clear(run);
        }
    }
    pthread_mutex_unlock(&runs->mutex);
    return result;
}

bool runs_cancel(struct runs *runs, int64_t id)
{
    pthread_mutex_lock(&runs->mutex);
    struct run *run = find(runs, id);
    if (run && run == runs->current)
        runs->cancelled = true;
    /* The thread sees to it that a child which does not end is killed, so this ends. */
    while (run && run == runs->current && run->id == id)
        pthread_cond_wait(&runs->ended, &runs->mutex);
    pthread_mutex_unlock(&runs->mutex);
    return run != NULL;
}

void runs_end_product(struct runs *runs, int64_t product_id, bool waits)
{
    pthread_mutex_lock(&runs->mutex);
    for (int i = runs->place_count - 1; i >= 0; i--)
        if (runs->places[i].product_id == product_id)
            remove_place(runs, i);
    int64_t id = runs->current && runs->current->order.product_id == product_id ? runs->current->id : 0;
    if (id)
        runs->cancelled = true;
    pthread_mutex_unlock(&runs->mutex);
    if (waits)
        (void)runs_cancel(runs, id);
}

void runs_stop(struct runs *runs)
{
    pthread_mutex_lock(&runs->mutex);
    runs->stopping = runs->cancelled = true;
    while (runs->current)
        pthread_cond_wait(&runs->ended, &runs->mutex);
    collect_thread(runs);
    pthread_mutex_unlock(&runs->mutex);
}

/* ---- telling ------------------------------------------------------------------------------------------- */

static json_t *settings_json(const struct run *run)
{
    const struct run_order *order = &run->order;
    json_t *settings = json_object_get(run->document, "settings");
    if (settings) /* as the load test understood them, which is more than was asked */
        return json_incref(settings);
    return json_pack("{s:O, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "strategies", order->strategies, "instances",
                     (json_int_t)order->instances, "connections", (json_int_t)order->connections, "stock",
                     (json_int_t)order->stock, "quantity", (json_int_t)order->quantity, "requests",
                     (json_int_t)order->requests, "duration_ms", (json_int_t)order->duration_ms, "think_ms",
                     (json_int_t)order->think_ms);
}

static json_t *run_json(const struct run *run)
{
    json_t *machine = json_object_get(run->document, "machine");
    return json_pack("{s:I, s:s, s:I, s:s, s:o, s:O?, s:O, s:O?, s:s?}", "id", (json_int_t)run->id, "state",
                     state_names[run->state], "product_id", (json_int_t)run->order.product_id, "started_at",
                     run->started_at, "settings", settings_json(run), "load", run->load, "rows", run->rows,
                     "machine", machine, "error", run->error[0] ? run->error : NULL);
}

char *runs_text(struct runs *runs, int64_t id)
{
    char *copy = NULL;
    pthread_mutex_lock(&runs->mutex);
    struct run *run = find(runs, id);
    if (run && !run->text) { /* written once for all who ask before it changes */
        json_t *json = run_json(run);
        run->text = json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
        json_decref(json);
    }
    if (run && run->text)
        copy = strdup(run->text);
    pthread_mutex_unlock(&runs->mutex);
    return copy;
}

char *runs_traces(struct runs *runs, int64_t id)
{
    pthread_mutex_lock(&runs->mutex);
    const struct run *run = find(runs, id);
    char *copy = run ? strdup(run->traces ? run->traces : "{\"instances\":[]}") : NULL;
    pthread_mutex_unlock(&runs->mutex);
    return copy;
}

int64_t runs_product(struct runs *runs, int64_t id)
{
    pthread_mutex_lock(&runs->mutex);
    const struct run *run = find(runs, id);
    int64_t product_id = run ? run->order.product_id : 0;
    pthread_mutex_unlock(&runs->mutex);
    return product_id;
}

json_t *runs_summary(struct runs *runs)
{
    pthread_mutex_lock(&runs->mutex);
    const struct run *run = find(runs, runs->last_id);
    json_t *json = run ? json_pack("{s:I, s:s, s:I, s:I, s:o, s:i, s:o?}", "id", (json_int_t)run->id, "state",
                                   state_names[run->state], "product_id", (json_int_t)run->order.product_id,
                                   "started_us", (json_int_t)run->started_us, "ended_us",
                                   run->ended_us ? json_integer(run->ended_us) : json_null(), "strategies",
                                   (int)json_array_size(run->order.strategies), "load",
                                   run->load ? json_deep_copy(run->load) : NULL)
                       : json_null();
    pthread_mutex_unlock(&runs->mutex);
    return json;
}
