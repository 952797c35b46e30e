/* What the files of `loadtest explore shop.json` share. The functions that return false or NULL have said why on stderr, unless it was
 * an interrupt. */
#ifndef OVERSELL_LOADTEST_OWN_SCHEDULES_EXPLORE_OWN_IMPL_H
#define OVERSELL_LOADTEST_OWN_SCHEDULES_EXPLORE_OWN_IMPL_H

#include "loadtest/cli/options.h"
#include "loadtest/own/schedules/changed_statement.h"
#include "loadtest/own/schedules/request_runner.h"
#include "loadtest/own/schedules/saved_schedule.h"
#include "loadtest/own/schedules/schedule_text.h"
#include "loadtest/report/output.h"
#include "loadtest/search/counterexamples.h"
#include "loadtest/stats/verdict.h"

enum { SHOWN_MAX = 10, SILENT_MAX = 4, GATE_URL = 1024 };

/* PATH is the beginning of a schedule, after which ACTOR waits in the program. */
struct silent_request {
    unsigned actor;
    struct counterexample path;
};

struct explore_own {
    const char *path;
    struct shop_description description;
    int64_t stock, requests, instances, max_schedules, time_limit_ms, show;
    const char *replay, *save;
    struct texts env, allow;
    unsigned allowed;         /* bits of the verdicts of --allow */
    int64_t answers, unclear; /* of all schedules without a fault; UNCLEAR: neither sold nor sold out */
    int64_t gave_up; /* UNCLEAR answers of requests that waited in vain for a lock, as the search let them */
    struct shop_answer first_unclear; /* the first of these, if there are any */
    struct output_settings output;
    bool prints;                 /* the table goes to stdout, and the schedules below it */
    struct saved_schedule saved; /* that --replay names */
    struct schedule schedule;    /* to replay; empty: all are searched */
    char changed[CHANGED_TEXT];  /* a clean replay sent another statement than was saved; empty: it did not */
    struct shop_servers servers;
    struct shop_service service;
    struct shop_database *database;
    struct shop_stock before; /* after a reset */
    char gate_url[GATE_URL];  /* what {postgres} is for the service */
    char redis_url[GATE_URL]; /* and {redis} */
    struct redis_control *redis;
    const char *faults, *expire_key, *reduce;
    bool faulted;               /* in one of the schedules */
    unsigned unseen;            /* bits of the requests that placed an order without a step */
    struct routines routines;   /* of the database, after the service has started */
    struct known_tables tables; /* of the database, if not every schedule is to run */
    char overtaken[MESSAGE_TEXT],
        overtaken_open[MESSAGE_TEXT];                /* of the first schedule that had such a statement */
    char stranger[MESSAGE_TEXT], host[MESSAGE_TEXT]; /* as in a record; "": none */
    char polled
        [MESSAGE_TEXT]; /* as in a record, of the first schedule with a poll that is not known to give up; "": none */
    char repeated[MESSAGE_TEXT]; /* as in a record, of the first schedule that has one; "": none */
    bool polls_unknown;          /* as in a record, of all schedules */
    bool frees;                  /* of --frees, and of the search that runs */
    int64_t occupied;            /* of --occupied, and of the search that runs */
    size_t pool_size; /* connections; 0: it has no pool, or it is not known; OCCUPIERS_MAX: as many or more */
    /* Schedules of requests that shared its last connection, in which nothing was wrong; and those of them in which they took turns on it. */
    int64_t pool_clean, pool_shared;
    bool pool_escaped; /* a request that was to occupy a connection did not keep it */
    bool pool_stuck;   /* with its last connection, no request could end */
    bool slept;        /* a request, in one of the schedules */
    /* Of the schedule that runs: its transitions, and bits of the requests that wait in the program. */
    struct counterexample ran;
    unsigned inside;
    struct silent_request silent[SILENT_MAX]; /* one for each request and number of its steps */
    size_t silent_count;
    struct gate *gate;
    struct request_runner *runner;
    struct run_record last;          /* of the last schedule that ended, to compare the next one with */
    struct search search, shared[2]; /* SHARED: with one connection for all requests */
    struct search *now;              /* the one of them that runs */
    size_t statements;               /* of one request alone */
    /* SCHEDULES: all that are known, also those that need not run since one that has run is alike. */
    int64_t schedules, run, differed, found[VERDICT_COUNT], deadlocks, us;
    struct run_record first_worst; /* of the first of WORST, for a search that an interrupt ends */
    struct counterexamples worst;  /* all that are not clean; BADNESS is the verdict */
    /* Of each verdict the schedule with the fewest switches; as many as FOUND says, 0: none. */
    struct counterexample simplest[VERDICT_COUNT];
};

/* ---- the servers ----- */

/* Opens the gate in front of PostgreSQL, and of Redis if the service has it, and the addresses that the service gets instead. */
bool explore_own_open_gate(struct explore_own *explore);

/* ---- schedules ----- */

/* The verdict on a schedule that has ended. */
enum verdict explore_own_judge(const struct explore_own *explore, const struct run_record *record);
/* Orders are missing although their answers have 2xx, but one of these may mean something else: says so on stderr, with the remedy. */
bool explore_own_is_doubtful(const struct explore_own *explore, const struct run_record *record);
/* Counts the schedule, and returns what explore_own_judge returns. */
enum verdict explore_own_count(struct explore_own *explore, const struct run_record *record);
/* Runs the first schedule. */
bool explore_own_run_first(struct explore_own *explore);
/* Runs single requests, and then all, before anything counts. */
bool explore_own_warm_up(struct explore_own *explore);
/* Not every schedule is to run: --reduce says so, or there are too many. */
bool explore_own_reduces(const struct explore_own *explore);
/* Runs every schedule, or one of those that are alike, within the limits. */
bool explore_own_search(struct explore_own *explore);
/* Begins a schedule, while further requests occupy as many connections, of which one may be closed later (runner_occupy). READS_STOCK after
 * each transaction. */
bool explore_own_start(struct explore_own *explore, size_t occupied, bool frees, bool reads_stock);
/* Is it among what can happen next? */
bool explore_own_is_enabled(struct explore_own *explore, struct transition transition);
/* Lets it happen. */
bool explore_own_apply(struct explore_own *explore, struct transition transition);
/* Runs what is left of the schedule, that of the lowest requests first. */
bool explore_own_run_rest(struct explore_own *explore);
/* Begins this schedule, which the caller ends. False: a request was not held where it was before. */
bool explore_own_follow(struct explore_own *explore, const struct counterexample *path, bool reads_stock);
/* Repeats a counterexample as often, and returns it as it is shown; the last repetition reads the stock after each transaction. */
json_t *explore_own_show(struct explore_own *explore, const struct counterexample *worst, int repetitions);
/* Runs the schedule that the user named. */
bool explore_own_replay(struct explore_own *explore, json_t **ret_shown);

/* ---- output ----- */

/* An array of sentences about what the search could not show; NULL: out of memory. */
json_t *explore_own_warnings(const struct explore_own *explore);
/* SHOWN: an array of schedules. */
json_t *explore_own_document(const struct explore_own *explore, json_t *shown);

#endif
