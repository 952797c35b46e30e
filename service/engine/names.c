/* The names of the engine's enums in JSON, metrics and traces. They are part of the API: a name never changes. */
#include "service/engine/outcome.h"
#include "service/engine/strategy.h"

const char *outcome_name(enum outcome outcome)
{
    static const char *const names[OUTCOME_COUNT] = {
        [ORDER_CREATED] = "created",
        [ORDER_ACCEPTED] = "accepted",
        [ORDER_REPLAYED] = "replayed",
        [ORDER_NO_SUCH_PRODUCT] = "no-such-product",
        [ORDER_SOLD_OUT] = "sold-out",
        [ORDER_WRONG_STOCK_KIND] = "wrong-stock-kind",
        [ORDER_LOCK_TIMEOUT] = "lock-busy",
        [ORDER_CONFLICT] = "conflict",
        [ORDER_LOCK_LOST] = "lock-lost",
        [ORDER_KEY_MISMATCH] = "idempotency-mismatch",
        [ORDER_KEY_IN_USE] = "idempotency-in-progress",
        [ORDER_OVERLOADED] = "overloaded",
        [ORDER_BACKEND_UNAVAILABLE] = "backend-unavailable",
        [ORDER_UNKNOWN] = "outcome-unknown",
        [ORDER_FAILED] = "internal-error",
    };
    return names[outcome];
}

const char *guarantee_name(enum guarantee guarantee)
{
    static const char *const names[] = {
        [GUARANTEE_UNSAFE] = "unsafe",
        [GUARANTEE_ONE_PROCESS] = "one-process",
        [GUARANTEE_WHILE_LEASE_HOLDS] = "while-lease-holds",
        [GUARANTEE_SAFE] = "safe",
    };
    return names[guarantee];
}

const char *guarantee_use(enum guarantee guarantee)
{
    static const char *const uses[] = {
        [GUARANTEE_UNSAFE] = "nothing: it shows the bug",
        [GUARANTEE_ONE_PROCESS] = "a program with one process",
        [GUARANTEE_WHILE_LEASE_HOLDS] = "work that may be done twice",
        [GUARANTEE_SAFE] = "stock",
    };
    return uses[guarantee];
}

const char *fence_name(enum fencing fencing)
{
    static const char *const names[] = {
        [FENCE_NONE] = "none",
        [FENCE_ON_WRITE] = "on-write",
        [FENCE_BEFORE_READ] = "before-read",
    };
    return names[fencing];
}

const char *span_name(enum lock_span span)
{
    static const char *const names[] = {
        [SPAN_NONE] = "none",
        [SPAN_AROUND_TX] = "around-transaction",
        [SPAN_INSIDE_TX] = "inside-transaction",
        [SPAN_AROUND_TWICE] = "around-transaction-twice",
    };
    return names[span];
}

const char *scope_name(enum tx_scope scope)
{
    return scope == SCOPE_ONE_TX ? "one-transaction" : "two-transactions";
}

const char *isolation_name(enum db_isolation isolation)
{
    static const char *const names[] = {
        [DB_READ_COMMITTED] = "read-committed",
        [DB_REPEATABLE_READ] = "repeatable-read",
        [DB_SERIALIZABLE] = "serializable",
    };
    return names[isolation];
}
