/* A proxy between a user's service and PostgreSQL that holds each statement until it is released. It reads the frontend/backend
 * protocol, version 3, as PostgreSQL's manual describes it. */
#include "loadtest/own/statement_gate.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
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
    BUFFER_MAX = 8 * 1024 * 1024, /* of a message, and of what is held back */
    READ_SIZE = 16384,
    STATEMENTS_MAX = 64, /* prepared statements of a connection whose text is known */
    SEND_S = 10,
    HEADER = 5, /* type and length */
    SSL_REQUEST = 80877103,
    GSS_REQUEST = 80877104,
    CANCEL_REQUEST = 80877102,
};

struct buffer {
    char *bytes;
    size_t length, size;
};

struct prepared {
    char name[64], text[GATE_TEXT];
};

struct link {
    struct gate_connection seen;
    int client, server;
    bool started, ready;   /* the startup message has passed; the first ReadyForQuery has */
    bool released, closed; /* what the explorer wants */
    size_t unit;           /* bytes of the held unit */
    struct buffer in, out;
    struct prepared prepared[STATEMENTS_MAX];
    size_t prepared_count;
};

struct gate {
    char host[256], port[16];
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

static uint32_t number32(const char *bytes)
{
    uint32_t number;
    memcpy(&number, bytes, sizeof number);
    return ntohl(number);
}

static uint16_t number16(const char *bytes)
{
    uint16_t number;
    memcpy(&number, bytes, sizeof number);
    return ntohs(number);
}

static bool receive(int from, struct buffer *buffer)
{
    if (buffer->size - buffer->length < READ_SIZE) {
        size_t size = buffer->size ? buffer->size * 2 : (size_t)2 * READ_SIZE;
        char *bytes = size <= BUFFER_MAX ? realloc(buffer->bytes, size) : NULL;
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

/* The length of the message at OFFSET, with its type; 0: it is not complete. SIZE_MAX: it is no message. */
static size_t message_length(const struct buffer *buffer, size_t offset)
{
    if (buffer->length < offset + HEADER)
        return 0;
    uint32_t length = number32(buffer->bytes + offset + 1);
    if (length < 4 || length >= BUFFER_MAX)
        return SIZE_MAX;
    return buffer->length - offset < length + 1U ? 0 : length + 1U;
}

/* ---- texts ---------------------------------------------------------------------------------------------------------- */

/* Appends as much of the COUNT bytes as there is room for, on one line. */
static void append(char *text, const char *bytes, size_t count)
{
    size_t length = strlen(text);
    for (size_t i = 0; i < count && length + 1 < GATE_TEXT; i++) {
        bool space = strchr(" \t\r\n", bytes[i]) != NULL;
        if (space && (length == 0 || text[length - 1] == ' '))
            continue;
        text[length] = bytes[i];
        if (space)
            text[length] = ' ';
        length++;
    }
    text[length] = '\0';
}

/* The text that ends before END and begins at *AT, which moves behind it. */
static const char *take_text(const char **at, const char *end)
{
    const char *text = *at, *zero = memchr(text, '\0', (size_t)(end - text));
    *at = zero ? zero + 1 : end;
    return zero ? text : "";
}

static void remember_statement(struct link *link, const char *at, const char *end)
{
    const char *name = take_text(&at, end), *text = take_text(&at, end);
    size_t i = 0;
    while (i < link->prepared_count && strcmp(link->prepared[i].name, name) != 0)
        i++;
    if (i == STATEMENTS_MAX || strlen(name) >= sizeof link->prepared[i].name)
        return;
    link->prepared_count += i == link->prepared_count;
    snprintf(link->prepared[i].name, sizeof link->prepared[i].name, "%s", name);
    link->prepared[i].text[0] = '\0';
    append(link->prepared[i].text, text, strlen(text));
}

static void append_parameter(char *text, const char *bytes, uint32_t length, bool binary)
{
    char number[32];
    int64_t value = 0;
    if (!binary) {
        append(text, bytes, length);
        return;
    }
    for (uint32_t i = 0; i < length && length <= 8; i++)
        value = (int64_t)((uint64_t)value << 8 | (uint8_t)bytes[i]);
    if (length == 2)
        value = (int16_t)value;
    if (length == 4)
        value = (int32_t)value;
    snprintf(number, sizeof number, length <= 8 ? "%lld" : "(binary)", (long long)value);
    append(text, number, strlen(number));
}

/* A Bind message: the text of its statement, and the parameters. */
static void describe_bind(struct link *link, const char *at, const char *end)
{
    char *text = link->seen.text;
    (void)take_text(&at, end);
    const char *name = take_text(&at, end);
    size_t i = 0;
    while (i < link->prepared_count && strcmp(link->prepared[i].name, name) != 0)
        i++;
    const char *statement = i < link->prepared_count ? link->prepared[i].text : "(a prepared statement)";
    append(text, statement, strlen(statement));
    if (end - at < 2)
        return;
    uint16_t formats = number16(at);
    const char *format = at + 2;
    at += 2 + 2 * (size_t)formats;
    if (end - at < 2)
        return;
    uint16_t count = number16(at);
    at += 2;
    for (uint16_t parameter = 0; parameter < count && end - at >= 4; parameter++) {
        uint32_t length = number32(at);
        bool is_null = length == UINT32_MAX;
        at += 4;
        append(text, parameter ? ", " : " [", 2);
        if (is_null) {
            append(text, "NULL", 4);
            continue;
        }
        if (length > (size_t)(end - at))
            return;
        uint16_t which = formats == 1 ? 0 : parameter;
        append_parameter(text, at, length, which < formats && number16(format + 2 * (size_t)which) == 1);
        at += length;
    }
    if (count > 0)
        append(text, "]", 1);
}

static bool begins_with(const char *text, const char *word)
{
    return strncasecmp(text, word, strlen(word)) == 0;
}

/* A statement that neither reads nor writes rows, nor takes or releases a lock. */
static bool is_trivial(const char *text)
{
    static const char *const WORDS[] = {"BEGIN",       "START TRANSACTION", "SET ",  "SHOW ",
                                        "DEALLOCATE ", "DISCARD ",          "RESET "};
    if (strchr(text, ';') && strchr(text, ';')[1] != '\0')
        return false;
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (begins_with(text, WORDS[i]))
            return true;
    return *text == '\0';
}

/* ---- from the service -------------------------------------------------------------------------------------------------- */

/* The startup messages have no type. False: the connection must be closed. */
static bool pass_startup(struct link *link)
{
    while (!link->started && link->in.length >= 8) {
        uint32_t length = number32(link->in.bytes), code = number32(link->in.bytes + 4);
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

/* Finds the unit at the beginning of what has come: the messages up to Query, Sync or Flush. 0: not complete. */
static size_t find_unit(struct link *link)
{
    size_t offset = 0, length;
    while ((length = message_length(&link->in, offset)) > 0 && length != SIZE_MAX) {
        offset += length;
        if (strchr("QFSHX", link->in.bytes[offset - length]))
            return offset;
    }
    return length;
}

static void describe_unit(struct link *link)
{
    bool executes = false;
    link->seen.text[0] = '\0';
    for (size_t offset = 0; offset < link->unit;) {
        const char *message = link->in.bytes + offset, *at = message + HEADER;
        size_t length = message_length(&link->in, offset);
        const char *end = message + length;
        if (*message == 'Q')
            append(link->seen.text, at, strnlen(at, (size_t)(end - at)));
        else if (*message == 'P')
            remember_statement(link, at, end);
        else if (*message == 'B')
            describe_bind(link, at, end);
        executes |= *message == 'Q' || *message == 'E' || *message == 'F';
        offset += length;
    }
    link->seen.trivial = !executes || is_trivial(link->seen.text);
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
    if (!link->ready)
        return forward(link->server, &link->in, link->in.length);
    for (;;) {
        if (link->seen.held || link->released) {
            if (!link->released && gate->hold)
                return true;
            if (!release(link))
                return false;
        }
        /* The data of COPY, and the end of the connection, belong to a statement that has passed. */
        size_t length = message_length(&link->in, 0);
        if (length > 0 && length != SIZE_MAX && strchr("dcfpX", link->in.bytes[0])) {
            if (!forward(link->server, &link->in, length))
                return false;
            continue;
        }
        link->unit = find_unit(link);
        if (link->unit == SIZE_MAX)
            return false;
        if (link->unit == 0)
            return true;
        describe_unit(link);
        link->seen.held = true;
        gate_changed(gate);
    }
}

/* ---- from PostgreSQL -------------------------------------------------------------------------------------------------- */

static void describe_row(struct link *link, const char *at, const char *end)
{
    uint16_t count = end - at >= 2 ? number16(at) : 0;
    at += 2;
    for (uint16_t i = 0; i < count && end - at >= 4; i++) {
        uint32_t length = number32(at);
        at += 4;
        if (i > 0)
            append(link->seen.answer, ", ", 2);
        if (length == UINT32_MAX) {
            append(link->seen.answer, "NULL", 4);
            continue;
        }
        if (length > (size_t)(end - at))
            return;
        append(link->seen.answer, at, length);
        at += length;
    }
}

static void describe_error(struct link *link, const char *at, const char *end)
{
    while (at < end && *at) {
        char field = *at++;
        const char *text = take_text(&at, end);
        if (field == 'C' && strcmp(text, "40P01") == 0)
            link->seen.deadlock = true;
        if (field == 'M') {
            link->seen.answer[0] = '\0';
            append(link->seen.answer, "error: ", 7);
            append(link->seen.answer, text, strlen(text));
        }
    }
}

static bool pass_from_server(struct gate *gate, struct link *link)
{
    size_t length;
    link->seen.has_answers = link->out.length > 0;
    while (!link->seen.keep_answers && (length = message_length(&link->out, 0)) > 0) {
        if (length == SIZE_MAX)
            return false;
        const char *message = link->out.bytes, *at = message + HEADER, *end = message + length;
        char type = *message;
        if (type == 'K' && length >= HEADER + 4)
            link->seen.pid = (int32_t)number32(at);
        else if (type == 'D' && !link->seen.trivial && !*link->seen.answer)
            describe_row(link, at, end);
        else if (type == 'C' && !link->seen.trivial && !*link->seen.answer)
            append(link->seen.answer, at, strnlen(at, (size_t)(end - at)));
        else if (type == 'E')
            describe_error(link, at, end);
        if (type == 'Z') {
            link->ready = true;
            link->seen.running = false;
            link->seen.transaction = *at;
        }
        if (!forward(link->client, &link->out, length))
            return false;
        link->seen.has_answers = link->out.length > 0;
    }
    gate_changed(gate);
    return true;
}

/* ---- connections --------------------------------------------------------------------------------------------------------- */

static int connect_server(const struct gate *gate)
{
    const struct timeval limit = {.tv_sec = SEND_S};
    int one = 1, connected = -1;
    if (gate->host[0] == '/') {
        struct sockaddr_un path = {.sun_family = AF_UNIX};
        int length = snprintf(path.sun_path, sizeof path.sun_path, "%s/.s.PGSQL.%s", gate->host, gate->port);
        connected = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (length < (int)sizeof path.sun_path && connected >= 0 &&
            connect(connected, (struct sockaddr *)&path, sizeof path) == 0)
            return connected;
    } else {
        const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
        struct addrinfo *found = NULL;
        if (getaddrinfo(gate->host, gate->port, &hints, &found) != 0)
            return -1;
        connected = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bool is_open = connected >= 0 &&
                       setsockopt(connected, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0 &&
                       setsockopt(connected, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0 &&
                       connect(connected, found->ai_addr, found->ai_addrlen) == 0;
        freeaddrinfo(found);
        if (is_open)
            return connected;
    }
    if (connected >= 0)
        close(connected);
    return -1;
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
    const struct timeval limit = {.tv_sec = SEND_S};
    int one = 1, client = accept4(gate->listener, NULL, NULL, SOCK_CLOEXEC);
    size_t i = 0;
    if (client < 0)
        return;
    while (i < GATE_CONNECTIONS && gate->links[i])
        i++;
    struct link *link = i < GATE_CONNECTIONS ? calloc(1, sizeof *link) : NULL;
    int server = link && setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0 &&
                         setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0
                     ? connect_server(gate)
                     : -1;
    if (server < 0) {
        close(client);
        free(link);
        return;
    }
    link->client = client;
    link->server = server;
    link->seen = (struct gate_connection){.used = true, .transaction = 'I', .owner = GATE_NO_OWNER};
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

struct gate *gate_open(const char *host, const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    struct gate *gate = calloc(1, sizeof *gate);
    if (!gate) {
        complain("out of memory");
        return NULL;
    }
    snprintf(gate->host, sizeof gate->host, "%s", host);
    snprintf(gate->port, sizeof gate->port, "%s", port);
    pthread_mutex_init(&gate->mutex, NULL);
    pthread_cond_init(&gate->condition, NULL);
    gate->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    gate->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (gate->wake >= 0 && gate->listener >= 0 &&
        bind(gate->listener, (struct sockaddr *)&address, size) == 0 &&
        listen(gate->listener, GATE_CONNECTIONS) == 0 &&
        getsockname(gate->listener, (struct sockaddr *)&address, &size) == 0 &&
        (errno = pthread_create(&gate->thread, NULL, run, gate)) == 0) {
        gate->listens = ntohs(address.sin_port);
        return gate;
    }
    complain("the gate in front of PostgreSQL cannot be opened: %s", strerror(errno));
    if (gate->wake >= 0)
        close(gate->wake);
    if (gate->listener >= 0)
        close(gate->listener);
    free(gate);
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
    for (size_t i = 0; i < GATE_CONNECTIONS; i++)
        if (gate->links[i])
            close_link(gate, i);
    close(gate->listener);
    close(gate->wake);
    pthread_cond_destroy(&gate->condition);
    pthread_mutex_destroy(&gate->mutex);
    free(gate);
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
