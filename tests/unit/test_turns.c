/* Turns at a product: so many at once, the others in the order of their arrival, one by one or several together. */
#include "tests/unit/unit.h"

#include "service/turns.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { FIRST = 7, SECOND = 8, ROOM = 1000 };

static struct turns *new_turns(size_t bound)
{
    struct turns *turns = turns_new(bound);
    assert_non_null(turns);
    return turns;
}

/* The next are those from FROM on, COUNT of them, in this order, and nobody else. */
static void assert_next(struct turns *turns, int64_t product_id, size_t most, const struct waiting *from,
                        size_t count)
{
    const struct waiting *who = turns_next(turns, product_id, most);
    for (size_t i = 0; i < count; i++, who = who->next)
        assert_ptr_equal(who, &from[i]);
    assert_null(who);
}

static void ask_later(struct turns *turns, int64_t product_id, int limit, struct waiting *who, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_int_equal(turns_ask(turns, product_id, limit, &who[i]), TURN_LATER);
}

static void test_one_alone_goes_at_once(void **state)
{
    (void)state;
    struct turns *turns = new_turns(ROOM);
    struct waiting who = {.next = &who};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(turns_ask(turns, FIRST, 1, &who), TURN_NOW);
        assert_null(who.next); /* a chain of one, as it would come from the line */
        assert_int_equal(turns_waiting(turns, 0), 0);
        assert_null(turns_next(turns, FIRST, 5));
    }
    turns_free(turns);
    turns_free(NULL);
}

static void test_first_come_first_served(void **state)
{
    (void)state;
    struct turns *turns = new_turns(ROOM);
    struct waiting going, line[5];
    assert_int_equal(turns_ask(turns, FIRST, 1, &going), TURN_NOW);
    ask_later(turns, FIRST, 1, line, 3);
    assert_next(turns, FIRST, 1, &line[0], 1);
    ask_later(turns, FIRST, 1, &line[3], 2); /* behind those who wait */
    for (size_t i = 1; i < 5; i++) {
        assert_int_equal(turns_waiting(turns, FIRST), 5 - i);
        assert_next(turns, FIRST, 1, &line[i], 1);
    }
    assert_null(turns_next(turns, FIRST, 1));
    assert_int_equal(turns_ask(turns, FIRST, 1, &going), TURN_NOW); /* the turn was given back */
    assert_null(turns_next(turns, FIRST, 1));
    turns_free(turns);
}

static void test_batches(void **state)
{
    (void)state;
    static const size_t cases[][2] = {{1, 4}, {3, 4}, {4, 4}, {5, 4}, {8, 4}, {9, 4}, {9, 1}, {9, 100}};
    for (size_t c = 0; c < COUNT(cases); c++) {
        struct turns *turns = new_turns(ROOM);
        struct waiting going, line[9];
        assert_int_equal(turns_ask(turns, FIRST, 1, &going), TURN_NOW);
        size_t count = cases[c][0], most = cases[c][1];
        ask_later(turns, FIRST, 1, line, count);
        for (size_t from = 0; from < count; from += most) {
            size_t take = count - from < most ? count - from : most;
            assert_next(turns, FIRST, most, &line[from], take);
            assert_int_equal(turns_waiting(turns, 0), count - from - take);
        }
        assert_null(turns_next(turns, FIRST, most));
        turns_free(turns);
    }
}

static void test_the_limit(void **state)
{
    (void)state;
    struct turns *turns = new_turns(ROOM);
    struct waiting going[3], line[3];
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(turns_ask(turns, FIRST, 3, &going[i]), TURN_NOW);
    ask_later(turns, FIRST, 3, line, 2);
    assert_next(turns, FIRST, 1, &line[0], 1); /* whoever of the three is done */
    assert_next(turns, FIRST, 1, &line[1], 1);
    assert_null(turns_next(turns, FIRST, 1)); /* two go on */
    assert_int_equal(turns_ask(turns, FIRST, 3, &line[0]), TURN_NOW);
    ask_later(turns, FIRST, 3, &line[2], 1);
    assert_next(turns, FIRST, 1, &line[2], 1);
    for (int i = 0; i < 3; i++)
        assert_null(turns_next(turns, FIRST, 1));
    turns_free(turns);
}

static void test_products_do_not_wait_for_each_other(void **state)
{
    (void)state;
    struct turns *turns = new_turns(ROOM);
    struct waiting going[2], line[4];
    assert_int_equal(turns_ask(turns, FIRST, 1, &going[0]), TURN_NOW);
    ask_later(turns, FIRST, 1, line, 2);
    assert_int_equal(turns_ask(turns, SECOND, 1, &going[1]), TURN_NOW);
    ask_later(turns, SECOND, 1, &line[2], 2);
    assert_int_equal(turns_waiting(turns, 0), 4);
    assert_int_equal(turns_waiting(turns, FIRST), 2);
    assert_int_equal(turns_waiting(turns, SECOND), 2);
    assert_int_equal(turns_waiting(turns, 9), 0);
    assert_next(turns, SECOND, 9, &line[2], 2);
    assert_next(turns, FIRST, 9, &line[0], 2);
    assert_null(turns_next(turns, FIRST, 9));
    assert_null(turns_next(turns, SECOND, 9));
    turns_free(turns);
}

