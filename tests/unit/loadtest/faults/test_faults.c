/* The parts of `loadtest faults` that need no server: histories, expectations, verdicts, the history, the proxy. */
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "loadtest/faults/checker/sale_history.h"
#include "loadtest/faults/fault.h"
#include "loadtest/faults/row.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- histories ----------------------------------------------------------------------------------------- */

static void a_history_in_order_is_right(void **state)
{
    struct sale overlapping[] = {{8, 20, 60}, {10, 5, 50}, {9, 6, 30}};
    assert_int_equal(history_check(overlapping, 3), 0);
    assert_int_equal(history_check(NULL, 0), 0);
}

static void two_that_saw_the_same_are_found(void **state)
{
    struct sale sales[] = {{10, 0, 10}, {9, 11, 20}, {9, 12, 21}, {8, 30, 40}};
    assert_int_equal(history_check(sales, 4), 1);
}

static void a_sale_that_ended_before_an_earlier_one_began_is_found(void **state)
{
    struct sale sales[] = {{10, 100, 110}, {9, 0, 50}};
    assert_int_equal(history_check(sales, 2), 1);
}

/* ---- expectations and verdicts ------------------------------------------------------------------------- */

static unsigned expected(const char *fault, const char *strategy)
{
    for (size_t i = 0; i < fault_count; i++)
        if (strcmp(faults[i].name, fault) == 0)
            return fault_expected(&faults[i], strategy_find(strategy));
    fail_msg("no fault %s", fault);
    return 0;
}

static void the_table_says_what_the_design_says(void **state)
{
    static const struct {
        const char *fault, *strategy;
        bool caught;
    } ROWS[] = {
        {"pause", "redis-lock", true},
        {"pause", "etcd", true},
        {"pause", "zookeeper", true},
        {"pause", "fence-on-write", true},
        {"pause", "redis-fenced", false},
        {"pause", "select-for-update", false},
        {"pause", "lock-row", false},
        {"kill", "redis-setnx-forever", true},
        {"kill", "redis-lock", false},
        {"lock-backend", "lock-row", true},
        {"redis-restart", "redis-lock", true},
        {"redis-restart", "redlock", false},
        {"redis-restart", "zookeeper", false},
        {"redis-failover", "redis-lock", true},
        {"redis-loses", "redis-stock", true},
        {"redlock-restart", "redlock", true},
        {"redlock-2-down", "redlock", false},
        {"clock-redis", "redis-lock", true},
        {"clock-redis", "redlock", false},
        {"clock-redlock", "redlock", true},
        {"clock-service", "lock-table", true},
        {"clock-service", "shedlock", true},
        {"clock-service", "redis-lock", false},
        {"clock-service", "etcd", false},
        {"lock-test", "etcd", true},
        {"lock-test", "etcd-fenced", false},
        {"lock-test", "lock-row", false},
        {"session", "zookeeper", true},
        {"session", "etcd-fenced", false},
    };
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        unsigned is = expected(ROWS[i].fault, ROWS[i].strategy);
        if (((is & SEEN_ANY) != 0) != ROWS[i].caught)
            fail_msg("%s under %s: 0x%x", ROWS[i].strategy, ROWS[i].fault, is);
        assert_true(is & (I2_NOT_LOST | SEEN_LOST));
    }
}

static void an_order_of_one_statement_is_not_overtaken(void **state)
{
    for (size_t i = 0; i < fault_count; i++)
        if (faults[i].cycle == CYCLE_OVERTAKE)
            assert_int_equal(expected(faults[i].name, "atomic-statement"), 0);
    assert_true(expected("kill", "atomic-statement"));
    assert_true(expected("pause", "atomic-decrement"));
    assert_true(expected("redis-restart", "batched"));
    assert_true(expected("redis-restart", "redis-stock"));
}

static void a_safe_strategy_keeps_its_stock_under_every_fault(void **state)
{
    for (size_t i = 0; i < fault_count; i++)
        for (size_t j = 0; j < strategy_count; j++) {
            unsigned is = fault_expected(&faults[i], &strategies[j]);
            if (strategies[j].guarantee == GUARANTEE_SAFE && is)
                assert_true(is & I1_NOT_OVERSOLD);
        }
}

