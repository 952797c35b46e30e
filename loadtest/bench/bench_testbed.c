/* Runs the benchmark's measurements of the service and of pgbench on a private stack. (loadtest/bench/measure_locks.c measures
 * locks.)
 *
 * Both sides of a ratio start in the same state: no orders, a product table without dead rows, just after a checkpoint. */
#include "loadtest/bench/bench_testbed.h"

#include "base/clock.h"
#include "loadtest/bench/perf.h"
#include "loadtest/bench/pgbench.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/client/class_pages.h"
#include "loadtest/load/measure.h"
#include "loadtest/load/wrk.h"
#include "loadtest/testbed/paths.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATABASE_US INT64_C(60000000)
#define TEXT_MAX 65536
#define PATIENCE_MS 60000
#define WARM_UP_ORDERS 200 /* connects every worker and prepares its statements */
#define WRK_EXTRA_MS 60000
#define END_MS 60000    /* for a service to exit after SIGTERM */
#define MEMORY_ORDERS 5 /* over each connection, so that what fills with use is full */

/* ---- the database --------------------------------------------------------------------------------------------- */

static bool database_failed(struct bench_testbed *bench)
{
    if (!interrupted())
        complain("database: %s", db_error(bench->db));
    return false;
}

static bool database_ready(struct bench_testbed *bench)
{
    int64_t deadline = monotonic_us() + DATABASE_US;
    db_set_deadline(bench->db, deadline, deadline);
    return db_ready(bench->db) == DB_OK;
}

static bool run_sql(struct bench_testbed *bench, const char *sql)
{
    return (database_ready(bench) && db_run_script(bench->db, sql) == DB_OK) || database_failed(bench);
}

static bool refresh(struct bench_testbed *bench, int64_t stock)
{
    char sql[400];
    if (bench->earlier.wanted > 0)
        return earlier_orders_refresh(bench->db, &bench->earlier, SPREAD_FIRST, SPREAD_PRODUCTS, stock) ||
               database_failed(bench);
    bench->earlier.inserted = 0;
    snprintf(sql, sizeof sql,
             "TRUNCATE order_item, order_rejected, orders; UPDATE product SET count = %" PRId64
             ", initial_count = %" PRId64 ", version = 0, stock_kind = 'counter', refuse_negative = false",
             stock, stock);
    return run_sql(bench, sql) && run_sql(bench, "VACUUM (FULL, ANALYZE) product") &&
           run_sql(bench, "CHECKPOINT");
}

struct totals {
    int64_t orders, sold, missing; /* rows; units in them; units that the stock lacks */
};

/* Reads the sums of the audit over all products. */
static bool read_totals(struct bench_testbed *bench, struct totals *ret_totals)
{
    static const struct statement ST_TOTALS = {
        "bench_totals",
        "SELECT count(*), coalesce(sum(purchase_num), 0), (SELECT sum(initial_count - count) FROM product) FROM order_item",
        0};
    AUTO_RESULT row = NULL;
    if (!database_ready(bench) || db_run(bench->db, &ST_TOTALS, NULL, &row) != DB_OK)
        return database_failed(bench);
    return parse_number(PQgetvalue(row, 0, 0), &ret_totals->orders) &&
           parse_number(PQgetvalue(row, 0, 1), &ret_totals->sold) &&
           parse_number(PQgetvalue(row, 0, 2), &ret_totals->missing);
}

/* Checks that the database has exactly the TOLD orders that WHO (for people) got as created, and that the stock is smaller by
 * exactly their units. */
static bool books_are_right(struct bench_testbed *bench, const char *who, int64_t told)
{
    struct totals totals;
    if (!read_totals(bench, &totals))
        return false;
    totals.orders -= bench->earlier.inserted;
    if (totals.orders == told && totals.sold == totals.missing)
        return true;
    bench->broken = true;
    complain("%s got %" PRId64 " acknowledged orders, but the database has %" PRId64 " with %" PRId64
             " units, and %" PRId64 " units are missing from the stock",
             who, told, totals.orders, totals.sold, totals.missing);
    return false;
}

/* ---- opening and closing -------------------------------------------------------------------------------------- */

static bool make_products(struct bench_testbed *bench)
{
    char sql[400];
    int64_t last = SPREAD_FIRST + (bench->products ? bench->products : SPREAD_PRODUCTS) - 1;
    snprintf(sql, sizeof sql,
             "INSERT INTO product (id, name, price, count, initial_count, created_by, updated_by)"
             "SELECT id, 'Benchmark', 19.90, 0, 0, 'bench', 'bench' FROM generate_series(%d, %" PRId64
             ") AS id",
             SPREAD_FIRST, last);
    /* The first call that needs the schema makes it. */
    if (!service_client_reset(bench->base.clients[0], HOT_PRODUCT, 0, "counter"))
        return service_client_failed(bench->base.clients[0]);
    return run_sql(bench, sql);
}

