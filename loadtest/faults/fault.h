/* A fault as a row of data: what it breaks, how its cycles go, and what is expected of each strategy under it. */
#ifndef OVERSELL_LOADTEST_FAULTS_FAULT_H
#define OVERSELL_LOADTEST_FAULTS_FAULT_H

#include "base/prng.h"
#include "loadtest/cli/progress.h"
#include "loadtest/faults/checker/checker.h"
#include "loadtest/faults/testbed/fault_testbed.h"
#include "loadtest/stats/verdict.h"
#include "service/engine/strategy.h"

/* What is expected of a strategy under a fault: the invariants I1 to I8 that must hold, and the flaws that must show. 0: the
 * strategy is not tried under this fault. */
enum {
    I1_NOT_OVERSOLD = 1 << 1, /* no unit is sold twice, and no update of the stock is lost */
    I2_NOT_LOST = 1 << 2,     /* every acknowledged order is in the database afterwards */
    I3_BALANCED = 1 << 3,     /* stock and sold units add up */
    I4_LOCK_FREED = 1 << 4,   /* when a holder dies, other orders get its lock within TTL + 1 s */
    I5_FLOWS = 1 << 5,        /* orders succeed again within BOUND_MS after the servers are ready */
    I6_ANSWERED = 1 << 6,     /* every answer has a type, and arrives in bounded time */
    I7_ONCE = 1 << 7,         /* one key never has two orders, and a refused order never exists */
    I8_NO_UNIT_GONE = 1 << 8, /* no unit has left the stock without an order */
    INVARIANTS = 8,
    /* Flaws that must show at least once: */
    SEEN_OVERSOLD = 1 << 9, /* breaks I1 or I3 */
    SEEN_STUCK = 1 << 10,   /* breaks I4 */
    SEEN_LOST = 1 << 11,    /* breaks I2 */

    ORDERS_KEPT = I2_NOT_LOST | I6_ANSWERED | I7_ONCE | I8_NO_UNIT_GONE, /* required of every strategy */
    STOCK_KEPT = I1_NOT_OVERSOLD | I3_BALANCED,
    ALL_KEPT = STOCK_KEPT | ORDERS_KEPT,
    SEEN_ANY = SEEN_OVERSOLD | SEEN_STUCK | SEEN_LOST,
};

struct fault_run;

/* A recovery time is reported against BOUND_MS. The fault lab waits this many times as long before it counts a failure. */
enum { FAULT_LATE = 10 };
/* How long an order waits for its lock in CYCLE_LOAD. */
enum { FAULT_LOCK_WAIT_MS = 5000 };

/* How a cycle of a fault goes. */
enum cycle_kind {
    CYCLE_LOAD, /* clients order all the time; the nemesis breaks something, and repairs it */
    CYCLE_OVERTAKE, /* one order holds the lock and has read; the fault; another order starts, and both continue */
    CYCLE_LOCK_TEST, /* no orders: processes update a number under the strategy's lock (loadtest/faults/lock_test.c) */
};

/* One part of a fault. False: the run cannot continue, and stderr says why unless it was an interrupt. */
typedef bool fault_step(struct fault_run *run);

