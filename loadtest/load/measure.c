/* Puts one strategy under load: sells the stock out once, then sells at full speed, and reads the audit after each. */
#include "loadtest/load/measure.h"

#include "base/clock.h"
#include "db/stock/kinds.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/cli/wait_note.h"
#include "loadtest/load/finding.h"
#include "loadtest/report/events.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUESTS_PER_SALE 4
#define SETTLED 512            /* consecutive "sold out" answers that end a sell-out */
#define HASTY_MS 20            /* lock wait in the sale of pairs, so short that some orders time out */
#define STUCK_MS 30000         /* a client stops after it got only retryable refusals for this time */
#define AMPLE_STOCK 1000000000 /* more than a throughput phase can sell */
#define SETTLE_MS 60000   /* after the last answer: longest time without progress of the orders in flight */
#define SETTLE_POLL_MS 10 /* between two looks, or … */
#define SETTLE_SHARE 8    /* … this many times what the look took: a look delays the orders in progress */

/* Tried in turn, in ms, where plain speed does not catch a flaw. */
static const int64_t THINK_LADDER[] = {2, 10, 30};

#define LADDER_STEPS (sizeof THINK_LADDER / sizeof THINK_LADDER[0])

/* ---- the subject --------------------------------------------------------------------------------------- */

/* One name, several in one text, or an array of names; null for none. */
static bool read_shown_by(const json_t *value, unsigned *ret_bits)
{
    size_t i;
    json_t *item;
    unsigned bits = 0, more;
    if (json_is_string(value))
        return shown_by_parse(json_string_value(value), ret_bits);
    if (value && !json_is_null(value) && !json_is_array(value))
        return false;
    json_array_foreach(value, i, item) {
        if (!json_is_string(item) || !shown_by_parse(json_string_value(item), &more))
            return false;
        bits |= more;
    }
    *ret_bits = bits;
    return true;
}

bool subject_read(const json_t *strategy, struct subject *ret_subject)
{
    const json_t *available = json_object_get(strategy, "available");
    const char *kind = json_string_value(json_object_get(strategy, "stock_kind"));
    enum stock_kind known;
    struct subject subject = {
        .cells = strategy,
        .name = json_string_value(json_object_get(strategy, "name")),
        .tries = json_integer_value(json_object_get(strategy, "max_tries")),
        .lock = json_string_value(json_object_get(json_object_get(strategy, "lock"), "name")),
        .available = !available || json_is_true(available),
        .reason = json_string_value(json_object_get(strategy, "reason")),
        .kind = kind ? kind : "counter",
        .most = kind && stock_kind_find(kind, &known) ? stock_kinds[known].most : STOCK_MAX,
    };
    if (!subject.name ||
        !guarantee_parse(json_string_value(json_object_get(strategy, "guarantee")), &subject.guarantee) ||
        !read_shown_by(json_object_get(strategy, "shown_by"), &subject.shown_by)) {
        complain("cannot read a strategy of the service: %s", subject.name ? subject.name : "it has no name");
        return false;
    }
    *ret_subject = subject;
    return true;
}

void subject_fit(struct subject *subject, const struct plan *plan)
{
    if (!subject->available || !plan->sell_out || plan->stock <= subject->most)
        return;
    subject->available = false;
    subject->reason = "--stock is more than a product of this kind can have: use a smaller --stock";
}

int64_t plan_switched(const struct plan *plan)
{
    return strcmp(plan->switched, "product") == 0 ? plan->product : 0;
}

int64_t plan_requests(const struct plan *plan)
{
    if (plan->requests > 0)
        return plan->requests;
    int64_t sales = (plan->stock + plan->quantity - 1) / plan->quantity;
    int64_t requests = REQUESTS_PER_SALE * sales;
    /* Every connection orders more than once, or orders would hardly meet. */
    return requests > REQUESTS_PER_SALE * plan->connections ? requests
                                                            : REQUESTS_PER_SALE * plan->connections;
}

/* ---- a phase ------------------------------------------------------------------------------------------- */

