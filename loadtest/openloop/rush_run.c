/* One strategy in a rush: its maximum where that is asked for, then the sale by schedule, and its books. */
#include "loadtest/openloop/rush_run.h"

#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WARM_UP_ORDERS 200 /* connects every worker and prepares its statements */
#define WARM_UP_CONNECTIONS 32
#define PATIENCE_MS 60000
#define STRAGGLERS_MS                                                                                        \
    1000 /* for orders that were given up, and that the service may yet read from a closed socket */

int64_t rush_created(const struct open_counts *counts)
{
    return counts->answers[ANSWER_CREATED] + counts->answers[ANSWER_ACCEPTED];
}

void rush_free(struct rush *rush)
{
    open_result_free(&rush->load);
}

/* ---- the rate ------------------------------------------------------------------------------------------ */

static bool find_maximum(struct testbed *testbed, const struct rush_plan *plan, const struct subject *subject,
                         struct progress *progress, struct rush *rush)
{
    struct plan closed = {
        .throughput = true,
        .switched = "service",
        .connections = plan->connections,
        .quantity = plan->quantity,
        .duration_ms = plan->loop_ms,
        .think_ms = plan->think_ms,
        .product = plan->product,
        .patience_ms = PATIENCE_MS,
    };
    struct measurement measurement;
    if (!measure(testbed, &closed, subject, progress, &measurement))
        return false;
    const struct load_result *load = &measurement.throughput.load;
    rush->maximum = (double)load->window_created / load->window_s;
    memcpy(rush->closed_us, load->latency_us, sizeof rush->closed_us);
    if (rush->maximum * plan->share >= 1)
        return true;
    complain("%s creates only %.1f orders/s in a closed loop, too few for --load: use --rate", subject->name,
             rush->maximum);
    return false;
}

/* The closed loop has warmed the services up where it ran. */
static bool warm_up(struct testbed *testbed, const struct rush_plan *plan, const struct subject *subject)
{
    struct load load = {
        .testbed = testbed,
        .connections = WARM_UP_CONNECTIONS,
        .quantity = plan->quantity,
        .product = plan->product,
        .requests = WARM_UP_ORDERS,
        .patience_ms = PATIENCE_MS,
    };
    struct load_result ignored;
    return switch_strategy(testbed, 0, subject, plan->think_ms, SAME_IN_TURN, NULL) &&
           set_stock(testbed, subject, plan->product, ample_stock(subject)) && load_run(&load, &ignored);
}

/* ---- the stock ----------------------------------------------------------------------------------------- */

/* What each product is given: a number for all, or what is ordered of it until the shape wants it sold out. */
static void allot(const struct rush_plan *plan, const struct subject *subject,
                  const struct schedule *schedule, int64_t *ret_stock)
{
    bool sells_out = plan->stock == 0 && plan->shape->sold_out_at > 0;
    for (int64_t i = 0; i < plan->products; i++)
        ret_stock[i] = plan->stock > 0 ? plan->stock : sells_out ? 0 : ample_stock(subject);
    double until_us = plan->shape->sold_out_at * (double)plan->duration_ms * 1000;
    for (size_t i = 0; sells_out && i < schedule->count; i++)
        if ((double)schedule->arrivals[i].at_us < until_us)
            ret_stock[schedule->arrivals[i].product] += plan->quantity;
}

static bool set_stocks(struct testbed *testbed, const struct rush_plan *plan, const struct subject *subject,
                       const int64_t *stock, int64_t *ret_sum)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < plan->products; i++) {
        if (interrupted() || !set_stock(testbed, subject, plan->product + i, stock[i]))
            return false;
        sum += stock[i];
    }
    *ret_sum = sum;
    return true;
}

/* ---- the books ----------------------------------------------------------------------------------------- */

static void sum_books(struct books *sum, const struct books *books)
{
    sum->initial += books->initial;
    sum->left += books->left;
    sum->sold += books->sold;
    sum->orders += books->orders;
    sum->oversold += books->oversold;
    sum->negative += books->negative;
    if (llabs(books->drift) > llabs(sum->drift)) /* a sum would let two mistakes cancel each other */
        sum->drift = books->drift;
    if (books->has_witness && !sum->has_witness) {
        sum->has_witness = true;
        sum->witness_seen = books->witness_seen;
        sum->witness_orders[0] = books->witness_orders[0];
        sum->witness_orders[1] = books->witness_orders[1];
    }
}

