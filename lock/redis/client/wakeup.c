/* One subscriber for each Redis server: waiters ring its bell, and its thread subscribes to what they wait for.
 *
 * The thread alone touches the connection. Callers change the list of channels and waiters, under the mutex, and ring
 * the bell; the thread then brings what the server knows into line with the list. So there is no order of calls in
 * which a subscription is forgotten: what the list says is what will be. */
#include "lock/redis/client/wakeup.h"
#include "base/clock.h"

#include "lock/lab.h"
#include "lock/redis/client/connection.h"
#include "lock/redis/client/reply.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RETRY_MS = 50 }; /* between two tries to reach a server that is away */

struct redis_waiter {
    struct redis_waiter *next; /* who has come later */
    struct channel *channel;
    pthread_cond_t woken;
    bool called; /* a message is for this one, and it has not yet returned from its wait */
    bool owes;   /* it has, and owes a try */
};

/* What the server has been told of a channel. */
enum subscription {
    UNKNOWN,   /* nothing, or the connection is lost */
    ASKED,     /* SUBSCRIBE is sent */
    LISTENING, /* and confirmed */
    ENDING,    /* UNSUBSCRIBE is sent */
};

struct channel {
    struct channel *next;
    struct subscriber *subscriber;
    struct redis_waiter *waiters; /* first come, first woken */
    enum subscription state;
    bool missed;    /* the connection was lost while somebody listened */
    char name[300]; /* longer than any: prefix, lock's name and contender */
};

struct subscriber {
    struct subscriber *next;
    struct channel *channels;
    pthread_cond_t changed; /* a channel is confirmed, or a try to connect has failed */
    uint64_t failures;      /* tries to connect and subscribe that failed, and how the last one did */
    enum lock_status failure;
    char error[200];
    int bell; /* an eventfd */
    /* the thread's own: */
    struct redis *redis;
    redisContext *context; /* lent by REDIS; NULL: not connected */
    bool proven;           /* this connection has confirmed a subscription */
    int64_t silent_us;     /* since when it owes a confirmation and has said nothing; 0: it does not */
    enum lock_status trouble;
    char trouble_text[200];
    size_t url_size;
    char url[];
};

/* Of everything here that is not the thread's own. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct subscriber *subscribers;

static void ring(const struct subscriber *s)
{
    uint64_t one = 1;
    ssize_t written = write(s->bell, &one, sizeof one); /* it can fail only where it rings already */
    (void)written;
}

/* ---- waking; the mutex is held ----------------------------------------------------------------------------- */

static void call(struct redis_waiter *waiter)
{
    waiter->called = true;
    pthread_cond_signal(&waiter->woken);
}

/* One waiter that has been called and has not tried yet is enough: its try will see what this message tells. */
static void call_one(const struct channel *channel)
{
    for (struct redis_waiter *w = channel->waiters; w; w = w->next)
        if (w->called)
            return;
    if (channel->waiters)
        call(channel->waiters);
}

static void call_all(const struct channel *channel)
{
    for (struct redis_waiter *w = channel->waiters; w; w = w->next)
        call(w);
}

static struct channel *find_channel(const struct subscriber *s, const char *name)
{
    struct channel *channel = s->channels;
    while (channel && strcmp(channel->name, name) != 0)
        channel = channel->next;
    return channel;
}

/* ---- the thread: one connection ---------------------------------------------------------------------------- */

static bool note_trouble(struct subscriber *s, enum lock_status trouble, const char *text)
{
    s->trouble = trouble;
    snprintf(s->trouble_text, sizeof s->trouble_text, "%s", text);
    return false;
}

/* The connection is lost, or was not to be had. True where it makes sense to try again at once. */
static bool lose_connection(struct subscriber *s)
{
    bool proven = s->proven;
    redis_drop(s->redis);
    s->context = NULL;
    s->proven = false;
    s->silent_us = 0;
    pthread_mutex_lock(&mutex);
    for (struct channel *c = s->channels; c; c = c->next) {
        c->missed = c->missed || c->state == LISTENING;
        c->state = UNKNOWN;
    }
    if (!proven) {
        s->failures++;
        s->failure = s->trouble;
        snprintf(s->error, sizeof s->error, "%s", s->trouble_text);
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&mutex);
    return proven;
}

