/* An execution: one run of a schedule. A few orders of one strategy buy one product through the service's engine; each is an
 * actor with its own thread, held at every step, and the controller lets one continue at a time. It is the struct program
 * that the search explores. All functions are for one thread, the controller, and none is called with the trace's mutex
 * held, except where it says so. An object runs many schedules, one after the other. */
#ifndef OVERSELL_LOADTEST_EXPLORE_EXEC_EXECUTION_H
#define OVERSELL_LOADTEST_EXPLORE_EXEC_EXECUTION_H

#include "base/text.h"
#include "loadtest/explore/exec/actor_thread.h"
#include "loadtest/explore/exec/product_schema.h"
#include "loadtest/search/depth_first_search.h"

enum { PROFILE_MAX = 24 };

/* A third fault, in addition to SHOWN_BY_EXPIRY and SHOWN_BY_CRASH of enum shown_by: an order's wait for another order reaches its
 * time limit. */
enum { WAITS_END = 1 << 16 };

struct execution_settings {
    const struct strategy *strategy;
    size_t actors;
    int64_t stock;
    int64_t quantities[ACTORS_MAX];
    /* SHOWN_BY_EXPIRY, SHOWN_BY_CRASH (enum shown_by) and WAITS_END, or-ed: one such fault in each schedule */
    unsigned faults;
    /* all orders are the same, so they begin in one sequence only: the others are the same schedules */
    bool alike;
    bool records;        /* keeps the requests that the orders send (base/recorder.h) */
    bool follows_script; /* any number of faults, and those that only scripts may have */
    /* bits of figures_parse: judge by these figures; 0: by what the strategy's row promises */
    unsigned never;
};

/* The result of one schedule. What must not happen is checked in loadtest/explore/exec/invariants.c. */
struct ending {
    struct product_audit audit;
    enum outcome outcomes[ACTORS_MAX];
    int64_t oversold;    /* units sold beyond the stock */
    int64_t drift;       /* sold − (stock − left): > 0 lost updates; < 0 units taken without an order */
    bool undersold;      /* an order failed although enough was left for it when all had ended */
    bool answers_wrong;  /* the number of orders in the database is not the number acknowledged */
    bool waited;         /* an order waited for another */
    bool deadlock;       /* PostgreSQL rolled one back as a deadlock's victim */
    bool lock_stolen;    /* an order released a lock that another order held by then */
    bool two_holders;    /* two held the lock, and neither's lease had ended */
    bool unbacked_grant; /* an order was granted the lock, but its server does not know of it */
    bool stuck;          /* an order waits for a lock that nobody will release */
    bool failed;         /* an order failed, and no other order and no fault explains it */
    bool false_refusal;  /* an order was refused as sold out although enough units were left */
    bool leaked;         /* an order ended without releasing its lock */
};

struct execution {
    struct execution_settings settings;
    struct product_schema *schema;
    struct execution_trace trace;
    struct actor actors[ACTORS_MAX];
    /* The steps of an order that runs alone, in sequence. */
    uint8_t profile[PROFILE_MAX];
    size_t profile_length;
    /* The current schedule. */
    struct transition transitions[DEPTH_MAX];
    size_t transition_ends[DEPTH_MAX]; /* number of events after each transition */
    size_t transition_count;
    /* The events of the schedule before it. */
    struct event before[EVENTS_MAX];
    size_t before_count;
    bool deadlock, fault_made;
    /* Of the newest transition, and of each order's open transaction. */
    struct footprint footprint, touched[ACTORS_MAX];
    struct lock *lock_admin; /* loadtest/explore/exec/lock_admin.h; NULL where the lock has no server */
    bool own_processes;      /* each order counts as a separate process */
    unsigned restarts;       /* of the lock's servers, in this schedule */
    struct ending ending;
    /* An order without competitors failed, so the strategy is wrong in every schedule. */
    bool fails_alone;
    /* An order did not finish, and its thread still runs: neither use this object again nor free its memory. */
    bool lost;
    unsigned doubts;          /* number of repetitions of the schedule because of execution_is_doubtful */
    int64_t deadlock_wait_us; /* extra wait for PostgreSQL's deadlock check: exec/execute_transition.c */
    uint64_t patience_used;   /* number of waits that reached the safety limit; normally 0 */
    char error[400];
};

/* Opens connections and threads in SCHEMA's database at URL, both borrowed until execution_close, and runs one order alone to
 * learn the strategy's steps. False, with ERROR; then it is closed already. */
bool execution_open(struct execution *execution, struct product_schema *schema, const char *url,
                    const struct execution_settings *settings);
/* Ends the threads, also in the middle of a schedule. Sets LOST if one does not end within 30 s; it is left running. */
void execution_close(struct execution *execution);

/* The functions of struct program, explained in loadtest/search/depth_first_search.h. SELF is a struct execution. */
bool execution_start(void *self);
size_t execution_enabled(void *self, struct transition *ret_transitions);
bool execution_apply(void *self, struct transition transition);
bool execution_end(
    void *self); /* also in the middle of a schedule: all orders run to their end; fills ENDING */
size_t execution_remaining(void *self, unsigned actor);
/* A slow server can make an order fail too. So an unexplained failure counts only after three runs in a row. */
bool execution_is_doubtful(void *self);
/* As if nothing but one product and one lock were there, which is so. */
void execution_footprint(void *self, struct footprint *ret_footprint);
/* Fencing tokens are left out: they differ from run to run. */
uint64_t execution_fingerprint(void *self);

/* Reads the committed stock. False, with ERROR. */
bool execution_read_stock(struct execution *execution, int64_t *ret_stock);
/* The step that ACTOR does next, judged by its last of the first EVENTS events: an enum step, or STEP_COUNT at its end. */
uint8_t execution_next_step(const struct execution *execution, unsigned actor, size_t events);

/* Writes a message to ERROR, and returns false, for its caller to return. */
#define execution_fail(execution, ...) text_fail((execution)->error, sizeof(execution)->error, __VA_ARGS__)
/* The same with the schema's last error. */
#define execution_database_error(execution)                                                                  \
    execution_fail(execution, "postgresql: %s", (execution)->schema->error)

/* Has ACTOR reported WHAT, an enum step or EVENT_…, in this schedule? */
static inline bool execution_has_reported(const struct execution *execution, size_t actor, uint8_t what)
{
    return trace_last(&execution->trace, 0, actor, what) != NO_EVENT;
}

#endif
