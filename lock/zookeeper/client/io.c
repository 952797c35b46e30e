/* The connection with ZooKeeper: the library's handle, and a thread, the pump, that waits for what the server says.
 *
 * The library is the one without threads. Who asks for something sends it with his own thread; what comes is read by the
 * pump, which calls the callbacks: one switch of threads for an answer, where libzookeeper_mt takes three. One mutex
 * guards the handle; it is held whenever the library is called, and so in callbacks too.
 *
 * Where there are several servers, one that is silent is left for the next, and the session goes along. */
#include "base/clock.h"
#include "lock/zookeeper/client/session_impl.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CONNECT_MS = 500, /* what the first of several servers has to take us */
    WANT_MS = 50,     /* before another try where there was no descriptor or no memory for one */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;

static struct {
    zhandle_t *handle;
    unsigned number;     /* of the handle: the next one may lie at the same address */
    int fd;              /* of the connection; -1 for none */
    int64_t begun_us;    /* the connection, and … */
    int64_t patience_ms; /* … how long its server has to take us, if there are others */
    int64_t heard_us;    /* when it last said something */
    bool pump_runs;
    int wake_fd; /* ends the pump's sleep */
} io;

int zookeeper_servers(void)
{
    int count = 1;
    for (const char *c = lock_config.zookeeper_connect; *c && *c != '/'; c++)
        count += *c == ',';
    return count;
}

static bool is_connected(void)
{
    return zoo_state(io.handle) == ZOO_CONNECTED_STATE;
}

/* The library takes it as a connection that breaks, and turns to the next server. */
static void leave_server(void)
{
    (void)shutdown(io.fd, SHUT_RDWR);
}

/* ---- the pump: with the mutex held, but for where it sleeps --------------------------------------------------- */

/* Lets the library connect, if need be, and say what it waits for and for how long. ZOK, or its code. */
static int ask_library(struct pollfd *ret_wanted, int64_t *ret_left_ms)
{
    int fd = -1;
    int wanted = 0;
    struct timeval left = {0};
    int state = zoo_state(io.handle);
    if (state != ZOO_CONNECTED_STATE && state != ZOO_CONNECTING_STATE && state != ZOO_ASSOCIATING_STATE)
        io.fd = -1; /* the library has closed it; the next may get the same number */
    int code = zookeeper_interest(io.handle, &fd, &wanted, &left);
    if (code != ZOK)
        fd = -1;
    if (io.fd < 0)
        io.begun_us = io.heard_us = monotonic_us();
    io.fd = fd;
    int events = (wanted & ZOOKEEPER_READ ? POLLIN : 0) | (wanted & ZOOKEEPER_WRITE ? POLLOUT : 0);
    *ret_wanted = (struct pollfd){.fd = fd, .events = (short)events};
    *ret_left_ms = left.tv_sec * 1000 + (left.tv_usec + 999) / 1000;
    return code;
}

/* How much longer to wait for a server to take us: after one that did not, the next gets twice the time. */
static int64_t connecting_left_ms(void)
{
    if (is_connected())
        io.patience_ms = CONNECT_MS;
    if (is_connected() || io.fd < 0 || zookeeper_servers() == 1)
        return INT64_MAX;
    int64_t left_ms = (io.begun_us - monotonic_us()) / 1000 + io.patience_ms;
    if (left_ms > 0)
        return left_ms;
    leave_server();
    io.patience_ms *= 2;
    return 0;
}

/* For how many milliseconds; -1: until woken. */
static int sleep_until(struct pollfd *ret_wanted)
{
    int64_t left_ms;
    int code = ask_library(ret_wanted, &left_ms);
    if (code == ZINVALIDSTATE)
        return -1; /* the session has ended: for this handle there is nothing more to do */
    if (code == ZSYSTEMERROR && left_ms < WANT_MS)
        left_ms = WANT_MS;
    int64_t connecting_ms = connecting_left_ms();
    return (int)(left_ms < connecting_ms ? left_ms : connecting_ms);
}

