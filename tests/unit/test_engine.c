/* The engine, call by call: every shape of a strategy, at every point where it can fail. See engine_fakes.h for how
 * the lines below are read. */
#include "tests/unit/engine_fakes.h"

/* ---- one case: a line, and what the order must come to --------------------------------------------------- */

struct expected {
    const char *shape;
    bool keyed;
    enum outcome outcome;
    const char *script;
    int tries;           /* 0: one */
    const char *backend; /* NULL: none, that is: nobody is away */
    bool lost;           /* lock_lost_after_commit */
};

static const struct shape *find_shape(const char *name)
{
    for (size_t i = 0; i < COUNT(shapes); i++)
        if (strcmp(shapes[i].name, name) == 0)
            return &shapes[i];
    fail_msg("there is no shape '%s'", name);
    return NULL;
}

/* A line without its steps: what is left when nobody observes. */
static void without_steps(const char *script, char *to, size_t size)
{
    to[0] = '\0';
    while (*script) {
        size_t length = strcspn(script, " ");
        char word[60];
        snprintf(word, sizeof word, "%.*s", (int)length, script);
        if (!isupper((unsigned char)word[0]))
            fake_append(to, size, word);
        script += length + (script[length] == ' ');
    }
}

static int mismatches; /* of this test: they are printed as they come, and fail it at its end */

static int forget_mismatches(void **state)
{
    (void)state;
    mismatches = 0;
    return 0;
}

static int has_no_mismatches(void **state)
{
    (void)state;
    return mismatches;
}

static void compare(const struct expected *e, const char *script, const struct order_result *result,
                    bool observed)
{
    const char *backend = result->outcome == BACKEND_AWAY && result->backend ? result->backend : "none";
    const char *expected_backend = e->backend ? e->backend : "none";
    int tries = e->tries ? e->tries : 1;
    if (strcmp(fake.log, script) == 0 && !fake.broken[0] && result->outcome == e->outcome &&
        result->tries == tries && strcmp(backend, expected_backend) == 0 &&
        result->lock_lost_after_commit == e->lost)
        return;
    mismatches++;
    print_error("%s%s%s\n  expected: %s\n            %s, tries %d, backend %s%s\n  got:      %s\n"
                "            %s, tries %d, backend %s%s\n  broken:   %s\n",
                e->shape, e->keyed ? ", keyed" : "", observed ? "" : ", unobserved", script,
                outcome_name(e->outcome), tries, expected_backend, e->lost ? ", lock lost" : "", fake.log,
                outcome_name(result->outcome), result->tries, backend,
                result->lock_lost_after_commit ? ", lock lost" : "",
                fake.broken[0] ? fake.broken : "no rule");
}

/* Plays the case, watched and unwatched. SETUP may change what the fakes say. */
static void play_with(const struct expected *e, void (*setup)(void), struct fake_order *ret_order)
{
    char silent[4096];
    without_steps(e->script, silent, sizeof silent);
    for (int observed = 0; observed <= 1; observed++) {
        const char *script = observed ? e->script : silent;
        fake_prepare(ret_order, find_shape(e->shape), e->keyed, observed);
        fake.script = script;
        if (setup)
            setup();
        fake_place(ret_order);
        compare(e, script, &ret_order->placing.result, observed);
    }
}

static void play(const struct expected *e)
{
    struct fake_order order;
    play_with(e, NULL, &order);
}

static void play_all(const struct expected *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        play(&cases[i]);
}

/* ---- all goes well --------------------------------------------------------------------------------------- */

#define TAKE "read READ write WRITE"

static void test_orders_that_succeed(void **state)
{
    (void)state;
    static const struct expected cases[] = {
        {"plain", false, CREATED, .script = "ready begin " TAKE " insert INSERT commit COMMIT"},
        {"plain", true, CREATED, .script = "ready begin key " TAKE " insert INSERT commit COMMIT"},
        {"retry", false, CREATED, .script = "ready begin " TAKE " insert INSERT commit COMMIT"},
        {"retry", true, CREATED, .script = "ready begin key " TAKE " insert INSERT commit COMMIT"},
        {"around", false, CREATED,
         .script = "ready acquire LOCK begin " TAKE " insert INSERT commit COMMIT release UNLOCK"},
        {"around", true, CREATED,
         .script = "ready acquire LOCK begin key " TAKE " insert INSERT commit COMMIT release UNLOCK"},
        {"inside", false, CREATED,
         .script = "ready begin acquire LOCK " TAKE " insert INSERT release UNLOCK commit COMMIT"},
        {"inside", true, CREATED,
         .script = "ready begin key acquire LOCK " TAKE " insert INSERT release UNLOCK commit COMMIT"},
        {"twice", false, CREATED,
         .script = "ready acquire LOCK begin acquire " TAKE " commit COMMIT-STOCK release release UNLOCK "
                   "begin insert INSERT commit COMMIT-ORDER"},
        {"twice", true, CREATED,
         .script = "ready acquire LOCK begin key acquire " TAKE " commit COMMIT-STOCK release release UNLOCK "
                   "begin insert INSERT commit COMMIT-ORDER"},
        {"in-one", false, CREATED, .script = "ready one COMMIT"},
        {"in-one", true, CREATED, .script = "ready begin key one commit COMMIT"},
    };
    play_all(cases, COUNT(cases));
}