/* The fault met orders. */
static enum verdict verdict(unsigned is, struct fault_counts counts)
{
    counts.critical = 1;
    const struct fault_subject subject = {
        .strategy = strategy_find("redis-lock"), .expected = is, .counts = counts, .cycles = 1};
    return fault_verdict(&faults[0], &subject);
}

static void verdicts_follow_from_what_was_seen(void **state)
{
    static const struct {
        unsigned expected;
        struct fault_counts counts;
        enum verdict verdict;
    } CASES[] = {
        {ALL_KEPT, {.acknowledged = 1}, VERDICT_OK},
        {ALL_KEPT, {.acknowledged = 2, .oversold = 1}, VERDICT_BROKEN},
        {ALL_KEPT, {.acknowledged = 1, .lost = 1}, VERDICT_BROKEN},
        {ALL_KEPT, {.acknowledged = 1, .duplicated = 1}, VERDICT_BROKEN},
        {ALL_KEPT, {.acknowledged = 1, .denied = 1}, VERDICT_BROKEN},
        {ALL_KEPT, {.acknowledged = 1, .drift = -1}, VERDICT_BROKEN},
        {ORDERS_KEPT, {.acknowledged = 1, .drift = -1, .gone = 1}, VERDICT_BROKEN},
        {ORDERS_KEPT, {.acknowledged = 1, .drift = 2, .gone = 1}, VERDICT_BROKEN},
        {ORDERS_KEPT, {.acknowledged = 1, .drift = 2}, VERDICT_OK},
        {ORDERS_KEPT & ~I8_NO_UNIT_GONE, {.acknowledged = 1, .drift = -1, .gone = 1}, VERDICT_OK},
        {ALL_KEPT, {.acknowledged = 1, .wrong = 1}, VERDICT_BROKEN},
        {ALL_KEPT, {.acknowledged = 1, .disordered = 1}, VERDICT_BROKEN},
        {ALL_KEPT, {.acknowledged = 1, .turned_away = 1}, VERDICT_BROKEN},
        {ORDERS_KEPT, {.acknowledged = 1, .turned_away = 1}, VERDICT_OK},
        {ALL_KEPT, {.acknowledged = 1, .amounts_wrong = 1}, VERDICT_BROKEN},
        {ALL_KEPT, {0}, VERDICT_NOTHING_SHOWN},
        {ORDERS_KEPT, {.acknowledged = 2, .oversold = 1}, VERDICT_OK},
        {ORDERS_KEPT | SEEN_OVERSOLD, {.acknowledged = 2, .oversold = 1}, VERDICT_CAUGHT},
        {ORDERS_KEPT | SEEN_OVERSOLD, {.acknowledged = 1}, VERDICT_NOT_CAUGHT},
        {ORDERS_KEPT | SEEN_OVERSOLD, {.acknowledged = 1, .lost = 1}, VERDICT_BROKEN},
        {STOCK_KEPT | SEEN_LOST, {.acknowledged = 1, .lost = 1}, VERDICT_CAUGHT},
    };
    for (size_t i = 0; i < COUNT(CASES); i++)
        assert_int_equal(verdict(CASES[i].expected, CASES[i].counts), CASES[i].verdict);
}

static void a_lease_that_did_not_have_to_end_has_shown_nothing(void **state)
{
    struct fault_subject leased = {.strategy = strategy_find("redis-lock"),
                                   .expected = ALL_KEPT | I4_LOCK_FREED,
                                   .counts = {.acknowledged = 9, .critical = 9},
                                   .cycles = 2};
    struct fault_subject by_connection = leased, forever = leased;
    by_connection.strategy = strategy_find("lock-row");
    forever.strategy = strategy_find("redis-setnx-forever");
    forever.expected = ORDERS_KEPT | SEEN_STUCK;
    assert_int_equal(fault_verdict(&faults[0], &leased), VERDICT_NOT_CAUGHT);
    assert_int_equal(fault_verdict(&faults[0], &by_connection), VERDICT_OK);
    assert_int_equal(fault_verdict(&faults[0], &forever), VERDICT_NOT_CAUGHT);
    leased.outages = forever.outages = 1;
    forever.stuck = true;
    assert_int_equal(fault_verdict(&faults[0], &leased), VERDICT_OK);
    assert_int_equal(fault_verdict(&faults[0], &forever), VERDICT_CAUGHT);
}