static void process(int came)
{
    int events = (came & (POLLIN | POLLERR | POLLHUP) ? ZOOKEEPER_READ : 0) |
                 (came & (POLLOUT | POLLERR | POLLHUP) ? ZOOKEEPER_WRITE : 0);
    if (events && zookeeper_process(io.handle, events) == ZOK && events & ZOOKEEPER_READ)
        io.heard_us = monotonic_us();
}

static void *pump(void *unused)
{
    pthread_mutex_lock(&mutex);
    while (true) {
        while (!io.handle)
            pthread_cond_wait(&opened, &mutex);
        unsigned number = io.number;
        struct pollfd ends[2] = {{.fd = io.wake_fd, .events = POLLIN}};
        int sleep_ms = sleep_until(&ends[1]);
        pthread_mutex_unlock(&mutex);

        uint64_t woken;
        if (poll(ends, 2, sleep_ms) > 0 && ends[0].revents)
            (void)!read(io.wake_fd, &woken, sizeof woken);

        pthread_mutex_lock(&mutex);
        if (io.handle && io.number == number)
            process(ends[1].revents);
    }
    return unused;
}

static void wake_pump(void)
{
    uint64_t one = 1;
    (void)!write(io.wake_fd, &one, sizeof one); /* fails only where it is to be woken anyway */
}

static bool start_pump(void)
{
    pthread_t thread;
    if (io.pump_runs)
        return true;
    io.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (io.wake_fd < 0)
        return false;
    if (pthread_create(&thread, NULL, pump, NULL) != 0) {
        close(io.wake_fd);
        return false;
    }
    pthread_detach(thread);
    return io.pump_runs = true;
}

/* ---- the handle ----------------------------------------------------------------------------------------------- */

bool zookeeper_io_open(watcher_fn on_event, int lease_ms)
{
    zoo_set_debug_level(0); /* it would write to stderr; what went wrong is told in lock->error */
    zhandle_t *handle = zookeeper_init(lock_config.zookeeper_connect, on_event, lease_ms, NULL, NULL, 0);
    if (!handle)
        return false; /* a server's name is not known (yet) */
    /* Names are looked up when a connection is lost, and not, as otherwise, for every request. */
    (void)zoo_set_servers_resolution_delay(handle, -1);
    pthread_mutex_lock(&mutex);
    bool opens = start_pump();
    if (opens) {
        io.handle = handle;
        io.number++;
        io.fd = -1;
        io.patience_ms = CONNECT_MS;
        pthread_cond_signal(&opened);
    }
    pthread_mutex_unlock(&mutex);
    if (!opens)
        zookeeper_close(handle);
    return opens;
}

void zookeeper_io_close(void)
{
    pthread_mutex_lock(&mutex);
    zhandle_t *handle = io.handle;
    io.handle = NULL;
    wake_pump();
    pthread_mutex_unlock(&mutex);
    zookeeper_close(handle); /* which takes its time */
}

zhandle_t *zookeeper_io_lock(void)
{
    pthread_mutex_lock(&mutex);
    return io.handle;
}

void zookeeper_io_unlock(void)
{
    int fd;
    int wanted = 0;
    struct timeval left;
    if (io.handle && is_connected())
        (void)zookeeper_interest(io.handle, &fd, &wanted, &left);
    if (io.handle && (!is_connected() || wanted & ZOOKEEPER_WRITE))
        wake_pump(); /* the connection is no more, or could not take it all */
    pthread_mutex_unlock(&mutex);
}

void zookeeper_io_doubt(int64_t since_us)
{
    pthread_mutex_lock(&mutex);
    if (io.handle && is_connected() && io.heard_us < since_us && zookeeper_servers() > 1)
        leave_server();
    pthread_mutex_unlock(&mutex);
}