static void guarded(void)
{
    fake.guarded = true;
}

static void test_a_guarded_statement(void **state)
{
    (void)state;
    struct fake_order order;
    play_with(&(struct expected){"plain", false, CREATED,
                                 .script = "ready begin take TAKE insert INSERT commit COMMIT"},
              guarded, &order);
    play_with(&(struct expected){"plain", false, SOLD_OUT, .script = "ready begin take=sold-out rollback"},
              guarded, &order);
}

static void test_what_a_created_order_tells(void **state)
{
    (void)state;
    struct fake_order order;
    play_with(&(struct expected){"plain", false, CREATED,
                                 .script = "ready begin " TAKE " insert INSERT commit COMMIT"},
              NULL, &order);
    assert_int_equal(order.placing.result.order.id, 4712);
    assert_int_equal(order.placing.result.order.product_id, FAKE_PRODUCT);
    play_with(&(struct expected){"in-one", false, CREATED, .script = "ready one COMMIT"}, NULL, &order);
    assert_int_equal(order.placing.result.order.id, 4712);
}

static void fence_of_42(void)
{
    fake.fence = 42;
}

static void test_the_fence_is_the_value_of_the_lock_step(void **state)
{
    (void)state;
    const struct expected e = {"around", false, CREATED,
                               .script = "ready acquire LOCK begin " TAKE
                                         " insert INSERT commit COMMIT release UNLOCK"};
    struct fake_order order;
    play_with(&e, fence_of_42, &order);
    assert_int_equal(fake.lock_step_value, 42);
    play_with(&e, NULL, &order);
    assert_true(fake.lock_step_value == STEP_NO_VALUE);
}

#define FENCED "ready acquire LOCK fence FENCE begin "

static void test_a_fence_shuts_out_older_holders(void **state)
{
    (void)state;
    static const struct expected cases[] = {
        {"fenced", false, CREATED, .script = FENCED TAKE " insert INSERT commit COMMIT release UNLOCK"},
        {"fenced", true, CREATED, .script = FENCED "key " TAKE " insert INSERT commit COMMIT release UNLOCK"},
        {"fenced", false, LOST_LOCK, .script = FENCED "read READ write=lock-lost rollback release UNLOCK"},
        {"fenced", false, LOST_LOCK, .script = "ready acquire LOCK fence=old raise release UNLOCK"},
        {"fenced", false, LOST_LOCK, .script = "ready acquire LOCK fence=old raise=away release UNLOCK"},
        {"fenced", false, NO_SUCH_PRODUCT, .script = "ready acquire LOCK fence=no-product release UNLOCK"},
        {"fenced", false, BUSY, .script = "ready acquire LOCK fence=lock-timeout release UNLOCK"},
        {"fenced", false, BACKEND_AWAY, .script = "ready acquire LOCK fence=away release UNLOCK",
         .backend = "postgresql"},
        {"fence-on-write", false, CREATED,
         .script = "ready acquire LOCK begin " TAKE " insert INSERT commit COMMIT release UNLOCK"},
        {"fence-on-write", false, LOST_LOCK,
         .script = "ready acquire LOCK begin read READ write=lock-lost rollback release UNLOCK"},
    };
    struct fake_order order;
    for (size_t i = 0; i < COUNT(cases); i++)
        play_with(&cases[i], fence_of_42, &order);
}

/* ---- the lock is not got --------------------------------------------------------------------------------- */

static const struct {
    const char *result;
    enum outcome outcome;
    const char *backend;
} lock_failures[] = {
    {"busy", BUSY, NULL},
    {"lost", LOST_LOCK, NULL},
    {"not-owner", LOST_LOCK, NULL},
    {"away", BACKEND_AWAY, "fake server"},
    {"refused", BACKEND_AWAY, "fake server"},
    {"unavailable", BACKEND_AWAY, "fake server"},
    {"failed", FAILED, NULL},
};