bool scrape_all(struct testbed *testbed, const char *strategy, struct scrape *ret_sum)
{
    memset(ret_sum, 0, sizeof *ret_sum);
    for (size_t i = 0; i < testbed->count; i++) {
        char *text = service_client_metrics(testbed->clients[i]);
        if (!text)
            return service_client_failed(testbed->clients[i]);
        bool ok = scrape_add(text, strategy, ret_sum);
        free(text);
        if (!ok) {
            complain("cannot read the metrics of %s", service_client_url(testbed->clients[i]));
            return false;
        }
    }
    return true;
}

bool settled_books(struct testbed *testbed, int64_t product, struct books *ret_books)
{
    int64_t end = monotonic_us() + (int64_t)SETTLE_MS * 1000, least = INT64_MAX;
    struct wait_note note = {0};
    for (size_t i = 0; i < testbed->count;) {
        int64_t looked_us = monotonic_us();
        if (!service_client_audit(testbed->clients[i], product, ret_books))
            return service_client_failed(testbed->clients[i]);
        if (ret_books->in_flight < least) {
            least = ret_books->in_flight;
            end = monotonic_us() + (int64_t)SETTLE_MS * 1000;
        }
        if (ret_books->in_flight == 0) {
            i++;
        } else if (monotonic_us() > end) {
            complain("%s still has %" PRId64 " orders in progress", service_client_url(testbed->clients[i]),
                     ret_books->in_flight);
            return false;
        } else {
            wait_note(&note, "%" PRId64 " orders that %s has in progress, at most %d s without progress",
                      ret_books->in_flight, service_client_url(testbed->clients[i]), SETTLE_MS / 1000);
            int64_t share_ms = (monotonic_us() - looked_us) / 1000 * SETTLE_SHARE;
            if (!sleep_unless_interrupted(share_ms > SETTLE_POLL_MS ? share_ms : SETTLE_POLL_MS))
                return false;
        }
    }
    /* Only the last service's books were read after all had come to rest, and those are of one database. */
    return true;
}

bool switch_strategy(struct testbed *testbed, int64_t product, const struct subject *subject,
                     int64_t think_ms, enum in_turn in_turn, const int64_t *lock_waits_ms)
{
    for (size_t i = 0; i < testbed->count; i++)
        if (!service_client_switch(testbed->clients[i], product, subject->name, think_ms,
                                   lock_waits_ms ? lock_waits_ms[i] : SAME_LOCK_WAIT, in_turn))
            return service_client_failed(testbed->clients[i]);
    return true;
}

/* Each service has its own setting. */
static bool read_lock_waits(struct testbed *testbed, int64_t product, int64_t *ret_waits_ms)
{
    for (size_t i = 0; i < testbed->count; i++)
        if (!service_client_lock_wait(testbed->clients[i], product, &ret_waits_ms[i]))
            return service_client_failed(testbed->clients[i]);
    return true;
}

/* Asks whether every service places this strategy's waiting orders in turn. It was told to or not to, but its own limit of orders
 * or a think time also turn it off. */
static bool read_in_turn(struct testbed *testbed, int64_t product, const struct subject *subject,
                         bool *ret_in_turn)
{
    *ret_in_turn = json_is_true(json_object_get(subject->cells, "in_turn"));
    for (size_t i = 0; i < testbed->count; i++) {
        json_auto_t *settings = service_client_strategy(testbed->clients[i], product);
        if (!settings)
            return service_client_failed(testbed->clients[i]);
        *ret_in_turn = *ret_in_turn && json_is_true(json_object_get(settings, "in_turn")) &&
                       json_integer_value(json_object_get(settings, "product_limit")) == 0 &&
                       json_integer_value(json_object_get(settings, "think_ms")) == 0;
    }
    return true;
}

bool set_stock(struct testbed *testbed, const struct subject *subject, int64_t product, int64_t stock)
{
    return service_client_reset(testbed->clients[0], product, stock, subject->kind) ||
           service_client_failed(testbed->clients[0]);
}

int64_t ample_stock(const struct subject *subject)
{
    return subject->most < AMPLE_STOCK ? subject->most : AMPLE_STOCK;
}

