/* The shapes that a strategy's row can have for the engine: test_engine plays every one of them call by call, and
 * test_strategies checks that every row of the table has one of them. */
#ifndef OVERSELL_TESTS_SHAPES_H
#define OVERSELL_TESTS_SHAPES_H

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
    {"plain", NO_LOCK, ONE_TX, NO_FENCE, false, place_by_steps},
    {"around", AROUND_TX, ONE_TX, NO_FENCE, false, place_by_steps},
    {"inside", INSIDE_TX, ONE_TX, NO_FENCE, false, place_by_steps},
    {"twice", AROUND_TWICE, TWO_TX, NO_FENCE, false, place_by_steps},
    {"fence-on-write", AROUND_TX, ONE_TX, ON_WRITE, false, place_by_steps},
    {"fenced", AROUND_TX, ONE_TX, BEFORE_READ, false, place_by_steps},
    {"retry", NO_LOCK, ONE_TX, NO_FENCE, true, place_by_steps},
    {"in-one", NO_LOCK, ONE_TX, NO_FENCE, false, place_in_one_statement},
    {"around-retry", AROUND_TX, ONE_TX, NO_FENCE, true,
     place_by_steps}, /* no row yet; the engine must do it right anyway */
    {"inside-retry", INSIDE_TX, ONE_TX, NO_FENCE, true, place_by_steps}, /* likewise */
};

#endif
