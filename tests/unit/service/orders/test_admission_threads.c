/* The admission queue with many threads: clients, workers, and a teacher who pauses products and switches strategies. */
#include "tests/unit/service/orders/admission.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { CLIENTS = 4, WORKERS = 4, EACH = 4000, PRODUCTS = 3, WINDOW = 60 };

/* A client has WINDOW orders on their way at most. */
struct client {
    struct queued_order orders[WINDOW];
    atomic_bool under_way[WINDOW];
};

static struct client clients[CLIENTS];
static atomic_int handed_out, placing[PRODUCTS + 1], under[PRODUCTS + 1][2], mixed, too_many, disturbed;
static atomic_bool paused[PRODUCTS + 1], clients_ended;

/* Numbers that look like chance, for pauses of different lengths. */
static unsigned some(void)
{
    static _Thread_local unsigned state = 1;
    state = state * 1103515245 + 12345;
    return state >> 16;
}

static void *be_client(void *arg)
{
    struct client *client = arg;
    for (int i = 0; i < EACH; i++) {
        int slot = i % WINDOW;
        while (atomic_load(&client->under_way[slot]))
            sleep_us(20);
        atomic_store(&client->under_way[slot], true);
        client->orders[slot] = (struct queued_order){.product_id = 1 + i % PRODUCTS, .deadline_us = soon()};
        while (admission_add(queue, &client->orders[slot]) != ADMITTED)
            sleep_us(20);
    }
    return NULL;
}

static void *be_worker(void *unused)
{
    struct order_batch batch = {0};
    while (admission_next(queue, &batch)) {
        int64_t product = batch.orders->product_id;
        bool together = batch.settings.strategy == &combined;
        if (atomic_load(&paused[product]) || batch.expired)
            atomic_fetch_add(&disturbed, 1);
        if (atomic_fetch_add(&placing[product], 1) >= (together ? 1 : 2))
            atomic_fetch_add(&too_many, 1);
        atomic_fetch_add(&under[product][together], 1);
        if (atomic_load(&under[product][!together]) > 0)
            atomic_fetch_add(&mixed, 1);
        if (some() % 8 == 0)
            sleep_us(some() % 50);
        atomic_fetch_sub(&under[product][together], 1);
        atomic_fetch_sub(&placing[product], 1);
        admission_end(queue, &batch);
        for (struct queued_order *order = batch.orders, *next; order; order = next) {
            next = order->next;
            atomic_fetch_add(&handed_out, 1);
            struct client *client = clients;
            while (order < client->orders || order >= client->orders + WINDOW)
                client++;
            atomic_store(&client->under_way[order - client->orders], false); /* from here on it may be gone */
        }
    }
    return NULL;
}

static void *be_teacher(void *unused)
{
    struct settings changes = unchanged, now;
    for (int i = 0; !atomic_load(&clients_ended); i++) {
        int64_t product = 1 + i % PRODUCTS;
        changes.strategy = i % 2 ? &combined : &single;
        changes.product_limit = 2;
        assert_true(admission_switch(queue, &changes, soon(), &now));
        assert_true(product_pause(queue, product, soon()));
        atomic_store(&paused[product], true);
        sleep_us(some() % 100);
        atomic_store(&paused[product], false);
        product_resume(queue, product);
        sleep_us(some() % 300);
    }
    return NULL;
}

static void test_many_threads(void **state)
{
    pthread_t client_threads[CLIENTS], worker_threads[WORKERS], teacher;
    switch_to(&single, 2);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&worker_threads[i], NULL, be_worker, NULL), 0);
    for (int i = 0; i < CLIENTS; i++)
        assert_int_equal(pthread_create(&client_threads[i], NULL, be_client, &clients[i]), 0);
    assert_int_equal(pthread_create(&teacher, NULL, be_teacher, NULL), 0);
    for (int i = 0; i < CLIENTS; i++)
        assert_int_equal(pthread_join(client_threads[i], NULL), 0);
    atomic_store(&clients_ended, true);
    assert_int_equal(pthread_join(teacher, NULL), 0);
    admission_close(queue);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_join(worker_threads[i], NULL), 0);
    assert_int_equal(atomic_load(&handed_out), CLIENTS * EACH); /* each once */
    assert_int_equal(atomic_load(&too_many), 0);
    assert_int_equal(atomic_load(&mixed), 0);     /* no two strategies side by side */
    assert_int_equal(atomic_load(&disturbed), 0); /* no order is placed during a pause */
    assert_load(0, 0, 0, 0);
}

/* ---- a burst -------------------------------------------------------------------------------------------------- */

static atomic_int busy;

/* Keeps its order until every worker has one. */
static void *wait_for_the_others(void *unused)
{
    struct order_batch batch = {0};
    while (admission_next(queue, &batch)) {
        atomic_fetch_add(&busy, 1);
        while (atomic_load(&busy) < WORKERS)
            sleep_us(100);
        admission_end(queue, &batch);
    }
    return NULL;
}

/* A new order wakes no worker while another one is being woken. That one must have the next woken: orders that come
 * together are still placed by all workers at once. */
static void test_a_burst_wakes_all_workers(void **state)
{
    pthread_t threads[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, wait_for_the_others, NULL), 0);
    sleep_us(5000); /* for the case that counts: all of them sleep */
    for (int i = 0; i < WORKERS; i++)
        add(1 + i, NULL);
    while (atomic_load(&busy) < WORKERS)
        sleep_us(100);
    admission_close(queue);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_burst_wakes_all_workers),
        TEST(test_many_threads),
    };
    alarm(STUCK_S); /* a lost wake-up ends the test */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