static void cycles_without_an_order_show_nothing(void **state)
{
    struct fault_subject subject = {.strategy = strategy_find("redis-fenced"),
                                    .expected = ALL_KEPT,
                                    .counts = {.acknowledged = 1, .critical = 1},
                                    .cycles = 6,
                                    .empty = 5};
    assert_int_equal(fault_verdict(&faults[0], &subject), VERDICT_NOTHING_SHOWN);
    subject.empty = 3;
    assert_int_equal(fault_verdict(&faults[0], &subject), VERDICT_OK);
    subject.counts.critical = 0;
    assert_int_equal(fault_verdict(&faults[0], &subject), VERDICT_NOTHING_SHOWN);
    subject.counts.oversold = 1;
    assert_int_equal(fault_verdict(&faults[0], &subject), VERDICT_BROKEN);
}

static void overlapping_sections_break_rows_that_only_their_lock_protects(void **state)
{
    static const struct {
        const char *strategy;
        enum verdict verdict;
    } ROWS[] = {
        {"redis-lock", VERDICT_BROKEN},
        {"fence-on-write", VERDICT_BROKEN},
        {"mutex", VERDICT_BROKEN},
        {"redis-fenced", VERDICT_OK},
        {"redis-registry-shared", VERDICT_OK},
        {"select-for-update", VERDICT_OK},
    };
    const struct fault_counts overlapping = {.acknowledged = 2, .critical = 1, .sections = 2, .overlaps = 1};
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        const struct fault_subject subject = {.strategy = strategy_find(ROWS[i].strategy),
                                              .expected = ALL_KEPT,
                                              .counts = overlapping,
                                              .cycles = 1};
        assert_int_equal(fault_verdict(&faults[0], &subject), ROWS[i].verdict);
    }
    assert_int_equal(verdict(ORDERS_KEPT, overlapping), VERDICT_OK);
    assert_int_equal(verdict(ORDERS_KEPT | SEEN_OVERSOLD, overlapping), VERDICT_NOT_CAUGHT);
}

/* ---- the history ------------------------------------------------------------------------------------ */

static void an_intent_is_found_again_by_its_key(void **state)
{
    struct fault_history history;
    char key[64];
    size_t number, found = 99;
    fault_history_open("f1-2", &history);
    for (int i = 0; i < 3; i++)
        assert_true(fault_history_intend(&history, 5, 0, &number));
    assert_true(fault_history_find(&history, fault_history_key(&history, 2, key), &found));
    assert_int_equal(found, 2);
    assert_false(fault_history_find(&history, "f1-2-3", &found));
    assert_false(fault_history_find(&history, "f1-3-0", &found));
    assert_false(fault_history_find(&history, "f1-2-0x", &found));
    assert_false(fault_history_find(&history, "", &found));
    struct intent end = {.strategy = 5, .told = TOLD_CREATED, .ended_us = 7};
    fault_history_told(&history, 2, &end);
    assert_int_equal(fault_history_served(&history, 5), 7);
    fault_history_begin_cycle(&history);
    assert_int_equal(fault_history_served(&history, 5), 0);
    fault_history_close(&history);
}