struct fault {
    const char *name;
    const char *does; /* in a few words, for people */
    enum cycle_kind cycle;
    unsigned (*expect)(const struct fault *fault, const struct strategy *strategy);
    unsigned perils;     /* PERIL_…: how the fault ends a lock, for expect_peril … */
    const char *lock_on; /* … of a lock on this server; NULL: on any server */
    const char
        *only[2];      /* tries only strategies whose lock is on one of these servers; none: all strategies */
    fault_step *enter; /* before the first cycle; NULL: nothing */
    fault_step *before;       /* CYCLE_OVERTAKE: before the first order of a cycle; NULL: nothing */
    fault_step *nemesis;      /* breaks something; in CYCLE_LOAD it also repairs it, and sets run->ready_us */
    fault_step *after;        /* CYCLE_OVERTAKE: when the second orders have started; NULL: nothing */
    fault_step *leave;        /* after the last cycle, also after a failure; NULL: nothing */
    const struct shim *shim;  /* the preloaded library that the fault needs; NULL: none */
    const char *servers[4];   /* names of the servers that the nemesis acts on */
    int64_t down_ms;          /* how long nemesis_restart leaves them down */
    struct proxy_rules rules; /* the proxies' rules while the nemesis acts … */
    int64_t lasts_ms;         /* … and for how long */
    const char *servers_of;   /* a strategy whose servers are needed in any case; NULL: none */
    unsigned proxied;         /* 1 << BACKEND, or-ed: the servers that the services reach through proxies */
    bool ample;               /* CYCLE_LOAD: the stock never sells out */
    bool at_victim;           /* it meets only orders of one service */
    bool clocks;              /* the services have clocks that can be set */
    bool proxied_one;         /* only the first service uses the proxies, and it is the victim */
    /* think time of an order, in CYCLE_OVERTAKE of the first one; 0: by the lease, or random */
    int64_t think_ms;
    int64_t ttl_ms; /* of the locks */
    /* I4, I5: goal for the time until orders succeed again; FAULT_LATE times as much fails */
    int64_t bound_ms;
    int cycles; /* the default of --cycles */
};

/* What a cycle did to a strategy. */
struct fault_cycle {
    /* As the longest ones of struct fault_subject; 0 in cycles that do not measure them. */
    int64_t outage_ms, recovery_ms;
    int64_t outage_from_ms, repaired_ms; /* from the fault to the start of that outage, and to the repair */
    bool stuck;                          /* no order was served after the repair */
    int64_t acknowledged, refused, lost, oversold;
};

enum { FAULT_CYCLES_KEPT = 40 }; /* the first ones */

/* A strategy under a fault, over all cycles so far. */
struct fault_subject {
    struct fault_cycle kept[FAULT_CYCLES_KEPT];
    const struct strategy *strategy;
    unsigned expected;
    int64_t product;
    const char *reason; /* why it cannot be tried; NULL: it can */
    struct fault_counts counts;
    int64_t cycles, longest_outage_ms, longest_recovery_ms, seen_in;
    int64_t empty;   /* cycles without an acknowledged order */
    int64_t outages; /* cycles in which no order was served for half a lease: in "kill", a holder had died */
    bool stuck;
};

/* A fault that is being tried. */
struct fault_run {
    const struct fault *fault;
    struct fault_testbed *testbed;
    struct fault_history *history;
    struct fault_subject *subjects;
    size_t count;
    uint64_t seed; /* of this cycle */
    uint64_t random;
    int64_t cycle, cycles; /* the current one, and how many are planned */
    int victim;            /* index of the service that suffers */
    unsigned targets;      /* 1 << BACKEND, or-ed: their proxies must have acted by the end of the run */
    int64_t fault_us;      /* when the fault happened, in this cycle */
    int64_t ready_us;      /* when it was repaired; 0: not yet */
    struct progress *progress;
};

extern const struct fault faults[];
extern const size_t fault_count;

/* Draws how far the run is, at most ten times a second. Every wait within a cycle calls it, since a cycle can take a minute. */
void fault_show_progress(const struct fault_run *run);

/* ---- cycles (loadtest/faults/cycle.c) ---- */

/* Places orders under every strategy at both services before anything is measured, so that all sessions are open. */
fault_step fault_warm_up;
/* One cycle of each kind. */
fault_step fault_load, fault_overtake, fault_lock_test;
/* Waits until every strategy has served an order since run->ready_us, or for FAULT_LATE times the bound. */
fault_step fault_await_service;
/* Deletes locks that were left in Redis, since a lock that never ends would spoil the next cycle too. */
void fault_free_locks(struct fault_run *run);

/* ---- calls between the orders (loadtest/faults/service_calls.c) ---- */

