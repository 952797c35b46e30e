/* A TCP relay on loopback that breaks connections in the ways in which networks do. */
#include "loadtest/fault_proxy.h"

#include "service/steps.h"

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
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PAIRS_MAX = 2048, BUFFER = 16384, TRIGGER_MAX = 64, LISTEN_BACKLOG = 512 };

/* What one side has sent and the other has not been given yet. Nothing more is read before it has. */
struct flow {
    int64_t due_us;
    size_t from, length;
    bool ended; /* the sender has closed its side */
    bool told;  /* and so has the other been told */
    char data[BUFFER];
};

struct pair {
    int ends[2];    /* the server's, the client's: ends[d] is where direction d leads */
    bool connected; /* to the server */
    bool loses_reply;
    struct flow flows[2]; /* by direction */
};

struct proxy {
    int listener, port;
    atomic_int target;
    int wake; /* an eventfd */
    pthread_t thread;
    pthread_mutex_t mutex; /* over what follows */
    bool closing, cutting;
    struct proxy_rules rules;
    char trigger[TRIGGER_MAX];
    int64_t passed[2]; /* bytes under these rules */
    atomic_llong acted;
    /* the thread's own */
    size_t count;
    struct pair *pairs[PAIRS_MAX];
    struct pollfd polled[2 + 2 * PAIRS_MAX];
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

/* With a reset, as a host does that knows nothing of the connection. */
static void reset(int fd)
{
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1}, sizeof(struct linger));
    close(fd);
}

static void drop(struct proxy *proxy, size_t i)
{
    reset(proxy->pairs[i]->ends[TO_SERVER]);
    reset(proxy->pairs[i]->ends[TO_CLIENT]);
    free(proxy->pairs[i]);
    proxy->pairs[i] = proxy->pairs[--proxy->count];
}

/* A connection that both sides have ended as they should. */
static void finish(struct proxy *proxy, size_t i)
{
    close(proxy->pairs[i]->ends[TO_SERVER]);
    close(proxy->pairs[i]->ends[TO_CLIENT]);
    free(proxy->pairs[i]);
    proxy->pairs[i] = proxy->pairs[--proxy->count];
}

static void accept_one(struct proxy *proxy, bool refuse)
{
    int client = accept4(proxy->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client < 0)
        return;
    struct sockaddr_in to = loopback(atomic_load(&proxy->target));
    struct pair *pair = refuse || proxy->count == PAIRS_MAX ? NULL : calloc(1, sizeof *pair);
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

/* ---- passing on ---------------------------------------------------------------------------------------- */

/* Of LENGTH bytes those that may still be passed on before the connection is cut; *ret_cut: it is cut after them. */
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

/* Reads what one side has sent. False: the connection is to be dropped. */
static bool take_in(struct proxy *proxy, struct pair *pair, enum direction direction)
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
    if (direction == TO_SERVER && proxy->trigger[0] &&
        memmem(flow->data, (size_t)got, proxy->trigger, strlen(proxy->trigger))) {
        proxy->trigger[0] = 0; /* once */
        pair->loses_reply = true;
    }
    flow->from = 0;
    flow->length = (size_t)got;
    flow->due_us = monotonic_us() + proxy->rules.delay_ms * 1000;
    return true;
}

