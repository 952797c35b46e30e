/* Tells which requests poll PostgreSQL in vain, from the statements of all of them. Pure. */
#ifndef OVERSELL_LOADTEST_OWN_POLLS_IDLE_POLLS_H
#define OVERSELL_LOADTEST_OWN_POLLS_IDLE_POLLS_H

#include "loadtest/own/polls/poll_history.h"
#include "loadtest/search/transition.h"

enum { POLL_CONNECTIONS = 64, POLLS_MAX = 16, POLL_TABLES = 8 };

/* What is known of a poll: the answer to whether a request gives up that is let alone with it. */
enum poll_end {
    POLL_UNKNOWN,
    POLL_GIVES_UP,
    POLL_GOES_ON, /* not in the time that it got; or it got what it waited for */
};

/* All zero: nothing has been sent. */
struct idle_polls {
    struct poll_history history[ACTORS_MAX];
    /* set by the caller: what writes a table changes no other one, and what reads it reads no other one */
    bool tables_alone;
    struct poll_transaction {
        bool changed, locked, in_vain;
        bool anything;                /* it may have changed any table */
        uint32_t tables[POLL_TABLES]; /* else these, as poll_table has them */
        size_t count;
    } open[POLL_CONNECTIONS]; /* of each connection */
};

/* Polls by what poll_history_repeats returns; more than POLLS_MAX stay unknown. All zero: none. */
struct known_polls {
    struct {
        uint64_t poll;
        enum poll_end end;
    } item[POLLS_MAX];
    size_t count;
};

/* A statement of ACTOR over connection AT has ended. OPEN_BEFORE, OPEN_AFTER: the connection had a transaction, and has. ONE_TABLE: what
 * statement_writes_one_table says. */
void idle_polls_ended(struct idle_polls *polls, unsigned actor, size_t at, const char *text, bool open_before,
                      bool open_after, enum statement_effect effect, bool one_table);
/* The transaction of connection AT has tried something in vain, and has done nothing: its end has no effect on another transaction, unless it
 * is serializable. */
bool idle_polls_ends_nothing(const struct idle_polls *polls, size_t at);
/* The transaction of connection AT is rolled back. True: it had changed or locked something. */
bool idle_polls_drop(struct idle_polls *polls, size_t at);
/* Something else has changed data in PostgreSQL, or time has passed. */
void idle_polls_changed(struct idle_polls *polls);

enum poll_end known_polls_end(const struct known_polls *known, uint64_t poll);
/* Does not change what is known already. */
void known_polls_add(struct known_polls *known, uint64_t poll, enum poll_end end);

#endif
