/* The engine with every failure, and every two and three of them, at every call it makes: whatever happens, what was taken
 * is given back once and in the right order, nothing is committed after a failure, and the outcome is the failure's.
 * The rules are checked by the fakes; the outcome is worked out here from the calls that were made. */
#include "tests/unit/service/engine/engine_fakes.h"

/* How each call can fail. Unique violations need a key of the client's; a reply can be lost where it commits. */
static const struct {
    const char *call;
    const char *results[16];
} failures[] = {
    {"ready", {"away", "refused", "error", "timeout"}},
    {"acquire", {"busy", "lost", "not-owner", "away", "refused", "unavailable", "failed"}},
    {"fence", {"old", "no-product", "lock-timeout", "timeout", "away", "error"}},
    {"raise", {"away", "refused"}},
    {"key",
     {"replay", "mismatch", "in-progress", "serialization", "deadlock", "lock-timeout", "timeout", "away",
      "error", "again"}},
    {"read",
     {"no-product", "wrong-kind", "sold-out", "serialization", "deadlock", "lock-timeout", "timeout", "away",
      "refused", "error", "again"}},
    {"take",
     {"no-product", "wrong-kind", "sold-out", "busy", "conflict", "serialization", "lock-timeout", "away",
      "error", "again"}},
    {"write",
     {"conflict", "lock-lost", "sold-out", "serialization", "deadlock", "lock-timeout", "timeout", "check",
      "out-of-range", "away", "error", "again"}},
    {"insert",
     {"serialization", "deadlock", "timeout", "unique", "foreign-key", "out-of-range", "away", "error",
      "again"}},
    {"one",
     {"no-product", "wrong-kind", "sold-out", "serialization", "deadlock", "lock-timeout", "timeout",
      "unique", "away", "unknown", "error"}},
    {"commit", {"serialization", "deadlock", "unknown", "away", "error", "timeout", "again"}},
    {"settle", {"committed", "rolled-back", "unknown", "forgotten"}},
    {"release", {"lost", "not-owner", "away", "failed"}},
    {"look", {"away", "timeout"}},
    {"give", {"away", "lock-timeout", "error", "unknown"}},
};

static const char *const *failures_of(const char *call)
{
    static const char *const none[] = {NULL};
    for (size_t i = 0; i < COUNT(failures); i++)
        if (strcmp(failures[i].call, call) == 0)
            return failures[i].results;
    return none;
}

static bool ends_later; /* create_order does not wait for COMMIT, as where orders are placed in turn */

static bool can_happen(const char *call, const char *result, bool keyed)
{
    if (strcmp(result, "again") == 0)
        return ends_later;
    if (strcmp(result, "unique") == 0)
        return keyed;
    if (strcmp(result, "unknown") == 0 && strcmp(call, "one") == 0)
        return !keyed;
    return true;
}

/* ---- what the outcome has to be -------------------------------------------------------------------------- */

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static enum outcome outcome_of_failure(const char *result)
{
    static const struct {
        const char *result;
        enum outcome outcome;
    } meanings[] = {
        {"no-product", ORDER_NO_SUCH_PRODUCT},
        {"wrong-kind", ORDER_WRONG_STOCK_KIND},
        {"sold-out", ORDER_SOLD_OUT},
        {"conflict", ORDER_CONFLICT},
        {"serialization", ORDER_CONFLICT},
        {"deadlock", ORDER_CONFLICT},
        {"lock-timeout", ORDER_LOCK_TIMEOUT},
        {"timeout", ORDER_LOCK_TIMEOUT},
        {"busy", ORDER_LOCK_TIMEOUT},
        {"lost", ORDER_LOCK_LOST},
        {"not-owner", ORDER_LOCK_LOST},
        {"away", ORDER_BACKEND_UNAVAILABLE},
        {"refused", ORDER_BACKEND_UNAVAILABLE},
        {"unavailable", ORDER_BACKEND_UNAVAILABLE},
        {"replay", ORDER_REPLAYED},
        {"mismatch", ORDER_KEY_MISMATCH},
        {"in-progress", ORDER_KEY_IN_USE},
        {"unique", ORDER_KEY_IN_USE},
        {"unknown", ORDER_UNKNOWN},
        {"forgotten", ORDER_UNKNOWN},
        {"again", ORDER_BEHIND_FAILURE},
        {"rolled-back", ORDER_BACKEND_UNAVAILABLE},
        {"lock-lost", ORDER_LOCK_LOST},
        {"old", ORDER_LOCK_LOST},
    };
    for (size_t i = 0; i < COUNT(meanings); i++)
        if (is(meanings[i].result, result))
            return meanings[i].outcome;
    return ORDER_FAILED;
}