/* Passes on what may be passed on now. False: the connection is to be dropped. */
static bool give_out(struct proxy *proxy, struct pair *pair, enum direction direction)
{
    struct flow *flow = &pair->flows[direction];
    size_t length = flow->length;
    bool cut;
    if (proxy->rules.piece > 0 && length > (size_t)proxy->rules.piece)
        length = (size_t)proxy->rules.piece;
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
static bool move(struct proxy *proxy, struct pair *pair, enum direction direction, short readable,
                 short writable)
{
    struct flow *flow = &pair->flows[direction];
    if (direction == TO_SERVER && (writable & (POLLERR | POLLHUP)) && !pair->connected)
        return false;
    if (flow->length == 0 && !flow->ended && (readable & (POLLIN | POLLHUP | POLLERR)) &&
        !take_in(proxy, pair, direction))
        return false;
    if (!may_go(proxy, flow, direction, monotonic_us()))
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

/* What to wait for at one end: more from it, where what it sent before has gone, and room for what leads there. */
static short events_at(const struct proxy *proxy, const struct pair *pair, enum direction leads,
                       int64_t now_us, int *timeout_ms)
{
    const struct flow *out = &pair->flows[leads], *in = &pair->flows[!leads];
    short events = 0;
    if (leads == TO_SERVER && !pair->connected)
        events |= POLLOUT;
    if (in->length == 0 && !in->ended && !proxy->rules.stall[!leads])
        events |= POLLIN;
    if (out->length > 0 && !proxy->rules.stall[leads]) {
        int64_t ms = (out->due_us - now_us + 999) / 1000;
        if (ms <= 0)
            events |= POLLOUT;
        else if (ms < *timeout_ms)
            *timeout_ms = (int)ms;
    }
    return events;
}

static int prepare(struct proxy *proxy)
{
    int timeout_ms = 1000;
    int64_t now_us = monotonic_us();
    proxy->polled[0] = (struct pollfd){.fd = proxy->wake, .events = POLLIN};
    proxy->polled[1] = (struct pollfd){.fd = proxy->listener, .events = POLLIN};
    for (size_t i = 0; i < proxy->count; i++)
        for (int d = 0; d < 2; d++) {
            struct pair *pair = proxy->pairs[i];
            short events = events_at(proxy, pair, (enum direction)d, now_us, &timeout_ms);
            /* An end of which nothing is wanted would report its hang-up again and again. */
            proxy->polled[2 + 2 * i + (size_t)d] = (struct pollfd){.fd = events ? pair->ends[d] : -1,
                                                                   .events = events};
        }
    return timeout_ms;
}

/* Backwards, since whoever is dropped makes room for the last. */
static void work(struct proxy *proxy, size_t polled)
{
    for (size_t i = polled; i-- > 0;) {
        struct pair *pair = proxy->pairs[i];
        short server = proxy->polled[2 + 2 * i + TO_SERVER].revents;
        short client = proxy->polled[2 + 2 * i + TO_CLIENT].revents;
        if ((server & POLLOUT) && !(server & (POLLERR | POLLHUP)))
            pair->connected = true;
        if (!move(proxy, pair, TO_SERVER, client, server) || !move(proxy, pair, TO_CLIENT, server, client))
            drop(proxy, i);
        else if (pair->flows[0].told && pair->flows[1].told)
            finish(proxy, i);
    }
}

static void *run_proxy(void *context)
{
    struct proxy *proxy = context;
    pthread_mutex_lock(&proxy->mutex);
    while (!proxy->closing) {
        while (proxy->cutting && proxy->count > 0)
            drop(proxy, proxy->count - 1);
        proxy->cutting = false;
        size_t polled = proxy->count;
        int timeout_ms = prepare(proxy);
        pthread_mutex_unlock(&proxy->mutex);
        int ready = poll(proxy->polled, 2 + 2 * polled, timeout_ms);
        uint64_t woken;
        if (ready > 0 && (proxy->polled[0].revents & POLLIN))
            (void)!read(proxy->wake, &woken, sizeof woken);
        pthread_mutex_lock(&proxy->mutex);
        if (ready < 0 || proxy->cutting)
            continue; /* by a signal: what revents say is of the time before; or all are to be reset first */
        work(proxy, polled);
        if (proxy->polled[1].revents & POLLIN)
            accept_one(proxy, proxy->rules.refuse);
    }
    while (proxy->count > 0)
        drop(proxy, proxy->count - 1);
    pthread_mutex_unlock(&proxy->mutex);
    return NULL;
}

/* ---- its calls ----------------------------------------------------------------------------------------- */

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

struct proxy *proxy_open(int port)
{
    struct proxy *proxy = calloc(1, sizeof *proxy);
    if (!proxy)
        return NULL;
    proxy->listener = -1;
    atomic_init(&proxy->target, port);
    proxy->mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    proxy->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (proxy->wake >= 0 && listen_somewhere(proxy) &&
        pthread_create(&proxy->thread, NULL, run_proxy, proxy) == 0)
        return proxy;
    if (proxy->wake >= 0)
        close(proxy->wake);
    if (proxy->listener >= 0)
        close(proxy->listener);
    free(proxy);
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
    snprintf(proxy->trigger, sizeof proxy->trigger, "%s", rules->lose_reply_to ? rules->lose_reply_to : "");
    proxy->passed[TO_SERVER] = proxy->passed[TO_CLIENT] = 0;
    pthread_mutex_unlock(&proxy->mutex);
    wake(proxy);
}

void proxy_cut(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->cutting = true;
    pthread_mutex_unlock(&proxy->mutex);
    wake(proxy);
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
    close(proxy->wake);
    close(proxy->listener);
    free(proxy);
}
