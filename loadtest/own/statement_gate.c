/* A proxy between a user's service and PostgreSQL that holds each statement until it is released. It reads the frontend/backend
 * protocol, version 3, as PostgreSQL's manual describes it. */
#include "loadtest/own/statement_gate.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    READ_SIZE = 16384,
    BUFFER_MAX = MESSAGE_MAX + READ_SIZE, /* of a message, and of what is held back */
    SEND_S = 10,
    SSL_REQUEST = 80877103,
    GSS_REQUEST = 80877104,
    CANCEL_REQUEST = 80877102,
};

struct buffer {
    char *bytes;
    size_t length, size;
};

struct link {
    struct gate_connection seen;
    int client, server;
    bool started;          /* the startup message has passed */
    bool released, closed; /* what the explorer wants */
    size_t unit;           /* bytes of the held unit */
    struct buffer in, out;
    struct prepared_statements prepared;
};

struct gate {
    struct sockaddr_storage server;
    socklen_t server_size;
    int listener, wake;
    unsigned listens;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    bool hold, ends;
    struct link *links[GATE_CONNECTIONS];
    struct gate_connection none;
};

/* ---- bytes -------------------------------------------------------------------------------------------------------- */

static bool receive(int from, struct buffer *buffer)
{
    if (buffer->size - buffer->length < READ_SIZE) {
        size_t size = buffer->size ? buffer->size * 2 : (size_t)2 * READ_SIZE;
        size = size < BUFFER_MAX ? size : BUFFER_MAX;
        char *bytes = size - buffer->length >= READ_SIZE ? realloc(buffer->bytes, size) : NULL;
        if (!bytes)
            return false;
        buffer->bytes = bytes;
        buffer->size = size;
    }
    ssize_t count = recv(from, buffer->bytes + buffer->length, buffer->size - buffer->length, 0);
    if (count > 0)
        buffer->length += (size_t)count;
    return count > 0 || (count < 0 && errno == EINTR);
}