/* The outcome of the try that ends before call END: that of its first failure. A lock that could not be released
 * and a look that found nothing decide nothing, and a lost reply is decided by its settling. */
static enum outcome outcome_of_try(int from, int end)
{
    for (int i = from; i < end; i++) {
        const struct recorded_call *c = &fake.calls[i];
        bool settled = i + 1 < end && is(fake.calls[i + 1].name, "settle");
        bool success = is(c->result, "ok") || (is(c->name, "settle") && is(c->result, "committed"));
        if (success || is(c->name, "release") || is(c->name, "raise") || is(c->name, "look") ||
            (is(c->name, "commit") && settled))
            continue;
        return outcome_of_failure(c->result);
    }
    return ORDER_CREATED;
}

static void check_outcome(const struct fake_order *order)
{
    const struct order_result *result = &order->placing.result;
    int tries = 0, begun = 0;
    for (int i = 0; i <= fake.call_count; i++) {
        bool ends = i == fake.call_count || is(fake.calls[i].name, "ready");
        if (ends && i > 0) {
            enum outcome outcome = outcome_of_try(begun, i);
            rule(i == fake.call_count || outcome == ORDER_CONFLICT || outcome == ORDER_BEHIND_FAILURE,
                 "a try after one that met no conflict");
            tries -= outcome == ORDER_BEHIND_FAILURE; /* as if it had not been tried */
            rule(i < fake.call_count || outcome == result->outcome,
                 "another outcome than its first failure's");
        }
        if (ends && i < fake.call_count) {
            begun = i;
            tries++;
        }
    }
    rule(tries == result->tries, "tries are counted wrong");
    rule(result->outcome != ORDER_CONFLICT || tries == order->strategy.max_tries, "tries are left");
    rule(result->outcome != ORDER_BACKEND_UNAVAILABLE || result->backend, "nobody is named that is away");
}

/* Every commit=unknown is followed by its settling, at once. */
static void check_settling(void)
{
    for (int i = 0; i < fake.call_count; i++) {
        const struct recorded_call *c = &fake.calls[i];
        if ((is(c->name, "commit") || is(c->name, "give")) && is(c->result, "unknown"))
            rule(i + 1 < fake.call_count && is(fake.calls[i + 1].name, "settle"),
                 "a lost COMMIT is not settled");
        if (is(c->name, "settle"))
            rule(i > 0 && (is(fake.calls[i - 1].name, "commit") || is(fake.calls[i - 1].name, "give")) &&
                     is(fake.calls[i - 1].result, "unknown"),
                 "something is settled that was not lost");
    }
}

/* Of two transactions: units whose taking was committed, or may have been, are sold, given back or owed, and only one of that. */
static void check_units(const struct fake_order *order)
{
    const struct recorded_call *taking = NULL, *settled = NULL;
    for (int i = 0; i < fake.call_count && !taking; i++)
        if (is(fake.calls[i].name, "commit")) {
            taking = &fake.calls[i];
            settled = i + 1 < fake.call_count && is(fake.calls[i + 1].name, "settle") ? taking + 1 : NULL;
        }
    bool taken = taking && (is(taking->result, "ok") || (is(taking->result, "unknown") && settled &&
                                                         !is(settled->result, "rolled-back")));
    bool sold = order->placing.result.outcome == ORDER_CREATED;
    rule((sold + fake.given_back + fake.owed) == (order->strategy.scope == SCOPE_TWO_TX ? taken : sold),
         "units are lost, or counted twice");
}

/* ---- all faults ------------------------------------------------------------------------------------------ */

static long runs;

