/* An open-loop load: every order is sent when its buyer comes, whether or not those before it have been answered. */
#include "loadtest/openloop/open_loop.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/openloop/transfer.h"

#include <stdlib.h>
#include <string.h>

#define CONNECT_MS 15000
#define HEAD_START_US 20000 /* from the last preparation to the start */
#define LOOK_US 50000       /* between two looks at the services and the signals */
#define BURST 16            /* arrivals taken in between two looks at the replies */

struct open_loop {
    const struct open_load *load;
    struct transfers *transfers;
    struct open_result result;
    int64_t start_us;
    size_t arrived;  /* the number of arrivals that have come */
    size_t *waiting; /* a ring: arrivals without a connection, as they came */
    size_t first, waiting_count;
    int64_t looked_us;
};

/* ---- the result ---------------------------------------------------------------------------------------- */

void open_result_free(struct open_result *result)
{
    free(result->latencies);
    free(result->sales);
    *result = (struct open_result){0};
}

const struct hdr *open_latency(const struct open_result *result, size_t phase, enum answer answer)
{
    return &result->latencies[phase * ANSWER_COUNT + (size_t)answer];
}

struct open_counts open_totals(const struct open_result *result)
{
    struct open_counts sum = {0};
    for (size_t phase = 0; phase < PHASES_MAX; phase++) {
        const struct open_counts *counts = &result->phases[phase];
        sum.scheduled += counts->scheduled;
        sum.dropped += counts->dropped;
        sum.timed_out_waiting += counts->timed_out_waiting;
        sum.timed_out_sent += counts->timed_out_sent;
        sum.unanswered += counts->unanswered;
        sum.late += counts->late;
        for (int answer = 0; answer < ANSWER_COUNT; answer++)
            sum.answers[answer] += counts->answers[answer];
    }
    return sum;
}

int64_t open_answered(const struct open_counts *counts)
{
    int64_t sum = 0;
    for (int answer = 0; answer < ANSWER_COUNT; answer++)
        sum += counts->answers[answer];
    return sum;
}

/* ---- the arrivals -------------------------------------------------------------------------------------- */

static const struct arrival *arrival_of(const struct open_loop *loop, size_t i)
{
    return &loop->load->schedule->arrivals[i];
}

static struct open_counts *counts_of(struct open_loop *loop, size_t i)
{
    return &loop->result.phases[arrival_of(loop, i)->phase];
}

static struct open_sales *sales_of(struct open_loop *loop, size_t i)
{
    return &loop->result.sales[arrival_of(loop, i)->product];
}

/* When arrival I comes, and when it is given up, by the monotonic clock. */
static int64_t comes_us(const struct open_loop *loop, size_t i)
{
    return loop->start_us + arrival_of(loop, i)->at_us;
}

static int64_t deadline_us(const struct open_loop *loop, size_t i)
{
    return comes_us(loop, i) + loop->load->timeout_ms * 1000;
}

static void merge_pairs(int64_t counts[OPEN_SLOTS_MAX])
{
    for (size_t i = 0; i < OPEN_SLOTS_MAX / 2; i++)
        counts[i] = counts[2 * i] + counts[2 * i + 1];
    memset(counts + OPEN_SLOTS_MAX / 2, 0, OPEN_SLOTS_MAX / 2 * sizeof counts[0]);
}

/* Counts one event now. If the answers last longer than the slots, the slots become twice as long. */
static void count_now(struct open_loop *loop, int64_t counts[OPEN_SLOTS_MAX])
{
    struct open_series *series = &loop->result.series;
    int64_t since_us = monotonic_us() - loop->start_us;
    while (since_us / series->slot_us >= OPEN_SLOTS_MAX) {
        merge_pairs(series->arrived);
        merge_pairs(series->answered);
        merge_pairs(series->given_up);
        series->slot_us *= 2;
    }
    counts[since_us < 0 ? 0 : since_us / series->slot_us]++;
}

/* ---- what becomes of an arrival ------------------------------------------------------------------------ */

static void on_ended(void *context, const struct transfer_end *end)
{
    struct open_loop *loop = context;
    struct open_counts *counts = counts_of(loop, end->tag);
    struct open_sales *sales = sales_of(loop, end->tag);
    if (!end->answered) {
        counts->unanswered++;
        sales->unclear++;
        count_now(loop, loop->result.series.given_up);
        return;
    }
    counts->answers[end->answer]++;
    count_now(loop, loop->result.series.answered);
    sales->created += end->answer == ANSWER_CREATED || end->answer == ANSWER_ACCEPTED;
    sales->unclear += end->answer == ANSWER_UNKNOWN;
    size_t phase = arrival_of(loop, end->tag)->phase;
    hdr_add(&loop->result.latencies[phase * ANSWER_COUNT + (size_t)end->answer],
            monotonic_us() - comes_us(loop, end->tag));
}

static bool order(struct open_loop *loop, size_t i)
{
    return transfer_start(loop->transfers, i, loop->load->first_product + arrival_of(loop, i)->product,
                          loop->load->quantity);
}

static size_t take_waiting(struct open_loop *loop)
{
    size_t i = loop->waiting[loop->first];
    loop->first = (loop->first + 1) % (size_t)loop->load->backlog;
    loop->waiting_count--;
    return i;
}

/* Arrivals are sent in the order in which they came, so the first of those that wait, and the oldest of those under way,
 * is also the first whose time is over. */
