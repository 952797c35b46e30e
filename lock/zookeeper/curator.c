/* `curator`: what Apache Curator's InterProcessMutex does, with the same node names, so that both exclude each other.
 *
 * The queue is the plain recipe's, and so is this file's acquire: lock/zookeeper/recipe.c has the steps. What the library adds:
 *
 *   protected create     a name holds an identity, so that a node whose answer was lost is found again: zookeeper_join
 *   guaranteed delete    what could not be deleted is deleted in the background: zookeeper_leave
 *   a time limit         who has waited in vain takes its node out of the queue: zookeeper_give_up
 *   reentrancy           its holder may take it again: counted here, without asking the server
 *
 * (The first three help the plain recipe as well, so it has them here too.)
 *
 * The count is also what may go wrong: a second acquire asks nobody, and so is granted although the session, and the
 * lock with it, may just have been lost; as the first, it holds while the session lives. In Curator the owner is a
 * thread; here it is the handle. */
#include "lock/lab.h"
#include "lock/registry.h"
#include "lock/zookeeper/client/session.h"

#include <string.h>

struct curator_lock {
    struct lock base;
    struct lock_grant held; /* while depth > 0 */
    int depth;
};

static enum lock_status acquire(struct lock *lock, const char *key, int64_t deadline_us,
                                struct lock_grant *ret_grant)
{
    struct curator_lock *curator_lock = (struct curator_lock *)lock;
    if (curator_lock->depth == 0 || strcmp(curator_lock->held.key, key) != 0) {
        enum lock_status status = zookeeper_queue.acquire(lock, key, deadline_us, ret_grant);
        if (status != LOCK_OK)
            return status;
        curator_lock->held = *ret_grant;
        curator_lock->depth = 0;
    }
    curator_lock->depth++;
    *ret_grant = curator_lock->held;
    return LOCK_OK;
}

static enum lock_status release(struct lock *lock, struct lock_grant *grant)
{
    struct curator_lock *curator_lock = (struct curator_lock *)lock;
    if (curator_lock->depth == 0 || strcmp(curator_lock->held.token, grant->token) != 0)
        return lock_fail(lock, LOCK_NOT_OWNER, "this handle does not hold %s", grant->key);
    curator_lock->depth--;
    if (curator_lock->depth == 0)
        return zookeeper_release(lock, grant);
    grant->token[0] = '\0';
    return LOCK_OK;
}

const struct lock_driver curator = {
    .name = "curator",
    .server = &zookeeper_server,
    .properties = {.mechanism = "ephemeral sequential node, as Curator's InterProcessMutex",
                   .reentrant = true,
                   .blocking = true,
                   .fair = true,
                   .carrier = CARRIER_SESSION,
                   .fenced = true,
                   .survives_crash = true,
                   .survives_minority = true,
                   .perils = PERIL_PAUSE | PERIL_DISCONNECT},
    .handle_size = sizeof(struct curator_lock),
    .acquire = acquire,
    .release = release,
    .still_held = zookeeper_still_held,
    .lab = &(const struct lock_lab){.end = LOCK_ENDS_BY_RELEASE, .outsider = &zookeeper_queue},
};
