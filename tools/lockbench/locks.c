/* Measures how often threads can acquire and release a lock, and how fast a contended lock passes from holder to holder. */
#include "loadtest/bench/lock.h"
#include "base/clock.h"

#include "loadtest/cli/interrupt.h"
#include "loadtest/stats/median.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define LEASE_MS 10000
#define PATIENCE_US 10000000 /* for the first acquisition, which connects */
#define HOLD_NS 2000000L     /* about what an order takes; time for all others to stand in line again */
#define SLICE_US 50000
#define SAMPLES_MAX 20000

/* ---- one handle ------------------------------------------------------------------------------------------------ */

static bool explain(const struct lock *lock, const char *what, enum lock_status status, char *ret_reason)
{
    snprintf(ret_reason, REASON_SIZE, "%s: %s%s%s", what, lock_status_name(status), *lock->error ? ": " : "",
             lock->error);
    return false;
}

static bool open_handle(const struct lock_driver *driver, struct lock **ret_lock, char *ret_reason)
{
    enum lock_status status = lock_open(driver, ret_lock);
    if (status != LOCK_OK) {
        snprintf(ret_reason, REASON_SIZE, "open: %s", lock_status_name(status));
        return false;
    }
    (*ret_lock)->lease_ms = LEASE_MS;
    return true;
}

static bool cycle(struct lock *lock, const char *key, int64_t deadline_us, char *ret_reason)
{
    struct lock_grant grant;
    enum lock_status status = lock_acquire(lock, key, deadline_us, &grant);
    if (status == LOCK_TIMED_OUT)
        return true; /* the time is up */
    if (status != LOCK_OK)
        return explain(lock, "acquire", status, ret_reason);
    status = lock_release(lock, &grant);
    return status == LOCK_OK || explain(lock, "release", status, ret_reason);
}

static void own_key(const struct lock_driver *driver, size_t member, char ret_key[static 65])
{
    snprintf(ret_key, 65, "bench:%s:%zu", driver->name, member);
}

/* ---- cycles ---------------------------------------------------------------------------------------------------- */

struct cycler {
    struct lock *lock;
    char key[65];
};

struct cycling {
    const struct lock_driver *driver;
    enum lock_rivalry rivalry;
};

static bool cycler_begin(void *own, void *shared, size_t member, char *ret_reason)
{
    struct cycler *c = own;
    const struct cycling *cycling = shared;
    own_key(cycling->driver, cycling->rivalry == ONE_KEY ? 0 : member, c->key);
    return open_handle(cycling->driver, &c->lock, ret_reason) &&
           cycle(c->lock, c->key, monotonic_us() + PATIENCE_US, ret_reason);
}

static bool cycler_turn(void *own, int64_t end_us, char *ret_reason)
{
    struct cycler *c = own;
    return cycle(c->lock, c->key, end_us, ret_reason);
}

static void cycler_end(void *own)
{
    lock_close(((struct cycler *)own)->lock);
}

bool lock_cycles(const struct lock_driver *driver, enum lock_rivalry rivalry, size_t threads, int64_t ms,
                 struct progress *progress, double *ret_per_s, char *ret_reason)
{
    static const struct thread_work WORK = {sizeof(struct cycler), cycler_begin, cycler_turn, cycler_end};
    struct cycling cycling = {driver, rivalry};
    return threads_run(&WORK, &cycling, threads, ms, progress, ret_per_s, ret_reason);
}

/* ---- hand-overs ------------------------------------------------------------------------------------------------ */

/* The one key, and what is seen of it. */
struct contest {
    const struct lock_driver *driver;
    char key[65];
    pthread_mutex_t mutex; /* of all that follows; never held while the lock is called */
    pthread_cond_t taken;
    int64_t released_us; /* when the release began that nobody has followed yet; 0: none */
    int64_t acquired, released, inside, together;
    uint64_t wake_ups;
    double waited_ms[SAMPLES_MAX]; /* the first ones; a longer contest tells nothing new */
    size_t samples;
};

struct contender {
    struct contest *contest;
    struct lock *lock;
};

static bool contender_begin(void *own, void *shared, size_t member, char *ret_reason)
{
    struct contender *c = own;
    char key[65];
    c->contest = shared;
    own_key(c->contest->driver, member, key);
    return open_handle(c->contest->driver, &c->lock, ret_reason) &&
           cycle(c->lock, key, monotonic_us() + PATIENCE_US, ret_reason);
}

