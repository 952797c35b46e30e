/* Listens for the service's connections to one server, and connects to that server. */
#include "loadtest/own/gate/front.h"

#include "loadtest/cli/complain.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { CONNECT_S = 10 };

/* ---- opening and closing ------------------------------------------------------------------------------------------------ */

/* HOST is a name, an address, or the folder of a socket. */
static bool find_server(struct front *front, const char *host, const char *port)
{
    const char *name = front->protocol->server;
    if (host[0] == '/' && front->protocol->socket) {
        struct sockaddr_un *path = &front->socket;
        path->sun_family = AF_UNIX;
        if (snprintf(path->sun_path, sizeof path->sun_path, "%s/%s%s", host, front->protocol->socket, port) <
            (int)sizeof path->sun_path)
            return true;
        complain("the path of %s's socket is too long: %s", name, host);
        return false;
    }
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    int error = getaddrinfo(host, port, &hints, &front->addresses);
    if (error == 0)
        return true;
    front->addresses = NULL;
    complain("%s's address %s cannot be found: %s", name, host, gai_strerror(error));
    return false;
}

static bool listen_on_loopback(struct front *front)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    front->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool listens = front->listener >= 0 && bind(front->listener, (struct sockaddr *)&address, size) == 0 &&
                   listen(front->listener, GATE_CONNECTIONS) == 0 &&
                   getsockname(front->listener, (struct sockaddr *)&address, &size) == 0;
    front->port = ntohs(address.sin_port);
    if (!listens)
        complain("the gate in front of %s cannot be opened: %s", front->protocol->server, strerror(errno));
    return listens;
}

bool front_open(struct front *front, const struct gate_server *server)
{
    *front = (struct front){.protocol = server->protocol, .listener = -1};
    return find_server(front, server->host, server->port) && listen_on_loopback(front);
}

void front_close(struct front *front)
{
    if (front->listener >= 0)
        close(front->listener);
    if (front->addresses)
        freeaddrinfo(front->addresses);
    front->listener = -1;
    front->addresses = NULL;
}

/* ---- connections -------------------------------------------------------------------------------------------------------- */

/* Sockets of a folder have no TCP_NODELAY. */
static bool set_limits(int connection)
{
    const struct timeval limit = {.tv_sec = CONNECT_S};
    int one = 1;
    (void)setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0;
}

int front_accept(const struct front *front)
{
    int client = accept4(front->listener, NULL, NULL, SOCK_CLOEXEC);
    if (client >= 0 && !set_limits(client)) {
        close(client);
        return -1;
    }
    return client;
}

/* A connected socket; -1 with errno. Only the connecting can block. */
static int connect_to(int family, const void *address, socklen_t size)
{
    int connected = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connected >= 0 && set_limits(connected) && connect(connected, address, size) == 0)
        return connected;
    int error = errno;
    if (connected >= 0)
        close(connected);
    errno = error;
    return -1;
}

/* As the service's own driver would, it tries one address after the other: localhost may be ::1 and 127.0.0.1. */
int front_connect(struct front *front)
{
    int connected = -1;
    if (!front->addresses)
        connected = connect_to(AF_UNIX, &front->socket, sizeof front->socket);
    for (const struct addrinfo *at = front->addresses; at && connected < 0; at = at->ai_next)
        connected = connect_to(at->ai_family, at->ai_addr, at->ai_addrlen);
    if (connected < 0)
        (void)snprintf(front->problem, sizeof front->problem, "the gate cannot connect to %s: %s",
                       front->protocol->server, strerror(errno));
    return connected;
}

void front_turn_away(const struct front *front, int client)
{
    char bytes[4096];
    (void)recv(client, bytes, sizeof bytes,
               MSG_DONTWAIT); /* what has come, since closing would otherwise reset */
    (void)send(client, front->protocol->too_many.bytes, front->protocol->too_many.length,
               MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)shutdown(client, SHUT_WR);
    (void)recv(client, bytes, sizeof bytes, MSG_DONTWAIT);
    close(client);
}