/* What is shown while a load runs. */
struct watched {
    struct progress *progress;
    const char *strategy, *phase;
    int64_t requests, window_ms, think_ms;
    int64_t stock, quantity;
    double from, to; /* the share of the strategy's step */
};

static void show_load(void *context, int64_t answers, int64_t created, double elapsed_s)
{
    const struct watched *watched = context;
    char detail[120];
    int64_t sold = created * watched->quantity;
    if (watched->requests > 0)
        snprintf(detail, sizeof detail, ": sold %" PRId64 " of %" PRId64 ", %" PRId64 " oversold", sold,
                 watched->stock, sold > watched->stock ? sold - watched->stock : 0);
    else
        snprintf(detail, sizeof detail, ": %" PRId64 " orders", created);
    progress_count(watched->progress, created);
    double share = watched->requests > 0 ? (double)answers / (double)watched->requests
                                         : elapsed_s * 1000 / (double)watched->window_ms;
    share = watched->from + (watched->to - watched->from) * (share < 1 ? share : 1);
    progress_update(watched->progress, share, detail);
    events_load(&(struct event_load){.strategy = watched->strategy,
                                     .phase = watched->phase,
                                     .think_ms = watched->think_ms,
                                     .step = watched->progress->step,
                                     .steps = watched->progress->steps,
                                     .share = share,
                                     .answers = answers,
                                     .created = created,
                                     .elapsed_s = elapsed_s});
}

/* Places one order with each service, one after the other, while no other order is in progress. An order of the load may have
 * been refused because of its competitors; these orders have none. Those that were, or may have been, created count as the
 * load's. */
static bool make_last_calls(struct testbed *testbed, const struct plan *plan, struct phase *phase)
{
    for (size_t i = 0; i < testbed->count; i++) {
        enum answer answer;
        if (!service_client_order(testbed->clients[i], plan->product, phase->quantity, &answer))
            return service_client_failed(testbed->clients[i]);
        bool created = answer == ANSWER_CREATED || answer == ANSWER_ACCEPTED;
        bool unknown = answer == ANSWER_UNKNOWN; /* there may be an order, which the books count */
        phase->load.answers.requests += created || unknown;
        phase->load.answers.created += created;
        phase->load.answers.errors += unknown;
        phase->load.answers.unknown += unknown;
        phase->last_call[phase->last_calls++] = answer;
    }
    return settled_books(testbed, plan->product, &phase->books);
}

/* An order was refused, and the guarantee covers this run. */
static bool wants_last_calls(const struct testbed *testbed, const struct subject *subject,
                             const struct phase *phase)
{
    const struct answers *answers = &phase->load.answers;
    return phase->sells_out && answers->sold_out + answers->busy > 0 &&
           verdict_promise_covers(subject->guarantee, (int)testbed->count);
}

struct sale {
    int64_t stock, quantity;
    int64_t requests; /* 0: the load lasts as long as the plan says */
    int64_t think_ms;
    bool hasty; /* orders wait for a lock for HASTY_MS only */
};

