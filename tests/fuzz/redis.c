/* A Redis server that may not be one, as the locks, the stock and the stream read its replies.
 *
 * The first byte chooses who asks; the rest is what the server says to one request after the other, with the byte 0xff
 * between, until it hangs up. What has not come when it is looked for does not come. */
#include "base/clock.h"
#include "tests/fuzz/fuzz.h"

#include "lock/redis/client/socket.h"
#include "lock/redis/client/wakeup.h"
#include "lock/registry.h"
#include "service/write_behind/redis_stock_impl.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FD_MAX = 1024 };
static struct fuzz_input replies;
static int server_fds[FD_MAX]; /* the other end of each connection, by its descriptor; 0: none */

/* ---- in the place of sockets, and of who wakes waiters ----------------------------------------------------- */

int redis_socket(const struct redis_url *url, int64_t until_us, const char **ret_error)
{
    int ends[2];
    (void)url;
    (void)until_us;
    *ret_error = "";
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    MUST(ends[0] > 0 && ends[0] < FD_MAX);
    if (server_fds[ends[0]]) /* of a connection that was closed and had this number */
        close(server_fds[ends[0]]);
    server_fds[ends[0]] = ends[1];
    return ends[0];
}

/* What is asked does not matter, but for the name of a script: it is kept for the life of a process, so each gets one at
 * once, without which a run would hang on those before it. */
bool redis_socket_send(int fd, const char *bytes, size_t size, int64_t until_us)
{
    static const char name[] = "$40\r\n0123456789012345678901234567890123456789\r\n";
    (void)until_us;
    const uint8_t *reply = (const uint8_t *)name;
    size_t length = sizeof name - 1;
    if (!memmem(bytes, size, "\r\nSCRIPT\r\n", 10))
        reply = fuzz_piece(&replies, 0xff, &length);
    if (length == 0)
        return shutdown(server_fds[fd], SHUT_WR) == 0;
    /* None is sent by a server that has hung up before. */
    return send(server_fds[fd], reply, length, MSG_NOSIGNAL) == (ssize_t)length;
}

/* Redlock waits for several by itself. */
/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the C library's are reserved */
int poll(struct pollfd *polled, nfds_t count, int timeout_ms)
{
    (void)timeout_ms;
    return ppoll(polled, count, &(struct timespec){0}, NULL);
}

bool redis_socket_wait(int fd, short events, int64_t until_us)
{
    struct pollfd polled = {.fd = fd, .events = events};
    (void)until_us;
    errno = ETIMEDOUT;
    return poll(&polled, 1, 0) > 0;
}

enum lock_status redis_wakeup_join(struct lock *lock, const char *url, size_t size, const char *channel,
                                   int64_t limit_ms, struct redis_waiter **ret_waiter)
{
    (void)lock;
    (void)url;
    (void)size;
    (void)channel;
    (void)limit_ms;
    *ret_waiter = NULL;
    return LOCK_OK;
}

bool redis_wakeup_wait(struct lock *lock, struct redis_waiter *waiter, int64_t until_us)
{
    (void)lock;
    (void)waiter;
    (void)until_us;
    return true;
}

bool redis_wakeup_wait_for_turn(struct lock *lock, struct redis_waiter *waiter,
                                const struct lock_grant *place, int64_t limit_ms, int64_t deadline_us)
{
    (void)lock;
    (void)waiter;
    (void)place;
    (void)limit_ms;
    return monotonic_us() < deadline_us;
}

void redis_wakeup_leave(struct redis_waiter *waiter, enum lock_status status)
{
    (void)waiter;
    (void)status;
}

/* ---- who asks ---------------------------------------------------------------------------------------------- */