/* The fault strikes at 100, or from 100 to 200. */
static void whom_the_fault_met(void **state)
{
    static const struct {
        const char *what;
        int64_t began_us, ended_us, committed_us;
        int instance;
        enum told told;
        bool later, met, met_until_200;
    } ORDERS[] = {
        {"in progress", 90, 110, 0, 1, TOLD_NOTHING, false, true, true},
        {"ended before", 90, 99, 0, 1, TOLD_CREATED, false, false, false},
        {"begun after", 101, 110, 0, 1, TOLD_CREATED, false, false, true},
        {"at the other service", 90, 110, 0, 0, TOLD_NOTHING, false, false, false},
        {"accepted and written", 80, 90, 1000100, 1, TOLD_CREATED, true, false, false},
        {"accepted and not yet written", 80, 90, 1000101, 1, TOLD_CREATED, true, true, true},
        {"accepted and never written", 80, 90, 0, 1, TOLD_CREATED, true, true, true},
        {"refused", 80, 90, 0, 1, TOLD_SOLD_OUT, true, false, false},
        {"accepted later", 80, 101, 1000200, 1, TOLD_CREATED, true, false, true},
    };
    struct fault_history history;
    fault_history_open("f1-2", &history);
    for (size_t i = 0; i < COUNT(ORDERS); i++) {
        const struct intent intent = {.strategy = 5,
                                      .instance = ORDERS[i].instance,
                                      .told = ORDERS[i].told,
                                      .began_us = ORDERS[i].began_us,
                                      .ended_us = ORDERS[i].ended_us};
        history.writes_later[5] = ORDERS[i].later;
        history.strike = (struct fault_strike){0};
        assert_false(fault_history_was_met(&history, &intent, ORDERS[i].committed_us));
        history.strike = (struct fault_strike){100, 100, 1000100, 1};
        if (fault_history_was_met(&history, &intent, ORDERS[i].committed_us) != ORDERS[i].met)
            fail_msg("%s", ORDERS[i].what);
        history.strike.until_us = 200;
        if (fault_history_was_met(&history, &intent, ORDERS[i].committed_us) != ORDERS[i].met_until_200)
            fail_msg("%s, in a fault that lasts", ORDERS[i].what);
    }
    fault_history_close(&history);
}

/* An order is exposed from its request to its answer; one that is written later, a moment after its answer. */
static void when_an_order_is_exposed(void **state)
{
    struct fault_history history;
    size_t number;
    struct intent end = {.strategy = 5, .told = TOLD_CREATED};
    fault_history_open("f1-2", &history);
    assert_false(fault_history_is_exposed(&history, 5, -1));
    assert_true(fault_history_intend(&history, 5, 1, &number));
    assert_true(fault_history_is_exposed(&history, 5, -1));
    assert_true(fault_history_is_exposed(&history, 5, 1));
    assert_false(fault_history_is_exposed(&history, 5, 0));
    assert_false(fault_history_is_exposed(&history, 4, -1));
    history.writes_later[5] = true;
    assert_false(fault_history_is_exposed(&history, 5, -1));
    end.ended_us = monotonic_us() + PATIENCE_US;
    fault_history_told(&history, number, &end);
    assert_true(fault_history_is_exposed(&history, 5, -1));
    history.writes_later[5] = false;
    assert_false(fault_history_is_exposed(&history, 5, -1));
    fault_history_close(&history);
}

/* A product was changed from 100 to 200. */
static void an_intent_is_of_the_sale_that_it_was_answered_in(void **state)
{
    static const struct {
        enum told told;
        int64_t began_us, ended_us;
        enum sale_of sale;
    } INTENTS[] = {
        {TOLD_CREATED, 10, 99, SALE_BEFORE},   {TOLD_SOLD_OUT, 10, 99, SALE_BEFORE},
        {TOLD_NOTHING, 10, 99, SALE_EITHER}, /* its order may come at any later time */
        {TOLD_CREATED, 10, 100, SALE_EITHER},  {TOLD_CREATED, 99, 201, SALE_EITHER},
        {TOLD_CREATED, 150, 160, SALE_EITHER}, {TOLD_CREATED, 200, 300, SALE_EITHER},
        {TOLD_CREATED, 201, 300, SALE_LAST},   {TOLD_NOTHING, 201, 300, SALE_LAST},
    };
    struct fault_history history;
    fault_history_open("f1-2", &history);
    for (size_t i = 0; i < COUNT(INTENTS); i++)
        for (int keeps = 0; keeps <= 1; keeps++) {
            const struct intent intent = {.strategy = 5,
                                          .told = INTENTS[i].told,
                                          .began_us = INTENTS[i].began_us,
                                          .ended_us = INTENTS[i].ended_us};
            bool created = intent.told == TOLD_CREATED;
            memset(history.changes, 0, sizeof history.changes);
            assert_int_equal(fault_history_sale(&history, &intent), SALE_LAST); /* no change */
            assert_int_equal(fault_history_stands(&history, &intent), created);
            assert_false(fault_history_is_deleted(&history, &intent));
            history.changes[5] = (struct sale_change){100, 200, keeps};
            assert_int_equal(fault_history_sale(&history, &intent), INTENTS[i].sale);
            assert_int_equal(fault_history_stands(&history, &intent),
                             created && (keeps || INTENTS[i].sale == SALE_LAST));
            assert_int_equal(fault_history_is_deleted(&history, &intent),
                             created && !keeps && INTENTS[i].sale == SALE_BEFORE);
        }
    fault_history_begin_cycle(&history);
    assert_int_equal(history.changes[5].ended_us, 0);
    fault_history_close(&history);
}

