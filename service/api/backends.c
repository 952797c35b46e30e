/* The servers of the locks: which there are, and whether each answers, remembered for a second. */
#include "service/api/backends.h"
#include "base/clock.h"

#include "service/engine/strategy.h"

#include <pthread.h>
#include <stdio.h>

enum { BACKENDS_MAX = 8, REMEMBER_US = 1000000, PATIENCE_US = 1000000 };

static struct backend {
    const struct lock_server *server;
    pthread_mutex_t mutex; /* held while it is asked: others want the same answer */
    int64_t asked_us;      /* 0: never */
    enum lock_status status;
    char reason[200];
} backends[BACKENDS_MAX];

static pthread_once_t listed = PTHREAD_ONCE_INIT;

static void list(void)
{
    for (size_t i = 0; i < strategy_count; i++) {
        const struct lock_server *server = strategy_server(&strategies[i]);
        size_t j = 0;
        while (server && j < BACKENDS_MAX && backends[j].server && backends[j].server != server)
            j++;
        if (server && j < BACKENDS_MAX && !backends[j].server) {
            backends[j].server = server;
            pthread_mutex_init(&backends[j].mutex, NULL);
        }
    }
}

const struct lock_server *backend_at(size_t i)
{
    pthread_once(&listed, list);
    return i < BACKENDS_MAX ? backends[i].server : NULL;
}

/* B's mutex is held. */
static void ask_unless_remembered(struct backend *b)
{
    if (b->asked_us && monotonic_us() - b->asked_us <= REMEMBER_US)
        return;
    b->reason[0] = '\0';
    b->status = b->server->ping(monotonic_us() + PATIENCE_US, b->reason, sizeof b->reason);
    b->asked_us = monotonic_us();
}

static void *ask(void *backend)
{
    struct backend *b = backend;
    pthread_mutex_lock(&b->mutex);
    ask_unless_remembered(b);
    pthread_mutex_unlock(&b->mutex);
    return NULL;
}

void backends_ask(void)
{
    pthread_t threads[BACKENDS_MAX];
    size_t started = 0;
    for (size_t i = 0; backend_at(i); i++)
        if (pthread_create(&threads[started], NULL, ask, &backends[i]) == 0)
            started++; /* else it is asked later, by backend_up */
    while (started > 0)
        pthread_join(threads[--started], NULL);
}

bool backend_up(const struct lock_server *server, char *ret_reason, size_t size)
{
    size_t i = 0;
    ret_reason[0] = '\0';
    while (server && backend_at(i) && backend_at(i) != server)
        i++;
    if (!server || !backend_at(i))
        return !server;
    struct backend *b = &backends[i];
    pthread_mutex_lock(&b->mutex);
    ask_unless_remembered(b);
    bool up = b->status == LOCK_OK;
    if (b->status == LOCK_UNAVAILABLE)
        snprintf(ret_reason, size, "%s is not set", server->setting);
    else if (!up)
        snprintf(ret_reason, size, "%s: %s", server->name, b->reason);
    pthread_mutex_unlock(&b->mutex);
    return up;
}