static void test_a_lock_that_is_not_got(void **state)
{
    (void)state;
    static const struct {
        const char *shape, *script;
        bool keyed;
    } points[] = {
        {"around", "ready acquire=%s", false},
        {"around", "ready acquire=%s", true},
        {"inside", "ready begin acquire=%s rollback", false},
        {"inside", "ready begin key acquire=%s rollback", true},
        {"twice", "ready acquire=%s", false},
        {"twice", "ready acquire LOCK begin acquire=%s rollback release UNLOCK", false},
        {"twice", "ready acquire LOCK begin key acquire=%s rollback release UNLOCK", true},
        {"around-retry", "ready acquire=%s", false},
        {"inside-retry", "ready begin acquire=%s rollback", false},
    };
    for (size_t i = 0; i < COUNT(points); i++)
        for (size_t j = 0; j < COUNT(lock_failures); j++) {
            char script[300];
            const char *at = strstr(points[i].script, "%s");
            snprintf(script, sizeof script, "%.*s%s%s", (int)(at - points[i].script), points[i].script,
                     lock_failures[j].result, at + 2);
            struct fake_order order;
            play_with(&(struct expected){points[i].shape, points[i].keyed, lock_failures[j].outcome, script,
                                         0, lock_failures[j].backend, false},
                      NULL, &order);
            assert_string_equal(order.placing.result.error, FAKE_LOCK_ERROR);
        }
}

/* ---- the database fails ---------------------------------------------------------------------------------- */

static const struct {
    const char *result;
    enum outcome outcome, keyed_outcome;
} db_failures[] = {
    {"serialization", CONFLICT, CONFLICT},
    {"deadlock", CONFLICT, CONFLICT},
    {"lock-timeout", BUSY, BUSY},
    {"timeout", BUSY, BUSY},
    {"check", FAILED, FAILED},
    {"foreign-key", FAILED, FAILED},
    {"out-of-range", FAILED, FAILED},
    {"away", BACKEND_AWAY, BACKEND_AWAY},
    {"refused", BACKEND_AWAY, BACKEND_AWAY},
    {"error", FAILED, FAILED},
    {"unique", FAILED,
     KEY_IN_USE}, /* without a key of the client's it is a bug: nothing of its is in progress */
};

/* Lines with one %s, where any failure of the database may stand. */
static const struct {
    const char *shape;
    bool keyed;
    const char *script;
} db_points[] = {
    {"plain", false, "ready=%s"},
    {"plain", false, "ready begin read=%s rollback"},
    {"plain", false, "ready begin read READ write=%s rollback"},
    {"plain", false, "ready begin " TAKE " insert=%s rollback"},
    {"plain", false, "ready begin " TAKE " insert INSERT commit=%s"},
    {"plain", true, "ready begin key=%s rollback"},
    {"plain", true, "ready begin key read=%s rollback"},
    {"plain", true, "ready begin key " TAKE " insert=%s rollback"},

    {"around", false, "ready=%s"},
    {"around", false, "ready acquire LOCK begin read=%s rollback release UNLOCK"},
    {"around", false, "ready acquire LOCK begin read READ write=%s rollback release UNLOCK"},
    {"around", false, "ready acquire LOCK begin " TAKE " insert=%s rollback release UNLOCK"},
    {"around", false, "ready acquire LOCK begin " TAKE " insert INSERT commit=%s release UNLOCK"},
    {"around", true, "ready acquire LOCK begin key=%s rollback release UNLOCK"},
    {"around", true, "ready acquire LOCK begin key " TAKE " insert=%s rollback release UNLOCK"},

    {"inside", false, "ready=%s"},
    {"inside", false, "ready begin acquire LOCK read=%s release UNLOCK rollback"},
    {"inside", false, "ready begin acquire LOCK read READ write=%s release UNLOCK rollback"},
    {"inside", false, "ready begin acquire LOCK " TAKE " insert=%s release UNLOCK rollback"},
    {"inside", false, "ready begin acquire LOCK " TAKE " insert INSERT release UNLOCK commit=%s"},
    {"inside", true, "ready begin key=%s rollback"},
    {"inside", true, "ready begin key acquire LOCK " TAKE " insert=%s release UNLOCK rollback"},

    {"twice", false, "ready=%s"},
    {"twice", false, "ready acquire LOCK begin acquire read=%s rollback release release UNLOCK"},
    {"twice", false, "ready acquire LOCK begin acquire read READ write=%s rollback release release UNLOCK"},
    {"twice", false, "ready acquire LOCK begin acquire " TAKE " commit=%s release release UNLOCK"},
    {"twice", false,
     "ready acquire LOCK begin acquire " TAKE
     " commit COMMIT-STOCK release release UNLOCK begin insert=%s rollback"},
    {"twice", false,
     "ready acquire LOCK begin acquire " TAKE " commit COMMIT-STOCK release release UNLOCK "
     "begin insert INSERT commit=%s"},
    {"twice", true, "ready acquire LOCK begin key=%s rollback release UNLOCK"},
    {"twice", true,
     "ready acquire LOCK begin key acquire " TAKE " commit COMMIT-STOCK release release UNLOCK "
     "begin insert=%s rollback"},

    {"in-one", false, "ready=%s"},
    {"in-one", false, "ready one=%s"},
    {"in-one", true, "ready begin key=%s rollback"},
    {"in-one", true, "ready begin key one=%s rollback"},
    {"in-one", true, "ready begin key one commit=%s"},
};

