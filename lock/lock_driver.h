/* What those who implement locks share. */
#ifndef OVERSELL_LOCK_LOCK_DRIVER_H
#define OVERSELL_LOCK_LOCK_DRIVER_H

#include "lock/lock.h"

#include <pthread.h>

/* As lock_configure set it; never NULL strings. */
extern struct lock_config lock_config;

/* The next server of a list that is separated by commas; false at its end. */
bool lock_next_server(const char **list, const char **ret_server, size_t *ret_size);

enum {
    LOCK_TRY_MS = 250, /* a single request may take so long even where the deadline is nearer or past … */
    LOCK_COMMAND_MS = 2000, /* … and never longer than this: then its server is away */
};

/* How long one request may take, in milliseconds, when the caller's deadline is DEADLINE. */
int64_t lock_command_ms(int64_t deadline_us);

/* Notes what went wrong in lock->error and returns STATUS. */
__attribute__((format(printf, 3, 4))) enum lock_status lock_fail(struct lock *lock, enum lock_status status,
                                                                 const char *format, ...);

enum { LOCK_TOKEN_SIZE = 33 };
/* 32 hex digits of the kernel's randomness: a contender's identity. False where there is none to be had. */
bool lock_random_token(char ret_token[static LOCK_TOKEN_SIZE]);

enum { LOCK_UUID_SIZE = 37 };
/* A UUID of version 4, from the same source. */
bool lock_random_uuid(char ret_uuid[static LOCK_UUID_SIZE]);

/* For locks that poll: tells the observer that the lock is taken, then sleeps for PERIOD_MS with a fifth of jitter
 * either way, but not past the deadline. False when the deadline has come: give up. */
bool lock_poll_pause(struct lock *lock, int64_t period_ms, int64_t deadline_us);

/* Waits on CONDITION, with MUTEX held, until it is signalled (or seems to be), or until UNTIL has come: then false. */
bool lock_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t until_us);

/* Says KEY as the server knows it, with the configured prefix: "oversell:lock:product:1" for "" and ":lock:". */
void lock_server_key(char *ret_key, size_t size, const char *before, const char *between, const char *key);

#endif