static void run(const struct shape *shape, bool keyed, bool guarded, const struct fault *faults, int count)
{
    struct fake_order order;
    fake_prepare(&order, shape, keyed, true);
    fake.guarded = guarded;
    if (ends_later)
        fake_end_later(&order);
    memcpy(fake.faults, faults, (size_t)count * sizeof *faults);
    fake.fault_count = count;
    fake_place(&order);
    check_outcome(&order);
    check_settling();
    check_units(&order);
    runs++;
    if (fake.broken[0])
        fail_msg("%s%s: %s\n  the calls were: %s\n  the outcome: %s", shape->name, keyed ? ", keyed" : "",
                 fake.broken, fake.log, outcome_name(order.placing.result.outcome));
}

/* Runs with FAULTS, and then with each fault that can be added after the last of them. */
static void run_all(const struct shape *shape, bool keyed, bool guarded, const struct fault *faults,
                    int count)
{
    run(shape, keyed, guarded, faults, count);
    if (count == FAULTS_MAX)
        return;
    const char *names[CALLS_MAX];
    int name_count = fake.call_count;
    for (int i = 0; i < name_count; i++)
        names[i] = fake.calls[i].name;
    for (int i = count ? faults[count - 1].at + 1 : 0; i < name_count; i++)
        for (const char *const *result = failures_of(names[i]); *result; result++) {
            if (!can_happen(names[i], *result, keyed))
                continue;
            struct fault more[FAULTS_MAX];
            memcpy(more, faults, (size_t)count * sizeof *faults);
            more[count] = (struct fault){i, *result};
            run_all(shape, keyed, guarded, more, count + 1);
        }
}

static void test_all_faults(void **state)
{
    const struct fault none[FAULTS_MAX] = {{-1, NULL}};
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (int keyed = 0; keyed <= 1; keyed++)
            for (int guarded = 0; guarded <= 1; guarded++)
                run_all(&shapes[i], keyed, guarded, none, 0);
    assert_true(runs > 50000);
    print_message("%ld orders with up to %d faults each\n", runs, FAULTS_MAX);
}

/* The shapes of the rows whose orders are placed in turn. */
static void test_all_faults_in_turn(void **state)
{
    const struct fault none[FAULTS_MAX] = {{-1, NULL}};
    runs = 0;
    ends_later = true;
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (int keyed = 0; keyed <= 1; keyed++)
            for (int guarded = 0; guarded <= 1; guarded++)
                if (shapes[i].span == SPAN_NONE && shapes[i].scope == SCOPE_ONE_TX &&
                    shapes[i].fencing == FENCE_NONE && !shapes[i].tries_again && !shapes[i].place)
                    run_all(&shapes[i], keyed, guarded, none, 0);
    ends_later = false;
    assert_true(runs > 1000);
    print_message("%ld orders with up to %d faults each\n", runs, FAULTS_MAX);
}

/* A conflict at every try, wherever it comes from: there is an end to it. */
static void test_endless_conflicts_end(void **state)
{
    for (size_t i = 0; i < COUNT(shapes); i++) {
        struct fake_order order;
        fake_prepare(&order, &shapes[i], false, true);
        /* A failure of the same call in all tries: as many as the fakes can record. */
        static char script[8192];
        script[0] = '\0';
        const char *one =
            shapes[i].place == place_in_one_statement ? "ready one=conflict"
            : shapes[i].span == SPAN_INSIDE_TX
                ? "ready begin acquire LOCK read=serialization release UNLOCK rollback"
            : shapes[i].span == SPAN_AROUND_TWICE
                ? "ready acquire LOCK begin acquire read=serialization rollback release release UNLOCK"
            : shapes[i].fencing == FENCE_BEFORE_READ
                ? "ready acquire LOCK fence FENCE begin read=serialization rollback release UNLOCK"
            : shapes[i].span == SPAN_AROUND_TX
                ? "ready acquire LOCK begin read=serialization rollback release UNLOCK"
                : "ready begin read=serialization rollback";
        for (int j = 0; j < 20; j++)
            fake_append(script, sizeof script, one);
        fake.script = script;
        fake_place(&order);
        assert_string_equal(fake.broken, "");
        assert_int_equal(order.placing.result.outcome, ORDER_CONFLICT);
        assert_int_equal(order.placing.result.tries, order.strategy.max_tries);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_faults),
        cmocka_unit_test(test_all_faults_in_turn),
        cmocka_unit_test(test_endless_conflicts_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
