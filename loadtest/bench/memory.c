/* Measures the memory of a service while many clients stay connected. */
#include "loadtest/bench/memory.h"

#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/cli/options.h"
#include "loadtest/testbed/process.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE_S 120
#define SPARE_FILES 64

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

static bool connect_all(const char *url, int *sockets, int64_t count)
{
    const char *colon = strrchr(url, ':');
    int64_t port;
    if (!colon || !parse_number(colon + 1, &port))
        return false;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = PATIENCE_S};
    for (int64_t i = 0; i < count; i++) {
        sockets[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (sockets[i] < 0 ||
            setsockopt(sockets[i], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0 ||
            setsockopt(sockets[i], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0 ||
            connect(sockets[i], (const struct sockaddr *)&address, sizeof address) != 0)
            return failed("cannot connect");
    }
    return true;
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

static bool order_on_all(const int *sockets, int64_t count, int64_t product)
{
    char body[80], request[320];
    int body_length = snprintf(body, sizeof body, "{\"product_id\":%" PRId64 ",\"quantity\":1}", product);
    int length = snprintf(request, sizeof request,
                          "POST /orders HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                          "Content-Length: %d\r\n\r\n%s",
                          body_length, body);
    for (int64_t i = 0; i < count; i++)
        if (send(sockets[i], request, (size_t)length, MSG_NOSIGNAL) != length)
            return failed("cannot send");
    for (int64_t i = 0; i < count && !interrupted(); i++)
        if (!read_reply(sockets[i]))
            return false;
    return !interrupted();
}

bool memory_with_connections(const char *url, pid_t pid, int64_t product, int64_t connections, int64_t orders,
                             double *ret_mib)
{
    int *sockets = malloc((size_t)connections * sizeof *sockets);
    if (!sockets)
        return failed("memory");
    for (int64_t i = 0; i < connections; i++)
        sockets[i] = -1;
    bool well = may_open(connections) && connect_all(url, sockets, connections);
    for (int64_t i = 0; i < orders && well; i++)
        well = order_on_all(sockets, connections, product);
    int64_t resident = 0;
    well = well && process_memory(pid, "VmRSS", &resident);
    *ret_mib = (double)resident / (1 << 20);
    for (int64_t i = 0; i < connections; i++)
        if (sockets[i] >= 0)
            close(sockets[i]);
    free(sockets);
    return well;
}
