/* The local lock in front of a lock whose owner, as its server knows it, is the whole process: one contender of the
 * process at a time for each key, and its holder again. */
#ifndef OVERSELL_LOCK_REDIS_LOCAL_H
#define OVERSELL_LOCK_REDIS_LOCAL_H

#include "lock/lock_impl.h"

enum { PROCESS_ID_SIZE = 37 };
/* A UUID that is this process's own; a forked child has another. False where there is no randomness. */
bool redis_local_process_id(char ret_id[static PROCESS_ID_SIZE]);

struct redis_local;

/* LOCK_OK: the contender LOCK is in, for the *RET_HOLDS-th time; LOCK_BUSY when DEADLINE has come. Waiters are woken. */
enum lock_status redis_local_enter(struct lock *lock, const char *key, int64_t deadline_us,
                                   struct redis_local **ret_local, int *ret_holds);
/* In how many times is LOCK? */
int redis_local_holds(const struct redis_local *local);
/* Undoes one enter. The last one wakes one waiter, and LOCAL is not to be used any more. */
void redis_local_leave(struct redis_local *local);
/* Instead of leaving: its contender goes without a word, and nobody gets in before UNTIL. */
void redis_local_abandon(struct redis_local *local, int64_t until_us);

#endif