/* The sentence beneath the table says the same as the exit status. */
static void the_closing_sentence_counts_every_verdict(void **state)
{
    static const struct {
        const char *verdict;
        bool expected;
    } VERDICTS[] = {{"ok", true},          {"caught-as-expected", true}, {"unavailable", true},
                    {"not-caught", false}, {"nothing-shown", false},     {"broken", false}};
    for (size_t i = 0; i < COUNT(VERDICTS); i++) {
        char counted[64];
        struct notes notes = {0};
        json_t *document = json_pack("{s:[], s:[{s:s}]}", "faults", "rows", "verdict", VERDICTS[i].verdict);
        assert_non_null(document);
        faults_result.notes(document, &notes);
        assert_true(notes.count > 0);
        const char *closing = notes.item[notes.count - 1].text;
        snprintf(counted, sizeof counted, "1 row: 1 %s. %s", VERDICTS[i].verdict,
                 VERDICTS[i].expected ? "All as expected." : "NOT all as expected.");
        assert_string_equal(closing, counted);
        notes_free(&notes);
        json_decref(document);
    }
}

/* ---- the proxy ----------------------------------------------------------------------------------------- */

static const char COMMIT[] = "\0commit"; /* and a zero byte */

struct wire {
    struct proxy *proxy;
    int listener, client, server;
};

static int end_at(int port, int listener)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t size = sizeof at;
    assert_true(fd >= 0);
    if (!listener)
        assert_int_equal(connect(fd, (struct sockaddr *)&at, size), 0);
    else
        assert_true(bind(fd, (struct sockaddr *)&at, size) == 0 && listen(fd, 4) == 0);
    return fd;
}

/* A connection through a proxy. */
static int open_wire(void **state)
{
    static struct wire wire;
    struct sockaddr_in at;
    socklen_t size = sizeof at;
    wire.listener = end_at(0, 1);
    assert_int_equal(getsockname(wire.listener, (struct sockaddr *)&at, &size), 0);
    wire.proxy = proxy_open(ntohs(at.sin_port));
    assert_non_null(wire.proxy);
    wire.client = end_at(proxy_port(wire.proxy), 0);
    wire.server = accept(wire.listener, NULL, NULL);
    assert_true(wire.server >= 0);
    *state = &wire;
    return 0;
}

static int close_wire(void **state)
{
    struct wire *wire = *state;
    close(wire->client);
    close(wire->server);
    close(wire->listener);
    proxy_close(wire->proxy);
    return 0;
}

static void put(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* As PostgreSQL's protocol sends the name of a statement. */
static void put_commit(int fd)
{
    assert_int_equal(send(fd, COMMIT, sizeof COMMIT, MSG_NOSIGNAL), sizeof COMMIT);
}

/* All that comes until there are WANTED bytes, or the connection ends: how many. */
static size_t take(int fd, size_t wanted)
{
    char text[256];
    size_t got = 0;
    while (got < wanted) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        assert_int_equal(poll(&wait, 1, 30000), 1);
        ssize_t more = recv(fd, text, sizeof text, 0);
        if (more <= 0)
            break;
        got += (size_t)more;
    }
    return got;
}

