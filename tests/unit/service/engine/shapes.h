/* The shapes that a strategy's row can have for the engine: test_engine plays every one of them call by call, and
 * test_strategies checks that every row of the table has one of them. */
#ifndef OVERSELL_TESTS_UNIT_SERVICE_ENGINE_SHAPES_H
#define OVERSELL_TESTS_UNIT_SERVICE_ENGINE_SHAPES_H

#include "service/engine/create_order.h"

struct shape {
    const char *name;
    enum lock_span span;
    enum tx_scope scope;
    enum fencing fencing;
    bool tries_again;
    enum outcome (*place)(struct placing *placing);
};

static const struct shape shapes[] = {
    {"plain", SPAN_NONE, SCOPE_ONE_TX, FENCE_NONE, false, NULL},
    {"around", SPAN_AROUND_TX, SCOPE_ONE_TX, FENCE_NONE, false, NULL},
    {"inside", SPAN_INSIDE_TX, SCOPE_ONE_TX, FENCE_NONE, false, NULL},
    {"twice", SPAN_AROUND_TWICE, SCOPE_TWO_TX, FENCE_NONE, false, NULL},
    {"fence-on-write", SPAN_AROUND_TX, SCOPE_ONE_TX, FENCE_ON_WRITE, false, NULL},
    {"fenced", SPAN_AROUND_TX, SCOPE_ONE_TX, FENCE_BEFORE_READ, false, NULL},
    {"retry", SPAN_NONE, SCOPE_ONE_TX, FENCE_NONE, true, NULL},
    {"in-one", SPAN_NONE, SCOPE_ONE_TX, FENCE_NONE, false, place_in_one_statement},
    {"around-retry", SPAN_AROUND_TX, SCOPE_ONE_TX, FENCE_NONE, true,
     NULL}, /* no row yet; the engine must do it right anyway */
    {"inside-retry", SPAN_INSIDE_TX, SCOPE_ONE_TX, FENCE_NONE, true, NULL}, /* the same */
};

#endif
