/* The queue for load runs: whose turn it is when several callers want one. */
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/log.h"
#include "service/config/config.h"
#include "service/runs/runs_impl.h"

#include <stdio.h>
#include <stdlib.h>

static struct runs *runs;
static struct run first = {.id = 1000}; /* stands for a run in progress, while the callers ask */

/* The load test of these runs does not exist, so each run ends at once. */
static void begin(void)
{
    static const struct config config = {.database_url = "",
                                         .lock_database_url = "",
                                         .redis_url = "",
                                         .redlock_urls = "",
                                         .zookeeper_connect = "",
                                         .etcd_endpoints = "",
                                         .lock_prefix = "",
                                         .admin_token = ""};
    assert_int_equal(setenv("OVERSELL_LOADTEST", "/nonexistent/loadtest", 1), 0);
    runs = runs_new(&config);
    assert_non_null(runs);
    runs->current = &first;
}

static void ask(int64_t product_id, const char *address, enum run_start expected)
{
    struct run_order order = {
        .product_id = product_id, .longest_ms = 1000, .strategies = json_pack("[s]", "mutex")};
    int64_t id;
    snprintf(order.address, sizeof order.address, "%s", address);
    assert_int_equal(runs_start(runs, &order, 1, &id), expected);
    if (expected != RUN_STARTED)
        json_decref(order.strategies);
    for (int i = 0; i < runs->place_count; i++) /* no place is lost because the machine is slow */
        runs->places[i].asked_us = monotonic_us() + 3600LL * 1000 * 1000;
}

static void wait_for_end(void)
{
    pthread_mutex_lock(&runs->mutex);
    if (runs->current == &first)
        runs->current = NULL;
    while (runs->current)
        pthread_cond_wait(&runs->ended, &runs->mutex);
    pthread_mutex_unlock(&runs->mutex);
}

/* It is the product's turn. Then its learner asks for the next run. */
static void expect_turn(int64_t product_id, const char *address)
{
    wait_for_end();
    ask(product_id, address, RUN_STARTED);
    wait_for_end();
    ask(product_id, address, RUN_WAITS);
}

static void end(void)
{
    runs_stop(runs);
    runs_free(runs);
}

/* A learner who asks all the time has one turn in a round, as each neighbour at the same address has. */
static void test_learners_of_an_address_take_turns(void **state)
{
    static const char *const addresses[] = {"10.0.0.1", ""}; /* with limits, and without */
    for (size_t i = 0; i < COUNT(addresses); i++) {
        begin();
        for (int64_t product = 1; product <= 4; product++) {
            ask(product, addresses[i], RUN_GOES_ON);
            ask(1, addresses[i], RUN_GOES_ON); /* asks all the time */
        }
        for (int turn = 0; turn < 12; turn++)
            expect_turn(1 + turn % 4, addresses[i]);
        end();
    }
}

/* A learner with many products at one address has no more turns than one at another address. */
static void test_addresses_take_turns(void **state)
{
    begin();
    for (int64_t product = 1; product <= 10; product++)
        ask(product, "10.0.0.1", RUN_GOES_ON);
    ask(20, "10.0.0.2", RUN_GOES_ON);
    ask(30, "10.0.0.3", RUN_GOES_ON);
    for (int64_t product = 1; product <= 10; product++) {
        expect_turn(product, "10.0.0.1");
        expect_turn(20, "10.0.0.2");
        expect_turn(30, "10.0.0.3");
    }
    end();
}

int main(void)
{
    log_setup(LOG_ERROR, false, "test"); /* each run fails, and a warning says so */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learners_of_an_address_take_turns),
        cmocka_unit_test(test_addresses_take_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
