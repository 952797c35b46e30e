/* Makes, finds and deletes the node with which a contender takes its place in a lock's queue in ZooKeeper. A lost answer
 * leaves no node behind.
 *
 * This is what Apache Curator's locks do beneath their recipe ("protected" creation, "guaranteed" deletion), with its
 * names, so that Curator and we stand in one queue: /PREFIX/locks/KEY/_c_UUID-lock-NNNNNNNNNN. The server gives the ten
 * digits, one more for each node made under a parent; they are what is compared, whoever made the node. */
#include "base/clock.h"
#include "lock/zookeeper/client/session.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DIGITS = 10,
    TRIES = 3, /* at making a node, even where the deadline has passed: the parents may be missing */
};

/* Curator writes its address into its nodes, for people who look at them. So do we. */
static char address[INET_ADDRSTRLEN] = "127.0.0.1";

static void find_address(void)
{
    struct ifaddrs *all;
    if (getifaddrs(&all) != 0)
        return;
    for (struct ifaddrs *one = all; one; one = one->ifa_next) {
        if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET || one->ifa_flags & IFF_LOOPBACK)
            continue;
        struct in_addr in = ((struct sockaddr_in *)one->ifa_addr)->sin_addr;
        inet_ntop(AF_INET, &in, address, sizeof address);
        break;
    }
    freeifaddrs(all);
}

/* The number at the end of a child's name; false where it has none, and so is nobody's place in the queue. */
static bool number_of(const char *name, int64_t *ret_number)
{
    size_t length = strlen(name);
    if (length < DIGITS || strspn(name + length - DIGITS, "0123456789") != DIGITS)
        return false;
    *ret_number = strtoll(name + length - DIGITS, NULL, 10);
    return true;
}

/* PARENT/NAME; false where that is longer than anything that ours or Curator's nodes are called. */
static bool put_together(char ret_path[static ZOOKEEPER_PATH_SIZE], const char *parent, const char *name)
{
    return snprintf(ret_path, ZOOKEEPER_PATH_SIZE, "%s/%s", parent, name) < ZOOKEEPER_PATH_SIZE;
}

/* The answer to a create was lost: was the node made? Its name begins as no other does. */
static enum lock_status find_made(struct lock *lock, int64_t deadline_us, const char *parent,
                                  const char *beginning, struct zookeeper_node *node)
{
    struct zookeeper_children children = {0};
    enum lock_status status = zookeeper_list_latest(lock, deadline_us, node->session, parent, &children);
    if (status != LOCK_OK)
        return status;
    status = LOCK_LOST;
    for (int i = 0; i < children.count && status == LOCK_LOST; i++) {
        if (put_together(node->path, parent, children.names[i]) &&
            strncmp(node->path, beginning, strlen(beginning)) == 0)
            status = zookeeper_find(lock, deadline_us, node->session, node->path, &node->czxid);
    }
    free(children.names);
    return status;
}

/* One try. LOCK_LOST: nothing was made. LOCK_AWAY, LOCK_FAILED: what may have been made is being cleared away. */
static enum lock_status make(struct lock *lock, int64_t deadline_us, const char *parent,
                             struct zookeeper_node *ret_node, struct zookeeper_children *ret_children)
{
    char uuid[LOCK_UUID_SIZE];
    char name[LOCK_UUID_SIZE + sizeof "_c_-lock-"];
    char beginning[ZOOKEEPER_PATH_SIZE];
    if (!lock_random_uuid(uuid))
        return lock_fail(lock, LOCK_FAILED, "no random numbers");
    snprintf(name, sizeof name, "_c_%s-lock-", uuid);
    enum lock_status status = zookeeper_create(lock, deadline_us, parent, name, address, ret_node,
                                               ret_children);
    bool unknown = (status == LOCK_AWAY || status == LOCK_FAILED) && ret_node->session;
    if (!unknown)
        return status;
    snprintf(beginning, sizeof beginning, "%s/%s", parent, name);
    if (status == LOCK_AWAY && monotonic_us() < deadline_us)
        status = find_made(lock, deadline_us, parent, beginning, ret_node);
    if (status != LOCK_OK && status != LOCK_LOST)
        zookeeper_abandon(ret_node->session, beginning);
    return status;
}

/* TRIES tries have ended with STATUS: is another one allowed? */
static bool may_try_again(enum lock_status status, int tries, int64_t deadline_us)
{
    bool has_time = monotonic_us() < deadline_us;
    if (status == LOCK_LOST)
        return tries < TRIES ||
               has_time; /* no parent yet, or none any more; or the session has ended: there is a next */
    return status == LOCK_AWAY && has_time && zookeeper_servers() > 1; /* which may be electing a leader */
}

enum lock_status zookeeper_join(struct lock *lock, const char *key, int64_t deadline_us,
                                struct zookeeper_node *ret_node, struct zookeeper_children *ret_children)
{
    static pthread_once_t address_found = PTHREAD_ONCE_INIT;
    char parent[ZOOKEEPER_PATH_SIZE];
    pthread_once(&address_found, find_address);
    lock_server_key(parent, sizeof parent, "/", "/locks/", key);
    enum lock_status status = make(lock, deadline_us, parent, ret_node, ret_children);
    for (int tries = 1; may_try_again(status, tries, deadline_us); tries++) {
        status = zookeeper_create_parents(lock, deadline_us, parent);
        if (status == LOCK_OK || status == LOCK_LOST)
            status = make(lock, deadline_us, parent, ret_node, ret_children);
    }
    return status == LOCK_LOST ? LOCK_AWAY : status;
}