static void test_a_database_that_fails(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(db_points); i++)
        for (size_t j = 0; j < COUNT(db_failures); j++) {
            bool inserts = strstr(db_points[i].script, "insert=%s") || strstr(db_points[i].script, "one=%s");
            if (strcmp(db_failures[j].result, "unique") == 0 && !inserts)
                continue;
            char script[400];
            const char *at = strstr(db_points[i].script, "%s");
            snprintf(script, sizeof script, "%.*s%s%s", (int)(at - db_points[i].script), db_points[i].script,
                     db_failures[j].result, at + 2);
            enum outcome outcome = db_points[i].keyed ? db_failures[j].keyed_outcome : db_failures[j].outcome;
            struct fake_order order;
            play_with(&(struct expected){db_points[i].shape, db_points[i].keyed, outcome, script, 0,
                                         outcome == BACKEND_AWAY ? "postgresql" : NULL, false},
                      NULL, &order);
            assert_string_equal(order.placing.result.error, FAKE_DB_ERROR);
        }
}

/* ---- the stock cannot be taken --------------------------------------------------------------------------- */

static void test_stock_that_cannot_be_taken(void **state)
{
    (void)state;
    static const struct expected cases[] = {
        {"plain", false, NO_SUCH_PRODUCT, .script = "ready begin read=no-product rollback"},
        {"plain", false, WRONG_STOCK_KIND, .script = "ready begin read=wrong-kind rollback"},
        {"plain", false, SOLD_OUT, .script = "ready begin read=sold-out rollback"},
        {"plain", false, SOLD_OUT, .script = "ready begin read READ write=sold-out rollback"},
        {"plain", false, CONFLICT, .script = "ready begin read READ write=conflict rollback"},
        {"plain", true, SOLD_OUT, .script = "ready begin key read=sold-out rollback"},
        {"around", false, NO_SUCH_PRODUCT,
         .script = "ready acquire LOCK begin read=no-product rollback release UNLOCK"},
        {"around", false, WRONG_STOCK_KIND,
         .script = "ready acquire LOCK begin read=wrong-kind rollback release UNLOCK"},
        {"around", false, SOLD_OUT,
         .script = "ready acquire LOCK begin read=sold-out rollback release UNLOCK"},
        {"around", false, CONFLICT,
         .script = "ready acquire LOCK begin read READ write=conflict rollback release UNLOCK"},
        {"around", true, SOLD_OUT,
         .script = "ready acquire LOCK begin key read=sold-out rollback release UNLOCK"},
        {"inside", false, NO_SUCH_PRODUCT,
         .script = "ready begin acquire LOCK read=no-product release UNLOCK rollback"},
        {"inside", false, WRONG_STOCK_KIND,
         .script = "ready begin acquire LOCK read=wrong-kind release UNLOCK rollback"},
        {"inside", false, SOLD_OUT,
         .script = "ready begin acquire LOCK read=sold-out release UNLOCK rollback"},
        {"inside", false, CONFLICT,
         .script = "ready begin acquire LOCK read READ write=conflict release UNLOCK rollback"},
        {"inside", true, SOLD_OUT,
         .script = "ready begin key acquire LOCK read=sold-out release UNLOCK rollback"},
        {"twice", false, NO_SUCH_PRODUCT,
         .script = "ready acquire LOCK begin acquire read=no-product rollback release release UNLOCK"},
        {"twice", false, WRONG_STOCK_KIND,
         .script = "ready acquire LOCK begin acquire read=wrong-kind rollback release release UNLOCK"},
        {"twice", false, SOLD_OUT,
         .script = "ready acquire LOCK begin acquire read=sold-out rollback release release UNLOCK"},
        {"twice", false, CONFLICT,
         .script =
             "ready acquire LOCK begin acquire read READ write=conflict rollback release release UNLOCK"},
        {"twice", true, SOLD_OUT,
         .script = "ready acquire LOCK begin key acquire read=sold-out rollback release release UNLOCK"},
        {"in-one", false, NO_SUCH_PRODUCT, .script = "ready one=no-product"},
        {"in-one", false, WRONG_STOCK_KIND, .script = "ready one=wrong-kind"},
        {"in-one", false, SOLD_OUT, .script = "ready one=sold-out"},
        {"in-one", true, NO_SUCH_PRODUCT, .script = "ready begin key one=no-product rollback"},
        {"in-one", true, WRONG_STOCK_KIND, .script = "ready begin key one=wrong-kind rollback"},
        {"in-one", true, SOLD_OUT, .script = "ready begin key one=sold-out rollback"},
    };
    play_all(cases, COUNT(cases));
}

static void nothing_was_read(void)
{
    fake.available = STOCK_UNSEEN;
    fake.look_finds = 0;
}

