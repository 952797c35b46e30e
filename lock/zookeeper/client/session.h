/* ZooKeeper's client: one session for the whole process, shared by all handles, replaced when it is lost. Any thread.
 *
 * A lock on ZooKeeper is a node that lives as long as the session that made it. So every request names its session,
 * and is not sent after that session has ended.
 *
 * What requests return, apart from LOCK_OK:
 *   LOCK_LOST     the session has ended, and its nodes with it; or the node that was asked about is not there
 *   LOCK_AWAY     no connection, or no answer, within lock_command_ms(deadline): the server may have executed the request
 *   LOCK_REFUSED  the server refused the request
 * Each request counts a round trip and stores its error in LOCK, which may be NULL. */
#ifndef OVERSELL_LOCK_ZOOKEEPER_CLIENT_SESSION_H
#define OVERSELL_LOCK_ZOOKEEPER_CLIENT_SESSION_H

#include "lock/lock_driver.h"

enum {
    ZOOKEEPER_PATH_SIZE = 256,
    ZOOKEEPER_LEASE_MS = 10000, /* the session's timeout if the first caller sets none */
    ZOOKEEPER_LEAST_MS = 1000,  /* the shortest that a caller may set: connecting takes time */
};

/* ---- the session (session.c) --------------------------------------------------------------------------- */

/* How many servers ZOOKEEPER_CONNECT names. */
int zookeeper_servers(void);

/* Deletes every node whose path begins with PATH, in the background, as long as the session lives: for nodes that could not
 * be deleted in time, and for nodes of a request whose answer was lost. */
void zookeeper_abandon(int64_t session, const char *path);

/* How many sessions this process has lost; any thread may call. */
uint64_t zookeeper_sessions_lost(void);

extern const struct lock_server zookeeper_server;

/* ---- requests (lock/zookeeper/client/request.c) ------------------------------------------------------------------- */

/* An ephemeral node that this process has made. */
struct zookeeper_node {
    int64_t session; /* the server's number of the session that made the node; 0 if no request was sent */
    int64_t czxid;   /* the transaction that made it: a number that only grows, whatever the path */
    char path[ZOOKEEPER_PATH_SIZE];
};

/* The names of a node's children; one block of memory, to be freed by free(names). */
struct zookeeper_children {
    int count;
    char **names;
};

/* Makes an ephemeral node: PARENT/NAME followed by the next sequence number. Also asks for the parent's children in the
 * same round trip; their names may be NULL afterwards. Begins a session if there is none; the process's first session has
 * lock->lease_ms as its timeout. On LOCK_AWAY the session ret_node->session may have made the node after all.
 * LOCK_LOST: the parent does not exist, or the session has ended. */
enum lock_status zookeeper_create(struct lock *lock, int64_t deadline_us, const char *parent,
                                  const char *name, const char *data, struct zookeeper_node *ret_node,
                                  struct zookeeper_children *ret_children);
/* Makes PATH and its parents as containers, which the server removes when they have been empty for a while. */
enum lock_status zookeeper_create_parents(struct lock *lock, int64_t deadline_us, const char *path);
enum lock_status zookeeper_list(struct lock *lock, int64_t deadline_us, int64_t session, const char *path,
                                struct zookeeper_children *ret_children);
/* The same after the server has caught up with its leader, since an earlier request may have gone to another server. */
enum lock_status zookeeper_list_latest(struct lock *lock, int64_t deadline_us, int64_t session,
                                       const char *path, struct zookeeper_children *ret_children);
enum lock_status zookeeper_delete(struct lock *lock, int64_t deadline_us, int64_t session, const char *path);
/* Is there a node at PATH? */
enum lock_status zookeeper_find(struct lock *lock, int64_t deadline_us, int64_t session, const char *path,
                                int64_t *ret_czxid);

enum zookeeper_gone { GONE_IS_A_CHANGE, GONE_IS_OVERLOOKED };
/* Watches PATH and waits until it changes (LOCK_OK) or DEADLINE passes (LOCK_TIMED_OUT; LOCK_AWAY without a connection at the
 * deadline). GONE says what to do if PATH does not exist: GONE_IS_A_CHANGE returns LOCK_OK, which is correct;
 * GONE_IS_OVERLOOKED waits for a change that never comes. A connection that is lost and found again does not end the wait.
 * RET_CHILDREN (NULL: not wanted) may hold the parent's children afterwards, as they were after the change. */
enum lock_status zookeeper_await(struct lock *lock, int64_t deadline_us, int64_t session, const char *path,
                                 enum zookeeper_gone gone, struct zookeeper_children *ret_children);

/* ---- what the recipes share (lock/zookeeper/node.c) -------------------------------------------------------------- */

/* Takes a place in the queue for KEY: a separate node with a unique identity. *ret_children are the names of the other
 * nodes as far as the answer had them, for zookeeper_look_around. */
enum lock_status zookeeper_join(struct lock *lock, const char *key, int64_t deadline_us,
                                struct zookeeper_node *ret_node, struct zookeeper_children *ret_children);

/* A node's place in the queue for its key: the paths of the first node and of the node immediately before this one. Both
 * are "" if this node is the first. */
struct zookeeper_place {
    bool is_first;
    char first[ZOOKEEPER_PATH_SIZE];
    char before[ZOOKEEPER_PATH_SIZE];
};
/* Finds the node's place. Frees CHILDREN; if it is empty, asks the server. LOCK_LOST: the node itself does not exist any more. */
enum lock_status zookeeper_look_around(struct lock *lock, int64_t deadline_us,
                                       const struct zookeeper_node *node, struct zookeeper_children *children,
                                       struct zookeeper_place *ret_place);

/* Deletes the node: now, or in the background if the server does not answer in time (LOCK_AWAY). LOCK_LOST: the node did
 * not exist any more. */
enum lock_status zookeeper_leave(struct lock *lock, int64_t deadline_us, const struct zookeeper_node *node);
/* Leaves the queue after the wait has ended with STATUS. */
void zookeeper_give_up(struct lock *lock, enum lock_status status, const struct zookeeper_node *node);

/* Makes a grant from the node. Its token is SESSION/NAME. */
void zookeeper_grant(const struct zookeeper_node *node, const char *key, struct lock_grant *ret_grant);
/* For lock_driver: release deletes the node; still_held asks the server for it. */
enum lock_status zookeeper_release(struct lock *lock, struct lock_grant *grant);
enum lock_status zookeeper_still_held(struct lock *lock, const struct lock_grant *grant);

#endif
