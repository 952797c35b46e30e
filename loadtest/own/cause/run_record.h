/* What a schedule of requests to a user's service led to: the statements, their answers, and the answers of the service. */
#ifndef OVERSELL_LOADTEST_OWN_CAUSE_RUN_RECORD_H
#define OVERSELL_LOADTEST_OWN_CAUSE_RUN_RECORD_H

#include "loadtest/own/gate/wire_protocol.h"
#include "loadtest/own/shop_database.h"
#include "loadtest/own/shop_http.h"
#include "loadtest/search/transition.h"

enum {
    RUN_STEPS_MAX = 250,                     /* fewer than DEPTH_MAX of the search */
    RUN_WAITS_FOR_OTHERS = 1 << ACTORS_MAX,  /* a session of PostgreSQL that belongs to no request */
    RUN_WAITS_FOR_COMMAND = 2 << ACTORS_MAX, /* a command to Redis, as BLPOP does */
};

enum request_state {
    REQUEST_HELD,    /* at its next statement */
    REQUEST_BLOCKED, /* its statement waits in PostgreSQL */
    REQUEST_INSIDE,  /* it waits in the program: it sends nothing, and PostgreSQL has nothing to do for it */
    REQUEST_ENDED,   /* it has its answer */
};

/* The servers of a runner's gate, by their index. */
enum { RUNS_POSTGRES, RUNS_REDIS };

/* A statement or command that a request was let through with, or a fault. */
struct run_step {
    unsigned actor;
    enum transition_kind kind;
    size_t server; /* RUNS_… */
    char text[MESSAGE_TEXT], answer[MESSAGE_TEXT];
    enum request_state after;
    unsigned blockers;    /* bits of the requests that it waited for, and RUN_WAITS_FOR_… */
    uint64_t fingerprint; /* of the schedule up to here */
    bool has_stock;       /* STOCK was read after it */
    struct shop_stock stock;
};

/* What a schedule led to. A large struct. */
struct run_record {
    size_t count;
    struct run_step steps[RUN_STEPS_MAX];
    struct shop_answer answers[ACTORS_MAX];
    struct shop_stock after;
    bool deadlock;
    /* A request has its answer, but its session keeps a transaction or an advisory lock; LEFT_BY is its actor, or ACTORS_MAX if that is not
     * known, and LEFT the last statement of the session; "": none. */
    char left[MESSAGE_TEXT];
    bool left_transaction;
    unsigned left_by;
    bool stuck;   /* no request could go on; the connections were closed */
    bool slept;   /* a request waited in the program, and continued although no other did anything */
    bool escaped; /* a request that was to occupy a connection had its answer */
    bool faulted; /* the fault of the settings happened */
    /* Statements that may have been overtaken inside, where the gate cannot hold them: outside and in a transaction; "": none. */
    char inside[MESSAGE_TEXT], inside_open[MESSAGE_TEXT];
    /* A statement that ran in the transaction of another request, and the last one of that before it; "": none. */
    char stranger[MESSAGE_TEXT], host[MESSAGE_TEXT];
    char polled
        [MESSAGE_TEXT]; /* a statement that a request has repeated without success, and at which it was held; "": none */
    char repeated[MESSAGE_TEXT]; /* a command to Redis of which the same is true; "": none */
    bool polls_on;               /* it is not known to give up */
    bool polls_unknown;          /* it is not known whether it gives up */
};

#endif