static void test_the_bound_is_for_all_products_together(void **state)
{
    (void)state;
    struct turns *turns = new_turns(2);
    struct waiting going[3], line[3];
    assert_int_equal(turns_ask(turns, FIRST, 1, &going[0]), TURN_NOW);
    assert_int_equal(turns_ask(turns, SECOND, 1, &going[1]), TURN_NOW);
    ask_later(turns, FIRST, 1, &line[0], 1);
    ask_later(turns, SECOND, 1, &line[1], 1);
    assert_int_equal(turns_ask(turns, FIRST, 1, &line[2]), TURN_NEVER);
    assert_int_equal(turns_ask(turns, 9, 1, &going[2]), TURN_NOW); /* who need not wait may go */
    assert_next(turns, SECOND, 1, &line[1], 1);
    ask_later(turns, FIRST, 1, &line[2], 1); /* there is room again */
    assert_next(turns, FIRST, 1, &line[0], 1);
    assert_next(turns, FIRST, 1, &line[2], 1);
    for (int64_t product = FIRST; product <= 9; product++)
        assert_null(turns_next(turns, product, 1));
    turns_free(turns);
}

static void test_without_room_nobody_waits(void **state)
{
    (void)state;
    struct turns *turns = new_turns(0);
    struct waiting who[2];
    assert_int_equal(turns_ask(turns, FIRST, 1, &who[0]), TURN_NOW);
    assert_int_equal(turns_ask(turns, FIRST, 1, &who[1]), TURN_NEVER);
    assert_null(turns_next(turns, FIRST, 1));
    turns_free(turns);
}

/* ---- many threads ---------------------------------------------------------------------------------------- */

enum { THREADS = 8, EACH = 3000, PRODUCTS = 3, LIMIT = 2, TOGETHER = 5 };

/* A thread asks for one turn after the other; who gets one serves the line until it is empty. */
struct asker {
    struct waiting waiting; /* first: what a line hands out is one of these */
    int thread, number;
};

static struct turns *busy;
static struct asker askers[THREADS][EACH];
static atomic_int served[THREADS][EACH];
static atomic_int going[PRODUCTS];
static int last[PRODUCTS][THREADS]; /* of a product with one turn at a time, which guards it */
static atomic_int too_many, disordered, most_together;

static int limit_of(int64_t product)
{
    return product == 0 ? 1 : LIMIT;
}

static void serve(int64_t product, struct waiting *first)
{
    if (atomic_fetch_add(&going[product], 1) >= limit_of(product))
        atomic_fetch_add(&too_many, 1);
    int count = 0;
    for (struct waiting *who = first, *next; who; who = next, count++) {
        struct asker *asker = (struct asker *)who;
        next = who->next;
        if (product == 0) {
            if (asker->number <= last[product][asker->thread])
                atomic_fetch_add(&disordered, 1);
            last[product][asker->thread] = asker->number;
        }
        atomic_fetch_add(&served[asker->thread][asker->number], 1); /* from here on it may be gone */
    }
    if (count > atomic_load(&most_together))
        atomic_store(&most_together, count);
    atomic_fetch_sub(&going[product], 1);
}

static void *ask_and_serve(void *arg)
{
    int thread = (int)(intptr_t)arg;
    for (int i = 0; i < EACH; i++) {
        struct asker *asker = &askers[thread][i];
        int64_t product = (thread + i / 100) % PRODUCTS;
        *asker = (struct asker){.thread = thread, .number = i};
        if (turns_ask(busy, product + 1, limit_of(product), &asker->waiting) != TURN_NOW)
            continue;
        for (struct waiting *who = &asker->waiting; who; who = turns_next(busy, product + 1, TOGETHER))
            serve(product, who);
    }
    return NULL;
}

static void test_many_threads(void **state)
{
    (void)state;
    busy = new_turns((size_t)THREADS * EACH);
    memset(last, -1, sizeof last);
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_and_serve, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < THREADS; i++)
        for (int j = 0; j < EACH; j++)
            assert_int_equal(atomic_load(&served[i][j]), 1); /* nobody is forgotten, nobody served twice */
    assert_int_equal(atomic_load(&too_many), 0);
    assert_int_equal(atomic_load(&disordered), 0);
    assert_true(atomic_load(&most_together) <= TOGETHER);
    assert_int_equal(turns_waiting(busy, 0), 0);
    turns_free(busy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_alone_goes_at_once),
        cmocka_unit_test(test_first_come_first_served),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_the_limit),
        cmocka_unit_test(test_products_do_not_wait_for_each_other),
        cmocka_unit_test(test_the_bound_is_for_all_products_together),
        cmocka_unit_test(test_without_room_nobody_waits),
        cmocka_unit_test(test_many_threads),
    };
    alarm(STUCK_S);
    return cmocka_run_group_tests_name("turns", tests, NULL, NULL);
}
