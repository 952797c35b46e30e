/* A socket to a Redis server: every wait ends at an absolute time. */
#include "lock/redis/client/socket.h"

#include "base/clock.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

bool redis_socket_wait(int fd, short events, int64_t until_us)
{
    while (true) {
        struct pollfd polled = {.fd = fd, .events = events};
        int64_t left_us = until_us - monotonic_us();
        int ready = poll(&polled, 1, left_us > 0 ? (int)((left_us + 999) / 1000) : 0);
        if (ready > 0)
            return true;
        if (ready < 0 && errno != EINTR)
            return false;
        if (ready == 0 && left_us <= 0) {
            errno = ETIMEDOUT;
            return false;
        }
    }
}

bool redis_socket_send(int fd, const char *bytes, size_t size, int64_t until_us)
{
    while (size > 0) {
        ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
        if (sent >= 0) {
            bytes += sent;
            size -= (size_t)sent;
        } else if (errno == EAGAIN) {
            if (!redis_socket_wait(fd, POLLOUT, until_us))
                return false;
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

/* The error of the connection that is being made on FD, once that is known. */
static int wait_until_connected(int fd, int64_t until_us)
{
    int error = 0;
    socklen_t length = sizeof error;
    if (!redis_socket_wait(fd, POLLOUT, until_us) ||
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
        return errno;
    return error;
}

/* Connected, or -1 with errno. */
static int connect_to(const struct sockaddr *address, socklen_t size, int64_t until_us)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    int error = connect(fd, address, size) == 0 ? 0 : errno;
    if (error == EINPROGRESS || error == EINTR)
        error = wait_until_connected(fd, until_us);
    if (!error)
        return fd;
    close(fd);
    errno = error;
    return -1;
}

static int connect_unix(const struct redis_url *url, int64_t until_us)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    _Static_assert(sizeof address.sun_path >= sizeof url->path, "a path that was read fits");
    memcpy(address.sun_path, url->path, sizeof url->path);
    return connect_to((const struct sockaddr *)&address, sizeof address, until_us);
}

static int connect_tcp(const struct addrinfo *all, int64_t until_us)
{
    int fd = -1, on = 1;
    for (const struct addrinfo *one = all; one && fd < 0; one = one->ai_next)
        fd = connect_to(one->ai_addr, one->ai_addrlen, until_us);
    if (fd >= 0) /* it can fail only where it does not matter */
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

int redis_socket(const struct redis_url *url, int64_t until_us, const char **ret_error)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *all = NULL;
    int fd;
    if (*url->path) {
        fd = connect_unix(url, until_us);
    } else {
        int error = getaddrinfo(url->host, url->port, &hints, &all);
        if (error) {
            *ret_error = gai_strerror(error);
            return -1;
        }
        fd = connect_tcp(all, until_us);
    }
    if (fd < 0)
        *ret_error = strerrordesc_np(errno);
    if (all)
        freeaddrinfo(all);
    return fd;
}
