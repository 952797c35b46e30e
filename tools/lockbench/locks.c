/* Measures how often threads can acquire and release a lock, and how fast a contended lock passes from holder to holder. */
#include "tools/lockbench/lockbench.h"

#include "base/clock.h"
#include "tools/lockbench/threads.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define LEASE_MS 10000
#define PATIENCE_US 10000000 /* for the first acquisition, which connects */
#define HOLD_NS 2000000L     /* about what an order takes; time for all others to stand in line again */
#define SAMPLES_MAX 20000
#define KEY_SIZE 65

/* ---- one handle ------------------------------------------------------------------------------------------------ */

static void explain(const struct lock *lock, const char *what, enum lock_status status)
{
    die("%s: %s%s%s", what, lock_status_name(status), *lock->error ? ": " : "", lock->error);
}

static struct lock *open_handle(const struct lock_driver *driver)
{
    struct lock *lock = NULL;
    enum lock_status status = lock_open(driver, &lock);
    if (status != LOCK_OK)
        die("open: %s", lock_status_name(status));
    lock->lease_ms = LEASE_MS;
    return lock;
}

static void cycle(struct lock *lock, const char *key, int64_t deadline_us)
{
    struct lock_grant grant;
    enum lock_status status = lock_acquire(lock, key, deadline_us, &grant);
    if (status == LOCK_TIMED_OUT)
        return; /* the time is up */
    if (status != LOCK_OK)
        explain(lock, "acquire", status);
    status = lock_release(lock, &grant);
    if (status != LOCK_OK)
        explain(lock, "release", status);
}

static void own_key(const struct lock_driver *driver, size_t member, char ret_key[static KEY_SIZE])
{
    snprintf(ret_key, KEY_SIZE, "bench:%s:%zu", driver->name, member);
}

/* ---- cycles ---------------------------------------------------------------------------------------------------- */

struct cycler {
    struct lock *lock;
    char key[KEY_SIZE];
};

struct cycling {
    const struct lock_driver *driver;
    bool one_key;
};

static void cycler_begin(void *own, void *shared, size_t member)
{
    struct cycler *c = own;
    const struct cycling *cycling = shared;
    own_key(cycling->driver, cycling->one_key ? 0 : member, c->key);
    c->lock = open_handle(cycling->driver);
    cycle(c->lock, c->key, monotonic_us() + PATIENCE_US);
}

static void cycler_turn(void *own, int64_t end_us)
{
    const struct cycler *c = own;
    cycle(c->lock, c->key, end_us);
}

static void cycler_end(void *own)
{
    lock_close(((struct cycler *)own)->lock);
}

double lock_cycles(const struct lock_driver *driver, bool one_key, size_t threads, int64_t ms)
{
    static const struct thread_work WORK = {sizeof(struct cycler), cycler_begin, cycler_turn, cycler_end};
    struct cycling cycling = {driver, one_key};
    return threads_run(&WORK, &cycling, threads, ms);
}

/* ---- hand-overs ------------------------------------------------------------------------------------------------ */

/* The one key, and what is seen of it. */
struct contest {
    const struct lock_driver *driver;
    char key[KEY_SIZE];
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

static void contender_begin(void *own, void *shared, size_t member)
{
    struct contender *c = own;
    char key[KEY_SIZE];
    c->contest = shared;
    own_key(c->contest->driver, member, key);
    c->lock = open_handle(c->contest->driver);
    cycle(c->lock, key, monotonic_us() + PATIENCE_US);
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
    pthread_mutex_lock(&contest->mutex);
    while (contest->acquired == acquired && wait_until(&contest->taken, &contest->mutex, end_us))
        ;
    pthread_mutex_unlock(&contest->mutex);
}

static void contender_turn(void *own, int64_t end_us)
{
    const struct contender *c = own;
    struct lock_grant grant;
    enum lock_status status = lock_acquire(c->lock, c->contest->key, end_us, &grant);
    int64_t now_us = monotonic_us();
    if (status == LOCK_TIMED_OUT)
        return; /* the time is up */
    if (status != LOCK_OK)
        explain(c->lock, "acquire", status);
    int64_t acquired = note_acquired(c->contest, now_us);
    (void)nanosleep(&(struct timespec){.tv_nsec = HOLD_NS}, NULL);
    note_release(c->contest);
    status = lock_release(c->lock, &grant);
    if (status != LOCK_OK && status != LOCK_LOST) /* lost: of a lock that lets in two, and deletes for both */
        explain(c->lock, "release", status);
    stand_back(c->contest, acquired, end_us);
}

static void contender_end(void *own)
{
    const struct contender *c = own;
    pthread_mutex_lock(&c->contest->mutex);
    c->contest->wake_ups += c->lock->wake_ups;
    pthread_mutex_unlock(&c->contest->mutex);
    lock_close(c->lock);
}

static int compare_times(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct hand_overs lock_hand_overs(const struct lock_driver *driver, size_t threads, int64_t ms)
{
    static const struct thread_work WORK = {sizeof(struct contender), contender_begin, contender_turn,
                                            contender_end};
    static struct contest contest = {.mutex = PTHREAD_MUTEX_INITIALIZER, .taken = PTHREAD_COND_INITIALIZER};
    contest.driver = driver;
    snprintf(contest.key, sizeof contest.key, "bench:%s:all", driver->name);
    (void)threads_run(&WORK, &contest, threads, ms);
    if (contest.samples == 0)
        die("the lock was never handed over: in %lld acquisitions, %lld found another holder",
            (long long)contest.acquired, (long long)contest.together);
    size_t last = contest.samples - 1;
    qsort(contest.waited_ms, contest.samples, sizeof contest.waited_ms[0], compare_times);
    return (struct hand_overs){
        .median_ms = (contest.waited_ms[last / 2] + contest.waited_ms[(last + 1) / 2]) / 2,
        .wake_ups = (double)contest.wake_ups / (double)contest.released,
        .together = (double)contest.together / (double)contest.acquired,
    };
}