bool bench_testbed_open(struct bench_testbed *bench)
{
    struct testbed_settings settings = TESTBED_DEFAULTS;
    settings.instances = bench->has_shop ? 1 : 0;
    settings.strategies = bench->locks; /* which their strategies are called after */
    if (!testbed_open(&settings, &bench->base))
        return false;
    bool well = true;
    lock_configure(&bench->base.addresses);
    if (bench->has_shop) {
        bench->db = db_new(bench->base.addresses.database_url, "oversell bench");
        well = bench->db && make_products(bench);
    }
    if (!well)
        bench_testbed_close(bench);
    return well;
}

void bench_testbed_close(struct bench_testbed *bench)
{
    db_free(bench->db);
    bench->db = NULL;
    testbed_close(&bench->base);
}

/* ---- the service ---------------------------------------------------------------------------------------------- */

/* Starts a separate service for one measurement, so that nothing of an earlier measurement is left in its memory. */
static bool open_service(const struct bench_testbed *bench, int64_t workers, const char *strategy,
                         bool classroom, struct testbed *ret_testbed)
{
    const struct testbed_settings settings = {.instances = 1,
                                              .classroom = classroom,
                                              .workers = workers ? workers : bench->workers,
                                              .servers = "environment",
                                              .addresses = &bench->base.addresses};
    if (!testbed_open(&settings, ret_testbed))
        return false;
    if (!strategy ||
        service_client_switch(ret_testbed->clients[0], 0, strategy, 0, SAME_LOCK_WAIT, SAME_IN_TURN))
        return true;
    (void)service_client_failed(ret_testbed->clients[0]);
    testbed_close(ret_testbed);
    return false;
}

static void show_load(void *context, int64_t answers, int64_t created, double elapsed_s)
{
    struct bench_testbed *bench = context;
    (void)created;
    char detail[64];
    snprintf(detail, sizeof detail, ": %" PRId64 " answers", answers);
    progress_update(bench->progress, elapsed_s / (double)bench->seconds, detail);
}

static int64_t counted_answers(const struct answers *answers, enum counted counted)
{
    switch (counted) {
    case COUNT_CREATED: return answers->created;
    case COUNT_SOLD_OUT: return answers->sold_out;
    case COUNT_ECHOED: break;
    }
    return answers->other; /* 200 is none of an order's answers */
}

static double answers_per_s(const struct load_result *result, enum counted counted)
{
    if (counted == COUNT_CREATED)
        return (double)result->window_created / result->window_s;
    return result->elapsed_s > 0 ? (double)counted_answers(&result->answers, counted) / result->elapsed_s : 0;
}

/* Waits until all accepted orders are written, and checks that stock and orders balance. */
static bool await_written(struct bench_testbed *bench, struct testbed *testbed, int64_t product)
{
    struct books books;
    int64_t begun_us = monotonic_us();
    if (!settled_books(testbed, product, &books))
        return false;
    bench->written_s = (double)(monotonic_us() - begun_us) / 1e6;
    if (books.balanced)
        return true;
    bench->broken = true;
    complain("the stock is not correct: %" PRId64 " sold and %" PRId64 " left of %" PRId64, books.sold,
             books.left, books.initial);
    return false;
}

/* Starts a wrk that behaves like the open pages of LOAD; child_stop ends it. */
static bool open_pages(const struct testbed *testbed, const struct service_load *load,
                       struct child *ret_child)
{
    char script[PATH_MAX], connections[24], product_env[48], learners_env[CLASS_PAGES_SIZE];
    if (!path_of(PATH_PAGES_LUA, script) ||
        !class_pages_join(testbed->clients[0], load->learners, learners_env))
        return false;
    int64_t board = load->learners > 0 ? 1 : 0;
    snprintf(connections, sizeof connections, "%" PRId64, load->pages + load->learners + board);
    snprintf(product_env, sizeof product_env, "PAGES_PRODUCT=%" PRId64, load->first);
    const struct child_plan plan = {
        .argv = (const char *[]){"wrk", "--threads", "1", "--connections", connections, "--duration", "24h",
                                 "--script", script, service_client_url(testbed->clients[0]), NULL},
        .env = (const char *[]){product_env, learners_env, NULL},
        .death_signal = SIGKILL,
    };
    if (child_start(&plan, ret_child))
        return true;
    complain("cannot start wrk: %s", strerror(errno));
    return false;
}