static void a_proxy_passes_on_what_comes(void **state)
{
    const struct wire *wire = *state;
    put(wire->client, "question");
    assert_int_equal(take(wire->server, 8), 8);
    proxy_set(wire->proxy, &(struct proxy_rules){.piece = 1, .delay_ms = 1});
    put(wire->server, "answer");
    assert_int_equal(take(wire->client, 6), 6);
    assert_int_equal(shutdown(wire->client, SHUT_WR), 0);
    assert_int_equal(take(wire->server, 1), 0);
}

static void a_proxy_cuts_after_so_many_bytes(void **state)
{
    const struct wire *wire = *state;
    proxy_set(wire->proxy, &(struct proxy_rules){.cut_after = {5, 0}});
    put(wire->client, "12345678");
    assert_true(take(wire->server, 100) <= 5); /* a reset may overtake what was sent before it */
    assert_int_equal(take(wire->client, 1), 0);
    assert_int_equal(proxy_acted(wire->proxy), 1);
}

static void a_proxy_holds_a_request_whose_client_it_resets(void **state)
{
    const struct wire *wire = *state;
    proxy_set(wire->proxy, &(struct proxy_rules){.lose_reply_to = "commit", .held_ms = 300});
    put(wire->client, "begin_read_committed");
    assert_int_equal(take(wire->server, 20), 20);
    int64_t sent_us = monotonic_us();
    put_commit(wire->client);
    assert_int_equal(take(wire->client, 1), 0);
    assert_int_equal(take(wire->server, 100), sizeof COMMIT); /* and then the end */
    assert_true(monotonic_us() - sent_us >= 300000);
    put(wire->server, "done");
    assert_int_equal(proxy_acted(wire->proxy), 1);
}

static void a_proxy_loses_a_request(void **state)
{
    const struct wire *wire = *state;
    proxy_set(wire->proxy,
              &(struct proxy_rules){.lose_reply_to = "commit", .spare = 1, .held_ms = HELD_FOREVER});
    put_commit(wire->client);
    assert_int_equal(take(wire->server, sizeof COMMIT), sizeof COMMIT);
    put_commit(wire->client);
    assert_int_equal(take(wire->client, 1), 0);
    assert_int_equal(take(wire->server, 1), 0);
    assert_int_equal(proxy_acted(wire->proxy), 1);
}

/* As after the end of the old server process. */
static void a_held_request_is_dropped_with_its_server(void **state)
{
    const struct wire *wire = *state;
    proxy_set(wire->proxy, &(struct proxy_rules){.lose_reply_to = "commit", .held_ms = 3600000});
    put_commit(wire->client);
    assert_int_equal(take(wire->client, 1), 0);
    assert_int_equal(shutdown(wire->server, SHUT_WR), 0);
    assert_int_equal(take(wire->server, 1), 0);
    int64_t end_us = monotonic_us() + (int64_t)60 * 1000 * 1000;
    while (proxy_carries(wire->proxy) && monotonic_us() < end_us)
        assert_int_equal(poll(NULL, 0, 1), 0);
    assert_false(proxy_carries(wire->proxy));
}

static void a_held_request_is_dropped_where_a_reply_was_half_delivered(void **state)
{
    const struct wire *wire = *state;
    proxy_set(wire->proxy, &(struct proxy_rules){.delay_ms = 3600000});
    put(wire->server, "reply");
    int64_t end_us = monotonic_us() + (int64_t)60 * 1000 * 1000;
    while (proxy_acted(wire->proxy) == 0 && monotonic_us() < end_us)
        assert_int_equal(poll(NULL, 0, 1), 0);
    assert_int_equal(proxy_acted(wire->proxy), 1); /* the proxy has the reply, and holds it back */
    proxy_set(wire->proxy,
              &(struct proxy_rules){.delay_ms = 3600000, .lose_reply_to = "commit", .held_ms = 1});
    put_commit(wire->client);
    assert_int_equal(take(wire->client, 1), 0);
    assert_int_equal(take(wire->server, 100), sizeof COMMIT);
    assert_int_equal(shutdown(wire->server, SHUT_WR), 0);
    while (proxy_carries(wire->proxy) && monotonic_us() < end_us)
        assert_int_equal(poll(NULL, 0, 1), 0);
    assert_false(proxy_carries(wire->proxy));
}