static bool run_phase(struct testbed *testbed, const struct plan *plan, const struct subject *subject,
                      const struct sale *sale, struct watched *watched, struct phase *ret_phase)
{
    int64_t requests = sale->requests, think_ms = sale->think_ms;
    struct load load = {
        .testbed = testbed,
        .connections = plan->connections,
        .quantity = sale->quantity,
        .product = plan->product,
        .requests = requests,
        .window_ms = requests > 0 ? 0 : plan->duration_ms,
        .settled = requests > 0 ? SETTLED : 0,
        .stuck_ms = requests > 0 ? STUCK_MS : 0,
        .patience_ms = plan->patience_ms,
        .what = subject->name,
        .progress = show_load,
        .context = watched,
    };
    watched->strategy = subject->name;
    watched->phase = requests > 0 ? "sell-out" : "throughput";
    watched->requests = load.requests;
    watched->stock = sale->stock;
    watched->quantity = sale->quantity;
    watched->window_ms = load.window_ms;
    watched->think_ms = think_ms;
    show_load(watched, 0, 0, 0);

    struct scrape before, after;
    struct phase phase = {.ran = true,
                          .sells_out = requests > 0,
                          .hasty = sale->hasty,
                          .stock = sale->stock,
                          .quantity = sale->quantity};
    /* A safe row is shown safe without the help of a queue in front of it; its rate is the one that users get. */
    enum in_turn in_turn = phase.sells_out ? NOT_IN_TURN : IN_TURN;
    int64_t product = plan_switched(plan), waits_ms[INSTANCES_MAX] = {0}, hasty_ms[INSTANCES_MAX];
    for (size_t i = 0; i < INSTANCES_MAX; i++)
        hasty_ms[i] = HASTY_MS;
    if ((phase.hasty && !read_lock_waits(testbed, product, waits_ms)) ||
        !switch_strategy(testbed, product, subject, think_ms, in_turn, phase.hasty ? hasty_ms : NULL) ||
        !read_in_turn(testbed, product, subject, &phase.in_turn) ||
        !set_stock(testbed, subject, plan->product, sale->stock) ||
        !scrape_all(testbed, subject->name, &before) || !load_run(&load, &phase.load) ||
        !settled_books(testbed, plan->product, &phase.books) || !scrape_all(testbed, subject->name, &after) ||
        (phase.hasty && !switch_strategy(testbed, product, subject, think_ms, in_turn, waits_ms)) ||
        (wants_last_calls(testbed, subject, &phase) && !make_last_calls(testbed, plan, &phase)))
        return false;
    scrape_difference(&before, &after, &phase.scrape);
    *ret_phase = phase;
    return true;
}

/* ---- the verdict --------------------------------------------------------------------------------------- */

bool books_match(const struct books *books, int64_t created, int64_t unclear)
{
    return books->orders >= created && books->orders <= created + unclear;
}

bool phase_answers_match(const struct phase *phase)
{
    const struct answers *answers = &phase->load.answers;
    return books_match(&phase->books, answers->created, answers->unknown + answers->unanswered);
}

void add_books(struct evidence *evidence, const struct books *books)
{
    /* From the units themselves: the service that is judged has computed the rest. */
    int64_t drift = books->sold - (books->initial - books->left);
    evidence->mixed |= books->mixed;
    evidence->oversold |= books->oversold > 0 || books->sold > books->initial || drift > 0;
    evidence->books_off |= evidence->oversold || drift != 0 || books->drift != 0 || books->negative > 0 ||
                           !books->balanced;
}

bool measurement_sold_out_early(const struct measurement *measurement)
{
    return measurement->throughput.ran && measurement->throughput.load.answers.sold_out > 0;
}

void measurement_judge(const struct subject *subject, int instances, struct measurement *measurement)
{
    struct evidence evidence = {
        .guarantee = subject->guarantee,
        .shown_by = subject->shown_by,
        .instances = instances,
        .available = subject->available,
    };
    find(&measurement->pairs, subject, &evidence, measurement->finding);
    find(&measurement->sell_out, subject, &evidence, measurement->finding);
    find(&measurement->throughput, subject, &evidence, measurement->finding);
    if (measurement->key_finding[0]) {
        evidence.answers_wrong = true;
        if (!measurement->finding[0])
            snprintf(measurement->finding, FINDING_MAX, "%s", measurement->key_finding);
    }
    measurement->verdict = verdict_of(&evidence);
    if (measurement->verdict != VERDICT_BROKEN)
        measurement->finding[0] = 0;
}

/* Only for strategies whose guarantee covers this run; the main sell-out shows the oversells of the others. */
static bool sell_pairs(struct testbed *testbed, const struct plan *plan, const struct subject *subject,
                       struct watched *watched, struct measurement *measurement)
{
    if (!plan->pairs || !verdict_promise_covers(subject->guarantee, (int)testbed->count))
        return true;
    const struct plan pairs = {
        .connections = plan->connections, .stock = PAIRS_STOCK, .quantity = PAIRS_QUANTITY};
    const struct sale sale = {.stock = pairs.stock,
                              .quantity = pairs.quantity,
                              .requests = plan_requests(&pairs),
                              .think_ms = plan->think_ms,
                              .hasty = true};
    return run_phase(testbed, plan, subject, &sale, watched, &measurement->pairs);
}