static void use_lock(const struct lock_driver *driver)
{
    struct lock *lock = NULL;
    struct lock_grant grant;
    MUST(lock_open(driver, &lock) == LOCK_OK);
    lock->lease_ms = 1000;
    enum lock_status status = driver->acquire(lock, "product:1", 0, &grant);
    MUST(status != LOCK_LOST);
    if (status == LOCK_OK) {
        MUST(strcmp(grant.key, "product:1") == 0 && memchr(grant.token, '\0', sizeof grant.token));
        (void)driver->still_held(lock, &grant);
        if (driver->renew)
            (void)driver->renew(lock, &grant);
        if (driver->raise_fence)
            (void)driver->raise_fence(lock, "product:1", 7);
        (void)driver->release(lock, &grant);
    }
    lock_close(lock);
}

static void look_at(const struct stream_batch *batch)
{
    MUST(batch->count <= batch->entry_count && batch->entry_count <= WRITE_BATCH_MAX);
    for (size_t i = 0; i < batch->count; i++) {
        const struct accepted_order *order = &batch->orders[i];
        MUST(order->id > 0 && order->quantity > 0 && order->product_id >= 0);
        MUST(strlen(order->price) + strlen(order->accepted_at) + strlen(order->instance) < SIZE_MAX);
    }
}

static void use_stream(struct redis_stock *stock)
{
    static struct stream_batch batch;
    for (int part = STREAM_NEW; part <= STREAM_LEFT; part++) {
        batch = (struct stream_batch){0};
        if (redis_stream_read(stock, "fuzz", (enum stream_part)part, 1, &batch) == LOCK_OK) {
            look_at(&batch);
            (void)redis_stream_done(stock, &batch);
        }
        stream_release(&batch);
    }
    batch = (struct stream_batch){0};
    if (redis_stream_find(stock, 0, 1, &batch) == LOCK_OK)
        look_at(&batch);
    stream_release(&batch);
}

static void use_stock(struct redis_stock *stock)
{
    int64_t length;
    bool done;
    struct stock_order order[2] = {{.id = 1, .quantity = 1},
                                   {.id = 2, .quantity = 2, .idempotency_key = "key"}};
    struct stock_orders orders = {.shop = "shop",
                                  .product_id = 1,
                                  .instance = "fuzz",
                                  .accepted_at = "now",
                                  .orders = order,
                                  .count = 2};
    struct stock_survey survey = {0};
    if (redis_stock_take(stock, 0, &orders) == LOCK_OK && orders.state == STOCK_TAKEN)
        MUST(memchr(orders.price, '\0', sizeof orders.price) && orders.backlog >= 0);
    if (redis_stock_survey(stock, 0, 1, 1, "shop", false, &survey) == LOCK_OK) {
        MUST(memchr(survey.checked, '\0', sizeof survey.checked));
        (void)redis_stock_load(stock, 0, 1, 1, "1.00", &survey, 5, &done);
        survey_release(&survey);
    }
    (void)redis_stream_length(stock, &length);
    (void)redis_stream_sweep(stock, "fuzz", 1);
}

__attribute__((constructor)) static void set_up(void)
{
    lock_configure(
        &(struct lock_config){.database_url = "",
                              .redis_url = "redis://:secret@127.0.0.1:1/2",
                              .redlock_urls = "redis://127.0.0.1:1,redis://127.0.0.1:2,redis://127.0.0.1:3",
                              .zookeeper_connect = "",
                              .etcd_endpoints = "",
                              .prefix = "fuzz"});
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct lock_driver *const locks[] = {
        &redis_setnx_forever,   &redis_setnx,     &redis_setnx_repair, &redis_del,
        &redis_get_del,         &redis_lock,      &redis_fenced,       &redis_registry,
        &redis_registry_shared, &redis_reentrant, &redis_fair,         &redlock,
        &redisson_redlock};
    enum { LOCKS = sizeof locks / sizeof locks[0] };
    replies = (struct fuzz_input){data, size};
    uint8_t who = fuzz_byte(&replies) % (LOCKS + 2);
    if (who < LOCKS) {
        use_lock(locks[who]);
    } else {
        struct redis_stock *stock = redis_stock_new();
        MUST(stock);
        (who == LOCKS ? use_stream : use_stock)(stock);
        redis_stock_free(stock);
    }
    return 0;
}
