/* Runs the SQL of a description: it resets the stock, and reads the units in stock and the units sold. */
#ifndef OVERSELL_LOADTEST_OWN_SHOP_DATABASE_H
#define OVERSELL_LOADTEST_OWN_SHOP_DATABASE_H

#include "loadtest/own/description.h"
#include "loadtest/search/statement_footprint.h"
#include "loadtest/search/statement_inside.h"

/* A connection to the PostgreSQL of a description. One thread at a time. */
struct shop_database;

enum { SHOP_BLOCKERS_MAX = 64 };

/* What the database says, at one moment. */
struct shop_stock {
    int64_t left, sold;
    int broken; /* the first invariant that is not true; -1: none */
};

/* Connects to the PostgreSQL at ADDRESS; {stock} is STOCK in all SQL. DESCRIPTION must live as long. NULL, having said why on
 * stderr. */
struct shop_database *shop_database_open(const char *address, const struct shop_description *description,
                                         int64_t stock);
/* NULL is allowed. */
void shop_database_close(struct shop_database *database);

/* Each of these waits 10 s at most for each statement, and returns false after having said on stderr what is wrong. */

/* Runs the file of "schema". */
bool shop_database_load(struct shop_database *database);
/* Runs the SQL of "reset". */
bool shop_database_reset(struct shop_database *database);
/* Runs "stock", "sold" and each "invariant" in one snapshot. */
bool shop_database_read(struct shop_database *database, struct shop_stock *ret_stock);
/* Runs "expires", which must be there. RET_ROWS: as many changed; -1: none, since a row was locked for 300 ms. */
bool shop_database_expire(struct shop_database *database, int64_t *ret_rows);
/* Waits until "settled", if there is one, is true, for settle_timeout_ms at most; also false after an interrupt. */
bool shop_database_settle(struct shop_database *database);
/* Asks for whom the session of process PID waits: the processes of *ret_count sessions, 0 if it does not wait. Of more than
 * SHOP_BLOCKERS_MAX, only as many. */
bool shop_database_blockers(struct shop_database *database, int32_t pid,
                            int32_t ret_pids[static SHOP_BLOCKERS_MAX], size_t *ret_count);
/* Locks that sessions of the service hold which run no statement. */
struct shop_left {
    int64_t advisory;    /* how many advisory locks */
    bool transaction;    /* at least one session has an open transaction that writes or locks rows */
    int32_t pid;         /* of such a session; else of one with an advisory lock; 0: there is none */
    char statement[160]; /* the last one of this session, perhaps without its end */
};
/* False if PostgreSQL does not say, without a message. */
bool shop_database_left(struct shop_database *database, struct shop_left *ret_left);
/* Something waited too long: says on stderr, if a session of the service keeps a transaction open, what it ran last. */
void shop_database_say_open(struct shop_database *database);
/* The same of STATEMENT, if that is known already. */
void shop_say_open(const char *statement);
/* Is there a session of process PID? */
bool shop_database_has_session(struct shop_database *database, int32_t pid, bool *ret_has);

/* Reads the functions that a statement can call and that see more than one snapshot, the triggers, rules and views; routines_free frees
 * them. Not those of PostgreSQL itself, of extensions, or written in C. */
bool shop_database_routines(struct shop_database *database, struct routines *ret_routines);
/* Reads the tables, for statement_footprint; known_tables_free frees them. */
bool shop_database_tables(struct shop_database *database, struct known_tables *ret_tables);
/* The session PID waits for a lock: does it hold no lock of a table yet that it has read without a lock, and of one table at most any? Then
 * the wait is for the first thing that it looks at. */
bool shop_database_waits_first(struct shop_database *database, int32_t pid, bool *ret_first);
struct shop_nature {
    bool serializable;   /* transactions are, unless they say otherwise */
    bool read_committed; /* transactions are, unless they say otherwise */
    /* No table inherits, has partitions or row security, is changed by a foreign key, or may be read by a function that is not volatile. */
    bool tables_alone;
};

/* What the search must know of the database: see the fields. False, with the reason on stderr. */
bool shop_database_nature(struct shop_database *database, struct shop_nature *ret_nature);

#endif
