/* A fault as a row of data: what is done, to whom it applies, and what is expected of each strategy. */
#ifndef OVERSELL_LOADTEST_FAULTS_FAULT_H
#define OVERSELL_LOADTEST_FAULTS_FAULT_H

#include "base/prng.h"
#include "loadtest/cli/progress.h"
#include "loadtest/faults/checker/checker.h"
#include "loadtest/faults/testbed/fault_testbed.h"
#include "loadtest/stats/verdict.h"
#include "service/engine/strategy.h"

/* What is expected of a strategy under a fault. First what must hold; a strategy of which nothing is expected is not tried. */
enum {
    I1_NOT_OVERSOLD = 1 << 1, /* no unit is sold twice, and no update of the stock is lost */
    I2_NOT_LOST = 1 << 2,     /* every order that a client was told of is in the database afterwards */
    I3_BALANCED = 1 << 3,     /* stock and sold units add up */
    I4_LOCK_FREED = 1 << 4,   /* others go on within TTL + 1 s */
    I5_FLOWS = 1 << 5,        /* orders flow again within the stated time of the servers' being ready */
    I6_ANSWERED = 1 << 6,     /* every answer has a type, and comes in bounded time */
    I7_ONCE = 1 << 7,         /* never two orders for one key, nor one that its client was told was refused */
    /* And what must be seen to go wrong, at least once. */
    SEEN_OVERSOLD = 1 << 8, /* against I1 or I3 */
    SEEN_STUCK = 1 << 9,    /* against I4 */
    SEEN_LOST = 1 << 10,    /* against I2 */

    ORDERS_KEPT = I2_NOT_LOST | I6_ANSWERED | I7_ONCE, /* what no strategy may break */
    STOCK_KEPT = I1_NOT_OVERSOLD | I3_BALANCED,
    ALL_KEPT = STOCK_KEPT | ORDERS_KEPT,
    SEEN_ANY = SEEN_OVERSOLD | SEEN_STUCK | SEEN_LOST,
};

struct fault_run;

/* A bound in ms is a figure. So many times the bound others are waited for, and who is not back by then has failed. */
enum { FAULT_LATE = 10 };
/* How long an order waits for its lock in CYCLE_LOAD. */
enum { FAULT_LOCK_WAIT_MS = 5000 };

/* How a fault's cycles go. */
enum cycle_kind {
    CYCLE_LOAD,     /* clients order all the time; something breaks, and is mended */
    CYCLE_OVERTAKE, /* somebody holds a lock and has read; the fault; somebody else comes, and both go on */
    CYCLE_LOCK_TEST, /* no orders: processes that update a number under the strategy's lock (loadtest/faults/lock_test.h) */
};

struct fault {
    const char *name;
    const char *does; /* in a few words, for people */
    enum cycle_kind cycle;
    unsigned (*expected)(const struct strategy *strategy);
    /* Before the first cycle; NULL: nothing. */
    bool (*enter)(struct fault_run *run);
    /* CYCLE_OVERTAKE: at the beginning of a cycle, before anybody orders; NULL: nothing. */
    bool (*before)(struct fault_run *run);
    /* Breaks something. In CYCLE_LOAD it also mends it, and notes when in run->ready_us. False: the experiment cannot go
     * on; it has said why. */
    bool (*nemesis)(struct fault_run *run);
    /* CYCLE_OVERTAKE: once the others have come; NULL: nothing. */
    bool (*after)(struct fault_run *run);
    /* After the last cycle, whatever came before; NULL: nothing. */
    bool (*leave)(struct fault_run *run);
    /* Can it be done here? If not, RET_REASON says why. NULL: yes. */
    bool (*possible)(struct fault_testbed *testbed, char *ret_reason, size_t size);
    const char *servers_of; /* a strategy whose servers are needed, whoever suffers; NULL: none */
    unsigned proxied;       /* 1 << BACKEND, or-ed */
    bool ample;             /* CYCLE_LOAD: nothing is ever sold out */
    bool clocks;            /* the services have clocks that can be set */
    bool proxied_one;       /* by the first service alone, which is then the one that suffers */
    int64_t
        think_ms; /* think time of an order, in CYCLE_OVERTAKE of the first holder; 0: from the lease, or random */
    int64_t ttl_ms; /* of the locks */
    int64_t
        bound_ms; /* I4, I5: goal for the time until orders succeed again; ten times as much is a failure */
    int cycles;   /* the default of --cycles */
};

/* A strategy under a fault, over all cycles so far. */
struct fault_subject {
    const struct strategy *strategy;
    unsigned expected;
    int64_t product;
    const char *reason; /* why it cannot be tried; NULL: it can */
    struct fault_counts counts;
    int64_t cycles, longest_outage_ms, longest_recovery_ms, seen_in;
    int64_t empty;   /* cycles in which no order was acknowledged */
    int64_t outages; /* cycles in which nobody was served for half a lease: in "kill", a holder had died */
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
    int64_t cycle;
    int victim;       /* the service that suffers */
    unsigned targets; /* 1 << BACKEND, or-ed: before these the proxies had to do something */
    int64_t fault_us; /* when it was struck, in this cycle */
    int64_t ready_us; /* when what was broken was back; 0: not yet */
};

