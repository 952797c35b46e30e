/* Sends one command to all servers of REDLOCK_URLS at once and counts their answers. One thread at a time for each set. */
#ifndef OVERSELL_LOCK_REDIS_CLIENT_NODES_H
#define OVERSELL_LOCK_REDIS_CLIENT_NODES_H

#include "lock/redis/client/connection.h"

struct redlock_nodes;

/* One connection to each, made when first needed. NULL when out of memory, or where the list names none or too many. */
struct redlock_nodes *redlock_nodes_new(const char *urls);
/* NODES may be NULL. */
void redlock_nodes_free(struct redlock_nodes *nodes);

int redlock_count(const struct redlock_nodes *nodes);
/* How many are a majority. */
int redlock_quorum(const struct redlock_nodes *nodes);

/* How long to wait before the next try: random, and in no two processes the same, so that contenders who have split the
 * votes do not split them again. */
int64_t redlock_pause_ms(void);

/* The answer that is a yes: a status or a string of these words, or the integer 1. A no is nil, or another string or
 * integer where one is expected. */
struct redlock_yes {
    int type; /* hiredis's: REDIS_REPLY_… */
    const char *words;
};

/* What became of a question; the four numbers add up to that of the servers. Who had not answered yet when the
 * matter was decided counts as silent, too. */
struct redlock_votes {
    int yes;
    int no;
    int refused; /* an error reply: password, type, memory … */
    int silent;
    char refusal[140]; /* the last one's words */
};

/* Sends the command in WORDS to all, then waits LIMIT_MS at most, until a majority has said yes or can no longer do so.
 * A server that answers something else than yes, no or an error counts as silent, and is reconnected. A question goes even to
 * those who still owe an answer to the last: in this order, what was asked of a sleeping server is undone again when
 * it wakes. */
struct redlock_votes redlock_ask(struct redlock_nodes *nodes, struct lock *lock, int64_t limit_ms,
                                 struct redlock_yes yes, const char *const *words, int word_count);

#endif