/* The first orders of this load, which are not measured. */
static struct load warm_up_of(const struct bench_testbed *bench, struct testbed *testbed,
                              const struct service_load *load)
{
    return (struct load){
        .testbed = testbed,
        .path = load->path,
        .connections = load->connections ? load->connections : bench->connections,
        .quantity = 1,
        .product = load->first,
        .products = load->products,
        .requests = WARM_UP_ORDERS,
        .patience_ms = PATIENCE_MS,
    };
}

static bool drive(struct bench_testbed *bench, struct testbed *testbed, const struct service_load *load,
                  double *ret_per_s)
{
    struct load wrk = warm_up_of(bench, testbed, load);
    struct load_result warm_up, result;
    struct child recorder = {0}, pages = {0};
    if (!load_run(&wrk, &warm_up) || (load->pages + load->learners > 0 && !open_pages(testbed, load, &pages)))
        return false;
    wrk.requests = 0;
    wrk.window_ms = load->seconds * 1000;
    wrk.progress = show_load;
    wrk.context = bench;
    const char *profile = load->path ? NULL : bench->profile;
    if (profile && !profile_start(testbed->services[0].pid, testbed->dir, &recorder)) {
        child_stop(&pages, 0);
        return false;
    }
    struct scrape before, after, gained;
    bool counts = load->strategy && !load->path;
    bool ran = (!counts || scrape_all(testbed, load->strategy, &before)) && load_run(&wrk, &result) &&
               (!counts || scrape_all(testbed, load->strategy, &after));
    child_stop(&pages, 0);
    if (profile)
        ran = profile_end(&recorder, testbed->dir, profile) && ran;
    if (!ran)
        return false;

    if (counts) {
        scrape_difference(&before, &after, &gained);
        bench->created = gained.created;
    }
    bench->refused = load->may_refuse ? result.answers.busy : 0;
    int64_t others = result.answers.requests - counted_answers(&result.answers, load->counted) -
                     bench->refused;
    if (others > 0) {
        bench->broken = true;
        complain("%" PRId64 " of %" PRId64 " answers to %s were not the expected ones", others,
                 result.answers.requests, load->path ? load->path : "/orders");
        return false;
    }
    *ret_per_s = answers_per_s(&result, load->counted);
    if (load->kind && !await_written(bench, testbed, load->first))
        return false;
    return books_are_right(bench, "wrk", warm_up.answers.created + result.answers.created);
}

bool measure_service(struct bench_testbed *bench, const struct service_load *load, double *ret_per_s)
{
    struct testbed testbed;
    progress_label(bench->progress, "the service, %s", load->path ? load->path : load->strategy);
    if (!refresh(bench, load->stock) ||
        !open_service(bench, load->workers, load->strategy, load->classroom, &testbed))
        return false;
    bool well = (!load->kind ||
                 service_client_reset(testbed.clients[0], load->first, load->stock, load->kind) ||
                 service_client_failed(testbed.clients[0])) &&
                drive(bench, &testbed, load, ret_per_s);
    testbed_close(&testbed);
    progress_step_done(bench->progress);
    return well;
}

/* ---- what an order calls --------------------------------------------------------------------------------------- */

/* Sends ORDERS orders and counts the system calls and round trips of the service meanwhile. */
static bool count_calls(struct bench_testbed *bench, struct testbed *testbed, const struct service_load *load,
                        int64_t orders, struct order_calls *ret_calls)
{
    struct load wrk = warm_up_of(bench, testbed, load);
    struct load_result result;
    struct child counter = {0};
    struct scrape before, after, gained;
    int64_t system_calls;
    wrk.requests = orders;
    if (!scrape_all(testbed, load->strategy, &before) ||
        !calls_start(testbed->services[0].pid, testbed->dir, &counter))
        return false;
    bool ran = load_run(&wrk, &result);
    ran = calls_end(&counter, testbed->dir, &system_calls) && ran;
    if (!ran || !scrape_all(testbed, load->strategy, &after))
        return false;
    scrape_difference(&before, &after, &gained);
    ret_calls->system_calls = (double)system_calls / (double)orders;
    ret_calls->round_trips = gained.round_trips / (double)orders;
    return true;
}

/* Starts a service, sells the warm-up and ORDERS more orders, stops the service, and reads how often it allocated in all. */
static bool one_life(struct bench_testbed *bench, const struct service_load *load, int64_t orders,
                     struct order_calls *ret_calls, int64_t *ret_allocations)
{
    struct testbed testbed;
    struct load_result warm_up;
    char log[PATH_MAX + 24];
    if (!refresh(bench, load->stock) || !allocations_count_begin())
        return false;
    bool opened = open_service(bench, load->workers, load->strategy, false, &testbed);
    allocations_count_end();
    if (!opened)
        return false;
    const struct load wrk = warm_up_of(bench, &testbed, load);
    bool well = load_run(&wrk, &warm_up) &&
                (orders == 0 || count_calls(bench, &testbed, load, orders, ret_calls));
    child_stop(&testbed.services[0], END_MS);
    snprintf(log, sizeof log, "%s/service-1.log", testbed.dir);
    well = well && allocations_read(log, ret_allocations);
    testbed_close(&testbed);
    return well && books_are_right(bench, "wrk", WARM_UP_ORDERS + orders);
}