/* Forwards the first LENGTH bytes. The socket blocks for SEND_S at most. */
static bool forward(int to, struct buffer *buffer, size_t length)
{
    for (size_t sent = 0; sent < length;) {
        ssize_t count = send(to, buffer->bytes + sent, length - sent, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        sent += (size_t)count;
    }
    if (length > 0)
        memmove(buffer->bytes, buffer->bytes + length, buffer->length - length);
    buffer->length -= length;
    return true;
}

/* ---- from the service -------------------------------------------------------------------------------------------------- */

/* The startup messages have no type. False: the connection must be closed. */
static bool pass_startup(struct link *link)
{
    while (!link->started && link->in.length >= 8) {
        uint32_t length = message_number(link->in.bytes), code = message_number(link->in.bytes + 4);
        if (length < 8 || length > READ_SIZE)
            return false;
        if (link->in.length < length)
            return true;
        if (code == SSL_REQUEST || code == GSS_REQUEST) {
            memmove(link->in.bytes, link->in.bytes + length, link->in.length - length);
            link->in.length -= length;
            if (send(link->client, "N", 1, MSG_NOSIGNAL) != 1)
                return false;
            continue;
        }
        link->started = code != CANCEL_REQUEST;
        if (!forward(link->server, &link->in, length))
            return false;
    }
    return true;
}

static bool release(struct link *link)
{
    link->seen.held = link->released = false;
    link->seen.running = true;
    return forward(link->server, &link->in, link->unit);
}

static bool pass_from_client(struct gate *gate, struct link *link)
{
    if (!link->started && !pass_startup(link))
        return false;
    if (!link->started)
        return true;
    if (link->seen.starts)
        return forward(link->server, &link->in, link->in.length);
    for (;;) {
        if (link->seen.held || link->released) {
            if (!link->released && gate->hold)
                return true;
            if (!release(link))
                return false;
        }
        /* The data of COPY, and the end of the connection, belong to a statement that has passed. */
        size_t length = message_length(link->in.bytes, link->in.length);
        if (length > 0 && length != MESSAGE_WRONG && message_is(link->in.bytes, "dcfpX")) {
            if (!forward(link->server, &link->in, length))
                return false;
            continue;
        }
        link->unit = unit_length(link->in.bytes, link->in.length);
        if (link->unit == MESSAGE_WRONG)
            return false;
        if (link->unit == 0)
            return true;
        link->seen.trivial = describe_unit(&link->prepared, link->in.bytes, link->unit, link->seen.text);
        link->seen.held = true;
        gate_changed(gate);
    }
}

/* ---- from PostgreSQL -------------------------------------------------------------------------------------------------- */

static bool pass_from_server(struct gate *gate, struct link *link)
{
    size_t length;
    link->seen.has_answers = link->out.length > 0;
    while (!link->seen.keep_answers && (length = message_length(link->out.bytes, link->out.length)) > 0) {
        if (length == MESSAGE_WRONG)
            return false;
        const char *message = link->out.bytes;
        bool is_first = !link->seen.trivial && !*link->seen.answer;
        if (*message == 'K' && length >= MESSAGE_HEADER + 4)
            link->seen.pid = (int32_t)message_number(message + MESSAGE_HEADER);
        else if (*message == 'D' && is_first)
            describe_row(message, length, link->seen.answer);
        else if (*message == 'C' && is_first)
            describe_tag(message, length, link->seen.answer);
        else if (*message == 'E')
            link->seen.deadlock |= describe_error(message, length, link->seen.answer);
        if (*message == 'Z' && length > MESSAGE_HEADER) {
            link->seen.starts = link->seen.running = false;
            link->seen.transaction = message[MESSAGE_HEADER];
        }
        if (!forward(link->client, &link->out, length))
            return false;
        link->seen.has_answers = link->out.length > 0;
    }
    gate_changed(gate);
    return true;
}

/* ---- connections --------------------------------------------------------------------------------------------------------- */

/* Sockets of a folder have no TCP_NODELAY. */
static bool set_limits(int connection)
{
    const struct timeval limit = {.tv_sec = SEND_S};
    int one = 1;
    (void)setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0;
}

/* HOST is a name, an address, or the folder of a socket. False, having said why on stderr. */
static bool find_server(struct gate *gate, const char *host, const char *port)
{
    if (host[0] == '/') {
        struct sockaddr_un *path = (struct sockaddr_un *)&gate->server;
        path->sun_family = AF_UNIX;
        gate->server_size = sizeof *path;
        if (snprintf(path->sun_path, sizeof path->sun_path, "%s/.s.PGSQL.%s", host, port) <
            (int)sizeof path->sun_path)
            return true;
        complain("the path of PostgreSQL's socket is too long: %s", host);
        return false;
    }
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int error = getaddrinfo(host, port, &hints, &found);
    if (error != 0) {
        complain("PostgreSQL's address %s cannot be found: %s", host, gai_strerror(error));
        return false;
    }
    memcpy(&gate->server, found->ai_addr, found->ai_addrlen);
    gate->server_size = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

/* A connected socket; -1: none. It blocks for SEND_S at most, when it connects and when it sends. */
static int connect_server(const struct gate *gate)
{
    int connected = socket(gate->server.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connected < 0 || !set_limits(connected) ||
        connect(connected, (const struct sockaddr *)&gate->server, gate->server_size) != 0) {
        if (connected >= 0)
            close(connected);
        return -1;
    }
    return connected;
}

static void close_link(struct gate *gate, size_t i)
{
    struct link *link = gate->links[i];
    close(link->client);
    close(link->server);
    free(link->in.bytes);
    free(link->out.bytes);
    free(link);
    gate->links[i] = NULL;
    gate_changed(gate);
}

static void accept_link(struct gate *gate)
{
    int client = accept4(gate->listener, NULL, NULL, SOCK_CLOEXEC);
    size_t i = 0;
    if (client < 0)
        return;
    while (i < GATE_CONNECTIONS && gate->links[i])
        i++;
    struct link *link = i < GATE_CONNECTIONS ? calloc(1, sizeof *link) : NULL;
    int server = link && set_limits(client) ? connect_server(gate) : -1;
    if (server < 0) {
        close(client);
        free(link);
        return;
    }
    link->client = client;
    link->server = server;
    link->seen = (struct gate_connection){
        .used = true, .starts = true, .transaction = 'I', .owner = GATE_NO_OWNER};
    gate->links[i] = link;
}

static void serve(struct gate *gate, const struct pollfd *polled, const size_t *link_of, size_t count)
{
    for (size_t p = 2; p < count; p += 2) {
        struct link *link = gate->links[link_of[p]];
        bool well = !link->closed;
        if (well && polled[p].revents)
            well = receive(link->client, &link->in);
        if (well && polled[p + 1].revents)
            well = receive(link->server, &link->out);
        if (!well || !pass_from_client(gate, link) || !pass_from_server(gate, link))
            close_link(gate, link_of[p]);
    }
}

static void *run(void *context)
{
    struct gate *gate = context;
    struct pollfd polled[2 + 2 * GATE_CONNECTIONS];
    size_t link_of[2 + 2 * GATE_CONNECTIONS];
    gate_lock(gate);
    while (!gate->ends) {
        size_t count = 2;
        polled[0] = (struct pollfd){.fd = gate->wake, .events = POLLIN};
        polled[1] = (struct pollfd){.fd = gate->listener, .events = POLLIN};
        for (size_t i = 0; i < GATE_CONNECTIONS; i++) {
            if (!gate->links[i])
                continue;
            link_of[count] = link_of[count + 1] = i;
            polled[count++] = (struct pollfd){.fd = gate->links[i]->client, .events = POLLIN};
            polled[count++] = (struct pollfd){.fd = gate->links[i]->server, .events = POLLIN};
        }
        gate_unlock(gate);
        int ready = poll(polled, count, -1);
        gate_lock(gate);
        if (ready < 0)
            continue;
        uint64_t woken;
        if (polled[0].revents && read(gate->wake, &woken, sizeof woken) < 0)
            continue;
        serve(gate, polled, link_of, count);
        if (polled[1].revents)
            accept_link(gate);
    }
    gate_unlock(gate);
    return NULL;
}

/* ---- for the explorer ------------------------------------------------------------------------------------------------------ */

static void wake(struct gate *gate)
{
    const uint64_t one = 1;
    if (write(gate->wake, &one, sizeof one) < 0)
        complain("the gate cannot be woken: %s", strerror(errno));
}

static bool listen_on_loopback(struct gate *gate)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    gate->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    gate->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool listens = gate->wake >= 0 && gate->listener >= 0 &&
                   bind(gate->listener, (struct sockaddr *)&address, size) == 0 &&
                   listen(gate->listener, GATE_CONNECTIONS) == 0 &&
                   getsockname(gate->listener, (struct sockaddr *)&address, &size) == 0;
    gate->listens = ntohs(address.sin_port);
    return listens;
}

/* The thread does not run. */
static void free_gate(struct gate *gate)
{
    for (size_t i = 0; i < GATE_CONNECTIONS; i++)
        if (gate->links[i])
            close_link(gate, i);
    if (gate->wake >= 0)
        close(gate->wake);
    if (gate->listener >= 0)
        close(gate->listener);
    pthread_cond_destroy(&gate->condition);
    pthread_mutex_destroy(&gate->mutex);
    free(gate);
}

struct gate *gate_open(const char *host, const char *port)
{
    struct gate *gate = calloc(1, sizeof *gate);
    if (!gate) {
        complain("out of memory");
        return NULL;
    }
    gate->wake = gate->listener = -1;
    pthread_mutex_init(&gate->mutex, NULL);
    pthread_cond_init(&gate->condition, NULL);
    if (find_server(gate, host, port)) {
        if (listen_on_loopback(gate) && (errno = pthread_create(&gate->thread, NULL, run, gate)) == 0)
            return gate;
        complain("the gate in front of PostgreSQL cannot be opened: %s", strerror(errno));
    }
    free_gate(gate);
    return NULL;
}

void gate_close(struct gate *gate)
{
    if (!gate)
        return;
    gate_lock(gate);
    gate->ends = true;
    wake(gate);
    gate_unlock(gate);
    pthread_join(gate->thread, NULL);
    free_gate(gate);
}

unsigned gate_port(const struct gate *gate)
{
    return gate->listens;
}

void gate_lock(struct gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
}

void gate_unlock(struct gate *gate)
{
    pthread_mutex_unlock(&gate->mutex);
}

void gate_wait(struct gate *gate, int64_t until_us)
{
    (void)wait_until(&gate->condition, &gate->mutex, until_us);
}

void gate_changed(struct gate *gate)
{
    pthread_cond_broadcast(&gate->condition);
}

struct gate_connection *gate_connection(struct gate *gate, size_t i)
{
    return gate->links[i] ? &gate->links[i]->seen : &gate->none;
}

void gate_hold(struct gate *gate, bool hold)
{
    gate->hold = hold;
    for (size_t i = 0; i < GATE_CONNECTIONS && !hold; i++)
        gate_connection(gate, i)->keep_answers = false;
    wake(gate);
}

void gate_release(struct gate *gate, size_t i)
{
    if (gate->links[i] && gate->links[i]->seen.held) {
        gate->links[i]->released = true;
        gate->links[i]->seen.held = false;
        gate->links[i]->seen.running = true;
        wake(gate);
    }
}

void gate_release_answers(struct gate *gate, size_t i)
{
    gate_connection(gate, i)->keep_answers = false;
    wake(gate);
}

void gate_cut(struct gate *gate)
{
    for (size_t i = 0; i < GATE_CONNECTIONS; i++)
        if (gate->links[i])
            gate->links[i]->closed = true;
    wake(gate);
}
