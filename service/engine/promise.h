/* What a strategy promises about the stock, and what shows the flaw of one that does not promise enough. */
#ifndef OVERSELL_SERVICE_ENGINE_PROMISE_H
#define OVERSELL_SERVICE_ENGINE_PROMISE_H

/* When the stock stays right, while all writers of a product use the same strategy. */
enum guarantee {
    GUARANTEE_UNSAFE,            /* it does not */
    GUARANTEE_ONE_PROCESS,       /* while one process alone sells */
    GUARANTEE_WHILE_LEASE_HOLDS, /* while what carries the lock lives: lease, session, connection */
    GUARANTEE_SAFE,              /* whatever happens to a lock, a lease or a process */
};

/* What shows the flaw of a row that is not GUARANTEE_SAFE; several may, or-ed. */
enum shown_by {
    SHOWN_BY_NOTHING = 0,
    SHOWN_BY_LOAD = 1 << 0, /* plain concurrency */
    SHOWN_BY_SECOND_PROCESS = 1 << 1,
    SHOWN_BY_EXPIRY = 1 << 2, /* what carries the lock ends under its holder or a waiter */
    SHOWN_BY_CRASH = 1 << 3,
};

/* The use that GUARANTEE allows, in a few words: "work that may be done twice". Static storage. Any thread. */
const char *guarantee_use(enum guarantee guarantee);

/* "unsafe", "one-process", "while-lease-holds", "safe"; static storage. Any thread. */
const char *guarantee_name(enum guarantee guarantee);

#endif
