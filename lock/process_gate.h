/* A reentrant lock by name, inside the process: what stands before a lock whose identity is the process's, so that
 * its threads do not share it. A holder is a handle, that is one thread at a time; locks of different kinds may
 * have the same name. */
#ifndef OVERSELL_LOCK_PROCESS_GATE_H
#define OVERSELL_LOCK_PROCESS_GATE_H

#include "lock/lock_driver.h"

/* A random UUID that is this process's own, made when first needed; a forked child has another, and so has each number
 * of LOCK->observer->process (LOCK may be NULL). False where there is no randomness. */
bool process_gate_client_id(const struct lock *lock, char ret_id[static LOCK_UUID_SIZE]);

/* LOCK_OK: HOLDER has KEY, for the *RET_HOLDS-th time. LOCK_TIMED_OUT: another had it until DEADLINE. LOCK_FAILED: out of
 * memory. Tells the holder's observer when it starts to wait, and counts the wake-ups. */
enum lock_status process_gate_acquire(struct lock *holder, const char *key, int64_t deadline_us,
                                      unsigned *ret_holds);
/* How often HOLDER has KEY. */
unsigned process_gate_holds(const struct lock *holder, const char *key);
/* Gives back one of HOLDER's holds of KEY; nothing happens where it has none. */
void process_gate_release(const struct lock *holder, const char *key);
/* Before HOLDER is freed: what it still has is free from UNTIL on (monotonic), not before. */
void process_gate_abandon(const struct lock *holder, int64_t until_us);

#endif
