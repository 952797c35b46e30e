/* What a strategy promises about the stock, and what shows the flaw of one that does not promise enough. */
#ifndef OVERSELL_SERVICE_ENGINE_PROMISE_H
#define OVERSELL_SERVICE_ENGINE_PROMISE_H

/* When the stock stays right. */
enum guarantee {
    UNSAFE,            /* it does not */
    ONE_PROCESS,       /* while one process alone sells */
    WHILE_LEASE_HOLDS, /* while what carries the lock lives: lease, session, connection */
    SAFE,              /* always */
};

/* What shows the flaw of a row that is not SAFE; several may, or-ed. */
enum shown_by {
    NOTHING = 0,
    LOAD = 1 << 0, /* plain concurrency */
    SECOND_PROCESS = 1 << 1,
    EXPIRY = 1 << 2, /* what carries the lock ends under its holder or a waiter */
    CRASH = 1 << 3,
};

/* "unsafe", "one-process", "while-lease-holds", "safe"; static storage. Any thread. */
const char *guarantee_name(enum guarantee guarantee);

#endif
