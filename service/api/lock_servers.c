/* Asks the servers that locks and stock need whether they answer, and remembers each answer for a second. */
#include "service/api/lock_servers.h"
#include "base/clock.h"

#include "service/engine/strategy.h"

#include <pthread.h>
#include <stdio.h>

enum { SERVERS_MAX = 8, REMEMBER_US = 1000000, PATIENCE_US = 1000000 };

static struct known_server {
    const struct lock_server *server;
    pthread_mutex_t mutex; /* held during a question, so that other threads wait for the same answer */
    int64_t asked_us;      /* 0: never */
    enum lock_status status;
    char reason[200];
} servers[SERVERS_MAX];

static pthread_once_t listed = PTHREAD_ONCE_INIT;

static void list(void)
{
    for (size_t i = 0; i < strategy_count; i++) {
        const struct lock_server *server = strategy_server(&strategies[i]);
        size_t j = 0;
        while (server && j < SERVERS_MAX && servers[j].server && servers[j].server != server)
            j++;
        if (server && j < SERVERS_MAX && !servers[j].server) {
            servers[j].server = server;
            pthread_mutex_init(&servers[j].mutex, NULL);
        }
    }
}

const struct lock_server *lock_server_at(size_t i)
{
    pthread_once(&listed, list);
    return i < SERVERS_MAX ? servers[i].server : NULL;
}

/* The caller holds the mutex of KNOWN. */
static void ask_unless_remembered(struct known_server *known)
{
    if (known->asked_us && monotonic_us() - known->asked_us <= REMEMBER_US)
        return;
    known->reason[0] = '\0';
    known->status = lock_ping(known->server, monotonic_us() + PATIENCE_US, known->reason,
                              sizeof known->reason);
    known->asked_us = monotonic_us();
}

static void *ask(void *server)
{
    struct known_server *known = server;
    pthread_mutex_lock(&known->mutex);
    ask_unless_remembered(known);
    pthread_mutex_unlock(&known->mutex);
    return NULL;
}

void lock_servers_ask(void)
{
    pthread_t threads[SERVERS_MAX];
    size_t started = 0;
    for (size_t i = 0; lock_server_at(i); i++)
        if (pthread_create(&threads[started], NULL, ask, &servers[i]) == 0)
            started++; /* else it is asked later, by lock_server_is_up */
    while (started > 0)
        pthread_join(threads[--started], NULL);
}

bool lock_server_is_up(const struct lock_server *server, char *ret_reason, size_t size)
{
    size_t i = 0;
    ret_reason[0] = '\0';
    while (server && lock_server_at(i) && lock_server_at(i) != server)
        i++;
    if (!server || !lock_server_at(i))
        return !server;
    struct known_server *known = &servers[i];
    pthread_mutex_lock(&known->mutex);
    ask_unless_remembered(known);
    bool up = known->status == LOCK_OK;
    if (known->status == LOCK_UNAVAILABLE)
        snprintf(ret_reason, size, "%s is not set", server->setting);
    else if (!up)
        snprintf(ret_reason, size, "%s: %s", server->name, known->reason);
    pthread_mutex_unlock(&known->mutex);
    return up;
}