static void one_is_left(void)
{
    fake.available = 1;
}

static void test_what_a_refused_order_tells(void **state)
{
    (void)state;
    struct fake_order order;
    const struct order_result *result = &order.placing.result;
    play_with(&(struct expected){"plain", false, SOLD_OUT, .script = "ready begin read=sold-out rollback"},
              one_is_left, &order);
    assert_int_equal(result->available, 1);
    play_with(&(struct expected){"in-one", false, SOLD_OUT, .script = "ready one=sold-out"}, one_is_left,
              &order);
    assert_int_equal(result->available, 1);
    play_with(&(struct expected){"plain", false, WRONG_STOCK_KIND,
                                 .script = "ready begin read=wrong-kind rollback"},
              NULL, &order);
    assert_string_equal(result->kind, "buckets");
    play_with(
        &(struct expected){"plain", false, NO_SUCH_PRODUCT, .script = "ready begin read=no-product rollback"},
        NULL, &order);
    assert_true(result->available == STOCK_UNSEEN);
    assert_string_equal(result->kind, "");
}

/* Where the failed statement could not say what is left, one look outside the transaction and the lock does. */
static void test_a_second_look_at_what_is_left(void **state)
{
    (void)state;
    struct fake_order order;
    const struct order_result *result = &order.placing.result;
    play_with(&(struct expected){"plain", false, SOLD_OUT,
                                 .script = "ready begin read READ write=sold-out rollback look"},
              nothing_was_read, &order);
    assert_int_equal(result->available, 0);
    play_with(
        &(struct expected){
            "around", false, SOLD_OUT,
            .script = "ready acquire LOCK begin read READ write=sold-out rollback release UNLOCK look"},
        nothing_was_read, &order);
    assert_int_equal(result->available, 0);
    play_with(
        &(struct expected){"in-one", true, SOLD_OUT, .script = "ready begin key one=sold-out rollback look"},
        nothing_was_read, &order);
    assert_int_equal(result->available, 0);
    play_with(&(struct expected){"plain", false, SOLD_OUT,
                                 .script = "ready begin read READ write=sold-out rollback look=away"},
              nothing_was_read, &order);
    assert_true(result->available == STOCK_UNSEEN);
}

/* ---- Idempotency-Key ------------------------------------------------------------------------------------- */

static void test_keys_that_were_used_before(void **state)
{
    (void)state;
    static const struct expected cases[] = {
        {"plain", true, REPLAYED, .script = "ready begin key=replay rollback"},
        {"plain", true, KEY_MISMATCHED, .script = "ready begin key=mismatch rollback"},
        {"plain", true, KEY_IN_USE, .script = "ready begin key=in-progress rollback"},
        {"around", true, REPLAYED, .script = "ready acquire LOCK begin key=replay rollback release UNLOCK"},
        {"around", true, KEY_MISMATCHED,
         .script = "ready acquire LOCK begin key=mismatch rollback release UNLOCK"},
        {"around", true, KEY_IN_USE,
         .script = "ready acquire LOCK begin key=in-progress rollback release UNLOCK"},
        {"inside", true, REPLAYED, .script = "ready begin key=replay rollback"},
        {"inside", true, KEY_MISMATCHED, .script = "ready begin key=mismatch rollback"},
        {"inside", true, KEY_IN_USE, .script = "ready begin key=in-progress rollback"},
        {"twice", true, REPLAYED, .script = "ready acquire LOCK begin key=replay rollback release UNLOCK"},
        {"twice", true, KEY_MISMATCHED,
         .script = "ready acquire LOCK begin key=mismatch rollback release UNLOCK"},
        {"twice", true, KEY_IN_USE,
         .script = "ready acquire LOCK begin key=in-progress rollback release UNLOCK"},
        {"retry", true, REPLAYED, .script = "ready begin key=replay rollback"},
        {"retry", true, KEY_IN_USE, .script = "ready begin key=in-progress rollback"},
        {"in-one", true, REPLAYED, .script = "ready begin key=replay rollback"},
        {"in-one", true, KEY_MISMATCHED, .script = "ready begin key=mismatch rollback"},
        {"in-one", true, KEY_IN_USE, .script = "ready begin key=in-progress rollback"},
    };
    play_all(cases, COUNT(cases));
    struct fake_order order;
    play_with(&cases[0], NULL, &order);
    assert_int_equal(order.placing.result.order.id, 4711); /* the first order's */
}

static void other_constraint(void)
{
    fake.other_constraint = true;
}

/* A number that is there already is a bug of ours, not a first order that still runs. */
static void test_a_unique_violation_that_is_not_the_keys(void **state)
{
    (void)state;
    struct fake_order order;
    play_with(&(struct expected){"plain", true, FAILED,
                                 .script = "ready begin key " TAKE " insert=unique rollback"},
              other_constraint, &order);
    play_with(&(struct expected){"in-one", true, FAILED, .script = "ready begin key one=unique rollback"},
              other_constraint, &order);
}