static bool send_command(const struct subscriber *s, const char *verb, const char *channel)
{
    char *bytes = NULL;
    int size = redisFormatCommand(&bytes, "%s %s", verb, channel);
    if (size < 0)
        return false;
    int64_t until_us = monotonic_us() + (int64_t)LOCK_COMMAND_MS * 1000;
    bool sent = redis_send(s->redis, bytes, (size_t)size, until_us);
    redisFreeCommand(bytes);
    return sent;
}

/* The next thing to tell the server, noted as told; channels that are of no more use are freed on the way. */
static const char *next_command(struct subscriber *s, char *ret_channel, size_t size, bool *ret_awaiting)
{
    const char *verb = NULL;
    *ret_awaiting = false;
    pthread_mutex_lock(&mutex);
    for (struct channel **link = &s->channels; *link && !verb;) {
        struct channel *c = *link;
        if (c->state == UNKNOWN && !c->waiters) {
            *link = c->next;
            free(c);
            continue;
        }
        if (c->state == UNKNOWN) {
            c->state = ASKED;
            verb = "SUBSCRIBE";
        } else if (c->state == LISTENING && !c->waiters) {
            c->state = ENDING;
            verb = "UNSUBSCRIBE";
        }
        *ret_awaiting = *ret_awaiting || c->state == ASKED || c->state == ENDING;
        if (verb)
            snprintf(ret_channel, size, "%s", c->name);
        link = &c->next;
    }
    pthread_mutex_unlock(&mutex);
    return verb;
}

/* Brings the server's subscriptions into line with the list of channels. */
static bool settle(struct subscriber *s, bool *ret_awaiting)
{
    char channel[sizeof s->channels->name];
    const char *verb;
    while ((verb = next_command(s, channel, sizeof channel, ret_awaiting)))
        if (!send_command(s, verb, channel))
            return note_trouble(s, LOCK_AWAY, "cannot subscribe");
    return true;
}

/* One reply: a confirmation or a message. The mutex is held. */
static void heed(struct subscriber *s, const char *kind, const char *name)
{
    struct channel *channel = find_channel(s, name);
    if (!channel)
        return;
    if (strcmp(kind, "message") == 0) {
        call_one(channel);
    } else if (strcmp(kind, "subscribe") == 0) {
        s->proven = true;
        channel->state = LISTENING;
        if (channel->missed)
            call_all(channel);
        channel->missed = false;
        pthread_cond_broadcast(&s->changed);
    } else if (strcmp(kind, "unsubscribe") == 0) {
        channel->state = UNKNOWN;
    }
}

/* Is it a confirmation or a message? */
static bool is_push(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements >= 2 &&
           reply->element[0]->type == REDIS_REPLY_STRING && reply->element[1]->type == REDIS_REPLY_STRING;
}

/* Reads what has come. False when the connection is of no more use. */
static bool hear(struct subscriber *s, redisContext *context)
{
    s->silent_us = 0;
    if (!redis_reply_read(context))
        return note_trouble(s, LOCK_AWAY, context->errstr);
    while (true) {
        AUTO_REPLY reply = NULL;
        if (!redis_reply_next(context, &reply))
            return note_trouble(s, LOCK_AWAY, context->errstr);
        if (!reply)
            return true;
        if (reply->type == REDIS_REPLY_ERROR)
            return note_trouble(s, LOCK_REFUSED, reply->str);
        if (!is_push(reply))
            return note_trouble(s, LOCK_REFUSED, "an answer that is no message");
        pthread_mutex_lock(&mutex);
        heed(s, reply->element[0]->str, reply->element[1]->str);
        pthread_mutex_unlock(&mutex);
    }
}

/* Waits for the bell, for what the server says, or for PAUSE_MS (-1: for ever). True when the server has spoken. */
static bool wait_for_events(const struct subscriber *s, int pause_ms, bool *ret_rung)
{
    struct pollfd polled[] = {{.fd = s->bell, .events = POLLIN},
                              {.fd = s->context ? s->context->fd : -1, .events = POLLIN}};
    uint64_t rings;
    (void)poll(polled, 2, pause_ms);
    *ret_rung = polled[0].revents && read(s->bell, &rings, sizeof rings) == (ssize_t)sizeof rings;
    return polled[1].revents != 0;
}

