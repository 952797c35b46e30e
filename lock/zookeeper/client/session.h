/* ZooKeeper's client: one session for the whole process, shared by all handles, replaced when it is lost. Any thread.
 *
 * A lock on ZooKeeper is a node that lives as long as the session which made it. So every request names the session
 * that it belongs to, and asks nothing once that has ended.
 *
 * What requests return, beside LOCK_OK:
 *   LOCK_LOST     the session has ended, and its nodes with it; or the node that was asked about is not there
 *   LOCK_AWAY     no connection, or no answer, within lock_command_ms(deadline): what was asked may have been done
 *   LOCK_REFUSED  the server's own "no"
 * They count a round trip and note the error in LOCK, which may be NULL. */
#ifndef OVERSELL_LOCK_ZOOKEEPER_CLIENT_SESSION_H
#define OVERSELL_LOCK_ZOOKEEPER_CLIENT_SESSION_H

#include "lock/lock_driver.h"

enum {
    ZOOKEEPER_PATH_SIZE = 256,
    ZOOKEEPER_LEASE_MS = 10000, /* the session's time-out where the first caller does not say … */
    ZOOKEEPER_LEAST_MS = 1000,  /* … and what he must ask for at least: in less nobody connects */
};

/* ---- the session (session.c) --------------------------------------------------------------------------- */

/* Makes a handle of SIZE bytes, which begin with a struct lock, and frees it: for a driver's open and close. */
enum lock_status zookeeper_open(const struct lock_driver *driver, size_t size, struct lock **ret_lock);
void zookeeper_free(struct lock *lock);

/* How many servers ZOOKEEPER_CONNECT names. */
int zookeeper_servers(void);

/* In the background, as long as the session lives: deletes every node whose path begins with PATH. For what could not
 * be deleted in time, and for what may have been made by a request whose answer was lost. */
void zookeeper_abandon(int64_t session, const char *path);

/* How many sessions this process has lost; any thread may call. */
uint64_t zookeeper_sessions_lost(void);

extern const struct lock_server zookeeper_server;

/* ---- requests (lock/zookeeper/client/request.c) ------------------------------------------------------------------- */

/* An ephemeral node of ours. */
struct zookeeper_node {
    int64_t session; /* the server's number of the session that made it; 0 where nothing was sent */
    int64_t czxid;   /* the transaction that made it: a number that only grows, whatever the path */
    char path[ZOOKEEPER_PATH_SIZE];
};

/* The names of a node's children; one block of memory, to be freed by free(names). */
struct zookeeper_children {
    int count;
    char **names;
};

/* Makes an ephemeral node PARENT/NAME and the next sequence number, and asks in the same breath for the parent's
 * children, whose names may be NULL afterwards. Begins the session where there is none, with lock->lease_ms as its
 * time-out if it is the process's first. On LOCK_AWAY ret_node->session tells who may have made the node after all.
 * LOCK_LOST: the parent is not there, or the session has ended. */
enum lock_status zookeeper_create(struct lock *lock, int64_t deadline_us, const char *parent,
                                  const char *name, const char *data, struct zookeeper_node *ret_node,
                                  struct zookeeper_children *ret_children);
/* Makes PATH, and what is above it, as containers, which the server removes when they have been empty for a while. */
enum lock_status zookeeper_create_parents(struct lock *lock, int64_t deadline_us, const char *path);
enum lock_status zookeeper_list(struct lock *lock, int64_t deadline_us, int64_t session, const char *path,
                                struct zookeeper_children *ret_children);
/* The same after the server has caught up with its leader: another server than this one may have been asked before. */
enum lock_status zookeeper_list_latest(struct lock *lock, int64_t deadline_us, int64_t session,
                                       const char *path, struct zookeeper_children *ret_children);
enum lock_status zookeeper_delete(struct lock *lock, int64_t deadline_us, int64_t session, const char *path);
/* Is there a node at PATH? */
enum lock_status zookeeper_find(struct lock *lock, int64_t deadline_us, int64_t session, const char *path,
                                int64_t *ret_czxid);

enum zookeeper_gone { GONE_IS_A_CHANGE, GONE_IS_OVERLOOKED };
/* Watches PATH and waits until it changes or DEADLINE is there: LOCK_OK or LOCK_TIMED_OUT; LOCK_AWAY where there is no
 * connection at the deadline. GONE says what to do when PATH is not there to be watched: return LOCK_OK, as is right,
 * or wait for a change that will never come. A connection that is lost and found again does not end the wait.
 * RET_CHILDREN (NULL: not wanted) may hold the parent's children afterwards, as they were after the change. */
enum lock_status zookeeper_await(struct lock *lock, int64_t deadline_us, int64_t session, const char *path,
                                 enum zookeeper_gone gone, struct zookeeper_children *ret_children);

/* ---- what the recipes share (lock/zookeeper/node.c) -------------------------------------------------------------- */

/* Takes a place in the queue for KEY: a node of its own, with an identity used for nothing else. *ret_children is what
 * could be learned about the others on the way, for zookeeper_look_around. */
enum lock_status zookeeper_join(struct lock *lock, const char *key, int64_t deadline_us,
                                struct zookeeper_node *ret_node, struct zookeeper_children *ret_children);

/* A node's place among those who want the same key: who stands at the head of the queue, and who immediately before
 * the node; both "" where the node itself is the first. */
struct zookeeper_place {
    bool is_first;
    char first[ZOOKEEPER_PATH_SIZE];
    char before[ZOOKEEPER_PATH_SIZE];
};
/* CHILDREN is used up; where it is empty, the server is asked. LOCK_LOST: the node itself has gone. */
enum lock_status zookeeper_look_around(struct lock *lock, int64_t deadline_us,
                                       const struct zookeeper_node *node, struct zookeeper_children *children,
                                       struct zookeeper_place *ret_place);

/* Deletes the node: now, or in the background where the server does not answer in time (LOCK_AWAY). LOCK_LOST where it
 * was gone before. */
enum lock_status zookeeper_leave(struct lock *lock, int64_t deadline_us, const struct zookeeper_node *node);
/* Leaves the queue, in which STATUS has ended the waiting. */
void zookeeper_give_up(struct lock *lock, enum lock_status status, const struct zookeeper_node *node);

/* The node as a grant, which remembers its session: the token is SESSION/NAME. */
void zookeeper_grant(const struct zookeeper_node *node, const char *key, struct lock_grant *ret_grant);
/* What lock_driver wants: the node is deleted; the server is asked for it. */
enum lock_status zookeeper_release(struct lock *lock, struct lock_grant *grant);
enum lock_status zookeeper_still_held(struct lock *lock, const struct lock_grant *grant);

#endif