/* ---- conflicts, and other tries -------------------------------------------------------------------------- */

#define LOST_RACE "ready begin read READ write=conflict rollback "
#define REFUSED_COMMIT "ready begin " TAKE " insert INSERT commit=serialization "

static void test_tries(void **state)
{
    (void)state;
    static const struct expected cases[] = {
        {"retry", false, CREATED, .script = LOST_RACE "ready begin " TAKE " insert INSERT commit COMMIT",
         .tries = 2},
        {"retry", false, CREATED,
         .script = LOST_RACE LOST_RACE "ready begin " TAKE " insert INSERT commit COMMIT", .tries = 3},
        {"retry", false, CREATED, .script = REFUSED_COMMIT "ready begin " TAKE " insert INSERT commit COMMIT",
         .tries = 2},
        {"retry", false, CREATED,
         .script = "ready begin read=deadlock rollback ready begin " TAKE " insert=serialization rollback "
                   "ready begin " TAKE " insert INSERT commit COMMIT",
         .tries = 3},
        {"retry", false, CREATED,
         .script = "ready=serialization ready begin " TAKE " insert INSERT commit COMMIT", .tries = 2},
        {"retry", false, SOLD_OUT, .script = LOST_RACE "ready begin read=sold-out rollback", .tries = 2},
        {"retry", false, NO_SUCH_PRODUCT, .script = LOST_RACE "ready begin read=no-product rollback",
         .tries = 2},
        {"retry", false, BUSY, .script = LOST_RACE "ready begin read=timeout rollback", .tries = 2},
        {"retry", false, BACKEND_AWAY, .script = LOST_RACE "ready=away", .tries = 2, .backend = "postgresql"},
        {"retry", false, FAILED, .script = LOST_RACE "ready begin read READ write=error rollback",
         .tries = 2},
        {"retry", true, REPLAYED,
         .script = "ready begin key read READ write=conflict rollback ready begin key=replay rollback",
         .tries = 2},
        {"around-retry", false, CREATED,
         .script = "ready acquire LOCK begin read READ write=conflict rollback release UNLOCK "
                   "ready acquire LOCK begin " TAKE " insert INSERT commit COMMIT release UNLOCK",
         .tries = 2},
        {"around-retry", false, BUSY,
         .script =
             "ready acquire LOCK begin read READ write=conflict rollback release UNLOCK ready acquire=busy",
         .tries = 2},
        {"inside-retry", false, CREATED,
         .script = "ready begin acquire LOCK read READ write=conflict release UNLOCK rollback "
                   "ready begin acquire LOCK " TAKE " insert INSERT release UNLOCK commit COMMIT",
         .tries = 2},
    };
    play_all(cases, COUNT(cases));
}

static void test_tries_are_used_up(void **state)
{
    (void)state;
    static const struct expected cases[] = {
        {"retry", false, CONFLICT,
         .script = LOST_RACE LOST_RACE "ready begin read READ write=conflict rollback", .tries = 3},
        {"retry", false, CONFLICT,
         .script = REFUSED_COMMIT REFUSED_COMMIT "ready begin " TAKE " insert INSERT commit=deadlock",
         .tries = 3},
        {"around-retry", false, CONFLICT,
         .script = "ready acquire LOCK begin read READ write=conflict rollback release UNLOCK "
                   "ready acquire LOCK begin read READ write=conflict rollback release UNLOCK "
                   "ready acquire LOCK begin read READ write=conflict rollback release UNLOCK",
         .tries = 3},
    };
    play_all(cases, COUNT(cases));
}

/* Between two tries the engine sleeps for a random while, and never after the last. */
static void test_pauses_between_tries(void **state)
{
    (void)state;
    struct fake_order order;
    play_with(
        &(struct expected){"retry", false, CONFLICT,
                           .script = LOST_RACE LOST_RACE "ready begin read READ write=conflict rollback",
                           .tries = 3},
        NULL, &order);
    assert_int_equal(fake.pauses, 2);
    assert_true(fake.longest_pause_us > 0 && fake.longest_pause_us <= 20000);

    /* Many tries: no pause grows beyond its bound, and each tries' end is before the deadline. */
    fake_prepare(&order, find_shape("retry"), false, true);
    order.strategy.max_tries = 30;
    static char script[4096];
    script[0] = '\0';
    for (int i = 0; i < 30; i++)
        fake_append(script, sizeof script, "ready begin read READ write=conflict rollback");
    fake.script = script;
    fake.random_value = 19999;
    fake_place(&order);
    assert_string_equal(fake.log, script);
    assert_string_equal(fake.broken, "");
    assert_int_equal(order.placing.result.tries, 30);
    assert_int_equal(order.placing.result.outcome, CONFLICT);
    assert_int_equal(fake.pauses, 29);
    assert_true(fake.longest_pause_us <= 20000);
}