extern const struct fault faults[];
extern const size_t fault_count;

/* Orders under every strategy from both services, before time counts: sessions, connections and tables are there then. */
bool fault_warm_up(struct fault_run *run);
/* One cycle. False, having said why on stderr unless it was an interrupt. */
bool fault_load(struct fault_run *run);
bool fault_overtake(struct fault_run *run);
bool fault_lock_test(struct fault_run *run);
/* Deletes the locks that were left behind in Redis: one that is stuck for ever would be so in the next cycle, too. */
void fault_free_locks(struct fault_run *run);
/* What strikes one connection after the other strikes so often in a cycle, with such rests between (false: interrupted), that
 * a few cycles strike every strategy. */
int fault_repetitions(const struct fault_run *run);
bool fault_pause_between(struct fault_run *run);
/* Service I has ended as it should not: a wrong answer to everybody. WHEN, behind "a service that ". */
void fault_note_end(struct fault_run *run, int i, const char *when);
/* Waits until every strategy has served somebody since run->ready_us, or it is too late. False after an interrupt. */
bool fault_await_service(struct fault_run *run);

/* ---- expectations that several faults share (loadtest/faults/expect.c) ---- */

/* What a strategy's lock may be ended by; 0 where it has none outside the database. */
unsigned fault_perils(const struct strategy *strategy);
/* The server of the strategy's lock is called so in lock/; "" for none. */
bool fault_lock_on(const struct strategy *strategy, const char *server);
/* Where every lease holds: all is kept by those who promise it then. */
unsigned fault_expect_leases_held(const struct strategy *strategy);
/* Where a lease may end under its holder by chance: only those that are safe always keep the stock. */
unsigned fault_expect_leases_ended(const struct strategy *strategy);
/* Where what carries the lock ends for certain by PERIL, on SERVER (NULL: on any). */
unsigned fault_expect_peril(const struct strategy *strategy, unsigned peril, const char *server);
/* What a sale under this strategy saw in stock is its place in the order of the sales. */
bool fault_sees_its_place(const struct strategy *strategy);
/* Nothing but its lock keeps its orders apart, so that their critical sections must not overlap: a fence refuses who comes
 * late, and an unsafe row promises nothing. */
bool fault_lock_excludes(const struct strategy *strategy);
/* Of WANTED (SEEN_…), is something expected of a strategy that has not been seen yet? */
bool fault_still_to_be_seen(const struct fault_run *run, unsigned wanted);
/* What is expected when a holder dies has not been shown yet: none did. */
bool fault_awaits_outage(const struct fault_subject *subject);
/* What was found about the subject. NOTHING_SHOWN: most cycles had no order that was acknowledged, so there was nothing to
 * lose. */
enum verdict fault_verdict(const struct fault *fault, const struct fault_subject *subject);
/* What must hold of what is EXPECTED, in words: "I1 I2 I7", "" for nothing. BUFFER of 64 bytes, returned. */
const char *fault_promises(unsigned expected, char *buffer);

/* ---- the faults (fault_*.c) ---- */

typedef bool fault_step(struct fault_run *run);

fault_step nemesis_kill, nemesis_terminate, nemesis_pause,
    after_pause; /* loadtest/faults/nemesis/signals.c */
fault_step nemesis_postgres_backend, nemesis_postgres_immediate, nemesis_commit_reply, nemesis_commit_late,
    nemesis_lock_backend; /* loadtest/faults/nemesis/postgres.c */
fault_step nemesis_delay, nemesis_one_byte, nemesis_half_open, nemesis_cut, nemesis_session,
    after_session; /* loadtest/faults/nemesis/network.c */
/* loadtest/faults/nemesis/lock_servers.c */
fault_step nemesis_redis_restart, nemesis_zookeeper_restart, nemesis_etcd_restart, nemesis_redis_loses;
fault_step nemesis_redlock_minority, nemesis_redlock_majority, before_redlock_restart,
    nemesis_redlock_restart;
fault_step before_failover, nemesis_failover, leave_failover;
/* loadtest/faults/nemesis/clock.c */
fault_step enter_clock_redis, nemesis_clock_redis, leave_clock_redis, nemesis_clock_service;
fault_step enter_clock_redlock, nemesis_clock_redlock, leave_clock_redlock;
bool clock_possible(struct fault_testbed *testbed, char *ret_reason, size_t size);
fault_step nemesis_reset_beside; /* loadtest/faults/nemesis/reset.c */
/* loadtest/faults/nemesis/disk.c */
fault_step enter_disk_full, nemesis_disk_full, leave_disk_full;
bool disk_possible(struct fault_testbed *testbed, char *ret_reason, size_t size);

#endif
