/* Counters and histograms of orders, by strategy and outcome. */
#include "service/orders/metrics.h"

#include "base/histogram.h"

#include <stdatomic.h>
#include <stddef.h>

static struct strategy_metrics {
    atomic_ullong outcomes[OUTCOME_COUNT];
    atomic_ullong tries, round_trips, lost_after_commit, lock_round_trips, wake_ups, batches, batched;
    struct histogram order[OUTCOME_COUNT];
    struct histogram lock_wait, lock_held;
} metrics[STRATEGIES_MAX];

void metrics_order(const struct strategy *strategy, enum outcome outcome, int64_t us, int tries,
                   uint64_t round_trips)
{
    size_t i = strategy_index(strategy);
    atomic_fetch_add_explicit(&metrics[i].outcomes[outcome], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&metrics[i].tries, (unsigned long long)tries, memory_order_relaxed);
    atomic_fetch_add_explicit(&metrics[i].round_trips, round_trips, memory_order_relaxed);
    histogram_add(&metrics[i].order[outcome], us);
}

void metrics_lock_wait(const struct strategy *strategy, int64_t us)
{
    histogram_add(&metrics[strategy_index(strategy)].lock_wait, us);
}

void metrics_lock_held(const struct strategy *strategy, int64_t us)
{
    histogram_add(&metrics[strategy_index(strategy)].lock_held, us);
}

void metrics_lock_work(const struct strategy *strategy, uint64_t round_trips, uint64_t wake_ups)
{
    size_t i = strategy_index(strategy);
    atomic_fetch_add_explicit(&metrics[i].lock_round_trips, round_trips, memory_order_relaxed);
    atomic_fetch_add_explicit(&metrics[i].wake_ups, wake_ups, memory_order_relaxed);
}

void metrics_batch(const struct strategy *strategy, size_t count)
{
    size_t i = strategy_index(strategy);
    atomic_fetch_add_explicit(&metrics[i].batches, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&metrics[i].batched, count, memory_order_relaxed);
}

void metrics_lock_lost_after_commit(const struct strategy *strategy)
{
    atomic_fetch_add_explicit(&metrics[strategy_index(strategy)].lost_after_commit, 1, memory_order_relaxed);
}

static void print_histogram(FILE *to, const char *name, const char *labels, struct histogram *h)
{
    unsigned long long count = atomic_load(&h->count), seen = 0;
    if (count == 0)
        return;
    for (int i = 0; i < HISTOGRAM_BUCKETS - 1; i++) {
        unsigned long long here = atomic_load(&h->buckets[i]);
        seen += here;
        if (here > 0)
            fprintf(to, "%s_bucket{%s,le=\"%.6f\"} %llu\n", name, labels, (double)histogram_upper_us(i) / 1e6,
                    seen);
    }
    seen += atomic_load(&h->buckets[HISTOGRAM_BUCKETS - 1]);
    fprintf(to, "%s_bucket{%s,le=\"+Inf\"} %llu\n", name, labels, seen);
    fprintf(to, "%s_sum{%s} %.6f\n", name, labels, (double)atomic_load(&h->sum_us) / 1e6);
    fprintf(to, "%s_count{%s} %llu\n", name, labels, seen);
}

static void print_head(FILE *to, const char *name, const char *type, const char *help)
{
    fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_lock_histograms(FILE *to, const char *name, const char *help, bool held)
{
    print_head(to, name, "histogram", help);
    for (size_t i = 0; i < strategy_count; i++) {
        char labels[80];
        snprintf(labels, sizeof labels, "strategy=\"%s\"", strategies[i].name);
        print_histogram(to, name, labels, held ? &metrics[i].lock_held : &metrics[i].lock_wait);
    }
}

static void print_counter(FILE *to, const char *name, const char *help, size_t offset)
{
    print_head(to, name, "counter", help);
    for (size_t i = 0; i < strategy_count; i++) {
        atomic_ullong *counter = (atomic_ullong *)((char *)&metrics[i] + offset);
        fprintf(to, "%s{strategy=\"%s\"} %llu\n", name, strategies[i].name, atomic_load(counter));
    }
}

void metrics_print(FILE *to)
{
    print_head(to, "oversell_orders_total", "counter", "Orders that have ended, by strategy and outcome.");
    for (size_t i = 0; i < strategy_count; i++)
        for (int o = 0; o < OUTCOME_COUNT; o++)
            if (o == ORDER_CREATED || atomic_load(&metrics[i].outcomes[o]) > 0)
                fprintf(to, "oversell_orders_total{strategy=\"%s\",outcome=\"%s\"} %llu\n",
                        strategies[i].name, outcome_name((enum outcome)o),
                        atomic_load(&metrics[i].outcomes[o]));
    print_counter(to, "oversell_order_tries_total",
                  "Tries of orders; more than orders where some were retried.",
                  offsetof(struct strategy_metrics, tries));
    print_counter(to, "oversell_db_round_trips_total", "Round trips to PostgreSQL for orders.",
                  offsetof(struct strategy_metrics, round_trips));
    print_counter(to, "oversell_batches_total",
                  "Batches of a strategy that combines orders; one order alone is a batch, too.",
                  offsetof(struct strategy_metrics, batches));
    print_counter(to, "oversell_batch_orders_total",
                  "Orders in those batches: divided by their number, how many shared a transaction.",
                  offsetof(struct strategy_metrics, batched));
    print_counter(to, "oversell_lock_lost_after_commit_total",
                  "Orders that stand although their lock was found lost after COMMIT.",
                  offsetof(struct strategy_metrics, lost_after_commit));
    print_counter(to, "oversell_lock_round_trips_total", "Requests to lock servers for orders.",
                  offsetof(struct strategy_metrics, lock_round_trips));
    print_counter(to, "oversell_lock_wake_ups_total",
                  "How often an order that waited for its lock was woken.",
                  offsetof(struct strategy_metrics, wake_ups));
    print_head(to, "oversell_order_seconds", "histogram", "From an order's arrival to its answer.");
    for (size_t i = 0; i < strategy_count; i++)
        for (int o = 0; o < OUTCOME_COUNT; o++) {
            char labels[120];
            snprintf(labels, sizeof labels, "strategy=\"%s\",outcome=\"%s\"", strategies[i].name,
                     outcome_name((enum outcome)o));
            print_histogram(to, "oversell_order_seconds", labels, &metrics[i].order[o]);
        }
    print_lock_histograms(to, "oversell_lock_wait_seconds", "How long orders waited for their lock.", false);
    print_lock_histograms(to, "oversell_lock_held_seconds", "How long orders held their lock.", true);
}
