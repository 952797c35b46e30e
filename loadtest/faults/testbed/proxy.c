/* A TCP proxy on loopback that breaks connections as networks do. */
#include "loadtest/faults/testbed/proxy.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PAIRS_MAX = 2048,
    BUFFER = 16384,
    TRIGGER_MAX = 64,
    LISTEN_BACKLOG = 512,
    EVENTS_MAX = 256,
    NO_FILES_MS = 10
};

/* Data that one side has sent and that was not forwarded yet. No more is read until it was. */
struct flow {
    int64_t due_us;
    size_t from, length;
    bool ended; /* the sender has closed its side */
    bool told;  /* … and the proxy has closed the other side */
    char data[BUFFER];
};

struct pair {
    int ends[2];        /* the server's, the client's: ends[d] is where direction d leads */
    uint32_t wanted[2]; /* of each end, EPOLLIN and EPOLLOUT, or-ed: what is waited for … */
    uint32_t seen[2];   /* … and what has come */
    bool connected;     /* to the server */
    bool loses_reply;
    bool orphaned;        /* its client was reset, but its data has still to reach the server */
    struct flow flows[2]; /* by direction */
};

struct proxy {
    int listener, port;
    atomic_int target;
    int wake;  /* an eventfd */
    int epoll; /* since a service that has run every strategy has two thousand connections */
    pthread_t thread;
    pthread_mutex_t mutex; /* over what follows */
    bool closing, cutting;
    struct proxy_rules rules;
    char trigger[TRIGGER_MAX]; /* the name of rules.lose_reply_to between zero bytes */
    size_t trigger_length;     /* 0: none */
    int64_t passed[2];         /* bytes under these rules */
    atomic_llong acted;
    size_t count;
    struct pair *pairs[PAIRS_MAX];
    /* the thread's own */
    uint32_t wake_seen, listener_seen;
};

/* ---- sockets ------------------------------------------------------------------------------------------- */

static struct sockaddr_in loopback(int port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void at_once(int fd)
{
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
}

/* Closes with a reset, as a host does that does not know the connection. */
static void reset(int fd)
{
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1}, sizeof(struct linger));
    close(fd);
}

/* An end without events to wait for is removed, since epoll would report its hang-up again and again. */
static bool watch(struct proxy *proxy, struct pair *pair, int end, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = &pair->seen[end]};
    int change = !pair->wanted[end] ? EPOLL_CTL_ADD : !events ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    if (pair->wanted[end] == events)
        return true;
    pair->wanted[end] = events;
    return epoll_ctl(proxy->epoll, change, pair->ends[end], &event) == 0;
}

/* Closes a pair. Closing alone is not enough for epoll: a child that another thread has just forked still has the descriptor. */
static void forget(struct proxy *proxy, size_t i, bool broken)
{
    struct pair *pair = proxy->pairs[i];
    for (int d = 0; d < 2; d++) {
        if (pair->orphaned && d == TO_CLIENT)
            continue; /* closed already */
        (void)watch(proxy, pair, d, 0);
        if (broken)
            reset(pair->ends[d]);
        else
            close(pair->ends[d]);
    }
    free(pair);
    proxy->pairs[i] = proxy->pairs[--proxy->count];
}

static void accept_one(struct proxy *proxy)
{
    int client = accept4(proxy->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client < 0) {
        if (errno == EMFILE || errno == ENFILE)
            (void)poll(NULL, 0, NO_FILES_MS); /* the listener would be reported again at once */
        return;
    }
    struct sockaddr_in to = loopback(atomic_load(&proxy->target));
    struct pair *pair = proxy->count == PAIRS_MAX ? NULL : calloc(1, sizeof *pair);
    int server = pair ? socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0) : -1;
    if (server < 0 || (connect(server, (struct sockaddr *)&to, sizeof to) != 0 && errno != EINPROGRESS)) {
        if (server >= 0)
            close(server);
        free(pair);
        reset(client);
        return;
    }
    at_once(client);
    at_once(server);
    pair->ends[TO_SERVER] = server;
    pair->ends[TO_CLIENT] = client;
    proxy->pairs[proxy->count++] = pair;
}

/* ---- forwarding ---------------------------------------------------------------------------------------- */