static void a_proxy_loses_a_reply(void **state)
{
    const struct wire *wire = *state;
    proxy_set(wire->proxy, &(struct proxy_rules){.lose_reply_to = "commit"});
    put(wire->client, "begin_read_committed");
    assert_int_equal(take(wire->server, 20), 20);
    put(wire->server, "fine");
    assert_int_equal(take(wire->client, 4), 4);
    put_commit(wire->client);
    assert_int_equal(take(wire->server, sizeof COMMIT), sizeof COMMIT);
    put(wire->server, "done");
    assert_int_equal(take(wire->client, 4), 0);
    assert_int_equal(proxy_acted(wire->proxy), 1);
}

static void a_proxy_stands_still_and_goes_on(void **state)
{
    const struct wire *wire = *state;
    proxy_set(wire->proxy, &(struct proxy_rules){.stall = {true, true}});
    put(wire->client, "late");
    struct pollfd wait = {.fd = wire->server, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, 200), 0);
    proxy_set(wire->proxy, &(struct proxy_rules){0});
    assert_int_equal(take(wire->server, 4), 4);
    proxy_cut(wire->proxy);
    assert_int_equal(take(wire->client, 1), 0);
    assert_int_equal(proxy_acted(wire->proxy), 0); /* nothing was held back when it was reset */
}

static void what_stood_still_is_not_passed_on_by_a_proxy_that_cuts(void **state)
{
    const struct wire *wire = *state;
    proxy_set(wire->proxy, &(struct proxy_rules){.stall = {true, true}});
    put(wire->client, "lost");
    proxy_cut(wire->proxy);
    proxy_set(wire->proxy, &(struct proxy_rules){0});
    assert_int_equal(take(wire->server, 4), 0);
    assert_int_equal(proxy_acted(wire->proxy), 1);
}

#define with_wire(test) cmocka_unit_test_setup_teardown(test, open_wire, close_wire)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_history_in_order_is_right),
        cmocka_unit_test(two_that_saw_the_same_are_found),
        cmocka_unit_test(a_sale_that_ended_before_an_earlier_one_began_is_found),
        cmocka_unit_test(the_table_says_what_the_design_says),
        cmocka_unit_test(an_order_of_one_statement_is_not_overtaken),
        cmocka_unit_test(a_safe_strategy_keeps_its_stock_under_every_fault),
        cmocka_unit_test(verdicts_follow_from_what_was_seen),
        cmocka_unit_test(a_lease_that_did_not_have_to_end_has_shown_nothing),
        cmocka_unit_test(cycles_without_an_order_show_nothing),
        cmocka_unit_test(overlapping_sections_break_rows_that_only_their_lock_protects),
        cmocka_unit_test(an_intent_is_found_again_by_its_key),
        cmocka_unit_test(whom_the_fault_met),
        cmocka_unit_test(when_an_order_is_exposed),
        cmocka_unit_test(the_closing_sentence_counts_every_verdict),
        cmocka_unit_test(an_intent_is_of_the_sale_that_it_was_answered_in),
        with_wire(a_proxy_passes_on_what_comes),
        with_wire(a_proxy_cuts_after_so_many_bytes),
        with_wire(a_proxy_loses_a_request),
        with_wire(a_proxy_holds_a_request_whose_client_it_resets),
        with_wire(a_held_request_is_dropped_with_its_server),
        with_wire(a_held_request_is_dropped_where_a_reply_was_half_delivered),
        with_wire(a_proxy_loses_a_reply),
        with_wire(a_proxy_stands_still_and_goes_on),
        with_wire(what_stood_still_is_not_passed_on_by_a_proxy_that_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
