/* Compares what a run found with what the strategy promises: the verdicts, their names, and the rule that compare and rush
 * decide by. No I/O, no state: any thread may call. */
#ifndef OVERSELL_LOADTEST_STATS_VERDICT_H
#define OVERSELL_LOADTEST_STATS_VERDICT_H

#include "service/engine/promise.h"

#include <stdbool.h>

/* What a command found about one strategy. From the best to the worst, so that the worst of several runs is the greatest. */
enum verdict {
    VERDICT_OK,
    VERDICT_CLEAN, /* of a service that is not ours (check): answers, stock and sales agree */
    VERDICT_OVERSOLD_AS_EXPECTED,
    VERDICT_CAUGHT,        /* failed under a fault that its guarantee excludes */
    VERDICT_FLAWED,        /* no oversell here; its flaw needs an event that this run did not have */
    VERDICT_UNKNOWN,       /* nothing wrong was found, but not everything was examined (explore) */
    VERDICT_UNAVAILABLE,   /* its lock's server does not answer */
    VERDICT_NOT_CAUGHT,    /* this run should have shown its flaw, and did not */
    VERDICT_NOTHING_SHOWN, /* too little was sold under the fault to say anything */
    VERDICT_NOT_EXPLORED,  /* explore: a part of the schedules cannot be run, so none of them says clean */
    VERDICT_MIXED,         /* other writers changed the product, so there is no result */
    VERDICT_ANOMALY,       /* a specification: no serial order gives the results of a schedule */
    VERDICT_FAILING,       /* check: too many answers say neither sold nor sold out */
    VERDICT_TURNED_AWAY, /* check: buyers were refused although units were left, and nobody bought these later */
    VERDICT_ANSWERS_LOST, /* check: the answers and the sales do not agree */
    VERDICT_INVARIANT,    /* check: an invariant of the user is not true */
    VERDICT_DRIFT,        /* check: stock and sales do not balance */
    VERDICT_STUCK,        /* explore of such a service: no request could go on */
    VERDICT_OVERSOLD,     /* check: more was sold than there was */
    VERDICT_BROKEN,       /* it broke its guarantee */
    VERDICT_COUNT
};

struct evidence {
    enum guarantee guarantee;
    unsigned shown_by; /* enum shown_by, or-ed */
    int instances;     /* service processes at work */
    bool available;
    bool mixed;         /* orders of several strategies on one product */
    bool oversold;      /* more units sold than there were, or an update of the stock lost */
    bool books_off;     /* oversold, or any other figure of the audit that does not balance */
    bool answers_wrong; /* orders that no client was told of, or told of and not there */
    bool sold_nothing;  /* there was stock and there were orders, and none was created */
    bool amounts_wrong; /* an order's amount is not the price times the quantity of its items */
    bool refused;       /* an order was refused although enough units were left for it */
    bool lock_leaked;   /* a lock is held although no order is in progress */
    bool failed;        /* orders failed although no fault was injected */
    bool conflicted;    /* orders of a row that tries once ended in a conflict, such as a deadlock */
};

enum verdict verdict_of(const struct evidence *evidence);
/* Does the guarantee cover concurrent orders in INSTANCES processes, without pauses or crashes? */
bool verdict_promise_covers(enum guarantee guarantee, int instances);
/* The run is one that shows this flaw. */
bool verdict_flaw_is_shown(unsigned shown_by, int instances);
/* A run with such a verdict is a failure of the product. */
bool verdict_fails(enum verdict verdict);

const char *verdict_name(enum verdict verdict);
/* Each returns false for a name that is none. */
bool verdict_parse(const char *name, enum verdict *ret_verdict);
bool guarantee_parse(const char *name, enum guarantee *ret_guarantee);
/* Names with anything but letters and dashes between them. */
bool shown_by_parse(const char *names, unsigned *ret_shown_by);

#endif
