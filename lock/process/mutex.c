/* `mutex`, `mutex-per-product`, `reentrant-mutex` and the flawed `mutex-wrong-object`: pthread mutexes, which exclude the
 * threads of one process and are invisible to every other process. They differ only in which mutex an order locks;
 * mutex-wrong-object locks one that no other thread uses. */
#include "base/text.h"
#include "lock/registry.h"

#include <errno.h>
#include <string.h>

enum { STRIPES = 64 };

struct mutex_lock {
    struct lock base;
    pthread_mutex_t own; /* a mutex that belongs to this handle alone: what mutex-wrong-object locks */
};

static pthread_once_t initialized = PTHREAD_ONCE_INIT;
static pthread_mutex_t whole_shop[STRIPES]; /* one for each shop: the first, unless the shops are separate */
static pthread_mutex_t recursive[STRIPES];
static pthread_mutex_t stripes[STRIPES];

static void initialize(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    for (int i = 0; i < STRIPES; i++) {
        pthread_mutex_init(&whole_shop[i], NULL);
        pthread_mutex_init(&recursive[i], &attributes);
        pthread_mutex_init(&stripes[i], NULL);
    }
    pthread_mutexattr_destroy(&attributes);
}

/* Two products share a stripe now and then, which costs time, never safety. */
static unsigned stripe_of(const char *key)
{
    return text_hash(key) % STRIPES;
}

static unsigned shop_of(const char *key)
{
    return lock_config.separate_shops ? stripe_of(key) : 0;
}

/* Which mutex an order locks. */
struct choice {
    pthread_mutex_t *mutexes; /* STRIPES of them; NULL: the handle's own */
    unsigned (*index)(const char *key);
};

static pthread_mutex_t *mutex_of(struct lock *lock, const char *key)
{
    const struct choice *choice = lock->driver->variant;
    if (!choice->mutexes)
        return &((struct mutex_lock *)lock)->own;
    unsigned process = lock->observer ? lock->observer->process : 0; /* each has its own mutexes */
    return &choice->mutexes[(choice->index(key) + process) % STRIPES];
}

static bool open_mutex(struct lock *lock)
{
    pthread_once(&initialized, initialize);
    return pthread_mutex_init(&((struct mutex_lock *)lock)->own, NULL) == 0;
}

static enum lock_status acquire(struct lock *lock, const char *key, int64_t deadline_us,
                                struct lock_grant *ret_grant)
{
    pthread_mutex_t *mutex = mutex_of(lock, key);
    int error = pthread_mutex_trylock(mutex);
    if (error == EBUSY) {
        report_step(lock->observer, STEP_WAIT, STEP_NO_VALUE);
        struct timespec until = {.tv_sec = deadline_us / 1000000, .tv_nsec = deadline_us % 1000000 * 1000};
        error = pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until);
        lock->wake_ups += error == 0;
    }
    if (error == ETIMEDOUT)
        return LOCK_TIMED_OUT;
    if (error)
        return lock_fail(lock, LOCK_FAILED, "pthread_mutex: %s", strerrordesc_np(error));
    lock_fill_grant(ret_grant, key, "", INT64_MAX);
    ret_grant->impl = mutex;
    return LOCK_OK;
}

static enum lock_status release(struct lock *lock, struct lock_grant *grant)
{
    if (!grant->impl)
        return LOCK_NOT_OWNER; /* released before */
    int error = pthread_mutex_unlock(grant->impl);
    grant->impl = NULL;
    if (!error)
        return LOCK_OK;
    return lock_fail(lock, error == EPERM ? LOCK_NOT_OWNER : LOCK_FAILED, "pthread_mutex_unlock: %s",
                     strerrordesc_np(error));
}

static enum lock_status still_held(struct lock *lock, const struct lock_grant *grant)
{
    (void)lock;
    (void)grant;
    return LOCK_OK; /* nothing but its holder can end it */
}

static void close_mutex(struct lock *lock)
{
    pthread_mutex_destroy(&((struct mutex_lock *)lock)->own);
}

#define MUTEX_FUNCTIONS                                                                                      \
    .handle_size = sizeof(struct mutex_lock), .open = open_mutex, .acquire = acquire, .release = release,    \
    .still_held = still_held, .close = close_mutex

const struct lock_driver process_mutex = {
    .name = "mutex",
    .variant = &(const struct choice){whole_shop, shop_of},
    .properties = {.mechanism = "one pthread mutex for all products",
                   .blocking = true,
                   .survives_crash = true},
    MUTEX_FUNCTIONS,
};
const struct lock_driver process_mutex_per_product = {
    .name = "mutex-per-product",
    .variant = &(const struct choice){stripes, stripe_of},
    .properties = {.mechanism = "a pthread mutex for each product, striped",
                   .blocking = true,
                   .survives_crash = true},
    MUTEX_FUNCTIONS,
};
const struct lock_driver process_mutex_wrong_object = {
    .name = "mutex-wrong-object",
    .variant = &(const struct choice){NULL, NULL},
    .properties = {.mechanism = "a separate pthread mutex for each worker",
                   .blocking = true,
                   .survives_crash = true},
    MUTEX_FUNCTIONS,
};
const struct lock_driver process_mutex_reentrant = {
    .name = "reentrant-mutex",
    .variant = &(const struct choice){recursive, shop_of},
    .properties = {.mechanism = "one recursive pthread mutex",
                   .reentrant = true,
                   .blocking = true,
                   .survives_crash = true},
    MUTEX_FUNCTIONS,
};