static bool has_waiters(const struct subscriber *s)
{
    bool any = false;
    pthread_mutex_lock(&mutex);
    for (const struct channel *c = s->channels; c && !any; c = c->next)
        any = c->waiters;
    pthread_mutex_unlock(&mutex);
    return any;
}

/* Who only listens would never notice that the server's machine is gone. A unix socket needs none of it and refuses. */
static void keep_alive(int fd)
{
    static const struct {
        int level, name, value;
    } options[] = {{SOL_SOCKET, SO_KEEPALIVE, 1},
                   {IPPROTO_TCP, TCP_KEEPIDLE, 10},
                   {IPPROTO_TCP, TCP_KEEPINTVL, 5},
                   {IPPROTO_TCP, TCP_KEEPCNT, 3}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof options[i].value);
}

static bool connect_to_server(struct subscriber *s)
{
    enum lock_status status = redis_ready(s->redis, NULL, LOCK_COMMAND_MS, &s->context);
    if (status != LOCK_OK)
        return note_trouble(s, status, redis_error(s->redis));
    keep_alive(s->context->fd);
    return true;
}

/* One round: connect, subscribe, wait, listen. False when there is no connection any more. */
static bool serve(struct subscriber *s)
{
    bool awaiting = false, rung;
    if (!s->context && has_waiters(s) && !connect_to_server(s))
        return false;
    if (s->context && !settle(s, &awaiting))
        return false;
    if (awaiting && !s->silent_us)
        s->silent_us = monotonic_us();
    if (wait_for_events(s, awaiting ? LOCK_COMMAND_MS : -1, &rung) && s->context)
        return hear(s, s->context);
    if (awaiting &&
        monotonic_us() - s->silent_us >= (int64_t)LOCK_COMMAND_MS * 1000) /* however often it rang */
        return note_trouble(s, LOCK_AWAY, "no reply to a subscription");
    return true;
}

static void *subscribe(void *arg)
{
    struct subscriber *s = arg;
    bool rung;
    while (true)
        if (!serve(s) && !lose_connection(s))
            (void)wait_for_events(s, RETRY_MS, &rung);
    return NULL;
}

/* ---- what waiters call -------------------------------------------------------------------------------------- */

/* Signals are for the program's other threads. */
static bool start_thread(struct subscriber *s)
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool ok = pthread_create(&thread, NULL, subscribe, s) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (ok)
        pthread_detach(thread);
    return ok;
}

/* It lives as long as the process. */
static struct subscriber *new_subscriber(const char *url, size_t size)
{
    struct subscriber *s = calloc(1, sizeof *s + size + 1);
    if (!s)
        return NULL;
    memcpy(s->url, url, size);
    s->url_size = size;
    s->redis = redis_new(url, size);
    s->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    pthread_cond_init(&s->changed, NULL);
    if (s->redis && s->bell >= 0 && start_thread(s))
        return s;
    redis_free(s->redis);
    if (s->bell >= 0)
        close(s->bell);
    pthread_cond_destroy(&s->changed);
    free(s);
    return NULL;
}

static struct subscriber *subscriber_of(const char *url, size_t size)
{
    struct subscriber *s = subscribers;
    while (s && (s->url_size != size || memcmp(s->url, url, size) != 0))
        s = s->next;
    if (!s && (s = new_subscriber(url, size))) {
        s->next = subscribers;
        subscribers = s;
    }
    return s;
}

static struct channel *channel_of(struct subscriber *s, const char *name)
{
    struct channel *channel = find_channel(s, name);
    if (!channel && strlen(name) < sizeof channel->name && (channel = calloc(1, sizeof *channel))) {
        channel->subscriber = s;
        snprintf(channel->name, sizeof channel->name, "%s", name);
        channel->next = s->channels;
        s->channels = channel;
    }
    return channel;
}

