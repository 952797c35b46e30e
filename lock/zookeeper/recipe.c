/* `zookeeper` and two ways to get it wrong: take a number, and wait until every contender with a smaller one has gone.
 *
 * Every contender makes an ephemeral, sequential node under the key's own. Whoever has the smallest number holds the
 * lock; releasing is deleting the node; a process that dies loses its session, and the server deletes its nodes. The
 * recipe ("Locks", in ZooKeeper's documentation) has two points at which it is easily got wrong, and there is one lock
 * for each way:
 *
 *   zookeeper         watches the node immediately before its own, and looks again when woken. A release wakes one.
 *   zookeeper-herd    everybody watches the first node, and looks again. Correct; but a release wakes all, and all but
 *                     one of them in vain.
 *   zookeeper-naive   watches the node before its own, and believes that it holds the lock when woken. But a node also
 *                     goes when a *waiter* gives up or dies, and then two hold. Nor does it notice that the node went
 *                     between looking and watching: then it waits for ever.
 *
 * Even the right one holds only while its session lives: a process that sleeps past the timeout has lost the lock and
 * does not know it yet. So the grant carries the transaction number that made the node, which only grows (the sequence
 * starts again when an empty parent is removed): a fencing token, which the strategy zookeeper-fenced has the shop check. */
#include "base/clock.h"
#include "lock/lab.h"
#include "lock/registry.h"
#include "lock/zookeeper/client/session.h"

enum watched { WATCHES_PREDECESSOR, WATCHES_FIRST };
enum when_woken { WOKEN_LOOKS_AGAIN, WOKEN_BELIEVES };

/* What the three do differently. All zero is the right way: `zookeeper`, and any lock without a variant (curator). */
struct recipe {
    enum watched watched;
    enum when_woken when_woken;
    enum zookeeper_gone gone; /* before it could be watched */
};

static const struct recipe *recipe_of(const struct lock_driver *driver)
{
    static const struct recipe right = {WATCHES_PREDECESSOR, WOKEN_LOOKS_AGAIN, GONE_IS_A_CHANGE};
    return driver->variant ? driver->variant : &right;
}

static enum lock_status wait_for_turn(struct lock *lock, int64_t deadline_us,
                                      const struct zookeeper_node *node, struct zookeeper_children *children)
{
    const struct recipe *recipe = recipe_of(lock->driver);
    struct zookeeper_place place;
    enum lock_status status;
    do {
        status = zookeeper_look_around(lock, deadline_us, node, children, &place);
        if (status != LOCK_OK || place.is_first)
            return status;
        if (monotonic_us() >= deadline_us)
            return lock_fail(lock, LOCK_TIMED_OUT, "%s is before us", place.before);
        report_step(lock->observer, STEP_WAIT, STEP_NO_VALUE); /* here the one before may go unwatched */
        const char *watched = recipe->watched == WATCHES_FIRST ? place.first : place.before;
        status = zookeeper_await(lock, deadline_us, node->session, watched, recipe->gone,
                                 recipe->when_woken == WOKEN_LOOKS_AGAIN ? children : NULL);
    } while (status == LOCK_OK && recipe->when_woken == WOKEN_LOOKS_AGAIN);
    return status;
}

static enum lock_status acquire(struct lock *lock, const char *key, int64_t deadline_us,
                                struct lock_grant *ret_grant)
{
    struct zookeeper_node node;
    struct zookeeper_children children;
    enum lock_status status;
    do { /* more than once only where the session ended while we waited, and our place with it */
        status = zookeeper_join(lock, key, deadline_us, &node, &children);
        if (status != LOCK_OK)
            return status;
        zookeeper_grant(&node, key, ret_grant); /* the place's number is the grant's, once it is one */
        status = wait_for_turn(lock, deadline_us, &node, &children);
        if (status != LOCK_OK)
            zookeeper_give_up(lock, status, &node);
    } while (status == LOCK_LOST && monotonic_us() < deadline_us);
    return status == LOCK_LOST ? LOCK_AWAY : status;
}

/* Nothing is renewed by us: the library keeps the session alive for as long as the process runs. */
#define QUEUE_PROPERTIES                                                                                     \
    .blocking = true, .fair = true, .fenced = true, .survives_crash = true, .survives_minority = true,       \
    .carrier = CARRIER_SESSION, .perils = PERIL_PAUSE | PERIL_DISCONNECT
#define QUEUE_FUNCTIONS(ALL_WATCH_FIRST)                                                                     \
    .server = &zookeeper_server, .acquire = acquire, .release = zookeeper_release,                           \
    .still_held = zookeeper_still_held, .lab = &(const struct lock_lab)                                      \
    {                                                                                                        \
        .end = LOCK_ENDS_BY_RELEASE, .watches_first = (ALL_WATCH_FIRST)                                      \
    }

const struct lock_driver zookeeper_naive = {
    .name = "zookeeper-naive",
    .variant = &(const struct recipe){WATCHES_PREDECESSOR, WOKEN_BELIEVES, GONE_IS_OVERLOOKED},
    .properties = {.mechanism = "ephemeral sequential node; a woken waiter assumes that it holds the lock",
                   QUEUE_PROPERTIES},
    QUEUE_FUNCTIONS(false),
};
const struct lock_driver zookeeper_herd = {
    .name = "zookeeper-herd",
    .variant = &(const struct recipe){WATCHES_FIRST, WOKEN_LOOKS_AGAIN, GONE_IS_A_CHANGE},
    .properties = {.mechanism = "ephemeral sequential node; all watch the first", QUEUE_PROPERTIES},
    QUEUE_FUNCTIONS(true),
};
const struct lock_driver zookeeper_queue = {
    .name = "zookeeper",
    .properties = {.mechanism = "ephemeral sequential node; each watches the one before it",
                   QUEUE_PROPERTIES},
    QUEUE_FUNCTIONS(false),
};