/* Every product's books are held against what its own buyers were told. */
static bool judge(struct testbed *testbed, const struct rush_plan *plan, const struct subject *subject,
                  struct rush *rush)
{
    struct open_counts totals = open_totals(&rush->load);
    struct evidence evidence = {
        .guarantee = subject->guarantee,
        .shown_by =
            SHOWN_BY_NOTHING, /* a rush is a measurement: a flaw that it happens not to show is no failure */
        .instances = (int)testbed->count,
        .available = true,
        .sold_nothing = rush_created(&totals) == 0 && rush->stock >= plan->quantity,
    };
    bool unclear = totals.timed_out_sent + totals.unanswered > 0;
    if (unclear && !sleep_unless_interrupted(STRAGGLERS_MS))
        return false;
    rush->stock_kept = rush->books_kept = rush->answers_kept = true;
    for (int64_t i = 0; i < plan->products; i++) {
        struct books books;
        const struct open_sales *sales = &rush->load.sales[i];
        if (interrupted() || !settled_books(testbed, plan->product + i, &books))
            return false;
        bool match = books_match(&books, sales->created, sales->unclear);
        add_books(&evidence, &books);
        evidence.answers_wrong |= !match;
        rush->answers_kept &= match;
        rush->stock_kept &= books.oversold == 0 && books.negative == 0;
        rush->books_kept &= books.drift == 0;
        sum_books(&rush->books, &books);
    }
    rush->verdict = verdict_of(&evidence);
    return true;
}

/* ---- the sale ------------------------------------------------------------------------------------------ */

struct watched {
    struct progress *progress;
    double seconds;
};

static void show_load(void *context, int64_t answers, int64_t created, double elapsed_s)
{
    const struct watched *watched = context;
    char detail[64];
    snprintf(detail, sizeof detail, ": %" PRId64 " answers, %" PRId64 " orders", answers, created);
    progress_count(watched->progress, created);
    progress_update(watched->progress, elapsed_s / watched->seconds, detail);
}

/* The sale, with flushes of the disk measured where that is known to be the database's: in the private stack. */
static bool run_load(const struct open_load *load, struct rush *rush)
{
    struct flush_probe *probe = NULL;
    if (load->testbed->stack_dir[0] && !(probe = flush_probe_start(load->testbed->dir)))
        return false;
    bool ok = open_load_run(load, &rush->load);
    bool measured = flush_probe_stop(probe, &rush->flushes);
    return ok && measured;
}

static bool sell(struct testbed *testbed, const struct rush_plan *plan, const struct subject *subject,
                 const struct schedule *schedule, struct progress *progress, struct rush *rush)
{
    struct watched watched = {.progress = progress, .seconds = (double)plan->duration_ms / 1e3};
    struct open_load load = {
        .testbed = testbed,
        .schedule = schedule,
        .first_product = plan->product,
        .products = (size_t)plan->products,
        .quantity = plan->quantity,
        .connections = plan->connections,
        .backlog = plan->backlog,
        .timeout_ms = plan->timeout_ms,
        .progress = show_load,
        .context = &watched,
    };
    int64_t *stock = calloc((size_t)plan->products, sizeof *stock);
    if (!stock) {
        complain("out of memory");
        return false;
    }
    allot(plan, subject, schedule, stock);
    progress_label(progress, "%s, the sale", subject->name);
    bool ok = set_stocks(testbed, plan, subject, stock, &rush->stock) && run_load(&load, rush);
    free(stock);
    if (ok && judge(testbed, plan, subject, rush))
        return true;
    rush_free(rush);
    return false;
}

bool rush_run(struct testbed *testbed, const struct rush_plan *plan, const struct subject *subject,
              struct progress *progress, struct rush *ret_rush)
{
    struct rush rush = {
        .ran = subject->available, .rate = (double)plan->rate, .verdict = VERDICT_UNAVAILABLE};
    if (!subject->available) {
        *ret_rush = rush;
        return true;
    }
    if (plan->rate > 0) {
        if (!warm_up(testbed, plan, subject))
            return false;
    } else {
        if (!find_maximum(testbed, plan, subject, progress, &rush))
            return false;
        rush.rate = rush.maximum * plan->share;
    }

    struct schedule_plan when = {
        .shape = plan->shape,
        .rate = rush.rate,
        .duration_ms = plan->duration_ms,
        .products = (size_t)plan->products,
        .zipf = plan->zipf,
        .seed = plan->seed,
    };
    struct schedule schedule;
    if (!schedule_open(&when, &schedule)) {
        complain("not enough memory for %.0f arrivals/s: use a lower rate or a shorter sale", rush.rate);
        return false;
    }
    bool ok = sell(testbed, plan, subject, &schedule, progress, &rush);
    schedule_close(&schedule);
    if (ok)
        *ret_rush = rush;
    return ok;
}