static void give_up(struct open_loop *loop)
{
    int64_t now = monotonic_us();
    while (loop->waiting_count > 0 && deadline_us(loop, loop->waiting[loop->first]) <= now) {
        counts_of(loop, take_waiting(loop))->timed_out_waiting++;
        count_now(loop, loop->result.series.given_up);
    }
    while (transfers_under_way(loop->transfers) > 0) {
        size_t i = transfers_oldest(loop->transfers);
        if (deadline_us(loop, i) > now)
            break;
        counts_of(loop, i)->timed_out_sent++;
        count_now(loop, loop->result.series.given_up);
        sales_of(loop, i)->unclear++;
        transfers_abandon_oldest(loop->transfers);
    }
}

static bool send_waiting(struct open_loop *loop)
{
    while (loop->waiting_count > 0 && transfers_free(loop->transfers))
        if (!order(loop, take_waiting(loop)))
            return false;
    return true;
}

/* Takes in arrivals whose time has come. */
static bool receive(struct open_loop *loop)
{
    for (int burst = 0; burst < BURST && loop->arrived < loop->load->schedule->count; burst++) {
        size_t i = loop->arrived;
        int64_t lag = monotonic_us() - comes_us(loop, i);
        if (lag < 0)
            break;
        loop->arrived++;
        struct open_counts *counts = counts_of(loop, i);
        counts->scheduled++;
        count_now(loop, loop->result.series.arrived);
        counts->late += lag > (int64_t)LATE_MS * 1000;
        loop->result.worst_lag_us = lag > loop->result.worst_lag_us ? lag : loop->result.worst_lag_us;
        if (transfers_free(loop->transfers)) {
            if (!order(loop, i))
                return false;
        } else if (loop->waiting_count < (size_t)loop->load->backlog) {
            size_t end = (loop->first + loop->waiting_count++) % (size_t)loop->load->backlog;
            loop->waiting[end] = i;
            if ((int64_t)loop->waiting_count > loop->result.most_waiting)
                loop->result.most_waiting = (int64_t)loop->waiting_count;
        } else {
            counts->dropped++;
            count_now(loop, loop->result.series.given_up);
        }
        loop->result.behind = (int64_t)loop->waiting_count;
    }
    return true;
}

/* ---- the loop ------------------------------------------------------------------------------------------ */

static bool is_over(const struct open_loop *loop)
{
    return loop->arrived == loop->load->schedule->count && loop->waiting_count == 0 &&
           transfers_under_way(loop->transfers) == 0;
}

/* When there is something to do even if no reply comes. */
static int64_t next_us(const struct open_loop *loop)
{
    int64_t next = loop->looked_us + LOOK_US, other;
    if (loop->arrived < loop->load->schedule->count && (other = comes_us(loop, loop->arrived)) < next)
        next = other;
    if (loop->waiting_count > 0 && (other = deadline_us(loop, loop->waiting[loop->first])) < next)
        next = other;
    if (transfers_under_way(loop->transfers) > 0 &&
        (other = deadline_us(loop, transfers_oldest(loop->transfers))) < next)
        next = other;
    return next;
}

/* Nobody wants the result any more, or a service that the testbed started has died. */
static bool is_hopeless(struct open_loop *loop)
{
    int64_t now = monotonic_us();
    if (interrupted())
        return true;
    if (now - loop->looked_us < LOOK_US)
        return false;
    loop->looked_us = now;
    if (loop->load->progress) {
        struct open_counts totals = open_totals(&loop->result);
        loop->load->progress(loop->load->context, open_answered(&totals), totals.answers[ANSWER_CREATED],
                             (double)(now - loop->start_us) / 1e6);
    }
    return !testbed_alive(loop->load->testbed);
}

static bool carry_out(struct open_loop *loop)
{
    if (!transfers_connect(loop->transfers, CONNECT_MS))
        return false;
    loop->start_us = loop->looked_us = monotonic_us() + HEAD_START_US;
    while (!is_over(loop)) {
        give_up(loop);
        if (!send_waiting(loop) || !receive(loop) || !transfers_work(loop->transfers, next_us(loop)) ||
            is_hopeless(loop))
            return false;
    }
    loop->result.elapsed_s = (double)(monotonic_us() - loop->start_us) / 1e6;
    return true;
}

bool open_load_run(const struct open_load *load, struct open_result *ret_result)
{
    struct open_loop loop = {
        .load = load,
        .result = {.latencies = calloc((size_t)PHASES_MAX * ANSWER_COUNT, sizeof(struct hdr)),
                   .sales = calloc(load->products, sizeof(struct open_sales))},
        .waiting = calloc((size_t)load->backlog, sizeof(size_t)),
    };
    int64_t last_us = load->schedule->count > 0 ? load->schedule->arrivals[load->schedule->count - 1].at_us
                                                : 0;
    loop.result.series.slot_us = last_us / OPEN_SLOTS + 1;
    bool ok = loop.result.latencies && loop.result.sales && loop.waiting;
    if (!ok)
        complain("out of memory");
    loop.transfers = ok ? transfers_open(load->testbed, (size_t)load->connections, on_ended, &loop) : NULL;
    ok = loop.transfers && carry_out(&loop);
    transfers_close(loop.transfers);
    free(loop.waiting);
    if (ok)
        *ret_result = loop.result;
    else
        open_result_free(&loop.result);
    return ok;
}
