/* A reentrant lock by name in the memory of this process. Locks whose server knows only the process, not its threads
 * (Spring's registries), take it first, so that two threads never hold one lock. A holder is a handle, which one thread
 * uses at a time. Locks with different drivers do not share names. Any thread may call. */
#ifndef OVERSELL_LOCK_PROCESS_GATE_H
#define OVERSELL_LOCK_PROCESS_GATE_H

#include "lock/lock_driver.h"

/* The id with which this process signs on lock servers: a random UUID, made when first needed. A forked child has another, and so has each number
 * of LOCK->observer->process (LOCK may be NULL). False: the kernel had no randomness. */
bool process_gate_client_id(const struct lock *lock, char ret_id[static LOCK_UUID_SIZE]);

/* LOCK_OK: HOLDER has KEY, for the *RET_HOLDS-th time. LOCK_TIMED_OUT: another had it until DEADLINE. LOCK_FAILED: out of
 * memory. Tells the holder's observer when it starts to wait, and counts the wake-ups. */
enum lock_status process_gate_acquire(struct lock *holder, const char *key, int64_t deadline_us,
                                      unsigned *ret_holds);
/* How many times HOLDER has KEY; 0: it has not. */
unsigned process_gate_holds(const struct lock *holder, const char *key);
/* Releases KEY once; does nothing where HOLDER does not have it. */
void process_gate_release(const struct lock *holder, const char *key);
/* To be called before HOLDER is freed: its names stay taken until UNTIL (monotonic_us()), then they are free. */
void process_gate_abandon(const struct lock *holder, int64_t until_us);

#endif