static void deadline_is_now(void)
{
    fake.placing->deadline_us = fake.now_us + 100;
    fake.placing->lock_deadline_us = fake.now_us + 100;
}

static void test_no_try_after_the_deadline(void **state)
{
    (void)state;
    struct fake_order order;
    play_with(&(struct expected){"retry", false, CONFLICT,
                                 .script = "ready begin read READ write=conflict rollback", .tries = 1},
              deadline_is_now, &order);
    assert_int_equal(fake.pauses, 0);
}

/* ---- a COMMIT without a reply ---------------------------------------------------------------------------- */

static void test_a_commit_without_a_reply_is_settled(void **state)
{
    (void)state;
    static const struct expected cases[] = {
        {"plain", false, CREATED,
         .script = "ready begin " TAKE " insert INSERT commit=unknown settle=committed COMMIT"},
        {"plain", false, BACKEND_AWAY,
         .script = "ready begin " TAKE " insert INSERT commit=unknown settle=rolled-back",
         .backend = "postgresql"},
        {"plain", false, UNKNOWN,
         .script = "ready begin " TAKE " insert INSERT commit=unknown settle=unknown"},
        {"plain", true, CREATED,
         .script = "ready begin key " TAKE " insert INSERT commit=unknown settle=committed COMMIT"},
        {"retry", false, UNKNOWN,
         .script = "ready begin " TAKE " insert INSERT commit=unknown settle=unknown"},
        {"retry", false, BACKEND_AWAY,
         .script = "ready begin " TAKE " insert INSERT commit=unknown settle=rolled-back",
         .backend = "postgresql"},
        {"retry", false, CREATED,
         .script = LOST_RACE "ready begin " TAKE " insert INSERT commit=unknown settle=committed COMMIT",
         .tries = 2},
        /* The lock is held until the fate is known: the next holder would read stock that is about to change. */
        {"around", false, CREATED,
         .script = "ready acquire LOCK begin " TAKE
                   " insert INSERT commit=unknown settle=committed COMMIT release UNLOCK"},
        {"around", false, BACKEND_AWAY,
         .script = "ready acquire LOCK begin " TAKE
                   " insert INSERT commit=unknown settle=rolled-back release UNLOCK",
         .backend = "postgresql"},
        {"around", false, UNKNOWN,
         .script = "ready acquire LOCK begin " TAKE
                   " insert INSERT commit=unknown settle=unknown release UNLOCK"},
        {"inside", false, CREATED,
         .script = "ready begin acquire LOCK " TAKE
                   " insert INSERT release UNLOCK commit=unknown settle=committed COMMIT"},
        {"inside", false, UNKNOWN,
         .script = "ready begin acquire LOCK " TAKE
                   " insert INSERT release UNLOCK commit=unknown settle=unknown"},
        {"twice", false, CREATED,
         .script = "ready acquire LOCK begin acquire " TAKE
                   " commit=unknown settle=committed COMMIT-STOCK release release UNLOCK "
                   "begin insert INSERT commit COMMIT-ORDER"},
        {"twice", false, BACKEND_AWAY,
         .script = "ready acquire LOCK begin acquire " TAKE
                   " commit=unknown settle=rolled-back release release UNLOCK",
         .backend = "postgresql"},
        {"twice", false, UNKNOWN,
         .script = "ready acquire LOCK begin acquire " TAKE
                   " commit=unknown settle=unknown release release UNLOCK"},
        {"twice", false, CREATED,
         .script = "ready acquire LOCK begin acquire " TAKE " commit COMMIT-STOCK release release UNLOCK "
                   "begin insert INSERT commit=unknown settle=committed COMMIT-ORDER"},
        {"twice", false, BACKEND_AWAY,
         .script = "ready acquire LOCK begin acquire " TAKE " commit COMMIT-STOCK release release UNLOCK "
                   "begin insert INSERT commit=unknown settle=rolled-back",
         .backend = "postgresql"},
        {"twice", false, UNKNOWN,
         .script = "ready acquire LOCK begin acquire " TAKE " commit COMMIT-STOCK release release UNLOCK "
                   "begin insert INSERT commit=unknown settle=unknown"},
        {"in-one", false, UNKNOWN,
         .script = "ready one=unknown"}, /* its transaction has no name that came back */
        {"in-one", true, CREATED, .script = "ready begin key one commit=unknown settle=committed COMMIT"},
        {"in-one", true, BACKEND_AWAY, .script = "ready begin key one commit=unknown settle=rolled-back",
         .backend = "postgresql"},
        {"in-one", true, UNKNOWN, .script = "ready begin key one commit=unknown settle=unknown"},
    };
    play_all(cases, COUNT(cases));
}

/* ---- the lock ended before it was released --------------------------------------------------------------- */