/* Counts the unexpected end of service I as a wrong answer of every strategy. WHEN completes "a service that …". */
void fault_note_end(struct fault_run *run, int i, const char *when);
/* Counts the failure of the last call to service I as a wrong answer of the subject, and starts the service again if it has ended. */
bool fault_note_refusal(struct fault_run *run, int i, struct fault_subject *subject);
/* Resets the product of every strategy to STOCK units. */
bool fault_set_stocks(struct fault_run *run, int64_t stock);
/* Repeats an Idempotency-Key under each strategy, and counts a wrong answer. The products' stock is to be set afterwards. */
bool fault_probe_keys(struct fault_run *run);
/* Sets how long each order at service I thinks between its read and its write, under every strategy. */
bool fault_set_think(struct fault_run *run, int i, int64_t think_ms);

/* ---- the moment of a fault (loadtest/faults/strike.c) ---- */

/* Begins the history of a cycle: its intents are those from now on. */
void fault_begin_cycle(struct fault_run *run);
/* Waits for a moment, a short time at most, at which the fault meets orders of the strategies of which it has met none so far. */
fault_step fault_aim;
/* The fault strikes now: sets run->fault_us and the history's strike. */
void fault_strike(struct fault_run *run);
/* Has the fault met no order of the strategy in its critical moment so far? */
bool fault_awaits_meeting(const struct fault_subject *subject);
/* Does the strategy accept orders, and write them later? */
bool fault_writes_later(const struct fault_subject *subject);

/* ---- expectations and verdicts (loadtest/faults/expect.c) ---- */

/* What is expected of the strategy under the fault; 0: it is not tried. */
unsigned fault_expected(const struct fault *fault, const struct strategy *strategy);
/* PERIL_… that can end the strategy's lock; 0 if it has none outside the database. */
unsigned fault_perils(const struct strategy *strategy);
/* Is the strategy's lock on the server that lock/ calls SERVER? */
bool fault_lock_on(const struct strategy *strategy, const char *server);
/* Does every sale under this strategy read the stock that it takes from, so that the sales can be put in sequence by it? */
bool fault_sees_its_place(const struct strategy *strategy);
/* Does the lock alone exclude other orders, so that critical sections must not overlap? (A fence rejects a late order, and an
 * unsafe row promises nothing.) */
bool fault_lock_excludes(const struct strategy *strategy);
/* Has one of the WANTED flaws (SEEN_…) not shown yet, although it is expected of a strategy? */
bool fault_still_to_be_seen(const struct fault_run *run, unsigned wanted);
/* Does the expectation need a holder that dies, and none has died yet? */
bool fault_awaits_outage(const struct fault_subject *subject);
/* The verdict on the subject. NOTHING_SHOWN: most cycles had no acknowledged order, so nothing could be lost; or the fault met no
 * order in its critical moment. */
enum verdict fault_verdict(const struct fault *fault, const struct fault_subject *subject);
/* The invariants in EXPECTED as "I1 I2 I7"; "" for none. BUFFER of 64 bytes, returned. */
const char *fault_promises(unsigned expected, char *buffer);

/* ---- what the rows are made of (loadtest/faults/nemesis/) ---- */

fault_step nemesis_kill, nemesis_terminate, nemesis_pause, after_pause; /* signals.c */
fault_step nemesis_postgres_backend, nemesis_postgres_immediate, nemesis_commit,
    nemesis_lock_backend;                                                /* postgres.c */
fault_step nemesis_network, nemesis_cut, nemesis_session, after_session; /* network.c */
fault_step nemesis_restart, nemesis_redis_loses, nemesis_redlock_minority, before_redlock_restart,
    nemesis_redlock_restart, before_failover, nemesis_failover, leave_failover; /* lock_servers.c */
fault_step enter_clocks, nemesis_clocks, leave_clocks, nemesis_clock_service;   /* clock.c */
fault_step nemesis_reset_beside;                                                /* reset.c */
fault_step enter_disk_full, nemesis_disk_full, leave_disk_full;                 /* disk.c */

/* Applies what SET puts into the rules before the backends BEFORE, again and again within a cycle, often enough that a few
 * cycles hit every strategy. Then there are no rules, and the fault is repaired. */
bool fault_set_rules_repeatedly(struct fault_run *run, unsigned before,
                                void (*set)(struct fault_run *run, struct proxy_rules *rules));

#endif
