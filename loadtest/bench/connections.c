/* Places orders over many connections at once, to measure the service's memory and the latency of its answers. */
#include "loadtest/bench/connections.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/cli/options.h"
#include "loadtest/process/usage.h"
#include "loadtest/stats/hdr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE_S 120
#define SPARE_FILES 64
#define WARM_UP_ORDERS 5 /* over each connection, before latencies count */
#define LOOK_MS 100      /* for an interrupt */

struct connections {
    int64_t count;
    int *sockets;      /* -1: not open */
    char request[320]; /* an order */
    int length;
};

static bool failed(const char *what)
{
    if (!interrupted())
        complain("%s: %s", what, strerror(errno));
    return false;
}

static bool may_open(int64_t files)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return failed("file descriptors");
    limit.rlim_cur = limit.rlim_max;
    if (limit.rlim_max < (rlim_t)(files + SPARE_FILES) || setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        errno = EMFILE;
        return failed("too few file descriptors (ulimit -n)");
    }
    return true;
}

static bool connect_all(const char *url, struct connections *connections)
{
    const char *colon = strrchr(url, ':');
    int64_t port;
    if (!colon || !parse_number(colon + 1, &port))
        return false;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = PATIENCE_S};
    for (int64_t i = 0; i < connections->count; i++) {
        int fd = connections->sockets[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0 ||
            setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0 ||
            connect(fd, (const struct sockaddr *)&address, sizeof address) != 0)
            return failed("cannot connect");
    }
    return true;
}

static void connections_close(struct connections *connections)
{
    for (int64_t i = 0; i < connections->count && connections->sockets; i++)
        if (connections->sockets[i] >= 0)
            close(connections->sockets[i]);
    free(connections->sockets);
}

/* Connects them to the service, for orders of the product. False, having said why on stderr: call connections_close too. */
static bool connections_open(const char *url, int64_t product, int64_t count, struct connections *ret)
{
    char body[80];
    int body_length = snprintf(body, sizeof body, "{\"product_id\":%" PRId64 ",\"quantity\":1}", product);
    *ret = (struct connections){.count = count, .sockets = malloc((size_t)count * sizeof *ret->sockets)};
    ret->length = snprintf(ret->request, sizeof ret->request,
                           "POST /orders HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                           "Content-Length: %d\r\n\r\n%s",
                           body_length, body);
    if (!ret->sockets)
        return failed("memory");
    for (int64_t i = 0; i < count; i++)
        ret->sockets[i] = -1;
    return may_open(count) && connect_all(url, ret);
}

static bool send_order(const struct connections *connections, int64_t i)
{
    return send(connections->sockets[i], connections->request, (size_t)connections->length, MSG_NOSIGNAL) ==
               connections->length ||
           failed("cannot send");
}

/* Reads one reply to its end; it must be 201. */
static bool read_reply(int socket)
{
    char reply[4096];
    size_t length = 0;
    for (;;) {
        ssize_t got = recv(socket, reply + length, sizeof reply - 1 - length, 0);
        if (got <= 0)
            return failed("no reply");
        length += (size_t)got;
        reply[length] = 0;
        const char *end = strstr(reply, "\r\n\r\n");
        const char *size = strcasestr(reply, "\r\nContent-Length:");
        if (end && (!size || size > end || strncmp(reply, "HTTP/1.1 201", 12) != 0)) {
            complain("unexpected reply to an order: %.*s", (int)strcspn(reply, "\r"), reply);
            return false;
        }
        if (end &&
            (size_t)(end + 4 - reply) + strtoul(size + strlen("\r\nContent-Length:"), NULL, 10) <= length)
            return true;
        if (length == sizeof reply - 1) {
            errno = EMSGSIZE;
            return failed("an order's reply");
        }
    }
}

static bool order_on_all(const struct connections *connections, int64_t orders)
{
    for (; orders > 0; orders--) {
        for (int64_t i = 0; i < connections->count; i++)
            if (!send_order(connections, i))
                return false;
        for (int64_t i = 0; i < connections->count; i++)
            if (interrupted() || !read_reply(connections->sockets[i]))
                return false;
    }
    return true;
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

bool memory_with_connections(const char *url, pid_t pid, int64_t product, int64_t connections, int64_t orders,
                             double *ret_mib)
{
    struct connections all;
    int64_t resident = 0;
    bool well = connections_open(url, product, connections, &all) && order_on_all(&all, orders) &&
                process_memory(pid, "VmRSS", &resident);
    *ret_mib = (double)resident / (1 << 20);
    connections_close(&all);
    return well;
}

/* ---- latency --------------------------------------------------------------------------------------------------- */

/* Reads one answer from each connection that has one, and sends its next order until END_US. UNDER_WAY: orders without an answer. */
static bool take_answers(const struct connections *all, struct pollfd *waits, int64_t *sent_us,
                         int64_t end_us, struct hdr *hdr, int64_t *under_way)
{
    for (int64_t i = 0; i < all->count; i++) {
        if (waits[i].revents == 0)
            continue;
        if (!read_reply(all->sockets[i]))
            return false;
        int64_t now = monotonic_us();
        hdr_add(hdr, now - sent_us[i]);
        sent_us[i] = now;
        if (now >= end_us) {
            waits[i].fd = -1;
            --*under_way;
        } else if (!send_order(all, i)) {
            return false;
        }
    }
    return true;
}

/* WAITS and SENT have a place for each connection. */
static bool order_in_a_loop(const struct connections *all, int64_t ms, struct pollfd *waits, int64_t *sent_us,
                            struct hdr *hdr)
{
    int64_t begun_us = monotonic_us(), heard_us = begun_us, under_way = all->count;
    for (int64_t i = 0; i < all->count; i++) {
        waits[i] = (struct pollfd){.fd = all->sockets[i], .events = POLLIN};
        sent_us[i] = monotonic_us();
        if (!send_order(all, i))
            return false;
    }
    while (under_way > 0) {
        int ready = poll(waits, (nfds_t)all->count, LOOK_MS);
        if (interrupted() || (ready < 0 && errno != EINTR))
            return failed("cannot wait for answers");
        if (ready > 0) {
            heard_us = monotonic_us();
            if (!take_answers(all, waits, sent_us, begun_us + ms * 1000, hdr, &under_way))
                return false;
        } else if (monotonic_us() - heard_us > (int64_t)PATIENCE_S * 1000000) {
            errno = ETIMEDOUT;
            return failed("no reply");
        }
    }
    return true;
}

bool latencies_with_connections(const char *url, int64_t product, int64_t connections, int64_t ms,
                                struct latencies *ret_latencies)
{
    struct connections all;
    struct hdr *hdr = calloc(1, sizeof *hdr);
    struct pollfd *waits = calloc((size_t)connections, sizeof *waits);
    int64_t *sent_us = calloc((size_t)connections, sizeof *sent_us);
    bool well = connections_open(url, product, connections, &all) &&
                ((hdr && waits && sent_us) || failed("memory")) && order_on_all(&all, WARM_UP_ORDERS) &&
                order_in_a_loop(&all, ms, waits, sent_us, hdr);
    if (well)
        *ret_latencies = (struct latencies){.median_ms = (double)hdr_percentile(hdr, 0.5) / 1e3,
                                            .p99_ms = (double)hdr_percentile(hdr, 0.99) / 1e3,
                                            .orders = hdr->count + WARM_UP_ORDERS * connections};
    connections_close(&all);
    free(sent_us);
    free(waits);
    free(hdr);
    return well;
}