static void test_a_lock_that_was_lost_after_the_commit(void **state)
{
    (void)state;
    static const struct expected cases[] = {
        {"around", false, CREATED,
         .script = "ready acquire LOCK begin " TAKE " insert INSERT commit COMMIT release=lost UNLOCK",
         .lost = true},
        {"around", false, CREATED,
         .script = "ready acquire LOCK begin " TAKE
                   " insert INSERT commit=unknown settle=committed COMMIT release=lost UNLOCK",
         .lost = true},
        {"twice", false, CREATED,
         .script = "ready acquire LOCK begin acquire " TAKE
                   " commit COMMIT-STOCK release release=lost UNLOCK "
                   "begin insert INSERT commit COMMIT-ORDER",
         .lost = true},
        {"twice", false, CREATED,
         .script = "ready acquire LOCK begin acquire " TAKE
                   " commit COMMIT-STOCK release=lost release UNLOCK "
                   "begin insert INSERT commit COMMIT-ORDER",
         .lost = true},
    };
    play_all(cases, COUNT(cases));
}

/* Of an order that does not stand it is not said, whatever happened to its lock. */
static void test_a_lock_that_was_lost_without_a_commit(void **state)
{
    (void)state;
    static const struct expected cases[] = {
        {"around", false, SOLD_OUT,
         .script = "ready acquire LOCK begin read=sold-out rollback release=lost UNLOCK"},
        {"around", false, BUSY,
         .script = "ready acquire LOCK begin read=timeout rollback release=lost UNLOCK"},
        {"around", false, UNKNOWN,
         .script = "ready acquire LOCK begin " TAKE
                   " insert INSERT commit=unknown settle=unknown release=lost UNLOCK"},
        {"around", false, BACKEND_AWAY,
         .script = "ready acquire LOCK begin " TAKE
                   " insert INSERT commit=unknown settle=rolled-back release=lost UNLOCK",
         .backend = "postgresql"},
        {"inside", false, CONFLICT,
         .script = "ready begin acquire LOCK " TAKE
                   " insert INSERT release=lost UNLOCK commit=serialization"},
        {"inside", false, UNKNOWN,
         .script = "ready begin acquire LOCK " TAKE
                   " insert INSERT release=lost UNLOCK commit=unknown settle=unknown"},
        {"twice", false, FAILED,
         .script = "ready acquire LOCK begin acquire " TAKE
                   " commit COMMIT-STOCK release release=lost UNLOCK "
                   "begin insert=error rollback"},
        {"twice", true, KEY_IN_USE,
         .script = "ready acquire LOCK begin key acquire " TAKE
                   " commit COMMIT-STOCK release release=lost UNLOCK "
                   "begin insert=unique rollback"},
    };
    play_all(cases, COUNT(cases));
}

/* ---- deadlines ------------------------------------------------------------------------------------------- */

static void lock_deadline_is_later(void)
{
    fake.placing->lock_deadline_us = fake.placing->deadline_us + 50 * 1000000;
}

/* "Every wait ends" at the order's deadline: a lock's too, however long a lock may be waited for. */
static void test_the_wait_for_the_lock_ends_with_the_order(void **state)
{
    (void)state;
    struct fake_order order;
    play_with(&(struct expected){"around", false, CREATED,
                                 .script = "ready acquire LOCK begin " TAKE
                                           " insert INSERT commit COMMIT release UNLOCK"},
              lock_deadline_is_later, &order);
}

#define ENGINE_TEST(test) cmocka_unit_test_setup_teardown(test, forget_mismatches, has_no_mismatches)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_orders_that_succeed),
        ENGINE_TEST(test_a_guarded_statement),
        ENGINE_TEST(test_what_a_created_order_tells),
        ENGINE_TEST(test_the_fence_is_the_value_of_the_lock_step),
        ENGINE_TEST(test_a_fence_shuts_out_older_holders),
        ENGINE_TEST(test_a_lock_that_is_not_got),
        ENGINE_TEST(test_a_database_that_fails),
        ENGINE_TEST(test_stock_that_cannot_be_taken),
        ENGINE_TEST(test_what_a_refused_order_tells),
        ENGINE_TEST(test_a_second_look_at_what_is_left),
        ENGINE_TEST(test_keys_that_were_used_before),
        ENGINE_TEST(test_a_unique_violation_that_is_not_the_keys),
        ENGINE_TEST(test_tries),
        ENGINE_TEST(test_tries_are_used_up),
        ENGINE_TEST(test_pauses_between_tries),
        ENGINE_TEST(test_no_try_after_the_deadline),
        ENGINE_TEST(test_a_commit_without_a_reply_is_settled),
        ENGINE_TEST(test_a_lock_that_was_lost_after_the_commit),
        ENGINE_TEST(test_a_lock_that_was_lost_without_a_commit),
        ENGINE_TEST(test_the_wait_for_the_lock_ends_with_the_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