/* Who among the children has the smallest number, and who the greatest below OWN: NULL where nobody is before us. */
static void find_before(const struct zookeeper_children *children, int64_t own, const char **ret_first,
                        const char **ret_before)
{
    int64_t first_number = INT64_MAX;
    int64_t before_number = -1;
    int64_t number;
    *ret_first = *ret_before = NULL;
    for (int i = 0; i < children->count; i++) {
        if (!number_of(children->names[i], &number) || number >= own)
            continue;
        if (number < first_number) {
            *ret_first = children->names[i];
            first_number = number;
        }
        if (number > before_number) {
            *ret_before = children->names[i];
            before_number = number;
        }
    }
}

static bool is_among(const struct zookeeper_children *children, const char *name)
{
    for (int i = 0; i < children->count; i++)
        if (strcmp(children->names[i], name) == 0)
            return true;
    return false;
}

enum lock_status zookeeper_look_around(struct lock *lock, int64_t deadline_us,
                                       const struct zookeeper_node *node, struct zookeeper_children *children,
                                       struct zookeeper_place *ret_place)
{
    char parent[ZOOKEEPER_PATH_SIZE];
    const char *name = strrchr(node->path, '/') + 1;
    const char *first;
    const char *before;
    int64_t own;
    enum lock_status status = LOCK_OK;
    snprintf(parent, sizeof parent, "%.*s", (int)(name - 1 - node->path), node->path);
    if (!children->names)
        status = zookeeper_list(lock, deadline_us, node->session, parent, children);
    if (status != LOCK_OK)
        return status;
    if (!is_among(children, name) || !number_of(name, &own)) {
        status = lock_fail(lock, LOCK_LOST, "ZooKeeper: %s has gone", name);
    } else {
        find_before(children, own, &first, &before);
        *ret_place = (struct zookeeper_place){.is_first = !first};
        if (first && (!put_together(ret_place->first, parent, first) ||
                      !put_together(ret_place->before, parent, before)))
            status = lock_fail(lock, LOCK_REFUSED, "ZooKeeper: too long a name below %s", parent);
    }
    free(children->names);
    *children = (struct zookeeper_children){0};
    return status;
}

enum lock_status zookeeper_leave(struct lock *lock, int64_t deadline_us, const struct zookeeper_node *node)
{
    enum lock_status status = zookeeper_delete(lock, deadline_us, node->session, node->path);
    if (status != LOCK_OK && status != LOCK_LOST)
        zookeeper_abandon(node->session, node->path);
    return status;
}

void zookeeper_give_up(struct lock *lock, enum lock_status status, const struct zookeeper_node *node)
{
    if (status == LOCK_TIMED_OUT)
        (void)zookeeper_leave(lock, 0, node);
    else if (status != LOCK_LOST) /* the server does not answer: no more waiting for it */
        zookeeper_abandon(node->session, node->path);
}

/* ---- a node as a grant ------------------------------------------------------------------------------------ */

void zookeeper_grant(const struct zookeeper_node *node, const char *key, struct lock_grant *ret_grant)
{
    *ret_grant = (struct lock_grant){.fence = node->czxid, .lease_end_us = INT64_MAX};
    snprintf(ret_grant->key, sizeof ret_grant->key, "%s", key);
    snprintf(ret_grant->token, sizeof ret_grant->token, "%" PRIx64 "%s", (uint64_t)node->session,
             strrchr(node->path, '/'));
}

/* False where the grant is spent, or not one of ours. */
static bool granted(const struct lock_grant *grant, struct zookeeper_node *ret_node)
{
    char parent[ZOOKEEPER_PATH_SIZE];
    char *name;
    ret_node->session = (int64_t)strtoull(grant->token, &name, 16);
    if (!ret_node->session || *name != '/')
        return false;
    ret_node->czxid = grant->fence;
    lock_server_key(parent, sizeof parent, "/", "/locks/", grant->key);
    return snprintf(ret_node->path, sizeof ret_node->path, "%s%s", parent, name) < ZOOKEEPER_PATH_SIZE;
}

static int64_t command_deadline_us(void)
{
    return monotonic_us() + (int64_t)LOCK_COMMAND_MS * 1000;
}

enum lock_status zookeeper_release(struct lock *lock, struct lock_grant *grant)
{
    struct zookeeper_node node;
    if (!granted(grant, &node))
        return lock_fail(lock, LOCK_NOT_OWNER, "the grant is spent");
    grant->token[0] = '\0';
    return zookeeper_leave(lock, command_deadline_us(), &node);
}

enum lock_status zookeeper_still_held(struct lock *lock, const struct lock_grant *grant)
{
    struct zookeeper_node node;
    if (!granted(grant, &node))
        return lock_fail(lock, LOCK_NOT_OWNER, "the grant is spent");
    return zookeeper_find(lock, command_deadline_us(), node.session, node.path, &node.czxid);
}