/* The mutex is held. NULL when out of memory or threads. */
static struct redis_waiter *new_waiter(const char *url, size_t size, const char *channel_name)
{
    struct subscriber *s = subscriber_of(url, size);
    struct redis_waiter *waiter = s ? calloc(1, sizeof *waiter) : NULL;
    struct channel *channel = waiter ? channel_of(s, channel_name) : NULL;
    if (!channel) {
        free(waiter);
        return NULL;
    }
    waiter->channel = channel;
    pthread_cond_init(&waiter->woken, NULL);
    struct redis_waiter **last = &channel->waiters;
    while (*last)
        last = &(*last)->next;
    *last = waiter;
    return waiter;
}

enum lock_status redis_wakeup_join(struct lock *lock, const char *url, size_t size, const char *channel_name,
                                   int64_t limit_ms, struct redis_waiter **ret_waiter)
{
    int64_t until_us = monotonic_us() + limit_ms * 1000;
    enum lock_status status = LOCK_OK;
    pthread_mutex_lock(&mutex);
    struct redis_waiter *waiter = new_waiter(url, size, channel_name);
    if (!waiter) {
        pthread_mutex_unlock(&mutex);
        return lock_fail(lock, LOCK_FAILED, "no memory or thread to subscribe with");
    }
    const struct channel *channel = waiter->channel;
    struct subscriber *s = channel->subscriber;
    uint64_t failures = s->failures;
    if (channel->state != LISTENING)
        ring(s);
    while (channel->state != LISTENING && monotonic_us() < until_us &&
           (s->failures == failures || s->failure == LOCK_AWAY)) /* which it may not be for long */
        (void)wait_until(&s->changed, &mutex, until_us);
    if (channel->state != LISTENING)
        status = s->failures != failures ? lock_fail(lock, s->failure, "subscriber: %s", s->error)
                                         : lock_fail(lock, LOCK_AWAY, "no reply to a subscription");
    pthread_mutex_unlock(&mutex);
    if (status == LOCK_OK)
        *ret_waiter = waiter;
    else
        redis_wakeup_leave(waiter, status);
    return status;
}

bool redis_wakeup_wait(struct lock *lock, struct redis_waiter *waiter, int64_t until_us)
{
    pthread_mutex_lock(&mutex);
    while (!waiter->called && monotonic_us() < until_us)
        (void)wait_until(&waiter->woken, &mutex, until_us);
    waiter->owes = waiter->called;
    waiter->called = false;
    pthread_mutex_unlock(&mutex);
    if (waiter->owes)
        lock->wake_ups++;
    return waiter->owes;
}

/* A waiter that the explorer holds in place of its sleep. */
struct sleeper {
    struct lock *lock;
    const struct lock_grant *place;
};

static bool has_turn(void *context)
{
    const struct sleeper *sleeper = context;
    return sleeper->lock->driver->lab->has_turn(sleeper->lock, sleeper->place);
}

bool redis_wakeup_wait_for_turn(struct lock *lock, struct redis_waiter *waiter,
                                const struct lock_grant *place, int64_t limit_ms, int64_t deadline_us)
{
    int64_t until_us = monotonic_us() + limit_ms * 1000;
    if (monotonic_us() >= deadline_us)
        return false;
    const struct lock_lab *lab = lock->driver->lab;
    if (lab && lab->has_turn && lock->observer && lock->observer->on_sleep) {
        if (!begin_sleep(lock->observer, has_turn, &(struct sleeper){lock, place}))
            return false;
        until_us = 0; /* it is its turn, perhaps by the end of a lease, of which no message tells */
    }
    redis_wakeup_wait(lock, waiter, until_us < deadline_us ? until_us : deadline_us);
    return true;
}

void redis_wakeup_leave(struct redis_waiter *waiter, enum lock_status status)
{
    struct channel *channel = waiter->channel;
    pthread_mutex_lock(&mutex);
    struct redis_waiter **link = &channel->waiters;
    while (*link != waiter)
        link = &(*link)->next;
    *link = waiter->next;
    /* Whoever has got the lock will tell when it is free; whoever saw it taken will be told by its holder. */
    bool tried = status == LOCK_OK || status == LOCK_TIMED_OUT;
    if ((waiter->called && status != LOCK_OK) || (waiter->owes && !tried))
        call_one(channel);
    if (!channel->waiters)
        ring(channel->subscriber);
    pthread_mutex_unlock(&mutex);
    pthread_cond_destroy(&waiter->woken);
    free(waiter);
}