static bool sell_out(struct testbed *testbed, const struct plan *plan, const struct subject *subject,
                     struct watched *watched, struct measurement *measurement)
{
    measurement->think_ms = plan->think_ms;
    if (!sell_pairs(testbed, plan, subject, watched, measurement))
        return false;
    for (size_t step = 0;; step++) {
        const struct sale sale = {.stock = plan->stock,
                                  .quantity = plan->quantity,
                                  .requests = plan_requests(plan),
                                  .think_ms = measurement->think_ms};
        if (!run_phase(testbed, plan, subject, &sale, watched, &measurement->sell_out))
            return false;
        /* A lost update that sold nothing too much is worth another try, too. */
        bool should_show = subject->guarantee != GUARANTEE_SAFE &&
                           verdict_flaw_is_shown(subject->shown_by, (int)testbed->count);
        if (!should_show || measurement->sell_out.books.oversold > 0)
            return true;
        while (step < LADDER_STEPS && THINK_LADDER[step] <= measurement->think_ms)
            step++;
        if (step == LADDER_STEPS)
            return true;
        measurement->think_ms = THINK_LADDER[step];
        progress_label(watched->progress, "%s, again with a pause of %" PRId64 " ms", subject->name,
                       measurement->think_ms);
    }
}

static bool throughput(struct testbed *testbed, const struct plan *plan, const struct subject *subject,
                       struct watched *watched, struct measurement *measurement)
{
    const struct sale sale = {
        .stock = ample_stock(subject), .quantity = plan->quantity, .think_ms = plan->think_ms};
    return run_phase(testbed, plan, subject, &sale, watched, &measurement->throughput);
}

/* Repeats a key, with services of our own only: others' products are not ours to change. */
static bool probe_keys(struct testbed *testbed, const struct plan *plan, const struct subject *subject,
                       struct measurement *measurement)
{
    char key[64];
    if (testbed->given > 0 || !plan->sell_out)
        return true;
    snprintf(key, sizeof key, "compare-%.24s-%" PRId64, subject->name, monotonic_us());
    const struct key_probe probe = {
        .kind = subject->kind, .product = plan->product, .other = plan->product + 1, .key = key};
    return switch_strategy(testbed, plan_switched(plan), subject, 0, NOT_IN_TURN, NULL) &&
           (key_probe(testbed->clients[0], &probe, measurement->key_finding) ||
            service_client_failed(testbed->clients[0]));
}

/* The phases that the plan has, in its order. */
static bool run_phases(struct testbed *testbed, const struct plan *plan, const struct subject *subject,
                       struct progress *progress, struct measurement *measurement)
{
    /* How the strategy's time is shared between them; a guess. */
    double selling = !plan->sell_out ? 0 : plan->throughput ? 0.3 : 1;
    struct watched watched = {.progress = progress};
    for (int turn = 0; turn < 2; turn++) {
        bool sells_out = (turn == 0) != plan->sell_out_last;
        if (!(sells_out ? plan->sell_out : plan->throughput))
            continue;
        watched.from = watched.to;
        watched.to += sells_out ? selling : 1 - selling;
        progress_label(progress, "%s, %s", subject->name, sells_out ? "selling out" : "throughput");
        if (!(sells_out ? sell_out : throughput)(testbed, plan, subject, &watched, measurement))
            return false;
    }
    return true;
}

bool measure(struct testbed *testbed, const struct plan *plan, const struct subject *subject,
             struct progress *progress, struct measurement *ret_measurement)
{
    struct measurement measurement = {.think_ms = plan->think_ms};
    if (subject->available && (!probe_keys(testbed, plan, subject, &measurement) ||
                               !run_phases(testbed, plan, subject, progress, &measurement)))
        return false;
    events_traces(testbed, plan->product);
    measurement_judge(subject, (int)testbed->count, &measurement);
    *ret_measurement = measurement;
    return true;
}