bool measure_calls(struct bench_testbed *bench, const struct service_load *load, int64_t orders,
                   struct order_calls *ret_calls)
{
    int64_t before, all;
    progress_label(bench->progress, "the service, %s: its calls", load->strategy);
    if (!calls_countable(bench->unavailable) || !one_life(bench, load, 0, ret_calls, &before) ||
        !one_life(bench, load, orders, ret_calls, &all))
        return false;
    ret_calls->allocations = (double)(all - before) / (double)orders;
    progress_step_done(bench->progress);
    return true;
}

bool measure_get(struct bench_testbed *bench, const char *path, double *ret_per_s)
{
    struct testbed testbed;
    char url[300], seconds[24], connections[24];
    progress_label(bench->progress, "the service, GET %s", path);
    if (!refresh(bench, 0) || !open_service(bench, 0, NULL, false, &testbed))
        return false;
    snprintf(url, sizeof url, "%s%s", service_client_url(testbed.clients[0]), path);
    snprintf(seconds, sizeof seconds, "%" PRId64 "s", bench->seconds);
    snprintf(connections, sizeof connections, "%" PRId64, bench->connections);
    const struct child_plan plan = {
        .argv = (const char *[]){"wrk", "--threads", "1", "--connections", connections, "--duration", seconds,
                                 url, NULL},
        .death_signal = SIGKILL,
    };
    char *report = child_output(plan, bench->seconds * 1000 + WRK_EXTRA_MS, TEXT_MAX);
    testbed_close(&testbed);
    const char *rate = report ? strstr(report, "Requests/sec:") : NULL;
    bool well = rate && !strstr(report, "Non-2xx") && sscanf(rate, "Requests/sec: %lf", ret_per_s) == 1;
    if (!well && !interrupted())
        complain("wrk failed with GET %s%s%s", path, report ? ":\n" : "", report ? report : "");
    free(report);
    progress_step_done(bench->progress);
    return well;
}

/* ---- pgbench -------------------------------------------------------------------------------------------------- */

bool measure_pgbench(struct bench_testbed *bench, const struct script *script, int64_t first,
                     int64_t products, int64_t stock, int64_t clients, int64_t seconds, double *ret_per_s)
{
    const struct pgbench_run run = {
        .script = script,
        .database_url = bench->base.addresses.database_url,
        .dir = bench->base.dir,
        .instance = "service-1",
        .first = first,
        .products = products,
        .clients = clients,
        .seconds = seconds,
    };
    struct pgbench_result result;
    progress_label(bench->progress, "pgbench, %s, %" PRId64 " clients", script->strategy, clients);
    if (!refresh(bench, stock) || !pgbench_run(&run, &result) ||
        !books_are_right(bench, "pgbench", stock > 0 ? result.transactions * script->orders : 0))
        return false;
    *ret_per_s = result.per_s * (double)script->orders;
    progress_step_done(bench->progress);
    return true;
}

/* ---- many connections ------------------------------------------------------------------------------------------ */

bool measure_memory(struct bench_testbed *bench, int64_t connections, double *ret_mib)
{
    struct testbed testbed;
    progress_label(bench->progress, "the service, %" PRId64 " connections open", connections);
    if (!refresh(bench, AMPLE_STOCK) || !open_service(bench, 0, NULL, false, &testbed))
        return false;
    bool well = memory_with_connections(service_client_url(testbed.clients[0]), testbed.services[0].pid,
                                        HOT_PRODUCT, connections, MEMORY_ORDERS, ret_mib) &&
                books_are_right(bench, "the client", connections * MEMORY_ORDERS);
    testbed_close(&testbed);
    progress_step_done(bench->progress);
    return well;
}

bool measure_latencies(struct bench_testbed *bench, const struct service_load *load,
                       struct latencies *ret_latencies)
{
    struct testbed testbed;
    progress_label(bench->progress, "the service, %s: its latencies", load->strategy);
    if (!refresh(bench, load->stock) || !open_service(bench, load->workers, load->strategy, false, &testbed))
        return false;
    bool well = latencies_with_connections(service_client_url(testbed.clients[0]), load->first,
                                           load->connections, load->seconds * 1000, ret_latencies) &&
                books_are_right(bench, "the client", ret_latencies->orders);
    testbed_close(&testbed);
    progress_step_done(bench->progress);
    return well;
}