/* How many of LENGTH bytes may be forwarded before the connection is cut; *RET_CUT: it is cut after these. */
static size_t before_the_cut(struct proxy *proxy, enum direction direction, size_t length, bool *ret_cut)
{
    int64_t limit = proxy->rules.cut_after[direction], left = limit - proxy->passed[direction];
    *ret_cut = limit > 0 && (int64_t)length > left;
    if (!*ret_cut)
        return length;
    proxy->rules.cut_after[direction] = 0; /* once */
    atomic_fetch_add(&proxy->acted, 1);
    return (size_t)left;
}

/* Resets the client. The proxy forwards the client's last message after the delay, and nothing else. */
static void orphan(struct proxy *proxy, struct pair *pair, int64_t due_us)
{
    (void)watch(proxy, pair, TO_CLIENT, 0);
    reset(pair->ends[TO_CLIENT]);
    pair->orphaned = true;
    /* A reply that was not yet delivered is lost, or it would keep the proxy from noticing the server's end. */
    pair->flows[TO_CLIENT].length = 0;
    pair->flows[TO_SERVER].due_us = due_us;
    pair->flows[TO_SERVER].ended = true;
    atomic_fetch_add(&proxy->acted, 1);
}

/* Discards what the server sends to a client that is gone. False: the server closed the connection. */
static bool ignore_server(struct pair *pair)
{
    struct flow *flow = &pair->flows[TO_CLIENT];
    if (!(pair->seen[TO_SERVER] & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        return true;
    ssize_t got = recv(pair->ends[TO_SERVER], flow->data, BUFFER, 0);
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Reads what one side has sent. False: the connection is to be dropped. */
static bool take_in(struct proxy *proxy, struct pair *pair, enum direction direction, int64_t now_us)
{
    struct flow *flow = &pair->flows[direction];
    ssize_t got = recv(pair->ends[!direction], flow->data, BUFFER, 0);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    if (got == 0) {
        flow->ended = true;
        return true;
    }
    if (direction == TO_CLIENT && pair->loses_reply) {
        atomic_fetch_add(&proxy->acted, 1);
        return false;
    }
    flow->from = 0;
    flow->length = (size_t)got;
    flow->due_us = now_us + proxy->rules.delay_ms * 1000;
    atomic_fetch_add(&proxy->acted, proxy->rules.delay_ms > 0);
    if (direction == TO_SERVER && proxy->trigger_length > 0 &&
        memmem(flow->data, (size_t)got, proxy->trigger, proxy->trigger_length) && proxy->rules.spare-- <= 0) {
        proxy->trigger_length = 0; /* once */
        if (proxy->rules.held_ms == HELD_FOREVER) {
            atomic_fetch_add(&proxy->acted, 1);
            return false;
        }
        if (proxy->rules.held_ms > 0)
            orphan(proxy, pair, now_us + proxy->rules.held_ms * 1000);
        else
            pair->loses_reply = true;
    }
    return true;
}

/* Forwards what the rules allow now. False: the connection is to be dropped. */
static bool give_out(struct proxy *proxy, struct pair *pair, enum direction direction)
{
    struct flow *flow = &pair->flows[direction];
    size_t length = flow->length;
    bool cut;
    if (proxy->rules.piece > 0 && length > (size_t)proxy->rules.piece) {
        length = (size_t)proxy->rules.piece;
        atomic_fetch_add(&proxy->acted, 1);
    }
    length = before_the_cut(proxy, direction, length, &cut);
    ssize_t sent = length > 0 ? send(pair->ends[direction], flow->data + flow->from, length, MSG_NOSIGNAL)
                              : 0;
    if (cut || (sent < 0 && errno != EAGAIN && errno != EINTR))
        return false;
    if (sent > 0) {
        flow->from += (size_t)sent;
        flow->length -= (size_t)sent;
        proxy->passed[direction] += sent;
    }
    return true;
}

static bool may_go(const struct proxy *proxy, const struct flow *flow, enum direction direction,
                   int64_t now_us)
{
    return !proxy->rules.stall[direction] && (flow->length == 0 || flow->due_us <= now_us);
}

/* One direction of one connection. False: the connection is to be dropped. */
static bool move(struct proxy *proxy, struct pair *pair, enum direction direction, int64_t now_us)
{
    struct flow *flow = &pair->flows[direction];
    uint32_t readable = pair->seen[!direction], writable = pair->seen[direction];
    if (pair->orphaned && direction == TO_CLIENT)
        return ignore_server(pair);
    if (direction == TO_SERVER && (writable & (EPOLLERR | EPOLLHUP)) && !pair->connected)
        return false;
    if (flow->length == 0 && !flow->ended && (readable & (EPOLLIN | EPOLLHUP | EPOLLERR)) &&
        !take_in(proxy, pair, direction, now_us))
        return false;
    if (!may_go(proxy, flow, direction, now_us))
        return true;
    if (flow->length > 0 && (direction == TO_CLIENT || pair->connected) && !give_out(proxy, pair, direction))
        return false;
    if (flow->ended && flow->length == 0 && !flow->told) {
        flow->told = true;
        (void)shutdown(pair->ends[direction], SHUT_WR); /* it may be gone already */
    }
    return true;
}

/* ---- the thread ---------------------------------------------------------------------------------------- */

/* The events to wait for at one end: more data from it once its last data was forwarded, and room for data that goes there. */
static uint32_t events_at(const struct proxy *proxy, const struct pair *pair, enum direction leads,
                          int64_t now_us, int *timeout_ms)
{
    const struct flow *out = &pair->flows[leads], *in = &pair->flows[!leads];
    uint32_t events = 0;
    if (leads == TO_SERVER && !pair->connected)
        events |= EPOLLOUT;
    if (in->length == 0 && !in->ended && !proxy->rules.stall[!leads])
        events |= EPOLLIN;
    if (out->length > 0 && !proxy->rules.stall[leads]) {
        int64_t ms = (out->due_us - now_us + 999) / 1000;
        if (ms <= 0)
            events |= EPOLLOUT;
        else if (ms < *timeout_ms)
            *timeout_ms = (int)ms;
    }
    return events;
}

/* Prepares all ends for epoll, and returns how long to wait at most. */
static int prepare(struct proxy *proxy)
{
    int timeout_ms = 1000;
    int64_t now_us = monotonic_us();
    for (size_t i = proxy->count; i-- > 0;) {
        struct pair *pair = proxy->pairs[i];
        uint32_t server = events_at(proxy, pair, TO_SERVER, now_us, &timeout_ms);
        uint32_t client = events_at(proxy, pair, TO_CLIENT, now_us, &timeout_ms);
        if (!watch(proxy, pair, TO_SERVER, server) ||
            (!pair->orphaned && !watch(proxy, pair, TO_CLIENT, client)))
            forget(proxy, i, true);
    }
    return timeout_ms;
}

/* Waits without the mutex, and notes the events for work(). */
static void await(struct proxy *proxy, int timeout_ms)
{
    struct epoll_event events[EVENTS_MAX];
    uint64_t rings;
    int count = epoll_wait(proxy->epoll, events, EVENTS_MAX, timeout_ms);
    for (int i = 0; i < count; i++)
        *(uint32_t *)events[i].data.ptr = events[i].events;
    if (proxy->wake_seen)
        (void)!read(proxy->wake, &rings, sizeof rings);
    proxy->wake_seen = 0;
}

/* Handles the noted events, backwards because forget() moves the last pair into the gap. */
static void work(struct proxy *proxy)
{
    int64_t now_us = monotonic_us();
    for (size_t i = proxy->count; i-- > 0;) {
        struct pair *pair = proxy->pairs[i];
        if ((pair->seen[TO_SERVER] & EPOLLOUT) && !(pair->seen[TO_SERVER] & (EPOLLERR | EPOLLHUP)))
            pair->connected = true;
        if (!move(proxy, pair, TO_SERVER, now_us) || !move(proxy, pair, TO_CLIENT, now_us)) {
            forget(proxy, i, true);
            continue;
        }
        pair->seen[TO_SERVER] = pair->seen[TO_CLIENT] = 0;
        if (pair->flows[0].told && pair->flows[1].told)
            forget(proxy, i, false);
    }
}

static void *run_proxy(void *context)
{
    struct proxy *proxy = context;
    pthread_mutex_lock(&proxy->mutex);
    while (!proxy->closing) {
        while (proxy->cutting && proxy->count > 0)
            forget(proxy, proxy->count - 1, true);
        proxy->cutting = false;
        int timeout_ms = prepare(proxy);
        pthread_mutex_unlock(&proxy->mutex);
        await(proxy, timeout_ms);
        pthread_mutex_lock(&proxy->mutex);
        if (proxy->cutting)
            continue; /* before anything else is forwarded */
        work(proxy);
        if (proxy->listener_seen)
            accept_one(proxy);
        proxy->listener_seen = 0;
    }
    while (proxy->count > 0)
        forget(proxy, proxy->count - 1, true);
    pthread_mutex_unlock(&proxy->mutex);
    return NULL;
}

/* ---- the calls ----------------------------------------------------------------------------------------- */

static bool listen_somewhere(struct proxy *proxy)
{
    struct sockaddr_in at = loopback(0);
    socklen_t size = sizeof at;
    proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (proxy->listener < 0 || bind(proxy->listener, (struct sockaddr *)&at, size) != 0 ||
        listen(proxy->listener, LISTEN_BACKLOG) != 0 ||
        getsockname(proxy->listener, (struct sockaddr *)&at, &size) != 0)
        return false;
    proxy->port = ntohs(at.sin_port);
    return true;
}

/* Opens the eventfd and the epoll, and watches the two descriptors that stay. */
static bool watch_own(struct proxy *proxy)
{
    struct epoll_event wake = {.events = EPOLLIN, .data.ptr = &proxy->wake_seen};
    struct epoll_event listener = {.events = EPOLLIN, .data.ptr = &proxy->listener_seen};
    proxy->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    proxy->epoll = epoll_create1(EPOLL_CLOEXEC);
    return proxy->wake >= 0 && proxy->epoll >= 0 &&
           epoll_ctl(proxy->epoll, EPOLL_CTL_ADD, proxy->wake, &wake) == 0 &&
           epoll_ctl(proxy->epoll, EPOLL_CTL_ADD, proxy->listener, &listener) == 0;
}

static void close_own(struct proxy *proxy)
{
    const int fds[] = {proxy->wake, proxy->listener, proxy->epoll};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    free(proxy);
}

struct proxy *proxy_open(int port)
{
    struct proxy *proxy = calloc(1, sizeof *proxy);
    if (!proxy)
        return NULL;
    proxy->listener = proxy->wake = proxy->epoll = -1;
    atomic_init(&proxy->target, port);
    proxy->mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    if (listen_somewhere(proxy) && watch_own(proxy) &&
        pthread_create(&proxy->thread, NULL, run_proxy, proxy) == 0)
        return proxy;
    close_own(proxy);
    return NULL;
}

static void wake(struct proxy *proxy)
{
    (void)!write(proxy->wake, &(uint64_t){1}, sizeof(uint64_t));
}

void proxy_aim(struct proxy *proxy, int port)
{
    atomic_store(&proxy->target, port);
}

int proxy_port(const struct proxy *proxy)
{
    return proxy->port;
}

void proxy_set(struct proxy *proxy, const struct proxy_rules *rules)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->rules = *rules;
    proxy->rules.lose_reply_to = NULL;
    proxy->trigger_length = 0;
    if (rules->lose_reply_to) {
        snprintf(proxy->trigger + 1, sizeof proxy->trigger - 1, "%s", rules->lose_reply_to);
        proxy->trigger_length = strlen(proxy->trigger + 1) + 2;
    }
    proxy->passed[TO_SERVER] = proxy->passed[TO_CLIENT] = 0;
    pthread_mutex_unlock(&proxy->mutex);
    wake(proxy);
}

/* Is there data that the stall rule keeps from the other side? */
static bool holds_back(const struct proxy *proxy, const struct pair *pair, enum direction direction)
{
    int unread = 0;
    return proxy->rules.stall[direction] &&
           (pair->flows[direction].length > 0 ||
            (ioctl(pair->ends[!direction], FIONREAD, &unread) == 0 && unread > 0));
}

void proxy_cut(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    for (size_t i = 0; i < proxy->count; i++)
        atomic_fetch_add(&proxy->acted, holds_back(proxy, proxy->pairs[i], TO_SERVER) ||
                                            holds_back(proxy, proxy->pairs[i], TO_CLIENT));
    proxy->cutting = true;
    pthread_mutex_unlock(&proxy->mutex);
    wake(proxy);
}

bool proxy_carries(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    bool carries = proxy->count > 0;
    pthread_mutex_unlock(&proxy->mutex);
    return carries;
}

int64_t proxy_acted(const struct proxy *proxy)
{
    return atomic_load(&proxy->acted);
}

void proxy_close(struct proxy *proxy)
{
    if (!proxy)
        return;
    pthread_mutex_lock(&proxy->mutex);
    proxy->closing = true;
    pthread_mutex_unlock(&proxy->mutex);
    wake(proxy);
    (void)pthread_join(proxy->thread, NULL);
    close_own(proxy);
}
