/* A play: a few orders of one strategy against one product, moved one step at a time. One thread, the controller, calls. */
#ifndef OVERSELL_LOADTEST_EXPLORE_EXEC_EXECUTION_H
#define OVERSELL_LOADTEST_EXPLORE_EXEC_EXECUTION_H

#include "loadtest/explore/core/depth_first_search.h"
#include "loadtest/explore/exec/actor_thread.h"
#include "loadtest/explore/exec/product_schema.h"

enum { PROFILE_MAX = 24 };

/* Beside the flags of enum shown_by, none of which it shows: an order's wait for another one reaches its time limit. */
enum { WAITS_END = 1 << 16 };

struct execution_settings {
    const struct strategy *strategy;
    size_t actors;
    int64_t stock;
    int64_t quantities[ACTORS_MAX];
    unsigned faults; /* EXPIRY, CRASH (enum shown_by) and WAITS_END, or-ed; one fault in each schedule … */
    bool follows_script; /* … or as many as the script says */
    unsigned
        never; /* bits of figures_parse: what is wrong, in place of what the row promises; 0: the row says it */
};

/* What a schedule came to. */
struct ending {
    struct product_audit audit;
    enum outcome outcomes[ACTORS_MAX];
    int64_t oversold;    /* units sold beyond the stock */
    int64_t drift;       /* sold − (stock − left): above 0 updates were lost, below 0 units were */
    bool undersold;      /* an order was turned away although enough was left for it */
    bool answers_wrong;  /* orders in the database, and orders acknowledged, are not the same number */
    bool waited;         /* an order waited for another */
    bool deadlock;       /* PostgreSQL ended one */
    bool lock_stolen;    /* an order released a lock that was another's by then */
    bool two_holders;    /* two had the lock, though nothing had ended either's */
    bool unbacked_grant; /* one was given the lock, and the server knew nothing of it */
    bool stuck;          /* an order waits for a lock that nobody will release */
    bool failed;         /* an order ended in a way that no step of another explains */
    bool false_refusal;  /* an order was refused as sold out although enough units were left */
    bool leaked;         /* an order ended without releasing its lock */
};

struct execution {
    struct execution_settings settings;
    struct product_schema *schema;
    struct execution_trace trace;
    struct actor actors[ACTORS_MAX];
    /* The order of steps when nobody is in the way. */
    uint8_t profile[PROFILE_MAX];
    size_t profile_length;
    /* The current schedule. */
    struct transition transitions[DEPTH_MAX];
    size_t transition_ends[DEPTH_MAX]; /* how many events there were after each move */
    size_t transition_count;
    bool deadlock, fault_made;
    struct lock *
        lock_admin; /* asks the lock's server, and ends locks: loadtest/explore/exec/lock_admin.h; NULL where the lock has none */
    bool own_processes; /* each order counts as a separate process */
    unsigned restarts;  /* of the lock's servers, in this schedule */
    unsigned processes; /* how many there have been so far, where each order has one of its own */
    struct ending ending;
    /* An order without competitors failed, so the strategy is wrong in every schedule. */
    bool fails_alone;
    /* An order did not finish, and its thread still runs. The play cannot be used again, and its memory must not be freed. */
    bool lost;
    unsigned doubts; /* number of repetitions of the schedule because of execution_is_doubtful */
    int64_t
        deadlock_wait_us;   /* after an order has begun to wait: loadtest/explore/exec/execute_transition.c */
    uint64_t patience_used; /* number of waits that reached the guard time limit; normally 0 */
    char error[400];
};

/* Opens connections and threads, and lets one order run alone, to learn the strategy's steps. False, with ERROR filled. */
bool execution_open(struct execution *execution, struct product_schema *schema, const char *url,
                    const struct execution_settings *settings);
/* May be called in the middle of a schedule. Sets LOST if threads do not finish; these are left running. */
void execution_close(struct execution *execution);

/* What a search needs: see loadtest/explore/core/depth_first_search.h. SELF is the play. */
bool execution_start(void *self);
size_t execution_enabled(void *self, struct transition *ret_transitions);
bool execution_apply(void *self, struct transition transition);
bool execution_end(void *self); /* also where moves are still possible; fills play->ending */
size_t execution_remaining(void *self, unsigned actor);
/* A slow server can also make an order fail. So an unexplained failure counts only after it was seen three times. */
bool execution_is_doubtful(void *self);
/* A hash of the events so far, without fencing tokens, which differ from run to run. */
uint64_t execution_fingerprint(void *self);

/* The stock that others can see now. */
bool execution_read_stock(struct execution *execution, int64_t *ret_stock);
/* The step that ACTOR is to do next, by what it has done last: an enum step, or STEP_COUNT at its end. */
uint8_t execution_next_step(const struct execution *execution, unsigned actor, size_t events);

/* Makes the schema's last error the execution's. Returns false, for its caller to return. */
bool execution_database_error(struct execution *execution);

/* Has ACTOR reported WHAT, an enum step or EVENT_…, in this schedule? */
bool execution_has_reported(const struct execution *execution, size_t actor, uint8_t what);

#endif