/* Returns how many have acquired it so far. */
static int64_t note_acquired(struct contest *contest, int64_t now_us)
{
    pthread_mutex_lock(&contest->mutex);
    if (contest->inside > 0)
        contest->together++;
    else if (contest->released_us && contest->samples < SAMPLES_MAX)
        contest->waited_ms[contest->samples++] = (double)(now_us - contest->released_us) / 1000;
    contest->inside++;
    contest->released_us = 0;
    int64_t acquired = ++contest->acquired;
    pthread_cond_broadcast(&contest->taken);
    pthread_mutex_unlock(&contest->mutex);
    return acquired;
}

static void note_release(struct contest *contest)
{
    pthread_mutex_lock(&contest->mutex);
    contest->inside--;
    contest->released++;
    contest->released_us = monotonic_us();
    pthread_mutex_unlock(&contest->mutex);
}

/* Whoever asks again at once often is first again, which is no hand-over: so the last holder stands back. */
static void stand_back(struct contest *contest, int64_t acquired, int64_t end_us)
{
    int64_t now_us;
    pthread_mutex_lock(&contest->mutex);
    while (contest->acquired == acquired && (now_us = monotonic_us()) < end_us && !interrupted()) {
        int64_t until_us = now_us + SLICE_US < end_us ? now_us + SLICE_US : end_us;
        (void)wait_until(&contest->taken, &contest->mutex, until_us);
    }
    pthread_mutex_unlock(&contest->mutex);
}

static bool contender_turn(void *own, int64_t end_us, char *ret_reason)
{
    const struct contender *c = own;
    struct lock_grant grant;
    enum lock_status status = lock_acquire(c->lock, c->contest->key, end_us, &grant);
    int64_t now_us = monotonic_us();
    if (status == LOCK_TIMED_OUT)
        return true; /* the time is up */
    if (status != LOCK_OK)
        return explain(c->lock, "acquire", status, ret_reason);
    int64_t acquired = note_acquired(c->contest, now_us);
    (void)nanosleep(&(struct timespec){.tv_nsec = HOLD_NS}, NULL);
    note_release(c->contest);
    status = lock_release(c->lock, &grant);
    if (status != LOCK_OK && status != LOCK_LOST) /* lost: of a lock that lets in two, and deletes for both */
        return explain(c->lock, "release", status, ret_reason);
    stand_back(c->contest, acquired, end_us);
    return true;
}

static void contender_end(void *own)
{
    const struct contender *c = own;
    if (!c->lock)
        return;
    pthread_mutex_lock(&c->contest->mutex);
    c->contest->wake_ups += c->lock->wake_ups;
    pthread_mutex_unlock(&c->contest->mutex);
    lock_close(c->lock);
}

static bool sum_up(struct contest *contest, struct hand_overs *ret_hand_overs, char *ret_reason)
{
    if (contest->samples == 0) {
        snprintf(ret_reason, REASON_SIZE,
                 "the lock was never handed over: in %lld acquisitions, %lld found another holder",
                 (long long)contest->acquired, (long long)contest->together);
        return false;
    }
    *ret_hand_overs = (struct hand_overs){
        .median_ms = median_of(contest->waited_ms, contest->samples),
        .wake_ups = (double)contest->wake_ups / (double)contest->released,
        .together = (double)contest->together / (double)contest->acquired,
    };
    return true;
}

bool lock_hand_overs(const struct lock_driver *driver, size_t threads, int64_t ms, struct progress *progress,
                     struct hand_overs *ret_hand_overs, char *ret_reason)
{
    static const struct thread_work WORK = {sizeof(struct contender), contender_begin, contender_turn,
                                            contender_end};
    double turns_per_s;
    struct contest *contest = calloc(1, sizeof *contest);
    if (!contest) {
        snprintf(ret_reason, REASON_SIZE, "out of memory");
        return false;
    }
    contest->driver = driver;
    pthread_mutex_init(&contest->mutex, NULL);
    pthread_cond_init(&contest->taken, NULL);
    snprintf(contest->key, sizeof contest->key, "bench:%s:all", driver->name);
    bool well = threads_run(&WORK, contest, threads, ms, progress, &turns_per_s, ret_reason) &&
                sum_up(contest, ret_hand_overs, ret_reason);
    pthread_cond_destroy(&contest->taken);
    pthread_mutex_destroy(&contest->mutex);
    free(contest);
    return well;
}
